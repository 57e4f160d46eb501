//! A small tenant, written down in the words of the rules.

use jiff::{SignedDuration, Timestamp};
use neap_core::ids::{MachineName, MachineUid, NodeName, ObjectKey, ObjectUid};
use neap_core::machine::{MachinePhase, ObservedMachine, Power};
use neap_core::observation::{
    NodeFacts, Observation, PodFacts, TenantIndex, WorkloadFacts, WorkloadKind,
};
use neap_core::scale::{self, Action, DaemonSets, Decision, Policy, State};

/// Seconds from the start of the tests' time.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

/// The time of a pass in a world that does not say another.
pub(crate) const NOW: i64 = 10_000;

pub(crate) fn machine_name(ordinal: u32) -> MachineName {
    MachineName::for_ordinal("web", ordinal)
}

pub(crate) fn node_name(ordinal: u32) -> NodeName {
    machine_name(ordinal).node()
}

/// A pod that waits for a node, without an owner.
pub(crate) fn waiting() -> PodFacts {
    PodFacts {
        owner: None,
        node: None,
        finished: false,
        baseline: false,
        gated: false,
    }
}

pub(crate) fn bound(ordinal: u32) -> PodFacts {
    PodFacts {
        node: Some(node_name(ordinal)),
        ..waiting()
    }
}

pub(crate) fn finished(pod: PodFacts) -> PodFacts {
    PodFacts {
        finished: true,
        ..pod
    }
}

pub(crate) fn baseline(pod: PodFacts) -> PodFacts {
    PodFacts {
        baseline: true,
        ..pod
    }
}

pub(crate) fn gated(pod: PodFacts) -> PodFacts {
    PodFacts { gated: true, ..pod }
}

pub(crate) fn owned(owner: &str, pod: PodFacts) -> PodFacts {
    PodFacts {
        owner: Some(ObjectUid::new(owner)),
        ..pod
    }
}

pub(crate) fn workload(kind: WorkloadKind, uid: &str, wants: u32) -> WorkloadFacts {
    WorkloadFacts {
        kind,
        uid: ObjectUid::new(uid),
        owner: None,
        wants,
    }
}

pub(crate) fn replica_set(uid: &str, deployment: &str) -> WorkloadFacts {
    WorkloadFacts {
        owner: Some(ObjectUid::new(deployment)),
        ..workload(WorkloadKind::ReplicaSet, uid, 0)
    }
}

/// A machine whose Node is Ready; the higher its ordinal, the newer it is.
pub(crate) fn running(ordinal: u32) -> ObservedMachine {
    let created = i64::from(ordinal);
    ObservedMachine {
        name: machine_name(ordinal),
        uid: MachineUid::new(format!("uid-{ordinal}")),
        ordinal,
        phase: MachinePhase::Running,
        power: Power::Running,
        created: at(created),
        joined: Some(at(created + 1)),
        idle_since: None,
        pods_per_node: 8,
        resize_failed: false,
        deleting: false,
    }
}

/// A machine made a second ago, whose Node is not there yet.
pub(crate) fn pending(ordinal: u32) -> ObservedMachine {
    ObservedMachine {
        phase: MachinePhase::Pending,
        created: at(NOW - 1),
        joined: None,
        ..running(ordinal)
    }
}

pub(crate) fn releasing(ordinal: u32) -> ObservedMachine {
    ObservedMachine {
        phase: MachinePhase::Releasing,
        ..running(ordinal)
    }
}

pub(crate) fn draining(ordinal: u32) -> ObservedMachine {
    ObservedMachine {
        phase: MachinePhase::Draining,
        ..running(ordinal)
    }
}

pub(crate) fn idle_since(seconds: i64, machine: ObservedMachine) -> ObservedMachine {
    ObservedMachine {
        idle_since: Some(at(seconds)),
        ..machine
    }
}

pub(crate) fn powered(power: Power, machine: ObservedMachine) -> ObservedMachine {
    ObservedMachine { power, ..machine }
}

pub(crate) fn deleting(machine: ObservedMachine) -> ObservedMachine {
    ObservedMachine {
        deleting: true,
        ..machine
    }
}

/// A machine with room for so many pods that could not be given more.
pub(crate) fn small(room: u32, machine: ObservedMachine) -> ObservedMachine {
    ObservedMachine {
        pods_per_node: room,
        resize_failed: true,
        ..machine
    }
}

/// The Node of a machine.
pub(crate) fn node_of(machine: &ObservedMachine) -> NodeFacts {
    NodeFacts {
        name: machine.name.node(),
        uid: ObjectUid::new(format!("node-{}", machine.uid)),
        machine: Some(machine.uid.clone()),
        ready: true,
    }
}

