#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::calls::tests::HastyClock;
use crate::traits::{
    ControlPlaneError, ControlPlanePlan, ListMachinesError, MachineError, MachinePlan,
    NodeCredentials, ProvidedMachine, TenantIdentity,
};
use async_trait::async_trait;
use neap_api::names::FINALIZER_CLUSTER;
use neap_api::{ClusterSpec, MachineSpec};
use neap_core::lifecycle::ObservedControlPlane;
use std::net::Ipv4Addr;
use tokio::sync::mpsc;

/// Control planes of which one makes its loop panic; the others are started.
struct Flawed {
    flawed: ClusterUid,
    looks: mpsc::Sender<ClusterUid>,
    starts: mpsc::Sender<ClusterUid>,
}

#[async_trait]
impl ControlPlanes for Flawed {
    async fn ensure(&self, plan: &ControlPlanePlan) -> Result<String, ControlPlaneError> {
        let _ = self.starts.try_send(plan.cluster.clone());
        Ok("distro".into())
    }
    async fn observe(
        &self,
        cluster: &ClusterUid,
    ) -> Result<ObservedControlPlane, ControlPlaneError> {
        let _ = self.looks.try_send(cluster.clone());
        assert_ne!(*cluster, self.flawed, "a bug");
        tokio::task::yield_now().await;
        Ok(ObservedControlPlane::Absent)
    }
    async fn ended(&self, _: &ClusterUid) {
        std::future::pending().await
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
        Ok(silent_client())
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

pub(crate) struct NoMachines;

#[async_trait]
impl NodeProvider for NoMachines {
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
    async fn list(&self, _: &ClusterUid) -> Result<Vec<ProvidedMachine>, ListMachinesError> {
        Ok(Vec::new())
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
    async fn delete(&self, _: &MachineUid) -> Result<(), MachineError> {
        Ok(())
    }
    fn changes(&self) -> mpsc::Receiver<MachineUid> {
        mpsc::channel(1).1
    }
}

/// A client of a server that never answers.
fn silent_client() -> kube::Client {
    type Answer = Result<http::Response<kube::client::Body>, std::convert::Infallible>;
    let silent =
        tower::service_fn(|_: http::Request<kube::client::Body>| std::future::pending::<Answer>());
    kube::Client::new(silent, "default")
}

/// What loops act through, with control planes that nobody asks for.
pub(crate) fn context(
    hub: kube::Client,
    provider: Arc<dyn NodeProvider>,
    clock: Arc<dyn Clock>,
) -> Context {
    let (looks, starts) = (mpsc::channel(1).0, mpsc::channel(1).0);
    Context {
        cluster_events: Events::new(hub.clone(), MANAGER_CLUSTER),
        scaling_events: Events::new(hub.clone(), MANAGER_SCALING),
        installation: InstallationId::new("me"),
        hub,
        control_planes: Arc::new(Flawed {
            flawed: ClusterUid::new("none"),
            looks,
            starts,
        }),
        provider,
        clock,
    }
}

struct World {
    owner: Owner,
    looks: mpsc::Receiver<ClusterUid>,
    starts: mpsc::Receiver<ClusterUid>,
}

fn world(flawed: &str) -> World {
    let (looks, looked) = mpsc::channel(1024);
    let (starts, started) = mpsc::channel(1024);
    let hub = silent_client();
    let context = Context {
        cluster_events: Events::new(hub.clone(), MANAGER_CLUSTER),
        scaling_events: Events::new(hub.clone(), MANAGER_SCALING),
        installation: InstallationId::new("i"),
        hub,
        control_planes: Arc::new(Flawed {
            flawed: ClusterUid::new(flawed),
            looks,
            starts,
        }),
        provider: Arc::new(NoMachines),
        clock: Arc::new(HastyClock),
    };
    World {
        owner: Owner::new(Arc::new(context), CancellationToken::new()),
        looks: looked,
        starts: started,
    }
}

pub(crate) fn cluster(uid: &str) -> Cluster {
    let mut cluster = Cluster::new(uid, ClusterSpec::default());
    cluster.metadata.uid = Some(uid.into());
    cluster.metadata.namespace = Some("default".into());
    cluster.metadata.finalizers = Some(vec![FINALIZER_CLUSTER.into()]);
    cluster
}

pub(crate) fn machine(cluster: &str, uid: &str) -> Machine {
    let spec = MachineSpec {
        cluster: cluster.into(),
        cluster_uid: cluster.into(),
        ordinal: 1,
        provider: Default::default(),
        class: Default::default(),
        pods_per_node: 1,
    };
    let mut machine = Machine::new(&format!("{cluster}-node1"), spec);
    machine.metadata.uid = Some(uid.into());
    machine
}

fn view(owner: &Owner, cluster: &str) -> HubView {
    owner.handles[&ClusterUid::new(cluster)]
        .view
        .borrow()
        .clone()
}

#[tokio::test]
async fn panicking_cluster_is_started_again_and_touches_no_other() {
    let mut world = world("flawed");
    world
        .owner
        .observe_clusters(Change::Reset(vec![cluster("flawed"), cluster("sound")]));
    let flawed = ClusterUid::new("flawed");
    let told = async {
        let (mut panics, mut starts) = (0, 0);
        while panics < 3 || starts < 3 {
            tokio::select! {
                Some(looked) = world.looks.recv() => panics += u32::from(looked == flawed),
                Some(started) = world.starts.recv() => {
                    assert_eq!(started, ClusterUid::new("sound"));
                    starts += 1;
                }
                Some(end) = world.owner.tasks.join_next_with_id() => world.owner.observe_end(end).await,
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), told)
        .await
        .unwrap();
    let failures = |name: &str| world.owner.handles[&ClusterUid::new(name)].failures;
    assert!(failures("flawed") >= 2);
    assert_eq!(failures("sound"), 0);
}

#[tokio::test]
async fn nothing_is_readable_before_both_watches_have_listed_or_after_one_broke() {
    let mut owner = world("none").owner;
    owner.observe_clusters(Change::Reset(vec![cluster("c")]));
    assert_eq!(
        view(&owner, "c").unreadable,
        Some("Machines: not listed yet".into())
    );
    owner.observe_machines(Change::Reset(vec![]));
    assert_eq!(view(&owner, "c").unreadable, None);
    owner.observe_machines(Change::Broken("gone".into()));
    assert_eq!(view(&owner, "c").unreadable, Some("Machines: gone".into()));
    owner.observe_machines(Change::Reset(vec![]));
    owner.observe_clusters(Change::Broken("gone".into()));
    assert_eq!(view(&owner, "c").unreadable, Some("Clusters: gone".into()));
}

#[tokio::test]
async fn machines_are_handed_to_their_own_cluster() {
    let mut owner = world("none").owner;
    owner.observe_machines(Change::Reset(vec![machine("a", "ma")]));
    owner.observe_clusters(Change::Reset(vec![cluster("a"), cluster("b")]));
    owner.observe_machines(Change::Apply(machine("b", "mb")));
    let uids = |owner: &Owner, of: &str| -> Vec<Option<MachineUid>> {
        view(owner, of)
            .machines
            .values()
            .map(|machine| machine.machine_uid())
            .collect()
    };
    assert_eq!(uids(&owner, "a"), [Some(MachineUid::new("ma"))]);
    assert_eq!(uids(&owner, "b"), [Some(MachineUid::new("mb"))]);
    owner.observe_machines(Change::Delete(machine("a", "ma")));
    assert!(uids(&owner, "a").is_empty());
    owner.observe_machines(Change::Reset(vec![]));
    assert!(uids(&owner, "b").is_empty());
}

#[tokio::test]
async fn change_of_power_reaches_the_cluster_of_the_machine() {
    let mut owner = world("none").owner;
    owner.observe_clusters(Change::Reset(vec![cluster("a"), cluster("b")]));
    owner.observe_machines(Change::Reset(vec![machine("a", "ma"), machine("b", "mb")]));
    owner.observe_power_change(&MachineUid::new("mb"));
    owner.observe_power_change(&MachineUid::new("unheard of"));
    assert!(view(&owner, "a").power_changes.is_empty());
    assert_eq!(
        view(&owner, "b").power_changes,
        BTreeMap::from([(MachineUid::new("mb"), 1)])
    );
}

#[tokio::test]
async fn task_of_a_cluster_that_is_gone_ends() {
    let mut owner = world("none").owner;
    owner.observe_clusters(Change::Reset(vec![cluster("a"), cluster("b")]));
    owner.observe_clusters(Change::Delete(cluster("a")));
    owner.observe_clusters(Change::Reset(vec![]));
    assert!(owner.handles.is_empty());
    let ended = async { while owner.tasks.join_next().await.is_some() {} };
    tokio::time::timeout(Duration::from_secs(10), ended)
        .await
        .unwrap();
}
