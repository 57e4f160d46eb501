//! The command line: what may be written, and the help.

mod cluster;
mod logs;
mod machine;
mod plan;
mod value;

pub(crate) use cluster::{
    AuditArg, ClusterCommand, CreateArgs, DaemonSetsArg, DeleteArgs, SwitchArgs,
};
pub(crate) use logs::{
    ClusterComponent, ClusterLogsArgs, MachineComponent, MachineLogsArgs, ReadingArgs,
};
pub(crate) use machine::{MachineCommand, MachineListArgs};
pub(crate) use plan::PlanArgs;

use crate::output::Format;
use crate::problem::Exit;
use camino::Utf8PathBuf;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::net::SocketAddr;
use std::time::Duration;
use value::{label, timeout};

/// Folder of the installation unless another is named.
pub(crate) const DEFAULT_DATA_DIR: &str = "/var/lib/neap";

/// Address of the listener unless another is named.
const DEFAULT_LISTEN: &str = "127.0.0.1:7443";

/// Commands in groups; every visible one is in it, which a test checks.
const HELP: &str = "\
{about}

{usage-heading} {usage}

Clusters:
  cluster create      Make a cluster and wait until it is Ready
  cluster list        List clusters
  cluster get         Show one cluster
  cluster logs        Print what the control plane of a cluster says
  cluster stop        Stop a cluster: its pods fail, its machines go, its data is kept
  cluster start       Start a cluster that is stopped
  cluster pause       Leave a cluster as it is: no machine comes or goes
  cluster resume      End a pause
  cluster delete      Delete a cluster and all that is in it
  cluster kubeconfig  Print a kubeconfig for a cluster, without a secret in it
  machine list        List the machines behind the clusters
  machine get         Show one machine
  machine logs        Print what the programs of a machine say
  plan                Say which machines manifests would need, from files alone
  why                 Say what was decided last, why, and what comes next

This host:
  serve               Run neap: the management API and all clusters of this host
  demo                Show a cluster ebb and flow in a temporary folder
  kubeconfig          Print a kubeconfig for the management API, without a secret in it
  credential          Print a short credential (kubectl calls this, not you)
  doctor              Look at this host: what neap needs, what is there, what to do
  uninstall           Remove neap from this host: shows what there is, and asks
  completions         Print the completions of a shell
  man                 Write the manual pages
  version             Print versions

Options:
{options}
{after-help}";

/// Kubernetes clusters that ebb to zero nodes.
#[derive(Debug, Parser)]
#[command(
    name = "neap",
    version,
    disable_help_subcommand = true,
    subcommand_required = true,
    arg_required_else_help = true,
    help_template = HELP,
    after_help = after_help()
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

fn after_help() -> String {
    let codes: Vec<String> = Exit::ALL
        .iter()
        .map(|(exit, meaning)| format!("  {:<4} {meaning}", exit.code()))
        .collect();
    format!(
        "Examples:\n  \
           neap serve\n  \
           neap cluster create ci --max-nodes 3 --pods-per-node 1\n  \
           neap cluster kubeconfig ci > ci.kubeconfig && kubectl --kubeconfig ci.kubeconfig get pods -A\n  \
           neap why cluster ci\n\n\
         Exit codes:\n{}",
        codes.join("\n")
    )
}

/// Options of every command.
#[derive(Args, Clone, Debug)]
pub(crate) struct Global {
    /// The account that clusters belong to; a namespace of the management API
    #[arg(
        short = 'n',
        long,
        global = true,
        default_value = "default",
        value_name = "ACCOUNT",
        value_parser = label
    )]
    pub(crate) account: String,

    /// Folder of the installation
    #[arg(long, global = true, env = "NEAP_DATA_DIR", default_value = DEFAULT_DATA_DIR, value_name = "DIR")]
    pub(crate) data_dir: Utf8PathBuf,

    /// How data is written [default: table]
    #[arg(
        short = 'o',
        long,
        global = true,
        value_enum,
        value_name = "FORMAT",
        hide_default_value = true,
        default_value_t
    )]
    pub(crate) output: Format,

    /// Write errors alone to standard error
    #[arg(short = 'q', long, global = true)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run neap: the management API and all clusters of this host
    ///
    /// Ends at SIGTERM or SIGINT. Clusters and their machines run on, and the next `neap serve`
    /// takes them over. Needs root.
    Serve(ServeArgs),

    /// Make, show and delete clusters
    #[command(subcommand, subcommand_required = true, arg_required_else_help = true)]
    Cluster(ClusterCommand),

    /// Show the machines behind the clusters
    #[command(subcommand, subcommand_required = true, arg_required_else_help = true)]
    Machine(MachineCommand),

    /// Say what was decided last, why, and what comes next
    #[command(subcommand, subcommand_required = true, arg_required_else_help = true)]
    Why(WhyCommand),

    /// Say which machines manifests would need, from files alone
    ///
    /// Reads Pods, Jobs, Deployments, StatefulSets and DaemonSets, and machine classes, and plans
    /// as the policy Fit does: by the rules of kube-scheduler, without any cluster.
    Plan(PlanArgs),

    /// Print a kubeconfig for the management API, without a secret in it
    #[command(
        after_help = "Example:\n  neap kubeconfig > hub.kubeconfig && kubectl --kubeconfig hub.kubeconfig get clusters -A"
    )]
    Kubeconfig,

    /// Print a short credential as kubectl's exec plugins do
    ///
    /// kubeconfigs that neap writes name this command; there is no need to call it by hand.
    Credential(CredentialArgs),

    /// Show a cluster ebb and flow in a temporary folder
    ///
    /// Starts an installation of its own, makes a cluster, looks ten times that it stays at zero
    /// nodes, runs three pods on three nodes, waits until the nodes have left, deletes the cluster
    /// and proves that nothing is left. Needs root; may be interrupted at any moment.
    Demo(DemoArgs),

    /// Print versions
    Version,

    /// Look at this host: what neap needs, what is there, what to do
    ///
    /// Ends with 1 when something fails. What needs root is left out without it.
    Doctor(DoctorArgs),

    /// Remove neap from this host: all that an installation has here, its data included
    ///
    /// Shows what there is and asks. It goes by what is found and needs no API; `neap serve` must
    /// have ended. The programs themselves are left. Needs root.
    Uninstall(UninstallArgs),

    /// Print the completions of a shell
    #[command(
        after_help = "Examples:\n  neap completions bash > /etc/bash_completion.d/neap\n  neap completions zsh > /usr/local/share/zsh/site-functions/_neap\n  neap completions fish > ~/.config/fish/completions/neap.fish"
    )]
    Completions(CompletionsArgs),

    /// Write the manual pages, one a command
    #[command(
        after_help = "Examples:\n  neap man /usr/local/share/man/man1\n  neap man | man -l -"
    )]
    Man(ManArgs),
}

