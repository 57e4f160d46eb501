//! What a container may be in a node that shares the kernel of the host,
//! unless its Cluster allows privileged pods.
//!
//! Who administers the API of a Cluster decides what pods there are; so this
//! is decided again in the node, where no API reaches. Root in a container is
//! root of the host, kept in by the capabilities that it lacks and by the
//! folders that it does not see: whoever has the node's own powers, directly
//! or through one of the node's programs, has the host.

use std::collections::BTreeSet;
use std::fmt;

/// What containers have by default, and what is harmless beyond that:
/// NET_ADMIN and NET_BROADCAST act on a network namespace, which is the pod's
/// or the node's and never the host's; IPC_LOCK is bounded by the memory of
/// the pods, IPC_OWNER by the IPC namespace. SYS_PTRACE is not harmless, even
/// where only the pod's processes are seen: each `exec` brings a process with
/// the node's powers among them for a moment.
const CAPABILITIES: [&str; 18] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "IPC_LOCK",
    "IPC_OWNER",
    "KILL",
    "MKNOD",
    "NET_ADMIN",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_RAW",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// Trees of the node that hold nothing of the node's control: read-only
/// programs and configuration, logs, and what is there for everybody.
const ORDINARY: [&str; 13] = [
    "/dev/shm",
    "/etc",
    "/home",
    "/media",
    "/mnt",
    "/opt",
    "/root",
    "/srv",
    "/tmp",
    "/usr",
    "/var/cache",
    "/var/log",
    "/var/tmp",
];

/// What lies in one of those and is the node's own: the network plugins are
/// started with what is written there.
const CONTROL: [&str; 1] = ["/etc/cni"];

/// Folder of all pods, as the kubelet lays it out.
pub const POD_FOLDERS: &str = "/var/lib/kubelet/pods";
/// Folders of containerd: lasting and volatile.
const LASTING: &str = "/var/lib/containerd/io.containerd.grpc.v1.cri";
const VOLATILE: &str = "/run/containerd/io.containerd.grpc.v1.cri";

/// Kinds of file systems that a container may be given.
const KINDS: [&str; 8] = [
    "bind", "cgroup", "cgroup2", "devpts", "mqueue", "proc", "sysfs", "tmpfs",
];

/// Whether a node keeps its containers in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    /// By what is decided here.
    Closed,
    /// Not beyond what the API server decides: the Cluster allows privileged
    /// pods.
    Open,
}

impl Fence {
    /// The fence of a Cluster's nodes.
    pub fn of_cluster(allow_privileged: bool) -> Self {
        if allow_privileged {
            Self::Open
        } else {
            Self::Closed
        }
    }
}

/// Whether something that keeps a container in is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// It is.
    Present,
    /// It is not.
    Absent,
}

/// One thing that a container is to see in its file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObservedMount {
    /// A new file system of this kind.
    Kernel {
        /// As the kernel names it.
        kind: String,
    },
    /// A part of the node.
    OfNode {
        /// As it was asked for.
        source: String,
        /// Every path of the node at which what is there, or what is mounted
        /// below it, can be found: links followed, binds traced to their
        /// origin.
        places: BTreeSet<String>,
    },
}

/// A container that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedContainer {
    /// Its own id.
    pub id: String,
    /// Id of its sandbox.
    pub sandbox: String,
    /// UID of its pod.
    pub pod: String,
    /// All capabilities of any of its sets, without `CAP_`.
    pub capabilities: BTreeSet<String>,
    /// A seccomp profile.
    pub seccomp: Protection,
    /// The masks over `/proc`.
    pub masks: Protection,
    /// No programs that the node is to run for it.
    pub no_hooks: Protection,
    /// What it is to see.
    pub mounts: Vec<ObservedMount>,
}

/// Why something is not done in this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// More than [`CAPABILITIES`].
    Capabilities(BTreeSet<String>),
    /// A part of the node that is not for pods.
    HostPath {
        /// As it was asked for.
        source: String,
        /// Where it leads.
        place: String,
    },
    /// A file system that the node is to mount.
    Kind(String),
    /// System calls without a filter.
    Unconfined,
    /// `/proc` without its masks.
    UnmaskedProc,
    /// Programs run with the node's powers.
    Hooks,
    /// A container made from a memory image, whose powers nobody has checked.
    Restore,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capabilities(names) => list(f, names)?,
            Self::HostPath { source, place } if source == place => {
                write!(f, "host path {source} is")?;
            }
            Self::HostPath { source, place } => {
                write!(f, "host path {source}, which leads to {place}, is")?;
            }
            Self::Kind(kind) => write!(f, "a mount of type {kind} is")?,
            Self::Unconfined => f.write_str("seccomp profile Unconfined is")?,
            Self::UnmaskedProc => f.write_str("procMount Unmasked is")?,
            Self::Hooks => f.write_str("a container with hooks is")?,
            Self::Restore => f.write_str("restoring a container is")?,
        }
        f.write_str(" not allowed on this node: the cluster has allowPrivileged false")
    }
}

