//! What one pass sees, and the index that keeps it up to date.
//!
//! The index is fed by watches (`reset`, `apply`, `delete` per kind) and holds
//! of each object only what a decision reads. Pods that are equal in that
//! respect are one group with a count.

use crate::ids::{MachineUid, NodeName, ObjectUid};
use crate::machine::ObservedMachine;
use serde::{Deserialize, Serialize};

mod index;

pub use index::TenantIndex;

/// All that a decision reads of a pod. Equal pods are counted together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PodFacts {
    /// UID of the controlling owner, if any: a Job, a ReplicaSet, ...
    pub owner: Option<ObjectUid>,
    /// `spec.nodeName`.
    pub node: Option<NodeName>,
    /// Succeeded or Failed.
    pub finished: bool,
    /// DaemonSet or mirror pod, or labelled baseline in kube-system.
    pub baseline: bool,
    /// Held back by scheduling gates.
    pub gated: bool,
}

/// A kind whose objects want pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum WorkloadKind {
    /// batch/v1 Job.
    Job,
    /// apps/v1 Deployment.
    Deployment,
    /// apps/v1 StatefulSet.
    StatefulSet,
    /// apps/v1 ReplicaSet: only a link from its pods to its Deployment.
    ReplicaSet,
    /// apps/v1 DaemonSet.
    DaemonSet,
}

/// All that a decision reads of a workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadFacts {
    /// Its kind.
    pub kind: WorkloadKind,
    /// Its UID, which its pods name as owner.
    pub uid: ObjectUid,
    /// UID of its own controlling owner.
    pub owner: Option<ObjectUid>,
    /// Pods it still needs; 0 when suspended, finished or a ReplicaSet, and
    /// when its template holds pods back by gates. A DaemonSet: its desired
    /// number.
    pub wants: u32,
}

/// All that a decision reads of a Node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeFacts {
    /// Its name.
    pub name: NodeName,
    /// Its UID.
    pub uid: ObjectUid,
    /// The Machine that it says it is, by our label.
    pub machine: Option<MachineUid>,
    /// Condition Ready is True.
    pub ready: bool,
}

/// One consistent look at a cluster. Machines were read before pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// Groups of equal pods.
    pub pods: Vec<(PodFacts, u32)>,
    /// Workloads by namespace and name.
    pub workloads: Vec<WorkloadFacts>,
    /// Nodes of the tenant, ours and others.
    pub nodes: Vec<NodeFacts>,
    /// Machine records of this cluster.
    pub machines: Vec<ObservedMachine>,
}
