//! The index tells what is true, however it came to know.

use crate::strategies::{any_workload, kind, pod};
use crate::world::{bound, node_name, node_of, running, waiting, workload};
use neap_core::ids::ObjectKey;
use neap_core::observation::{NodeFacts, PodFacts, TenantIndex, WorkloadFacts, WorkloadKind};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("ci", name)
}

#[test]
fn equal_pods_are_one_group() {
    let mut index = TenantIndex::new();
    index.reset_pods([
        (key("a"), waiting()),
        (key("b"), waiting()),
        (key("c"), bound(1)),
    ]);
    assert_eq!(
        index.observe(Vec::new()).pods,
        [(waiting(), 2), (bound(1), 1)]
    );
    index.delete_pod(&key("a"));
    index.delete_pod(&key("b"));
    assert_eq!(index.observe(Vec::new()).pods, [(bound(1), 1)]);
}

#[test]
fn changes_that_no_decision_sees_are_told_apart() {
    let mut index = TenantIndex::new();
    assert!(index.apply_pod(key("a"), waiting()));
    assert!(!index.apply_pod(key("a"), waiting()));
    assert!(index.apply_pod(key("a"), bound(1)));
    assert!(index.delete_pod(&key("a")));
    assert!(!index.delete_pod(&key("a")));

    let job = |wants| workload(WorkloadKind::Job, "j", wants);
    assert!(index.apply_workload(key("j"), job(1)));
    assert!(!index.apply_workload(key("j"), job(1)));
    assert!(index.apply_workload(key("j"), job(0)));
    assert!(!index.delete_workload(WorkloadKind::Deployment, &key("j")));
    assert!(index.delete_workload(WorkloadKind::Job, &key("j")));

    let node = node_of(&running(1));
    assert!(index.apply_node(node.clone()));
    assert!(!index.apply_node(node.clone()));
    assert!(index.apply_node(NodeFacts {
        ready: false,
        ..node.clone()
    }));
    assert!(index.delete_node(&node.name));
    assert!(!index.delete_node(&node.name));
}

#[test]
fn a_reset_forgets_what_the_list_does_not_hold_and_of_its_kind_alone() {
    let mut index = TenantIndex::new();
    index.apply_pod(key("old"), waiting());
    index.reset_pods([(key("new"), bound(1))]);
    assert_eq!(index.observe(Vec::new()).pods, [(bound(1), 1)]);

    index.apply_workload(key("x"), workload(WorkloadKind::Job, "job", 1));
    index.apply_workload(key("x"), workload(WorkloadKind::StatefulSet, "set", 2));
    index.reset_workloads(WorkloadKind::Job, []);
    let left = index.observe(Vec::new()).workloads;
    assert_eq!(left, [workload(WorkloadKind::StatefulSet, "set", 2)]);

    index.apply_node(node_of(&running(1)));
    index.reset_nodes([node_of(&running(2))]);
    assert_eq!(index.node(&node_name(1)), None);
    assert_eq!(index.nodes().count(), 1);
}

#[test]
fn machines_are_observed_by_ordinal() {
    let index = TenantIndex::new();
    let machines = [10, 2, 1].map(running).to_vec();
    let seen = index.observe(machines).machines;
    let ordinals: Vec<_> = seen.iter().map(|machine| machine.ordinal).collect();
    assert_eq!(ordinals, [1, 2, 10]);
}

/// What watches may tell.
#[derive(Clone, Debug)]
enum Change {
    ResetPods(Vec<(ObjectKey, PodFacts)>),
    ApplyPod(ObjectKey, PodFacts),
    DeletePod(ObjectKey),
    ResetWorkloads(WorkloadKind, Vec<(ObjectKey, WorkloadFacts)>),
    ApplyWorkload(ObjectKey, WorkloadFacts),
    DeleteWorkload(WorkloadKind, ObjectKey),
    ResetNodes(Vec<NodeFacts>),
    ApplyNode(NodeFacts),
    DeleteNode(u32),
}

