#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::calls::tests::HastyClock;
use crate::operator::tests::{NoMachines, cluster, context, machine};
use crate::scaling::RunScalingError;
use crate::traits::{
    Clock, ControlPlanes, ListMachinesError, MachinePlan, NodeCredentials, NodeProvider,
    ProvidedMachine, TenantIdentity,
};
use async_trait::async_trait;
use http::{Request, Response};
use kube::client::Body;
use neap_core::ids::{ClusterUid, MachineName, MachineUid};
use neap_core::machine::Power;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::Mutex;
use tokio::sync::{Notify, mpsc};

/// Time that never passes: only what is told wakes a loop.
struct FrozenClock;

#[async_trait]
impl Clock for FrozenClock {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
    async fn sleep(&self, _: Duration) {
        std::future::pending().await
    }
}

/// A control plane that runs until it is told to end.
struct Mortal {
    end: Notify,
    looks: mpsc::Sender<()>,
    /// What it is cannot be found out.
    damaged: bool,
}

#[async_trait]
impl ControlPlanes for Mortal {
    async fn ensure(&self, _: &ControlPlanePlan) -> Result<String, ControlPlaneError> {
        Ok("distro".into())
    }
    async fn observe(&self, uid: &ClusterUid) -> Result<ObservedControlPlane, ControlPlaneError> {
        let _ = self.looks.try_send(());
        if self.damaged {
            return Err(ControlPlaneError {
                operation: "observe",
                cluster: uid.clone(),
                source: "record.json is no record of a cluster".into(),
            });
        }
        Ok(ObservedControlPlane::Running {
            since: Timestamp::UNIX_EPOCH,
            distro: "distro".into(),
        })
    }
    async fn ended(&self, _: &ClusterUid) {
        self.end.notified().await;
    }
    async fn stop(&self, _: &ClusterUid) -> Result<(), ControlPlaneError> {
        Ok(())
    }
    async fn delete(&self, _: &ClusterUid) -> Result<(), ControlPlaneError> {
        Ok(())
    }
    async fn client(
        &self,
        _: &ClusterUid,
        _: TenantIdentity,
    ) -> Result<kube::Client, ControlPlaneError> {
        Ok(answering(500, serde_json::json!({})))
    }
    async fn bootstrap(&self, _: &ClusterUid) -> Result<(), ControlPlaneError> {
        Ok(())
    }
    async fn node_credentials(
        &self,
        cluster: &ClusterUid,
        _: &MachineName,
        _: Ipv4Addr,
    ) -> Result<NodeCredentials, ControlPlaneError> {
        Err(ControlPlaneError {
            operation: "reach",
            cluster: cluster.clone(),
            source: "no nodes here".into(),
        })
    }
    fn versions(&self) -> Vec<String> {
        vec!["1.37".into()]
    }
    fn endpoint(&self, _: &ControlPlanePlan) -> String {
        String::new()
    }
}

/// A client of a server that always gives this answer.
fn answering(code: u16, answer: serde_json::Value) -> kube::Client {
    let service = tower::service_fn(move |_: Request<Body>| {
        let body = Body::from(answer.to_string().into_bytes());
        async move { Ok::<_, Infallible>(Response::builder().status(code).body(body).unwrap()) }
    });
    kube::Client::new(service, "default")
}

/// All that a loop is made from, with the other end of what it is told.
struct World {
    context: Arc<Context>,
    id: ClusterId,
    told: watch::Receiver<HubView>,
    _view: watch::Sender<HubView>,
}

fn world(planes: &Arc<Mortal>) -> World {
    let record = cluster("c");
    let hub = answering(200, serde_json::to_value(&record).unwrap());
    let context = Context {
        control_planes: Arc::clone(planes) as Arc<dyn ControlPlanes>,
        ..context(hub, Arc::new(NoMachines), Arc::new(FrozenClock))
    };
    let id = ClusterId::of(&record).unwrap();
    let (view, told) = watch::channel(HubView {
        cluster: Arc::new(record),
        machines: BTreeMap::new(),
        unreadable: None,
        power_changes: BTreeMap::new(),
    });
    World {
        context: Arc::new(context),
        id,
        told,
        _view: view,
    }
}

fn mortal() -> (Arc<Mortal>, mpsc::Receiver<()>) {
    let (looks, looked) = mpsc::channel(64);
    let end = Notify::new();
    let planes = Mortal {
        end,
        looks,
        damaged: false,
    };
    (Arc::new(planes), looked)
}

#[tokio::test]
async fn end_of_a_control_plane_is_looked_at_without_waiting() {
    let (planes, mut looked) = mortal();
    let world = world(&planes);
    let ending = CancellationToken::new();
    let task = tokio::spawn(run(world.context, world.id, world.told, ending.clone()));
    let looking = async {
        // Each turn looks once, and once more when it takes the process over.
        while tokio::time::timeout(Duration::from_millis(50), looked.recv())
            .await
            .is_ok()
        {}
        planes.end.notify_one();
        looked.recv().await.unwrap();
    };
    tokio::time::timeout(Duration::from_secs(10), looking)
        .await
        .unwrap();
    ending.cancel();
    task.await.unwrap();
}

