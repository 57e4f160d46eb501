//! What people are told.

use crate::world::{NOW, World, at, machine_name, running, waiting};
use jiff::SignedDuration;
use neap_core::ids::{MachineUid, NodeName, ObjectKey};
use neap_core::machine::Power;
use neap_core::reason::{PausedWork, Reason, event};
use neap_core::scale::Decision;
use std::collections::BTreeSet;

/// Each reason once, with its sentence.
fn all() -> Vec<(Reason, &'static str)> {
    let machine = machine_name(1);
    let pod = ObjectKey::new("ci", "build");
    let (since, until) = (at(0), at(120));
    vec![
        (
            Reason::ControlPlaneHung { since },
            "The control plane has not answered since 2027-01-15T08:00:00Z, and is ended and started again.",
        ),
        (
            Reason::ClusterPaused {
                waiting: PausedWork::Deletion,
            },
            "The cluster is paused: its deletion waits until it is resumed.",
        ),
        (
            Reason::ClusterStopping { machines: 2 },
            "The cluster stops: 2 machines have to go before the control plane.",
        ),
        (
            Reason::ClusterStopped,
            "The cluster is stopped: nothing of it runs, and its data is kept.",
        ),
        (
            Reason::StoppedWithCluster {
                machine: machine.clone(),
            },
            "web-node1 goes because its cluster stops.",
        ),
        (
            Reason::NoWork { counted: 0 },
            "There is no work and no node.",
        ),
        (
            Reason::Served {
                demand: 9,
                counted: 2,
            },
            "2 nodes are enough for 9 pods.",
        ),
        (
            Reason::MaxNodesReached {
                demand: 100,
                wanted: 13,
                max_nodes: 4,
            },
            "100 pods would fill 13 nodes, but MaxNodes is 4.",
        ),
        (
            Reason::PlacesTaken {
                missing: 1,
                records: 1,
                max_nodes: 1,
            },
            "1 node is missing, but 1 machine takes up the 1 of MaxNodes until those that leave are gone.",
        ),
        (
            Reason::OrdinalsTaken {
                missing: 2,
                highest: 240,
            },
            "2 nodes are missing, but no name from node1 to node240 is free.",
        ),
        (
            Reason::BackingOff {
                missing: 1,
                retry_at: until,
            },
            "1 node is missing, but making machines failed; the next try is at 2027-01-15T08:02:00Z.",
        ),
        (
            Reason::AwaitingHold {
                since,
                until,
                leaving: 2,
            },
            "There has been no work since 2027-01-15T08:00:00Z; 2 nodes leave at 2027-01-15T08:02:00Z, when the hold is over.",
        ),
        (
            Reason::AwaitingIdleHold {
                machine: machine.clone(),
                until,
                counted: 2,
                target: 1,
            },
            "2 nodes are there and 1 wanted; web-node1 is idle and leaves at 2027-01-15T08:02:00Z, when its hold is over.",
        ),
        (
            Reason::AwaitingReleaseHold {
                last_release: since,
                until,
                counted: 3,
                target: 1,
            },
            "3 nodes are there and 1 wanted; one leaves in a hold, the last at 2027-01-15T08:00:00Z, the next at 2027-01-15T08:02:00Z.",
        ),
        (
            Reason::NoIdleNode {
                counted: 2,
                target: 1,
            },
            "2 nodes are there and 1 wanted, but none is idle.",
        ),
        (
            Reason::NodesComing {
                coming: 1,
                counted: 3,
            },
            "1 of 3 nodes is on the way.",
        ),
        (
            Reason::AwaitingJoin {
                joined: 1,
                counted: 2,
                target: 1,
            },
            "2 nodes are there and 1 wanted, but only 1 has joined; none leaves before more have.",
        ),
        (
            Reason::ForeignRecord {
                node: NodeName::new("web-node7"),
                machine: MachineUid::new("u7"),
            },
            "Node web-node7 says that it is machine u7, which has no record; nothing is made or removed. A machine that is still there is kept: the way out is to delete the cluster, which ends it too.",
        ),
        (
            Reason::ScaleUp {
                demand: 17,
                pods_per_node: 8,
                wanted: 3,
                target: 3,
                counted: 1,
                new: 2,
            },
            "17 pods at 8 a node fill 3 nodes; 1 is there, so 2 are made.",
        ),
        (
            Reason::WorkCameBack {
                target: 1,
                counted: 0,
                undone: 1,
            },
            "1 node is wanted and 0 are there, so 1 that was leaving is taken back.",
        ),
        (
            Reason::NodeIdle {
                machine: machine.clone(),
                since,
                counted: 2,
                target: 1,
            },
            "web-node1 has held no work since 2027-01-15T08:00:00Z, and 2 nodes are there where 1 is wanted.",
        ),
        (
            Reason::WorkEnded {
                since,
                hold: SignedDuration::from_secs(120),
                leaving: 2,
                staying: 0,
            },
            "There has been no work since 2027-01-15T08:00:00Z, longer than the hold of 2m: 2 nodes leave, 0 stay.",
        ),
        (
            Reason::MachineLost {
                machine: machine.clone(),
                power: Power::Error,
            },
            "web-node1 is in state Error and does not come back.",
        ),
        (
            Reason::LostBeforeJoin {
                machine: machine.clone(),
                power: Power::Error,
            },
            "web-node1 went into state Error before its node was ready.",
        ),
        (
            Reason::JoinDeadlinePassed {
                machine: machine.clone(),
                created: since,
                deadline: SignedDuration::from_secs(60),
            },
            "The node of web-node1, made at 2027-01-15T08:00:00Z, was not ready within 1m.",
        ),
        (
            Reason::NodeVanished {
                machine: machine.clone(),
            },
            "The node of web-node1 was deleted.",
        ),
        (
            Reason::StoppedWithoutWork {
                machine: machine.clone(),
                power: Power::Stopped,
                since,
            },
            "web-node1 is in state Stopped, and there has been no work since 2027-01-15T08:00:00Z, longer than the hold.",
        ),
        (
            Reason::PlaceNeeded {
                machine: machine.clone(),
                power: Power::Shutdown,
                max_nodes: 1,
            },
            "web-node1 is in state Shutdown, and work needs its place: MaxNodes is 1.",
        ),
        (
            Reason::StoppedWhileLeaving {
                machine: machine.clone(),
                power: Power::Stopped,
            },
            "web-node1 went into state Stopped while it was leaving.",
        ),
        (
            Reason::PodArrived {
                machine: machine.clone(),
                pod: pod.clone(),
            },
            "web-node1 stays: pod ci/build came to it while it was leaving.",
        ),
        (
            Reason::PodLateBound {
                machine: machine.clone(),
                pod: pod.clone(),
            },
            "Pod ci/build was bound to web-node1 after that had left, and never started.",
        ),
        (
            Reason::PodLost {
                machine: machine.clone(),
                pod,
            },
            "Pod ci/build is lost with web-node1.",
        ),
        (
            Reason::RoomGrown {
                machine: machine.clone(),
                pods_per_node: 16,
            },
            "web-node1 has room for 16 pods now.",
        ),
        (
            Reason::DeletedByUser { machine },
            "web-node1 was deleted by its user.",
        ),
        (
            Reason::VersionNotBuilt {
                version: "1.30".into(),
                built: vec!["1.36".into(), "1.37".into()],
            },
            "Kubernetes 1.30 is not built on this machine, where there is 1.36 and 1.37; nothing is started. Make a cluster of a version that there is.",
        ),
        (
            Reason::ControlPlaneStarting { since },
            "The control plane was started at 2027-01-15T08:00:00Z and does not answer yet.",
        ),
        (Reason::ApiNotReady, "The API answers and is not ready yet."),
        (
            Reason::ServiceAccountMissing,
            "The API is ready; the default ServiceAccount is not there yet.",
        ),
        (
            Reason::ControlPlaneFailed {
                how: "signal 9".into(),
                failures: 2,
                retry_at: until,
            },
            "The control plane failed 2 times, last with: signal 9; the next try is at 2027-01-15T08:02:00Z.",
        ),
        (Reason::ControlPlaneReady, "The API answers and takes pods."),
        (
            Reason::MachinesLeft { machines: 1 },
            "1 machine has to go before the control plane.",
        ),
        (Reason::NothingLeft, "Nothing of the cluster is left."),
    ]
}

