#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use serde_json::{Value, json};

fn cluster(status: Value) -> Cluster {
    serde_json::from_value(json!({
        "apiVersion": "neap.dev/v1alpha1", "kind": "Cluster",
        "metadata": {"name": "ci", "namespace": "team", "uid": "u1"},
        "spec": {"scaling": {"maxNodes": 3, "podsPerNode": 1, "hold": "30s"}},
        "status": status,
    }))
    .unwrap()
}

fn machine(ordinal: u32, status: Value) -> Machine {
    serde_json::from_value(json!({
        "apiVersion": "neap.dev/v1alpha1", "kind": "Machine",
        "metadata": {"name": format!("ci-node{ordinal}"), "namespace": "team"},
        "spec": {"cluster": "ci", "clusterUid": "u1", "ordinal": ordinal, "podsPerNode": 1},
        "status": status,
    }))
    .unwrap()
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn said(cluster: &Cluster, machines: &[Machine]) -> String {
    let now = at("2026-01-01T00:00:20Z");
    sentences(&explain(cluster, machines, now), now)
}

#[test]
fn the_hold_says_when_the_nodes_leave() {
    let cluster = cluster(json!({
        "phase": "Running",
        "idleSince": "2026-01-01T00:00:00Z",
        "lastDecision": {
            "time": "2026-01-01T00:00:15Z", "demand": 0, "target": 0, "counted": 1,
            "reason": "Holding", "message": "no work for 15s of the hold of 30s",
        },
    }));
    let running = machine(1, json!({"phase": "Running", "power": "Running"}));
    assert_eq!(
        said(&cluster, &[running]),
        "team/ci is Running.\n\
         \n\
         Decided 5s ago: no work for 15s of the hold of 30s\n\
         \x20 demand 0, target 0, counted 1, reason Holding\n\
         \x20 nothing to do\n\
         \n\
         Machines:\n\
         \x20 ci-node1 is Running, power Running\n\
         \n\
         Next:\n\
         \x20 in 10.0s: if no work has come by then, all nodes leave\n"
    );
}

#[test]
fn an_idle_cluster_at_zero_waits_for_nothing() {
    let cluster = cluster(json!({"phase": "Running", "idleSince": "2026-01-01T00:00:00Z"}));
    assert!(
        said(&cluster, &[]).ends_with("Machines: none\n\nNext: nothing until something changes.\n")
    );
}

#[test]
fn actions_name_their_machines() {
    let cluster = cluster(json!({
        "phase": "Running",
        "lastDecision": {
            "time": "2026-01-01T00:00:15Z", "demand": 2, "target": 2, "counted": 0,
            "reason": "Provision", "message": "2 pods at 1 a node want 2 nodes",
            "actions": [{"action": "Provision", "machines": ["ci-node1", "ci-node2"]}],
        },
    }));
    assert!(said(&cluster, &[]).contains("\n  Provision ci-node1, ci-node2\n"));
}

#[test]
fn the_soonest_comes_first_and_what_is_due_is_now() {
    let cluster = cluster(json!({
        "phase": "Running",
        "provisioning": {"failures": 2, "retryAt": "2026-01-01T00:00:25Z", "message": "no memory left"},
    }));
    let machines = [
        machine(
            1,
            json!({"phase": "Pending", "deadline": "2026-01-01T00:01:00Z"}),
        ),
        machine(
            2,
            json!({"phase": "Draining", "deadline": "2026-01-01T00:00:10Z"}),
        ),
    ];
    let text = said(&cluster, &machines);
    let next: Vec<&str> = text
        .lines()
        .skip_while(|line| *line != "Next:")
        .skip(1)
        .collect();
    assert_eq!(
        next,
        [
            "  now: ci-node2 is removed",
            "  in 5.0s: making machines is tried again after 2 failures in a row: no memory left",
            "  in 40.0s: ci-node1 is given up if its node has not joined by then",
        ]
    );
}

#[test]
fn what_a_tenant_wrote_stays_on_its_line() {
    let cluster = cluster(json!({"phase": "Running"}));
    let text = said(
        &cluster,
        &[machine(
            1,
            json!({"phase": "Running", "message": "a\nNext: b\u{1b}[0m"}),
        )],
    );
    assert!(text.contains("a\\nNext: b\\u{1b}[0m"), "{text}");
}

#[test]
fn a_cluster_without_a_status_is_about_to_start() {
    let mut cluster = cluster(json!({}));
    cluster.status = None;
    let text = said(&cluster, &[]);
    assert!(text.contains("team/ci is Created."), "{text}");
    assert!(text.contains("now: its control plane is started"), "{text}");
}

#[test]
fn the_json_form_has_the_numbers() {
    let cluster = cluster(json!({"phase": "Running", "idleSince": "2026-01-01T00:00:00Z"}));
    let value = serde_json::to_value(explain(
        &cluster,
        &[machine(1, json!({"phase": "Running"}))],
        at("2026-01-01T00:00:20Z"),
    ))
    .unwrap();
    assert_eq!(value.pointer("/next/0/at").unwrap(), "2026-01-01T00:00:30Z");
    assert_eq!(value.pointer("/machines/0/name").unwrap(), "ci-node1");
}

#[test]
fn what_waits_for_its_user_says_for_which_command() {
    let mut stopped = cluster(json!({"phase": "Stopped"}));
    stopped.spec.running = false;
    assert!(said(&stopped, &[]).contains("`neap cluster start ci -n team`"));
    let mut paused = cluster(json!({
        "phase": "Running",
        "conditions": [{
            "type": "Paused", "status": "True", "reason": "ClusterPaused",
            "message": "The cluster is paused: its stop waits until it is resumed.",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }],
    }));
    paused.spec.paused = true;
    let said = said(&paused, &[]);
    assert!(said.contains("its stop waits"), "{said}");
    assert!(said.contains("`neap cluster resume ci -n team`"), "{said}");
}
