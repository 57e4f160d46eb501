//! Why something was decided, down to the numbers.
//!
//! One closed enum, one sentence each: the same reason serves the event on the
//! object, `neap why`, the log and what is stored with the decision.

use crate::ids::{MachineName, MachineUid, NodeName, ObjectKey};
use crate::machine::Power;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

mod sentence;

/// Code of [`Reason::VersionNotBuilt`]: by itself it never passes.
pub const VERSION_NOT_BUILT: &str = "VersionNotBuilt";

/// Reasons of events that dashboards know from cluster-autoscaler.
pub mod event {
    /// On a pod: a machine is made for it.
    pub const TRIGGERED_SCALE_UP: &str = "TriggeredScaleUp";
    /// On a pod: no machine is made for it, and why.
    pub const NOT_TRIGGER_SCALE_UP: &str = "NotTriggerScaleUp";
    /// On the Cluster: machines are made.
    pub const SCALED_UP_GROUP: &str = "ScaledUpGroup";
    /// On the Cluster: a machine did not come up.
    pub const FAILED_TO_SCALE_UP_GROUP: &str = "FailedToScaleUpGroup";
    /// On the Cluster: a machine did not join in time.
    pub const SCALE_UP_TIMED_OUT: &str = "ScaleUpTimedOut";
    /// On the Cluster: the work wants more nodes than MaxNodes.
    pub const MAX_NODES_TOTAL_REACHED: &str = "MaxNodesTotalReached";
    /// A machine leaves that is down, or on a pod: its machine leaves.
    pub const SCALE_DOWN: &str = "ScaleDown";
    /// On the Cluster: machines without work leave.
    pub const SCALE_DOWN_EMPTY: &str = "ScaleDownEmpty";
    /// On the Cluster: a machine that was to leave stays.
    pub const SCALE_DOWN_FAILED: &str = "ScaleDownFailed";
}

/// What a paused Cluster waits with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PausedWork {
    /// Machines that would come, change or go.
    Scaling,
    /// Its stop.
    Stop,
    /// Its deletion.
    Deletion,
}

