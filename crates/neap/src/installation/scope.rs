//! Which names on the host belong to one installation.

use camino::{Utf8Path, Utf8PathBuf};
use std::collections::BTreeSet;

/// Where cgroups of neap lie: on v1 below each controller, on v2 at the root.
pub(crate) const CGROUPS: &str = "/sys/fs/cgroup";
/// The folder of network namespaces that have names.
pub(crate) const NAMESPACES: &str = "/run/netns";
/// What names of our network namespaces begin with.
pub(crate) const NAMESPACE_PREFIX: &str = "neap-";

/// An installation by its data folder, and the names it has given to things
/// on the host. Names that were seen once are remembered: a trace of
/// something whose record is gone is still known as a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    data_dir: Utf8PathBuf,
    id: Option<String>,
    /// The cgroup that holds all of it, below `neap`.
    group: Option<String>,
    shorts: BTreeSet<String>,
}

impl Scope {
    /// Reads the data folder and the cgroups for the names in use.
    pub fn read(data_dir: &Utf8Path) -> Self {
        let mut scope = Self {
            data_dir: data_dir.to_owned(),
            id: None,
            group: None,
            shorts: BTreeSet::new(),
        };
        scope.refresh();
        scope
    }

    /// What belongs to one Cluster of this installation and its machines, by
    /// their UIDs; the records may be gone.
    pub fn of_cluster<'a>(
        &self,
        cluster: &str,
        machines: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let group = self
            .group
            .as_deref()
            .zip(short(cluster))
            .map(|(group, short)| format!("{group}/{short}"));
        let data_dir = self.data_dir.join("clusters").join(cluster);
        let mut scope = Self {
            data_dir,
            id: None,
            group,
            shorts: BTreeSet::new(),
        };
        scope.remember(cluster);
        machines
            .into_iter()
            .for_each(|machine| scope.remember(machine));
        scope
    }

    /// Reads again and adds what is new.
    pub fn refresh(&mut self) {
        if self.id.is_none() {
            self.id = read_id(&self.data_dir);
            if let Some(short) = self.id.as_deref().and_then(short) {
                self.group = Some(short.to_owned());
            }
        }
        if let Some(id) = self.id.clone() {
            self.remember(&id);
        }
        for cluster in folders(&self.data_dir.join("clusters")) {
            self.remember(&cluster);
            for machine in folders(
                &self
                    .data_dir
                    .join("clusters")
                    .join(&cluster)
                    .join("machines"),
            ) {
                self.remember(&machine);
            }
        }
        for root in self.cgroup_roots() {
            for cluster in folders(&root) {
                for machine in folders(&root.join(&cluster)) {
                    self.remember(&machine);
                }
                self.remember(&cluster);
            }
        }
    }

    /// Adds the name that a record's UID has on the host.
    pub fn remember(&mut self, uid: &str) {
        self.shorts.extend(short(uid).map(str::to_owned));
    }

    /// The data folder.
    pub fn data_dir(&self) -> &Utf8Path {
        &self.data_dir
    }

    /// Identity of the installation, once it has one.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// The cgroup that holds all of it, below the root of each hierarchy.
    pub(crate) fn group(&self) -> Option<String> {
        self.group.as_ref().map(|group| format!("neap/{group}"))
    }

    /// The cgroups that hold all of this installation, one for each hierarchy.
    pub(crate) fn cgroup_roots(&self) -> Vec<Utf8PathBuf> {
        let Some(group) = &self.group else {
            return Vec::new();
        };
        neap_cgroups()
            .into_iter()
            .map(|root| root.join(group))
            .filter(|root| root.is_dir())
            .collect()
    }

    /// Whether a cgroup, given as its path within a hierarchy, is ours.
    pub(crate) fn owns_cgroup(&self, path: &str) -> bool {
        let Some(group) = &self.group else {
            return false;
        };
        let mut parts = path.split('/');
        parts.any(|part| part == "neap") && group.split('/').all(|part| parts.next() == Some(part))
    }

    /// Whether a network namespace is ours.
    pub(crate) fn owns_namespace(&self, name: &str) -> bool {
        name.strip_prefix(NAMESPACE_PREFIX).is_some_and(|rest| {
            self.shorts
                .contains(rest.strip_suffix("-hub").unwrap_or(rest))
        })
    }

    /// Whether an interface is ours.
    pub(crate) fn owns_interface(&self, name: &str) -> bool {
        name.strip_prefix('v')
            .is_some_and(|rest| self.shorts.contains(rest))
    }

    /// Whether a mount point is ours: what is mounted on the data folder
    /// itself is the file system that it was given.
    pub(crate) fn owns_mount(&self, path: &str) -> bool {
        self.owns_path(path) && Utf8Path::new(path) != self.data_dir
    }

    /// Whether a path is the data folder or lies in it.
    pub(crate) fn owns_path(&self, path: &str) -> bool {
        Utf8Path::new(path).starts_with(&self.data_dir)
    }
}

/// `neap` below each cgroup hierarchy.
pub(crate) fn neap_cgroups() -> Vec<Utf8PathBuf> {
    let root = Utf8Path::new(CGROUPS);
    let mut found: Vec<Utf8PathBuf> = folders(root)
        .into_iter()
        .map(|name| root.join(name).join("neap"))
        .collect();
    found.push(root.join("neap"));
    found.retain(|path| path.is_dir() && !path.is_symlink());
    // On v1 some hierarchies have a second name, a link: only one is kept.
    found.retain(|path| path.parent().is_some_and(|parent| !parent.is_symlink()));
    found
}

/// Names of the folders in a folder; none when there is no such folder.
pub(crate) fn folders(path: &Utf8Path) -> Vec<String> {
    let Ok(entries) = path.read_dir_utf8() else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.file_name().to_owned())
        .collect();
    names.sort();
    names
}

