//! Machines that go at once.

use crate::world::{
    NOW, World, at, bound, check, deleting, draining, pending, powered, releasing, running, waiting,
};
use neap_core::machine::{ObservedMachine, Power};

fn created(seconds: i64, machine: ObservedMachine) -> ObservedMachine {
    ObservedMachine {
        created: at(seconds),
        ..machine
    }
}

#[test]
fn what_is_lost_goes_at_once_with_or_without_work() {
    for power in [Power::Error, Power::Destroyed, Power::Expunging] {
        let dead = World::new().machine(powered(power, running(1)));
        assert_eq!(dead.actions(), ["remove 1: MachineLost"]);
        let busy = dead.max_nodes(1).pods(1, bound(1));
        assert_eq!(busy.actions(), ["remove 1: MachineLost"]);
    }
}

#[test]
fn what_is_lost_while_leaving_goes_at_once() {
    let world = World::new().machine(powered(Power::Error, releasing(1)));
    assert_eq!(world.actions(), ["remove 1: MachineLost"]);
    let world = World::new().machine(powered(Power::Stopped, releasing(1)));
    assert_eq!(world.actions(), ["remove 1: StoppedWhileLeaving"]);
}

#[test]
fn what_never_came_up_and_was_not_wanted_any_more_is_no_failure() {
    let leaving = ObservedMachine {
        joined: None,
        ..powered(Power::Destroyed, releasing(1))
    };
    let world = World::new().machine_without_node(leaving);
    check(
        &world,
        &["remove 1: StoppedWhileLeaving"],
        "StoppedWhileLeaving",
    );
    assert!(!world.decide().reason.is_provisioning_failure());
}

#[test]
fn what_may_still_run_stays_and_counts() {
    for power in [Power::Running, Power::Migrating, Power::Unknown] {
        let world = World::new().pods(1, bound(1));
        check(&world.machine(powered(power, running(1))), &[], "Served");
    }
}

#[test]
fn what_does_not_join_within_its_deadline_goes() {
    let world = World::new().pods(1, waiting()).max_nodes(1);
    let young = world.clone().machine(created(NOW - 59, pending(1)));
    check(&young, &[], "Served");
    assert_eq!(young.decide().next, Some(at(NOW + 1)));
    let late = world.machine(created(NOW - 60, pending(1)));
    check(
        &late,
        &["remove 1: JoinDeadlinePassed"],
        "JoinDeadlinePassed",
    );
}

#[test]
fn nothing_is_made_in_the_pass_that_removes_what_never_came_up() {
    let world = World::new().pods(1, waiting());
    let late = world.clone().machine(created(NOW - 60, pending(1)));
    check(
        &late,
        &["remove 1: JoinDeadlinePassed"],
        "JoinDeadlinePassed",
    );
    let lost = world.machine(powered(Power::Error, pending(1)));
    check(&lost, &["remove 1: LostBeforeJoin"], "LostBeforeJoin");
    for world in [late, lost] {
        assert!(world.decide().reason.is_provisioning_failure());
    }
}

#[test]
fn what_has_joined_has_no_deadline() {
    let world = World::new()
        .pods(1, bound(1))
        .machine(created(0, running(1)));
    check(&world, &[], "Served");
    assert_eq!(world.decide().next, None);
}

#[test]
fn what_lost_its_node_after_it_had_joined_goes() {
    let world = World::new()
        .pods(1, bound(1))
        .machine_without_node(running(1));
    check(
        &world,
        &["remove 1: NodeVanished", "provision 2"],
        "ScaleUp",
    );
    let leaving = World::new().machine_without_node(releasing(1));
    check(&leaving, &["remove 1: NodeVanished"], "NodeVanished");
}

#[test]
fn what_has_not_joined_yet_misses_no_node() {
    let world = World::new().pods(1, waiting()).machine(pending(1));
    check(&world, &[], "Served");
}

#[test]
fn what_is_going_already_is_not_removed_again() {
    let world = World::new()
        .machine_without_node(draining(1))
        .machine_without_node(powered(Power::Error, draining(2)))
        .machine_without_node(deleting(running(3)))
        .machine(powered(Power::Error, deleting(running(4))));
    check(&world, &[], "NoWork");
}

#[test]
fn what_its_user_stopped_stays_while_there_is_room_for_the_work() {
    for power in [Power::Stopped, Power::Shutdown] {
        let world = World::new().pods(1, waiting()).max_nodes(2);
        let world = world.machine(powered(power, running(1)));
        check(&world, &["provision 2"], "ScaleUp");
    }
}

#[test]
fn what_its_user_stopped_goes_when_work_needs_its_place() {
    let world = World::new().pods(1, waiting()).max_nodes(1);
    let world = world.machine(powered(Power::Stopped, running(1)));
    check(&world, &["remove 1: PlaceNeeded"], "PlaceNeeded");
}

#[test]
fn no_more_of_what_its_user_stopped_goes_than_work_needs_the_newest_first() {
    let world = World::new()
        .pods(2, waiting())
        .max_nodes(3)
        .machine(powered(Power::Stopped, running(1)))
        .machine(powered(Power::Stopped, running(2)));
    check(&world, &["remove 2: PlaceNeeded", "provision 3"], "ScaleUp");
}

#[test]
fn what_its_user_stopped_stays_when_a_place_comes_free_by_itself() {
    let world = World::new()
        .pods(1, waiting())
        .max_nodes(2)
        .machine(powered(Power::Stopped, running(1)))
        .machine(draining(2));
    check(&world, &[], "PlacesTaken");
}

#[test]
fn what_its_user_stopped_keeps_its_place_while_making_waits() {
    let world = World::new()
        .pods(1, waiting())
        .max_nodes(1)
        .retry_at(NOW + 5);
    let world = world.machine(powered(Power::Stopped, running(1)));
    check(&world, &[], "BackingOff");
}

#[test]
fn what_its_user_stopped_goes_when_there_was_no_work_for_the_hold() {
    let world = World::new().hold(120);
    let world = world.machine(powered(Power::Stopped, running(1)));
    let early = world.clone().without_work_since(NOW - 119);
    check(&early, &[], "NoWork");
    assert_eq!(early.decide().next, Some(at(NOW + 1)));
    let over = world.without_work_since(NOW - 120);
    check(
        &over,
        &["remove 1: StoppedWithoutWork"],
        "StoppedWithoutWork",
    );
}

#[test]
fn what_was_stopped_before_it_joined_has_no_deadline() {
    let world = World::new().pods(1, waiting()).max_nodes(2);
    let stopped = powered(Power::Stopped, created(0, pending(1)));
    check(&world.machine(stopped), &["provision 2"], "ScaleUp");
}
