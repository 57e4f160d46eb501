//! The files in the folder of a shim.

use crate::cgroup::CgroupPath;
use crate::identity::{Identity, Proof};
use camino::{Utf8Path, Utf8PathBuf};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::time::SystemTime;

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Exit {
    /// It exited by itself with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// Nobody was there to see: the shim was killed, or the host went down.
    Unknown,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::Unknown => f.write_str("an end that nobody saw"),
        }
    }
}

/// How and when the latest run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastExit {
    /// How.
    pub exit: Exit,
    /// When; for an unknown exit, when that run started.
    pub at: SystemTime,
}

/// How the latest run in this folder ended; `None` when there was none or it
/// still runs.
pub fn last_exit(dir: &Utf8Path) -> Option<LastExit> {
    let files = Files::new(dir);
    if let Ok(Some((record, at))) = read::<ExitRecord>(&files.exit()) {
        return Some(LastExit {
            exit: record.exit,
            at,
        });
    }
    let (state, at) = read::<State>(&files.state()).ok().flatten()?;
    let ended = |identity: &Identity, proof| matches!(identity.lives(proof), Ok(false));
    let ended = ended(&state.shim, Proof::CommandLine) && ended(&state.child, Proof::Start);
    ended.then_some(LastExit {
        exit: Exit::Unknown,
        at,
    })
}

/// What runs in a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct State {
    pub(crate) version: u32,
    pub(crate) shim: Identity,
    pub(crate) child: Identity,
    pub(crate) cgroup: Option<CgroupPath>,
}

/// How the child of a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExitRecord {
    pub(crate) child: Identity,
    pub(crate) exit: Exit,
}

/// What a shim says to the one who started it, once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Report {
    /// The child's program runs.
    Started(State),
    /// Another shim has this folder.
    Busy,
    /// It went no further than this.
    Failed { step: String, reason: String },
}

/// Names of the files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Files<'a>(&'a Utf8Path);

impl<'a> Files<'a> {
    pub(crate) fn new(dir: &'a Utf8Path) -> Self {
        Self(dir)
    }

    pub(crate) fn spec(self) -> Utf8PathBuf {
        self.0.join("spec.json")
    }

    pub(crate) fn state(self) -> Utf8PathBuf {
        self.0.join("state.json")
    }

    pub(crate) fn exit(self) -> Utf8PathBuf {
        self.0.join("exit.json")
    }

    /// Held by the shim as long as it lives.
    pub(crate) fn lock(self) -> Utf8PathBuf {
        self.0.join("lock")
    }

    /// What the shim itself has to say.
    pub(crate) fn log(self) -> Utf8PathBuf {
        self.0.join("shim.log")
    }
}

/// The content of a file and when it was written; `None` when it is absent or
/// was cut off by a crash.
pub(crate) fn read<T: DeserializeOwned>(path: &Utf8Path) -> io::Result<Option<(T, SystemTime)>> {
    let found =
        std::fs::read(path).and_then(|text| Ok((text, std::fs::metadata(path)?.modified()?)));
    let (text, at) = match found {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match serde_json::from_slice(&text) {
        Ok(value) => Ok(Some((value, at))),
        Err(error) => {
            tracing::warn!(%path, %error, "ignoring a file that cannot be understood");
            Ok(None)
        }
    }
}

/// Writes the whole file or nothing, readable by root alone.
pub(crate) fn write<T: Serialize>(path: &Utf8Path, value: &T) -> io::Result<()> {
    let text = serde_json::to_vec_pretty(value)?;
    let partial = Utf8PathBuf::from(format!("{path}.partial"));
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&partial)?;
    file.write_all(&text)?;
    std::fs::rename(&partial, path)
}