#[tokio::test]
async fn roles_are_written_again_when_the_tenant_could_not_be_listed() {
    let (planes, _looked) = mortal();
    let world = world(&planes);
    let ending = CancellationToken::new();
    let mut cluster = ClusterLoop::new(world.context, world.id, world.told, ending);
    cluster.bootstrapped = true;
    let why = "Pods of the cluster: forbidden".into();
    let end = Ok(Err(RunScalingError::ListTenant { why }));
    cluster.observe_scaling_end(end).await;
    assert!(!cluster.bootstrapped);
}

/// A provider that has one machine and ends it when it is told to.
struct OneMachine(Mutex<Vec<MachineUid>>);

#[async_trait]
impl NodeProvider for OneMachine {
    async fn create(&self, _: &MachinePlan) -> Result<(), MachineError> {
        Ok(())
    }
    fn shares_kernel(&self) -> bool {
        true
    }

    fn unbounded_disk(&self, _: &ClusterUid, _: &MachineUid) -> Option<String> {
        None
    }
    async fn observe(&self, _: &MachineUid) -> Result<Option<ProvidedMachine>, MachineError> {
        Ok(None)
    }
    async fn list(&self, cluster: &ClusterUid) -> Result<Vec<ProvidedMachine>, ListMachinesError> {
        let there = self.0.lock().unwrap().clone();
        let provided = there.into_iter().map(|machine| ProvidedMachine {
            machine,
            cluster: cluster.clone(),
            power: Power::Running,
            message: None,
        });
        Ok(provided.collect())
    }
    async fn stop_kubelet(&self, _: &MachineUid) -> Result<(), MachineError> {
        Ok(())
    }
    async fn start_kubelet(&self, _: &MachineUid) -> Result<(), MachineError> {
        Ok(())
    }
    async fn set_max_pods(&self, _: &MachineUid, _: u32) -> Result<(), MachineError> {
        Ok(())
    }
    async fn delete(&self, machine: &MachineUid) -> Result<(), MachineError> {
        self.0.lock().unwrap().retain(|there| there != machine);
        Ok(())
    }
    fn changes(&self) -> mpsc::Receiver<MachineUid> {
        mpsc::channel(1).1
    }
}

/// What is left of a Cluster before and after its machines are deleted, when
/// the hub knows these records and the provider has the machine `m`.
async fn deleted(records: &[&str]) -> (usize, Vec<MachineUid>) {
    let records: Vec<_> = records.iter().map(|uid| machine("c", uid)).collect();
    let hub = answering(
        200,
        serde_json::json!({
            "kind": "MachineList", "apiVersion": "neap.dev/v1alpha1", "metadata": {}, "items": records,
        }),
    );
    let clock: Arc<dyn Clock> = Arc::new(FrozenClock);
    let provider = Arc::new(OneMachine(Mutex::new(vec![MachineUid::new("m")])));
    let context = context(hub, Arc::clone(&provider) as _, Arc::clone(&clock));
    let id = ClusterId::of(&cluster("c")).unwrap();
    let calls = Calls::new(clock, CancellationToken::new());
    let left = deletion::left(&calls, &context, &id).await.unwrap();
    // That the answers of this hub to deletions make no sense is no matter.
    let _ = deletion::delete_machines(&calls, &context, &id).await;
    let there = provider.0.lock().unwrap().clone();
    (left, there)
}

#[tokio::test]
async fn machine_without_a_record_is_left_too_and_goes_with_its_cluster() {
    assert_eq!(deleted(&[]).await, (1, vec![]));
    assert_eq!(deleted(&["m"]).await, (1, vec![]));
    assert_eq!(deleted(&["other"]).await, (2, vec![]));
}

/// A client of a server that hands on each status that it is told.
fn recording(told: mpsc::Sender<serde_json::Value>) -> kube::Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let told = told.clone();
        async move {
            let body = request.into_body().collect_bytes().await?;
            let sent: serde_json::Value = serde_json::from_slice(&body).unwrap();
            let _ = told.try_send(sent["status"].clone());
            let answer = serde_json::to_vec(&cluster("c")).unwrap();
            Ok::<_, kube::Error>(Response::new(Body::from(answer)))
        }
    });
    kube::Client::new(service, "default")
}

#[tokio::test]
async fn turns_that_fail_are_told_once_in_the_conditions() {
    let planes = Arc::new(Mortal {
        end: Notify::new(),
        looks: mpsc::channel(1).0,
        damaged: true,
    });
    let (tell, mut told) = mpsc::channel(8);
    let World {
        context,
        id,
        told: view,
        _view: _keep,
    } = world(&planes);
    let context = Context {
        hub: recording(tell),
        clock: Arc::new(HastyClock),
        control_planes: planes,
        ..super::tests::context(
            answering(200, serde_json::json!({})),
            Arc::clone(&context.provider),
            Arc::new(HastyClock),
        )
    };
    let ending = CancellationToken::new();
    let task = tokio::spawn(run(Arc::new(context), id, view, ending.clone()));
    let first = told.recv().await.unwrap();
    for condition in first["conditions"].as_array().unwrap() {
        assert_eq!(condition["status"], "Unknown");
        assert_eq!(condition["reason"], "LoopFailed");
        let message = condition["message"].as_str().unwrap();
        assert!(message.ends_with("record.json is no record of a cluster"));
    }
    let again = tokio::time::timeout(Duration::from_millis(50), told.recv()).await;
    assert!(again.is_err(), "{again:?}");
    ending.cancel();
    task.await.unwrap();
}