/// Why something is done, or why it is not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Reason {
    /// Nothing: there is no work, and only what MinNodes keeps.
    NoWork {
        /// Machines that count.
        counted: u32,
    },
    /// Nothing: the nodes are enough for the work.
    Served {
        /// Pods that need a node.
        demand: u32,
        /// Machines that count.
        counted: u32,
    },
    /// Nothing: the work wants more nodes than MaxNodes.
    MaxNodesReached {
        /// Pods that need a node.
        demand: u32,
        /// Nodes that they would fill.
        wanted: u32,
        /// The limit.
        max_nodes: u32,
    },
    /// Nothing: machines that are leaving or stopped hold the places.
    PlacesTaken {
        /// Nodes that are missing.
        missing: u32,
        /// All records.
        records: u32,
        /// The limit.
        max_nodes: u32,
    },
    /// Nothing: no name is free for another machine.
    OrdinalsTaken {
        /// Nodes that are missing.
        missing: u32,
        /// The highest ordinal there is.
        highest: u32,
    },
    /// Nothing: making machines failed lately.
    BackingOff {
        /// Nodes that are missing.
        missing: u32,
        /// The next try.
        retry_at: Timestamp,
    },
    /// Nothing yet: there is no work, but not for the whole hold.
    AwaitingHold {
        /// Since when there is no work.
        since: Timestamp,
        /// When the hold ends.
        until: Timestamp,
        /// Nodes that leave then.
        leaving: u32,
    },
    /// Nothing yet: a node too many is idle, but not for the whole hold.
    AwaitingIdleHold {
        /// The first whose hold ends.
        machine: MachineName,
        /// When its hold ends.
        until: Timestamp,
        /// Machines that count.
        counted: u32,
        /// Nodes wanted.
        target: u32,
    },
    /// Nothing yet: the last release is less than a hold ago.
    AwaitingReleaseHold {
        /// The last release.
        last_release: Timestamp,
        /// The next one.
        until: Timestamp,
        /// Machines that count.
        counted: u32,
        /// Nodes wanted.
        target: u32,
    },
    /// Nodes are on their way: what pods that wait are told meanwhile.
    NodesComing {
        /// Machines whose Node has not joined.
        coming: u32,
        /// Machines that count.
        counted: u32,
    },
    /// One more leaves only when as many as are wanted have joined.
    AwaitingJoin {
        /// Machines whose Node has joined.
        joined: u32,
        /// Machines that count.
        counted: u32,
        /// Machines wanted.
        target: u32,
    },
    /// Nothing: more nodes than wanted, and each of them works or is young.
    NoIdleNode {
        /// Machines that count.
        counted: u32,
        /// Nodes wanted.
        target: u32,
    },
    /// Nothing: a Node says that it is a machine of ours, and no record does.
    ForeignRecord {
        /// The Node.
        node: NodeName,
        /// The machine that it names.
        machine: MachineUid,
    },

    /// Machines are made.
    ScaleUp {
        /// Pods that need a node.
        demand: u32,
        /// Pods on one node.
        pods_per_node: u32,
        /// Nodes that the pods would fill, before any limit.
        wanted: u32,
        /// Nodes wanted, within MinNodes and MaxNodes.
        target: u32,
        /// Machines that count, without the new ones.
        counted: u32,
        /// Machines that are made.
        new: u32,
    },
    /// Releasing machines are taken back.
    WorkCameBack {
        /// Nodes wanted.
        target: u32,
        /// Machines that count, without these.
        counted: u32,
        /// Machines taken back.
        undone: u32,
    },
    /// A machine is released: it is idle, and there are more than wanted.
    NodeIdle {
        /// The machine.
        machine: MachineName,
        /// Since when it holds no work.
        since: Timestamp,
        /// Machines that count, with this one.
        counted: u32,
        /// Nodes wanted.
        target: u32,
    },
    /// Machines are released: there was no work for the whole hold.
    WorkEnded {
        /// Since when there is no work.
        since: Timestamp,
        /// The hold.
        hold: SignedDuration,
        /// Machines that leave.
        leaving: u32,
        /// Machines that stay.
        staying: u32,
    },

    /// A machine is removed: it is lost.
    MachineLost {
        /// The machine.
        machine: MachineName,
        /// Its power state.
        power: Power,
    },
    /// A machine is removed: it was lost before it joined.
    LostBeforeJoin {
        /// The machine.
        machine: MachineName,
        /// Its power state.
        power: Power,
    },
    /// A machine is removed: its Node was not Ready in time.
    JoinDeadlinePassed {
        /// The machine.
        machine: MachineName,
        /// Creation of its record.
        created: Timestamp,
        /// The time that it had.
        deadline: SignedDuration,
    },
    /// A machine is removed: its Node was deleted.
    NodeVanished {
        /// The machine.
        machine: MachineName,
    },
    /// A stopped machine is removed: there was no work for the whole hold.
    StoppedWithoutWork {
        /// The machine.
        machine: MachineName,
        /// Its power state.
        power: Power,
        /// Since when there is no work.
        since: Timestamp,
    },
    /// A stopped machine is removed: work needs its place under MaxNodes.
    PlaceNeeded {
        /// The machine.
        machine: MachineName,
        /// Its power state.
        power: Power,
        /// The limit.
        max_nodes: u32,
    },

    /// A machine is removed: it was stopped while it was leaving.
    StoppedWhileLeaving {
        /// The machine.
        machine: MachineName,
        /// Its power state.
        power: Power,
    },

    /// A release is undone: a pod came in between.
    PodArrived {
        /// The machine.
        machine: MachineName,
        /// The pod.
        pod: ObjectKey,
    },
    /// A pod is failed: it was bound to a machine that had left already.
    PodLateBound {
        /// The machine.
        machine: MachineName,
        /// The pod.
        pod: ObjectKey,
    },
    /// A pod is failed: its machine is gone.
    PodLost {
        /// The machine.
        machine: MachineName,
        /// The pod.
        pod: ObjectKey,
    },
    /// A machine has room for more pods than it was made for.
    RoomGrown {
        /// The machine.
        machine: MachineName,
        /// Pods that it has room for now.
        pods_per_node: u32,
    },
    /// A machine leaves: its record was deleted by its user.
    DeletedByUser {
        /// The machine.
        machine: MachineName,
    },

    /// Nothing is started: the version of Kubernetes is not on this machine.
    VersionNotBuilt {
        /// The minor version that is asked for.
        version: String,
        /// Those that there are.
        built: Vec<String>,
    },
    /// The program of the control plane was started.
    ControlPlaneStarting {
        /// Start of the program.
        since: Timestamp,
    },
    /// The API answers, but is not ready.
    ApiNotReady,
    /// The API is ready, but pods are refused until there is a ServiceAccount.
    ServiceAccountMissing,
    /// The control plane ended or could not be started.
    ControlPlaneFailed {
        /// How, for people.
        how: String,
        /// Failures in a row.
        failures: u32,
        /// The next try.
        retry_at: Timestamp,
    },
    /// The API answers and takes pods.
    ControlPlaneReady,
    /// The control plane runs and does not answer; it is ended and started again.
    ControlPlaneHung {
        /// Since when it does not answer.
        since: Timestamp,
    },
    /// Nothing is made or ended: its user paused the Cluster.
    ClusterPaused {
        /// What waits until the pause is over.
        waiting: PausedWork,
    },
    /// A Cluster is to stop, and machines of it are left.
    ClusterStopping {
        /// How many.
        machines: u32,
    },
    /// Nothing of a Cluster runs, as its user wants it.
    ClusterStopped,
    /// A machine is removed: its Cluster stops.
    StoppedWithCluster {
        /// The machine.
        machine: MachineName,
    },
    /// A Cluster is going, and machines of it are left.
    MachinesLeft {
        /// How many.
        machines: u32,
    },
    /// A Cluster is going, and nothing of it is left.
    NothingLeft,
}

