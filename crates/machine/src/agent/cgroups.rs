//! The node's view of control groups: a namespace whose root is the machine's
//! own group, with the node's programs in `system` and pods in `pods`.
//!
//! Inside the namespace of version 1 there is no `release_agent`: that file
//! exists only at the root of a hierarchy.

use camino::{Utf8Path, Utf8PathBuf};
use rustix::thread::UnshareFlags;
use std::{fs, io};

/// Group of containerd, kubelet, kube-proxy and the agent, below the machine's.
pub(crate) const SYSTEM: &str = "system";
/// Group of all pods, below the machine's; it bears the class as limit.
pub(crate) const PODS: &str = "pods";
/// In the hierarchy of devices the namespace begins one group lower, so that
/// nobody inside can widen what the machine's group allows.
pub(crate) const DEVICES_ROOT: &str = "node";

/// Limits that are lost when a controller is taken away for a moment.
const LIMITS: [&str; 3] = ["cpu.max", "memory.max", "pids.max"];

/// A mounted hierarchy of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hierarchy {
    mount_point: Utf8PathBuf,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// Version 1; controllers as mount options, `cpu,cpuacct`, or empty.
    V1 { controllers: String },
    /// Version 2.
    V2,
}

/// The agent could not take its place in the hierarchies.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EnterCgroupsError {
    /// A file of a hierarchy failed.
    #[error("failed to {operation} {path}")]
    Access {
        /// A verb.
        operation: &'static str,
        /// The file or folder.
        path: Utf8PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The namespace was refused.
    #[error("failed to make a cgroup namespace")]
    Namespace {
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl Hierarchy {
    /// Whether it is the single hierarchy of version 2.
    pub(crate) fn is_unified(&self) -> bool {
        self.kind == Kind::V2
    }

    /// Whether it is one of version 1 that bounds something; named ones only
    /// group.
    pub(crate) fn has_controllers(&self) -> bool {
        !self.options().is_empty()
    }

    /// Name of its folder in `/sys/fs/cgroup`.
    pub(crate) fn name(&self) -> &str {
        self.mount_point.file_name().unwrap_or_default()
    }

    /// Controllers as options of mount.
    pub(crate) fn options(&self) -> &str {
        match &self.kind {
            Kind::V1 { controllers } => controllers,
            Kind::V2 => "",
        }
    }

    fn machine(&self, cgroup: &Utf8Path) -> Utf8PathBuf {
        let machine = self.mount_point.join(cgroup);
        if self.options() == "devices" {
            machine.join(DEVICES_ROOT)
        } else {
            machine
        }
    }
}

/// Finds the hierarchies in the text of `/proc/self/mounts`.
pub(crate) fn parse_hierarchies(mounts: &str) -> Vec<Hierarchy> {
    const FLAGS: [&str; 11] = [
        "rw",
        "ro",
        "relatime",
        "noatime",
        "nosuid",
        "nodev",
        "noexec",
        "xattr",
        "clone_children",
        "cpuset_v2_mode",
        "none",
    ];
    let mut found: Vec<Hierarchy> = Vec::new();
    for line in mounts.lines() {
        let mut fields = line.split(' ');
        let (Some(_), Some(mount_point), Some(kind), Some(options)) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let kind = match kind {
            "cgroup2" => Kind::V2,
            "cgroup" => {
                let controllers: Vec<&str> = options
                    .split(',')
                    .filter(|option| !FLAGS.contains(option) && !option.contains('='))
                    .collect();
                Kind::V1 {
                    controllers: controllers.join(","),
                }
            }
            _ => continue,
        };
        if !found.iter().any(|known| known.mount_point == mount_point) {
            found.push(Hierarchy {
                mount_point: mount_point.into(),
                kind,
            });
        }
    }
    found
}

/// Moves the agent into `system` of the machine's group everywhere, and makes
/// the machine's group the root of what the node sees.
pub(crate) fn enter_namespace(cgroup: &Utf8Path) -> Result<Vec<Hierarchy>, EnterCgroupsError> {
    let mounts = Utf8Path::new("/proc/self/mounts");
    let text = fs::read_to_string(mounts).map_err(access("read", mounts))?;
    let hierarchies = parse_hierarchies(&text);
    let unified_only = matches!(hierarchies.as_slice(), [only] if only.is_unified());
    let mut lifted = Vec::new();
    for hierarchy in &hierarchies {
        let machine = hierarchy.machine(cgroup);
        make(&machine)?;
        if unified_only {
            lifted = lift_controllers(&machine)?;
        }
        join(&machine)?;
    }
    unshare_cgroups().map_err(|source| EnterCgroupsError::Namespace {
        source: source.into(),
    })?;
    for hierarchy in &hierarchies {
        let machine = hierarchy.machine(cgroup);
        for group in [SYSTEM, PODS] {
            make(&machine.join(group))?;
        }
        join(&machine.join(SYSTEM))?;
        if unified_only {
            put_back(&machine, &lifted)?;
        }
    }
    Ok(hierarchies)
}

#[expect(
    unsafe_code,
    reason = "rustix marks every unshare unsafe because of the flag FILES"
)]
fn unshare_cgroups() -> rustix::io::Result<()> {
    // SAFETY: only the flag FILES has a precondition, and it is not given.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWCGROUP) }
}

fn access(operation: &'static str, path: &Utf8Path) -> impl FnOnce(io::Error) -> EnterCgroupsError {
    let path = path.to_owned();
    move |source| EnterCgroupsError::Access {
        operation,
        path,
        source,
    }
}

