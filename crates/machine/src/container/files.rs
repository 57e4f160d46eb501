//! The folder of a machine.

use crate::agent::config::{AGENT_CONFIG, AGENT_CONFIG_VERSION, AgentConfig};
use crate::node_config::{self, HostCapacity, KUBELET_FILE, NodeSoftware};
use camino::{Utf8Path, Utf8PathBuf};
use neap_core::ids::{ClusterUid, MachineUid};
use neap_operator::traits::MachinePlan;
use neap_process::cgroup::CgroupPath;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};

/// Folders that a machine has from the start.
const FOLDERS: [&str; 8] = [
    "config",
    "empty",
    "log",
    "run",
    "root",
    "data/containerd",
    "data/kubelet",
    "data/log",
];

/// A file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("failed to write {path}")]
pub(crate) struct WriteFileError {
    /// The file or folder.
    pub(crate) path: Utf8PathBuf,
    /// Why.
    #[source]
    pub(crate) source: io::Error,
}

/// The folder of one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MachineDir(Utf8PathBuf);

impl MachineDir {
    /// Where a machine of this Cluster is.
    pub(crate) fn new(data: &Utf8Path, cluster: &ClusterUid, machine: &MachineUid) -> Self {
        Self(
            data.join(cluster.as_str())
                .join("machines")
                .join(machine.as_str()),
        )
    }

    /// The folder itself.
    pub(crate) fn path(&self) -> &Utf8Path {
        &self.0
    }

    /// What the machine was made from.
    pub(crate) fn record(&self) -> Utf8PathBuf {
        self.0.join("record.json")
    }

    /// Files of its shim.
    pub(crate) fn shim(&self) -> Utf8PathBuf {
        self.0.join("shim")
    }

    /// There from just before its process is started: what bears it is never
    /// started a second time.
    pub(crate) fn started(&self) -> Utf8PathBuf {
        self.0.join("started")
    }

    /// Images, logs and volumes: where its disk is mounted.
    pub(crate) fn data(&self) -> Utf8PathBuf {
        self.0.join("data")
    }

    /// The file that its disk is.
    pub(crate) fn disk(&self) -> Utf8PathBuf {
        self.0.join("disk")
    }

    /// Its control socket's folder.
    pub(crate) fn run(&self) -> Utf8PathBuf {
        self.0.join("run")
    }

    /// Configuration and keys.
    pub(crate) fn config(&self) -> Utf8PathBuf {
        self.0.join("config")
    }

    /// What the agent is told.
    pub(crate) fn agent_config(&self) -> Utf8PathBuf {
        self.config().join(AGENT_CONFIG)
    }

    /// What the kubelet is told.
    pub(crate) fn kubelet_config(&self) -> Utf8PathBuf {
        self.config().join(KUBELET_FILE)
    }

    /// What a program of the node says.
    pub(crate) fn log(&self, program: &str) -> Utf8PathBuf {
        self.0.join("log").join(format!("{program}.log"))
    }

    /// Whether nothing is in it: no machine, or no more.
    pub(crate) fn is_remainder(&self) -> bool {
        self.0
            .read_dir_utf8()
            .is_ok_and(|mut entries| entries.next().is_none())
    }

    /// Makes the folder and those above it, for root alone.
    pub(crate) fn make(&self) -> Result<(), WriteFileError> {
        make_private(&self.0)
    }

    /// Writes everything that the agent and the node's programs read.
    pub(crate) fn write(
        &self,
        plan: &MachinePlan,
        software: &NodeSoftware,
        program: &Utf8Path,
        cgroup: &CgroupPath,
        host: HostCapacity,
    ) -> Result<(), WriteFileError> {
        for folder in FOLDERS {
            make_private(&self.0.join(folder))?;
        }
        let config = self.config();
        for (name, secret) in node_config::secrets(plan) {
            write_private(&config.join(name), secret.as_bytes())?;
        }
        for (name, text) in node_config::files(plan, software, host) {
            write_private(&config.join(name), text.as_bytes())?;
        }
        let agent = AgentConfig {
            version: AGENT_CONFIG_VERSION,
            name: plan.name.to_string(),
            address: plan.address,
            labels: node_config::labels(plan),
            machine_dir: self.0.clone(),
            cgroup: cgroup.as_path().to_owned(),
            software: software.clone(),
            program: program.to_owned(),
        };
        let path = self.agent_config();
        let text = serde_json::to_vec_pretty(&agent).map_err(|error| WriteFileError {
            path: path.clone(),
            source: error.into(),
        })?;
        write_private(&path, &text)
    }

