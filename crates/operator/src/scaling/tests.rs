//! What an actor does, in which order: against a server and a provider that
//! write down what they are asked.

#![expect(clippy::unwrap_used, reason = "tests")]

mod passes;
mod releases;
mod room;

use super::actor::{Actor, Milestone, Outcome};
use crate::calls::Calls;
use crate::observe::observe_node;
use crate::operator::tests::{cluster, context, machine};
use crate::traits::{
    Clock, ListMachinesError, MachineError, MachinePlan, NodeProvider, ProvidedMachine,
};
use crate::view::ClusterId;
use async_trait::async_trait;
use http::{Request, Response};
use jiff::Timestamp;
use kube::client::Body;
use neap_api::Machine;
use neap_api::machine::{MachinePhase, MachineStatus, PowerState};
use neap_core::ids::{ClusterUid, InstallationId, MachineName, MachineUid};
use neap_core::machine::Power;
use neap_core::reason::Reason;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// What is in the tenant, and all that was asked of anybody.
#[derive(Clone, Default)]
struct World {
    log: Arc<Mutex<Vec<String>>>,
    node: Arc<Mutex<Option<Value>>>,
    /// What each list of pods shows, in turn; afterwards nothing.
    pods: Arc<Mutex<VecDeque<Vec<Value>>>>,
    power: Arc<Mutex<Option<Power>>>,
    /// The Machine records that a live list of the hub shows.
    machines: Arc<Mutex<Vec<Machine>>>,
    /// How many of the next writes of a Machine's status fail.
    refusals: Arc<Mutex<u32>>,
}

impl World {
    fn note(&self, line: impl Into<String>) {
        self.log.lock().unwrap().push(line.into());
    }

    fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    fn with_node(self, node: Value) -> Self {
        *self.node.lock().unwrap() = Some(node);
        self
    }

    fn with_pods(self, lists: impl IntoIterator<Item = Vec<Value>>) -> Self {
        self.pods.lock().unwrap().extend(lists);
        self
    }

    fn with_power(self, power: Power) -> Self {
        *self.power.lock().unwrap() = Some(power);
        self
    }

