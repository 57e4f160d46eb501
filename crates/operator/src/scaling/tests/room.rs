//! Room for more pods on machines that work.

use super::passes::{end_of_task, scaling_of};
use super::{World, running};
use jiff::Timestamp;
use neap_core::machine::Power;
use serde_json::json;

#[tokio::test]
async fn more_room_is_made_before_the_record_says_so() {
    let world = World::default().with_power(Power::Running);
    let outcome = world.actor().resize(&running(), 16, 2).await.unwrap();
    assert_eq!(world.log(), ["room for 18", r#"record {"podsPerNode":16}"#]);
    assert_eq!(outcome.record.unwrap().spec.pods_per_node, 16);
}

#[tokio::test]
async fn room_that_could_not_be_made_is_remembered_and_tried_again_later() {
    let world = World::default();
    let outcome = world.actor().resize(&running(), 16, 0).await.unwrap();
    assert_eq!(world.log(), ["room for 16", "write Running"]);
    let record = outcome.record.unwrap();
    assert_eq!(record.spec.pods_per_node, 1);
    let failed = record.status.as_ref().unwrap().resizing.clone().unwrap();
    assert_eq!(failed.failures, 1);
    assert_eq!(
        failed.retry_at,
        Some(Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_secs(1))
    );
    assert!(failed.message.unwrap().contains("does not run"));
    assert!(record.observe().unwrap().resize_failed);
    // The second failure waits longer.
    let mut machine = running();
    machine.status = record.status;
    let outcome = world.actor().resize(&machine, 16, 0).await.unwrap();
    let status = outcome.record.unwrap().status.unwrap();
    assert_eq!(status.resizing.unwrap().failures, 2);
}

#[tokio::test]
async fn success_takes_the_failures_off_the_record_first() {
    let world = World::default().with_power(Power::Running);
    let mut machine = running();
    machine.status.as_mut().unwrap().resizing = Some(Default::default());
    world.actor().resize(&machine, 16, 0).await.unwrap();
    assert_eq!(
        world.log(),
        [
            "room for 16",
            "write Running",
            r#"record {"podsPerNode":16}"#
        ]
    );
}

/// Takes the steps of a running machine whose Cluster wants so many pods on it.
async fn steps(world: &World, pods_per_node: u32) {
    let mut cluster = super::cluster("c");
    cluster.spec.scaling.pods_per_node = pods_per_node;
    let mut machine = running();
    let unready = json!({
        "type": "Ready", "status": "False", "reason": "NodeNotReady", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    machine.status.as_mut().unwrap().conditions = vec![serde_json::from_value(unready).unwrap()];
    let mut scaling = scaling_of(cluster, world, 0, vec![machine.clone()]);
    for _ in 0..4 {
        scaling.take_steps();
        if scaling.drivers.is_busy(&machine.machine_uid().unwrap()) {
            end_of_task(&mut scaling).await;
        }
    }
}

#[tokio::test]
async fn machine_is_given_more_room_when_its_cluster_says_so_and_once() {
    let world = World::default().with_power(Power::Running);
    steps(&world, 1).await;
    assert!(world.log().is_empty());
    steps(&world, 5).await;
    let resized = ["room for 5", r#"record {"podsPerNode":5}"#];
    assert_eq!(world.log(), resized);
}
