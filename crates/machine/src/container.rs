//! The provider whose machines are containers of this host.
//!
//! A machine is a folder with its record, a network namespace linked to the
//! bridge of its Cluster, control groups, and one process: the node agent
//! under a shim, which outlives neap. The record is the first thing made and
//! the last thing removed, so that whatever a crash leaves behind is found
//! and finished.

mod create;
mod delete;
mod disk;
mod files;
mod groups;
mod logs;
mod loop_device;
mod network;
mod record;
mod resize;
mod watch;

use crate::agent;
use crate::agent::control::{self, Command};
use crate::node_config::NodeSoftware;
pub use logs::{MachineLogs, find_machine_logs};
#[cfg(test)]
pub(crate) use record::tests::plan as example_plan;

use async_trait::async_trait;
use camino::Utf8PathBuf;
use files::MachineDir;
use neap_core::ids::{ClusterUid, InstallationId, MachineUid};
use neap_core::machine::Power;
use neap_operator::traits::{
    Cause, ListMachinesError, MachineError, MachinePlan, NodeProvider, ProvidedMachine,
};
use neap_process::{Exit, Shims, last_exit};
use record::MachineRecord;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tracing::warn;
use watch::Watched;

/// How long the agent may take to answer, its own start included.
const ANSWER: Duration = Duration::from_secs(5);
/// How often an agent that does not listen yet is asked again.
const ASK_AGAIN: Duration = Duration::from_millis(20);
/// Changes that wait to be taken; a watcher waits when there are more.
const CHANGES: usize = 256;

/// What the provider is made from.
#[derive(Clone, Debug)]
pub struct ContainerNodesConfig {
    /// Folder of all Clusters: `<data>/clusters`.
    pub data: Utf8PathBuf,
    /// Identity of this installation, written on all that is made.
    pub installation: InstallationId,
    /// What new nodes are made of, by the distro of their control plane.
    pub software: BTreeMap<String, NodeSoftware>,
    /// The neap binary, for the shim and the agent.
    pub program: Utf8PathBuf,
}

/// Machines as containers of this host.
#[derive(Debug)]
pub struct ContainerNodes {
    config: ContainerNodesConfig,
    shims: Shims,
    /// One operation at a time for each machine.
    slots: Mutex<BTreeMap<MachineUid, Slot>>,
    changed: mpsc::Sender<MachineUid>,
    changes: Mutex<Option<mpsc::Receiver<MachineUid>>>,
}

type Slot = Arc<tokio::sync::Mutex<Option<Watched>>>;

/// The machines of an earlier run could not be taken over.
#[derive(Debug, thiserror::Error)]
pub enum AdoptMachinesError {
    /// The folders could not be listed.
    #[error("failed to list the machines in {path}")]
    List {
        /// Where.
        path: Utf8PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Why a machine is in no state to do what was asked.
#[derive(Debug, thiserror::Error)]
enum ReachMachineError {
    #[error("there is no such machine on this host")]
    Absent,
    #[error("its process does not run")]
    Down,
}

impl ContainerNodes {
    /// A provider; nothing is touched before the first call.
    pub fn new(config: ContainerNodesConfig) -> Self {
        let (changed, changes) = mpsc::channel(CHANGES);
        Self {
            shims: Shims::new(config.program.clone()),
            config,
            slots: Mutex::default(),
            changed,
            changes: Mutex::new(Some(changes)),
        }
    }

    /// Finds the machines of an earlier run, watches those whose process is
    /// proven to be theirs, and returns all but those that cannot be
    /// understood. To be called once, at start.
    pub async fn adopt_all(&self) -> Result<Vec<ProvidedMachine>, AdoptMachinesError> {
        let mut found = Vec::new();
        let listed = files::list(&self.config.data).map_err(|source| AdoptMachinesError::List {
            path: self.config.data.clone(),
            source,
        })?;
        for (machine, dir) in listed {
            if dir.is_remainder() {
                // The end of a deletion or the beginning of a creation.
                let _ = std::fs::remove_dir(dir.path());
                continue;
            }
            match self.observed(&machine).await {
                Ok(machine) => found.extend(machine),
                // Its loop meets the same error; the others are not held up.
                Err(error) => {
                    warn!(%machine, error = &*error, "failed to take over a machine of an earlier run");
                }
            }
        }
        Ok(found)
    }

    fn slot(&self, machine: &MachineUid) -> Slot {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(slots.entry(machine.clone()).or_default())
    }

    fn forget(&self, machine: &MachineUid) {
        self.slots
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(machine);
    }

    fn find(&self, machine: &MachineUid) -> io::Result<Option<MachineDir>> {
        files::find(&self.config.data, machine)
    }

    /// The running process of the machine, taken over if it is not yet.
    fn running<'a>(
        &self,
        slot: &'a mut Option<Watched>,
        machine: &MachineUid,
        dir: &MachineDir,
    ) -> Result<Option<&'a Watched>, Cause> {
        if slot
            .as_ref()
            .is_some_and(|watched| !watched.process().is_running())
        {
            *slot = None;
        }
        if slot.is_none()
            && let Some(process) = self.shims.adopt(&dir.shim())?
        {
            *slot = Some(Watched::new(process, machine.clone(), self.changed.clone()));
        }
        Ok(slot.as_ref())
    }

