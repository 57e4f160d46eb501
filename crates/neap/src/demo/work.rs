//! The work of the demo: three pods that sleep for a while.

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt as _;
use neap_api::Machine;
use neap_api::names::LABEL_MACHINE_UID;
use serde_json::json;

/// Where the pods are.
pub(super) const NAMESPACE: &str = "default";
/// How many.
pub(super) const PODS: usize = 3;
/// How long each works.
const WORK_SECONDS: u32 = 5;
/// The image that every node has.
const IMAGE: &str = "localhost/neap-busybox:1";

/// Pod number `n` from 1: works, and is done.
pub(super) fn pod(n: usize) -> Result<Pod, serde_json::Error> {
    serde_json::from_value(json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": format!("work-{n}"), "namespace": NAMESPACE},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "containers": [{
                "name": "work",
                "image": IMAGE,
                "imagePullPolicy": "Never",
                "command": ["sleep", WORK_SECONDS.to_string()],
            }],
        },
    }))
}

/// The Node says that it is this Machine.
pub(super) fn owns_node(machine: &Machine, node: &Node) -> bool {
    machine.name_any() == node.name_any()
        && machine
            .uid()
            .is_some_and(|uid| node.labels().get(LABEL_MACHINE_UID) == Some(&uid))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_pod_ends_by_itself_and_needs_no_registry() {
        let pod = pod(2).unwrap();
        assert_eq!(pod.name_any(), "work-2");
        let spec = pod.spec.unwrap();
        assert_eq!(spec.restart_policy.as_deref(), Some("Never"));
        assert_eq!(
            spec.containers
                .first()
                .unwrap()
                .image_pull_policy
                .as_deref(),
            Some("Never")
        );
    }

    #[test]
    fn a_node_of_another_machine_of_that_name_is_not_its_own() {
        let machine: Machine = serde_json::from_value(json!({
            "apiVersion": "neap.dev/v1alpha1", "kind": "Machine",
            "metadata": {"name": "demo-node1", "uid": "new"},
            "spec": {"cluster": "demo", "clusterUid": "u", "ordinal": 1, "podsPerNode": 1},
        }))
        .unwrap();
        let node = |uid: &str| -> Node {
            serde_json::from_value(
                json!({"metadata": {"name": "demo-node1", "labels": {LABEL_MACHINE_UID: uid}}}),
            )
            .unwrap()
        };
        assert!(owns_node(&machine, &node("new")));
        assert!(!owns_node(&machine, &node("old")));
    }
}
