//! `neap machine …`: what may be written.

use super::value::label;
use super::{ListArgs, MachineLogsArgs, NameArgs};
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum MachineCommand {
    /// List machines
    #[command(visible_alias = "ls")]
    List(MachineListArgs),
    /// Show one machine
    Get(NameArgs),
    /// Print what the programs of a machine say
    Logs(MachineLogsArgs),
}

#[derive(Args, Debug)]
pub(crate) struct MachineListArgs {
    #[command(flatten)]
    pub(crate) list: ListArgs,

    /// Of this cluster alone
    #[arg(long, value_name = "NAME", value_parser = label)]
    pub(crate) cluster: Option<String>,
}
