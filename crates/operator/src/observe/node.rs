//! Nodes: which machine they say they are, and whether they are Ready.

use super::uid_of;
use k8s_openapi::api::core::v1::Node;
use neap_api::names::{LABEL_INSTALLATION, LABEL_MACHINE_UID};
use neap_core::ids::{InstallationId, MachineUid, NodeName};
use neap_core::observation::NodeFacts;

/// Reads a Node.
pub(crate) fn observe_node(node: &Node, installation: &InstallationId) -> NodeFacts {
    NodeFacts {
        name: NodeName::new(node.metadata.name.clone().unwrap_or_default()),
        uid: uid_of(&node.metadata),
        machine: machine_of(node, installation),
        ready: is_ready(node),
    }
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

/// Which machine of this installation the Node says it is. What another made
/// is nobody's business of ours.
fn machine_of(node: &Node, installation: &InstallationId) -> Option<MachineUid> {
    let labels = node.metadata.labels.as_ref()?;
    let ours = labels
        .get(LABEL_INSTALLATION)
        .is_some_and(|by| by == installation.as_str());
    labels
        .get(LABEL_MACHINE_UID)
        .filter(|_| ours)
        .map(|uid| MachineUid::new(uid.clone()))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use serde_json::{Value, json};

    fn node(ready: &str, labels: Value) -> NodeFacts {
        let object = json!({
            "metadata": {"name": "c-node1", "uid": "n1", "labels": labels},
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
        assert!(node("True", json!({})).ready);
        assert!(!node("False", json!({})).ready);
        assert!(!node("Unknown", json!({})).ready);
    }

    #[test]
    fn node_says_by_our_labels_which_machine_it_is() {
        let machine = |labels| node("True", labels).machine;
        assert_eq!(
            machine(json!({"neap.dev/machine-uid": "m1", "neap.dev/installation": "me"})),
            Some(MachineUid::new("m1"))
        );
        for labels in [
            json!({}),
            json!({"neap.dev/installation": "me"}),
            json!({"neap.dev/machine-uid": "m1"}),
            json!({"neap.dev/machine-uid": "m1", "neap.dev/installation": "other"}),
        ] {
            assert_eq!(machine(labels.clone()), None, "{labels}");
        }
    }
}
