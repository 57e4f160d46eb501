//! From objects of a tenant to the facts that a decision reads. Nothing here
//! decides: a pod becomes [`PodFacts`], a workload [`WorkloadFacts`], a Node
//! [`NodeFacts`].

mod node;
pub mod shape;
mod workload;

pub(crate) use node::observe_node;
pub(crate) use workload::{
    ObservedWorkload, observe_daemon_set, observe_deployment, observe_job, observe_replica_set,
    observe_stateful_set,
};

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use neap_api::names::LABEL_BASELINE;
use neap_core::ids::{NodeName, ObjectKey, ObjectUid};
use neap_core::observation::PodFacts;
use neap_core::release::PodOnNode;

/// Annotation that the kubelet puts on the mirror of a static pod.
const ANNOTATION_MIRROR: &str = "kubernetes.io/config.mirror";

/// A pod as its watch tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObservedPod {
    /// Namespace and name.
    pub(crate) key: ObjectKey,
    /// Its UID, for events and preconditions.
    pub(crate) uid: ObjectUid,
    /// What a decision reads of it.
    pub(crate) facts: PodFacts,
}

impl ObservedPod {
    /// It waits for a node, and a node could help.
    pub(crate) fn waits(&self) -> bool {
        let PodFacts {
            node,
            finished,
            baseline,
            gated,
            ..
        } = &self.facts;
        node.is_none() && !finished && !baseline && !gated
    }
}

/// Reads a pod.
pub(crate) fn observe_pod(pod: &Pod) -> ObservedPod {
    let spec = pod.spec.as_ref();
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    let facts = PodFacts {
        owner: controller_of(&pod.metadata),
        node: spec
            .and_then(|spec| spec.node_name.as_deref())
            .filter(|name| !name.is_empty())
            .map(NodeName::new),
        finished: matches!(phase, Some("Succeeded" | "Failed")),
        baseline: is_baseline(pod),
        gated: spec
            .and_then(|spec| spec.scheduling_gates.as_ref())
            .is_some_and(|gates| !gates.is_empty()),
    };
    ObservedPod {
        key: key_of(&pod.metadata),
        uid: uid_of(&pod.metadata),
        facts,
    }
}

/// Reads a pod of a live list by `spec.nodeName`.
pub(crate) fn observe_pod_on_node(pod: &Pod) -> PodOnNode {
    let ObservedPod { key, uid, facts } = observe_pod(pod);
    PodOnNode {
        key,
        uid,
        finished: facts.finished,
        baseline: facts.baseline,
        terminating: pod.metadata.deletion_timestamp.is_some(),
    }
}

/// A kubelet has taken it up at some time.
pub(crate) fn has_started(pod: &Pod) -> bool {
    pod.status
        .as_ref()
        .is_some_and(|status| status.start_time.is_some())
}

/// DaemonSet and mirror pods, and those labelled so in kube-system. The label
/// counts for nothing elsewhere, or a tenant could hide its work behind it.
fn is_baseline(pod: &Pod) -> bool {
    let metadata = &pod.metadata;
    let of_daemon_set = metadata
        .owner_references
        .iter()
        .flatten()
        .any(|owner| owner.controller == Some(true) && owner.kind == "DaemonSet");
    let mirror = metadata
        .annotations
        .iter()
        .flatten()
        .any(|(name, _)| name == ANNOTATION_MIRROR);
    let labelled = metadata.namespace.as_deref() == Some("kube-system")
        && metadata
            .labels
            .iter()
            .flatten()
            .any(|(name, _)| name == LABEL_BASELINE);
    of_daemon_set || mirror || labelled
}

/// UID of the controlling owner.
fn controller_of(metadata: &ObjectMeta) -> Option<ObjectUid> {
    metadata
        .owner_references
        .iter()
        .flatten()
        .find(|owner| owner.controller == Some(true))
        .map(|owner| ObjectUid::new(owner.uid.clone()))
}

/// Namespace and name.
fn key_of(metadata: &ObjectMeta) -> ObjectKey {
    ObjectKey::new(
        metadata.namespace.clone().unwrap_or_default(),
        metadata.name.clone().unwrap_or_default(),
    )
}

