//! Watches the hub and runs one task for each Cluster.

use crate::calls::Calls;
use crate::cluster_loop;
use crate::traits::{Clock, ControlPlanes, NodeProvider};
use crate::view::{ClusterId, HubView};
use futures::StreamExt;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Api, Resource};
use neap_api::names::{MANAGER_CLUSTER, MANAGER_SCALING};
use neap_api::{Cluster, Machine};
use neap_core::ids::{ClusterUid, InstallationId, MachineName, MachineUid};
use neap_core::supervision::backoff;
use neap_kube::{Change, EventKind, Events};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

/// Why a watch must not be decided on before its first list.
const NOT_LISTED: &str = "not listed yet";

/// What an [`Operator`] acts through.
pub struct OperatorConfig {
    /// Identity of this installation, written on all that it makes.
    pub installation: InstallationId,
    /// The management API.
    pub hub: kube::Client,
    /// Starts and ends control planes.
    pub control_planes: Arc<dyn ControlPlanes>,
    /// Makes and ends machines.
    pub providers: Arc<dyn NodeProvider>,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for OperatorConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OperatorConfig")
            .field("installation", &self.installation)
            .finish_non_exhaustive()
    }
}

/// What every loop acts through.
pub(crate) struct Context {
    pub(crate) installation: InstallationId,
    pub(crate) hub: kube::Client,
    pub(crate) control_planes: Arc<dyn ControlPlanes>,
    pub(crate) provider: Arc<dyn NodeProvider>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Events on records, told by the cluster loop.
    pub(crate) cluster_events: Events,
    /// Events on records, told by the scaling loop.
    pub(crate) scaling_events: Events,
}

impl Context {
    /// Tells an event; that it cannot be told changes nothing.
    #[expect(clippy::too_many_arguments, reason = "an event has this many parts")]
    pub(crate) async fn publish(
        &self,
        calls: &Calls,
        events: &Events,
        about: ObjectReference,
        kind: EventKind,
        reason: &str,
        action: &str,
        note: &str,
    ) {
        let told = async {
            events.publish(&about, kind, reason, action, note).await;
            Ok::<(), std::convert::Infallible>(())
        };
        // The publisher has logged what went wrong.
        let _ = calls.call("publish an event", told).await;
    }
}

/// Watches the hub and runs the loops of every Cluster.
#[derive(Debug)]
pub struct Operator {
    config: OperatorConfig,
}

impl Operator {
    /// An operator that does nothing yet.
    pub fn new(config: OperatorConfig) -> Self {
        Self { config }
    }

    /// Runs until `shutdown` is cancelled, and returns when every loop has
    /// ended. What they made runs on.
    pub async fn run(self, shutdown: CancellationToken) {
        let OperatorConfig {
            installation,
            hub,
            control_planes,
            providers,
            clock,
        } = self.config;
        let context = Arc::new(Context {
            cluster_events: Events::new(hub.clone(), MANAGER_CLUSTER),
            scaling_events: Events::new(hub.clone(), MANAGER_SCALING),
            installation,
            hub,
            control_planes,
            provider: providers,
            clock,
        });
        Owner::new(context, shutdown).run().await;
    }
}

/// A Cluster's task as its owner holds it.
struct Handle {
    view: watch::Sender<HubView>,
    ending: CancellationToken,
    /// How often its task has panicked.
    failures: u32,
    /// Its task has ended because nothing of ours is left on the record.
    ended: bool,
}

/// The one owner of what the hub says: it merges the watches and hands each
/// Cluster's task its part.
struct Owner {
    context: Arc<Context>,
    shutdown: CancellationToken,
    calls: Calls,
    handles: BTreeMap<ClusterUid, Handle>,
    tasks: JoinSet<()>,
    task_ids: BTreeMap<Id, ClusterId>,
    machines: BTreeMap<ClusterUid, BTreeMap<MachineName, Arc<Machine>>>,
    clusters_unreadable: Option<String>,
    machines_unreadable: Option<String>,
}

