//! Where one control plane is on this host: folders, names, groups.

use camino::{Utf8Path, Utf8PathBuf};
use neap_core::ids::{ClusterUid, InstallationId};
use neap_net::NetworkNamespace;
use neap_process::cgroup::{CgroupPath, ParseCgroupPathError};

/// The group above all that neap makes.
const ROOT_GROUP: &str = "neap";
/// Of an id, so much is in a name.
const SHORT: usize = 8;

/// Everything that bears the name of one control plane.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    folder: Utf8PathBuf,
    namespace: NetworkNamespace,
    installation_group: CgroupPath,
    group: CgroupPath,
}

/// A UID cannot name a folder or a group.
#[derive(Debug, thiserror::Error)]
#[error("{uid:?} cannot name what a control plane is made of")]
pub struct NameSiteError {
    /// The UID.
    pub uid: String,
    /// Why, where a group refused it.
    #[source]
    pub source: Option<ParseCgroupPathError>,
}

fn short(installation: &InstallationId) -> &str {
    installation
        .as_str()
        .get(..SHORT)
        .unwrap_or(installation.as_str())
}

impl Site {
    /// Of a Cluster.
    pub(crate) fn of_cluster(
        data: &Utf8Path,
        installation: &InstallationId,
        uid: &ClusterUid,
    ) -> Result<Self, NameSiteError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if uid.as_str().is_empty() || !uid.as_str().bytes().all(plain) {
            return Err(NameSiteError {
                uid: uid.as_str().to_owned(),
                source: None,
            });
        }
        let folder = data.join("clusters").join(uid.as_str());
        Self::at(
            folder,
            format!("neap-{}", uid.short()),
            installation,
            uid.short(),
        )
    }

    /// Of the hub of this installation.
    pub(crate) fn of_hub(
        data: &Utf8Path,
        installation: &InstallationId,
    ) -> Result<Self, NameSiteError> {
        let name = format!("neap-{}-hub", short(installation));
        Self::at(data.join("hub"), name, installation, "hub")
    }

    fn at(
        folder: Utf8PathBuf,
        namespace: String,
        installation: &InstallationId,
        group: &str,
    ) -> Result<Self, NameSiteError> {
        let failed = |source| NameSiteError {
            uid: group.to_owned(),
            source: Some(source),
        };
        let installation_group =
            CgroupPath::new(format!("{ROOT_GROUP}/{}", short(installation))).map_err(failed)?;
        let group = installation_group.join(group).map_err(failed)?;
        Ok(Self {
            folder,
            namespace: NetworkNamespace::new(namespace),
            installation_group,
            group,
        })
    }

    /// Holds the record and all that belongs to it.
    pub(crate) fn folder(&self) -> &Utf8Path {
        &self.folder
    }

    /// Folders of the machines of this Cluster.
    pub(crate) fn machines(&self) -> Utf8PathBuf {
        self.folder.join("machines")
    }

    /// Everything of the control plane itself.
    pub(crate) fn control_plane(&self) -> Utf8PathBuf {
        self.folder.join("control-plane")
    }

    /// Keys and certificates.
    pub(crate) fn pki(&self) -> Utf8PathBuf {
        self.control_plane().join("pki")
    }

    /// Folder of the shim.
    pub(crate) fn shim(&self) -> Utf8PathBuf {
        self.control_plane().join("shim")
    }

    /// Configuration of hyperkube.
    pub(crate) fn config(&self) -> Utf8PathBuf {
        self.control_plane().join("config.json")
    }

    /// Output of hyperkube.
    pub(crate) fn log(&self) -> Utf8PathBuf {
        self.control_plane().join("log")
    }

    /// What the API server keeps of requests; it makes the folder's files.
    pub(crate) fn audit_log(&self) -> Utf8PathBuf {
        self.control_plane().join("audit/audit.log")
    }

    /// Which requests it keeps.
    pub(crate) fn audit_policy(&self) -> Utf8PathBuf {
        self.control_plane().join("audit.json")
    }

    /// The store.
    pub(crate) fn store(&self) -> Utf8PathBuf {
        self.control_plane().join("state.db")
    }

    /// The store's socket.
    pub(crate) fn store_socket(&self) -> Utf8PathBuf {
        self.control_plane().join("kine.sock")
    }

    /// Configuration of the scheduler.
    pub(crate) fn scheduler(&self) -> Utf8PathBuf {
        self.control_plane().join("scheduler.yaml")
    }

    /// How secrets are encrypted at rest.
    pub(crate) fn encryption(&self) -> Utf8PathBuf {
        self.control_plane().join("encryption.yaml")
    }

    /// A component's kubeconfig.
    pub(crate) fn kubeconfig(&self, component: &str) -> Utf8PathBuf {
        self.control_plane().join(format!("{component}.kubeconfig"))
    }

    /// Its network.
    pub(crate) fn namespace(&self) -> &NetworkNamespace {
        &self.namespace
    }

    /// The group of all that this installation runs.
    pub(crate) fn installation_group(&self) -> &CgroupPath {
        &self.installation_group
    }

    /// The group of all that the Cluster runs.
    pub(crate) fn cluster_group(&self) -> &CgroupPath {
        &self.group
    }

    /// The group of the control plane alone.
    pub(crate) fn control_plane_group(&self) -> Result<CgroupPath, ParseCgroupPathError> {
        self.group.join("control-plane")
    }
}

#[cfg(test)]
pub(crate) mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    const UID: &str = "0b5e3c2a-7d1f-4e88-9c53-1f2e3d4c5b6a";

    pub(crate) fn site() -> Site {
        Site::of_cluster(
            "/var/lib/neap".into(),
            &InstallationId::new("abcdefgh-1234"),
            &ClusterUid::new(UID),
        )
        .unwrap()
    }

    #[test]
    fn names_on_the_host_are_short_and_the_folder_is_the_whole_uid() {
        let site = site();
        assert_eq!(site.folder(), format!("/var/lib/neap/clusters/{UID}"));
        assert_eq!(site.namespace().name(), "neap-0b5e3c2a");
        assert_eq!(
            site.control_plane_group().unwrap().to_string(),
            "neap/abcdefgh/0b5e3c2a/control-plane"
        );
    }

    #[test]
    fn the_hub_of_an_installation_has_names_of_its_own() {
        let site = Site::of_hub("/d".into(), &InstallationId::new("abcdefgh-1234")).unwrap();
        assert_eq!(site.folder(), "/d/hub");
        assert_eq!(site.namespace().name(), "neap-abcdefgh-hub");
        assert_eq!(site.cluster_group().to_string(), "neap/abcdefgh/hub");
    }

    #[test]
    fn a_uid_that_leads_elsewhere_is_refused() {
        for uid in ["", "..", "a/b", "../hub", "a b", "ü"] {
            let site = Site::of_cluster(
                "/d".into(),
                &InstallationId::new("i"),
                &ClusterUid::new(uid),
            );
            assert!(site.is_err(), "{uid:?}");
        }
    }
}
