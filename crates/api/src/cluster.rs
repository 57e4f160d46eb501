//! `Cluster`: a whole Kubernetes API, and as many nodes as its work needs.

#![expect(
    unreachable_pub,
    reason = "the schema derive copies each struct into a function"
)]

mod status;

pub use status::{ClusterPhase, ClusterStatus, DecidedAction, Failures, LastDecision, LastFailure};

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// What a user wants of a cluster. Everything has a default: `spec: {}` is a
/// good cluster.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "neap.dev",
    version = "v1alpha1",
    kind = "Cluster",
    namespaced,
    shortname = "nc",
    category = "neap",
    status = "ClusterStatus",
    derive = "PartialEq",
    cel,
    doc = "A whole Kubernetes API, and as many nodes as its work needs: none without work.",
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(
        name = "Demand",
        type_ = "integer",
        json_path = ".status.demand",
        description = "Pods that need a node"
    ),
    printcolumn(
        name = "Target",
        type_ = "integer",
        json_path = ".status.target",
        description = "Nodes wanted"
    ),
    printcolumn(
        name = "Nodes",
        type_ = "integer",
        json_path = ".status.nodes",
        description = "Nodes that are Ready"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Max",
        type_ = "integer",
        json_path = ".spec.scaling.maxNodes",
        priority = 1
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.lastDecision.reason",
        priority = 1
    ),
    printcolumn(
        name = "Distro",
        type_ = "string",
        json_path = ".status.distro",
        priority = 1
    ),
    printcolumn(
        name = "Endpoint",
        type_ = "string",
        json_path = ".status.endpoint",
        priority = 1
    ),
    validation = Rule::new("self.metadata.name.size() <= 40").message(
        "the name of a Cluster has at most 40 characters, because its Nodes are named <cluster>-node<ordinal>"
    ),
    validation = Rule::new("self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')").message(
        "the name of a Cluster is a DNS label: lower case letters, digits and '-', without dots"
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(oldSelf.version) || (has(self.version) && self.version == oldSelf.version)")
        .message("version cannot change once it is set")
)]
pub struct ClusterSpec {
    /// Minor version of Kubernetes, such as "1.37". Absent: the newest built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    #[x_kube(validation = Rule::new("self.matches('^1[.][0-9]+$')")
        .message("version is a minor version of Kubernetes such as \"1.37\""))]
    pub version: Option<String>,

    /// Whether it runs. False: its pods are failed, its machines removed and
    /// its control plane stopped; its data is kept.
    #[serde(default = "default_running")]
    pub running: bool,

    /// Whether it is left alone: no machine is made, released or removed, a
    /// stop and a deletion wait. What crashes is restarted all the same.
    #[serde(default)]
    pub paused: bool,

    /// What a node of this cluster is.
    #[serde(default)]
    pub nodes: Nodes,

    /// How many there are.
    #[serde(default)]
    pub scaling: Scaling,

    /// Settings of the Kubernetes API itself.
    #[serde(default)]
    pub control_plane: ControlPlane,
}

impl Default for ClusterSpec {
    fn default() -> Self {
        Self {
            version: None,
            running: default_running(),
            paused: false,
            nodes: Nodes::default(),
            scaling: Scaling::default(),
            control_plane: ControlPlane::default(),
        }
    }
}

fn default_running() -> bool {
    true
}

/// What a node of a cluster is.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Nodes {
    /// Who makes the machines.
    #[serde(default)]
    #[x_kube(validation = Rule::new("self == oldSelf").message("nodes.provider cannot change"))]
    pub provider: Provider,

    /// Size of each machine.
    #[serde(default)]
    pub class: MachineClass,
}

/// Who makes machines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// Containers on this host. They share its kernel: for trusted tenants.
    #[default]
    Container,
}

impl Provider {
    /// As it is written in the resource.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Container => "container",
        }
    }
}

