//! `cargo xtask test`: everything, from a fresh machine to the live proofs.

use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use camino::Utf8PathBuf;

use crate::terminal::{Stopwatch, print, say, show_duration};
use crate::workspace::{Metadata, ProofMetadata};
use crate::{check, command, distro, setup, workspace};

/// After its deadline a proof has this long to clean up.
const GRACE: Duration = Duration::from_secs(20);

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Run the long proofs too
    #[arg(long)]
    long: bool,
}

/// A program of a package below `tests/` that proves something on real
/// processes.
struct Proof {
    name: String,
    program: Utf8PathBuf,
    deadline: Duration,
}

#[derive(Default)]
struct Stages {
    durations: Vec<(&'static str, Duration)>,
}

impl Stages {
    fn run<T>(&mut self, name: &'static str, stage: impl FnOnce() -> Result<T>) -> Result<T> {
        say(&format!("── {name}"));
        let watch = Stopwatch::start();
        let outcome = stage().with_context(|| format!("stage `{name}`"));
        self.durations.push((name, watch.elapsed()));
        outcome
    }

    fn show(&self, total: Duration) {
        for (name, duration) in &self.durations {
            print(&format!("{name:<16} {:>12}", show_duration(*duration)));
        }
        print(&format!("{:<16} {:>12}", "in all", show_duration(total)));
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    setup::require_root("test")?;
    let watch = Stopwatch::start();
    let mut stages = Stages::default();
    let outcome = run_stages(&mut stages, arguments);
    stages.show(watch.elapsed());
    let proofs = outcome?;
    print(&format!("proofs: {proofs} passed, 0 failed"));
    Ok(())
}

fn run_stages(stages: &mut Stages, arguments: &Arguments) -> Result<usize> {
    stages.run("set-up", setup::install_packages)?;
    let distro = stages.run("distro", distro::ensure)?;
    stages.run("check", check::run)?;
    stages.run("tests", || {
        let mut tests = workspace::cargo();
        tests.args(["test", "--workspace"]);
        command::run(tests.env("NEAP_DISTRO", &distro.folder))
    })?;
    let metadata = stages.run("build", || {
        command::run(workspace::cargo().args(["build", "--workspace", "--bins"]))?;
        workspace::metadata()
    })?;
    let proofs = find_proofs(&metadata, arguments.long)?;
    let neap = metadata.target_directory.join("debug/neap");
    stages.run("live proofs", || {
        let failed = proofs
            .iter()
            .filter(|proof| !prove(proof, &neap, &distro.folder))
            .map(|proof| proof.name.as_str())
            .collect::<Vec<_>>();
        if failed.is_empty() {
            return Ok(());
        }
        let passed = proofs.len() - failed.len();
        print(&format!("proofs: {passed} passed, {} failed", failed.len()));
        bail!("failed: {}", failed.join(", "))
    })?;
    Ok(proofs.len())
}

fn find_proofs(metadata: &Metadata, with_long: bool) -> Result<Vec<Proof>> {
    let folder = workspace::root().join("tests");
    let mut proofs = Vec::new();
    for package in &metadata.packages {
        if !package.manifest_path.starts_with(&folder) {
            continue;
        }
        for target in &package.targets {
            if !target.kind.iter().any(|kind| kind == "bin") {
                continue;
            }
            let name = target.name.clone();
            let said: ProofMetadata = *package
                .metadata
                .as_ref()
                .and_then(|metadata| metadata.proofs.get(&name))
                .with_context(|| {
                    format!(
                        "{} sets no deadline: add `deadline-seconds` to \
                         [package.metadata.proofs.{name}]",
                        package.manifest_path
                    )
                })?;
            if said.long && !with_long {
                continue;
            }
            proofs.push(Proof {
                program: metadata.target_directory.join("debug").join(&name),
                name,
                deadline: Duration::from_secs(said.deadline_seconds),
            });
        }
    }
    if proofs.is_empty() {
        bail!("no live proof below {folder}: nothing would be proved");
    }
    proofs.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(proofs)
}

/// Runs a proof on this terminal, so that one that hangs shows where it is.
fn prove(proof: &Proof, neap: &Utf8PathBuf, distro: &Utf8PathBuf) -> bool {
    say(&format!("── proof {}", proof.name));
    let watch = Stopwatch::start();
    let mut program = Command::new(&proof.program);
    program.env("NEAP_BIN", neap).env("NEAP_DISTRO", distro);
    let outcome = program
        .spawn()
        .context("cannot start it")
        .and_then(|child| wait(child, proof.deadline));
    let duration = show_duration(watch.elapsed());
    match outcome {
        Ok(status) if status.success() => {
            say(&format!(" ✓ {} ({duration})", proof.name));
            true
        }
        Ok(status) => {
            say(&format!(" ✗ {} ({duration}): {status}", proof.name));
            false
        }
        Err(error) => {
            say(&format!(" ✗ {} ({duration}): {error:#}", proof.name));
            false
        }
    }
}

/// Waits for a child; at its deadline it is asked to end, and then made to.
fn wait(mut child: Child, deadline: Duration) -> Result<ExitStatus> {
    if let Some(status) = wait_until(&mut child, deadline)? {
        return Ok(status);
    }
    say(&format!(
        "   its deadline of {} is over: asking it to end",
        show_duration(deadline)
    ));
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&child),
        rustix::process::Signal::TERM,
    )
    .context("cannot send it a signal")?;
    if wait_until(&mut child, GRACE)?.is_none() {
        child.kill().context("cannot kill it")?;
        child.wait().context("cannot wait for it")?;
    }
    bail!("its deadline of {} was over", show_duration(deadline))
}

fn wait_until(child: &mut Child, deadline: Duration) -> Result<Option<ExitStatus>> {
    let watch = Stopwatch::start();
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for it")? {
            return Ok(Some(status));
        }
        if watch.elapsed() >= deadline {
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn shell(script: &str) -> Child {
        Command::new("sh").args(["-c", script]).spawn().unwrap()
    }

    #[test]
    fn a_proof_within_its_deadline_keeps_its_status() {
        let status = wait(shell("exit 3"), Duration::from_secs(60)).unwrap();
        assert_eq!(status.code(), Some(3));
    }

    #[test]
    fn a_proof_beyond_its_deadline_fails_even_if_it_then_ends_well() {
        let child = shell("trap 'kill $!; exit 0' TERM; sleep 600 & wait");
        let error = wait(child, Duration::from_millis(50)).unwrap_err();
        assert!(error.to_string().contains("deadline"), "{error}");
    }
}