    async fn observed(&self, machine: &MachineUid) -> Result<Option<ProvidedMachine>, Cause> {
        let slot = self.slot(machine);
        let mut slot = slot.lock().await;
        let Some(dir) = self.find(machine)? else {
            self.forget(machine);
            return Ok(None);
        };
        let Some(record) = MachineRecord::read(&dir.record())? else {
            return Ok(None);
        };
        let runs = self.running(&mut slot, machine, &dir)?.is_some();
        if !runs && !dir.started().exists() {
            // Parts of a creation that was cut short: another one finishes it.
            return Ok(None);
        }
        let (power, message) = if runs {
            (Power::Running, None)
        } else {
            (Power::Error, Some(describe_end(&dir)))
        };
        Ok(Some(ProvidedMachine {
            machine: machine.clone(),
            cluster: record.cluster,
            power,
            message,
        }))
    }

    async fn listed(&self, cluster: &ClusterUid) -> io::Result<Vec<ProvidedMachine>> {
        let mut found = Vec::new();
        for (machine, _) in files::list_of(&self.config.data, cluster)? {
            let unknown = |message| ProvidedMachine {
                machine: machine.clone(),
                cluster: cluster.clone(),
                power: Power::Unknown,
                message: Some(message),
            };
            found.push(match self.observed(&machine).await {
                Ok(Some(provided)) => provided,
                Ok(None) => unknown("it was never started".to_owned()),
                Err(error) => unknown(agent::chain(&*error)),
            });
        }
        Ok(found)
    }

    async fn told(&self, machine: &MachineUid, command: Command) -> Result<(), Cause> {
        let slot = self.slot(machine);
        let mut slot = slot.lock().await;
        let dir = self.find(machine)?;
        let running = match &dir {
            Some(dir) => self.running(&mut slot, machine, dir)?,
            None => None,
        };
        let (Some(dir), Some(watched)) = (&dir, running) else {
            // Where nothing runs no kubelet runs.
            return match (command, &dir) {
                (Command::StopKubelet, _) => Ok(()),
                (_, Some(_)) => Err(ReachMachineError::Down.into()),
                (_, None) => Err(ReachMachineError::Absent.into()),
            };
        };
        let asking = async {
            loop {
                match control::ask(&dir.run(), command, ANSWER).await {
                    Err(error) if error.is_absent() && watched.process().is_running() => {
                        tokio::time::sleep(ASK_AGAIN).await;
                    }
                    answered => break answered,
                }
            }
        };
        match tokio::time::timeout(ANSWER, asking).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) if command == Command::StopKubelet && !watched.process().is_running() => {
                Ok(())
            }
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(control::AskAgentError::Late(ANSWER).into()),
        }
    }
}

