#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use jiff::SignedDuration;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

/// A Cluster whose record has just been seen.
fn new_cluster() -> ObservedCluster {
    ObservedCluster {
        deleting: false,
        finalizer: true,
        wanted: true,
        paused: false,
        version: None,
        has_distro: false,
        versions: vec!["1.36".into(), "1.37".into()],
        control_plane: ObservedControlPlane::Absent,
        api: ApiState::Unreachable,
        silent_since: None,
        bootstrapped: false,
        machines: 0,
        failures: 0,
        retry_at: None,
        was_running: false,
    }
}

fn started() -> ObservedCluster {
    ObservedCluster {
        control_plane: ObservedControlPlane::Running {
            since: at(0),
            distro: "v1.37.2-abc".into(),
        },
        ..new_cluster()
    }
}

fn running() -> ObservedCluster {
    ObservedCluster {
        api: ApiState::Ready {
            service_account: true,
        },
        bootstrapped: true,
        was_running: true,
        ..started()
    }
}

fn exited() -> ObservedCluster {
    ObservedCluster {
        control_plane: ObservedControlPlane::Exited {
            at: Some(at(5)),
            how: "signal 9".into(),
        },
        api: ApiState::Unreachable,
        ..running()
    }
}

fn wait(reason: Reason) -> ClusterStep {
    ClusterStep::WaitFor { reason }
}

fn check(cluster: ObservedCluster, step: ClusterStep, shown: ClusterPhase) {
    assert_eq!(decide_cluster(&cluster, at(10)), step, "{cluster:?}");
    assert_eq!(phase(&cluster), shown, "{cluster:?}");
}

#[test]
fn nothing_is_made_before_the_finalizer_is_on_the_record() {
    let cluster = ObservedCluster {
        finalizer: false,
        ..new_cluster()
    };
    check(cluster, ClusterStep::AddFinalizer, ClusterPhase::Created);
}

#[test]
fn a_new_cluster_is_started() {
    check(new_cluster(), ClusterStep::Start, ClusterPhase::Created);
}

#[test]
fn nothing_is_begun_for_a_version_that_is_not_built() {
    let asking = |version: &str| ObservedCluster {
        version: Some(version.into()),
        finalizer: false,
        ..new_cluster()
    };
    let missing = Reason::VersionNotBuilt {
        version: "1.30".into(),
        built: vec!["1.36".into(), "1.37".into()],
    };
    check(asking("1.30"), wait(missing.clone()), ClusterPhase::Created);
    check(
        asking("1.36"),
        ClusterStep::AddFinalizer,
        ClusterPhase::Created,
    );
    // What was started keeps its build, which may lie here under another name.
    let started = ObservedCluster {
        has_distro: true,
        ..asking("1.30")
    };
    check(started, ClusterStep::AddFinalizer, ClusterPhase::Created);
    let begun = ObservedCluster {
        version: Some("1.30".into()),
        ..exited()
    };
    check(begun, ClusterStep::Start, ClusterPhase::Starting);
    let deleted = ObservedCluster {
        deleting: true,
        finalizer: true,
        ..asking("1.30")
    };
    check(
        deleted,
        ClusterStep::RemoveFinalizer,
        ClusterPhase::Destroying,
    );
}

#[test]
fn a_started_cluster_becomes_running_only_when_it_takes_pods() {
    let starting = ClusterPhase::Starting;
    check(
        started(),
        wait(Reason::ControlPlaneStarting { since: at(0) }),
        starting,
    );
    let api = ApiState::NotReady;
    check(
        ObservedCluster { api, ..started() },
        wait(Reason::ApiNotReady),
        starting,
    );
    let api = ApiState::Ready {
        service_account: false,
    };
    check(
        ObservedCluster { api, ..started() },
        ClusterStep::Bootstrap,
        starting,
    );
    let bootstrapped = ObservedCluster {
        api,
        bootstrapped: true,
        ..started()
    };
    check(bootstrapped, wait(Reason::ServiceAccountMissing), starting);
    check(running(), ClusterStep::Running, ClusterPhase::Running);
}