/// How logs are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    // Lines for people.
    #[default]
    Text,
    // One JSON object a line.
    Json,
}

#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  neap serve --data-dir /srv/neap --listen 127.0.0.1:7443 --log-format json"
)]
pub(crate) struct ServeArgs {
    /// Address on which all API servers are reached; port 0 takes a free one
    #[arg(long, default_value = DEFAULT_LISTEN, value_name = "ADDRESS")]
    pub(crate) listen: SocketAddr,

    /// The Kubernetes build for clusters [default: the one that `cargo xtask distro` built last]
    #[arg(long, env = "NEAP_DISTRO", value_name = "DIR")]
    pub(crate) distro: Option<Utf8PathBuf>,

    /// How logs are written to standard error
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) log_format: LogFormat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WhyCommand {
    /// Explain a cluster
    Cluster(NameArgs),
}

#[derive(Args, Debug)]
pub(crate) struct NameArgs {
    /// Its name
    #[arg(value_parser = label)]
    pub(crate) name: String,
}

/// Whether a command waits for the outcome; it does by default.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct WaitArgs {
    /// Wait for the outcome (the default)
    #[arg(long, overrides_with = "no_wait", help_heading = "Waiting")]
    pub(crate) wait: bool,

    /// Return at once
    #[arg(long, overrides_with = "wait", help_heading = "Waiting")]
    pub(crate) no_wait: bool,

    /// How long to wait
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = timeout, help_heading = "Waiting")]
    pub(crate) timeout: Duration,
}

#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ListArgs {
    /// Of all accounts
    #[arg(short = 'A', long)]
    pub(crate) all_accounts: bool,
}

#[derive(Args, Debug)]
pub(crate) struct CredentialArgs {
    /// Of this cluster in the account
    #[arg(
        long,
        value_name = "NAME",
        value_parser = label,
        required_unless_present = "hub",
        conflicts_with = "hub"
    )]
    pub(crate) cluster: Option<String>,

    /// Of the management API
    #[arg(long)]
    pub(crate) hub: bool,
}

#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Examples:\n  neap demo\n  neap demo --json | tee demo.jsonl\n\nAfter a SIGKILL, `neap uninstall --data-dir DIR` removes what it left; it says DIR when it starts."
)]
pub(crate) struct DemoArgs {
    /// Write one JSON object a step to standard output
    #[arg(long)]
    pub(crate) json: bool,

    /// Leave the installation running at the end, and say how to reach it
    #[arg(long)]
    pub(crate) keep: bool,

    /// The Kubernetes build [default: the one that `cargo xtask distro` built last]
    #[arg(long, env = "NEAP_DISTRO", value_name = "DIR")]
    pub(crate) distro: Option<Utf8PathBuf>,
}

#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Examples:\n  neap doctor\n  neap doctor --data-dir /srv/neap --listen 127.0.0.1:7443 -o json"
)]
pub(crate) struct DoctorArgs {
    /// The address that `neap serve` is to have
    #[arg(long, default_value = DEFAULT_LISTEN, value_name = "ADDRESS")]
    pub(crate) listen: SocketAddr,

    /// The Kubernetes build [default: the one that `cargo xtask distro` built last]
    #[arg(long, env = "NEAP_DISTRO", value_name = "DIR")]
    pub(crate) distro: Option<Utf8PathBuf>,
}

#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ManArgs {
    /// A folder for all pages [default: the first page to standard output]
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<Utf8PathBuf>,
}

#[derive(Args, Clone, Copy, Debug)]
#[command(
    after_help = "Examples:\n  neap uninstall --dry-run\n  neap uninstall --data-dir /srv/neap"
)]
pub(crate) struct UninstallArgs {
    /// Do not ask
    #[arg(short = 'y', long)]
    pub(crate) yes: bool,

    /// Only say what there is
    #[arg(long)]
    pub(crate) dry_run: bool,
}

impl WaitArgs {
    /// How long to wait, or not at all.
    pub(crate) fn deadline(self) -> Option<Duration> {
        (!self.no_wait).then_some(self.timeout)
    }
}

#[cfg(test)]
mod tests;