    fn client(&self) -> kube::Client {
        let world = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let world = world.clone();
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect_bytes().await?;
                let sent = serde_json::from_slice(&body).unwrap_or(Value::Null);
                let (code, answer) = world.answer(parts.method.as_str(), parts.uri.path(), &sent);
                let answer = Body::from(answer.to_string().into_bytes());
                Ok::<_, kube::Error>(Response::builder().status(code).body(answer).unwrap())
            }
        });
        kube::Client::new(service, "default")
    }

    fn answer(&self, method: &str, path: &str, sent: &Value) -> (u16, Value) {
        if path.contains("/events") {
            return (201, sent.clone());
        }
        let missing = json!({"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound", "message": ""});
        let mut node = self.node.lock().unwrap();
        match (method, path) {
            ("GET", "/api/v1/nodes/c-node1") => {
                self.note("read Node");
                node.clone().map_or((404, missing), |node| (200, node))
            }
            ("PATCH", "/api/v1/nodes/c-node1") => {
                assert_eq!(
                    sent["metadata"]["resourceVersion"], "7",
                    "its user may cordon it at the same time"
                );
                self.note(match sent["spec"]["unschedulable"] {
                    Value::Bool(true) => "cordon",
                    _ => "uncordon",
                });
                let node = node.as_mut().unwrap();
                assert_eq!(sent["metadata"]["uid"], node["metadata"]["uid"]);
                node["spec"]["unschedulable"] = sent["spec"]["unschedulable"].clone();
                node["metadata"]["annotations"] = sent["metadata"]["annotations"].clone();
                let by = &mut node["metadata"]["annotations"];
                by.as_object_mut()
                    .unwrap()
                    .retain(|_, value| !value.is_null());
                (200, node.clone())
            }
            ("DELETE", "/api/v1/nodes/c-node1") => {
                assert_eq!(sent["preconditions"]["uid"], "n1");
                self.note("delete Node");
                (200, node.take().unwrap())
            }
            ("GET", "/api/v1/pods") => {
                self.note("list pods");
                let items = self.pods.lock().unwrap().pop_front().unwrap_or_default();
                (
                    200,
                    json!({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}),
                )
            }
            ("PATCH", path) if path.ends_with("/status") && path.contains("/pods/") => {
                assert_eq!(sent["status"]["conditions"][0]["type"], "DisruptionTarget");
                self.note(format!(
                    "{} {}",
                    sent["status"]["phase"].as_str().unwrap(),
                    name_in(path)
                ));
                (200, pod(&name_in(path), false))
            }
            ("DELETE", path) if path.contains("/pods/") => {
                assert_eq!(sent["gracePeriodSeconds"], 0);
                self.note(format!(
                    "delete {} {}",
                    name_in(path),
                    sent["preconditions"]["uid"].as_str().unwrap()
                ));
                (200, pod(&name_in(path), false))
            }
            ("PATCH", path) if path.ends_with("/machines/c-node1/status") => {
                assert_eq!(
                    sent["metadata"]["resourceVersion"], "1",
                    "a write rests on what was read"
                );
                self.note(format!(
                    "write {}",
                    sent["status"]["phase"].as_str().unwrap()
                ));
                let mut refusals = self.refusals.lock().unwrap();
                if *refusals > 0 {
                    *refusals -= 1;
                    let failure = json!({"kind": "Status", "status": "Failure", "code": 500, "reason": "InternalError", "message": ""});
                    return (500, failure);
                }
                let mut written = serde_json::to_value(releasing()).unwrap();
                written["status"] = sent["status"].clone();
                (200, written)
            }
            ("DELETE", path) if path.ends_with("/machines/c-node1") => {
                self.note("delete Machine");
                (200, serde_json::to_value(releasing()).unwrap())
            }
            ("PATCH", path) if path.ends_with("/machines/c-node1") && sent["spec"].is_object() => {
                assert_eq!(sent["metadata"]["resourceVersion"], "1");
                assert_eq!(sent["metadata"]["uid"], "m1");
                self.note(format!("record {}", sent["spec"]));
                let mut written = serde_json::to_value(running()).unwrap();
                written["metadata"]["resourceVersion"] = json!("2");
                written["spec"]["podsPerNode"] = sent["spec"]["podsPerNode"].clone();
                (200, written)
            }
            ("PATCH", path) if path.ends_with("/machines/c-node1") => {
                self.note("let Machine go");
                (200, serde_json::to_value(releasing()).unwrap())
            }
            ("GET", path) if path.ends_with("/machines") => {
                self.note("list Machines");
                let items = self.machines.lock().unwrap().clone();
                (
                    200,
                    json!({"kind": "MachineList", "apiVersion": "neap.dev/v1alpha1", "metadata": {}, "items": items}),
                )
            }
            ("POST", path) if path.ends_with("/machines") => {
                self.note(format!(
                    "make {}",
                    sent["metadata"]["name"].as_str().unwrap()
                ));
                (201, sent.clone())
            }
            ("PATCH", path) if path.ends_with("/clusters/c/status") => {
                self.note(format!(
                    "tell {}",
                    sent["status"]["conditions"][0]["status"].as_str().unwrap()
                ));
                (200, serde_json::to_value(cluster("c")).unwrap())
            }
            _ => panic!("unexpected {method} {path}"),
        }
    }

    fn actor(&self) -> Actor {
        let clock: Arc<dyn Clock> = Arc::new(self.clone());
        let context = context(self.client(), Arc::new(self.clone()), Arc::clone(&clock));
        let id = ClusterId {
            uid: ClusterUid::new("c"),
            account: "default".into(),
            name: "c".into(),
        };
        Actor::new(
            Arc::new(context),
            id,
            self.client(),
            Calls::new(clock, CancellationToken::new()),
        )
    }

    async fn release(&self) -> Outcome {
        self.actor()
            .release(&releasing(), &CancellationToken::new())
            .await
            .unwrap()
    }
}

