//! What the watches of one tenant have told, and whether it may be decided on.

use crate::observe::{
    ObservedPod, ObservedWorkload, observe_daemon_set, observe_deployment, observe_job,
    observe_node, observe_pod, observe_replica_set, observe_stateful_set,
};
use futures::StreamExt;
use futures::stream::{BoxStream, SelectAll};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{Api, Client};
use neap_core::driver::NodeView;
use neap_core::ids::{InstallationId, MachineName, MachineUid, NodeName, ObjectKey, ObjectUid};
use neap_core::machine::ObservedMachine;
use neap_core::observation::{NodeFacts, Observation, TenantIndex, WorkloadKind};
use neap_kube::Change;
use std::collections::{BTreeMap, BTreeSet};

/// One watch of a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Pods,
    Nodes,
    Workloads(WorkloadKind),
}

const SOURCES: [Source; 7] = [
    Source::Pods,
    Source::Nodes,
    Source::Workloads(WorkloadKind::Job),
    Source::Workloads(WorkloadKind::Deployment),
    Source::Workloads(WorkloadKind::StatefulSet),
    Source::Workloads(WorkloadKind::ReplicaSet),
    Source::Workloads(WorkloadKind::DaemonSet),
];

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Pods => f.write_str("Pods"),
            Self::Nodes => f.write_str("Nodes"),
            Self::Workloads(kind) => write!(f, "{kind:?}s"),
        }
    }
}

/// One event of one watch.
#[derive(Debug)]
pub(super) enum TenantChange {
    Pods(Change<ObservedPod>),
    Nodes(Change<NodeFacts>),
    Workloads(WorkloadKind, Change<ObservedWorkload>),
}

/// All watches of a tenant, merged.
pub(super) fn watch_tenant(
    client: &Client,
    installation: &InstallationId,
) -> SelectAll<BoxStream<'static, TenantChange>> {
    let installation = installation.clone();
    let mut all = SelectAll::new();
    all.push(
        neap_kube::watch(Api::<Pod>::all(client.clone()), observe_pod)
            .map(TenantChange::Pods)
            .boxed(),
    );
    all.push(
        neap_kube::watch(Api::<Node>::all(client.clone()), move |node: &Node| {
            observe_node(node, &installation)
        })
        .map(TenantChange::Nodes)
        .boxed(),
    );
    macro_rules! workloads {
        ($($kind:ident, $observe:ident;)+) => {$(
            all.push(
                neap_kube::watch(Api::<$kind>::all(client.clone()), $observe)
                    .map(|change| TenantChange::Workloads(WorkloadKind::$kind, change))
                    .boxed(),
            );
        )+};
    }
    workloads! {
        Job, observe_job;
        Deployment, observe_deployment;
        StatefulSet, observe_stateful_set;
        ReplicaSet, observe_replica_set;
        DaemonSet, observe_daemon_set;
    }
    all
}

/// What is known of a tenant.
pub(super) struct TenantCache {
    index: TenantIndex,
    daemon_sets: BTreeSet<ObjectKey>,
    waiting: BTreeMap<ObjectKey, ObjectUid>,
    /// The watches that have not listed since they began or broke, with why.
    unreadable: BTreeMap<Source, String>,
}

impl Default for TenantCache {
    fn default() -> Self {
        Self {
            index: TenantIndex::default(),
            daemon_sets: BTreeSet::new(),
            waiting: BTreeMap::new(),
            unreadable: SOURCES
                .into_iter()
                .map(|source| (source, "not listed yet".into()))
                .collect(),
        }
    }
}

impl TenantCache {
    /// Takes an event in. Returns whether a decision could differ by it: a
    /// heartbeat of a Node or the start of a container changes nothing that is
    /// read.
    pub(super) fn observe(&mut self, change: TenantChange) -> bool {
        match change {
            TenantChange::Pods(change) => self.observe_pods(change),
            TenantChange::Nodes(change) => self.observe_nodes(change),
            TenantChange::Workloads(kind, change) => self.observe_workloads(kind, change),
        }
    }

