//! Settings of the kernel that a kubelet would change if it could.

use crate::problem::Problem;
use std::collections::BTreeMap;

const SETTINGS: [&str; 5] = [
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "net/ipv4/ip_forward",
];

/// Their values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HostSettings(BTreeMap<&'static str, String>);

impl HostSettings {
    pub(super) fn read() -> Self {
        let read = |name| std::fs::read_to_string(format!("/proc/sys/{name}")).ok();
        Self(
            SETTINGS
                .into_iter()
                .filter_map(|name| Some((name, read(name)?.trim().to_owned())))
                .collect(),
        )
    }

    /// That `now` is as it was.
    pub(super) fn compare(&self, now: &Self) -> anyhow::Result<()> {
        for (name, before) in &self.0 {
            let after = now.0.get(name);
            if after != Some(before) {
                let after = after.map_or("unreadable", String::as_str);
                return Err(Problem::Leftovers {
                    what: format!("{name} was {before} and is {after}"),
                }
                .into());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_setting_is_named_with_both_values() {
        let of = |value: &str| HostSettings(BTreeMap::from([("kernel/panic", value.to_owned())]));
        assert!(of("0").compare(&of("0")).is_ok());
        let error = of("0").compare(&of("10")).expect_err("it changed");
        assert!(
            error.to_string().contains("kernel/panic was 0 and is 10"),
            "{error}"
        );
    }
}
