//! The OCI runtime of a node whose fence is closed: it stands in front of
//! runc and has `neap-core` decide what a container may be.
//!
//! containerd's shim calls it as it would call runc. What it allows becomes
//! runc, in the same process where that is possible; what it refuses ends with
//! one sentence on standard error and in the log that the shim reads, which
//! makes it the pod's event.

mod call;
mod mounts;
mod pins;
mod spec;

use call::{Call, Subject};
use camino::{Utf8Path, Utf8PathBuf};
use neap_core::fence::{self, Refusal};
use pins::Pins;
use spec::Bundle;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, ExitCode};

/// Name by which the program is this runtime.
pub const RUNTIME_NAME: &str = "neap-runc";
/// The runtime behind it.
const RUNC: &str = "/usr/sbin/runc";

/// Why a call was not handed on.
#[derive(Debug, thiserror::Error)]
enum RunContainerError {
    /// The fence stands in the way.
    #[error("{0}")]
    Refused(Refusal),
    /// It is not known what would be run.
    #[error("the call does not say what is to be run")]
    Unclear,
    /// A file of containerd's.
    #[error("failed to read {path}")]
    Read {
        /// The file.
        path: Utf8PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It makes no sense.
    #[error("{path} makes no sense")]
    Parse {
        /// The file.
        path: Utf8PathBuf,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// What is to be shown could not be looked at.
    #[error("failed to look at the host path {path}")]
    Look {
        /// As it was asked for.
        path: Utf8PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// What is to be shown could not be kept in place.
    #[error("failed to show the host path {path}")]
    Pin {
        /// Where it was to be kept.
        path: Utf8PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The bundle could not be changed.
    #[error("failed to write {path}")]
    Write {
        /// The file.
        path: Utf8PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// runc itself.
    #[error("failed to run {RUNC}")]
    Run(#[source] io::Error),
}

/// Runs as the OCI runtime that containerd's shim calls, with the arguments
/// after the program's name.
pub fn run_oci_runtime(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let call = Call::of(&arguments);
    match hand_on(&call, &arguments) {
        Ok(code) => code,
        Err(error) => {
            let text = crate::agent::chain(&error);
            if let Some(log) = &call.log {
                // Standard error says it too.
                let _ = log_error(log, &text);
            }
            let _ = writeln!(io::stderr(), "{text}");
            ExitCode::FAILURE
        }
    }
}

fn hand_on(call: &Call, arguments: &[OsString]) -> Result<ExitCode, RunContainerError> {
    let mut runc = Command::new(RUNC);
    runc.args(arguments);
    let pins = match &call.subject {
        Subject::Other => Pins::default(),
        Subject::Exec { process } => {
            let process = process.as_ref().ok_or(RunContainerError::Unclear)?;
            let capabilities = spec::read_process(process)?;
            fence::decide_exec(&capabilities).map_err(RunContainerError::Refused)?;
            Pins::default()
        }
        Subject::Create { bundle, container } => {
            let (bundle, container) = bundle
                .as_ref()
                .zip(container.as_ref())
                .ok_or(RunContainerError::Unclear)?;
            admit(bundle, container)?
        }
        Subject::Restore => return Err(RunContainerError::Refused(Refusal::Restore)),
    };
    if pins.is_empty() {
        // Returns only when it fails.
        return Err(RunContainerError::Run(runc.exec()));
    }
    // runc returns when the container has its mounts; then the pins go.
    let status = runc.status().map_err(RunContainerError::Run)?;
    drop(pins);
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Has the container decided on, and makes sure that runc mounts what was
/// looked at: where others may write, a path leads elsewhere a moment later.
fn admit(bundle: &Utf8Path, container: &str) -> Result<Pins, RunContainerError> {
    let mut bundle = Bundle::read(bundle)?;
    let table = mounts::Table::read()?;
    let mut unsteady = Vec::new();
    let mut observed = Vec::new();
    for (index, mount) in bundle.mounts().iter().enumerate() {
        let Some(source) = mount.bind_source() else {
            observed.push(fence::ObservedMount::Kernel {
                kind: mount.kind().to_owned(),
            });
            continue;
        };
        let source = bundle.resolve(source);
        let found = table.observe(&source)?;
        observed.push(fence::ObservedMount::OfNode {
            source: source.to_string(),
            places: found.places,
        });
        if found.path != source || !fence::is_steady(found.path.as_str()) {
            unsteady.push((index, found.file));
        }
    }
    let observed = bundle.observe(container, observed);
    fence::decide_create(&observed).map_err(RunContainerError::Refused)?;
    let mut pins = Pins::default();
    for (index, file) in unsteady {
        bundle.show(index, pins.add(&file)?);
    }
    if !pins.is_empty() {
        bundle.write()?;
    }
    Ok(pins)
}

/// Adds a line as runc's own are: the shim looks for the last error.
fn log_error(log: &Utf8Path, text: &str) -> io::Result<()> {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    let time = jiff::Timestamp::new(now.tv_sec, 0).unwrap_or_default();
    let line = serde_json::json!({"level": "error", "msg": text, "time": time.to_string()});
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(log)?;
    writeln!(file, "{line}")
}
