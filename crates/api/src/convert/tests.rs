#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::cluster::{ClusterPhase, Failures};
use jiff::SignedDuration;
use neap_core::machine::{MachinePhase as CorePhase, Power};
use serde_json::{Value, json};

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn cluster(spec: Value, status: Value) -> Cluster {
    serde_json::from_value(json!({
        "apiVersion": "neap.dev/v1alpha1", "kind": "Cluster",
        "metadata": {
            "name": "web", "namespace": "team", "uid": "c-1",
            "annotations": {"neap.dev/requested-at": "pass 7"},
        },
        "spec": spec, "status": status,
    }))
    .unwrap()
}

fn machine(metadata: Value, status: Value) -> Machine {
    serde_json::from_value(json!({
        "apiVersion": "neap.dev/v1alpha1", "kind": "Machine", "metadata": metadata,
        "spec": {"cluster": "web", "clusterUid": "c-1", "ordinal": 3, "podsPerNode": 5},
        "status": status,
    }))
    .unwrap()
}

fn metadata() -> Value {
    json!({
        "name": "web-node3", "namespace": "team", "uid": "m-1",
        "creationTimestamp": "2026-11-29T12:00:00Z",
    })
}

#[test]
fn an_empty_spec_has_the_default_policy() {
    let policy = cluster(json!({}), json!({})).policy().unwrap();
    assert_eq!(
        policy,
        Policy {
            pods_per_node: 8,
            max_nodes: 1,
            min_nodes: 0,
            hold: SignedDuration::from_mins(2),
            daemon_sets: DaemonSets::Ignore,
            activity: Activity::Scale,
        }
    );
}

#[test]
fn a_policy_is_what_the_spec_says() {
    let scaling = json!({
        "minNodes": 1, "maxNodes": 4, "podsPerNode": 20, "hold": "0s", "daemonSets": "Count",
    });
    let policy = cluster(json!({ "scaling": scaling }), json!({}))
        .policy()
        .unwrap();
    assert_eq!(
        policy,
        Policy {
            pods_per_node: 20,
            max_nodes: 4,
            min_nodes: 1,
            hold: SignedDuration::ZERO,
            daemon_sets: DaemonSets::Count,
            activity: Activity::Scale,
        }
    );
}

#[test]
fn machines_follow_the_work_unless_their_cluster_is_paused_or_stops() {
    let activity = |spec| cluster(spec, json!({})).policy().unwrap().activity;
    assert_eq!(activity(json!({"running": false})), Activity::Empty);
    assert_eq!(activity(json!({"paused": true})), Activity::Pause);
    assert_eq!(
        activity(json!({"running": false, "paused": true})),
        Activity::Pause
    );
}

#[test]
fn a_policy_that_no_schema_checked_is_checked_here() {
    for (scaling, words) in [
        (json!({"hold": "soon"}), "spec.scaling.hold is \"soon\""),
        (json!({"podsPerNode": 0}), "spec.scaling.podsPerNode is 0"),
        (json!({"maxNodes": 0}), "spec.scaling.maxNodes is 0"),
    ] {
        let error = cluster(json!({ "scaling": scaling }), json!({}))
            .policy()
            .unwrap_err();
        assert!(error.to_string().starts_with(words), "{error}");
    }
}

#[test]
fn a_class_is_read_in_thousandths_and_bytes() {
    for (class, cpu_milli, memory_bytes, disk_bytes) in [
        (json!({}), 1000, 1 << 30, 10 << 30),
        (
            json!({"cpu": "500m", "memory": "128Mi", "disk": "256Mi"}),
            500,
            128 << 20,
            256 << 20,
        ),
        (
            json!({"cpu": 2, "memory": "1G"}),
            2000,
            1_000_000_000,
            10 << 30,
        ),
    ] {
        let cluster = cluster(json!({"nodes": {"class": class}}), json!({}));
        assert_eq!(
            cluster.spec.nodes.class.size().unwrap(),
            ClassSize {
                cpu_milli,
                memory_bytes,
                disk_bytes
            }
        );
    }
    let cluster = cluster(json!({"nodes": {"class": {"memory": "much"}}}), json!({}));
    let error = cluster.spec.nodes.class.size().unwrap_err();
    assert_eq!(error.to_string(), "class.memory is \"much\"");
}

