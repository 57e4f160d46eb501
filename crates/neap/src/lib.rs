//! The program `neap`: the command line, `serve` which wires the parts, and
//! the hidden subcommands that its own children run.
//!
//! What it does: reads the command line, shows records and progress, puts
//! errors into words; `serve` gives the loops their implementations;
//! [`installation`] makes installations of their own for the demo, the live
//! proofs and the benches.
//!
//! What it must never do: decide. It shows decisions and starts those who make
//! them.
//!
//! Who calls it: people, supervisors, kubectl (for credentials); the shims and
//! machines that neap itself starts; the proofs and benches, through
//! [`installation`] and [`runtime`].

mod access;
mod cli;
mod clock;
mod cluster;
mod credential;
mod demo;
mod distro;
mod doctor;
mod inotify;
pub mod installation;
mod logs;
mod machine;
mod manual;
mod output;
mod plan;
mod preflight;
mod problem;
mod records;
mod serve;
mod uninstall;
mod version;
mod why;

use anyhow::Context as _;
use camino::Utf8PathBuf;
use clap::Parser as _;
use cli::{Cli, Command, WhyCommand};
use neap_machine::agent::{AgentStage, KEEP, run_node_agent};
use neap_machine::{RUNTIME_NAME, run_oci_runtime};
use output::progress::Shown;
use problem::{Exit, Problem, report};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

/// Runs the program with the arguments of this process.
pub fn main() -> ExitCode {
    if let Some(part) = Part::of(std::env::args_os()) {
        return part.run();
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let code = error.exit_code();
            // A reader that has gone needs no help text.
            let _ = error.print();
            return ExitCode::from(u8::try_from(code).unwrap_or(Exit::Usage.code()));
        }
    };
    match run(cli) {
        Ok(()) => Exit::Done.into(),
        Err(error) => {
            let report = report(&error);
            if !report.text.is_empty() {
                output::note(report.text.trim_end());
            }
            report.exit.into()
        }
    }
}

/// A runtime with several threads, and the one TLS provider installed.
///
/// # Errors
/// When the kernel gives no threads.
pub fn runtime() -> anyhow::Result<Runtime> {
    provide_tls();
    Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("failed to start the runtime")
}

/// Where a library asks for the provider of this process.
fn provide_tls() {
    // A second time changes nothing.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}

/// What neap starts itself as. It is told apart before anything else is done:
/// both must be alone in their process, and a shim lives as long as its child.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    /// Holds one long-lived child.
    Shim(Utf8PathBuf),
    /// PID 1 of a container node.
    NodeAgent(Utf8PathBuf, AgentStage),
    /// The OCI runtime of a container node.
    Runtime(Vec<OsString>),
}

impl Part {
    fn of(arguments: impl IntoIterator<Item = OsString>) -> Option<Self> {
        let mut arguments = arguments.into_iter();
        let program = PathBuf::from(arguments.next()?);
        if program.file_name() == Some(RUNTIME_NAME.as_ref()) {
            return Some(Self::Runtime(arguments.collect()));
        }
        let arguments: Vec<String> = arguments
            .map(|argument| argument.into_string().ok())
            .collect::<Option<_>>()?;
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["shim", folder] => Some(Self::Shim((*folder).into())),
            ["node-agent", path] => Some(Self::NodeAgent((*path).into(), AgentStage::Build)),
            ["node-agent", path, KEEP] => Some(Self::NodeAgent((*path).into(), AgentStage::Keep)),
            _ => None,
        }
    }

    fn run(self) -> ExitCode {
        match self {
            Self::Shim(folder) => neap_process::run_shim(&folder),
            Self::NodeAgent(config, stage) => run_node_agent(&config, stage),
            Self::Runtime(arguments) => run_oci_runtime(arguments),
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<()> {
    let global = cli.global;
    let shown = if global.quiet {
        Shown::Not
    } else {
        Shown::by_terminal()
    };
    match cli.command {
        // Both listen for signals themselves.
        Command::Serve(args) => runtime()?.block_on(serve::serve(&global, &args)),
        Command::Demo(args) => runtime()?.block_on(demo::demo(&args, shown)),
        Command::Plan(args) => plan::plan_files(&global, &args),
        Command::Completions(args) => manual::completions(args),
        Command::Man(args) => manual::man(&args),
        command => {
            provide_tls();
            let runtime = Builder::new_current_thread()
                .enable_all()
                .build()
                .context("failed to start the runtime")?;
            runtime.block_on(async {
                let asked_to_end = asked_to_end()?;
                tokio::select! {
                    outcome = execute(command, &global, shown) => outcome,
                    () = asked_to_end => Err(Problem::Interrupted.into()),
                }
            })
        }
    }
}

/// SIGTERM, as from a supervisor or `timeout`, or SIGINT.
fn asked_to_end() -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate()).context("failed to listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("failed to listen for SIGINT")?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

async fn execute(command: Command, global: &cli::Global, shown: Shown) -> anyhow::Result<()> {
    match command {
        Command::Cluster(command) => cluster::execute(command, global, shown).await,
        Command::Machine(command) => machine::execute(command, global).await,
        Command::Why(WhyCommand::Cluster(args)) => why::why_cluster(global, &args.name).await,
        Command::Kubeconfig => cluster::hub_kubeconfig(global).await,
        Command::Credential(args) => credential::credential(global, &args).await,
        Command::Version => version::version(global).await,
        Command::Doctor(args) => doctor::doctor(global, &args).await,
        Command::Uninstall(args) => uninstall::uninstall(global, args).await,
        Command::Serve(_)
        | Command::Demo(_)
        | Command::Plan(_)
        | Command::Completions(_)
        | Command::Man(_) => {
            unreachable!("they do not run on this runtime")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(line: &str) -> Option<Part> {
        Part::of(line.split(' ').map(OsString::from))
    }

    #[test]
    fn the_hidden_parts_are_told_apart_from_commands() {
        assert_eq!(
            part("neap shim /d/shim"),
            Some(Part::Shim("/d/shim".into()))
        );
        assert_eq!(
            part("neap node-agent /d/config"),
            Some(Part::NodeAgent("/d/config".into(), AgentStage::Build))
        );
        assert_eq!(
            part("neap node-agent /d/config keep"),
            Some(Part::NodeAgent("/d/config".into(), AgentStage::Keep))
        );
        assert_eq!(
            part("/neap/runtime/neap-runc state c1"),
            Some(Part::Runtime(vec!["state".into(), "c1".into()]))
        );
        for line in [
            "neap",
            "neap shim",
            "neap shim a b",
            "neap serve shim",
            "neap cluster list",
        ] {
            assert_eq!(part(line), None, "{line}");
        }
    }
}
