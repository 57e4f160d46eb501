//! What neap says of a cluster, and what it remembers between passes.

#![expect(
    unreachable_pub,
    reason = "the schema derive copies each struct into a function"
)]

use crate::wire_enum;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

wire_enum! {
    /// Where a cluster stands.
    ClusterPhase = neap_core::lifecycle::ClusterPhase {
        /// Recorded; nothing started yet.
        Created,
        /// Its control plane is on the way up.
        Starting,
        /// Its API answers and can take pods.
        Running,
        /// On its way to Stopped: its machines go, then its control plane.
        Stopping,
        /// Nothing of it runs; its data is kept.
        Stopped,
        /// It is being taken apart.
        Destroying,
        /// Its control plane fails again and again; neap goes on trying.
        Error,
    }
}

/// What neap says of a cluster.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterStatus {
    /// Where it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<ClusterPhase>,

    /// `Ready`, `ControlPlaneReady`, `Paused`, `TenantReadable`, `Provisioned`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,

    /// URL of its API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,

    /// Generation of the spec that the cluster loop has acted on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// The build of Kubernetes that it was started with, and keeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distro: Option<String>,

    /// Pods that need a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub demand: Option<u32>,

    /// Nodes wanted in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<u32>,

    /// Nodes of this cluster that are Ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,

    /// Since when there has been no work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Time>")]
    pub idle_since: Option<Timestamp>,

    /// When an idle node was last released while there was work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Time>")]
    pub last_release: Option<Timestamp>,

    /// The last decision and why it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_decision: Option<LastDecision>,

    /// Failures to make machines, cleared when a machine first becomes Ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioning: Option<Failures>,

    /// Failures of its control plane, cleared when it is Ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<Failures>,

    /// How often its control plane failed in all: ended unasked, hung, or
    /// could not be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarts: Option<u32>,

    /// The latest of these failures; it stays when all is well again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<LastFailure>,
}

/// The latest failure of a control plane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastFailure {
    /// When.
    #[schemars(with = "Time")]
    pub time: Timestamp,

    /// How, for people.
    pub message: String,
}

/// The last decision and why it was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastDecision {
    /// When.
    #[schemars(with = "Time")]
    pub time: Timestamp,

    /// The annotation `neap.dev/requested-at` as this pass saw it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_at: Option<String>,

    /// Pods that need a node.
    pub demand: u32,

    /// Nodes wanted in all.
    pub target: u32,

    /// Machines that counted.
    pub counted: u32,

    /// Why, for programs.
    pub reason: String,

    /// Why, down to the numbers, for people.
    pub message: String,

    /// What was done. Empty: nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<DecidedAction>,

    /// When time alone changes the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Time>")]
    pub next: Option<Timestamp>,
}

/// One thing that a decision does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecidedAction {
    /// `Provision`, `Remove`, `Release`, `Teardown` or `Undo`.
    pub action: String,

    /// Names of the Machines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<String>,

    /// Why, where an action has a reason of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Failures in a row, and when it is tried again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Failures {
    /// How many in a row.
    #[serde(default)]
    pub failures: u32,

    /// It is not tried again before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Time>")]
    pub retry_at: Option<Timestamp>,

    /// The last failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
