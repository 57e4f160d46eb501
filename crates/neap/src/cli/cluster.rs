//! `neap cluster …`: what may be written.

use super::value::{cluster_name, hold, label, minor_version};
use super::{ClusterLogsArgs, ListArgs, NameArgs, WaitArgs};
use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Make a cluster and wait until it is Ready
    Create(Box<CreateArgs>),
    /// List clusters
    #[command(visible_alias = "ls")]
    List(ListArgs),
    /// Show one cluster
    Get(NameArgs),
    /// Print what the control plane of a cluster says
    Logs(ClusterLogsArgs),
    /// Stop a cluster: its pods fail, its machines go, its data is kept
    #[command(
        after_help = "Example:\n  neap cluster stop ci\n\nWhat its API holds is there again after `neap cluster start ci`."
    )]
    Stop(SwitchArgs),
    /// Start a cluster that is stopped
    #[command(after_help = "Example:\n  neap cluster start ci --timeout 5m")]
    Start(SwitchArgs),
    /// Leave a cluster as it is: no machine comes or goes
    #[command(
        after_help = "Example:\n  neap cluster pause ci\n\nIts API and its pods run on, and what crashes is started again. A stop and a deletion wait\nuntil `neap cluster resume ci`."
    )]
    Pause(SwitchArgs),
    /// End a pause
    #[command(after_help = "Example:\n  neap cluster resume ci")]
    Resume(SwitchArgs),
    /// Delete a cluster and all that is in it
    Delete(DeleteArgs),
    /// Print a kubeconfig for a cluster, without a secret in it
    #[command(
        after_help = "Example:\n  neap cluster kubeconfig ci > ci.kubeconfig\n  kubectl --kubeconfig ci.kubeconfig get pods -A"
    )]
    Kubeconfig(NameArgs),
}

#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  neap cluster create ci\n  neap cluster create ci -n team --max-nodes 10 --pods-per-node 1 --hold 30s --cpu 2 --memory 4Gi"
)]
pub(crate) struct CreateArgs {
    /// Its name: a DNS label of at most 40 characters
    #[arg(value_parser = cluster_name)]
    pub(crate) name: String,

    /// Minor version of Kubernetes, such as 1.37 [default: that of the newest build]
    #[arg(long, value_name = "VERSION", value_parser = minor_version)]
    pub(crate) kube_version: Option<String>,

    /// Most nodes at any time [default: 1]
    #[arg(long, value_name = "N", help_heading = "Scaling")]
    pub(crate) max_nodes: Option<u32>,

    /// Nodes kept without work [default: 0]
    #[arg(long, value_name = "N", help_heading = "Scaling")]
    pub(crate) min_nodes: Option<u32>,

    /// Pods that one node is made for [default: 8]
    #[arg(long, value_name = "N", help_heading = "Scaling")]
    pub(crate) pods_per_node: Option<u32>,

    /// How long without work before a node leaves [default: 2m]
    #[arg(long, value_name = "DURATION", value_parser = hold, help_heading = "Scaling")]
    pub(crate) hold: Option<String>,

    /// How the pods that a DaemonSet wants are seen [default: ignore]
    #[arg(long, value_enum, value_name = "HOW", help_heading = "Scaling")]
    pub(crate) daemon_sets: Option<DaemonSetsArg>,

    /// CPU of a node [default: 1]
    #[arg(long, value_name = "QUANTITY", help_heading = "Nodes")]
    pub(crate) cpu: Option<String>,

    /// Memory of a node [default: 1Gi]
    #[arg(long, value_name = "QUANTITY", help_heading = "Nodes")]
    pub(crate) memory: Option<String>,

    /// Disk of a node: its images, logs and volumes [default: 10Gi]
    #[arg(long, value_name = "QUANTITY", help_heading = "Nodes")]
    pub(crate) disk: Option<String>,

    /// Allow privileged pods: they may climb over the fence around a node
    #[arg(long, help_heading = "Nodes")]
    pub(crate) allow_privileged: bool,

    /// How much an audit log keeps of requests to its API [default: off]
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub(crate) audit: Option<AuditArg>,

    #[command(flatten)]
    pub(crate) wait: WaitArgs,
}

/// As `controlPlane.audit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AuditArg {
    // Nothing.
    Off,
    // Who, what, when, with which outcome.
    Metadata,
    // And what was sent.
    Request,
    // And what was answered.
    RequestResponse,
}

/// As `scaling.daemonSets`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DaemonSetsArg {
    // Not at all.
    Ignore,
    // As work.
    Count,
}

#[derive(Args, Debug)]
#[command(after_help = "Example:\n  neap cluster delete ci --yes")]
pub(crate) struct DeleteArgs {
    /// Its name
    #[arg(value_parser = label)]
    pub(crate) name: String,

    /// Do not ask
    #[arg(short = 'y', long)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) wait: WaitArgs,
}

/// Of what changes one switch of a cluster.
#[derive(Args, Debug)]
pub(crate) struct SwitchArgs {
    /// Its name
    #[arg(value_parser = label)]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) wait: WaitArgs,
}
