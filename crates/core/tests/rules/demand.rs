//! What counts as work.

use crate::world::{
    World, baseline, bound, finished, gated, owned, replica_set, waiting, workload,
};
use neap_core::demand::{JobCounts, demand};
use neap_core::observation::WorkloadKind::{DaemonSet, Deployment, Job, ReplicaSet, StatefulSet};

#[track_caller]
fn check(world: World, expected: u32) {
    let observation = world.observe();
    assert_eq!(
        demand(&observation, world.policy.daemon_sets),
        expected,
        "{observation:#?}"
    );
}

#[test]
fn an_empty_cluster_has_no_work() {
    check(World::new(), 0);
}

#[test]
fn each_unfinished_pod_counts_bound_or_not() {
    check(World::new().pods(3, waiting()).pods(2, bound(1)), 5);
}

#[test]
fn finished_pods_do_not_count() {
    let world = World::new().pods(4, finished(bound(1)));
    check(world.pods(1, waiting()), 1);
}

#[test]
fn baseline_pods_do_not_count() {
    let world = World::new().pods(4, baseline(bound(1)));
    check(world.pods(2, baseline(waiting())), 0);
}

#[test]
fn gated_pods_do_not_count_until_their_gates_are_gone() {
    check(World::new().pods(3, gated(waiting())), 0);
    let job = || World::new().workload(workload(Job, "j", 3));
    check(job().pods(3, gated(owned("j", waiting()))), 0);
    let half_open = job().pods(1, gated(owned("j", waiting())));
    check(half_open.pods(2, owned("j", waiting())), 2);
}

#[test]
fn a_gated_deployment_brings_no_node() {
    let world = World::new()
        .workload(workload(Deployment, "d", 2))
        .workload(replica_set("rs", "d"));
    check(world.pods(2, gated(owned("rs", waiting()))), 0);
}

#[test]
fn more_gated_pods_than_wanted_do_not_count_below_nothing() {
    let world = World::new().workload(workload(Job, "j", 1));
    check(world.pods(3, gated(owned("j", waiting()))), 0);
}

#[test]
fn a_workload_counts_before_its_pods_are_there() {
    check(World::new().workload(workload(Job, "j", 3)), 3);
    check(World::new().workload(workload(Deployment, "d", 2)), 2);
    check(World::new().workload(workload(StatefulSet, "s", 4)), 4);
}

#[test]
fn of_an_owner_and_its_pods_the_larger_counts_and_never_the_sum() {
    let job = |pods| {
        let world = World::new().workload(workload(Job, "j", 3));
        world.pods(pods, owned("j", waiting()))
    };
    for (pods, expected) in [(0, 3), (1, 3), (3, 3), (5, 5)] {
        check(job(pods), expected);
    }
}

#[test]
fn finished_pods_of_an_owner_leave_what_it_still_needs() {
    let world = World::new().workload(workload(Job, "j", 1));
    check(world.pods(2, finished(owned("j", bound(1)))), 1);
}

#[test]
fn a_deployment_and_its_pods_are_one_through_its_replica_sets() {
    let rollout = World::new()
        .workload(workload(Deployment, "d", 3))
        .workload(replica_set("old", "d"))
        .workload(replica_set("new", "d"))
        .pods(2, owned("old", bound(1)))
        .pods(2, owned("new", waiting()));
    check(rollout, 4);
}

#[test]
fn a_replica_set_wants_nothing_itself_and_its_pods_count() {
    let alone = World::new().workload(workload(ReplicaSet, "rs", 5));
    check(alone.clone(), 0);
    check(alone.pods(2, owned("rs", waiting())), 2);
}

#[test]
fn pods_of_a_deployment_that_is_gone_still_count() {
    let world = World::new().workload(replica_set("rs", "gone"));
    check(world.pods(2, owned("rs", bound(1))), 2);
}

#[test]
fn pods_of_an_owner_that_is_not_watched_count_by_themselves() {
    check(World::new().pods(3, owned("task-run", waiting())), 3);
    let world = World::new().workload(workload(Job, "j", 2));
    check(world.pods(3, owned("task-run", waiting())), 5);
}

#[test]
fn pods_seen_before_their_replica_set_do_not_count_twice() {
    let deployment = World::new().workload(workload(Deployment, "d", 3));
    let early = deployment.pods(3, owned("rs", waiting()));
    check(early.clone(), 3);
    check(early.workload(replica_set("rs", "d")), 3);
}

#[test]
fn different_owners_add_up() {
    let world = World::new()
        .workload(workload(Job, "j", 2))
        .workload(workload(StatefulSet, "s", 3))
        .workload(workload(Deployment, "d", 4))
        .pods(1, owned("j", waiting()))
        .pods(1, waiting());
    check(world, 2 + 3 + 4 + 1);
}

#[test]
fn daemon_sets_count_only_where_the_policy_says_so() {
    let world = World::new()
        .workload(workload(DaemonSet, "ds", 3))
        .pods(3, baseline(owned("ds", bound(1))));
    check(world.clone(), 0);
    check(world.counting_daemon_sets(), 3);
}

#[test]
fn numbers_beyond_reason_do_not_overflow() {
    let world = World::new()
        .workload(workload(Job, "a", u32::MAX))
        .workload(workload(Deployment, "b", u32::MAX))
        .workload(workload(Deployment, "c", u32::MAX));
    check(world.pods(2, waiting()), u32::MAX);
}

#[test]
fn a_job_needs_what_is_left_of_it_at_once() {
    let job = JobCounts {
        parallelism: 2,
        completions: Some(5),
        succeeded: 0,
        suspended: false,
        finished: false,
    };
    let queue = JobCounts {
        completions: None,
        ..job
    };
    let succeeded = |succeeded, job: JobCounts| JobCounts { succeeded, ..job };
    let table = [
        (job, 2),
        (succeeded(3, job), 2),
        (succeeded(4, job), 1),
        (succeeded(5, job), 0),
        (succeeded(9, job), 0),
        (queue, 2),
        (succeeded(1, queue), 0),
        (
            JobCounts {
                suspended: true,
                ..job
            },
            0,
        ),
        (
            JobCounts {
                finished: true,
                ..job
            },
            0,
        ),
        (
            JobCounts {
                parallelism: 0,
                ..job
            },
            0,
        ),
    ];
    for (job, needs) in table {
        assert_eq!(job.needs(), needs, "{job:?}");
    }
}
