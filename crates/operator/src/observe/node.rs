//! Nodes: which machine they say they are, and whether they are Ready.

use super::uid_of;
use k8s_openapi::api::core::v1::Node;
use neap_api::names::{ANNOTATION_CORDONED_BY, LABEL_MACHINE_UID};
use neap_core::ids::{InstallationId, MachineUid, NodeName};
use neap_core::observation::NodeFacts;

/// Reads a Node.
pub(crate) fn observe_node(node: &Node, installation: &InstallationId) -> NodeFacts {
    NodeFacts {
        name: NodeName::new(node.metadata.name.clone().unwrap_or_default()),
        uid: uid_of(&node.metadata),
        machine: machine_of(node),
        ready: is_ready(node),
        cordoned: node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true),
        cordoned_by_us: node
            .metadata
            .annotations
            .iter()
            .flatten()
            .any(|(name, value)| name == ANNOTATION_CORDONED_BY && value == installation.as_str()),
    }
}

/// The Node says by our label that it is this machine.
pub(crate) fn is_of_machine(node: &Node, machine: &MachineUid) -> bool {
    machine_of(node).as_ref() == Some(machine)
}

/// Condition Ready is True.
pub(crate) fn is_ready(node: &Node) -> bool {
    node.status
        .as_ref()
        .and_then(|status| status.conditions.as_ref())
        .into_iter()
        .flatten()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn machine_of(node: &Node) -> Option<MachineUid> {
    node.metadata
        .labels
        .as_ref()?
        .get(LABEL_MACHINE_UID)
        .map(|uid| MachineUid::new(uid.clone()))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use serde_json::json;

    fn node(ready: &str, cordoned_by: Option<&str>) -> NodeFacts {
        let annotations = cordoned_by
            .map(|by| json!({"neap.dev/cordoned-by": by}))
            .unwrap_or(json!({}));
        let object = json!({
            "metadata": {
                "name": "c-node1", "uid": "n1",
                "labels": {"neap.dev/machine-uid": "m1"}, "annotations": annotations,
            },
            "spec": {"unschedulable": cordoned_by.is_some()},
            "status": {"conditions": [
                {"type": "MemoryPressure", "status": "True"}, {"type": "Ready", "status": ready}]},
        });
        observe_node(
            &serde_json::from_value(object).unwrap(),
            &InstallationId::new("me"),
        )
    }

    #[test]
    fn node_is_ready_by_its_ready_condition_alone() {
        assert!(node("True", None).ready);
        assert!(!node("False", None).ready);
        assert!(!node("Unknown", None).ready);
    }

    #[test]
    fn cordon_is_ours_only_with_our_own_mark() {
        assert!(node("True", Some("me")).cordoned_by_us);
        let other = node("True", Some("other"));
        assert!(other.cordoned);
        assert!(!other.cordoned_by_us);
        assert!(!node("True", None).cordoned);
    }

    #[test]
    fn node_says_by_label_which_machine_it_is() {
        assert_eq!(node("True", None).machine, Some(MachineUid::new("m1")));
        let bare = Node::default();
        assert_eq!(
            observe_node(&bare, &InstallationId::new("me")).machine,
            None
        );
        assert!(!is_of_machine(&bare, &MachineUid::new("m1")));
    }
}
