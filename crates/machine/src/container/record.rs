//! The copy of the Machine's plan beside its data, without secrets.

use super::files::{WriteFileError, write_private};
use camino::{Utf8Path, Utf8PathBuf};
use neap_core::ids::{ClusterUid, InstallationId, MachineName, MachineUid};
use neap_net::{Ipv4Range, NetworkNamespace, NodeLink, ParseRangeError};
use neap_operator::traits::MachinePlan;
use neap_process::cgroup::{CgroupPath, ParseCgroupPathError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Version of the stored form of [`MachineRecord`].
const RECORD_VERSION: u32 = 1;

/// All that a machine was made from but its keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MachineRecord {
    version: u32,
    pub(crate) installation: InstallationId,
    pub(crate) cluster: ClusterUid,
    pub(crate) cluster_name: String,
    pub(crate) machine: MachineUid,
    pub(crate) name: MachineName,
    pub(crate) address: Ipv4Addr,
    pub(crate) prefix: u8,
    pub(crate) gateway: Ipv4Addr,
    pub(crate) pod_range: String,
    pub(crate) cpu_milli: u64,
    pub(crate) memory_bytes: u64,
    /// None of a machine that was made before machines had disks.
    #[serde(default)]
    pub(crate) disk_bytes: Option<u64>,
    pub(crate) max_pods: u32,
    pub(crate) provider_id: String,
    pub(crate) labels: BTreeMap<String, String>,
}