/// Three names are enough of a sentence.
fn list(f: &mut fmt::Formatter<'_>, names: &BTreeSet<String>) -> fmt::Result {
    if names.len() == 1 {
        let name = names.first().map_or("", String::as_str);
        return write!(f, "capability {name} is");
    }
    let shown: Vec<&str> = names.iter().map(String::as_str).take(3).collect();
    write!(f, "capabilities {}", shown.join(", "))?;
    match names.len().saturating_sub(shown.len()) {
        0 => f.write_str(" are"),
        more => write!(f, " and {more} more are"),
    }
}

/// Whether a container may be made.
///
/// # Errors
/// The first reason why not.
pub fn decide_create(container: &ObservedContainer) -> Result<(), Refusal> {
    decide_exec(&container.capabilities)?;
    for mount in &container.mounts {
        match mount {
            ObservedMount::Kernel { kind } if KINDS.contains(&kind.as_str()) => {}
            ObservedMount::Kernel { kind } => return Err(Refusal::Kind(kind.clone())),
            ObservedMount::OfNode { source, places } => {
                if let Some(place) = places.iter().find(|place| !is_for(container, place)) {
                    return Err(Refusal::HostPath {
                        source: source.clone(),
                        place: place.clone(),
                    });
                }
            }
        }
    }
    for (protection, refusal) in [
        (container.seccomp, Refusal::Unconfined),
        (container.masks, Refusal::UnmaskedProc),
        (container.no_hooks, Refusal::Hooks),
    ] {
        if protection == Protection::Absent {
            return Err(refusal);
        }
    }
    Ok(())
}

/// Whether a process may be started in a container with these capabilities.
///
/// # Errors
/// The reason why not.
pub fn decide_exec(capabilities: &BTreeSet<String>) -> Result<(), Refusal> {
    let beyond: BTreeSet<String> = capabilities
        .iter()
        .filter(|name| !CAPABILITIES.contains(&name.as_str()))
        .cloned()
        .collect();
    if beyond.is_empty() {
        Ok(())
    } else {
        Err(Refusal::Capabilities(beyond))
    }
}

/// Whether none but the node's own programs write in the folders on the way to
/// this place, so that its path leads there a moment later too.
pub fn is_steady(place: &str) -> bool {
    if let Some(within) = below(place, POD_FOLDERS) {
        let steps: Vec<&str> = within.split('/').collect();
        return matches!(
            steps.as_slice(),
            [_, "etc-hosts"]
                | [_, "containers" | "volumes", _, _]
                | [_, "volume-subpaths", _, _, _]
        );
    }
    [LASTING, VOLATILE]
        .iter()
        .any(|tree| below(place, tree).is_some())
}

/// Whether this place of the node holds nothing but what everybody may see.
fn is_ordinary(place: &str) -> bool {
    ORDINARY.iter().any(|tree| below(place, tree).is_some())
        && !CONTROL
            .iter()
            .any(|tree| below(place, tree).is_some() || below(tree, place).is_some())
}

fn is_for(container: &ObservedContainer, place: &str) -> bool {
    // With a step to the parent a path is not what it looks like.
    place.split('/').all(|step| step != "..")
        && (is_ordinary(place) || is_of_pod(container, place) || is_of_runtime(container, place))
}

/// The volumes and files that the kubelet has made for this very pod. What
/// lies above a volume is the kubelet's: whoever writes there has it mount and
/// write elsewhere.
fn is_of_pod(container: &ObservedContainer, place: &str) -> bool {
    let Some(within) = own(POD_FOLDERS, &container.pod).and_then(|folder| below(place, &folder))
    else {
        return false;
    };
    let steps: Vec<&str> = within.split('/').collect();
    matches!(
        steps.as_slice(),
        ["etc-hosts"]
            | ["containers", _, _]
            | ["volumes", _, _, ..]
            | ["volume-subpaths", _, _, _, ..]
    )
}

/// What containerd has made for this very container or its sandbox.
fn is_of_runtime(container: &ObservedContainer, place: &str) -> bool {
    let folders = [
        own(&format!("{LASTING}/sandboxes"), &container.sandbox),
        own(&format!("{VOLATILE}/sandboxes"), &container.sandbox),
        own(&format!("{VOLATILE}/image-volumes"), &container.sandbox),
        own(&format!("{LASTING}/containers"), &container.id),
    ];
    folders
        .iter()
        .flatten()
        .any(|folder| below(place, folder).is_some_and(|within| !within.is_empty()))
}

/// The folder of this name; none without a name that is one.
fn own(folder: &str, name: &str) -> Option<String> {
    let is_name = !name.is_empty() && name != "." && !name.contains('/');
    is_name.then(|| format!("{folder}/{name}"))
}

/// The rest of the path below the tree; empty for the tree itself.
fn below<'a>(path: &'a str, tree: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(tree.trim_end_matches('/'))?;
    if rest.is_empty() {
        return Some(rest);
    }
    rest.strip_prefix('/')
}

#[cfg(test)]
mod tests;
