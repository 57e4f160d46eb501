//! Ending a control plane, and the proof that nothing of it is left.

use super::HostedControlPlanes;
use super::start::LoadSiteError;
use crate::files::{WriteFileError, remove};
use crate::record;
use crate::site::Site;
use camino::{Utf8Path, Utf8PathBuf};
use neap_core::ids::ClusterUid;
use neap_net::RemoveNamespaceError;
use neap_operator::traits::Cause;
use neap_process::cgroup::{Cgroup, KillCgroupError, RemoveCgroupError};
use neap_process::{AdoptProcessError, StopProcessError};
use std::io;
use std::time::Duration;
use tracing::{info, warn};

/// How long processes that were killed may take to be gone.
const DEADLINE: Duration = Duration::from_secs(10);

/// A control plane could not be removed, or something of it is left.
#[derive(Debug, thiserror::Error)]
pub enum DeleteSiteError {
    /// Its folder is not ours.
    #[error(transparent)]
    Load(#[from] LoadSiteError),
    /// Its machines come first.
    #[error("{folder} still holds machines, which are to be deleted first")]
    Machines {
        /// Their folder.
        folder: Utf8PathBuf,
    },
    /// The folder of its machines cannot be looked into.
    #[error("failed to read {folder}")]
    ReadMachines {
        /// Their folder.
        folder: Utf8PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is not known whether it runs.
    #[error("failed to find out whether it runs")]
    Adopt(#[from] AdoptProcessError),
    /// It does not stop.
    #[error("failed to stop its process")]
    Stop(#[from] StopProcessError),
    /// Something that it started goes on.
    #[error("failed to end its processes")]
    Kill(#[from] KillCgroupError),
    /// Its groups.
    #[error("failed to remove its control groups")]
    Groups(#[from] RemoveCgroupError),
    /// Its namespace.
    #[error(transparent)]
    Namespace(#[from] RemoveNamespaceError),
    /// Its files.
    #[error("failed to remove its files")]
    Files(#[from] WriteFileError),
    /// A proof failed.
    #[error("{what} is still there after it was removed")]
    Left {
        /// What is left.
        what: String,
    },
}

impl HostedControlPlanes {
    pub(super) async fn delete_site(&self, uid: &ClusterUid) -> Result<(), Cause> {
        let entry = self.entry(uid)?;
        let mut state = entry.state.lock().await;
        let site = &entry.site;
        // Proves that it is ours, where there is one.
        self.read_record(site)?;
        refuse_machines(site)?;
        self.shared.directory.remove(uid);

        let process = self
            .find_running(&entry, &mut state)
            .map_err(DeleteSiteError::from)?;
        state.running = None;
        state.client = None;
        if let Some(process) = process {
            // Its data goes too: nothing is to be finished in order.
            process
                .stop(Duration::ZERO)
                .await
                .map_err(DeleteSiteError::from)?;
        }
        end(site).await?;
        tokio::task::spawn_blocking({
            let site = site.clone();
            move || remove_files(&site)
        })
        .await??;
        if *uid == self.hub_uid() {
            leave_the_host(site);
        }
        state.record = None;
        state.pki = None;
        drop(state);
        self.forget(&entry);
        info!(cluster = %uid, "removed a control plane");
        Ok(())
    }
}

/// The machines of a Cluster use its network and lie in its folder.
fn refuse_machines(site: &Site) -> Result<(), DeleteSiteError> {
    match has_machines(site)? {
        true => Err(DeleteSiteError::Machines {
            folder: site.machines(),
        }),
        false => Ok(()),
    }
}

/// Whether the folder of its machines holds any.
pub(super) fn has_machines(site: &Site) -> Result<bool, DeleteSiteError> {
    let folder = site.machines();
    match folder
        .read_dir_utf8()
        .map(|mut entries| entries.next().is_some())
    {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        looked => looked.map_err(|source| DeleteSiteError::ReadMachines { folder, source }),
    }
}

/// Everything that lives: processes, groups, network.
pub(super) async fn end(site: &Site) -> Result<(), DeleteSiteError> {
    let group = Cgroup::at(site.cluster_group());
    group.kill_all().await?;
    group.remove(DEADLINE).await?;
    if group.exists() {
        return Err(DeleteSiteError::Left {
            what: format!("control group {}", site.cluster_group()),
        });
    }
    site.namespace().remove()?;
    if site.namespace().exists() {
        return Err(DeleteSiteError::Left {
            what: format!("network namespace {}", site.namespace().name()),
        });
    }
    Ok(())
}

/// The hub is the last of an installation to go: takes the groups and the
/// folder of namespaces along that no other uses.
fn leave_the_host(site: &Site) {
    let installation = Cgroup::at(site.installation_group()).folders();
    for folder in &installation {
        let all = folder.parent().map(Utf8Path::to_owned);
        // Those that hold something are kept by the kernel.
        if std::fs::remove_dir(folder).is_ok()
            && let Some(all) = all
        {
            let _kept = std::fs::remove_dir(all);
        }
    }
    if let Err(error) = neap_net::tidy() {
        warn!(%error, "failed to remove the empty folder of network namespaces");
    }
}

/// The record last, so that a removal that was interrupted is one of ours
/// when it goes on.
fn remove_files(site: &Site) -> Result<(), DeleteSiteError> {
    remove(&site.control_plane())?;
    remove(&site.machines())?;
    remove(&site.folder().join(record::FILE))?;
    remove(site.folder())?;
    if site.folder().exists() {
        return Err(DeleteSiteError::Left {
            what: site.folder().to_string(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use neap_core::ids::InstallationId;

    fn site(folder: &tempfile::TempDir) -> Site {
        let data = Utf8Path::from_path(folder.path()).unwrap();
        Site::of_cluster(data, &InstallationId::new("i"), &ClusterUid::new("u")).unwrap()
    }

    #[test]
    fn a_cluster_with_machines_is_not_deleted_under_them() {
        let folder = tempfile::tempdir().unwrap();
        let site = site(&folder);
        refuse_machines(&site).unwrap();
        std::fs::create_dir_all(site.machines()).unwrap();
        refuse_machines(&site).unwrap();
        std::fs::create_dir(site.machines().join("m")).unwrap();
        let error = refuse_machines(&site).unwrap_err();
        assert!(matches!(error, DeleteSiteError::Machines { .. }), "{error}");
    }

    #[test]
    fn files_are_gone_and_removing_them_again_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let site = site(&folder);
        std::fs::create_dir_all(site.pki()).unwrap();
        std::fs::create_dir_all(site.machines()).unwrap();
        std::fs::write(site.folder().join(record::FILE), "{}").unwrap();
        remove_files(&site).unwrap();
        assert!(!site.folder().exists());
        remove_files(&site).unwrap();
    }
}
