//! Passes: what they rest on, and what they lead to.

use super::{World, pod, releasing};
use crate::observe::observe_pod;
use crate::scaling::ScalingLoop;
use crate::scaling::watch::TenantChange;
use crate::view::HubView;
use jiff::{SignedDuration, Timestamp};
use neap_api::machine::{MachinePhase, PowerState};
use neap_api::{Cluster, Machine};
use neap_core::machine::Power;
use neap_core::observation::WorkloadKind;
use neap_kube::Change;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;

/// A scaling loop that has heard of these records, and that has listed its
/// tenant with as many pods that wait.
fn scaling(world: &World, waiting: usize, machines: Vec<Machine>) -> ScalingLoop {
    scaling_of(super::cluster("c"), world, waiting, machines)
}

pub(super) fn scaling_of(
    cluster: Cluster,
    world: &World,
    waiting: usize,
    machines: Vec<Machine>,
) -> ScalingLoop {
    let view = HubView {
        cluster: Arc::new(cluster),
        machines: machines
            .into_iter()
            .map(|machine| (machine.machine_name(), Arc::new(machine)))
            .collect(),
        unreadable: None,
        power_changes: BTreeMap::new(),
    };
    let mut scaling = ScalingLoop::new(world.actor(), watch::channel(view).1);
    let pods = (0..waiting).map(|number| {
        let mut pod = pod(&format!("p{number}"), false);
        pod["spec"]["nodeName"] = json!(null);
        observe_pod(&serde_json::from_value(pod).unwrap())
    });
    scaling
        .tenant
        .observe(TenantChange::Pods(Change::Reset(pods.collect())));
    scaling
        .tenant
        .observe(TenantChange::Nodes(Change::Reset(vec![])));
    for kind in [
        WorkloadKind::Job,
        WorkloadKind::Deployment,
        WorkloadKind::StatefulSet,
        WorkloadKind::ReplicaSet,
        WorkloadKind::DaemonSet,
    ] {
        scaling
            .tenant
            .observe(TenantChange::Workloads(kind, Change::Reset(vec![])));
    }
    scaling.observe_hub();
    scaling
}

/// A machine that the provider is making.
fn pending() -> Machine {
    let mut machine = releasing();
    let status = machine.status.as_mut().unwrap();
    status.phase = Some(MachinePhase::Pending);
    status.joined = None;
    machine
}

fn with_power(machine: Machine, power: PowerState) -> Machine {
    let mut machine = machine;
    machine.status.as_mut().unwrap().power = Some(power);
    machine
}

/// Waits for the end of one task, and takes it in.
pub(super) async fn end_of_task(scaling: &mut ScalingLoop) {
    let ended = scaling.drivers.ended(|| Timestamp::UNIX_EPOCH).await;
    scaling.observe_end(ended);
}

#[tokio::test]
async fn pod_that_waits_has_a_record_made_after_a_live_look_at_the_hub() {
    let world = World::default();
    scaling(&world, 1, vec![]).pass().await.unwrap();
    assert_eq!(world.log(), ["tell True", "list Machines", "make c-node1"]);
}

#[tokio::test]
async fn record_that_the_watch_has_not_told_yet_is_not_made_twice() {
    let world = World::default();
    world.machines.lock().unwrap().push(pending());
    let mut scaling = scaling(&world, 1, vec![]);
    scaling.pass_and_pace().await;
    assert_eq!(world.log(), ["tell True", "list Machines"]);
    assert!(scaling.pending, "it is decided again");
}

#[tokio::test]
async fn same_pass_twice_writes_once() {
    let world = World::default();
    let mut scaling = scaling(&world, 0, vec![]);
    scaling.pass().await.unwrap();
    scaling.pass().await.unwrap();
    assert_eq!(world.log(), ["tell True"]);
}

