//! The control groups of a machine: the class bounds its pods, a fixed
//! allowance its programs, and an allow-list its devices.

use super::record::MachineRecord;
use crate::agent;
use camino::{Utf8Path, Utf8PathBuf};
use neap_operator::traits::Cause;
use neap_process::cgroup::{Cgroup, CgroupPath, Limits};
use std::{fs, io};

/// What containerd, kubelet, kube-proxy, shims and agent may use. Far more
/// than they need: it only keeps a wild one from taking the host along.
const SYSTEM: Limits = Limits {
    cpu_milli: None,
    memory_bytes: Some(1 << 29),
    pids: Some(4096),
};

/// Processes that one pod may be thought to have, and those beside.
const PIDS_PER_POD: u64 = 1024;
const PIDS_BESIDE: u64 = 1024;

/// The devices that a machine may use could not be set.
#[derive(Debug, thiserror::Error)]
#[error("failed to write {rule:?} to {path}")]
pub(crate) struct FenceDevicesError {
    rule: String,
    path: Utf8PathBuf,
    #[source]
    source: io::Error,
}

/// Makes the groups of the machine; returns the one its agent starts in.
pub(crate) fn ensure(record: &MachineRecord, machine: &CgroupPath) -> Result<CgroupPath, Cause> {
    let group = Cgroup::ensure(machine, &Limits::default())?;
    // Only a group without children takes a new list.
    for folder in group.folders() {
        fence_devices(&folder)?;
    }
    let system = machine.join(agent::SYSTEM)?;
    Cgroup::ensure(&system, &SYSTEM)?;
    Cgroup::ensure(&machine.join(agent::PODS)?, &pods(record))?;
    Ok(system)
}

fn pods(record: &MachineRecord) -> Limits {
    Limits {
        cpu_milli: Some(record.cpu_milli),
        memory_bytes: Some(record.memory_bytes),
        pids: Some(PIDS_BESIDE + PIDS_PER_POD * u64::from(record.max_pods)),
    }
}

/// Narrows a group of the devices hierarchy; every other folder is left alone.
fn fence_devices(folder: &Utf8Path) -> Result<(), FenceDevicesError> {
    let list = folder.join("devices.list");
    let Ok(now) = fs::read_to_string(&list) else {
        return Ok(());
    };
    if now.trim() != "a *:* rwm" {
        return Ok(());
    }
    let write = |file: &str, rule: &str| {
        let path = folder.join(file);
        fs::write(&path, rule).map_err(|source| FenceDevicesError {
            rule: rule.to_owned(),
            path,
            source,
        })
    };
    write("devices.deny", "a")?;
    agent::allowed_devices()
        .iter()
        .try_for_each(|rule| write("devices.allow", rule))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::super::record::tests::plan;
    use super::*;
    use neap_core::ids::InstallationId;

    #[test]
    fn the_class_bounds_the_pods() {
        let record = MachineRecord::new(&InstallationId::new("11111111-aaaa"), &plan());
        let limits = pods(&record);
        assert_eq!(limits.cpu_milli, Some(1000));
        assert_eq!(limits.memory_bytes, Some(1 << 30));
        assert_eq!(limits.pids, Some(9 * 1024));
    }

    #[test]
    fn a_list_that_is_narrow_already_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(dir.path()).unwrap();
        fs::write(folder.join("devices.list"), "c *:* m\nc 1:3 rwm\n").unwrap();
        fence_devices(folder).unwrap();
        assert!(!folder.join("devices.deny").exists());
    }

    #[test]
    fn an_open_list_is_closed_first() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(dir.path()).unwrap();
        fs::write(folder.join("devices.list"), "a *:* rwm\n").unwrap();
        fence_devices(folder).unwrap();
        assert_eq!(
            fs::read_to_string(folder.join("devices.deny")).unwrap(),
            "a"
        );
        assert!(folder.join("devices.allow").exists());
    }
}
