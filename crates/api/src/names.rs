//! Every name that neap writes on an object, in one place.

use neap_core::ids::MachineName;

/// API group of the custom resources.
pub const GROUP: &str = "neap.dev";
/// Their version.
pub const VERSION: &str = "v1alpha1";

/// Label: name of the Cluster, on Machines and on Nodes.
pub const LABEL_CLUSTER: &str = "neap.dev/cluster";
/// Label: UID of the Machine record, on the Node that it made. A Node without
/// it is nobody's business of ours.
pub const LABEL_MACHINE_UID: &str = "neap.dev/machine-uid";
/// Label: the installation of neap that made this object.
pub const LABEL_INSTALLATION: &str = "neap.dev/installation";
/// Label: a pod in kube-system that wants no node of its own.
pub const LABEL_BASELINE: &str = "neap.dev/baseline";

/// Annotation on a Cluster: any change of its value causes a pass, which
/// repeats the value in `status.lastDecision.requestedAt`.
pub const ANNOTATION_REQUESTED_AT: &str = "neap.dev/requested-at";
/// Annotation on a Node: the cordon is ours, and only then may we lift it.
pub const ANNOTATION_CORDONED_BY: &str = "neap.dev/cordoned-by";

/// Finalizer of a Cluster: its data goes only by it.
pub const FINALIZER_CLUSTER: &str = "neap.dev/cluster";
/// Finalizer of a Machine: its record goes after the machine.
pub const FINALIZER_MACHINE: &str = "neap.dev/machine";

/// Field manager, and reporter of events, of the cluster loop.
pub const MANAGER_CLUSTER: &str = "neap-cluster";
/// Field manager, and reporter of events, of the scaling loop.
pub const MANAGER_SCALING: &str = "neap-scaling";

/// Scheme of provider ids: `neap://<cluster>/<node>`.
pub const PROVIDER_SCHEME: &str = "neap";

/// Condition of a Cluster: its API answers and can take pods. Of a Machine:
/// its Node is Ready.
pub const CONDITION_READY: &str = "Ready";
/// Condition of a Cluster: the process of its control plane runs and its API
/// answers.
pub const CONDITION_CONTROL_PLANE_READY: &str = "ControlPlaneReady";
/// Condition of a Cluster: it is paused; its message says what waits.
pub const CONDITION_PAUSED: &str = "Paused";
/// Condition of a Cluster: what is in it can be listed, so that a decision can
/// be made.
pub const CONDITION_TENANT_READABLE: &str = "TenantReadable";
/// Condition of a Cluster: the machines that it wants can be made.
pub const CONDITION_PROVISIONED: &str = "Provisioned";
/// Condition of a Machine: it shares the kernel of the host.
pub const CONDITION_SHARED_KERNEL: &str = "SharedKernel";
/// Condition of a Machine: its disk has the size of its class.
pub const CONDITION_DISK_BOUNDED: &str = "DiskBounded";

/// Reasons of conditions, and of the events of the cluster loop. Those of
/// decisions are in `neap_core::reason::event`.
pub mod reasons {
    /// Cluster, event: its control plane was started.
    pub const STARTED: &str = "Started";
    /// Cluster, event: a control plane that ran already was taken over.
    pub const ADOPTED: &str = "Adopted";

    /// Cluster, event: its control plane was stopped, and its data is kept.
    pub const STOPPED: &str = "Stopped";
    /// Cluster, Paused=False.
    pub const NOT_PAUSED: &str = "NotPaused";

    /// Cluster, Ready and ControlPlaneReady=Unknown: its loop fails.
    pub const LOOP_FAILED: &str = "LoopFailed";

    /// Cluster, TenantReadable=True.
    pub const LISTED: &str = "Listed";
    /// Cluster, TenantReadable=False: a list failed, and nothing is decided on it.
    pub const LIST_FAILED: &str = "ListFailed";

    /// Cluster, Provisioned=True.
    pub const MACHINES_MADE: &str = "MachinesMade";
    /// Cluster, Provisioned=False: making a machine failed; `retryAt` says
    /// when it is tried again.
    pub const BACKING_OFF: &str = "BackingOff";
    /// Machine, Ready=True.
    pub const NODE_READY: &str = "NodeReady";
    /// Machine, Ready=False: its Node has not joined yet.
    pub const NODE_PENDING: &str = "NodePending";
    /// Machine, Ready=False: its Node is not Ready.
    pub const NODE_NOT_READY: &str = "NodeNotReady";
    /// Machine, Ready=False: it is leaving.
    pub const LEAVING: &str = "Leaving";
    /// Machine, SharedKernel=True: it is a container.
    pub const CONTAINER: &str = "Container";
    /// Machine, DiskBounded=True: it has a file system of its own.
    pub const OWN_FILE_SYSTEM: &str = "OwnFileSystem";
    /// Machine, DiskBounded=False: it writes to the host's.
    pub const HOST_FILE_SYSTEM: &str = "HostFileSystem";

    /// Pod, condition DisruptionTarget and event: its machine is gone.
    pub const MACHINE_GONE: &str = "MachineGone";
}

/// Longest name of a Cluster: a Node is named `<cluster>-node<ordinal>`, and
/// host names have at most 63 characters.
pub const CLUSTER_NAME_MAX: usize = 40;

/// Name of the Machine with this ordinal and of its Node.
pub fn machine_name(cluster: &str, ordinal: u32) -> MachineName {
    MachineName::for_ordinal(cluster, ordinal)
}

/// `spec.providerID` of a Node.
pub fn provider_id(cluster: &str, node: &str) -> String {
    format!("{PROVIDER_SCHEME}://{cluster}/{node}")
}