fn any_change() -> impl Strategy<Value = Change> {
    let name = || "[a-e]".prop_map(|name| key(&name));
    let node = || {
        (1..5_u32, any::<bool>()).prop_map(|(ordinal, ready)| NodeFacts {
            ready,
            ..node_of(&running(ordinal))
        })
    };
    let named_pod = move || (name(), pod());
    let named_workload = move || (name(), any_workload());
    prop_oneof![
        1 => proptest::collection::vec(named_pod(), 0..4).prop_map(Change::ResetPods),
        4 => named_pod().prop_map(|(key, pod)| Change::ApplyPod(key, pod)),
        3 => name().prop_map(Change::DeletePod),
        1 => (kind(), proptest::collection::vec(named_workload(), 0..4))
            .prop_map(|(kind, list)| Change::ResetWorkloads(kind, list)),
        4 => named_workload().prop_map(|(key, facts)| Change::ApplyWorkload(key, facts)),
        3 => (kind(), name()).prop_map(|(kind, key)| Change::DeleteWorkload(kind, key)),
        1 => proptest::collection::vec(node(), 0..4).prop_map(Change::ResetNodes),
        3 => node().prop_map(Change::ApplyNode),
        2 => (1..5_u32).prop_map(Change::DeleteNode),
    ]
}

/// The plainest bookkeeping: the objects that there are.
#[derive(Default)]
struct Model {
    pods: BTreeMap<ObjectKey, PodFacts>,
    workloads: BTreeMap<(WorkloadKind, ObjectKey), WorkloadFacts>,
    nodes: BTreeMap<u32, NodeFacts>,
}

impl Model {
    fn apply(&mut self, change: Change) {
        let ordinal = |node: &NodeFacts| node.name.ordinal().unwrap();
        match change {
            Change::ResetPods(list) => self.pods = list.into_iter().collect(),
            Change::ApplyPod(key, pod) => drop(self.pods.insert(key, pod)),
            Change::DeletePod(key) => drop(self.pods.remove(&key)),
            Change::ResetWorkloads(kind, list) => {
                self.workloads.retain(|(other, _), _| *other != kind);
                let of_kind = list.into_iter().filter(|(_, facts)| facts.kind == kind);
                self.workloads
                    .extend(of_kind.map(|(key, facts)| ((kind, key), facts)));
            }
            Change::ApplyWorkload(key, facts) => {
                self.workloads.insert((facts.kind, key), facts);
            }
            Change::DeleteWorkload(kind, key) => drop(self.workloads.remove(&(kind, key))),
            Change::ResetNodes(list) => {
                self.nodes = list
                    .into_iter()
                    .map(|node| (ordinal(&node), node))
                    .collect();
            }
            Change::ApplyNode(node) => drop(self.nodes.insert(ordinal(&node), node)),
            Change::DeleteNode(number) => drop(self.nodes.remove(&number)),
        }
    }

    fn rebuild(&self) -> TenantIndex {
        let mut index = TenantIndex::new();
        index.reset_pods(self.pods.clone());
        for ((_, key), facts) in &self.workloads {
            index.apply_workload(key.clone(), facts.clone());
        }
        index.reset_nodes(self.nodes.values().cloned());
        index
    }
}

fn tell(index: &mut TenantIndex, change: Change) {
    match change {
        Change::ResetPods(list) => index.reset_pods(list),
        Change::ResetWorkloads(kind, list) => index.reset_workloads(kind, list),
        Change::ResetNodes(list) => index.reset_nodes(list),
        Change::ApplyPod(key, pod) => drop(index.apply_pod(key, pod)),
        Change::DeletePod(key) => drop(index.delete_pod(&key)),
        Change::ApplyWorkload(key, facts) => drop(index.apply_workload(key, facts)),
        Change::DeleteWorkload(kind, key) => drop(index.delete_workload(kind, &key)),
        Change::ApplyNode(node) => drop(index.apply_node(node)),
        Change::DeleteNode(number) => drop(index.delete_node(&node_name(number))),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn an_index_equals_one_built_from_scratch(changes in proptest::collection::vec(any_change(), 0..40)) {
        let mut index = TenantIndex::new();
        let mut model = Model::default();
        for change in changes {
            tell(&mut index, change.clone());
            model.apply(change);
            prop_assert_eq!(&index, &model.rebuild());
        }
        let counted: u32 = index.observe(Vec::new()).pods.iter().map(|(_, count)| count).sum();
        prop_assert_eq!(usize::try_from(counted).unwrap(), model.pods.len());
    }
}
