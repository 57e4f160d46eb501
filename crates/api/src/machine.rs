//! `Machine`: the record of one machine. neap makes it, and removes it.

#![expect(
    unreachable_pub,
    reason = "the schema derive copies each struct into a function"
)]

use crate::cluster::{Failures, MachineClass, Provider};
use crate::wire_enum;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::NodeAddress;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

wire_enum! {
    /// Phase of a Machine record. After `Draining` the record is gone.
    MachinePhase = neap_core::machine::MachinePhase {
        /// Recorded; its Node is not Ready yet.
        Pending,
        /// Its Node has been Ready.
        Running,
        /// Cordoned; may still be undone.
        Releasing,
        /// Past the point of no return.
        Draining,
    }
}

wire_enum! {
    /// Power state of the machine itself.
    PowerState = neap_core::machine::Power {
        /// Works, or is on its way to.
        Running,
        /// Stopped by its user.
        Stopped,
        /// Shut down from inside.
        Shutdown,
        /// Failed.
        Error,
        /// Destroyed at the provider.
        Destroyed,
        /// Being erased at the provider.
        Expunging,
        /// On its way to another host.
        Migrating,
        /// Not known.
        Unknown,
    }
}

/// What a machine was made as. Only its room for pods may grow.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "neap.dev",
    version = "v1alpha1",
    kind = "Machine",
    namespaced,
    shortname = "nm",
    category = "neap",
    status = "MachineStatus",
    derive = "PartialEq",
    cel,
    doc = "The record of one machine of a Cluster. neap makes it and removes it.",
    printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.cluster"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Power", type_ = "string", json_path = ".status.power"),
    printcolumn(name = "Node", type_ = "string", json_path = ".status.nodeName"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "CPU",
        type_ = "string",
        json_path = ".spec.class.cpu",
        priority = 1
    ),
    printcolumn(
        name = "Memory",
        type_ = "string",
        json_path = ".spec.class.memory",
        priority = 1
    ),
    printcolumn(
        name = "Disk",
        type_ = "string",
        json_path = ".spec.class.disk",
        priority = 1
    ),
    printcolumn(
        name = "Address",
        type_ = "string",
        json_path = ".status.addresses[0].address",
        priority = 1
    ),
    printcolumn(
        name = "Provider-ID",
        type_ = "string",
        json_path = ".status.providerID",
        priority = 1
    ),
    // In two parts, because the API server takes a string that holds an ordinal
    // to be endless, and refuses to join another to it.
    validation = Rule::new(
        "self.metadata.name.startsWith(self.spec.cluster + '-node') && self.metadata.name.substring(self.spec.cluster.size() + 5) == string(self.spec.ordinal)"
    )
    .message("a Machine is named <cluster>-node<ordinal>")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new(
        "self.cluster == oldSelf.cluster && self.clusterUid == oldSelf.clusterUid && self.ordinal == oldSelf.ordinal && self.provider == oldSelf.provider && self.class == oldSelf.class"
    )
    .message("the spec of a Machine cannot change, but for podsPerNode"),
    validation = Rule::new("self.podsPerNode >= oldSelf.podsPerNode")
        .message("podsPerNode of a Machine may grow and not shrink: its node would refuse pods that run")
)]
pub struct MachineSpec {
    /// Name of its Cluster.
    #[schemars(length(min = 1, max = 40))]
    pub cluster: String,

    /// UID of its Cluster.
    #[schemars(length(max = 36))]
    #[x_kube(validation = Rule::new(
        "self.matches('^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$')"
    ).message("clusterUid is the UID of the Cluster"))]
    pub cluster_uid: String,

    /// Its number in the cluster, from 1.
    #[x_kube(validation = Rule::new("self >= 1 && self <= 240")
        .message("ordinal must be from 1 to 240: the node network of a cluster holds 240 nodes"))]
    pub ordinal: u32,

    /// Who makes it.
    #[serde(default)]
    pub provider: Provider,

    /// Its size.
    #[serde(default)]
    pub class: MachineClass,

    /// Pods that it has room for: those it was made for, or more since. Written
    /// after its kubelet has been told.
    #[x_kube(validation = Rule::new("self >= 1 && self <= 250")
        .message("podsPerNode must be from 1 to 250: the pod range of a node holds 250 pods"))]
    pub pods_per_node: u32,
}

/// What neap says of a machine, and what it remembers of it.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineStatus {
    /// Where its record stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<MachinePhase>,

    /// Its power state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<PowerState>,

    /// Name of the Node that joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,

    /// `neap://<cluster>/<node>`.
    #[serde(
        default,
        rename = "providerID",
        skip_serializing_if = "Option::is_none"
    )]
    pub provider_id: Option<String>,

    /// Its addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<NodeAddress>,

    /// `Ready`, `SharedKernel`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,

    /// When its Node was first Ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Time>")]
    pub joined: Option<Timestamp>,

    /// Since when it has held nothing but baseline and finished pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Time>")]
    pub idle_since: Option<Timestamp>,

    /// When what it is in ends: the time to join, or the settle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Time>")]
    pub deadline: Option<Timestamp>,

    /// Failures to give it room for more pods, cleared when it has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resizing: Option<Failures>,

    /// The last thing that went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