    fn observe_pods(&mut self, change: Change<ObservedPod>) -> bool {
        match change {
            Change::Reset(pods) => {
                self.unreadable.remove(&Source::Pods);
                self.waiting = pods
                    .iter()
                    .filter(|pod| pod.waits())
                    .map(|pod| (pod.key.clone(), pod.uid.clone()))
                    .collect();
                self.index
                    .reset_pods(pods.into_iter().map(|pod| (pod.key, pod.facts)));
                true
            }
            Change::Apply(pod) => {
                if pod.waits() {
                    self.waiting.insert(pod.key.clone(), pod.uid);
                } else {
                    self.waiting.remove(&pod.key);
                }
                self.index.apply_pod(pod.key, pod.facts)
            }
            Change::Delete(pod) => {
                self.waiting.remove(&pod.key);
                self.index.delete_pod(&pod.key)
            }
            Change::Broken(why) => self.broke(Source::Pods, why),
        }
    }

    fn observe_nodes(&mut self, change: Change<NodeFacts>) -> bool {
        match change {
            Change::Reset(nodes) => {
                self.unreadable.remove(&Source::Nodes);
                self.index.reset_nodes(nodes);
                true
            }
            Change::Apply(node) => self.index.apply_node(node),
            Change::Delete(node) => self.index.delete_node(&node.name),
            Change::Broken(why) => self.broke(Source::Nodes, why),
        }
    }

    fn observe_workloads(&mut self, kind: WorkloadKind, change: Change<ObservedWorkload>) -> bool {
        let counts = kind == WorkloadKind::DaemonSet;
        match change {
            Change::Reset(workloads) => {
                self.unreadable.remove(&Source::Workloads(kind));
                if counts {
                    self.daemon_sets = workloads
                        .iter()
                        .map(|workload| workload.key.clone())
                        .collect();
                }
                self.index.reset_workloads(
                    kind,
                    workloads
                        .into_iter()
                        .map(|workload| (workload.key, workload.facts)),
                );
                true
            }
            Change::Apply(workload) => {
                if counts {
                    self.daemon_sets.insert(workload.key.clone());
                }
                self.index.apply_workload(workload.key, workload.facts)
            }
            Change::Delete(workload) => {
                if counts {
                    self.daemon_sets.remove(&workload.key);
                }
                self.index.delete_workload(kind, &workload.key)
            }
            Change::Broken(why) => self.broke(Source::Workloads(kind), why),
        }
    }

    fn broke(&mut self, source: Source, why: String) -> bool {
        self.unreadable.insert(source, why);
        true
    }

    /// Why nothing may be decided on this; none when every watch has listed
    /// since it began or last broke.
    pub(super) fn unreadable(&self) -> Option<String> {
        self.unreadable
            .iter()
            .next()
            .map(|(source, why)| format!("{source} of the cluster: {why}"))
    }

    /// One look at the tenant, with the Machine records that were read before.
    pub(super) fn observation(&self, machines: Vec<ObservedMachine>) -> Observation {
        self.index.observe(machines)
    }

    /// The Node of this machine's name.
    pub(super) fn node_view(&self, name: &MachineName, machine: &MachineUid) -> NodeView {
        NodeView::of(self.index.node(&name.node()), machine)
    }

    /// A Node by name.
    pub(super) fn node(&self, name: &NodeName) -> Option<&NodeFacts> {
        self.index.node(name)
    }

    /// Nodes of ours that are Ready.
    pub(super) fn ready_nodes(&self) -> u32 {
        let ready = self
            .index
            .nodes()
            .filter(|node| node.ready && node.machine.is_some())
            .count();
        u32::try_from(ready).unwrap_or(u32::MAX)
    }

    /// DaemonSets, each of which puts a pod on a node.
    pub(super) fn daemon_sets(&self) -> u32 {
        u32::try_from(self.daemon_sets.len()).unwrap_or(u32::MAX)
    }

