//! The index that watches feed.

use super::{NodeFacts, Observation, PodFacts, WorkloadFacts, WorkloadKind};
use crate::ids::{NodeName, ObjectKey};
use crate::machine::ObservedMachine;
use std::collections::BTreeMap;

/// What watches of one tenant have told, kept as facts. A change that a
/// decision cannot see is answered with `false`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TenantIndex {
    pods: BTreeMap<ObjectKey, PodFacts>,
    groups: BTreeMap<PodFacts, u32>,
    workloads: BTreeMap<WorkloadKind, BTreeMap<ObjectKey, WorkloadFacts>>,
    nodes: BTreeMap<NodeName, NodeFacts>,
}

impl TenantIndex {
    /// An index that has been told nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces all pods by those of a full list.
    pub fn reset_pods(&mut self, pods: impl IntoIterator<Item = (ObjectKey, PodFacts)>) {
        self.pods.clear();
        self.groups.clear();
        for (key, facts) in pods {
            self.apply_pod(key, facts);
        }
    }

    /// A pod is there, or has changed.
    pub fn apply_pod(&mut self, key: ObjectKey, facts: PodFacts) -> bool {
        let group = facts.clone();
        match self.pods.insert(key, facts) {
            Some(old) if old == group => return false,
            Some(old) => self.leave_group(&old),
            None => {}
        }
        *self.groups.entry(group).or_insert(0) += 1;
        true
    }

    /// A pod is gone.
    pub fn delete_pod(&mut self, key: &ObjectKey) -> bool {
        match self.pods.remove(key) {
            Some(old) => {
                self.leave_group(&old);
                true
            }
            None => false,
        }
    }

    fn leave_group(&mut self, facts: &PodFacts) {
        if let Some(count) = self.groups.get_mut(facts) {
            *count -= 1;
            if *count == 0 {
                self.groups.remove(facts);
            }
        }
    }

    /// Replaces all workloads of one kind by those of a full list. What is of
    /// another kind is passed over.
    pub fn reset_workloads(
        &mut self,
        kind: WorkloadKind,
        workloads: impl IntoIterator<Item = (ObjectKey, WorkloadFacts)>,
    ) {
        let of_kind = workloads
            .into_iter()
            .filter(|(_, facts)| facts.kind == kind);
        self.workloads.insert(kind, of_kind.collect());
        self.drop_empty_kind(kind);
    }

    /// A workload is there, or has changed.
    pub fn apply_workload(&mut self, key: ObjectKey, facts: WorkloadFacts) -> bool {
        let of_kind = self.workloads.entry(facts.kind).or_default();
        if of_kind.get(&key) == Some(&facts) {
            return false;
        }
        of_kind.insert(key, facts);
        true
    }

    /// A workload is gone.
    pub fn delete_workload(&mut self, kind: WorkloadKind, key: &ObjectKey) -> bool {
        let removed = self
            .workloads
            .get_mut(&kind)
            .and_then(|of_kind| of_kind.remove(key));
        self.drop_empty_kind(kind);
        removed.is_some()
    }

    fn drop_empty_kind(&mut self, kind: WorkloadKind) {
        if self.workloads.get(&kind).is_some_and(BTreeMap::is_empty) {
            self.workloads.remove(&kind);
        }
    }

    /// Replaces all Nodes by those of a full list.
    pub fn reset_nodes(&mut self, nodes: impl IntoIterator<Item = NodeFacts>) {
        self.nodes = nodes
            .into_iter()
            .map(|facts| (facts.name.clone(), facts))
            .collect();
    }

    /// A Node is there, or has changed.
    pub fn apply_node(&mut self, facts: NodeFacts) -> bool {
        if self.nodes.get(&facts.name) == Some(&facts) {
            return false;
        }
        self.nodes.insert(facts.name.clone(), facts);
        true
    }

    /// A Node is gone.
    pub fn delete_node(&mut self, name: &NodeName) -> bool {
        self.nodes.remove(name).is_some()
    }

    /// A Node by name.
    pub fn node(&self, name: &NodeName) -> Option<&NodeFacts> {
        self.nodes.get(name)
    }

    /// All Nodes by name.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeFacts> {
        self.nodes.values()
    }

    /// One look at the tenant, with machines that were read before it.
    pub fn observe(&self, mut machines: Vec<ObservedMachine>) -> Observation {
        machines.sort_by(|a, b| (a.ordinal, &a.name, &a.uid).cmp(&(b.ordinal, &b.name, &b.uid)));
        Observation {
            pods: self
                .groups
                .iter()
                .map(|(facts, count)| (facts.clone(), *count))
                .collect(),
            workloads: self
                .workloads
                .values()
                .flat_map(BTreeMap::values)
                .cloned()
                .collect(),
            nodes: self.nodes.values().cloned().collect(),
            machines,
        }
    }
}