/// The settle is over at once; no deadline ever comes.
#[async_trait]
impl Clock for World {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
    async fn sleep(&self, duration: Duration) {
        if duration > Duration::from_secs(5) {
            std::future::pending::<()>().await;
        }
        self.note(format!("settle {duration:?}"));
    }
}

#[async_trait]
impl NodeProvider for World {
    async fn create(&self, _: &MachinePlan) -> Result<(), MachineError> {
        self.note("create");
        Ok(())
    }
    fn shares_kernel(&self) -> bool {
        true
    }

    fn unbounded_disk(&self, _: &ClusterUid, _: &MachineUid) -> Option<String> {
        None
    }
    async fn observe(&self, machine: &MachineUid) -> Result<Option<ProvidedMachine>, MachineError> {
        let power = *self.power.lock().unwrap();
        let cluster = ClusterUid::new("c");
        Ok(power.map(|power| ProvidedMachine {
            machine: machine.clone(),
            cluster,
            power,
            message: None,
        }))
    }
    async fn list(&self, cluster: &ClusterUid) -> Result<Vec<ProvidedMachine>, ListMachinesError> {
        Ok(self
            .observe(&MachineUid::new("m1"))
            .await
            .unwrap()
            .into_iter()
            .filter(|found| found.cluster == *cluster)
            .collect())
    }
    async fn stop_kubelet(&self, _: &MachineUid) -> Result<(), MachineError> {
        self.note("stop kubelet");
        Ok(())
    }
    async fn start_kubelet(&self, _: &MachineUid) -> Result<(), MachineError> {
        self.note("start kubelet");
        Ok(())
    }
    async fn set_max_pods(&self, machine: &MachineUid, pods: u32) -> Result<(), MachineError> {
        self.note(format!("room for {pods}"));
        if *self.power.lock().unwrap() == Some(Power::Running) {
            return Ok(());
        }
        Err(MachineError {
            operation: "resize",
            machine: machine.clone(),
            source: "its process does not run".into(),
        })
    }
    async fn delete(&self, _: &MachineUid) -> Result<(), MachineError> {
        self.note("delete machine");
        *self.power.lock().unwrap() = None;
        Ok(())
    }
    fn changes(&self) -> mpsc::Receiver<MachineUid> {
        mpsc::channel(1).1
    }
}

fn name_in(path: &str) -> String {
    path.trim_end_matches("/status")
        .rsplit('/')
        .next()
        .unwrap()
        .to_owned()
}

fn releasing() -> Machine {
    let mut machine = machine("c", "m1");
    machine.metadata.resource_version = Some("1".into());
    machine.metadata.namespace = Some("default".into());
    machine.metadata.creation_timestamp = Some(
        k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Timestamp::UNIX_EPOCH),
    );
    machine.metadata.finalizers = Some(vec!["neap.dev/machine".into()]);
    machine.status = Some(MachineStatus {
        phase: Some(MachinePhase::Releasing),
        joined: Some(Timestamp::UNIX_EPOCH),
        ..MachineStatus::default()
    });
    machine
}

fn running() -> Machine {
    let mut machine = releasing();
    let status = machine.status.as_mut().unwrap();
    status.phase = Some(MachinePhase::Running);
    status.power = Some(PowerState::Running);
    machine
}

fn node() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "c-node1", "uid": "n1", "resourceVersion": "7", "labels": {"neap.dev/machine-uid": "m1", "neap.dev/installation": "me"}},
        "spec": {},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    })
}

fn pod(name: &str, baseline: bool) -> Value {
    let owners = if baseline {
        json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": true}])
    } else {
        json!([])
    };
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": "ns", "name": name, "uid": format!("uid-{name}"), "ownerReferences": owners},
        "spec": {"nodeName": "c-node1", "containers": []},
        "status": {"phase": "Pending"},
    })
}