#[test]
fn each_reason_has_its_sentence() {
    for (reason, sentence) in all() {
        assert_eq!(reason.to_string(), sentence);
    }
}

#[test]
fn a_cluster_whose_machines_are_gone_says_what_goes_next() {
    assert_eq!(
        Reason::MachinesLeft { machines: 0 }.to_string(),
        "No machine is left; the control plane goes."
    );
}

#[test]
fn the_minimum_is_told_apart_from_nothing() {
    let sentence = |counted| Reason::NoWork { counted }.to_string();
    assert_eq!(
        sentence(1),
        "There is no work; 1 node stays as the minimum."
    );
    assert_eq!(
        sentence(2),
        "There is no work; 2 nodes stay as the minimum."
    );
}

#[test]
fn a_limit_that_changes_the_number_is_told() {
    let limited = World::new().pods_per_node(8).max_nodes(4);
    let limited = limited.pods(100, waiting()).decide();
    assert_eq!(
        limited.reason.to_string(),
        "100 pods at 8 a node fill 13 nodes, MaxNodes allows 4; 0 are there, so 4 are made."
    );
    let least = World::new().min_nodes(2).pods(1, waiting()).decide();
    assert_eq!(
        least.reason.to_string(),
        "1 pod at 1 a node fills 1 node, MinNodes keeps 2; 0 are there, so 2 are made."
    );
}

