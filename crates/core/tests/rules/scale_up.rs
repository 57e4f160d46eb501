//! Making machines: how many, of which names, and when not.

use crate::world::{
    NOW, World, at, baseline, bound, check, deleting, draining, finished, node_of, pending,
    powered, releasing, running, waiting,
};
use neap_core::ids::{MachineUid, NodeName};
use neap_core::machine::Power;
use neap_core::observation::{NodeFacts, PodFacts};

#[test]
fn no_work_makes_no_machine() {
    check(&World::new(), &[], "NoWork");
    check(&World::new().pods(2, baseline(waiting())), &[], "NoWork");
}

#[test]
fn the_first_pod_brings_the_first_node() {
    let world = World::new().pods_per_node(8).pods(1, waiting());
    check(&world, &["provision 1"], "ScaleUp");
}

#[test]
fn as_many_are_made_as_the_work_wants() {
    let world = World::new().pods_per_node(8).pods(17, waiting());
    check(&world, &["provision 1 2 3"], "ScaleUp");
}

#[test]
fn never_more_than_max_nodes() {
    let world = World::new().pods_per_node(8).max_nodes(4);
    let world = world.pods(100, waiting());
    check(&world, &["provision 1 2 3 4"], "ScaleUp");
}

#[test]
fn a_pending_machine_counts_from_its_creation() {
    let world = World::new().pods(2, waiting());
    check(
        &world.clone().machine(pending(1)),
        &["provision 2"],
        "ScaleUp",
    );
    let both = world.machine(pending(1)).machine(pending(2));
    check(&both, &[], "Served");
}

#[test]
fn machines_on_their_way_out_hold_their_place_and_do_not_count() {
    let world = World::new().max_nodes(2).pods(2, waiting());
    let world = world.machine(draining(1));
    check(&world, &["provision 2"], "ScaleUp");
    let full = world.machine(running(2));
    check(&full, &[], "PlacesTaken");
}

#[test]
fn a_machine_deleted_by_its_user_holds_its_place_and_does_not_count() {
    let world = World::new().max_nodes(1).pods(1, waiting());
    check(
        &world.clone().machine(deleting(running(1))),
        &[],
        "PlacesTaken",
    );
    check(
        &world.clone().machine(deleting(pending(1))),
        &[],
        "PlacesTaken",
    );
    let larger = world.max_nodes(2).machine(deleting(running(1)));
    check(&larger, &["provision 2"], "ScaleUp");
}

#[test]
fn a_dead_machine_at_max_nodes_is_removed_first_and_then_replaced() {
    let world = World::new().max_nodes(1).pods(1, waiting());
    let dead = world.clone().machine(powered(Power::Error, running(1)));
    check(&dead, &["remove 1: MachineLost"], "MachineLost");
    let going = world.clone().machine(powered(Power::Error, draining(1)));
    check(&going, &[], "PlacesTaken");
    check(&world, &["provision 1"], "ScaleUp");
}

#[test]
fn a_dead_machine_below_max_nodes_is_replaced_in_the_same_pass() {
    let world = World::new().max_nodes(2).pods(1, waiting());
    let world = world.machine(powered(Power::Destroyed, running(1)));
    check(&world, &["remove 1: MachineLost", "provision 2"], "ScaleUp");
}

#[test]
fn more_work_than_max_nodes_is_told() {
    let world = World::new().max_nodes(1).pods(3, waiting());
    check(&world.machine(running(1)), &[], "MaxNodesReached");
}

#[test]
fn a_lowered_max_nodes_makes_nothing_and_removes_nothing_that_works() {
    let world = World::new()
        .max_nodes(1)
        .pods(1, bound(1))
        .pods(1, bound(2));
    let world = world.machine(running(1)).machine(running(2));
    check(&world, &[], "NoIdleNode");
}

#[test]
fn min_nodes_are_made_without_work() {
    check(&World::new().min_nodes(2), &["provision 1 2"], "ScaleUp");
    let one = World::new().min_nodes(2).machine(running(1));
    check(&one, &["provision 2"], "ScaleUp");
}

#[test]
fn the_lowest_ordinals_without_a_record_are_taken() {
    let world = World::new().pods(4, waiting());
    let world = world.machine(running(1)).machine(draining(3));
    check(&world, &["provision 2 4 5"], "ScaleUp");
}