impl Reason {
    /// The CamelCase name: the reason of a condition or an event.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoWork { .. } => "NoWork",
            Self::Served { .. } => "Served",
            Self::MaxNodesReached { .. } => "MaxNodesReached",
            Self::PlacesTaken { .. } => "PlacesTaken",
            Self::OrdinalsTaken { .. } => "OrdinalsTaken",
            Self::BackingOff { .. } => "BackingOff",
            Self::AwaitingHold { .. } => "AwaitingHold",
            Self::AwaitingIdleHold { .. } => "AwaitingIdleHold",
            Self::AwaitingReleaseHold { .. } => "AwaitingReleaseHold",
            Self::NoIdleNode { .. } => "NoIdleNode",
            Self::NodesComing { .. } => "NodesComing",
            Self::AwaitingJoin { .. } => "AwaitingJoin",
            Self::ForeignRecord { .. } => "ForeignRecord",
            Self::ScaleUp { .. } => "ScaleUp",
            Self::WorkCameBack { .. } => "WorkCameBack",
            Self::NodeIdle { .. } => "NodeIdle",
            Self::WorkEnded { .. } => "WorkEnded",
            Self::MachineLost { .. } => "MachineLost",
            Self::LostBeforeJoin { .. } => "LostBeforeJoin",
            Self::JoinDeadlinePassed { .. } => "JoinDeadlinePassed",
            Self::NodeVanished { .. } => "NodeVanished",
            Self::StoppedWithoutWork { .. } => "StoppedWithoutWork",
            Self::PlaceNeeded { .. } => "PlaceNeeded",
            Self::StoppedWhileLeaving { .. } => "StoppedWhileLeaving",
            Self::PodArrived { .. } => "PodArrived",
            Self::PodLateBound { .. } => "PodLateBound",
            Self::PodLost { .. } => "PodLost",
            Self::RoomGrown { .. } => "RoomGrown",
            Self::DeletedByUser { .. } => "DeletedByUser",
            Self::VersionNotBuilt { .. } => VERSION_NOT_BUILT,
            Self::ControlPlaneStarting { .. } => "ControlPlaneStarting",
            Self::ApiNotReady => "ApiNotReady",
            Self::ServiceAccountMissing => "ServiceAccountMissing",
            Self::ControlPlaneFailed { .. } => "ControlPlaneFailed",
            Self::ControlPlaneReady => "ControlPlaneReady",
            Self::ControlPlaneHung { .. } => "ControlPlaneHung",
            Self::ClusterPaused { .. } => "ClusterPaused",
            Self::ClusterStopping { .. } => "ClusterStopping",
            Self::ClusterStopped => "ClusterStopped",
            Self::StoppedWithCluster { .. } => "StoppedWithCluster",
            Self::MachinesLeft { .. } => "MachinesLeft",
            Self::NothingLeft => "NothingLeft",
        }
    }

    /// The event that a pod without a node is told, if this concerns it.
    pub fn waiting_pod_event(&self) -> Option<&'static str> {
        match self {
            Self::ScaleUp { .. } | Self::WorkCameBack { .. } | Self::NodesComing { .. } => {
                Some(event::TRIGGERED_SCALE_UP)
            }
            Self::MaxNodesReached { .. }
            | Self::PlacesTaken { .. }
            | Self::OrdinalsTaken { .. }
            | Self::BackingOff { .. }
            | Self::ClusterPaused { .. }
            | Self::ClusterStopping { .. }
            | Self::ForeignRecord { .. } => Some(event::NOT_TRIGGER_SCALE_UP),
            _ => None,
        }
    }

    /// The event on the Cluster: the name that cluster-autoscaler gives it
    /// where there is one, else [`Self::code`].
    pub fn cluster_event(&self) -> &'static str {
        match self {
            Self::ScaleUp { .. } => event::SCALED_UP_GROUP,
            Self::MaxNodesReached { .. } => event::MAX_NODES_TOTAL_REACHED,
            Self::LostBeforeJoin { .. } => event::FAILED_TO_SCALE_UP_GROUP,
            Self::JoinDeadlinePassed { .. } => event::SCALE_UP_TIMED_OUT,
            Self::NodeIdle { .. } | Self::WorkEnded { .. } => event::SCALE_DOWN_EMPTY,
            Self::PodArrived { .. } => event::SCALE_DOWN_FAILED,
            Self::MachineLost { .. }
            | Self::NodeVanished { .. }
            | Self::StoppedWithoutWork { .. }
            | Self::PlaceNeeded { .. }
            | Self::StoppedWhileLeaving { .. }
            | Self::StoppedWithCluster { .. }
            | Self::DeletedByUser { .. } => event::SCALE_DOWN,
            _ => self.code(),
        }
    }

    /// Whether MaxNodes is what keeps work waiting.
    pub fn is_at_max(&self) -> bool {
        matches!(
            self,
            Self::MaxNodesReached { .. } | Self::PlacesTaken { .. }
        )
    }

    /// Whether a machine is removed that never came up: one more failure for
    /// the backoff of provisioning.
    pub fn is_provisioning_failure(&self) -> bool {
        matches!(
            self,
            Self::LostBeforeJoin { .. } | Self::JoinDeadlinePassed { .. }
        )
    }

    /// Whether an event that tells it is a Warning.
    pub fn is_warning(&self) -> bool {
        matches!(
            self,
            Self::MaxNodesReached { .. }
                | Self::OrdinalsTaken { .. }
                | Self::BackingOff { .. }
                | Self::ForeignRecord { .. }
                | Self::MachineLost { .. }
                | Self::LostBeforeJoin { .. }
                | Self::JoinDeadlinePassed { .. }
                | Self::NodeVanished { .. }
                | Self::PodLateBound { .. }
                | Self::PodLost { .. }
                | Self::VersionNotBuilt { .. }
                | Self::ControlPlaneHung { .. }
                | Self::ControlPlaneFailed { .. }
        )
    }
}