    /// Removes the folder; the record goes last. Absent is removed.
    pub(crate) fn remove(&self) -> io::Result<()> {
        let entries = match self.0.read_dir_utf8() {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        let record = self.record();
        for entry in entries {
            let entry = entry?;
            if entry.path() == record {
                continue;
            }
            if entry.file_type()?.is_dir() {
                fs::remove_dir_all(entry.path())?;
            } else {
                fs::remove_file(entry.path())?;
            }
        }
        match fs::remove_file(&record) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        fs::remove_dir(&self.0)
    }
}

/// All machines of a Cluster by their folders.
pub(crate) fn list_of(
    data: &Utf8Path,
    cluster: &ClusterUid,
) -> io::Result<Vec<(MachineUid, MachineDir)>> {
    let mut found = Vec::new();
    for machine in entries(&data.join(cluster.as_str()).join("machines"))? {
        if let Some(name) = machine.file_name() {
            found.push((MachineUid::new(name), MachineDir(machine.clone())));
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(found)
}

/// All machines by their folders.
pub(crate) fn list(data: &Utf8Path) -> io::Result<Vec<(MachineUid, MachineDir)>> {
    let mut found = Vec::new();
    for cluster in entries(data)? {
        if let Some(name) = cluster.file_name() {
            found.extend(list_of(data, &ClusterUid::new(name))?);
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(found)
}

/// The folder of this machine in whatever Cluster it is.
pub(crate) fn find(data: &Utf8Path, machine: &MachineUid) -> io::Result<Option<MachineDir>> {
    for cluster in entries(data)? {
        let path = cluster.join("machines").join(machine.as_str());
        if path.try_exists()? {
            return Ok(Some(MachineDir(path)));
        }
    }
    Ok(None)
}

/// Paths of what is in a folder; one that is not there has nothing in it.
fn entries(path: &Utf8Path) -> io::Result<Vec<Utf8PathBuf>> {
    let entries = match path.read_dir_utf8() {
        Ok(entries) => entries,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(Vec::new());
        }
        Err(error) => return Err(error),
    };
    entries
        .map(|entry| entry.map(|entry| entry.path().to_owned()))
        .collect()
}

fn make_private(path: &Utf8Path) -> Result<(), WriteFileError> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|source| WriteFileError {
            path: path.to_owned(),
            source,
        })
}

/// Writes a file for root alone, whole or not at all.
pub(crate) fn write_private(path: &Utf8Path, bytes: &[u8]) -> Result<(), WriteFileError> {
    let unfinished = Utf8PathBuf::from(format!("{path}.unfinished"));
    let write = || {
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&unfinished)?;
        file.write_all(bytes)?;
        fs::rename(&unfinished, path)
    };
    write().map_err(|source| WriteFileError {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
pub(super) mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::super::record::tests::plan;
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn temporary() -> (tempfile::TempDir, Utf8PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
        (dir, path)
    }

    pub(crate) fn written(data: &Utf8Path) -> MachineDir {
        let plan = plan();
        let dir = MachineDir::new(data, &plan.cluster, &plan.machine);
        dir.make().unwrap();
        let software = NodeSoftware::of_distro(Utf8Path::new("/distro"));
        let host = HostCapacity {
            cpu_milli: 2000,
            memory_bytes: 4 << 30,
        };
        dir.write(
            &plan,
            &software,
            Utf8Path::new("/bin/neap"),
            &CgroupPath::new("neap/a/b/c").unwrap(),
            host,
        )
        .unwrap();
        dir
    }

    #[test]
    fn only_root_reads_what_a_machine_is_configured_with() {
        let (_guard, data) = temporary();
        let dir = written(&data);
        let mode = |path: &Utf8Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(dir.path()), 0o700);
        for entry in dir.config().read_dir_utf8().unwrap() {
            let entry = entry.unwrap();
            assert_eq!(mode(entry.path()), 0o600, "{}", entry.path());
        }
        assert_eq!(
            fs::read_to_string(dir.config().join("kubelet.key")).unwrap(),
            "KUBELET SECRET"
        );
    }

    #[test]
    fn the_agent_reads_what_the_provider_writes() {
        let (_guard, data) = temporary();
        let dir = written(&data);
        let config = AgentConfig::read(&dir.agent_config()).unwrap();
        assert_eq!(config.name, "ci-node1");
        assert_eq!(config.machine_dir, dir.path());
        assert_eq!(
            config.labels,
            "neap.dev/cluster=ci,neap.dev/machine-uid=22222222-bbbb"
        );
    }

    #[test]
    fn a_machine_is_found_by_its_uid_and_gone_when_removed() {
        let (_guard, data) = temporary();
        let machine = plan().machine;
        assert_eq!(find(&data, &machine).unwrap(), None);
        let dir = written(&data);
        assert_eq!(find(&data, &machine).unwrap(), Some(dir.clone()));
        assert_eq!(list(&data).unwrap(), [(machine.clone(), dir.clone())]);
        dir.remove().unwrap();
        assert_eq!(find(&data, &machine).unwrap(), None);
        dir.remove().unwrap();
    }

    #[test]
    fn a_data_folder_that_is_not_there_has_no_machines() {
        assert_eq!(list(Utf8Path::new("/nowhere/at/all")).unwrap(), []);
    }
}