/// A record could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadRecordError {
    /// The file is not readable.
    #[error("failed to read {path}")]
    Read {
        /// The file.
        path: Utf8PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It is not what neap wrote.
    #[error("the record {path} makes no sense")]
    Parse {
        /// The file.
        path: Utf8PathBuf,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// A later neap wrote it.
    #[error("the record {path} has version {found}, this program knows {RECORD_VERSION}")]
    Version {
        /// The file.
        path: Utf8PathBuf,
        /// The version in it.
        found: u32,
    },
}

impl MachineRecord {
    /// The record of a plan.
    pub(crate) fn new(installation: &InstallationId, plan: &MachinePlan) -> Self {
        Self {
            version: RECORD_VERSION,
            installation: installation.clone(),
            cluster: plan.cluster.clone(),
            cluster_name: plan.cluster_name.clone(),
            machine: plan.machine.clone(),
            name: plan.name.clone(),
            address: plan.address,
            prefix: plan.prefix,
            gateway: plan.gateway,
            pod_range: plan.pod_range.clone(),
            cpu_milli: plan.cpu_milli,
            memory_bytes: plan.memory_bytes,
            disk_bytes: Some(plan.disk_bytes),
            max_pods: plan.max_pods,
            provider_id: plan.provider_id.clone(),
            labels: plan.labels.clone(),
        }
    }

    /// Reads it; `None` when there is none.
    pub(crate) fn read(path: &Utf8Path) -> Result<Option<Self>, ReadRecordError> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => {
                return Err(ReadRecordError::Read {
                    path: path.to_owned(),
                    source,
                });
            }
        };
        let record: Self =
            serde_json::from_slice(&bytes).map_err(|source| ReadRecordError::Parse {
                path: path.to_owned(),
                source,
            })?;
        if record.version != RECORD_VERSION {
            return Err(ReadRecordError::Version {
                path: path.to_owned(),
                found: record.version,
            });
        }
        Ok(Some(record))
    }

    /// Writes it so that it is there whole or not at all.
    pub(crate) fn write(&self, path: &Utf8Path) -> Result<(), WriteFileError> {
        let text = serde_json::to_vec_pretty(self).map_err(|error| WriteFileError {
            path: path.to_owned(),
            source: error.into(),
        })?;
        write_private(path, &text)
    }

    /// Its control group; `system` and `pods` are below it.
    pub(crate) fn cgroup(&self) -> Result<CgroupPath, ParseCgroupPathError> {
        let installation = self.installation.as_str();
        let installation = installation.get(..8).unwrap_or(installation);
        CgroupPath::new(format!(
            "neap/{installation}/{}/{}",
            self.cluster.short(),
            self.machine.short()
        ))
    }

    /// Its network namespace and the link to its Cluster's.
    pub(crate) fn link(&self) -> Result<NodeLink, ParseRangeError> {
        Ok(NodeLink {
            cluster: NetworkNamespace::new(format!("neap-{}", self.cluster.short())),
            node: NetworkNamespace::new(format!("neap-{}", self.machine.short())),
            link_name: format!("v{}", self.machine.short()),
            address: self.address,
            prefix: self.prefix,
            gateway: self.gateway,
            pod_range: self.pod_range.parse::<Ipv4Range>()?,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use neap_core::fence::Fence;
    use neap_operator::traits::NodeCredentials;

    pub(crate) fn plan() -> MachinePlan {
        MachinePlan {
            machine: MachineUid::new("22222222-bbbb"),
            name: MachineName::new("ci-node1"),
            cluster: ClusterUid::new("33333333-cccc"),
            cluster_name: "team/ci".to_owned(),
            address: Ipv4Addr::new(10, 250, 0, 11),
            prefix: 24,
            gateway: Ipv4Addr::new(10, 250, 0, 1),
            pod_range: "10.251.1.0/24".to_owned(),
            cluster_range: "10.251.0.0/16".to_owned(),
            dns: Ipv4Addr::new(10, 96, 0, 10),
            cpu_milli: 1000,
            memory_bytes: 1 << 30,
            disk_bytes: 10 << 30,
            max_pods: 8,
            fence: Fence::Closed,
            provider_id: "neap://ci/ci-node1".to_owned(),
            labels: BTreeMap::from([
                ("neap.dev/cluster".to_owned(), "ci".to_owned()),
                (
                    "neap.dev/machine-uid".to_owned(),
                    "22222222-bbbb".to_owned(),
                ),
            ]),
            credentials: NodeCredentials {
                distro: "abc123".to_owned(),
                server: "https://10.250.0.1:6443".to_owned(),
                server_ca: "SERVER CA".to_owned(),
                client_ca: "CLIENT CA".to_owned(),
                client_certificate: "KUBELET CERTIFICATE".to_owned(),
                client_key: "KUBELET SECRET".to_owned(),
                proxy_certificate: "PROXY CERTIFICATE".to_owned(),
                proxy_key: "PROXY SECRET".to_owned(),
                serving_certificate: "SERVING CERTIFICATE".to_owned(),
                serving_key: "SERVING SECRET".to_owned(),
            },
        }
    }

    fn record() -> MachineRecord {
        MachineRecord::new(&InstallationId::new("11111111-aaaa"), &plan())
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(dir.path().join("record.json")).unwrap();
        assert_eq!(MachineRecord::read(&path).unwrap(), None);
        record().write(&path).unwrap();
        assert_eq!(MachineRecord::read(&path).unwrap(), Some(record()));
    }

    #[test]
    fn a_record_that_an_older_neap_wrote_is_read() {
        let path = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join(
            "../../tests/data-folders/format-1/clusters/1956bd83-8828-4ae8-82f9-d0f43e369f5e/machines/fcea5344-e2b8-499d-9553-6328928c3c2b/record.json",
        );
        let record = MachineRecord::read(&path).unwrap().unwrap();
        assert_eq!(record.name.as_str(), "ci-node1");
        assert_eq!(record.max_pods, 8);
    }

    #[test]
    fn a_record_holds_no_secret() {
        let text = serde_json::to_string(&record()).unwrap();
        assert!(!text.contains("SECRET"), "{text}");
    }

    #[test]
    fn a_record_of_another_version_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(dir.path().join("record.json")).unwrap();
        MachineRecord {
            version: 9,
            ..record()
        }
        .write(&path)
        .unwrap();
        assert!(matches!(
            MachineRecord::read(&path),
            Err(ReadRecordError::Version { found: 9, .. })
        ));
    }

    #[test]
    fn names_on_the_host_come_from_uids_and_fit() {
        let link = record().link().unwrap();
        assert_eq!(link.cluster.name(), "neap-33333333");
        assert_eq!(link.node.name(), "neap-22222222");
        assert_eq!(link.link_name, "v22222222");
        assert!(link.link_name.len() <= 15);
        assert_eq!(
            record().cgroup().unwrap().to_string(),
            "neap/11111111/33333333/22222222"
        );
    }
}
