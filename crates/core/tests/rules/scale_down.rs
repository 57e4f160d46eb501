//! Letting machines go: without work all, with work the idle ones.

use crate::world::{
    NOW, World, at, baseline, bound, check, deleting, finished, idle_since, machine_name, pending,
    powered, running, waiting,
};
use neap_core::machine::Power;

/// Two nodes of which one is idle since then, and work for one.
fn one_idle(since: i64) -> World {
    World::new()
        .hold(120)
        .pods(1, bound(1))
        .machine(running(1))
        .machine(idle_since(since, running(2)))
}

#[test]
fn without_work_nothing_leaves_before_the_hold_is_over() {
    let world = World::new().hold(120).machine(running(1));
    let first = world.decide();
    assert_eq!(first.remember.idle_since, Some(at(NOW)));
    assert_eq!(first.next, Some(at(NOW + 120)));
    check(&world, &[], "AwaitingHold");
    let last_second = world.without_work_since(NOW - 119);
    check(&last_second, &[], "AwaitingHold");
    assert_eq!(last_second.decide().next, Some(at(NOW + 1)));
}

#[test]
fn without_work_for_the_hold_all_leave_the_newest_first() {
    let world = World::new().hold(120).without_work_since(NOW - 120);
    let world = world
        .machine(running(1))
        .machine(running(3))
        .machine(running(2));
    check(&world, &["teardown 3 2 1"], "WorkEnded");
}

#[test]
fn without_work_machines_leave_that_have_not_joined_yet() {
    let world = World::new().hold(0).machine(running(1)).machine(pending(2));
    check(&world, &["teardown 2 1"], "WorkEnded");
}

#[test]
fn a_hold_of_nothing_lets_all_leave_at_once() {
    let world = World::new().hold(0).machine(running(1));
    check(&world, &["teardown 1"], "WorkEnded");
}

#[test]
fn finished_and_baseline_pods_keep_no_node() {
    let world = World::new().hold(0).machine(running(1));
    let world = world
        .pods(3, finished(bound(1)))
        .pods(2, baseline(bound(1)));
    check(&world, &["teardown 1"], "WorkEnded");
}

#[test]
fn min_nodes_stay_and_they_are_the_oldest() {
    let world = World::new().min_nodes(1).hold(0);
    let world = world
        .machine(running(1))
        .machine(running(2))
        .machine(running(3));
    check(&world, &["teardown 3 2"], "WorkEnded");
    let least = World::new().min_nodes(1).hold(0).machine(running(1));
    check(&least, &[], "NoWork");
}

#[test]
fn work_ends_the_hold() {
    let world = World::new().without_work_since(0).pods(1, bound(1));
    let world = world.machine(running(1));
    check(&world, &[], "Served");
    assert_eq!(world.decide().remember.idle_since, None);
}

#[test]
fn with_work_a_node_leaves_that_was_idle_for_the_whole_hold() {
    check(&one_idle(NOW - 120), &["release 2"], "NodeIdle");
    let early = one_idle(NOW - 119);
    check(&early, &[], "AwaitingIdleHold");
    assert_eq!(early.decide().next, Some(at(NOW + 1)));
}

#[test]
fn finished_and_baseline_pods_do_not_make_a_node_busy() {
    let world = one_idle(NOW - 120).pods(4, finished(bound(2)));
    check(
        &world.pods(1, baseline(bound(2))),
        &["release 2"],
        "NodeIdle",
    );
}

#[test]
fn a_node_with_work_is_not_released_however_long_it_was_idle() {
    let world = one_idle(0).pods_per_node(2).pods(1, bound(2));
    check(&world, &[], "NoIdleNode");
    let remembered = world.decide().remember.machines;
    assert_eq!(remembered.get(&machine_name(2)), Some(&None));
}

#[test]
fn no_node_is_released_that_the_work_wants() {
    let world = one_idle(0).pods(1, waiting());
    check(&world, &[], "Served");
    check(&one_idle(0).min_nodes(2), &[], "Served");
}

#[test]
fn one_node_is_released_in_a_hold() {
    let world = one_idle(0).machine(idle_since(0, running(3)));
    check(&world, &["release 3"], "NodeIdle");
    let soon_after = world.clone().last_release(NOW - 119);
    check(&soon_after, &[], "AwaitingReleaseHold");
    assert_eq!(soon_after.decide().next, Some(at(NOW + 1)));
    check(&world.last_release(NOW - 120), &["release 3"], "NodeIdle");
}

#[test]
fn the_emptiest_node_is_released_first_then_the_newest() {
    let world = one_idle(0).machine(idle_since(0, running(3)));
    let world = world.machine(idle_since(0, running(4)));
    check(&world, &["release 4"], "NodeIdle");
    let world = world
        .pods(1, finished(bound(4)))
        .pods(2, finished(bound(2)));
    check(&world, &["release 3"], "NodeIdle");
}

#[test]
fn an_idle_node_waits_for_the_later_of_its_hold_and_that_of_the_last_release() {
    let world = one_idle(NOW - 100).last_release(NOW - 10);
    check(&world, &[], "AwaitingIdleHold");
    assert_eq!(world.decide().next, Some(at(NOW + 110)));
}

#[test]
fn a_machine_that_has_not_joined_is_not_released_while_there_is_work() {
    let world = World::new().pods(1, bound(1)).machine(running(1));
    check(&world.machine(pending(2)), &[], "NoIdleNode");
}

#[test]
fn the_node_that_is_there_stays_until_the_one_that_is_wanted_has_joined() {
    let world = World::new().min_nodes(1).machine(idle_since(0, running(1)));
    let world = world.pods(1, baseline(bound(1))).pods(1, bound(2));
    check(&world.clone().machine(pending(2)), &[], "AwaitingJoin");
    check(&world.machine(running(2)), &["release 1"], "NodeIdle");
}

#[test]
fn what_does_not_count_is_not_released() {
    let world = World::new().pods(1, bound(1)).machine(running(1));
    let stopped = powered(Power::Stopped, idle_since(0, running(2)));
    check(&world.clone().machine(stopped), &[], "Served");
    let deleted = deleting(idle_since(0, running(2)));
    check(&world.machine(deleted), &[], "Served");
}

#[test]
fn it_is_remembered_since_when_each_running_node_is_idle() {
    let world = World::new()
        .pods(1, bound(1))
        .machine(running(1))
        .machine(running(2))
        .machine(idle_since(NOW - 5, running(3)))
        .machine(pending(4))
        .machine(deleting(running(5)));
    let expected = [
        (machine_name(1), None),
        (machine_name(2), Some(at(NOW))),
        (machine_name(3), Some(at(NOW - 5))),
    ];
    assert_eq!(world.decide().remember.machines, expected.into());
}

#[test]
fn daemon_sets_that_count_keep_their_nodes_as_in_the_reference() {
    use crate::world::workload;
    use neap_core::observation::WorkloadKind::DaemonSet;
    let world = World::new().hold(0).machine(running(1));
    let world = world.workload(workload(DaemonSet, "ds", 1));
    check(&world, &["teardown 1"], "WorkEnded");
    check(&world.counting_daemon_sets(), &[], "Served");
}
