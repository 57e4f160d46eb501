//! Giving a machine that works room for more pods: the machine first, the
//! record last. What the record says is true at any time, and a resize that
//! was cut short is begun anew.

use super::actor::{Actor, DriveMachineError, Outcome, uid_of};
use crate::traits::MachineError;
use jiff::Timestamp;
use kube::ResourceExt;
use neap_api::Machine;
use neap_api::cluster::Failures;
use neap_api::names::MANAGER_SCALING;
use neap_core::reason::Reason;
use neap_core::supervision;
use neap_kube::write::{self, Expected};
use serde_json::json;

/// The machine is not given more room before this time.
pub(super) fn retry_at(machine: &Machine) -> Option<Timestamp> {
    machine.status.as_ref()?.resizing.as_ref()?.retry_at
}

impl Actor {
    /// Gives the machine room for so many pods beside those of DaemonSets.
    pub(super) async fn resize(
        &self,
        machine: &Machine,
        pods_per_node: u32,
        daemon_sets: u32,
    ) -> Result<Outcome, DriveMachineError> {
        let max_pods = pods_per_node.saturating_add(daemon_sets);
        let resized = self
            .context
            .provider
            .set_max_pods(&uid_of(machine)?, max_pods)
            .await;
        if let Err(error) = resized {
            return self.record_small(machine, &error).await;
        }
        let machine = self
            .write_status(machine, |status| status.resizing = None)
            .await?;
        let (api, name) = (self.machines(), machine.name_any());
        let expected = Expected {
            uid: machine.metadata.uid.as_deref(),
            resource_version: machine.metadata.resource_version.as_deref(),
        };
        let patch = json!({"spec": {"podsPerNode": pods_per_node}});
        let written = write::merge(&api, &name, MANAGER_SCALING, expected, patch);
        let record = self
            .calls
            .call("write the room of the Machine", written)
            .await?;
        let reason = Reason::RoomGrown {
            machine: record.machine_name(),
            pods_per_node,
        };
        self.tell(&record, "Resize", &reason).await;
        Ok(Outcome::wrote(record))
    }

    /// Remembers that the machine stays as small as it is for now, so that its
    /// pods do not wait for it, and when it is tried again. Everything else
    /// that it needs goes on meanwhile: this is no failed step.
    async fn record_small(
        &self,
        machine: &Machine,
        error: &MachineError,
    ) -> Result<Outcome, DriveMachineError> {
        let how = neap_kube::describe(error);
        tracing::warn!(cluster = %self.id, machine = %machine.name_any(), error = how, "no room for more pods");
        let now = self.context.clock.now();
        let record = self
            .write_status(machine, |status| {
                let before = status.resizing.as_ref().map_or(0, |before| before.failures);
                let failures = before.saturating_add(1);
                status.resizing = Some(Failures {
                    failures,
                    retry_at: Some(supervision::retry_at(failures, now)),
                    message: Some(how),
                });
            })
            .await?;
        Ok(Outcome::wrote(record))
    }
}
