//! A child that runs under a shim.

#![expect(unsafe_code, reason = "descriptors are registered with the runtime")]

use crate::Signal;
use crate::cgroup::{Cgroup, KillCgroupError};
use crate::identity::{Identity, Proof, has_ended};
use crate::shims::AdoptProcessError;
use crate::state::{self, Exit, ExitRecord, Files, State};
use camino::{Utf8Path, Utf8PathBuf};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, pidfd_send_signal, waitid};
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// What is killed is gone after milliseconds, unless the kernel hangs.
const KILL_DEADLINE: Duration = Duration::from_secs(10);

/// A shim whose child has ended writes one small file and ends.
const SHIM_DEADLINE: Duration = Duration::from_secs(2);

/// A handle on a child and its shim; cheap to clone. Dropping it ends nothing.
#[derive(Clone, Debug)]
pub struct Supervised(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    dir: Utf8PathBuf,
    state: State,
    since: SystemTime,
    /// Descriptors become readable when their process ends; `None` is gone.
    shim: Option<AsyncFd<OwnedFd>>,
    child: Option<AsyncFd<OwnedFd>>,
    /// When the shim was first seen without its child.
    alone: OnceLock<Instant>,
}

/// A signal could not be sent.
#[derive(Debug, thiserror::Error)]
#[error("failed to signal process {pid}")]
pub struct SignalProcessError {
    /// Its pid.
    pub pid: i32,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// A child could not be stopped.
#[derive(Debug, thiserror::Error)]
pub enum StopProcessError {
    /// The signal failed.
    #[error(transparent)]
    Signal(#[from] SignalProcessError),
    /// Its control group could not be ended.
    #[error("failed to end what process {pid} started")]
    Kill {
        /// Its pid.
        pid: i32,
        /// Why.
        #[source]
        source: KillCgroupError,
    },
    /// It was killed and did not go away.
    #[error("process {pid} is still there after it was killed")]
    Remains {
        /// Its pid.
        pid: i32,
    },
}

impl Supervised {
    /// Opens whichever of the two still is who the state says.
    pub(crate) fn take(
        dir: &Utf8Path,
        state: State,
        since: SystemTime,
    ) -> Result<Self, AdoptProcessError> {
        let shim = watch(&state.shim, Proof::CommandLine)?;
        let child = watch(&state.child, Proof::Start)?;
        let dir = dir.to_owned();
        Ok(Self(Arc::new(Inner {
            dir,
            state,
            since,
            shim,
            child,
            alone: OnceLock::new(),
        })))
    }

    /// The child's pid as the host sees it.
    pub fn pid(&self) -> i32 {
        self.0.state.child.pid
    }

    /// Who the child is.
    pub fn identity(&self) -> &Identity {
        &self.0.state.child
    }

    /// Who the shim is.
    pub fn shim(&self) -> &Identity {
        &self.0.state.shim
    }

    /// Folder of the shim.
    pub fn dir(&self) -> &Utf8Path {
        &self.0.dir
    }

    /// When the child started.
    pub fn since(&self) -> SystemTime {
        self.0.since
    }

    /// Whether the child or its shim is still there. A shim that is found
    /// without its child for too long is stuck, and is killed.
    pub fn is_running(&self) -> bool {
        let lives = |process: &Option<AsyncFd<OwnedFd>>| {
            process
                .as_ref()
                .is_some_and(|process| !has_ended(process.get_ref()))
        };
        if lives(&self.0.child) {
            return true;
        }
        let shim = lives(&self.0.shim);
        if shim && self.0.alone.get_or_init(now).elapsed() >= SHIM_DEADLINE {
            self.kill_shim();
        }
        shim
    }

    fn kill_shim(&self) {
        if let Some(shim) = &self.0.shim {
            // It may have ended in between.
            let _: Result<(), Errno> = pidfd_send_signal(shim.get_ref(), Signal::KILL);
        }
    }

    /// Waits until child and shim are gone. A shim that outlives its child and
    /// does not end is stuck, and is killed. May be called any number of times.
    pub async fn ended(&self) -> Exit {
        gone(self.0.child.as_ref()).await;
        let shim = gone(self.0.shim.as_ref());
        if tokio::time::timeout(SHIM_DEADLINE, shim).await.is_err() {
            self.kill_shim();
        }
        gone(self.0.shim.as_ref()).await;
        if let Some(shim) = &self.0.shim {
            // Orphans fall to init, or to us where we are the reaper: then
            // nobody else takes them away. In all other cases this fails.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
            let _: Result<_, Errno> = waitid(WaitId::PidFd(shim.get_ref().as_fd()), options);
        }
        match state::read::<ExitRecord>(&Files::new(&self.0.dir).exit()) {
            Ok(Some((record, _))) if record.child == self.0.state.child => record.exit,
            _ => Exit::Unknown,
        }
    }

    /// Sends a signal to the child; one that has ended takes it silently.
    pub fn signal(&self, signal: Signal) -> Result<(), SignalProcessError> {
        let Some(child) = &self.0.child else {
            return Ok(());
        };
        match pidfd_send_signal(child.get_ref(), signal) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(SignalProcessError {
                pid: self.pid(),
                source: error.into(),
            }),
        }
    }

    /// Asks the child to end, and kills it with all that it started after
    /// `grace`. What it left behind in its control group is killed as well.
    pub async fn stop(&self, grace: Duration) -> Result<Exit, StopProcessError> {
        let pid = self.pid();
        self.signal(Signal::TERM)?;
        if tokio::time::timeout(grace, self.ended()).await.is_err() {
            self.signal(Signal::KILL)?;
        }
        if let Some(cgroup) = &self.0.state.cgroup {
            let killed = Cgroup::at(cgroup).kill_all().await;
            killed.map_err(|source| StopProcessError::Kill { pid, source })?;
        }
        tokio::time::timeout(KILL_DEADLINE, self.ended())
            .await
            .map_err(|_| StopProcessError::Remains { pid })
    }
}

#[expect(clippy::disallowed_methods, reason = "only how long a shim is alone")]
fn now() -> Instant {
    Instant::now()
}

/// Waits for the end of a process; one that was gone before needs no waiting.
async fn gone(process: Option<&AsyncFd<OwnedFd>>) {
    let Some(descriptor) = process else { return };
    // Readiness stays; an error means that the runtime shuts down.
    if descriptor.ready(Interest::READABLE).await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn watch(identity: &Identity, proof: Proof) -> Result<Option<AsyncFd<OwnedFd>>, AdoptProcessError> {
    let Some(descriptor) = identity.open(proof)? else {
        return Ok(None);
    };
    // SAFETY: An `OwnedFd` is one open descriptor for as long as it lives.
    match unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) } {
        Ok(watched) => Ok(Some(watched)),
        Err(error) => {
            let (_, source) = error.into_parts();
            Err(AdoptProcessError::Watch {
                pid: identity.pid,
                source,
            })
        }
    }
}
