//! Starting children under shims, and finding them again.

use crate::identity::ObserveIdentityError;
use crate::log::LogFile;
use crate::spec::ProcessSpec;
use crate::state::{self, Files, Report, State};
use crate::supervised::Supervised;
use camino::{Utf8Path, Utf8PathBuf};
use neap_core::logs::SHIM;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::process::Stdio;
use std::time::{Duration, SystemTime};
use tokio::process::Command;

/// What a shim does before it reports takes milliseconds.
const REPORT_DEADLINE: Duration = Duration::from_secs(30);

/// Starts and adopts children.
#[derive(Clone, Debug)]
pub struct Shims {
    program: Utf8PathBuf,
}

/// A child could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartProcessError {
    /// The child of this folder runs already: adopt it.
    #[error("the process of {dir} runs already")]
    Running {
        /// Folder of the shim.
        dir: Utf8PathBuf,
    },
    /// A file of the shim could not be written.
    #[error("failed to write {path}")]
    Write {
        /// The file or folder.
        path: Utf8PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The shim itself could not be started.
    #[error("failed to start the shim {program} for {dir}")]
    Shim {
        /// Program of the shim.
        program: Utf8PathBuf,
        /// Folder of the shim.
        dir: Utf8PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The shim ended or stayed silent; its log says more.
    #[error("the shim of {dir} did not report: {problem}; see {dir}/shim.log")]
    NoReport {
        /// Folder of the shim.
        dir: Utf8PathBuf,
        /// What was seen instead.
        problem: String,
    },
    /// A step of the shim failed, the last of which is the execution itself.
    #[error("failed to {step} for {dir}: {reason}")]
    Step {
        /// Folder of the shim.
        dir: Utf8PathBuf,
        /// A verb and its thing.
        step: String,
        /// Why, from the shim.
        reason: String,
    },
    /// What was started could not be taken over.
    #[error("failed to supervise the process of {dir}")]
    Supervise {
        /// Folder of the shim.
        dir: Utf8PathBuf,
        /// Why.
        #[source]
        source: AdoptProcessError,
    },
}

/// It is not known whether a child runs.
#[derive(Debug, thiserror::Error)]
pub enum AdoptProcessError {
    /// The state file cannot be read.
    #[error("failed to read {path}")]
    Read {
        /// The file.
        path: Utf8PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A process could not be looked at.
    #[error(transparent)]
    Observe(#[from] ObserveIdentityError),
    /// Its end could not be waited for.
    #[error("failed to wait for process {pid}")]
    Watch {
        /// Its pid.
        pid: i32,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl Shims {
    /// Shims that are `program shim DIR`.
    pub fn new(program: impl Into<Utf8PathBuf>) -> Self {
        Self {
            program: program.into(),
        }
    }

    /// Starts a child under a shim whose files are in `dir`, which is made.
    /// Returns once the child's program runs. The shim goes on when this
    /// future is dropped. To be called within a tokio runtime.
    pub async fn start(
        &self,
        dir: &Utf8Path,
        spec: &ProcessSpec,
    ) -> Result<Supervised, StartProcessError> {
        let supervise = |source| StartProcessError::Supervise {
            dir: dir.to_owned(),
            source,
        };
        if self.adopt(dir).map_err(supervise)?.is_some() {
            return Err(StartProcessError::Running {
                dir: dir.to_owned(),
            });
        }
        write_spec(dir, spec)?;
        match self.run_shim(dir).await? {
            Report::Started(state) => {
                let since = written(&Files::new(dir).state()).map_err(supervise)?;
                Supervised::take(dir, state, since).map_err(supervise)
            }
            Report::Busy => Err(StartProcessError::Running {
                dir: dir.to_owned(),
            }),
            Report::Failed { step, reason } => Err(StartProcessError::Step {
                dir: dir.to_owned(),
                step,
                reason,
            }),
        }
    }

    /// The child that runs in this folder, if one does and is proven to be
    /// the one that was started there. To be called within a tokio runtime.
    pub fn adopt(&self, dir: &Utf8Path) -> Result<Option<Supervised>, AdoptProcessError> {
        let path = Files::new(dir).state();
        let found = state::read::<State>(&path)
            .map_err(|source| AdoptProcessError::Read { path, source })?;
        let Some((state, since)) = found else {
            return Ok(None);
        };
        let supervised = Supervised::take(dir, state, since)?;
        Ok(supervised.is_running().then_some(supervised))
    }

    /// The intermediate process that is started here forks the shim and ends
    /// at once, so that the shim is never a child of ours; the shim reports
    /// through what is its standard output until then.
    async fn run_shim(&self, dir: &Utf8Path) -> Result<Report, StartProcessError> {
        let log = open_log(dir)?;
        let shim_error = |source| StartProcessError::Shim {
            program: self.program.clone(),
            dir: dir.to_owned(),
            source,
        };
        let child = Command::new(&self.program)
            .arg("shim")
            .arg(dir)
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .map_err(shim_error)?;
        let no_report = |problem: String| StartProcessError::NoReport {
            dir: dir.to_owned(),
            problem,
        };
        let output = tokio::time::timeout(REPORT_DEADLINE, child.wait_with_output())
            .await
            .map_err(|_| no_report(format!("silent for {} s", REPORT_DEADLINE.as_secs())))?
            .map_err(shim_error)?;
        serde_json::from_slice(&output.stdout)
            .map_err(|_| no_report(format!("it ended with {}", output.status)))
    }
}

fn written(path: &Utf8Path) -> Result<SystemTime, AdoptProcessError> {
    std::fs::metadata(path)
        .and_then(|facts| facts.modified())
        .map_err(|source| AdoptProcessError::Read {
            path: path.to_owned(),
            source,
        })
}

fn write_spec(dir: &Utf8Path, spec: &ProcessSpec) -> Result<(), StartProcessError> {
    let failed = |path: &Utf8Path| {
        let path = path.to_owned();
        move |source| StartProcessError::Write { path, source }
    };
    let mut folder = DirBuilder::new();
    folder.recursive(true).mode(0o700);
    folder.create(dir).map_err(failed(dir))?;
    if let Some(logs) = spec.log.parent() {
        folder.create(logs).map_err(failed(logs))?;
    }
    let path = Files::new(dir).spec();
    state::write(&path, spec).map_err(failed(&path))
}

fn open_log(dir: &Utf8Path) -> Result<std::fs::File, StartProcessError> {
    let path = Files::new(dir).log();
    LogFile::open(&path, SHIM)
        .map(LogFile::into_file)
        .map_err(|source| StartProcessError::Write { path, source })
}
