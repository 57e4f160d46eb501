//! The capabilities that the loops act through. Implementations live in
//! `neap-controlplane` and `neap-machine`; the loops name neither.

use async_trait::async_trait;
use jiff::Timestamp;
use neap_core::audit::AuditLevel;
use neap_core::fence::Fence;
use neap_core::ids::{ClusterUid, MachineName, MachineUid};
use neap_core::lifecycle::ObservedControlPlane;
use neap_core::machine::Power;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;
use tokio::sync::mpsc;

/// Any failure of an implementation, with its chain of sources.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// An act on a control plane that failed.
#[derive(Debug, thiserror::Error)]
#[error("failed to {operation} the control plane of cluster {cluster}")]
pub struct ControlPlaneError {
    /// A verb: `start`, `stop`, `delete`, `reach`.
    pub operation: &'static str,
    /// The Cluster by UID.
    pub cluster: ClusterUid,
    /// Why.
    #[source]
    pub source: Cause,
}

/// An act on a machine that failed.
#[derive(Debug, thiserror::Error)]
#[error("failed to {operation} machine {machine}")]
pub struct MachineError {
    /// A verb: `create`, `observe`, `stop the kubelet of`, `resize`, `delete`.
    pub operation: &'static str,
    /// The machine by UID.
    pub machine: MachineUid,
    /// Why.
    #[source]
    pub source: Cause,
}

/// The machines of a Cluster could not be listed.
#[derive(Debug, thiserror::Error)]
#[error("failed to list the machines of cluster {cluster}")]
pub struct ListMachinesError {
    /// The Cluster by UID.
    pub cluster: ClusterUid,
    /// Why.
    #[source]
    pub source: Cause,
}

/// What a control plane is started from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlPlanePlan {
    /// UID of the Cluster record: names folders, namespaces, cgroups.
    pub cluster: ClusterUid,
    /// Account (namespace of the record) and name, for people and certificates.
    pub account: String,
    /// Name of the record.
    pub name: String,
    /// Whether privileged pods are allowed.
    pub allow_privileged: bool,
    /// How much its audit log keeps, from the next start on.
    pub audit: AuditLevel,
    /// The distro it was started with, which it keeps.
    pub distro: Option<String>,
    /// Minor version for a first start, or `None` for the newest.
    pub version: Option<String>,
}

/// As whom a tenant API is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TenantIdentity {
    /// The loops: exactly the rights that they use.
    Operator,
    /// `system:masters`, only to write the first RBAC objects.
    Bootstrap,
}

/// What a node needs to be one of a cluster's.
#[derive(Clone)]
pub struct NodeCredentials {
    /// The distro of its control plane. A node is made of the same: a kubelet
    /// must not be newer than its API server.
    pub distro: String,
    /// URL of the tenant API as nodes reach it.
    pub server: String,
    /// CA of serving certificates, PEM.
    pub server_ca: String,
    /// CA of client certificates, PEM.
    pub client_ca: String,
    /// Client certificate `system:node:<name>`, PEM.
    pub client_certificate: String,
    /// Its key, PEM.
    pub client_key: String,
    /// Client certificate of kube-proxy on this node, PEM.
    pub proxy_certificate: String,
    /// Its key, PEM.
    pub proxy_key: String,
    /// The kubelet's serving certificate, PEM.
    pub serving_certificate: String,
    /// Its key, PEM.
    pub serving_key: String,
}

impl std::fmt::Debug for NodeCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeCredentials")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

/// Starts, watches and ends control planes. Every call may be repeated.
#[async_trait]
pub trait ControlPlanes: Send + Sync {
    /// Starts it, or adopts what runs already. Returns the distro in use once
    /// the program is started, not once it is ready.
    async fn ensure(&self, plan: &ControlPlanePlan) -> Result<String, ControlPlaneError>;

    /// What is true now: absent, running, exited.
    async fn observe(
        &self,
        cluster: &ClusterUid,
    ) -> Result<ObservedControlPlane, ControlPlaneError>;

    /// Waits until the program that runs now has ended; for ever while none
    /// does. May be dropped at any time.
    async fn ended(&self, cluster: &ClusterUid);

    /// Ends its program, in order where that is possible, and keeps its data;
    /// [`Self::ensure`] starts it again.
    async fn stop(&self, cluster: &ClusterUid) -> Result<(), ControlPlaneError>;

    /// Stops it and removes all that it is: processes, namespace, files.
    /// Returns after the proof of absence.
    async fn delete(&self, cluster: &ClusterUid) -> Result<(), ControlPlaneError>;

    /// A client of the tenant API.
    async fn client(
        &self,
        cluster: &ClusterUid,
        identity: TenantIdentity,
    ) -> Result<kube::Client, ControlPlaneError>;

