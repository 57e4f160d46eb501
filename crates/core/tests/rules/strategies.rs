//! Worlds of any kind, for properties.

use crate::world::{NOW, World, at, node_of, owned, pending, replica_set, running, workload};
use neap_core::machine::{MachinePhase, ObservedMachine, Power};
use neap_core::observation::{PodFacts, WorkloadFacts, WorkloadKind};
use neap_core::scale::DaemonSets;
use proptest::prelude::*;
use proptest::sample::select;

/// Owners of pods; the last is no workload that is watched.
const OWNERS: [&str; 6] = [
    "Job-a",
    "Deployment-a",
    "ReplicaSet-a",
    "ReplicaSet-b",
    "DaemonSet-a",
    "TaskRun-a",
];

pub(crate) fn kind() -> impl Strategy<Value = WorkloadKind> {
    select(vec![
        WorkloadKind::Job,
        WorkloadKind::Deployment,
        WorkloadKind::StatefulSet,
        WorkloadKind::ReplicaSet,
        WorkloadKind::DaemonSet,
    ])
}

pub(crate) fn pod() -> impl Strategy<Value = PodFacts> {
    let owner = proptest::option::of(select(OWNERS.to_vec()));
    let node = proptest::option::of(1..7_u32);
    let rarely = || proptest::bool::weighted(0.2);
    (owner, node, rarely(), rarely(), rarely()).prop_map(
        |(owner, node, finished, baseline, gated)| {
            let pod = PodFacts {
                owner: None,
                node: node.map(crate::world::node_name),
                finished,
                baseline,
                gated: gated && node.is_none(),
            };
            match owner {
                Some(owner) => owned(owner, pod),
                None => pod,
            }
        },
    )
}

pub(crate) fn any_workload() -> impl Strategy<Value = WorkloadFacts> {
    (kind(), "[ab]", 0..6_u32).prop_map(|(kind, letter, wants)| {
        let uid = format!("{kind:?}-{letter}");
        match kind {
            WorkloadKind::ReplicaSet => replica_set(&uid, "Deployment-a"),
            _ => workload(kind, &uid, wants),
        }
    })
}

fn time() -> impl Strategy<Value = i64> {
    // Around the holds and deadlines, and now and then in the future.
    prop_oneof![8 => NOW - 200..=NOW, 1 => NOW..NOW + 5_000, 1 => Just(NOW - 60)]
}

fn machine(ordinal: u32) -> impl Strategy<Value = ObservedMachine> {
    let phase = select(vec![
        MachinePhase::Pending,
        MachinePhase::Running,
        MachinePhase::Running,
        MachinePhase::Releasing,
        MachinePhase::Draining,
    ]);
    let power = prop_oneof![
        6 => Just(Power::Running),
        1 => Just(Power::Stopped),
        1 => Just(Power::Shutdown),
        1 => Just(Power::Error),
        1 => Just(Power::Unknown),
    ];
    let idle = proptest::option::of(time());
    let rarely = || proptest::bool::weighted(0.1);
    (phase, power, time(), idle, rarely(), (1..5_u32, rarely())).prop_map(
        move |(phase, power, created, idle, deleting, (pods_per_node, resize_failed))| {
            let base = match phase {
                MachinePhase::Pending => pending(ordinal),
                _ => running(ordinal),
            };
            ObservedMachine {
                phase,
                power,
                created: at(created),
                idle_since: idle.map(at),
                deleting,
                pods_per_node,
                resize_failed,
                ..base
            }
        },
    )
}

/// A tenant in any state, however unlikely, but without foreign Nodes.
pub(crate) fn any_world() -> impl Strategy<Value = World> {
    let machines = (1..=6_u32)
        .map(|ordinal| proptest::option::of((machine(ordinal), proptest::bool::weighted(0.9))))
        .collect::<Vec<_>>();
    let pods = proptest::collection::vec((pod(), 1..4_u32), 0..8);
    let workloads = proptest::collection::vec(any_workload(), 0..5);
    let state = (
        proptest::option::of(time()),
        proptest::option::of(time()),
        proptest::option::weighted(0.2, time()),
    );
    let policy = (1..5_u32, 0..3_u32, 1..8_u32, select(vec![0, 1, 120]));
    (machines, pods, workloads, state, policy, any::<bool>()).prop_map(
        |(machines, pods, workloads, state, policy, count)| {
            let (pods_per_node, min_nodes, max_nodes, hold) = policy;
            let mut world = World::new()
                .pods_per_node(pods_per_node)
                .min_nodes(min_nodes.min(max_nodes))
                .max_nodes(max_nodes)
                .hold(hold);
            if count {
                world.policy.daemon_sets = DaemonSets::Count;
            }
            world.state.idle_since = state.0.map(at);
            world.state.last_release = state.1.map(at);
            world.state.retry_at = state.2.map(at);
            for (pod, number) in pods {
                world = world.pods(number, pod);
            }
            for facts in workloads {
                world = world.workload(facts);
            }
            for (machine, has_node) in machines.into_iter().flatten() {
                let node = node_of(&machine);
                let joined = machine.joined.is_some();
                world = world.machine_without_node(machine);
                if joined && has_node {
                    world = world.node(node);
                }
            }
            world
        },
    )
}
