//! Where the logs of control planes are, found by the records beside the data:
//! without any API, because a log is wanted when that is what is broken.

use crate::record::{Record, Role};
use crate::site::{NameSiteError, Site};
use camino::{Utf8Path, Utf8PathBuf};
use neap_core::ids::ClusterUid;
use std::io;

/// The folder of the Clusters cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FindLogsError {
    /// The folder itself.
    #[error("failed to read {path}")]
    Read {
        /// The folder.
        path: Utf8PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A folder's name is that of no Cluster.
    #[error(transparent)]
    Name(#[from] NameSiteError),
}

/// The logs of one Cluster's control plane.
#[derive(Clone, Debug)]
pub struct ClusterLogs {
    /// Name of the Cluster.
    pub name: String,
    /// UID of its record.
    pub uid: ClusterUid,
    site: Site,
}

impl ClusterLogs {
    /// What all of its parts say.
    #[must_use]
    pub fn control_plane(&self) -> Utf8PathBuf {
        self.site.log()
    }

    /// What its API server keeps of requests, if it was told to.
    #[must_use]
    pub fn audit(&self) -> Utf8PathBuf {
        self.site.audit_log()
    }

    /// What its shim says: nothing, as long as all is well.
    #[must_use]
    pub fn shim(&self) -> Utf8PathBuf {
        self.site.shim().join("shim.log")
    }
}

/// The logs of the Clusters of an account, by name. Of two with one name, the
/// one whose control plane was started last is first.
///
/// # Errors
///
/// The data folder cannot be read. A Cluster whose record makes no sense is
/// left out.
pub fn logs_of_account(data: &Utf8Path, account: &str) -> Result<Vec<ClusterLogs>, FindLogsError> {
    let folder = data.join("clusters");
    let failed = |source| FindLogsError::Read {
        path: folder.clone(),
        source,
    };
    let entries = match folder.read_dir_utf8() {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let Ok(Some(record)) = Record::read(entry.path()) else {
            continue;
        };
        let Role::Tenant {
            account: owner,
            name,
            ..
        } = record.role
        else {
            continue;
        };
        if owner != account {
            continue;
        }
        let uid = ClusterUid::new(entry.file_name());
        let site = Site::of_cluster(data, &record.installation, &uid)?;
        let started = site.config().metadata().and_then(|facts| facts.modified());
        found.push((name.clone(), started.ok(), ClusterLogs { name, uid, site }));
    }
    found.sort_by(|(name, started, _), (other, before, _)| {
        name.cmp(other).then_with(|| before.cmp(started))
    });
    Ok(found.into_iter().map(|(_, _, logs)| logs).collect())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use jiff::Timestamp;
    use neap_core::ids::InstallationId;

    fn write(data: &Utf8Path, uid: &str, account: &str, name: &str) {
        let folder = data.join("clusters").join(uid);
        std::fs::create_dir_all(&folder).unwrap();
        let role = Role::Tenant {
            account: account.into(),
            name: name.into(),
            allow_privileged: false,
            audit: neap_core::audit::AuditLevel::Off,
        };
        let (uid, installation) = (ClusterUid::new(uid), InstallationId::new("i"));
        Record::new(uid, installation, role, "d".into(), Timestamp::UNIX_EPOCH)
            .write(&folder)
            .unwrap();
    }

    #[test]
    fn logs_are_found_by_account_and_a_damaged_record_hides_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let data = Utf8Path::from_path(folder.path()).unwrap();
        assert!(logs_of_account(data, "team").unwrap().is_empty());
        write(data, "u1", "team", "web");
        write(data, "u2", "team", "ci");
        write(data, "u3", "other", "ci");
        std::fs::create_dir(data.join("clusters/u4")).unwrap();
        std::fs::write(data.join("clusters/u4/record.json"), "{").unwrap();
        let found = logs_of_account(data, "team").unwrap();
        let names: Vec<(&str, &str)> = found
            .iter()
            .map(|logs| (logs.name.as_str(), logs.uid.as_str()))
            .collect();
        assert_eq!(names, [("ci", "u2"), ("web", "u1")]);
        assert_eq!(
            found[0].control_plane(),
            data.join("clusters/u2/control-plane/log")
        );
    }
}
