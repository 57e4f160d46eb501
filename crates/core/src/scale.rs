//! The scale decision: from one observation, what is remembered, the time and
//! the policy to a target and the actions that reach it.

use crate::demand::intent;
use crate::ids::MachineName;
use crate::machine::MachinePhase;
use crate::observation::Observation;
use crate::reason::Reason;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

mod grow;
mod halt;
mod leaving;
mod ordinals;
mod pass;
mod shrink;

use pass::Pass;

/// From the creation of a record until its Node has to be Ready.
pub const JOIN_DEADLINE: SignedDuration = SignedDuration::from_secs(60);

/// Version of the stored form of [`Decision`].
pub const DECISION_VERSION: u32 = 1;

/// How a DaemonSet's desired number is seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DaemonSets {
    /// Not at all: else a node would hold itself for ever.
    #[default]
    Ignore,
    /// As work, like the reference system.
    Count,
}

/// What is to become of the machines of a Cluster at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Activity {
    /// They follow the work.
    #[default]
    Scale,
    /// They stay as they are: its user paused the Cluster.
    Pause,
    /// They go, with what runs on them: the Cluster stops.
    Empty,
}

impl Activity {
    /// What `spec.running` and `spec.paused` mean together: a stop waits until
    /// the pause is over.
    pub fn of(running: bool, paused: bool) -> Self {
        match (running, paused) {
            (_, true) => Self::Pause,
            (true, false) => Self::Scale,
            (false, false) => Self::Empty,
        }
    }
}

/// The counting policy of one Cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Pods that one node is made for; at least 1.
    pub pods_per_node: u32,
    /// Most Machine records at any time; at least 1.
    pub max_nodes: u32,
    /// Nodes kept without work.
    pub min_nodes: u32,
    /// How long without work (or idle) before anything leaves.
    pub hold: SignedDuration,
    /// Whether DaemonSets count.
    pub daemon_sets: DaemonSets,
    /// Whether machines follow the work at all.
    #[serde(default)]
    pub activity: Activity,
}

/// What `scaling` means where it says nothing.
impl Default for Policy {
    fn default() -> Self {
        Self {
            pods_per_node: 8,
            max_nodes: 1,
            min_nodes: 0,
            hold: SignedDuration::from_mins(2),
            daemon_sets: DaemonSets::Ignore,
            activity: Activity::Scale,
        }
    }
}

/// What is remembered between passes; it lives on the objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Since when there has been no intent (`Cluster.status.idleSince`).
    pub idle_since: Option<Timestamp>,
    /// The last Release that was carried out (`Cluster.status.lastRelease`).
    pub last_release: Option<Timestamp>,
    /// No machine is made before this time
    /// (`Cluster.status.provisioning.retryAt`).
    pub retry_at: Option<Timestamp>,
}

/// What a pass wants remembered, apart from the outcome of its actions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remember {
    /// New `Cluster.status.idleSince`.
    pub idle_since: Option<Timestamp>,
    /// New `Machine.status.idleSince` of each counted Running machine.
    pub machines: BTreeMap<MachineName, Option<Timestamp>>,
}

/// One thing to do. It leaves the actor no choice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all_fields = "camelCase")]
pub enum Action {
    /// Make the records with these ordinals, lowest first.
    Provision {
        /// Ordinals from 1.
        ordinals: Vec<u32>,
    },
    /// Remove a machine at once: no hold, no cordon; its pods are failed first.
    Remove {
        /// Its record.
        machine: MachineName,
        /// Why.
        reason: Reason,
    },
    /// Begin to release one idle machine while there is work.
    Release {
        /// Its record.
        machine: MachineName,
    },
    /// Begin to release these machines, newest first: there is no work.
    Teardown {
        /// Their records.
        machines: Vec<MachineName>,
    },
    /// Take a Releasing machine back.
    Undo {
        /// Its record.
        machine: MachineName,
    },
}

/// The outcome of a pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// [`DECISION_VERSION`].
    pub version: u32,
    /// Pods that need a node.
    pub demand: u32,
    /// Nodes wanted in all; a total, never a difference.
    pub target: u32,
    /// Machines that count now.
    pub counted: u32,
    /// What to do, in this order; empty with the reason why not.
    pub actions: Vec<Action>,
    /// Why, down to the numbers.
    pub reason: Reason,
    /// What to remember.
    pub remember: Remember,
    /// When time alone would change the decision.
    pub next: Option<Timestamp>,
}

/// Pods that the target is reckoned from fill this many nodes, before any
/// limit.
pub fn wanted(demand: u32, policy: &Policy) -> u32 {
    demand.div_ceil(policy.pods_per_node.max(1))
}

/// The same, where some nodes that are there have room for fewer pods and
/// could not be given more: they are taken to be filled before any other.
pub fn wanted_beside(small: &[u32], demand: u32, policy: &Policy) -> u32 {
    let mut small = small.to_vec();
    small.sort_unstable();
    let (mut left, mut filled) = (demand, 0_u32);
    for room in small {
        if left > 0 {
            left = left.saturating_sub(room);
            filled = filled.saturating_add(1);
        }
    }
    filled.saturating_add(wanted(left, policy))
}

/// Nodes wanted in all. With work at least one and at least MinNodes, without
/// work MinNodes, and never more than MaxNodes.
pub fn target(demand: u32, policy: &Policy) -> u32 {
    limited(wanted(demand, policy), demand, policy)
}

/// As many of the nodes that the work fills as the limits allow.
fn limited(wanted: u32, demand: u32, policy: &Policy) -> u32 {
    let least = if intent(demand) {
        policy.min_nodes.max(1)
    } else {
        policy.min_nodes
    };
    wanted.max(least).min(policy.max_nodes)
}

/// Decides one pass. Pure and total: the same input yields the same output,
/// in whatever order the observation lists things.
pub fn decide(
    observation: &Observation,
    state: &State,
    now: Timestamp,
    policy: &Policy,
) -> Decision {
    Pass::new(observation, state, now, policy).decide()
}

/// What the pods that wait are told: the reason, with an event of theirs. A
/// limit is told them only once nothing more is on its way.
pub fn told_to_waiting_pods(decision: &Decision, observation: &Observation) -> Option<Reason> {
    let makes = |action: &Action| matches!(action, Action::Provision { .. });
    let coming = observation
        .machines
        .iter()
        .filter(|machine| machine.phase == MachinePhase::Pending && leaving::counts(machine))
        .count();
    let reason = if coming > 0 && !decision.actions.iter().any(makes) {
        Reason::NodesComing {
            coming: u32::try_from(coming).unwrap_or(u32::MAX),
            counted: decision.counted,
        }
    } else {
        decision.reason.clone()
    };
    reason.waiting_pod_event().is_some().then_some(reason)
}

fn number<T>(things: &[T]) -> u32 {
    u32::try_from(things.len()).unwrap_or(u32::MAX)
}

fn size(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
