//! One pass: observe, let `neap-core` decide, remember, carry out. A list that
//! failed is no pass, and what is remembered is written before anything goes
//! by it.

use super::actor::DriveMachineError;
use super::driver::{Errand, UndoAsked};
use super::{ScalingLoop, TELL_AFTER};
use crate::cluster_loop::list_machines;
use jiff::Timestamp;
use neap_api::names::MANAGER_SCALING;
use neap_api::{Cluster, Machine};
use neap_core::ids::MachineName;
use neap_core::observation::Observation;
use neap_core::reason::Reason;
use neap_core::scale::{Action, Decision, Policy, State, decide, told_to_waiting_pods};
use neap_kube::write;
use std::sync::Arc;

/// What a decision was made on.
struct Basis {
    observation: Observation,
    state: State,
    policy: Policy,
    now: Timestamp,
}

impl Basis {
    fn decide(&self) -> Decision {
        decide(&self.observation, &self.state, self.now, &self.policy)
    }
}

impl ScalingLoop {
    /// Makes one pass. An error leaves everything to the next one.
    pub(super) async fn pass(&mut self) -> Result<(), DriveMachineError> {
        let now = self.actor.context.clock.now();
        let cluster = Arc::clone(&self.view.borrow().cluster);
        self.next = None;
        // One that is paused waits with its deletion, and may take back what leaves.
        if cluster.metadata.deletion_timestamp.is_some() && !cluster.spec.paused {
            return Ok(());
        }
        if let Some(why) = self.unreadable() {
            let since = self.unreadable_since.unwrap_or(now);
            let told_at = since.saturating_add(TELL_AFTER).unwrap_or(now);
            if told_at > now {
                self.next = Some(told_at);
                return Ok(());
            }
            self.status.observed(Some(&why), now);
            return self.write_status().await;
        }
        self.status.observed(None, now);
        let policy = match cluster.policy() {
            Ok(policy) => policy,
            Err(error) => {
                // The API server refuses such a spec; one that is there all
                // the same is told, and nothing is done by it.
                self.status
                    .observed(Some(&neap_kube::describe(&error)), now);
                return self.write_status().await;
            }
        };
        let machines = self
            .records
            .iter()
            .map(|machine| machine.observe())
            .collect::<Result<_, _>>()?;
        let observation = self.tenant.observation(machines);
        let basis = Basis {
            observation,
            state: self.status.state(),
            policy,
            now,
        };
        let decision = basis.decide();
        self.next = decision.next;
        if !decision.actions.is_empty() {
            tracing::info!(cluster = %self.actor.id, demand = decision.demand, target = decision.target, counted = decision.counted, why = %decision.reason, "decided");
        }
        self.status
            .decided(&decision, &cluster, self.tenant.ready_nodes(), now);
        self.remember_machines(&decision).await?;
        self.write_status().await?;
        self.carry_out(&cluster, &basis, &decision).await
    }

    /// Writes since when each machine is idle.
    async fn remember_machines(&mut self, decision: &Decision) -> Result<(), DriveMachineError> {
        for (name, idle_since) in &decision.remember.machines {
            let Some(machine) = self.free(name) else {
                continue;
            };
            if machine.status.as_ref().and_then(|status| status.idle_since) != *idle_since {
                let written = self
                    .actor
                    .write_status(&machine, |status| status.idle_since = *idle_since)
                    .await?;
                self.records.wrote(written);
            }
        }
        Ok(())
    }

    /// Writes the own part of the Cluster's status when it differs.
    pub(super) async fn write_status(&mut self) -> Result<(), DriveMachineError> {
        if let Some(status) = self.status.due() {
            let (api, name) = (self.actor.clusters(), &self.actor.id.name);
            let written = write::apply_status(&api, name, MANAGER_SCALING, None, &status);
            self.actor
                .calls
                .call("write the status of the Cluster", written)
                .await?;
            self.status.wrote(status);
        }
        Ok(())
    }

