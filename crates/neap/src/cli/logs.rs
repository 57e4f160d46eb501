//! `neap cluster logs` and `neap machine logs`: what may be written.

use super::value::label;
use clap::{Args, ValueEnum};

#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  neap cluster logs ci --tail 50\n  neap cluster logs ci -f\n\nIt reads the files themselves and needs neither the cluster nor `neap serve`. To a terminal,\ncontrol characters are written as escapes."
)]
pub(crate) struct ClusterLogsArgs {
    /// Its name
    #[arg(value_parser = label)]
    pub(crate) name: String,

    /// Whose output
    #[arg(
        short = 'c',
        long,
        value_enum,
        value_name = "COMPONENT",
        default_value = "control-plane"
    )]
    pub(crate) component: ClusterComponent,

    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
}

#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  neap machine logs ci-node1 -c kubelet --tail 50\n  neap machine logs ci-node1 -f\n\nWithout a component all are shown one after another, each line after its component. The logs\nof a machine go with it."
)]
pub(crate) struct MachineLogsArgs {
    /// Its name
    #[arg(value_parser = label)]
    pub(crate) name: String,

    /// Whose output [default: all]
    #[arg(short = 'c', long, value_enum, value_name = "COMPONENT")]
    pub(crate) component: Option<MachineComponent>,

    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
}

/// How much of a log is read.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ReadingArgs {
    /// Go on with what is written, until interrupted
    #[arg(short = 'f', long)]
    pub(crate) follow: bool,

    /// The last lines alone, of each component [default: all that is kept]
    #[arg(long, value_name = "N")]
    pub(crate) tail: Option<usize>,
}

/// Whose output of a control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClusterComponent {
    /// The store, the API server, the controller manager and the scheduler
    ControlPlane,
    /// Requests to its API, one JSON object a line, if `spec.controlPlane.audit` is not Off
    Audit,
    /// What holds its process; silent as long as all is well
    Shim,
}

/// Whose output of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MachineComponent {
    /// PID 1 of the node, which starts the others
    Agent,
    /// Runs containers
    Containerd,
    /// Runs pods
    Kubelet,
    /// Makes Services reachable
    KubeProxy,
    /// The import of the images of the distro
    Import,
    /// What holds the agent; silent as long as all is well
    Shim,
}
