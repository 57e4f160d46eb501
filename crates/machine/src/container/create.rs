//! Making a machine.

use super::files::{MachineDir, write_private};
use super::record::MachineRecord;
use super::watch::Watched;
use super::{ContainerNodes, groups, network};
use crate::node_config;
use neap_operator::traits::{Cause, MachinePlan};
use neap_process::{Namespace, ProcessSpec};
use std::collections::BTreeSet;

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
        let record = MachineRecord::new(&self.config.installation, plan);
        dir.make()?;
        record.write(&dir.record())?;
        let cgroup = record.cgroup()?;
        dir.write(
            plan,
            &self.config.software,
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
            dir.agent_log(),
        );
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_creation_meets_what_is_there() {
        assert_eq!(decide(Found::Unstarted), Step::Make);
        assert_eq!(decide(Found::Running), Step::Leave);
    }

    #[test]
    fn a_machine_that_ended_is_not_started_again() {
        assert_eq!(decide(Found::Ended), Step::Leave);
    }
}
