//! What no program of the node may ever do, root or not.

use rustix::io;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set,
};

/// Load kernel modules, touch raw memory and ports, reboot the host, set its
/// clock, read its log, change its security policy; open files by handle, which
/// reaches every file of a file system of which one folder is shown, and so
/// the keys of the host.
const DANGEROUS: [CapabilitySet; 8] = [
    CapabilitySet::DAC_READ_SEARCH,
    CapabilitySet::SYS_MODULE,
    CapabilitySet::SYS_RAWIO,
    CapabilitySet::SYS_BOOT,
    CapabilitySet::SYS_TIME,
    CapabilitySet::SYSLOG,
    CapabilitySet::MAC_ADMIN,
    CapabilitySet::MAC_OVERRIDE,
];

/// The bounding set could not be narrowed.
#[derive(Debug, thiserror::Error)]
#[error("failed to drop the capability {capability}")]
pub(crate) struct DropCapabilityError {
    capability: String,
    #[source]
    source: std::io::Error,
}

/// Takes them from the bounding set, so that nothing started later can have
/// them, and from the agent itself.
pub(crate) fn drop_dangerous() -> Result<(), DropCapabilityError> {
    let failed = |set: CapabilitySet, source: io::Errno| DropCapabilityError {
        capability: format!("{set:?}"),
        source: source.into(),
    };
    let mut all = CapabilitySet::empty();
    for capability in DANGEROUS {
        remove_capability_from_bounding_set(capability)
            .map_err(|source| failed(capability, source))?;
        all |= capability;
    }
    let own = capabilities(None).map_err(|source| failed(all, source))?;
    let narrowed = CapabilitySets {
        effective: own.effective - all,
        permitted: own.permitted - all,
        inheritable: own.inheritable - all,
    };
    rustix::thread::set_capabilities(None, narrowed).map_err(|source| failed(all, source))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use rustix::thread::capability_is_in_bounding_set;

    #[test]
    fn nothing_started_later_can_have_what_reaches_the_host() {
        // Both sets belong to the thread; to narrow them needs root.
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let narrowed = std::thread::spawn(|| {
            drop_dangerous().unwrap();
            let bounded = |capability| capability_is_in_bounding_set(capability).unwrap();
            for capability in [
                CapabilitySet::DAC_READ_SEARCH,
                CapabilitySet::SYS_MODULE,
                CapabilitySet::SYS_RAWIO,
            ] {
                assert!(!bounded(capability), "{capability:?}");
                assert!(!capabilities(None).unwrap().permitted.contains(capability));
            }
            // What containers are made with stays.
            assert!(bounded(CapabilitySet::SYS_ADMIN));
        });
        narrowed.join().unwrap();
    }
}
