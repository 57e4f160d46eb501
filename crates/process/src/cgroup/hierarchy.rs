//! Where control groups are on this host.

use camino::Utf8PathBuf;
use std::sync::OnceLock;

/// The trees that groups are made in. A group is made in every one: a process
/// with a control group namespace sees the host's root of each tree in which
/// it has no group of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Hierarchy {
    /// A tree per controller, or per few of them, and perhaps some without.
    V1(Vec<Tree>),
    /// One tree for all.
    V2(Utf8PathBuf),
}

/// A tree of a host with version 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tree {
    pub(super) root: Utf8PathBuf,
    /// None for the tree of the service manager, and for the one of version 2
    /// that stands beside.
    pub(super) controllers: Vec<String>,
}

impl Hierarchy {
    /// The host's, which stays the same while it runs.
    pub(super) fn host() -> &'static Self {
        static HOST: OnceLock<Hierarchy> = OnceLock::new();
        HOST.get_or_init(|| {
            // Without the file there is no tree, and every use says so.
            Self::parse(&std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default())
        })
    }

    /// Reads `/proc/PID/mountinfo`. A host that has both keeps the controllers
    /// in version 1.
    fn parse(mounts: &str) -> Self {
        let mut devices: Vec<&str> = Vec::new();
        let mut trees: Vec<Tree> = Vec::new();
        let mut unified = None;
        for line in mounts.lines() {
            let Some((place, kind)) = line.split_once(" - ") else {
                continue;
            };
            let mut place = place.split(' ').skip(2);
            let (Some(device), Some(root)) = (place.next(), place.nth(1)) else {
                continue;
            };
            let mut kind = kind.split(' ');
            let (file_system, options) = (kind.next(), kind.nth(1).unwrap_or_default());
            // The same tree may be mounted in several places.
            if devices.contains(&device) {
                continue;
            }
            match file_system {
                Some("cgroup2") => unified = Some(Utf8PathBuf::from(root)),
                Some("cgroup") => trees.push(Tree {
                    root: root.into(),
                    controllers: controllers(options),
                }),
                _ => continue,
            }
            devices.push(device);
        }
        match unified {
            Some(root) if trees.iter().all(|tree| tree.controllers.is_empty()) => Self::V2(root),
            unified => {
                trees.extend(unified.map(|root| Tree {
                    root,
                    controllers: Vec::new(),
                }));
                Self::V1(trees)
            }
        }
    }

    /// Roots of all trees.
    pub(super) fn roots(&self) -> Vec<Utf8PathBuf> {
        match self {
            Self::V1(trees) => trees.iter().map(|tree| tree.root.clone()).collect(),
            Self::V2(root) => vec![root.clone()],
        }
    }
}

/// The controllers among the options of a mount: all but access, name and
/// attributes.
fn controllers(options: &str) -> Vec<String> {
    options
        .split(',')
        .filter(|option| !option.contains('='))
        .filter(|option| {
            !["rw", "ro", "none", "xattr", "noprefix", "clone_children"].contains(option)
        })
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hybrid_host_has_its_controllers_in_version_1_and_more_trees() {
        let mounts = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:3 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
90 31 0:32 / /mnt/memory rw,relatime - cgroup cgroup rw,memory
91 31 0:38 / /mnt/unified rw,relatime - cgroup2 cgroup2 rw
";
        let tree = |root: &str, controllers: &[&str]| Tree {
            root: root.into(),
            controllers: controllers.iter().map(ToString::to_string).collect(),
        };
        let expected = Hierarchy::V1(vec![
            tree("/sys/fs/cgroup/cpu,cpuacct", &["cpu", "cpuacct"]),
            tree("/sys/fs/cgroup/memory", &["memory"]),
            tree("/sys/fs/cgroup/systemd", &[]),
            tree("/sys/fs/cgroup/unified", &[]),
        ]);
        assert_eq!(Hierarchy::parse(mounts), expected);
    }

    #[test]
    fn a_host_without_version_1_has_one_tree() {
        let mounts = "30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate";
        assert_eq!(
            Hierarchy::parse(mounts),
            Hierarchy::V2("/sys/fs/cgroup".into())
        );
    }
}
