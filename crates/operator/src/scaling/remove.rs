//! Taking machines apart: what is past the point of no return goes, its pods
//! told first, its record last.

use super::actor::{Actor, DriveMachineError, Milestone, Outcome, uid_of};
use crate::calls::CallApiError;
use crate::cluster_loop::{delete_record, list_machines};
use crate::observe::{has_started, observe_pod_on_node};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{Resource, ResourceExt};
use neap_api::Machine;
use neap_api::names::{MANAGER_SCALING, reasons};
use neap_core::driver::{NodeView, ProviderView, removal_holds};
use neap_core::ids::MachineUid;
use neap_core::machine::MachinePhase;
use neap_core::observation::NodeFacts;
use neap_core::reason::Reason;
use neap_core::release::{PodFate, PodOnNode, decide_fates};
use neap_kube::write::{self, Expected};
use serde_json::json;

impl Actor {
    /// Begins to remove a machine that does not work, if by a live read that
    /// is still so.
    pub(super) async fn remove(
        &self,
        machine: &Machine,
        reason: &Reason,
    ) -> Result<Outcome, DriveMachineError> {
        let uid = uid_of(machine)?;
        let (provider, _) = self.observe_provider(&uid).await?;
        let (node, _) = self.observe_node(machine, &uid).await?;
        if !removal_holds(reason, provider, node) {
            return Ok(Outcome::observed(provider));
        }
        self.begin_draining(machine, reason).await
    }

    /// Writes Draining: the point of no return.
    pub(super) async fn begin_draining(
        &self,
        machine: &Machine,
        reason: &Reason,
    ) -> Result<Outcome, DriveMachineError> {
        let record = self
            .write_status(machine, |status| {
                status.phase = Some(MachinePhase::Draining.into());
                status.deadline = None;
                status.message = Some(reason.to_string());
                self.set_ready(status, false, reasons::LEAVING, "It is leaving.");
            })
            .await?;
        self.tell(&record, "Remove", reason).await;
        Ok(Outcome::wrote(record).with(Milestone::Removing(reason.clone())))
    }

    /// Takes a Draining machine apart.
    pub(super) async fn drain(&self, machine: &Machine) -> Result<Outcome, DriveMachineError> {
        let uid = uid_of(machine)?;
        let (provider, _) = self.observe_provider(&uid).await?;
        if provider != ProviderView::Absent && !provider.is_down() {
            // A kubelet that lives would bring back what is taken away. One
            // that cannot be stopped goes with the machine, below.
            if let Err(error) = self.context.provider.stop_kubelet(&uid).await {
                tracing::warn!(machine = %machine.name_any(), error = neap_kube::describe(&error), "kubelet not stopped");
            }
        }
        self.clear_node(machine, &uid).await?;
        self.context.provider.delete(&uid).await?;
        // What came while the machine went: a pod bound late, a Node that
        // registered again.
        self.clear_node(machine, &uid).await?;
        delete_record(&self.calls, &self.context.hub, machine).await?;
        Ok(Outcome {
            provider: Some(ProviderView::Absent),
            ..Outcome::default()
        }
        .with(Milestone::Gone))
    }

    /// Ends the pods of the Node, then the Node, then what was bound to it in
    /// between. A Node of that name that is another's is left with its pods.
    async fn clear_node(
        &self,
        machine: &Machine,
        uid: &MachineUid,
    ) -> Result<(), DriveMachineError> {
        let (view, node) = self.observe_node(machine, uid).await?;
        if view == NodeView::Foreign {
            return Ok(());
        }
        self.end_pods(machine).await?;
        if let Some(node) = node {
            self.delete_node(&node).await?;
            self.end_pods(machine).await?;
        }
        Ok(())
    }

    async fn delete_node(&self, node: &Node) -> Result<(), CallApiError> {
        let (name, uid) = (node.name_any(), node.uid().unwrap_or_default());
        let api = self.nodes();
        self.calls
            .call("delete the Node", write::delete_with_uid(&api, &name, &uid))
            .await?;
        Ok(())
    }

    async fn end_pods(&self, machine: &Machine) -> Result<(), DriveMachineError> {
        let listed = self.list_pods(machine).await?;
        let pods: Vec<PodOnNode> = listed.iter().map(observe_pod_on_node).collect();
        for (pod, fate) in decide_fates(&pods) {
            let Some(object) = listed
                .iter()
                .find(|object| object.uid().as_deref() == Some(pod.uid.as_str()))
            else {
                continue;
            };
            match fate {
                PodFate::Leave => {}
                PodFate::Delete => self.delete_pod(&pod).await?,
                PodFate::Fail => self.fail_pod(machine, object, &pod).await?,
            }
        }
        Ok(())
    }

    /// Marks a pod Failed, so that its owner learns of it, deletes it and
    /// reports it.
    async fn fail_pod(
        &self,
        machine: &Machine,
        object: &Pod,
        pod: &PodOnNode,
    ) -> Result<(), DriveMachineError> {
        let machine = machine.machine_name();
        let reason = if has_started(object) {
            Reason::PodLost {
                machine,
                pod: pod.key.clone(),
            }
        } else {
            Reason::PodLateBound {
                machine,
                pod: pod.key.clone(),
            }
        };
        let patch = json!({
            "status": {
                "phase": "Failed",
                "reason": reasons::MACHINE_GONE,
                "message": reason.to_string(),
                "conditions": [{
                    "type": "DisruptionTarget",
                    "status": "True",
                    "reason": reasons::MACHINE_GONE,
                    "message": reason.to_string(),
                    "lastTransitionTime": self.context.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
                }],
            },
        });
        let (api, name, uid) = (
            self.pods(&pod.key.namespace),
            &pod.key.name,
            pod.uid.as_str(),
        );
        let marked = write::merge_status(&api, name, MANAGER_SCALING, Expected::uid(uid), patch);
        match self.calls.call("mark a pod Failed", marked).await {
            // It is gone, or another by now.
            Err(error) if !error.is_not_found() && !error.is_conflict() => return Err(error.into()),
            _ => {}
        }
        self.delete_pod(pod).await?;
        self.tell_tenant(
            object.object_ref(&()),
            reason.cluster_event(),
            "Remove",
            &reason,
        )
        .await;
        Ok(())
    }

    async fn delete_pod(&self, pod: &PodOnNode) -> Result<(), CallApiError> {
        let api = self.pods(&pod.key.namespace);
        let deleted = write::delete_now_with_uid(&api, &pod.key.name, pod.uid.as_str());
        self.calls.call("delete a pod", deleted).await?;
        Ok(())
    }

    /// A Node that says it is a machine of ours for which there is no record:
    /// it goes only when record and machine are both proven absent.
    pub(super) async fn remove_orphan(
        &self,
        node: &NodeFacts,
        machine: &MachineUid,
    ) -> Result<(), DriveMachineError> {
        let records = list_machines(&self.calls, &self.context.hub, &self.id).await?;
        let recorded = records
            .iter()
            .any(|record| record.machine_uid().as_ref() == Some(machine));
        let (provider, _) = self.observe_provider(machine).await?;
        if recorded || provider != ProviderView::Absent {
            return Ok(());
        }
        let api = self.nodes();
        let deleted = write::delete_with_uid(&api, node.name.as_str(), node.uid.as_str());
        self.calls
            .call("delete a Node without a record", deleted)
            .await?;
        Ok(())
    }
}