#[test]
fn an_ordinal_is_taken_while_a_node_bears_its_name() {
    let leftover = NodeFacts {
        machine: None,
        ..node_of(&running(1))
    };
    let world = World::new().pods(1, waiting()).node(leftover);
    check(&world, &["provision 2"], "ScaleUp");
}

#[test]
fn an_ordinal_is_taken_while_an_unfinished_pod_is_bound_to_its_name() {
    let world = World::new().pods(1, bound(1));
    check(&world, &["provision 2"], "ScaleUp");
    let ds = World::new().pods(1, waiting()).pods(1, baseline(bound(1)));
    check(&ds, &["provision 2"], "ScaleUp");
    let done = World::new().pods(1, waiting()).pods(1, finished(bound(1)));
    check(&done, &["provision 1"], "ScaleUp");
}

#[test]
fn other_names_take_no_ordinal() {
    let elsewhere = PodFacts {
        node: Some(NodeName::new("lab-machine")),
        ..waiting()
    };
    check(
        &World::new().pods(1, elsewhere),
        &["provision 1"],
        "ScaleUp",
    );
}

#[test]
fn no_ordinal_is_made_that_has_no_address() {
    let mut world = World::new().max_nodes(300).pods(300, waiting());
    assert_eq!(world.actions().len(), 1);
    for ordinal in 1..=239 {
        world = world.machine(running(ordinal));
    }
    check(&world, &["provision 240"], "ScaleUp");
    check(&world.machine(running(240)), &[], "OrdinalsTaken");
}

#[test]
fn nothing_is_made_before_the_next_try() {
    let world = World::new().pods(1, waiting());
    let waits = world.clone().retry_at(NOW + 8);
    check(&waits, &[], "BackingOff");
    assert_eq!(waits.decide().next, Some(at(NOW + 8)));
    check(&world.retry_at(NOW), &["provision 1"], "ScaleUp");
}

#[test]
fn what_is_leaving_is_taken_back_before_anything_is_made() {
    let world = World::new().pods(1, waiting()).machine(releasing(1));
    check(&world, &["undo 1"], "WorkCameBack");
    let more = world.pods(1, waiting());
    check(&more, &["undo 1", "provision 2"], "ScaleUp");
}

#[test]
fn what_is_leaving_is_taken_back_even_while_making_waits() {
    let world = World::new().pods(2, waiting()).retry_at(NOW + 8);
    check(&world.machine(releasing(1)), &["undo 1"], "WorkCameBack");
}

#[test]
fn no_more_is_taken_back_than_is_missing_the_oldest_first() {
    let world = World::new().pods(2, waiting()).machine(running(1));
    let world = world.machine(releasing(3)).machine(releasing(2));
    check(&world, &["undo 2"], "WorkCameBack");
}

#[test]
fn nothing_is_taken_back_while_enough_is_there() {
    let world = World::new().pods(1, bound(1));
    let world = world.machine(running(1)).machine(releasing(2));
    check(&world, &[], "Served");
}

#[test]
fn what_its_user_deleted_is_never_taken_back() {
    let world = World::new()
        .pods(1, waiting())
        .machine(deleting(releasing(1)));
    check(&world, &["provision 2"], "ScaleUp");
    let world = World::new().pods(1, waiting()).machine(draining(1));
    check(&world, &["provision 2"], "ScaleUp");
}

#[test]
fn a_node_that_claims_a_machine_without_record_voids_the_pass() {
    let foreign = NodeFacts {
        machine: Some(MachineUid::new("unheard-of")),
        ..node_of(&running(7))
    };
    let growing = World::new().pods(1, waiting()).node(foreign.clone());
    check(&growing, &[], "ForeignRecord");
    let losing = World::new()
        .machine(powered(Power::Error, running(1)))
        .without_work_since(0)
        .node(foreign);
    check(&losing, &[], "ForeignRecord");
    assert_eq!(losing.decide().remember.idle_since, Some(at(0)));
}

#[test]
fn nodes_of_others_are_no_business_of_ours() {
    let other = NodeFacts {
        machine: None,
        name: NodeName::new("lab-machine"),
        ..node_of(&running(7))
    };
    let world = World::new().pods(1, waiting()).node(other);
    check(&world, &["provision 1"], "ScaleUp");
}
