//! How many nodes are wanted.

use crate::world::{World, bound, check, idle_since, running, small, waiting};
use neap_core::demand::intent;
use neap_core::scale::{Policy, target, wanted_beside};

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

#[test]
fn nodes_that_stay_small_are_filled_before_any_other() {
    let policy = policy(16, 0, 10);
    let table: [(&[u32], u32, u32); 7] = [
        (&[], 17, 2),
        (&[8], 0, 0),
        (&[8], 8, 1),
        (&[8], 9, 2),
        (&[8], 25, 3),
        (&[8, 4], 5, 2),
        (&[8, 4], 13, 3),
    ];
    for (small, demand, expected) in table {
        let wanted = wanted_beside(small, demand, &policy);
        assert_eq!(wanted, expected, "{demand} beside {small:?}");
    }
}

#[test]
fn a_node_that_is_given_more_room_in_a_moment_counts_as_if_it_had_it() {
    let world = World::new()
        .pods_per_node(16)
        .machine(running(1))
        .pods(8, bound(1))
        .pods(4, waiting());
    check(&world, &[], "Served");
}

#[test]
fn pods_do_not_wait_for_room_that_could_not_be_given() {
    let world = World::new()
        .pods_per_node(16)
        .machine(small(8, running(1)))
        .pods(8, bound(1))
        .pods(4, waiting());
    check(&world, &["provision 2"], "ScaleUp");
    check(&world.clone().max_nodes(1), &[], "MaxNodesReached");
    // With both there it rests, and what is idle leaves.
    check(&world.clone().machine(running(2)), &[], "Served");
    let done = World::new()
        .pods_per_node(16)
        .machine(idle_since(0, small(8, running(1))))
        .machine(running(2))
        .pods(4, bound(2));
    check(&done, &["release 1"], "NodeIdle");
}

#[test]
fn a_smaller_number_of_pods_a_node_takes_no_room_away() {
    let world = World::new()
        .pods_per_node(4)
        .machine(small(8, running(1)))
        .pods(4, bound(1));
    check(&world, &[], "Served");
}
