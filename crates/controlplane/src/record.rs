//! The copy of a Cluster's record beside its data: by it neap knows, without
//! any API, whose a folder is and how its control plane is started again.

use crate::files::{WriteFileError, write_private};
use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use neap_core::audit::AuditLevel;
use neap_core::ids::{ClusterUid, InstallationId};
use neap_operator::traits::ControlPlanePlan;
use serde::{Deserialize, Serialize};

/// Name of the file.
pub(crate) const FILE: &str = "record.json";
const VERSION: u32 = 1;

/// What a control plane is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "role",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum Role {
    /// The management API.
    Hub,
    /// A Cluster.
    Tenant {
        /// Namespace of its record.
        account: String,
        /// Name of its record.
        name: String,
        /// Whether privileged pods are allowed.
        allow_privileged: bool,
        /// How much its audit log keeps.
        #[serde(default)]
        audit: AuditLevel,
    },
}

/// The copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    version: u32,
    /// UID of the Cluster record; of the hub, the installation.
    pub uid: ClusterUid,
    /// The installation that made the folder.
    pub installation: InstallationId,
    /// What it is for.
    #[serde(flatten)]
    pub role: Role,
    /// The distro that it runs.
    pub distro: String,
    /// When the first of its component certificates ends.
    pub certificates_until: Timestamp,
}

/// The copy cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadRecordError {
    /// The file system.
    #[error("failed to read {path}")]
    Read {
        /// The file.
        path: Utf8PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It is not what neap writes.
    #[error("{path} is no record of a cluster")]
    Parse {
        /// The file.
        path: Utf8PathBuf,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// A later neap wrote it.
    #[error("{path} has version {version}, and this neap knows {VERSION}: use the newer neap")]
    Newer {
        /// The file.
        path: Utf8PathBuf,
        /// Its version.
        version: u32,
    },
}

impl Record {
    pub(crate) fn new(
        uid: ClusterUid,
        installation: InstallationId,
        role: Role,
        distro: String,
        certificates_until: Timestamp,
    ) -> Self {
        Self {
            version: VERSION,
            uid,
            installation,
            role,
            distro,
            certificates_until,
        }
    }

    pub(crate) fn read(folder: &Utf8Path) -> Result<Option<Self>, ReadRecordError> {
        let path = folder.join(FILE);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(ReadRecordError::Read { path, source }),
        };
        match serde_json::from_slice::<Self>(&bytes) {
            Ok(record) if record.version > VERSION => Err(ReadRecordError::Newer {
                path,
                version: record.version,
            }),
            Ok(record) => Ok(Some(record)),
            Err(source) => Err(ReadRecordError::Parse { path, source }),
        }
    }

    pub(crate) fn write(&self, folder: &Utf8Path) -> Result<(), WriteFileError> {
        let path = folder.join(FILE);
        let json = serde_json::to_vec_pretty(self).map_err(|error| WriteFileError {
            path: path.clone(),
            source: error.into(),
        })?;
        write_private(&path, &json)
    }
}

impl From<&ControlPlanePlan> for Role {
    fn from(plan: &ControlPlanePlan) -> Self {
        Self::Tenant {
            account: plan.account.clone(),
            name: plan.name.clone(),
            allow_privileged: plan.allow_privileged,
            audit: plan.audit,
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn record(role: Role) -> Record {
        let until = Timestamp::UNIX_EPOCH;
        Record::new(
            ClusterUid::new("u"),
            InstallationId::new("i"),
            role,
            "d".into(),
            until,
        )
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        assert_eq!(Record::read(folder).unwrap(), None);
        let tenant = Role::Tenant {
            account: "team".into(),
            name: "ci".into(),
            allow_privileged: true,
            audit: AuditLevel::Metadata,
        };
        for role in [Role::Hub, tenant] {
            let record = record(role);
            record.write(folder).unwrap();
            assert_eq!(Record::read(folder).unwrap(), Some(record));
        }
    }

    #[test]
    fn records_that_an_older_neap_wrote_are_read() {
        let data =
            Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data-folders/format-1");
        let hub = Record::read(&data.join("hub")).unwrap().unwrap();
        assert_eq!(hub.role, Role::Hub);
        let clusters = data.join("clusters").read_dir_utf8().unwrap();
        let mut names = Vec::new();
        for cluster in clusters {
            let record = Record::read(cluster.unwrap().path()).unwrap().unwrap();
            assert_eq!(record.installation.as_str(), hub.uid.as_str());
            if let Role::Tenant { name, .. } = record.role {
                names.push(name);
            }
        }
        assert_eq!(names, ["ci"]);
    }

    #[test]
    fn the_record_of_a_newer_neap_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        let mut record = record(Role::Hub);
        record.version = VERSION + 1;
        record.write(folder).unwrap();
        let error = Record::read(folder).unwrap_err();
        assert!(error.to_string().ends_with("use the newer neap"), "{error}");
    }
}
