//! Room for more pods on a node that lives.

use super::files::{MachineDir, write_private};
use super::record::MachineRecord;
use super::{ContainerNodes, ReachMachineError};
use crate::agent::control::Command;
use crate::node_config::with_max_pods;
use camino::Utf8PathBuf;
use neap_core::ids::MachineUid;
use neap_operator::traits::Cause;

/// The number of pods could not be changed.
#[derive(Debug, thiserror::Error)]
enum ResizeMachineError {
    #[error("failed to read {path}")]
    Read {
        path: Utf8PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{path} is no configuration of a kubelet")]
    Parse {
        path: Utf8PathBuf,
        #[source]
        source: serde_json::Error,
    },
}

impl ContainerNodes {
    /// Writes the larger number and has the agent start the kubelet anew if it
    /// runs with another one: so a call that was cut short is finished by the
    /// next.
    pub(super) async fn resized(&self, machine: &MachineUid, max_pods: u32) -> Result<(), Cause> {
        {
            let slot = self.slot(machine);
            let _slot = slot.lock().await;
            let dir = self.find(machine)?.ok_or(ReachMachineError::Absent)?;
            write_larger(&dir, max_pods)?;
        }
        self.told(machine, Command::ReloadKubelet).await
    }
}

/// The configuration first: as long as the record has the old number, the new
/// one may have to be written again.
fn write_larger(dir: &MachineDir, max_pods: u32) -> Result<(), Cause> {
    let mut record = MachineRecord::read(&dir.record())?.ok_or(ReachMachineError::Absent)?;
    if max_pods <= record.max_pods {
        return Ok(());
    }
    let path = dir.kubelet_config();
    let before = std::fs::read(&path).map_err(|source| ResizeMachineError::Read {
        path: path.clone(),
        source,
    })?;
    let after = with_max_pods(&before, max_pods).map_err(|source| ResizeMachineError::Parse {
        path: path.clone(),
        source,
    })?;
    write_private(&path, &after)?;
    record.max_pods = max_pods;
    record.write(&dir.record())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::super::files::tests::written;
    use super::super::record::tests::plan;
    use super::*;
    use camino::Utf8Path;
    use neap_core::ids::InstallationId;
    use serde_json::Value;

    /// Numbers of pods in the configuration and in the record.
    fn numbers(dir: &MachineDir) -> (u64, u32) {
        let config = std::fs::read(dir.kubelet_config()).unwrap();
        let config: Value = serde_json::from_slice(&config).unwrap();
        let record = MachineRecord::read(&dir.record()).unwrap().unwrap();
        (config["maxPods"].as_u64().unwrap(), record.max_pods)
    }

    #[test]
    fn a_larger_number_is_written_and_a_smaller_one_is_not() {
        let data = tempfile::tempdir().unwrap();
        let dir = written(Utf8Path::from_path(data.path()).unwrap());
        write_larger(&dir, 16).unwrap_err();
        MachineRecord::new(&InstallationId::new("11111111-aaaa"), &plan())
            .write(&dir.record())
            .unwrap();
        assert_eq!(numbers(&dir), (8, 8));
        for (asked, had) in [(16, 16), (9, 16), (16, 16), (17, 17)] {
            write_larger(&dir, asked).unwrap();
            assert_eq!(numbers(&dir), (u64::from(had), had), "{asked}");
        }
    }
}
