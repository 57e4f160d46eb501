//! The node agent: PID 1 of a container node.
//!
//! It first makes the world that the node sees (a cgroup namespace, a root of
//! its own, fewer capabilities), then starts containerd, imports the images,
//! starts the kubelet and kube-proxy, and from then on restarts what dies,
//! reaps what is orphaned and answers on its control socket. When it ends,
//! the kernel ends everything else in the node.

mod capabilities;
mod cgroups;
pub(crate) mod config;
pub(crate) mod control;
mod devices;
mod etc;
mod launch;
mod mounts;
mod node;
mod processes;
mod root;

pub(crate) use cgroups::{PODS, SYSTEM, remove_unbounded};
pub(crate) use devices::allowed as allowed_devices;

use camino::Utf8Path;
use config::{AGENT_CONFIG, AgentConfig, CONFIG_DIR, RUNTIME_DIR};
use root::PROGRAM_NAME;
use std::error::Error as StdError;
use std::fmt::Display;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::process::ExitCode;
use std::time::Duration;

/// How far the agent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentStage {
    /// The node's root is to be made.
    Build,
    /// It stands, and the agent was started again from it.
    Keep,
}

/// What is added to the agent's command line in the second stage.
pub const KEEP: &str = "keep";

/// Runs as PID 1 of the node that the file describes; returns when the node
/// is to end. To be called before any thread or runtime is started, because
/// namespaces and capabilities belong to the calling thread.
pub fn run_node_agent(config: &Utf8Path, stage: AgentStage) -> ExitCode {
    let outcome = match stage {
        AgentStage::Build => build(config),
        AgentStage::Keep => keep(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(chain(&*error));
            ExitCode::FAILURE
        }
    }
}

/// Makes the root and becomes the same program in it: the one that was started
/// lies in a file system of the host, and PID 1 of the node leads there.
fn build(path: &Utf8Path) -> Result<(), Box<dyn StdError>> {
    let config = AgentConfig::read(path)?;
    let hierarchies = cgroups::enter_namespace(&config.cgroup)?;
    root::enter(&config, &hierarchies)?;
    capabilities::drop_dangerous()?;
    let error = Command::new(format!("{RUNTIME_DIR}/{PROGRAM_NAME}"))
        .arg0(config.program.as_str())
        .args(["node-agent", path.as_str(), KEEP])
        .exec();
    Err(error.into())
}

fn keep() -> Result<(), Box<dyn StdError>> {
    let config = AgentConfig::read(&Utf8Path::new(CONFIG_DIR).join(AGENT_CONFIG))?;
    say("the root stands");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(node::run(&config))?;
    say("the node ends");
    Ok(())
}

/// Time since the host was started; only differences are used.
pub(crate) fn monotonic() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(
        now.tv_sec.try_into().unwrap_or(0),
        now.tv_nsec.try_into().unwrap_or(0),
    )
}

/// One line for the agent's log, which is its standard error.
pub(crate) fn say(message: impl Display) {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    let at =
        jiff::Timestamp::new(now.tv_sec, now.tv_nsec.try_into().unwrap_or(0)).unwrap_or_default();
    // With its log gone the agent still has a node to keep.
    let _ = writeln!(std::io::stderr(), "{at:.3} {message}");
}

/// An error with all its sources in one line.
pub(crate) fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text.push_str(": ");
        text.push_str(&source.to_string());
        next = source.source();
    }
    text
}
