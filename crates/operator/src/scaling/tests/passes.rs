//! Passes: what they rest on, and what they lead to.

use super::{World, pod, releasing};
use crate::observe::observe_pod;
use crate::scaling::ScalingLoop;
use crate::scaling::watch::TenantChange;
use crate::view::HubView;
use jiff::{SignedDuration, Timestamp};
use neap_api::Machine;
use neap_api::machine::MachinePhase;
use neap_core::observation::WorkloadKind;
use neap_kube::Change;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;

/// A scaling loop that has heard of these records, and that has listed its
/// tenant with as many pods that wait.
fn scaling(world: &World, waiting: usize, machines: Vec<Machine>) -> ScalingLoop {
    let view = HubView {
        cluster: Arc::new(super::cluster("c")),
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
    let ended = scaling.drivers.ended(|| Timestamp::UNIX_EPOCH).await;
    scaling.observe_end(ended);
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