impl Owner {
    fn new(context: Arc<Context>, shutdown: CancellationToken) -> Self {
        Self {
            calls: Calls::new(Arc::clone(&context.clock), shutdown.clone()),
            context,
            shutdown,
            handles: BTreeMap::new(),
            tasks: JoinSet::new(),
            task_ids: BTreeMap::new(),
            machines: BTreeMap::new(),
            clusters_unreadable: Some(NOT_LISTED.into()),
            machines_unreadable: Some(NOT_LISTED.into()),
        }
    }

    async fn run(mut self) {
        let hub = self.context.hub.clone();
        let mut clusters = std::pin::pin!(neap_kube::watch(
            Api::<Cluster>::all(hub.clone()),
            |cluster: &Cluster| cluster.clone()
        ));
        let mut machines = std::pin::pin!(neap_kube::watch(
            Api::<Machine>::all(hub),
            |machine: &Machine| machine.clone()
        ));
        let mut power_changes = self.context.provider.changes();
        let mut power_open = true;
        loop {
            tokio::select! {
                () = self.shutdown.cancelled() => break,
                Some(change) = clusters.next() => self.observe_clusters(change),
                Some(change) = machines.next() => self.observe_machines(change),
                changed = power_changes.recv(), if power_open => match changed {
                    Some(machine) => self.observe_power_change(&machine),
                    None => power_open = false,
                },
                Some(end) = self.tasks.join_next_with_id() => self.observe_end(end).await,
            }
        }
        while self.tasks.join_next().await.is_some() {}
    }

    fn observe_clusters(&mut self, change: Change<Cluster>) {
        match change {
            Change::Reset(clusters) => {
                self.clusters_unreadable = None;
                let listed: Vec<ClusterUid> =
                    clusters.iter().filter_map(Cluster::cluster_uid).collect();
                self.handles
                    .retain(|uid, handle| listed.contains(uid) || handle.end());
                clusters
                    .into_iter()
                    .for_each(|cluster| self.observe_cluster(cluster));
                self.tell_all();
            }
            Change::Apply(cluster) => self.observe_cluster(cluster),
            Change::Delete(cluster) => {
                if let Some(uid) = cluster.cluster_uid() {
                    self.handles
                        .retain(|held, handle| *held != uid || handle.end());
                }
            }
            Change::Broken(why) => {
                self.clusters_unreadable = Some(why);
                self.tell_all();
            }
        }
    }

    fn observe_cluster(&mut self, cluster: Cluster) {
        let Some(id) = ClusterId::of(&cluster) else {
            return;
        };
        let cluster = Arc::new(cluster);
        if let Some(handle) = self.handles.get(&id.uid) {
            handle.view.send_modify(|view| view.cluster = cluster);
            return;
        }
        let (view, told) = watch::channel(HubView {
            cluster,
            machines: self.machines.get(&id.uid).cloned().unwrap_or_default(),
            unreadable: self.unreadable(),
            power_changes: BTreeMap::new(),
        });
        let ending = self.shutdown.child_token();
        self.spawn(id.clone(), told, ending.clone(), Duration::ZERO);
        self.handles.insert(
            id.uid,
            Handle {
                view,
                ending,
                failures: 0,
                ended: false,
            },
        );
    }

    fn observe_machines(&mut self, change: Change<Machine>) {
        match change {
            Change::Reset(machines) => {
                self.machines_unreadable = None;
                self.machines.clear();
                for machine in machines {
                    let of_cluster = self.machines.entry(machine.cluster_uid()).or_default();
                    of_cluster.insert(machine.machine_name(), Arc::new(machine));
                }
                self.tell_all();
            }
            Change::Apply(machine) => {
                let (cluster, name) = (machine.cluster_uid(), machine.machine_name());
                let machine = Arc::new(machine);
                self.machines
                    .entry(cluster.clone())
                    .or_default()
                    .insert(name.clone(), Arc::clone(&machine));
                self.tell(&cluster, |view| {
                    view.machines.insert(name, machine);
                });
            }
            Change::Delete(machine) => {
                let (cluster, name) = (machine.cluster_uid(), machine.machine_name());
                if let Some(machines) = self.machines.get_mut(&cluster) {
                    machines.remove(&name);
                    if machines.is_empty() {
                        self.machines.remove(&cluster);
                    }
                }
                self.tell(&cluster, |view| {
                    view.machines.remove(&name);
                    if let Some(uid) = machine.machine_uid() {
                        view.power_changes.remove(&uid);
                    }
                });
            }
            Change::Broken(why) => {
                self.machines_unreadable = Some(why);
                self.tell_all();
            }
        }
    }