    async fn carry_out(
        &mut self,
        cluster: &Cluster,
        basis: &Basis,
        decision: &Decision,
    ) -> Result<(), DriveMachineError> {
        if let Reason::ForeignRecord { node, machine } = &decision.reason
            && let Some(node) = self.tenant.node(node).cloned()
        {
            self.actor.remove_orphan(&node, machine).await?;
        }
        for action in &decision.actions {
            match action {
                Action::Provision { ordinals } => {
                    self.provision(cluster, basis, decision, ordinals).await?
                }
                Action::Remove { machine, reason } => {
                    self.begin_errand(machine, Errand::Remove(reason.clone()));
                }
                Action::Release { machine } => {
                    if self
                        .begin_release(cluster, machine, &decision.reason)
                        .await?
                    {
                        self.status.released(basis.now);
                    }
                }
                Action::Teardown { machines } => {
                    for machine in machines {
                        self.begin_release(cluster, machine, &decision.reason)
                            .await?;
                    }
                }
                Action::Undo { machine } => self.undo(cluster, machine, &decision.reason),
            }
        }
        if decision.actions.is_empty() {
            self.tell_waiting_pods(told_to_waiting_pods(decision, &basis.observation));
            self.tell_limit(cluster, &decision.reason);
        }
        self.write_status().await
    }

    /// Makes records, if the records read from the hub itself lead to the same
    /// ones.
    async fn provision(
        &mut self,
        cluster: &Cluster,
        basis: &Basis,
        decision: &Decision,
        ordinals: &[u32],
    ) -> Result<(), DriveMachineError> {
        if self.drivers.may_back_off() {
            // What that removal leads to is known at its end, which causes a
            // pass.
            return Ok(());
        }
        let live =
            list_machines(&self.actor.calls, &self.actor.context.hub, &self.actor.id).await?;
        let machines = live
            .iter()
            .map(Machine::observe)
            .collect::<Result<_, _>>()?;
        let observation = Observation {
            machines,
            ..basis.observation.clone()
        };
        let again = decide(&observation, &basis.state, basis.now, &basis.policy);
        if provisioned(&again) != Some(ordinals) {
            tracing::debug!(cluster = %self.actor.id, "the hub knows more than its watch has told; deciding again");
            self.pass_soon();
            return Ok(());
        }
        for ordinal in ordinals {
            self.actor.make_record(cluster, *ordinal).await?;
        }
        self.tell_cluster(cluster, "Provision", &decision.reason);
        self.tell_waiting_pods(told_to_waiting_pods(decision, &basis.observation));
        Ok(())
    }

    /// Writes Releasing and begins the release. Returns whether it has begun.
    async fn begin_release(
        &mut self,
        cluster: &Cluster,
        name: &MachineName,
        why: &Reason,
    ) -> Result<bool, DriveMachineError> {
        let Some(machine) = self.free(name) else {
            return Ok(false);
        };
        let written = self.actor.begin_release(&machine, why).await?;
        self.records.wrote(written);
        self.tell_cluster(cluster, "Release", why);
        Ok(true)
    }

    /// Takes a machine back: by its task, or by one of its own.
    fn undo(&mut self, cluster: &Cluster, name: &MachineName, why: &Reason) {
        let Some(uid) = self
            .records
            .get(name)
            .and_then(|machine| machine.machine_uid())
        else {
            return;
        };
        let begun = match self.drivers.undo(&uid) {
            UndoAsked::Now => true,
            UndoAsked::Before => false,
            UndoAsked::NoTask => self.begin_errand(name, Errand::Undo),
        };
        if begun {
            self.tell_cluster(cluster, "Undo", why);
        }
    }

    /// Begins an errand of a machine that has no task and no wait before it;
    /// when that wait is over, another pass is due.
    fn begin_errand(&mut self, name: &MachineName, errand: Errand) -> bool {
        let Some(machine) = self.free(name) else {
            return false;
        };
        let Some(uid) = machine.machine_uid() else {
            return false;
        };
        if let Some(at) = self.drivers.retry_at(&uid, self.actor.context.clock.now()) {
            self.next = Some(self.next.map_or(at, |next| next.min(at)));
            return false;
        }
        self.begin(uid, machine, errand);
        true
    }

    /// The record of a machine that has no task. The end of a task causes a
    /// pass, so that nothing is missed.
    fn free(&self, name: &MachineName) -> Option<Arc<Machine>> {
        let machine = self.records.get(name)?;
        let uid = machine.machine_uid()?;
        (!self.drivers.is_busy(&uid)).then(|| Arc::clone(machine))
    }
}

/// The ordinals that a decision provisions, if any.
fn provisioned(decision: &Decision) -> Option<&[u32]> {
    decision.actions.iter().find_map(|action| match action {
        Action::Provision { ordinals } => Some(ordinals.as_slice()),
        _ => None,
    })
}