/// Makes the group; one of cpuset begins without processors.
fn make(group: &Utf8Path) -> Result<(), EnterCgroupsError> {
    if group.exists() {
        return Ok(());
    }
    let mut tries = 0;
    loop {
        if let Some(parent) = group.parent() {
            make(parent)?;
        }
        match fs::create_dir(group) {
            Ok(()) => break,
            // Another agent made it, or the end of another machine took the
            // empty group above away.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound && tries < 3 => tries += 1,
            Err(error) => return Err(access("make", group)(error)),
        }
    }
    for file in ["cpuset.cpus", "cpuset.mems"] {
        let own = group.join(file);
        let Some(above) = group.parent().map(|parent| parent.join(file)) else {
            continue;
        };
        if own.exists() && fs::read_to_string(&own).is_ok_and(|text| text.trim().is_empty()) {
            let value = fs::read_to_string(&above).map_err(access("read", &above))?;
            // Version 2 has nothing to inherit and says so by an empty file.
            if !value.trim().is_empty() {
                fs::write(&own, value).map_err(access("write", &own))?;
            }
        }
    }
    Ok(())
}

/// Removes the groups of a machine that has ended in the hierarchies that
/// bound nothing, which only its agent made groups in, and the groups above
/// that are empty by that. Returns what is left.
pub(crate) fn remove_unbounded(cgroup: &Utf8Path) -> Vec<Utf8PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let hierarchies = parse_hierarchies(&mounts);
    if hierarchies.iter().all(Hierarchy::is_unified) {
        return Vec::new();
    }
    let mut left = Vec::new();
    for hierarchy in hierarchies
        .iter()
        .filter(|hierarchy| !hierarchy.has_controllers())
    {
        let machine = hierarchy.mount_point.join(cgroup);
        remove_groups(&machine);
        if machine.exists() {
            left.push(machine);
            continue;
        }
        let above = machine
            .ancestors()
            .skip(1)
            .take_while(|path| *path != hierarchy.mount_point);
        for group in above {
            // One that is in use stays.
            if fs::remove_dir(group).is_err() {
                break;
            }
        }
    }
    left
}

fn remove_groups(group: &Utf8Path) {
    let Ok(entries) = group.read_dir_utf8() else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_groups(entry.path());
        }
    }
    // Whether it worked is looked at once, at the end.
    let _ = fs::remove_dir(group);
}

fn join(group: &Utf8Path) -> Result<(), EnterCgroupsError> {
    let file = group.join("cgroup.procs");
    fs::write(&file, "0").map_err(access("join", &file))
}

/// Version 2 lets no process into a group that hands controllers down. Takes
/// them away for the moment in which the namespace is made; returns what is
/// to be put back, as files below the machine's group.
fn lift_controllers(machine: &Utf8Path) -> Result<Vec<(Utf8PathBuf, String)>, EnterCgroupsError> {
    let control = machine.join("cgroup.subtree_control");
    let enabled = fs::read_to_string(&control).map_err(access("read", &control))?;
    let available = machine.join("cgroup.controllers");
    let available = fs::read_to_string(&available).map_err(access("read", &available))?;
    let each = |sign: char, names: &str| {
        names
            .split_whitespace()
            .map(|name| format!("{sign}{name}"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let mut kept = vec![("cgroup.subtree_control".into(), each('+', &available))];
    for group in [SYSTEM, PODS] {
        for limit in LIMITS {
            let file = Utf8Path::new(group).join(limit);
            if let Ok(value) = fs::read_to_string(machine.join(&file)) {
                kept.push((file, value.trim().to_owned()));
            }
        }
    }
    if !enabled.trim().is_empty() {
        fs::write(&control, each('-', &enabled)).map_err(access("write", &control))?;
    }
    Ok(kept)
}

fn put_back(machine: &Utf8Path, kept: &[(Utf8PathBuf, String)]) -> Result<(), EnterCgroupsError> {
    for (file, value) in kept {
        let file = machine.join(file);
        fs::write(&file, value).map_err(access("write", &file))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
proc /proc proc rw,relatime 0 0
tmpfs /sys/fs/cgroup tmpfs rw,relatime,mode=755 0 0
cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,nosuid,relatime,cpu,cpuacct 0 0
cgroup /sys/fs/cgroup/devices cgroup rw,relatime,devices 0 0
cgroup /sys/fs/cgroup/systemd cgroup rw,relatime,xattr,name=systemd 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0
";

    #[test]
    fn every_mounted_hierarchy_is_found() {
        let found = parse_hierarchies(HYBRID);
        let names: Vec<_> = found
            .iter()
            .map(|h| (h.name(), h.options(), h.is_unified()))
            .collect();
        assert_eq!(
            names,
            [
                ("cpu,cpuacct", "cpu,cpuacct", false),
                ("devices", "devices", false),
                ("systemd", "", false),
                ("unified", "", true)
            ]
        );
    }

    #[test]
    fn the_named_hierarchy_is_joined_and_not_shown() {
        let shown: Vec<_> = parse_hierarchies(HYBRID)
            .into_iter()
            .filter(Hierarchy::has_controllers)
            .collect();
        assert!(shown.iter().all(|hierarchy| hierarchy.name() != "systemd"));
    }

    #[test]
    fn the_allowed_devices_lie_above_what_the_node_sees() {
        let roots: Vec<_> = parse_hierarchies(HYBRID)
            .iter()
            .map(|hierarchy| hierarchy.machine(Utf8Path::new("neap/m")))
            .collect();
        assert_eq!(
            roots.first().map(|path| path.as_str()),
            Some("/sys/fs/cgroup/cpu,cpuacct/neap/m")
        );
        assert_eq!(
            roots.get(1).map(|path| path.as_str()),
            Some("/sys/fs/cgroup/devices/neap/m/node")
        );
    }
}