#[test]
fn a_new_record_is_pending_and_not_known() {
    let observed = machine(metadata(), Value::Null).observe().unwrap();
    assert_eq!(
        observed,
        ObservedMachine {
            name: MachineName::new("web-node3"),
            uid: MachineUid::new("m-1"),
            ordinal: 3,
            phase: CorePhase::Pending,
            power: Power::Unknown,
            created: time("2026-11-29T12:00:00Z"),
            joined: None,
            idle_since: None,
            pods_per_node: 5,
            resize_failed: false,
            deleting: false,
        }
    );
}

#[test]
fn a_record_is_observed_as_its_status_says() {
    let mut metadata = metadata();
    metadata["deletionTimestamp"] = json!("2026-11-29T12:05:00Z");
    let status = json!({
        "phase": "Releasing", "power": "Error",
        "joined": "2026-11-29T12:00:01Z", "idleSince": "2026-11-29T12:03:00Z",
    });
    let observed = machine(metadata, status).observe().unwrap();
    assert_eq!(observed.phase, CorePhase::Releasing);
    assert_eq!(observed.power, Power::Error);
    assert_eq!(observed.joined, Some(time("2026-11-29T12:00:01Z")));
    assert_eq!(observed.idle_since, Some(time("2026-11-29T12:03:00Z")));
    assert!(observed.deleting);
}

#[test]
fn a_record_without_identity_is_not_observed() {
    for field in ["name", "uid", "creationTimestamp"] {
        let mut metadata = metadata();
        metadata.as_object_mut().unwrap().remove(field);
        let error = machine(metadata, Value::Null).observe().unwrap_err();
        assert!(
            error.to_string().ends_with(&format!("metadata.{field}")),
            "{error}"
        );
    }
}

#[test]
fn phases_are_written_as_they_are_shown() {
    for (phase, text) in [
        (ClusterPhase::Created, "Created"),
        (ClusterPhase::Error, "Error"),
    ] {
        assert_eq!(phase.to_string(), text);
        assert_eq!(serde_json::to_value(phase).unwrap(), text);
        let core: neap_core::lifecycle::ClusterPhase = phase.into();
        assert_eq!(ClusterPhase::from(core), phase);
    }
}

#[test]
fn actions_name_their_machines() {
    for (action, verb, machines) in [
        (
            Action::Provision {
                ordinals: vec![1, 3],
            },
            "Provision",
            &["web-node1", "web-node3"][..],
        ),
        (
            Action::Release {
                machine: MachineName::new("web-node2"),
            },
            "Release",
            &["web-node2"],
        ),
        (
            Action::Teardown {
                machines: vec![MachineName::new("web-node2")],
            },
            "Teardown",
            &["web-node2"],
        ),
        (
            Action::Undo {
                machine: MachineName::new("web-node2"),
            },
            "Undo",
            &["web-node2"],
        ),
    ] {
        let decided = DecidedAction::new(&action, "web");
        assert_eq!(decided.action, verb);
        assert_eq!(decided.machines, machines);
        assert_eq!(decided.reason, None);
    }
}

#[test]
fn an_empty_status_writes_nothing() {
    let status = crate::ClusterStatus {
        provisioning: Some(Failures::default()),
        ..crate::ClusterStatus::default()
    };
    assert_eq!(
        serde_json::to_value(status).unwrap(),
        json!({"provisioning": {"failures": 0}})
    );
    assert_eq!(
        serde_json::to_value(crate::MachineStatus::default()).unwrap(),
        json!({})
    );
}
