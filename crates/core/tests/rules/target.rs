//! How many nodes are wanted.

use crate::world::{World, waiting};
use neap_core::demand::intent;
use neap_core::scale::{Policy, target};

fn policy(pods_per_node: u32, min_nodes: u32, max_nodes: u32) -> Policy {
    Policy {
        pods_per_node,
        min_nodes,
        max_nodes,
        ..Policy::default()
    }
}

#[test]
fn reference_values() {
    let table = [
        // demand, pods a node, least, most, target
        (0, 8, 0, 10, 0),
        (1, 8, 0, 10, 1),
        (8, 8, 0, 10, 1),
        (9, 8, 0, 10, 2),
        (17, 8, 0, 10, 3),
        (100, 8, 0, 4, 4),
        (3, 1, 0, 3, 3),
        // MinNodes stay with and without work.
        (0, 8, 2, 10, 2),
        (1, 8, 2, 10, 2),
        (17, 8, 2, 10, 3),
        // The limits hold for what the API server should have refused.
        (0, 8, 5, 3, 3),
        (1, 0, 0, 10, 1),
        (1, 8, 0, 0, 0),
        (u32::MAX, 1, 0, 240, 240),
    ];
    for (demand, pods_per_node, least, most, expected) in table {
        let policy = policy(pods_per_node, least, most);
        assert_eq!(target(demand, &policy), expected, "{demand} at {policy:?}");
    }
}

#[test]
fn what_is_absent_means_one_node_of_eight_pods_and_a_hold_of_two_minutes() {
    let policy = Policy::default();
    assert_eq!(policy.pods_per_node, 8);
    assert_eq!((policy.min_nodes, policy.max_nodes), (0, 1));
    assert_eq!(policy.hold.as_secs(), 120);
}

#[test]
fn there_is_work_when_there_is_demand_and_then_only() {
    assert!(!intent(0));
    assert!(intent(1));
}

#[test]
fn a_decision_tells_demand_target_and_count() {
    let decision = World::new().pods_per_node(8).pods(17, waiting()).decide();
    assert_eq!(decision.version, 1);
    assert_eq!(
        (decision.demand, decision.target, decision.counted),
        (17, 3, 0)
    );
}