    fn observe_power_change(&mut self, machine: &MachineUid) {
        let cluster = self.machines.iter().find_map(|(cluster, machines)| {
            machines
                .values()
                .any(|held| held.machine_uid().as_ref() == Some(machine))
                .then(|| cluster.clone())
        });
        if let Some(cluster) = cluster {
            self.tell(&cluster, |view| {
                *view.power_changes.entry(machine.clone()).or_default() += 1
            });
        }
    }

    /// A task that panicked touches no other: it is told, and started again.
    async fn observe_end(&mut self, end: Result<(Id, ()), JoinError>) {
        let (task, panic) = match end {
            Ok((task, ())) => (task, None),
            Err(error) => (error.id(), Some(error)),
        };
        let Some(id) = self.task_ids.remove(&task) else {
            return;
        };
        let Some(handle) = self.handles.get_mut(&id.uid) else {
            return;
        };
        let Some(panic) = panic else {
            handle.ended = true;
            return;
        };
        handle.failures = handle.failures.saturating_add(1);
        let wait = Duration::try_from(backoff(handle.failures)).unwrap_or_default();
        let (told, ending) = (handle.view.subscribe(), handle.ending.clone());
        let about = handle.view.borrow().cluster.object_ref(&());
        tracing::error!(cluster = %id, error = %panic, "cluster loop panicked; starting it again");
        self.spawn(id, told, ending, wait);
        let note = "The loop of this Cluster failed and is started again.";
        self.context
            .publish(
                &self.calls,
                &self.context.cluster_events,
                about,
                EventKind::Warning,
                "LoopFailed",
                "Observe",
                note,
            )
            .await;
    }

    fn spawn(
        &mut self,
        id: ClusterId,
        told: watch::Receiver<HubView>,
        ending: CancellationToken,
        wait: Duration,
    ) {
        let context = Arc::clone(&self.context);
        let of = id.clone();
        let task = self.tasks.spawn(async move {
            if !wait.is_zero() {
                tokio::select! {
                    () = ending.cancelled() => return,
                    () = context.clock.sleep(wait) => {}
                }
            }
            cluster_loop::run(context, of, told, ending).await;
        });
        self.task_ids.insert(task.id(), id);
    }

    fn unreadable(&self) -> Option<String> {
        self.clusters_unreadable
            .as_ref()
            .map(|why| format!("Clusters: {why}"))
            .or_else(|| {
                self.machines_unreadable
                    .as_ref()
                    .map(|why| format!("Machines: {why}"))
            })
    }

    fn tell(&self, cluster: &ClusterUid, change: impl FnOnce(&mut HubView)) {
        if let Some(handle) = self.handles.get(cluster)
            && !handle.ended
        {
            handle.view.send_modify(change);
        }
    }

    fn tell_all(&self) {
        let unreadable = self.unreadable();
        for (uid, handle) in &self.handles {
            let machines = self.machines.get(uid).cloned().unwrap_or_default();
            handle.view.send_modify(|view| {
                view.machines = machines;
                view.unreadable.clone_from(&unreadable);
            });
        }
    }
}

impl Handle {
    /// Ends the task; always false, for `retain`.
    fn end(&self) -> bool {
        self.ending.cancel();
        false
    }
}

#[cfg(test)]
pub(crate) mod tests;