/// How the machine's process ended, for its record.
fn describe_end(dir: &MachineDir) -> String {
    match last_exit(&dir.shim()).map(|last| last.exit) {
        Some(Exit::Code(code)) => {
            format!("its agent ended with code {code}; see {}", dir.log("agent"))
        }
        Some(Exit::Signal(signal)) => format!("its agent was ended by signal {signal}"),
        None | Some(Exit::Unknown) => {
            "its agent ended unseen, as after a reboot of the host".to_owned()
        }
    }
}

fn fail<'a>(
    operation: &'static str,
    machine: &'a MachineUid,
) -> impl FnOnce(Cause) -> MachineError + 'a {
    move |source| MachineError {
        operation,
        machine: machine.clone(),
        source,
    }
}

#[async_trait]
impl NodeProvider for ContainerNodes {
    async fn create(&self, plan: &MachinePlan) -> Result<(), MachineError> {
        self.created(plan)
            .await
            .map_err(fail("create", &plan.machine))
    }

    fn shares_kernel(&self) -> bool {
        true
    }

    fn unbounded_disk(&self, cluster: &ClusterUid, machine: &MachineUid) -> Option<String> {
        if MachineDir::new(&self.config.data, cluster, machine)
            .disk()
            .exists()
        {
            return None;
        }
        let mut obstacles = self.config.software.values().filter_map(disk::obstacle);
        let unknown = || "it was made without a disk of its own".to_owned();
        Some(obstacles.next().unwrap_or_else(unknown))
    }

    async fn observe(&self, machine: &MachineUid) -> Result<Option<ProvidedMachine>, MachineError> {
        self.observed(machine)
            .await
            .map_err(fail("observe", machine))
    }

    async fn list(&self, cluster: &ClusterUid) -> Result<Vec<ProvidedMachine>, ListMachinesError> {
        self.listed(cluster)
            .await
            .map_err(|error| ListMachinesError {
                cluster: cluster.clone(),
                source: error.into(),
            })
    }

    async fn stop_kubelet(&self, machine: &MachineUid) -> Result<(), MachineError> {
        self.told(machine, Command::StopKubelet)
            .await
            .map_err(fail("stop the kubelet of", machine))
    }

    async fn start_kubelet(&self, machine: &MachineUid) -> Result<(), MachineError> {
        self.told(machine, Command::StartKubelet)
            .await
            .map_err(fail("start the kubelet of", machine))
    }

    async fn set_max_pods(&self, machine: &MachineUid, max_pods: u32) -> Result<(), MachineError> {
        self.resized(machine, max_pods)
            .await
            .map_err(fail("resize", machine))
    }

    async fn delete(&self, machine: &MachineUid) -> Result<(), MachineError> {
        self.deleted(machine).await.map_err(fail("delete", machine))
    }

