//! Clocks that jump, and the time of the next pass.

use crate::world::{
    NOW, World, at, bound, check, idle_since, machine_name, pending, running, waiting,
};
use neap_core::machine::ObservedMachine;
use neap_core::scale::JOIN_DEADLINE;

const HOUR: i64 = 3_600;

#[test]
fn the_join_deadline_is_a_minute() {
    assert_eq!(JOIN_DEADLINE.as_secs(), 60);
}

#[test]
fn a_cluster_at_rest_needs_no_further_pass() {
    assert_eq!(World::new().decide().next, None);
    let served = World::new().pods(1, bound(1)).machine(running(1));
    assert_eq!(served.decide().next, None);
}

#[test]
fn the_earliest_of_several_times_is_the_next() {
    let world = World::new()
        .pods(3, waiting())
        .machine(pending(1))
        .retry_at(NOW + 20);
    assert_eq!(world.decide().next, Some(at(NOW + 20)));
    let world = world.retry_at(NOW + 60);
    assert_eq!(world.decide().next, Some(at(NOW + 59)));
}

#[test]
fn idleness_from_the_future_began_now() {
    let world = World::new().hold(120).machine(running(1));
    let decision = world.without_work_since(NOW + HOUR).decide();
    assert_eq!(decision.remember.idle_since, Some(at(NOW)));
    assert_eq!(decision.next, Some(at(NOW + 120)));
}

#[test]
fn an_idle_node_from_the_future_is_idle_since_now() {
    let world = World::new().hold(120).pods(1, bound(1)).machine(running(1));
    let decision = world.machine(idle_since(NOW + HOUR, running(2))).decide();
    let remembered = decision.remember.machines;
    assert_eq!(remembered.get(&machine_name(2)), Some(&Some(at(NOW))));
    assert_eq!(decision.next, Some(at(NOW + 120)));
}

#[test]
fn a_release_from_the_future_holds_nobody() {
    let world = World::new().pods(1, bound(1)).machine(running(1));
    let world = world
        .machine(idle_since(0, running(2)))
        .last_release(NOW + HOUR);
    check(&world, &["release 2"], "NodeIdle");
}

#[test]
fn a_next_try_beyond_any_backoff_holds_nobody() {
    let world = World::new().pods(1, waiting()).retry_at(NOW + HOUR);
    check(&world, &["provision 1"], "ScaleUp");
}

#[test]
fn a_machine_made_far_in_the_future_has_had_its_time() {
    let from = |seconds| ObservedMachine {
        created: at(seconds),
        ..pending(1)
    };
    let world = World::new().pods(1, waiting());
    let far = world.clone().machine(from(NOW + HOUR));
    check(
        &far,
        &["remove 1: JoinDeadlinePassed"],
        "JoinDeadlinePassed",
    );
    let near = world.machine(from(NOW + 2));
    check(&near, &[], "Served");
    assert_eq!(near.decide().next, Some(at(NOW + 62)));
}

#[test]
fn a_negative_hold_is_none() {
    let world = World::new().hold(-5).machine(running(1));
    check(&world, &["teardown 1"], "WorkEnded");
}

#[test]
fn the_longest_hold_does_not_overflow() {
    let world = World::new().hold(i64::MAX).machine(running(1));
    check(&world, &[], "AwaitingHold");
}

#[test]
fn a_pass_at_a_later_time_sees_the_same_world() {
    let world = World::new()
        .hold(120)
        .machine(running(1))
        .without_work_since(NOW);
    check(&world.clone().now(NOW + 119), &[], "AwaitingHold");
    check(&world.now(NOW + 120), &["teardown 1"], "WorkEnded");
}
