//! Where the logs of machines are, found by the records in their folders.

use super::files::MachineDir;
use super::record::MachineRecord;
use camino::{Utf8Path, Utf8PathBuf};
use neap_core::ids::{ClusterUid, MachineUid};
use std::io;

/// The folder of one machine's logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineLogs {
    dir: MachineDir,
}

impl MachineLogs {
    /// What a program of the node says: `agent`, `containerd`, `kubelet`,
    /// `kube-proxy` or `import`.
    #[must_use]
    pub fn program(&self, name: &str) -> Utf8PathBuf {
        self.dir.log(name)
    }

    /// What its shim says: nothing, as long as all is well.
    #[must_use]
    pub fn shim(&self) -> Utf8PathBuf {
        self.dir.shim().join("shim.log")
    }
}

/// The logs of the machine of this name, if the Cluster has one. `clusters` is
/// the folder of all Clusters.
///
/// # Errors
///
/// The folder of the Cluster's machines cannot be read. A machine whose record
/// makes no sense is passed over.
pub fn find_machine_logs(
    clusters: &Utf8Path,
    cluster: &ClusterUid,
    name: &str,
) -> io::Result<Option<MachineLogs>> {
    let folder = clusters.join(cluster.as_str()).join("machines");
    let entries = match folder.read_dir_utf8() {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let machine = MachineUid::new(entry?.file_name());
        let dir = MachineDir::new(clusters, cluster, &machine);
        if let Ok(Some(record)) = MachineRecord::read(&dir.record())
            && record.name.as_str() == name
        {
            return Ok(Some(MachineLogs { dir }));
        }
    }
    Ok(None)
}