#[test]
fn a_ready_api_without_our_objects_is_bootstrapped_first() {
    let cluster = ObservedCluster {
        bootstrapped: false,
        ..running()
    };
    check(cluster, ClusterStep::Bootstrap, ClusterPhase::Starting);
}

#[test]
fn a_control_plane_that_ended_is_started_again_after_its_backoff() {
    check(exited(), ClusterStep::Start, ClusterPhase::Starting);
    let cluster = ObservedCluster {
        failures: 1,
        retry_at: Some(at(11)),
        ..exited()
    };
    check(
        cluster,
        ClusterStep::RetryAt { at: at(11) },
        ClusterPhase::Starting,
    );
    let cluster = ObservedCluster {
        failures: 1,
        retry_at: Some(at(10)),
        ..exited()
    };
    check(cluster, ClusterStep::Start, ClusterPhase::Starting);
}

#[test]
fn a_retry_from_before_the_clock_jumped_back_does_not_hold_a_start() {
    let far = at(10).checked_add(SignedDuration::from_hours(1)).unwrap();
    let cluster = ObservedCluster {
        failures: 1,
        retry_at: Some(far),
        ..exited()
    };
    check(cluster, ClusterStep::Start, ClusterPhase::Starting);
}

#[test]
fn a_cluster_that_fails_again_and_again_shows_error_and_is_still_tried() {
    let cluster = ObservedCluster {
        failures: ERROR_AFTER,
        retry_at: Some(at(14)),
        ..exited()
    };
    check(
        cluster,
        ClusterStep::RetryAt { at: at(14) },
        ClusterPhase::Error,
    );
    let cluster = ObservedCluster {
        failures: ERROR_AFTER,
        ..exited()
    };
    check(cluster, ClusterStep::Start, ClusterPhase::Error);
    // Counted failures do not hide that it works.
    let cluster = ObservedCluster {
        failures: ERROR_AFTER,
        ..running()
    };
    check(cluster, ClusterStep::Running, ClusterPhase::Running);
}

#[test]
fn after_a_reboot_that_lost_the_folder_it_is_starting_and_not_new() {
    let cluster = ObservedCluster {
        was_running: true,
        ..new_cluster()
    };
    check(cluster, ClusterStep::Start, ClusterPhase::Starting);
}

#[test]
fn a_deleted_cluster_loses_machines_then_control_plane_then_record() {
    let destroying = ClusterPhase::Destroying;
    let with_machines = ObservedCluster {
        deleting: true,
        machines: 2,
        ..running()
    };
    check(with_machines, ClusterStep::DeleteMachines, destroying);
    let without_machines = ObservedCluster {
        deleting: true,
        ..running()
    };
    check(
        without_machines,
        ClusterStep::DeleteControlPlane,
        destroying,
    );
    let ended = ObservedCluster {
        deleting: true,
        ..exited()
    };
    check(ended, ClusterStep::DeleteControlPlane, destroying);
    let nothing = ObservedCluster {
        deleting: true,
        ..new_cluster()
    };
    check(nothing, ClusterStep::RemoveFinalizer, destroying);
}

#[test]
fn a_deleted_cluster_is_taken_apart_whatever_its_api_says() {
    for api in [
        ApiState::Unreachable,
        ApiState::NotReady,
        ApiState::Ready {
            service_account: false,
        },
        ApiState::Ready {
            service_account: true,
        },
    ] {
        let cluster = ObservedCluster {
            deleting: true,
            api,
            failures: 9,
            retry_at: Some(at(60)),
            machines: 1,
            ..running()
        };
        check(
            cluster,
            ClusterStep::DeleteMachines,
            ClusterPhase::Destroying,
        );
    }
}

#[test]
fn a_deleted_record_without_our_finalizer_is_left_alone() {
    let cluster = ObservedCluster {
        deleting: true,
        finalizer: false,
        ..new_cluster()
    };
    check(cluster, wait(Reason::NothingLeft), ClusterPhase::Destroying);
}

#[test]
fn a_control_plane_that_hangs_is_ended() {
    let silent = |second| ObservedCluster {
        api: ApiState::Unreachable,
        silent_since: Some(at(second)),
        ..running()
    };
    let step = |cluster: &ObservedCluster, second| decide_cluster(cluster, at(second));
    let starting = wait(Reason::ControlPlaneStarting { since: at(0) });
    assert_eq!(step(&silent(0), 119), starting);
    assert_eq!(step(&silent(200), 229), starting);
    let hung = ClusterStep::End {
        reason: Reason::ControlPlaneHung { since: at(200) },
    };
    assert_eq!(step(&silent(200), 230), hung);
}

