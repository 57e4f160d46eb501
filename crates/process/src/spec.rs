//! What a child is started from.

use crate::cgroup::CgroupPath;
use camino::Utf8PathBuf;
use neap_core::logs::CONTROL_PLANE;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A namespace that the child gets of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Namespace {
    /// Mounts, private from the start: nothing propagates to the host.
    Mount,
    /// Processes; the child is PID 1, and its end is the end of all inside.
    Pid,
    /// Host name.
    Uts,
    /// System V IPC and POSIX message queues.
    Ipc,
    /// Control groups; the child's own is the root of what it sees.
    Cgroup,
}

/// All that decides how a child runs. It is written into the folder of the
/// shim, readable by root alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessSpec {
    /// Program and arguments; the program as an absolute path.
    pub argv: Vec<String>,
    /// The whole environment; nothing is inherited.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Where the child starts, as the host sees it.
    pub working_dir: Utf8PathBuf,
    /// Both output streams are appended to this file.
    pub log: Utf8PathBuf,
    /// Bytes of that file. Then it becomes FILE.1 and another one begins.
    pub log_limit: u64,
    /// A network namespace to enter, by its path.
    #[serde(default)]
    pub network_namespace: Option<Utf8PathBuf>,
    /// Namespaces of its own.
    #[serde(default)]
    pub namespaces: BTreeSet<Namespace>,
    /// The control group to join; it must exist. The shim stays outside, so
    /// that it can tell how a killed group ended.
    #[serde(default)]
    pub cgroup: Option<CgroupPath>,
}

impl ProcessSpec {
    /// A spec with nothing but a command, a folder and a log, whose limit is
    /// that of a control plane's.
    pub fn new(
        argv: impl IntoIterator<Item = impl Into<String>>,
        working_dir: impl Into<Utf8PathBuf>,
        log: impl Into<Utf8PathBuf>,
    ) -> Self {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            env: BTreeMap::new(),
            working_dir: working_dir.into(),
            log: log.into(),
            log_limit: CONTROL_PLANE,
            network_namespace: None,
            namespaces: BTreeSet::new(),
            cgroup: None,
        }
    }
}