#[tokio::test]
async fn nothing_is_made_on_a_list_that_failed_and_that_is_told_once() {
    let world = World::default();
    let mut scaling = scaling(&world, 1, vec![]);
    scaling
        .tenant
        .observe(TenantChange::Nodes(Change::Broken("refused".into())));
    scaling.unreadable_since = Some(Timestamp::UNIX_EPOCH - SignedDuration::from_secs(5));
    scaling.pass().await.unwrap();
    scaling.pass().await.unwrap();
    assert_eq!(world.log(), ["tell False"]);
    scaling
        .tenant
        .observe(TenantChange::Nodes(Change::Reset(vec![])));
    scaling.pass().await.unwrap();
    assert_eq!(
        world.log(),
        ["tell False", "tell True", "list Machines", "make c-node1"]
    );
}

#[tokio::test]
async fn list_that_is_missing_for_a_moment_is_not_worth_a_word() {
    let world = World::default();
    let mut scaling = scaling(&world, 1, vec![]);
    scaling
        .tenant
        .observe(TenantChange::Nodes(Change::Broken("refused".into())));
    scaling.unreadable_since = Some(Timestamp::UNIX_EPOCH);
    scaling.pass().await.unwrap();
    assert!(world.log().is_empty());
    assert!(scaling.next.is_some(), "it is looked at again");
}

#[tokio::test]
async fn nothing_is_begun_with_a_machine_while_nothing_can_be_read() {
    let world = World::default();
    let mut scaling = scaling(&world, 1, vec![pending()]);
    scaling
        .tenant
        .observe(TenantChange::Nodes(Change::Broken("refused".into())));
    // The provider is asked; that it has none leads to no machine.
    scaling.take_steps();
    end_of_task(&mut scaling).await;
    let uid = pending().machine_uid().unwrap();
    scaling.take_steps();
    assert!(!scaling.drivers.is_busy(&uid));
    // With the list it is made.
    scaling
        .tenant
        .observe(TenantChange::Nodes(Change::Reset(vec![])));
    scaling.take_steps();
    assert!(scaling.drivers.is_busy(&uid));
}

#[tokio::test]
async fn removal_that_failed_is_tried_again_when_its_wait_is_over() {
    let world = World::default().with_power(Power::Error);
    *world.refusals.lock().unwrap() = 1;
    let lost = with_power(releasing(), PowerState::Error);
    let mut scaling = scaling(&world, 0, vec![lost]);
    scaling.pass().await.unwrap();
    end_of_task(&mut scaling).await;
    scaling.pass().await.unwrap();
    assert!(!scaling.drivers.is_busy(&releasing().machine_uid().unwrap()));
    let second = SignedDuration::from_secs(1);
    assert_eq!(scaling.next, Some(Timestamp::UNIX_EPOCH + second));
}

#[tokio::test]
async fn nothing_is_made_before_the_removal_of_what_never_came_up_has_led_to_its_backoff() {
    let world = World::default().with_power(Power::Error);
    let mut cluster = super::cluster("c");
    cluster.spec.scaling.max_nodes = 2;
    let lost = with_power(pending(), PowerState::Error);
    let mut scaling = scaling_of(cluster, &world, 1, vec![lost]);
    scaling.pass().await.unwrap();
    // The watch is faster than the task.
    let mut draining = pending();
    draining.metadata.resource_version = Some("2".into());
    draining.status.as_mut().unwrap().phase = Some(MachinePhase::Draining);
    world.machines.lock().unwrap().push(draining.clone());
    scaling.records.wrote(draining);
    scaling.pass().await.unwrap();
    end_of_task(&mut scaling).await;
    scaling.pass().await.unwrap();
    assert!(scaling.status.retry_at().is_some());
    assert!(!world.log().iter().any(|line| line.starts_with("make")));
}

#[tokio::test]
async fn record_that_somebody_else_holds_is_let_go_once() {
    let world = World::default();
    let mut draining = releasing();
    draining.status.as_mut().unwrap().phase = Some(MachinePhase::Draining);
    let uid = draining.machine_uid().unwrap();
    let mut scaling = scaling(&world, 1, vec![draining]);
    scaling.take_steps();
    end_of_task(&mut scaling).await;
    assert!(world.log().iter().any(|line| line == "let Machine go"));
    scaling.take_steps();
    assert!(!scaling.drivers.is_busy(&uid));
    // It holds its place under MaxNodes until it is gone.
    scaling.pass().await.unwrap();
    assert!(!world.log().iter().any(|line| line.starts_with("make")));
}