fn read_id(data_dir: &Utf8Path) -> Option<String> {
    let text = std::fs::read_to_string(data_dir.join("installation")).ok()?;
    Some(text.trim().to_owned()).filter(|text| is_uid(text))
}

/// What a UID is shortened to in names on the host.
fn short(uid: &str) -> Option<&str> {
    uid.get(..8)
        .filter(|short| short.bytes().all(|b| b.is_ascii_hexdigit()))
}

fn is_uid(text: &str) -> bool {
    text.len() >= 8 && text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn scope_with(id: &str, clusters: &[(&str, &[&str])]) -> Scope {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap();
        std::fs::write(path.join("installation"), format!("{id}\n")).unwrap();
        for (cluster, machines) in clusters {
            std::fs::create_dir_all(path.join("clusters").join(cluster).join("machines")).unwrap();
            for machine in *machines {
                std::fs::create_dir(
                    path.join("clusters")
                        .join(cluster)
                        .join("machines")
                        .join(machine),
                )
                .unwrap();
            }
        }
        Scope::read(path)
    }

    const ID: &str = "0badcafe-1111-2222-3333-444455556666";
    const CLUSTER: &str = "aaaaaaaa-1111-2222-3333-444455556666";
    const OTHER: &str = "cccccccc-1111-2222-3333-444455556666";
    const MACHINE: &str = "bbbbbbbb-1111-2222-3333-444455556666";

    #[test]
    fn only_names_of_its_own_records_belong_to_it() {
        let scope = scope_with(ID, &[(CLUSTER, &[MACHINE])]);
        for name in [
            "neap-0badcafe",
            "neap-0badcafe-hub",
            "neap-aaaaaaaa",
            "neap-bbbbbbbb",
        ] {
            assert!(scope.owns_namespace(name), "{name}");
        }
        for name in [
            "neap-cccccccc",
            "aaaaaaaa",
            "cni-aaaaaaaa",
            "neap-",
            "neap-aaaaaaaa1",
        ] {
            assert!(!scope.owns_namespace(name), "{name}");
        }
        assert!(scope.owns_interface("vbbbbbbbb"));
        assert!(!scope.owns_interface("veth0"));
    }

    #[test]
    fn a_cgroup_is_ours_only_below_our_own_id() {
        let scope = scope_with(ID, &[]);
        assert!(scope.owns_cgroup("/neap/0badcafe/aaaaaaaa/control-plane"));
        assert!(scope.owns_cgroup("/docker/x/neap/0badcafe"));
        assert!(!scope.owns_cgroup("/neap/deadbeef/aaaaaaaa"));
        assert!(!scope.owns_cgroup("/neap"));
        assert!(!scope.owns_cgroup("/0badcafe"));
    }

    #[test]
    fn a_folder_without_an_id_owns_nothing_on_the_host() {
        let folder = tempfile::tempdir().unwrap();
        let scope = Scope::read(Utf8Path::from_path(folder.path()).unwrap());
        assert_eq!(scope.id(), None);
        assert!(scope.cgroup_roots().is_empty());
        assert!(!scope.owns_cgroup("/neap/0badcafe"));
    }

    #[test]
    fn an_identity_that_is_made_later_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap();
        let mut scope = Scope::read(path);
        std::fs::write(path.join("installation"), format!("{ID}\n")).unwrap();
        scope.refresh();
        assert_eq!(scope.id(), Some(ID));
        assert!(scope.owns_cgroup("/neap/0badcafe/hub"));
        assert!(scope.owns_namespace("neap-0badcafe-hub"));
    }

    #[test]
    fn what_was_seen_once_is_remembered() {
        let mut scope = scope_with(ID, &[]);
        scope.remember(CLUSTER);
        scope.refresh();
        assert!(scope.owns_namespace("neap-aaaaaaaa"));
        scope.remember("../../etc");
        assert!(!scope.owns_namespace("neap-../../e"));
    }

    #[test]
    fn one_cluster_is_told_from_another_of_the_same_installation() {
        let whole = scope_with(ID, &[(CLUSTER, &[MACHINE]), (OTHER, &[])]);
        let scope = whole.of_cluster(CLUSTER, [MACHINE]);
        assert!(scope.owns_namespace("neap-bbbbbbbb"));
        assert!(!scope.owns_namespace("neap-cccccccc"));
        assert!(scope.owns_cgroup("/neap/0badcafe/aaaaaaaa/bbbbbbbb/pods"));
        assert!(!scope.owns_cgroup("/neap/0badcafe/cccccccc/control-plane"));
        assert!(
            scope.owns_path(
                whole
                    .data_dir()
                    .join("clusters")
                    .join(CLUSTER)
                    .join("record.json")
                    .as_str()
            )
        );
        assert!(!scope.owns_path(whole.data_dir().join("clusters").join(OTHER).as_str()));
    }

    #[test]
    fn the_file_system_of_the_data_folder_is_not_ours() {
        let scope = scope_with(ID, &[]);
        assert!(!scope.owns_mount(scope.data_dir().as_str()));
        assert!(scope.owns_mount(scope.data_dir().join("clusters/x").as_str()));
    }

    #[test]
    fn a_sibling_folder_with_the_same_beginning_is_not_ours() {
        let scope = Scope {
            data_dir: "/var/lib/neap".into(),
            id: None,
            group: None,
            shorts: BTreeSet::new(),
        };
        assert!(scope.owns_path("/var/lib/neap/clusters/x"));
        assert!(scope.owns_path("/var/lib/neap"));
        assert!(!scope.owns_path("/var/lib/neap2/clusters"));
    }
}
