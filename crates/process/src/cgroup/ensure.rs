//! Making groups and bounding them.

use super::hierarchy::Hierarchy;
use super::{Cgroup, CgroupPath, Limits};
use camino::{Utf8Path, Utf8PathBuf};
use std::io;

/// Length of the period that CPU is measured out in.
const CPU_PERIOD_US: u64 = 100_000;

/// The kernel takes no smaller quota.
const CPU_QUOTA_MIN_US: u64 = 1_000;

/// Controllers of version 2 that groups are given.
const UNIFIED: [&str; 5] = ["cpu", "cpuset", "io", "memory", "pids"];

/// A control group could not be made.
#[derive(Debug, thiserror::Error)]
#[error("failed to {operation} {path}")]
pub struct EnsureCgroupError {
    /// A verb.
    pub operation: &'static str,
    /// The file or folder.
    pub path: Utf8PathBuf,
    /// Why.
    #[source]
    pub source: io::Error,
}

impl Cgroup {
    /// Makes the group and those above it, and sets its limits. A limit that
    /// the host has no controller for is left out.
    pub fn ensure(path: &CgroupPath, limits: &Limits) -> Result<Self, EnsureCgroupError> {
        match Hierarchy::host() {
            Hierarchy::V1(trees) => {
                for tree in trees {
                    let mut folder = tree.root.clone();
                    for name in path.as_path() {
                        let parent = folder.clone();
                        folder.push(name);
                        make(&folder)?;
                        for controller in &tree.controllers {
                            inherit(controller, &parent, &folder)?;
                        }
                    }
                    for controller in &tree.controllers {
                        bound(controller, &folder, limits)?;
                    }
                }
            }
            Hierarchy::V2(root) => {
                let mut folder = root.clone();
                for name in path.as_path() {
                    delegate(&folder)?;
                    folder.push(name);
                    make(&folder)?;
                }
                bound_unified(&folder, limits)?;
            }
        }
        Ok(Self::at(path))
    }
}

fn failed(operation: &'static str, path: &Utf8Path) -> impl FnOnce(io::Error) -> EnsureCgroupError {
    let path = path.to_owned();
    move |source| EnsureCgroupError {
        operation,
        path,
        source,
    }
}

fn make(folder: &Utf8Path) -> Result<(), EnsureCgroupError> {
    match std::fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(failed("make", folder)(error))
        }
        _ => Ok(()),
    }
}

fn read(path: &Utf8Path) -> Result<String, EnsureCgroupError> {
    std::fs::read_to_string(path).map_err(failed("read", path))
}

fn write(path: &Utf8Path, text: &str) -> Result<(), EnsureCgroupError> {
    std::fs::write(path, text).map_err(failed("write", path))
}

/// Gives a new group of version 1 what it cannot be used without.
fn inherit(
    controller: &str,
    parent: &Utf8Path,
    folder: &Utf8Path,
) -> Result<(), EnsureCgroupError> {
    match controller {
        // A group without processors and memory nodes takes no process.
        "cpuset" => {
            for name in ["cpuset.cpus", "cpuset.mems"] {
                let own = folder.join(name);
                if read(&own)?.trim().is_empty() {
                    write(&own, read(&parent.join(name))?.trim())?;
                }
            }
            Ok(())
        }
        // Older kernels otherwise count each group alone.
        "memory" => {
            let hierarchy = folder.join("memory.use_hierarchy");
            match std::fs::read_to_string(&hierarchy) {
                Ok(text) if text.trim() == "0" => write(&hierarchy, "1"),
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

fn quota_us(cpu_milli: u64) -> u64 {
    cpu_milli
        .saturating_mul(CPU_PERIOD_US / 1_000)
        .max(CPU_QUOTA_MIN_US)
}

fn or_else<T: ToString>(limit: Option<T>, none: &str) -> String {
    limit.map_or_else(|| none.to_owned(), |limit| limit.to_string())
}

fn bound(controller: &str, folder: &Utf8Path, limits: &Limits) -> Result<(), EnsureCgroupError> {
    match controller {
        "cpu" => {
            let quota = folder.join("cpu.cfs_quota_us");
            // Kernels are built without bandwidth control as well.
            if !quota.exists() && limits.cpu_milli.is_none() {
                return Ok(());
            }
            write(
                &folder.join("cpu.cfs_period_us"),
                &CPU_PERIOD_US.to_string(),
            )?;
            write(&quota, &or_else(limits.cpu_milli.map(quota_us), "-1"))
        }
        "memory" => write(
            &folder.join("memory.limit_in_bytes"),
            &or_else(limits.memory_bytes, "-1"),
        ),
        "pids" => write(&folder.join("pids.max"), &or_else(limits.pids, "max")),
        _ => Ok(()),
    }
}

/// Lets groups below this one have controllers of their own.
fn delegate(folder: &Utf8Path) -> Result<(), EnsureCgroupError> {
    let available = read(&folder.join("cgroup.controllers"))?;
    let control = folder.join("cgroup.subtree_control");
    let enabled = read(&control)?;
    for name in UNIFIED {
        let has = |list: &str| list.split_ascii_whitespace().any(|listed| listed == name);
        if has(&available) && !has(&enabled) {
            write(&control, &format!("+{name}"))?;
        }
    }
    Ok(())
}

fn bound_unified(folder: &Utf8Path, limits: &Limits) -> Result<(), EnsureCgroupError> {
    let quota = or_else(limits.cpu_milli.map(quota_us), "max");
    let files = [
        ("cpu.max", format!("{quota} {CPU_PERIOD_US}")),
        ("memory.max", or_else(limits.memory_bytes, "max")),
        ("pids.max", or_else(limits.pids, "max")),
    ];
    for (name, text) in files {
        let path = folder.join(name);
        if path.exists() {
            write(&path, &text)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_the_share_of_a_period() {
        assert_eq!(quota_us(1_000), 100_000);
        assert_eq!(quota_us(2_500), 250_000);
        assert_eq!(quota_us(1), 1_000);
        assert_eq!(quota_us(u64::MAX), u64::MAX);
    }
}