fn stopping() -> ObservedCluster {
    ObservedCluster {
        wanted: false,
        ..running()
    }
}

#[test]
fn a_stop_empties_the_cluster_before_its_control_plane() {
    let full = ObservedCluster {
        machines: 2,
        ..stopping()
    };
    check(full.clone(), ClusterStep::Empty, ClusterPhase::Stopping);
    check(
        stopping(),
        ClusterStep::StopControlPlane,
        ClusterPhase::Stopping,
    );
    let stopped = ObservedCluster {
        wanted: false,
        ..exited()
    };
    check(
        stopped.clone(),
        wait(Reason::ClusterStopped),
        ClusterPhase::Stopped,
    );
    let started = ObservedCluster {
        wanted: true,
        ..stopped
    };
    check(started, ClusterStep::Start, ClusterPhase::Starting);
}

#[test]
fn a_stop_brings_a_dead_control_plane_back_for_the_pods_and_gives_up_in_the_end() {
    let dead = |failures| ObservedCluster {
        wanted: false,
        machines: 2,
        failures,
        ..exited()
    };
    check(dead(1), ClusterStep::Start, ClusterPhase::Stopping);
    check(
        dead(ERROR_AFTER),
        ClusterStep::DeleteMachines,
        ClusterPhase::Stopping,
    );
}

#[test]
fn a_cluster_made_stopped_is_never_started() {
    let cluster = ObservedCluster {
        wanted: false,
        ..new_cluster()
    };
    check(cluster, wait(Reason::ClusterStopped), ClusterPhase::Stopped);
}

fn paused(cluster: ObservedCluster) -> ObservedCluster {
    ObservedCluster {
        paused: true,
        ..cluster
    }
}

fn pause_of(waiting: PausedWork) -> Option<Reason> {
    Some(Reason::ClusterPaused { waiting })
}

#[test]
fn a_pause_makes_nothing_and_restarts_what_crashed() {
    let made = paused(new_cluster());
    let waits = pause_of(PausedWork::Scaling);
    check(made, wait(waits.clone().unwrap()), ClusterPhase::Created);
    check(paused(exited()), ClusterStep::Start, ClusterPhase::Starting);
    check(
        paused(running()),
        ClusterStep::Running,
        ClusterPhase::Running,
    );
    assert_eq!(pause(&paused(running())), waits);
    assert_eq!(pause(&running()), None);
}

#[test]
fn a_stop_and_a_deletion_wait_while_paused() {
    let stop = paused(ObservedCluster {
        machines: 1,
        ..stopping()
    });
    assert_eq!(pause(&stop), pause_of(PausedWork::Stop));
    check(stop, ClusterStep::Running, ClusterPhase::Running);
    let deletion = paused(ObservedCluster {
        deleting: true,
        machines: 1,
        ..running()
    });
    assert_eq!(pause(&deletion), pause_of(PausedWork::Deletion));
    check(deletion, ClusterStep::Running, ClusterPhase::Running);
}

#[test]
fn what_is_stopped_stays_stopped_while_paused_also_when_its_deletion_waits() {
    let stopped = paused(ObservedCluster {
        wanted: false,
        ..exited()
    });
    assert_eq!(pause(&stopped), pause_of(PausedWork::Scaling));
    check(
        stopped.clone(),
        wait(Reason::ClusterStopped),
        ClusterPhase::Stopped,
    );
    let deleted = ObservedCluster {
        deleting: true,
        ..stopped
    };
    assert_eq!(pause(&deleted), pause_of(PausedWork::Deletion));
    check(
        deleted.clone(),
        wait(Reason::ClusterStopped),
        ClusterPhase::Stopped,
    );
    let resumed = ObservedCluster {
        paused: false,
        ..deleted
    };
    check(
        resumed,
        ClusterStep::DeleteControlPlane,
        ClusterPhase::Destroying,
    );
}