/// Size of a machine. Its Node offers exactly this to pods.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineClass {
    /// CPU, as Kubernetes writes it: "1", "500m".
    #[serde(default = "default_cpu")]
    #[schemars(schema_with = "quantity_schema")]
    #[x_kube(validation = Rule::new(
        "isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('100m')) >= 0"
    ).message("class.cpu is a quantity of at least 100m"))]
    pub cpu: Quantity,

    /// Memory, as Kubernetes writes it: "1Gi", "512Mi".
    #[serde(default = "default_memory")]
    #[schemars(schema_with = "quantity_schema")]
    #[x_kube(validation = Rule::new(
        "isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('128Mi')) >= 0"
    ).message("class.memory is a quantity of at least 128Mi"))]
    pub memory: Quantity,

    /// Disk for images, logs and volumes, as Kubernetes writes it: "10Gi". The
    /// file system takes a fiftieth of it for itself. It is not reserved.
    #[serde(default = "default_disk")]
    #[schemars(schema_with = "quantity_schema")]
    #[x_kube(validation = Rule::new(
        "isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('256Mi')) >= 0 && quantity(string(self)).compareTo(quantity('16Ti')) <= 0"
    ).message("class.disk is a quantity from 256Mi to 16Ti"))]
    pub disk: Quantity,
}

impl Default for MachineClass {
    fn default() -> Self {
        Self {
            cpu: default_cpu(),
            memory: default_memory(),
            disk: default_disk(),
        }
    }
}

fn default_cpu() -> Quantity {
    Quantity("1".into())
}

fn default_memory() -> Quantity {
    Quantity("1Gi".into())
}

fn default_disk() -> Quantity {
    Quantity("10Gi".into())
}

/// The schema of a quantity without the page of prose that it carries.
fn quantity_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "x-kubernetes-int-or-string": true })
}

/// How many nodes there are.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.minNodes <= self.maxNodes")
    .message("minNodes must not be more than maxNodes"))]
pub struct Scaling {
    /// How demand is counted.
    #[serde(default)]
    pub policy: ScalingPolicy,

    /// Nodes kept without work.
    #[serde(default)]
    pub min_nodes: u32,

    /// Most machines at any time.
    #[serde(default = "default_max_nodes")]
    #[x_kube(validation = Rule::new("self >= 1 && self <= 240")
        .message("maxNodes must be from 1 to 240: the node network of a cluster holds 240 nodes"))]
    pub max_nodes: u32,

    /// Pods that one node is made for.
    #[serde(default = "default_pods_per_node")]
    #[x_kube(validation = Rule::new("self >= 1 && self <= 250")
        .message("podsPerNode must be from 1 to 250: the pod range of a node holds 250 pods"))]
    pub pods_per_node: u32,

    /// How long without work before a node leaves, such as "2m". "0s": at once.
    #[serde(default = "default_hold")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = Rule::new(
        "self != '' && self.matches('^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?([0-9]{1,8}ms)?$') && duration(self) <= duration('24h')"
    ).message("hold must be a duration from 0s to 24h, such as \"2m\" or \"1h30m\""))]
    pub hold: String,

    /// How the pods that a DaemonSet wants are seen.
    #[serde(default)]
    pub daemon_sets: DaemonSetCounting,
}

impl Default for Scaling {
    fn default() -> Self {
        Self {
            policy: ScalingPolicy::default(),
            min_nodes: 0,
            max_nodes: default_max_nodes(),
            pods_per_node: default_pods_per_node(),
            hold: default_hold(),
            daemon_sets: DaemonSetCounting::default(),
        }
    }
}

fn default_max_nodes() -> u32 {
    1
}

fn default_pods_per_node() -> u32 {
    8
}

fn default_hold() -> String {
    "2m".into()
}

/// How demand is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ScalingPolicy {
    /// By the number of pods alone.
    #[default]
    Count,
}

/// How the pods that a DaemonSet wants are seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DaemonSetCounting {
    /// Not at all: else a node would hold itself for ever.
    #[default]
    Ignore,
    /// As work.
    Count,
}

/// Settings of the Kubernetes API itself.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlane {
    /// Whether privileged pods are allowed. Nodes that are containers are a
    /// fence and not a wall: a privileged pod may climb over it.
    #[serde(default)]
    #[x_kube(validation = Rule::new("self == oldSelf")
        .message("controlPlane.allowPrivileged cannot change: make a new cluster"))]
    pub allow_privileged: bool,

    /// How much its audit log keeps of each request. A change takes effect
    /// when the control plane starts next.
    #[serde(default)]
    pub audit: Audit,
}

/// How much an audit log keeps of each request. Reads by the cluster's own
/// programs, leases and events are never kept, nor is what is in a Secret.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Audit {
    /// Nothing: there is no audit log.
    #[default]
    Off,
    /// Who, what, when and with which outcome.
    Metadata,
    /// And what was sent.
    Request,
    /// And what was answered.
    RequestResponse,
}