    fn changes(&self) -> mpsc::Receiver<MachineUid> {
        let taken = self
            .changes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        // A second taker hears nothing, for ever.
        taken.unwrap_or_else(|| mpsc::channel(1).1)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use camino::Utf8Path;

    pub(super) fn nodes(data: &Utf8Path) -> ContainerNodes {
        ContainerNodes::new(ContainerNodesConfig {
            data: data.to_owned(),
            installation: InstallationId::new("11111111-aaaa"),
            software: BTreeMap::new(),
            program: "/bin/neap".into(),
        })
    }

    fn temporary() -> (tempfile::TempDir, Utf8PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
        (dir, path)
    }

    #[tokio::test]
    async fn a_machine_that_was_never_made_is_proven_absent() {
        let (_guard, data) = temporary();
        let nodes = nodes(&data);
        let machine = MachineUid::new("22222222-bbbb");
        assert_eq!(nodes.observe(&machine).await.unwrap(), None);
        nodes.delete(&machine).await.unwrap();
        nodes.stop_kubelet(&machine).await.unwrap();
        nodes.start_kubelet(&machine).await.unwrap_err();
        nodes.set_max_pods(&machine, 9).await.unwrap_err();
    }

    #[tokio::test]
    async fn a_machine_is_one_from_its_start_and_in_error_without_a_process() {
        let (_guard, data) = temporary();
        let nodes = nodes(&data);
        let machine = MachineUid::new("22222222-bbbb");
        let plan = record::tests::plan();
        let dir = MachineDir::new(&data, &plan.cluster, &machine);
        dir.make().unwrap();
        MachineRecord::new(&nodes.config.installation, &plan)
            .write(&dir.record())
            .unwrap();
        assert_eq!(nodes.observe(&machine).await.unwrap(), None);
        std::fs::write(dir.started(), b"").unwrap();
        let found = nodes.adopt_all().await.unwrap();
        assert_eq!(found.len(), 1);
        let found = found.first().unwrap();
        assert_eq!(
            (found.power, &found.machine, &found.cluster),
            (Power::Error, &machine, &plan.cluster)
        );
        let message = found.message.as_deref().unwrap();
        assert!(message.contains("ended unseen"), "{message}");
    }

    #[tokio::test]
    async fn a_machine_that_cannot_be_understood_holds_up_no_other() {
        let (_guard, data) = temporary();
        let nodes = nodes(&data);
        let plan = record::tests::plan();
        for name in ["11111111-damaged", "22222222-whole"] {
            let dir = MachineDir::new(&data, &plan.cluster, &MachineUid::new(name));
            dir.make().unwrap();
            MachineRecord::new(&nodes.config.installation, &plan)
                .write(&dir.record())
                .unwrap();
            std::fs::write(dir.started(), b"").unwrap();
        }
        let damaged = MachineUid::new("11111111-damaged");
        let dir = MachineDir::new(&data, &plan.cluster, &damaged);
        std::fs::write(dir.record(), "").unwrap();
        let found = nodes.adopt_all().await.unwrap();
        let names: Vec<&str> = found.iter().map(|found| found.machine.as_str()).collect();
        assert_eq!(names, ["22222222-whole"]);
        // What is not understood is no machine that is gone.
        nodes.observe(&damaged).await.unwrap_err();
        assert!(dir.path().exists());
    }

    #[tokio::test]
    async fn everything_that_lies_in_a_clusters_folder_is_listed_and_nothing_else() {
        let (_guard, data) = temporary();
        let nodes = nodes(&data);
        let cluster = record::tests::plan().cluster;
        assert_eq!(nodes.list(&cluster).await.unwrap(), []);
        let make = |cluster: &ClusterUid, name: &str| {
            let dir = MachineDir::new(&data, cluster, &MachineUid::new(name));
            dir.make().unwrap();
            dir
        };
        make(&cluster, "1-cut-short");
        std::fs::write(make(&cluster, "2-damaged").record(), "").unwrap();
        let whole = make(&cluster, "3-whole");
        MachineRecord::new(&nodes.config.installation, &record::tests::plan())
            .write(&whole.record())
            .unwrap();
        std::fs::write(whole.started(), b"").unwrap();
        make(&ClusterUid::new("other"), "4-of-another");
        let found = nodes.list(&cluster).await.unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|found| (found.machine.as_str(), found.power))
            .collect();
        let expected = [
            ("1-cut-short", Power::Unknown),
            ("2-damaged", Power::Unknown),
            ("3-whole", Power::Error),
        ];
        assert_eq!(found, expected);
    }

    #[tokio::test]
    async fn a_folder_without_a_record_is_no_machine_and_goes() {
        let (_guard, data) = temporary();
        let nodes = nodes(&data);
        let machine = MachineUid::new("22222222-bbbb");
        let dir = MachineDir::new(&data, &record::tests::plan().cluster, &machine);
        dir.make().unwrap();
        assert_eq!(nodes.observe(&machine).await.unwrap(), None);
        assert_eq!(nodes.adopt_all().await.unwrap(), []);
        assert!(!dir.path().exists());
    }
}