/// The UID; every object that a server returns has one.
fn uid_of(metadata: &ObjectMeta) -> ObjectUid {
    ObjectUid::new(metadata.uid.clone().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use serde_json::{Value, json};

    fn pod(namespace: &str, metadata: Value, spec: Value, phase: &str) -> ObservedPod {
        let mut object = json!({
            "metadata": {"namespace": namespace, "name": "p", "uid": "u"},
            "spec": {"containers": []},
            "status": {"phase": phase},
        });
        merge(&mut object["metadata"], metadata);
        merge(&mut object["spec"], spec);
        observe_pod(&serde_json::from_value(object).unwrap())
    }

    fn merge(into: &mut Value, from: Value) {
        for (name, value) in from.as_object().unwrap() {
            into[name] = value.clone();
        }
    }

    fn owned_by(kind: &str) -> Value {
        json!({"ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "Other", "name": "o", "uid": "other"},
            {"apiVersion": "apps/v1", "kind": kind, "name": "o", "uid": "owner", "controller": true},
        ]})
    }

    #[test]
    fn pod_is_finished_when_succeeded_or_failed_and_not_before() {
        for (phase, finished) in [
            ("Pending", false),
            ("Running", false),
            ("Unknown", false),
            ("Succeeded", true),
            ("Failed", true),
        ] {
            assert_eq!(
                pod("default", json!({}), json!({}), phase).facts.finished,
                finished,
                "{phase}"
            );
        }
    }

    #[test]
    fn terminating_pod_is_not_finished() {
        let metadata = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
        assert!(
            !pod("default", metadata, json!({}), "Running")
                .facts
                .finished
        );
    }

    #[test]
    fn daemon_set_and_mirror_pods_are_baseline() {
        assert!(
            pod("default", owned_by("DaemonSet"), json!({}), "Running")
                .facts
                .baseline
        );
        let mirror = json!({"annotations": {"kubernetes.io/config.mirror": "hash"}});
        assert!(pod("default", mirror, json!({}), "Running").facts.baseline);
        assert!(
            !pod("default", owned_by("ReplicaSet"), json!({}), "Running")
                .facts
                .baseline
        );
        assert!(
            !pod("default", json!({}), json!({}), "Running")
                .facts
                .baseline
        );
    }

    #[test]
    fn baseline_label_counts_in_kube_system_alone() {
        let labelled = || json!({"labels": {"neap.dev/baseline": ""}});
        assert!(
            pod("kube-system", labelled(), json!({}), "Running")
                .facts
                .baseline
        );
        assert!(
            !pod("default", labelled(), json!({}), "Running")
                .facts
                .baseline
        );
        assert!(
            !pod("kube-system", json!({}), json!({}), "Running")
                .facts
                .baseline
        );
    }

    #[test]
    fn owner_is_the_controlling_one() {
        let observed = pod("default", owned_by("Job"), json!({}), "Pending");
        assert_eq!(observed.facts.owner, Some(ObjectUid::new("owner")));
        assert_eq!(
            pod("default", json!({}), json!({}), "Pending").facts.owner,
            None
        );
    }

    #[test]
    fn pod_with_scheduling_gates_is_gated_and_does_not_wait() {
        let gated = pod(
            "default",
            json!({}),
            json!({"schedulingGates": [{"name": "g"}]}),
            "Pending",
        );
        assert!(gated.facts.gated);
        assert!(!gated.waits());
    }

    #[test]
    fn pod_waits_until_it_has_a_node() {
        assert!(pod("default", json!({}), json!({}), "Pending").waits());
        let bound = pod(
            "default",
            json!({}),
            json!({"nodeName": "c-node1"}),
            "Pending",
        );
        assert_eq!(bound.facts.node, Some(NodeName::new("c-node1")));
        assert!(!bound.waits());
        assert!(!pod("default", json!({}), json!({}), "Failed").waits());
        assert!(!pod("default", owned_by("DaemonSet"), json!({}), "Pending").waits());
    }
}