    /// Pods that wait for a node, by name.
    pub(super) fn waiting(&self) -> &BTreeMap<ObjectKey, ObjectUid> {
        &self.waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use neap_core::observation::{PodFacts, WorkloadFacts};

    fn pod(name: &str, node: Option<&str>) -> ObservedPod {
        ObservedPod {
            key: ObjectKey::new("default", name),
            uid: ObjectUid::new(format!("uid-{name}")),
            facts: PodFacts {
                owner: None,
                node: node.map(NodeName::new),
                finished: false,
                baseline: false,
                gated: false,
            },
        }
    }

    fn node(ready: bool) -> NodeFacts {
        NodeFacts {
            name: NodeName::new("c-node1"),
            uid: ObjectUid::new("n1"),
            machine: Some(MachineUid::new("m1")),
            ready,
        }
    }

    fn listed() -> TenantCache {
        let mut cache = TenantCache::default();
        cache.observe(TenantChange::Pods(Change::Reset(vec![])));
        cache.observe(TenantChange::Nodes(Change::Reset(vec![])));
        for source in SOURCES {
            if let Source::Workloads(kind) = source {
                cache.observe(TenantChange::Workloads(kind, Change::Reset(vec![])));
            }
        }
        cache
    }

    #[test]
    fn nothing_is_readable_before_every_kind_has_listed() {
        let mut cache = TenantCache::default();
        assert!(cache.unreadable().is_some());
        cache.observe(TenantChange::Pods(Change::Reset(vec![])));
        assert!(cache.unreadable().is_some());
        assert_eq!(listed().unreadable(), None);
    }

    #[test]
    fn broken_watch_is_a_failed_list_until_it_has_listed_again() {
        let mut cache = listed();
        cache.observe(TenantChange::Workloads(
            WorkloadKind::Job,
            Change::Broken("reset by peer".into()),
        ));
        assert_eq!(
            cache.unreadable(),
            Some("Jobs of the cluster: reset by peer".into())
        );
        cache.observe(TenantChange::Pods(Change::Reset(vec![])));
        assert!(cache.unreadable().is_some());
        cache.observe(TenantChange::Workloads(
            WorkloadKind::Job,
            Change::Reset(vec![]),
        ));
        assert_eq!(cache.unreadable(), None);
    }

    #[test]
    fn pods_wait_from_their_creation_to_their_binding() {
        let mut cache = listed();
        cache.observe(TenantChange::Pods(Change::Apply(pod("a", None))));
        cache.observe(TenantChange::Pods(Change::Apply(pod("b", None))));
        assert_eq!(cache.waiting().len(), 2);
        cache.observe(TenantChange::Pods(Change::Apply(pod("a", Some("c-node1")))));
        cache.observe(TenantChange::Pods(Change::Delete(pod("b", None))));
        assert!(cache.waiting().is_empty());
    }

    #[test]
    fn pod_or_workload_that_changes_nothing_that_is_read_causes_no_pass() {
        let mut cache = listed();
        let told = |pod| TenantChange::Pods(Change::Apply(pod));
        assert!(cache.observe(told(pod("a", None))));
        assert!(!cache.observe(told(pod("a", None))));
        assert!(cache.observe(told(pod("a", Some("c-node1")))));
        assert!(cache.observe(TenantChange::Pods(Change::Delete(pod("a", None)))));
        assert!(!cache.observe(TenantChange::Pods(Change::Delete(pod("a", None)))));
        let job = |wants| ObservedWorkload {
            key: ObjectKey::new("default", "j"),
            facts: WorkloadFacts {
                kind: WorkloadKind::Job,
                uid: ObjectUid::new("j"),
                owner: None,
                wants,
            },
        };
        let told = |job| TenantChange::Workloads(WorkloadKind::Job, Change::Apply(job));
        assert!(cache.observe(told(job(2))));
        assert!(!cache.observe(told(job(2))));
        assert!(cache.observe(told(job(1))));
        assert!(cache.observe(TenantChange::Pods(Change::Broken("reset".into()))));
    }

    #[test]
    fn heartbeat_of_a_node_causes_no_pass() {
        let mut cache = listed();
        assert!(cache.observe(TenantChange::Nodes(Change::Apply(node(false)))));
        assert!(!cache.observe(TenantChange::Nodes(Change::Apply(node(false)))));
        assert!(cache.observe(TenantChange::Nodes(Change::Apply(node(true)))));
        assert_eq!(cache.ready_nodes(), 1);
    }

    #[test]
    fn node_is_a_machines_own_by_its_label_alone() {
        let mut cache = listed();
        cache.observe(TenantChange::Nodes(Change::Apply(node(true))));
        let view = |name: &str, machine: &str| {
            cache.node_view(&MachineName::new(name), &MachineUid::new(machine))
        };
        assert_eq!(view("c-node1", "m1"), NodeView::Ours { ready: true });
        assert_eq!(view("c-node1", "m2"), NodeView::Foreign);
        assert_eq!(view("c-node2", "m1"), NodeView::Absent);
    }
}
