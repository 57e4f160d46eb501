//! The shim itself: one thread, no runtime, a few pages of memory.

#![expect(unsafe_code, reason = "fork and descriptors of a process of its own")]

mod child;
mod output;
mod signals;

use crate::identity::Identity;
use crate::spec::ProcessSpec;
use crate::state::{self, Exit, ExitRecord, Files, Report, State};
use camino::{Utf8Path, Utf8PathBuf};
use output::OutputReader;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::fs::{FlockOperation, Mode};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};
use signals::Signals;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitCode, ExitStatus};

/// A step of the shim failed.
#[derive(Debug)]
struct StepError {
    step: String,
    source: io::Error,
}

fn failed<E: Into<io::Error>>(step: impl Into<String>) -> impl FnOnce(E) -> StepError {
    move |error| StepError {
        step: step.into(),
        source: error.into(),
    }
}

/// Runs the shim of a folder until its child has ended. It is to be the first
/// thing that a process with a single thread does: it closes every descriptor
/// beyond the standard ones and goes on in a forked copy of the process.
pub fn run_shim(dir: &Utf8Path) -> ExitCode {
    close_descriptors();
    match detach() {
        Ok(Detached::Starter) => return ExitCode::SUCCESS,
        Ok(Detached::Shim) => {}
        Err(error) => return give_up(&error),
    }
    match Shim::prepare(dir).and_then(|shim| shim.map(Shim::start).transpose()) {
        Ok(Some(running)) => {
            report(&Report::Started(running.state.clone()));
            running.supervise()
        }
        Ok(None) => {
            report(&Report::Busy);
            ExitCode::FAILURE
        }
        Err(error) => give_up(&error),
    }
}

fn give_up(error: &StepError) -> ExitCode {
    log(&format!("failed to {}: {}", error.step, error.source));
    report(&Report::Failed {
        step: error.step.clone(),
        reason: error.source.to_string(),
    });
    ExitCode::FAILURE
}

/// Standard error is the log of the shim. Nobody is left to hear that writing
/// it failed.
fn log(line: &str) {
    let _: io::Result<()> = writeln!(io::stderr(), "{line}");
}

/// Says it once to the starter, who may be gone, and lets go of the pipe.
fn report(report: &Report) {
    if let Ok(text) = serde_json::to_vec(report) {
        let mut out = io::stdout().lock();
        let _: io::Result<()> = out.write_all(&text).and_then(|()| out.flush());
    }
    let _: Result<(), Errno> = rustix::stdio::dup2_stdout(rustix::stdio::stderr());
}

/// Whatever the starter's own starters left open is not ours to hold.
fn close_descriptors() {
    // SAFETY: By the contract of `run_shim` nothing in this process owns a
    // descriptor beyond the standard ones yet.
    unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32) };
}

enum Detached {
    Starter,
    Shim,
}

/// Leaves the session and the parent. The process that goes on is a child of
/// init as soon as the other one returns.
fn detach() -> Result<Detached, StepError> {
    // SAFETY: By the contract of `run_shim` there is a single thread, so that
    // no lock and no allocator can be left in the middle of something.
    match unsafe { libc::fork() } {
        -1 => return Err(failed("fork the shim")(io::Error::last_os_error())),
        0 => {}
        _ => return Ok(Detached::Starter),
    }
    rustix::process::setsid().map_err(failed("make a session"))?;
    rustix::process::chdir("/").map_err(failed("leave the working directory"))?;
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    Ok(Detached::Shim)
}

/// A shim that has its folder for itself.
struct Shim {
    dir: Utf8PathBuf,
    /// Closed, and by that unlocked, by the end of the process.
    lock: OwnedFd,
    signals: Signals,
}

/// A shim with its child.
struct Running {
    shim: Shim,
    state: State,
    child: Child,
    descriptor: OwnedFd,
    output: OutputReader,
}

impl Shim {
    /// `None` when another shim has the folder.
    fn prepare(dir: &Utf8Path) -> Result<Option<Self>, StepError> {
        let files = Files::new(dir);
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(files.lock())
            .map_err(failed(format!("open {}", files.lock())))?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(None),
            Err(error) => return Err(failed(format!("lock {}", files.lock()))(error)),
        }
        for old in [files.state(), files.exit()] {
            match std::fs::remove_file(&old) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(failed(format!("remove {old}"))(error));
                }
                _ => {}
            }
        }
        let signals = Signals::block().map_err(failed("block signals"))?;
        Ok(Some(Self {
            dir: dir.to_owned(),
            lock: lock.into(),
            signals,
        }))
    }

    /// Returns once the program of the child runs.
    fn start(self) -> Result<Running, StepError> {
        let path = Files::new(&self.dir).spec();
        let (spec, _) = state::read::<ProcessSpec>(&path)
            .and_then(|found| found.ok_or_else(|| io::ErrorKind::InvalidData.into()))
            .map_err(failed(format!("read {path}")))?;
        let (mut child, output) = child::spawn(&spec)?;
        match self.record(&spec, &child) {
            Ok((state, descriptor)) => Ok(Running {
                shim: self,
                state,
                child,
                descriptor,
                output,
            }),
            Err(error) => {
                // Nobody could ever find it: better none at all.
                let _: io::Result<()> = child.kill();
                let _: io::Result<ExitStatus> = child.wait();
                Err(error)
            }
        }
    }

    fn record(&self, spec: &ProcessSpec, child: &Child) -> Result<(State, OwnedFd), StepError> {
        let observe = |pid: u32| {
            let pid = i32::try_from(pid).map_err(io::Error::other)?;
            Identity::observe(pid).map_err(|error| error.source)
        };
        let state = State {
            version: 1,
            shim: observe(std::process::id()).map_err(failed("observe the shim"))?,
            child: observe(child.id()).map_err(failed("observe the child"))?,
            cgroup: spec.cgroup.clone(),
        };
        let descriptor = open_child(child).map_err(failed("open the child"))?;
        let path = Files::new(&self.dir).state();
        state::write(&path, &state).map_err(failed(format!("write {path}")))?;
        Ok((state, descriptor))
    }
}

fn open_child(child: &Child) -> io::Result<OwnedFd> {
    let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
    let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidData)?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

impl Running {
    /// Passes signals on and output to the log until the child has ended, and
    /// records how.
    fn supervise(mut self) -> ExitCode {
        let exit = match self.wait() {
            Ok(status) => exit_of(status),
            Err(error) => {
                log(&format!("failed to wait for the child: {error}"));
                Exit::Unknown
            }
        };
        let path = Files::new(&self.shim.dir).exit();
        let written = state::write(
            &path,
            &ExitRecord {
                child: self.state.child,
                exit,
            },
        );
        drop(self.shim.lock);
        match written {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                log(&format!("failed to write {path}: {error}"));
                ExitCode::FAILURE
            }
        }
    }

    fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            let mut waiting = vec![
                PollFd::new(&self.descriptor, PollFlags::IN),
                PollFd::new(self.shim.signals.descriptor(), PollFlags::IN),
            ];
            if let Some(pipe) = self.output.descriptor() {
                waiting.push(PollFd::new(pipe, PollFlags::IN));
            }
            match poll(&mut waiting, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if let Some(status) = self.child.try_wait()? {
                self.output.take_rest();
                return Ok(status);
            }
            self.output.take();
            while let Some(signal) = self.shim.signals.take()? {
                // It may have ended in between.
                let _: Result<(), Errno> = pidfd_send_signal(&self.descriptor, signal);
            }
        }
    }
}

fn exit_of(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Unknown,
    }
}
