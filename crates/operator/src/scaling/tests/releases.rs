//! Releases: their order, and what takes them back.

use super::{World, node, pod, releasing};
use crate::scaling::actor::Milestone;
use neap_api::machine::MachinePhase;
use neap_core::reason::Reason;
use serde_json::json;
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn release_closes_its_race_in_the_agreed_order() {
    let world = World::default()
        .with_node(node())
        .with_pods([vec![pod("d", true)], vec![pod("d", true)]]);
    let outcome = world.release().await;
    assert_eq!(
        world.log(),
        [
            "read Node",
            "cordon",
            "settle 1s",
            "list pods",
            "stop kubelet",
            "list pods",
            "write Draining"
        ]
    );
    assert_eq!(outcome.record.unwrap().phase(), MachinePhase::Draining);
}

#[tokio::test]
async fn pod_that_arrives_before_the_kubelet_stops_undoes_the_release() {
    let world = World::default()
        .with_node(node())
        .with_pods([vec![pod("p", false)]]);
    let outcome = world.release().await;
    assert_eq!(
        world.log(),
        [
            "read Node",
            "cordon",
            "settle 1s",
            "list pods",
            "start kubelet",
            "read Node",
            "uncordon",
            "write Running"
        ]
    );
    assert!(matches!(
        outcome.milestone,
        Some(Milestone::TakenBack(Reason::PodArrived { .. }))
    ));
}

#[tokio::test]
async fn pod_that_arrives_while_the_kubelet_stops_undoes_the_release() {
    let world = World::default()
        .with_node(node())
        .with_pods([vec![], vec![pod("p", false)]]);
    world.release().await;
    let log = world.log();
    assert_eq!(
        log[4..],
        [
            "stop kubelet",
            "list pods",
            "start kubelet",
            "read Node",
            "uncordon",
            "write Running"
        ]
    );
}

#[tokio::test]
async fn machine_without_a_node_begins_at_the_stop_of_the_kubelet() {
    let world = World::default();
    world.release().await;
    assert_eq!(
        world.log(),
        ["read Node", "stop kubelet", "list pods", "write Draining"]
    );
}

#[tokio::test]
async fn release_that_is_taken_back_goes_no_further() {
    let world = World::default().with_node(node());
    let undo = CancellationToken::new();
    undo.cancel();
    let actor = world.actor();
    let outcome = actor.release(&releasing(), &undo).await.unwrap();
    assert!(!world.log().iter().any(|line| line == "stop kubelet"));
    assert_eq!(outcome.record.unwrap().phase(), MachinePhase::Running);
}

#[tokio::test]
async fn cordon_of_its_user_stays_when_a_release_is_undone() {
    let mut cordoned = node();
    cordoned["spec"]["unschedulable"] = json!(true);
    let world = World::default()
        .with_node(cordoned)
        .with_pods([vec![pod("p", false)]]);
    world.release().await;
    assert!(!world.log().iter().any(|line| line.ends_with("cordon")));
}