#[test]
fn the_code_is_the_stored_tag_and_no_two_are_alike() {
    let mut codes = BTreeSet::new();
    for (reason, _) in all() {
        let stored = serde_json::to_value(&reason).unwrap();
        assert_eq!(stored.get("code").unwrap(), reason.code());
        assert!(codes.insert(reason.code()), "{} twice", reason.code());
    }
}

#[test]
fn a_reason_is_read_back_as_it_was_stored() {
    for (reason, _) in all() {
        let stored = serde_json::to_string(&reason).unwrap();
        assert_eq!(serde_json::from_str::<Reason>(&stored).unwrap(), reason);
    }
}

#[test]
fn a_decision_is_stored_with_its_version_and_read_back() {
    let world = World::new().pods(2, waiting()).machine(running(1));
    let decision = world.decide();
    let stored = serde_json::to_value(&decision).unwrap();
    let expected = serde_json::json!({
        "version": 1,
        "demand": 2,
        "target": 2,
        "counted": 1,
        "actions": [{"action": "Provision", "ordinals": [2]}],
        "reason": {
            "code": "ScaleUp", "demand": 2, "podsPerNode": 1,
            "wanted": 2, "target": 2, "counted": 1, "new": 1,
        },
        "remember": {
            "idle_since": null,
            "machines": {"web-node1": at(NOW).to_string()},
        },
        "next": null,
    });
    assert_eq!(stored, expected);
    assert_eq!(
        serde_json::from_value::<Decision>(stored).unwrap(),
        decision
    );
}

#[test]
fn events_bear_the_names_that_dashboards_know() {
    let table = [
        (
            "ScaleUp",
            event::SCALED_UP_GROUP,
            Some(event::TRIGGERED_SCALE_UP),
            false,
        ),
        (
            "WorkCameBack",
            "WorkCameBack",
            Some(event::TRIGGERED_SCALE_UP),
            false,
        ),
        (
            "MaxNodesReached",
            event::MAX_NODES_TOTAL_REACHED,
            Some(event::NOT_TRIGGER_SCALE_UP),
            true,
        ),
        (
            "BackingOff",
            "BackingOff",
            Some(event::NOT_TRIGGER_SCALE_UP),
            true,
        ),
        (
            "PlacesTaken",
            "PlacesTaken",
            Some(event::NOT_TRIGGER_SCALE_UP),
            false,
        ),
        ("WorkEnded", event::SCALE_DOWN_EMPTY, None, false),
        ("NodeIdle", event::SCALE_DOWN_EMPTY, None, false),
        ("MachineLost", event::SCALE_DOWN, None, true),
        ("JoinDeadlinePassed", event::SCALE_UP_TIMED_OUT, None, true),
        (
            "LostBeforeJoin",
            event::FAILED_TO_SCALE_UP_GROUP,
            None,
            true,
        ),
        ("PodArrived", event::SCALE_DOWN_FAILED, None, false),
        ("Served", "Served", None, false),
    ];
    for (code, on_cluster, on_pod, warning) in table {
        let reasons = all();
        let (reason, _) = reasons
            .iter()
            .find(|(reason, _)| reason.code() == code)
            .unwrap();
        assert_eq!(reason.cluster_event(), on_cluster, "{code}");
        assert_eq!(reason.waiting_pod_event(), on_pod, "{code}");
        assert_eq!(reason.is_warning(), warning, "{code}");
    }
}

#[test]
fn work_that_waits_for_max_nodes_is_told_apart() {
    let at_max: Vec<_> = all()
        .into_iter()
        .map(|(reason, _)| reason)
        .filter(Reason::is_at_max)
        .collect();
    let codes: Vec<_> = at_max.iter().map(Reason::code).collect();
    assert_eq!(codes, ["MaxNodesReached", "PlacesTaken"]);
}
