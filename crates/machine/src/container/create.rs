//! Making a machine.

use super::files::{self, MachineDir, write_private};
use super::record::MachineRecord;
use super::watch::Watched;
use super::{ContainerNodes, disk, groups, network};
use crate::node_config::{self, NodeSoftware};
use neap_core::ids::MachineUid;
use neap_core::logs::NODE_PROGRAM;
use neap_operator::traits::{Cause, MachinePlan};
use neap_process::{Namespace, ProcessSpec};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use tracing::warn;

/// How far an earlier call came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// Nothing, or parts of a machine that was never started.
    Unstarted,
    /// Its process runs.
    Running,
    /// Its process ran and ended.
    Ended,
}

/// What is left to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Make everything; what is there already is kept.
    Make,
    /// Nothing. A machine that ended is never started a second time: the
    /// record that it was made for is to be removed, and another one made.
    Leave,
}

/// Another machine has its place: one whose record somebody removed.
#[derive(Debug, thiserror::Error)]
#[error(
    "machine {machine}, which has no record, still has address {address}: it is kept until the cluster is deleted"
)]
struct PlaceTakenError {
    machine: MachineUid,
    address: Ipv4Addr,
}

/// The control plane runs a distro that is not here.
#[derive(Debug, thiserror::Error)]
#[error("distro {0}, which its control plane runs, is not on this machine: bring it back")]
struct MissingDistroError(String);

fn decide(found: Found) -> Step {
    match found {
        Found::Unstarted => Step::Make,
        Found::Running | Found::Ended => Step::Leave,
    }
}

impl ContainerNodes {
    /// Makes and starts the machine unless that was done before.
    pub(super) async fn created(&self, plan: &MachinePlan) -> Result<(), Cause> {
        let slot = self.slot(&plan.machine);
        let mut slot = slot.lock().await;
        let dir = MachineDir::new(&self.config.data, &plan.cluster, &plan.machine);
        let found = if self.running(&mut slot, &plan.machine, &dir)?.is_some() {
            Found::Running
        } else if dir.started().exists() {
            Found::Ended
        } else {
            Found::Unstarted
        };
        if decide(found) == Step::Leave {
            return Ok(());
        }
        let distro = &plan.credentials.distro;
        let software = self
            .config
            .software
            .get(distro)
            .ok_or_else(|| MissingDistroError(distro.clone()))?;
        self.refuse_twin(plan)?;
        let record = MachineRecord::new(&self.config.installation, plan);
        dir.make()?;
        record.write(&dir.record())?;
        match disk::obstacle(software) {
            None => self.ensure_disk(&dir, plan.disk_bytes, software).await?,
            Some(why) => warn!(machine = %plan.name, why, "the disk of a machine is not bounded"),
        }
        let cgroup = record.cgroup()?;
        dir.write(
            plan,
            software,
            &self.config.program,
            &cgroup,
            node_config::observe_host()?,
        )?;
        let link = record.link()?;
        network::ensure(&link).await?;
        let system = groups::ensure(&record, &cgroup)?;

        let program = self.config.program.as_str();
        let agent = dir.agent_config();
        let mut spec = ProcessSpec::new(
            [program, "node-agent", agent.as_str()],
            "/",
            dir.log("agent"),
        );
        spec.log_limit = NODE_PROGRAM;
        spec.network_namespace = Some(link.node.path());
        // The agent makes the cgroup namespace itself: its root is the
        // machine's group, and the agent is to be in one below.
        spec.namespaces = BTreeSet::from([
            Namespace::Mount,
            Namespace::Pid,
            Namespace::Uts,
            Namespace::Ipc,
        ]);
        spec.cgroup = Some(system);
        write_private(&dir.started(), b"")?;
        let process = match self.shims.start(&dir.shim(), &spec).await {
            Ok(process) => process,
            Err(error) => {
                // Nothing runs, so that the next call may try again.
                std::fs::remove_file(dir.started())?;
                return Err(error.into());
            }
        };
        *slot = Some(Watched::new(
            process,
            plan.machine.clone(),
            self.changed.clone(),
        ));
        Ok(())
    }
}

impl ContainerNodes {
    async fn ensure_disk(
        &self,
        dir: &MachineDir,
        bytes: u64,
        software: &NodeSoftware,
    ) -> Result<(), Cause> {
        let (dir, software) = (dir.clone(), software.clone());
        Ok(tokio::task::spawn_blocking(move || disk::ensure(&dir, bytes, &software)).await??)
    }

    /// Two machines of one address in one network would both be of no use.
    fn refuse_twin(&self, plan: &MachinePlan) -> Result<(), Cause> {
        for (machine, dir) in files::list_of(&self.config.data, &plan.cluster)? {
            if machine == plan.machine {
                continue;
            }
            // What cannot be understood is told by whoever asks for it.
            if let Ok(Some(other)) = MachineRecord::read(&dir.record())
                && other.address == plan.address
            {
                let address = plan.address;
                return Err(PlaceTakenError { machine, address }.into());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::super::example_plan;
    use super::super::tests::nodes;
    use super::*;
    use camino::Utf8Path;

    #[test]
    fn a_repeated_creation_meets_what_is_there() {
        assert_eq!(decide(Found::Unstarted), Step::Make);
        assert_eq!(decide(Found::Running), Step::Leave);
    }

    #[test]
    fn a_machine_that_ended_is_not_started_again() {
        assert_eq!(decide(Found::Ended), Step::Leave);
    }

    #[test]
    fn a_machine_does_not_get_the_place_of_one_whose_record_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let data = Utf8Path::from_path(folder.path()).unwrap();
        let nodes = nodes(data);
        let lost = example_plan();
        nodes.refuse_twin(&lost).unwrap();
        let dir = MachineDir::new(data, &lost.cluster, &lost.machine);
        dir.make().unwrap();
        MachineRecord::new(&nodes.config.installation, &lost)
            .write(&dir.record())
            .unwrap();
        nodes.refuse_twin(&lost).unwrap();
        let mut plan = example_plan();
        plan.machine = MachineUid::new("44444444-dddd");
        let error = nodes.refuse_twin(&plan).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("machine 22222222-bbbb, which has no record")
        );
        plan.address = Ipv4Addr::new(10, 250, 0, 12);
        nodes.refuse_twin(&plan).unwrap();
    }
}