    /// Writes the first RBAC objects, by which the loops have the rights that
    /// they use, users are administrators of their cluster, and the API server
    /// may speak to kubelets. As [`TenantIdentity::Bootstrap`].
    async fn bootstrap(&self, cluster: &ClusterUid) -> Result<(), ControlPlaneError>;

    /// Certificates for a new node.
    async fn node_credentials(
        &self,
        cluster: &ClusterUid,
        node: &MachineName,
        address: Ipv4Addr,
    ) -> Result<NodeCredentials, ControlPlaneError>;

    /// Minor versions of Kubernetes of which there is a distro, such as
    /// "1.37", oldest first.
    fn versions(&self) -> Vec<String>;

    /// The URL by which users reach it, without secrets.
    fn endpoint(&self, plan: &ControlPlanePlan) -> String;
}

/// What a machine is made from.
#[derive(Clone, Debug)]
pub struct MachinePlan {
    /// UID of the Machine record.
    pub machine: MachineUid,
    /// Name of the record and of the Node.
    pub name: MachineName,
    /// UID of the Cluster record.
    pub cluster: ClusterUid,
    /// `<account>/<name>` of the Cluster, for the copy beside the data.
    pub cluster_name: String,
    /// Address on the Cluster's bridge.
    pub address: Ipv4Addr,
    /// Length of the prefix of that address.
    pub prefix: u8,
    /// The bridge's own address.
    pub gateway: Ipv4Addr,
    /// Range of the pods on this node, CIDR.
    pub pod_range: String,
    /// Range of all pods of the Cluster, CIDR.
    pub cluster_range: String,
    /// Address of the cluster DNS service.
    pub dns: Ipv4Addr,
    /// CPU of the class, thousandths.
    pub cpu_milli: u64,
    /// Memory of the class.
    pub memory_bytes: u64,
    /// Disk of the class.
    pub disk_bytes: u64,
    /// kubelet's `maxPods`.
    pub max_pods: u32,
    /// Whether it keeps its containers in.
    pub fence: Fence,
    /// `neap://<cluster>/<node>`.
    pub provider_id: String,
    /// Labels that the kubelet registers with.
    pub labels: BTreeMap<String, String>,
    /// Its certificates.
    pub credentials: NodeCredentials,
}

/// A machine as its provider has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvidedMachine {
    /// UID of the record that it was made for.
    pub machine: MachineUid,
    /// UID of the Cluster that it belongs to.
    pub cluster: ClusterUid,
    /// Its power state.
    pub power: Power,
    /// What went wrong, if something did.
    pub message: Option<String>,
}

/// Makes and ends machines. Every call may be repeated.
#[async_trait]
pub trait NodeProvider: Send + Sync {
    /// Makes the machine and starts it; returns before its Node joins.
    async fn create(&self, plan: &MachinePlan) -> Result<(), MachineError>;

    /// Whether its machines share the kernel of the host: a fence, not a wall.
    fn shares_kernel(&self) -> bool;

    /// Why what this machine writes is not bounded by the disk of its class, if
    /// it is not.
    fn unbounded_disk(&self, cluster: &ClusterUid, machine: &MachineUid) -> Option<String>;

    /// The machine of this record, or `None` when the provider has none: a
    /// proof, not a guess. What was cut short before its start is none:
    /// [`Self::create`] finishes it, [`Self::delete`] removes it.
    async fn observe(&self, machine: &MachineUid) -> Result<Option<ProvidedMachine>, MachineError>;

    /// All that it has of machines of this Cluster, whoever knows of them; also
    /// what was cut short before its start and what it does not understand.
    async fn list(&self, cluster: &ClusterUid) -> Result<Vec<ProvidedMachine>, ListMachinesError>;

    /// Stops the kubelet and waits until it has ended; containers run on.
    async fn stop_kubelet(&self, machine: &MachineUid) -> Result<(), MachineError>;

    /// Starts the kubelet again if it does not run.
    async fn start_kubelet(&self, machine: &MachineUid) -> Result<(), MachineError>;

    /// Gives the Node room for this many pods, unless it has room for more;
    /// containers run on. What an earlier call began is finished.
    async fn set_max_pods(&self, machine: &MachineUid, max_pods: u32) -> Result<(), MachineError>;

    /// Ends the machine and removes all that it is. Returns after the proof
    /// of absence.
    async fn delete(&self, machine: &MachineUid) -> Result<(), MachineError>;

    /// Yields the UID of each machine whose power state changed unasked. To
    /// be taken once.
    fn changes(&self) -> mpsc::Receiver<MachineUid>;
}

/// Time, as an input.
#[async_trait]
pub trait Clock: Send + Sync {
    /// Wall clock time.
    fn now(&self) -> Timestamp;

    /// Waits.
    async fn sleep(&self, duration: Duration);
}
