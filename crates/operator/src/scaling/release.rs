//! Letting an idle machine go without losing a pod, and taking it back.
//!
//! The order is the rule: write Releasing, cordon, settle, list, stop the
//! kubelet, list again, write Draining. `neap-core` judges each list. A
//! machine without a Node begins at the stop of the kubelet.

use super::actor::{Actor, DriveMachineError, Milestone, Outcome, uid_of};
use super::provision::{NODE_PENDING, join_deadline};
use crate::calls::CallApiError;
use crate::observe::observe_pod_on_node;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use neap_api::Machine;
use neap_api::names::{ANNOTATION_CORDONED_BY, MANAGER_SCALING, reasons};
use neap_core::driver::NodeView;
use neap_core::machine::MachinePhase;
use neap_core::reason::Reason;
use neap_core::release::{AfterList, SETTLE, decide_after_list};
use neap_kube::write::{self, Expected};
use serde_json::{Value, json};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

impl Actor {
    /// Writes Releasing: from now on the machine does not count.
    pub(super) async fn begin_release(
        &self,
        machine: &Machine,
        why: &Reason,
    ) -> Result<Machine, CallApiError> {
        let deadline = self.context.clock.now().checked_add(SETTLE).ok();
        self.write_status(machine, |status| {
            status.phase = Some(MachinePhase::Releasing.into());
            status.deadline = deadline;
            status.message = Some(why.to_string());
            self.set_ready(status, false, reasons::LEAVING, "It is leaving.");
        })
        .await
    }

    /// Goes on with a release from its first step, up to the point of no
    /// return or back. `undo` is cancelled when it is to be taken back.
    pub(super) async fn release(
        &self,
        machine: &Machine,
        undo: &CancellationToken,
    ) -> Result<Outcome, DriveMachineError> {
        let uid = uid_of(machine)?;
        if let (NodeView::Ours { .. }, Some(node)) = self.observe_node(machine, &uid).await? {
            self.cordon(&node).await?;
            let settle = Duration::try_from(SETTLE).unwrap_or_default();
            tokio::select! {
                () = undo.cancelled() => return self.undo(machine, None).await,
                settled = self.calls.pause("let the cordon settle", settle) => settled?,
            }
            if let Some(back) = self.judge(machine).await? {
                return self.undo(machine, Some(back)).await;
            }
        }
        if undo.is_cancelled() {
            return self.undo(machine, None).await;
        }
        self.context.provider.stop_kubelet(&uid).await?;
        if let Some(back) = self.judge(machine).await? {
            return self.undo(machine, Some(back)).await;
        }
        if undo.is_cancelled() {
            return self.undo(machine, None).await;
        }
        let record = self
            .write_status(machine, |status| {
                status.phase = Some(MachinePhase::Draining.into());
                status.deadline = None;
            })
            .await?;
        Ok(Outcome::wrote(record))
    }

    /// Lists the Node's pods; the reason to take the machine back, if any.
    async fn judge(&self, machine: &Machine) -> Result<Option<Reason>, DriveMachineError> {
        let pods: Vec<_> = self
            .list_pods(machine)
            .await?
            .iter()
            .map(observe_pod_on_node)
            .collect();
        Ok(match decide_after_list(&pods) {
            AfterList::Proceed => None,
            AfterList::Undo { pod } => Some(Reason::PodArrived {
                machine: machine.machine_name(),
                pod,
            }),
        })
    }

    /// Takes a machine back: the kubelet first, then our own cordon, then the
    /// record.
    pub(super) async fn undo(
        &self,
        machine: &Machine,
        why: Option<Reason>,
    ) -> Result<Outcome, DriveMachineError> {
        let uid = uid_of(machine)?;
        let join_deadline = join_deadline(machine)?;
        self.context.provider.start_kubelet(&uid).await?;
        if let (NodeView::Ours { .. }, Some(node)) = self.observe_node(machine, &uid).await? {
            self.uncordon(&node).await?;
        }
        let record = self
            .write_status(machine, |status| {
                status.message = None;
                if status.joined.is_some() {
                    status.phase = Some(MachinePhase::Running.into());
                    status.deadline = None;
                    self.set_ready(status, true, reasons::NODE_READY, "It was taken back.");
                } else {
                    status.phase = Some(MachinePhase::Pending.into());
                    status.deadline = join_deadline;
                    self.set_ready(status, false, reasons::NODE_PENDING, NODE_PENDING);
                }
            })
            .await?;
        let outcome = Outcome::wrote(record);
        Ok(match why {
            Some(why) => outcome.with(Milestone::TakenBack(why)),
            None => outcome,
        })
    }

    /// Cordons a Node and marks the cordon as ours. One that its user cordoned
    /// stays as it is.
    async fn cordon(&self, node: &Node) -> Result<(), CallApiError> {
        if is_cordoned(node) {
            return Ok(());
        }
        let ours = json!(self.context.installation.as_str());
        self.patch_cordon("cordon the Node", node, json!(true), ours)
            .await
    }

    /// Lifts a cordon that is marked as ours, and no other.
    async fn uncordon(&self, node: &Node) -> Result<(), CallApiError> {
        if !is_cordoned_by(node, self.context.installation.as_str()) {
            return Ok(());
        }
        self.patch_cordon(
            "lift the cordon of the Node",
            node,
            Value::Null,
            Value::Null,
        )
        .await
    }

    async fn patch_cordon(
        &self,
        operation: &'static str,
        node: &Node,
        unschedulable: Value,
        mark: Value,
    ) -> Result<(), CallApiError> {
        let patch = json!({
            "metadata": {"annotations": {ANNOTATION_CORDONED_BY: mark}},
            "spec": {"unschedulable": unschedulable},
        });
        let (api, name) = (self.nodes(), node.name_any());
        // Its user may cordon it in this very moment.
        let expected = Expected {
            uid: node.metadata.uid.as_deref(),
            resource_version: node.metadata.resource_version.as_deref(),
        };
        let patched = write::merge(&api, &name, MANAGER_SCALING, expected, patch);
        self.calls.call(operation, patched).await?;
        Ok(())
    }
}

fn is_cordoned(node: &Node) -> bool {
    node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true)
}

fn is_cordoned_by(node: &Node, installation: &str) -> bool {
    node.annotations()
        .get(ANNOTATION_CORDONED_BY)
        .is_some_and(|by| by == installation)
}