#[tokio::test]
async fn drained_machine_leaves_nothing_behind_and_its_record_goes_last() {
    let lists = [
        vec![pod("late", false), pod("d", true)],
        vec![pod("d", true)],
        vec![],
    ];
    let world = World::default()
        .with_node(node())
        .with_pods(lists)
        .with_power(Power::Running);
    let outcome = world.actor().drain(&releasing()).await.unwrap();
    assert_eq!(
        world.log(),
        [
            "stop kubelet",
            "read Node",
            "list pods",
            "delete d uid-d",
            "Failed late",
            "delete late uid-late",
            "delete Node",
            "list pods",
            "delete d uid-d",
            "delete machine",
            "read Node",
            "list pods",
            "delete Machine",
            "let Machine go",
        ]
    );
    assert!(matches!(outcome.milestone, Some(Milestone::Gone)));
}

#[tokio::test]
async fn node_that_is_anothers_is_left_with_its_pods() {
    let mut foreign = node();
    foreign["metadata"]["labels"]["neap.dev/machine-uid"] = json!("other");
    let world = World::default()
        .with_node(foreign)
        .with_pods([vec![pod("p", false)]]);
    world.actor().drain(&releasing()).await.unwrap();
    assert_eq!(
        world.log(),
        [
            "read Node",
            "delete machine",
            "read Node",
            "delete Machine",
            "let Machine go"
        ]
    );
}

#[tokio::test]
async fn machine_is_removed_only_if_it_is_down_by_a_live_read() {
    let reason = Reason::MachineLost {
        machine: MachineName::new("c-node1"),
        power: Power::Error,
    };
    let up = World::default()
        .with_node(node())
        .with_power(Power::Running);
    let outcome = up.actor().remove(&releasing(), &reason).await.unwrap();
    assert!(outcome.record.is_none());
    assert_eq!(up.log(), ["read Node"]);
    let down = World::default().with_node(node()).with_power(Power::Error);
    down.actor().remove(&releasing(), &reason).await.unwrap();
    assert_eq!(down.log(), ["read Node", "write Draining"]);
}

#[tokio::test]
async fn machine_that_is_taken_back_before_it_joined_is_pending_again() {
    let world = World::default().with_power(Power::Running);
    let mut machine = releasing();
    machine.status.as_mut().unwrap().joined = None;
    let outcome = world.actor().undo(&machine, None).await.unwrap();
    assert_eq!(world.log(), ["start kubelet", "read Node", "write Pending"]);
    let status = outcome.record.unwrap().status.unwrap();
    assert_eq!(status.conditions.first().unwrap().status, "False");
    assert!(status.deadline.is_some(), "it has to join in time");
}

#[tokio::test]
async fn node_without_a_record_goes_only_when_record_and_machine_are_proven_absent() {
    let facts = observe_node(
        &serde_json::from_value(node()).unwrap(),
        &InstallationId::new("me"),
    );
    let uid = facts.machine.clone().unwrap();
    let proven = World::default().with_node(node());
    let provided = World::default().with_node(node()).with_power(Power::Error);
    let recorded = World::default().with_node(node());
    recorded.machines.lock().unwrap().push(releasing());
    for (world, log) in [
        (provided, vec!["list Machines"]),
        (recorded, vec!["list Machines"]),
        (proven, vec!["list Machines", "delete Node"]),
    ] {
        world.actor().remove_orphan(&facts, &uid).await.unwrap();
        assert_eq!(world.log(), log);
    }
}

#[tokio::test]
async fn machine_that_joins_says_what_and_where_it_is_though_its_creation_was_cut_short() {
    let world = World::default();
    let outcome = world.actor().join(&releasing()).await.unwrap();
    let status = outcome.record.unwrap().status.unwrap();
    assert_eq!(status.provider_id.as_deref(), Some("neap://c/c-node1"));
    assert_eq!(status.node_name.as_deref(), Some("c-node1"));
    let addresses: Vec<_> = status
        .addresses
        .iter()
        .map(|address| address.address.as_str())
        .collect();
    assert_eq!(addresses, ["10.250.0.11", "c-node1"]);
    let shared = status
        .conditions
        .iter()
        .find(|condition| condition.type_ == "SharedKernel");
    assert_eq!(shared.unwrap().status, "True");
}