/// A tenant with what is remembered of it. One pod a node and ten nodes at
/// most, unless it says something else; a hold of two minutes.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) index: TenantIndex,
    pub(crate) machines: Vec<ObservedMachine>,
    pub(crate) state: State,
    pub(crate) policy: Policy,
    pub(crate) now: Timestamp,
    pods: u32,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            index: TenantIndex::new(),
            machines: Vec::new(),
            state: State::default(),
            policy: Policy {
                pods_per_node: 1,
                max_nodes: 10,
                ..Policy::default()
            },
            now: at(NOW),
            pods: 0,
        }
    }

    pub(crate) fn pods_per_node(mut self, number: u32) -> Self {
        self.policy.pods_per_node = number;
        self
    }

    pub(crate) fn min_nodes(mut self, number: u32) -> Self {
        self.policy.min_nodes = number;
        self
    }

    pub(crate) fn max_nodes(mut self, number: u32) -> Self {
        self.policy.max_nodes = number;
        self
    }

    pub(crate) fn hold(mut self, seconds: i64) -> Self {
        self.policy.hold = SignedDuration::from_secs(seconds);
        self
    }

    pub(crate) fn counting_daemon_sets(mut self) -> Self {
        self.policy.daemon_sets = DaemonSets::Count;
        self
    }

    pub(crate) fn without_work_since(mut self, seconds: i64) -> Self {
        self.state.idle_since = Some(at(seconds));
        self
    }

    pub(crate) fn last_release(mut self, seconds: i64) -> Self {
        self.state.last_release = Some(at(seconds));
        self
    }

    pub(crate) fn retry_at(mut self, seconds: i64) -> Self {
        self.state.retry_at = Some(at(seconds));
        self
    }

    pub(crate) fn now(mut self, seconds: i64) -> Self {
        self.now = at(seconds);
        self
    }

    /// Adds equal pods.
    pub(crate) fn pods(mut self, number: u32, pod: PodFacts) -> Self {
        for _ in 0..number {
            self.pods += 1;
            let key = ObjectKey::new("ci", format!("pod-{}", self.pods));
            self.index.apply_pod(key, pod.clone());
        }
        self
    }

    pub(crate) fn workload(mut self, facts: WorkloadFacts) -> Self {
        let key = ObjectKey::new("ci", facts.uid.as_str());
        self.index.apply_workload(key, facts);
        self
    }

    /// Adds a machine, and its Node if that has joined.
    pub(crate) fn machine(mut self, machine: ObservedMachine) -> Self {
        if machine.joined.is_some() {
            self.index.apply_node(node_of(&machine));
        }
        self.machine_without_node(machine)
    }

    pub(crate) fn machine_without_node(mut self, machine: ObservedMachine) -> Self {
        self.machines.retain(|other| other.name != machine.name);
        self.machines.push(machine);
        self
    }

    pub(crate) fn node(mut self, node: NodeFacts) -> Self {
        self.index.apply_node(node);
        self
    }

    pub(crate) fn observe(&self) -> Observation {
        self.index.observe(self.machines.clone())
    }

    pub(crate) fn decide(&self) -> Decision {
        scale::decide(&self.observe(), &self.state, self.now, &self.policy)
    }

    /// The actions of a pass in few words.
    pub(crate) fn actions(&self) -> Vec<String> {
        self.decide().actions.iter().map(in_words).collect()
    }
}

/// `provision 1 2`, `remove 3: MachineLost`, `release 1`, `teardown 2 1`,
/// `undo 1`.
fn in_words(action: &Action) -> String {
    let ordinal = |name: &MachineName| name.node().ordinal().unwrap().to_string();
    let list = |numbers: Vec<String>| numbers.join(" ");
    match action {
        Action::Provision { ordinals } => {
            format!(
                "provision {}",
                list(ordinals.iter().map(u32::to_string).collect())
            )
        }
        Action::Remove { machine, reason } => {
            format!("remove {}: {}", ordinal(machine), reason.code())
        }
        Action::Release { machine } => format!("release {}", ordinal(machine)),
        Action::Teardown { machines } => {
            format!("teardown {}", list(machines.iter().map(ordinal).collect()))
        }
        Action::Undo { machine } => format!("undo {}", ordinal(machine)),
    }
}

/// Checks the actions of a pass and the code of its reason.
#[track_caller]
pub(crate) fn check(world: &World, actions: &[&str], reason: &str) {
    let decision = world.decide();
    assert_eq!(world.actions(), actions, "{}", decision.reason);
    assert_eq!(decision.reason.code(), reason, "{}", decision.reason);
}
