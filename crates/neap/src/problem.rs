//! What can go wrong in front of a user: what is said, the way out of it, and
//! the exit code. Everything else is an `anyhow` chain and ends with code 1.

mod exit;
mod report;

pub(crate) use exit::Exit;
pub(crate) use report::{chain, report};

use camino::Utf8PathBuf;

/// A problem that a user meets and can do something about.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Problem {
    /// Needs root.
    #[error("{what} needs root")]
    NotRoot {
        /// The command.
        what: &'static str,
    },
    /// No distro was found.
    #[error("there is no distro at {path}")]
    NoDistro {
        /// Where it was looked for.
        path: Utf8PathBuf,
    },
    /// The distro is incomplete or not readable.
    #[error("the distro at {path} is not usable: {why}")]
    BadDistro {
        /// Where it is.
        path: Utf8PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The address of the listener cannot be had.
    #[error("cannot listen on {listen}: {why}")]
    Listen {
        /// The address asked for.
        listen: String,
        /// What the kernel says.
        why: std::io::Error,
    },
    /// cgroup controllers that nodes need are missing.
    #[error("the host lacks the cgroup controllers {}", missing.join(", "))]
    NoControllers {
        /// Their names.
        missing: Vec<&'static str>,
    },
    /// Unix sockets below the folder would not fit.
    #[error(
        "the data folder {path} has {length} bytes in its name and sockets leave room for {limit}"
    )]
    PathTooLong {
        /// The folder.
        path: Utf8PathBuf,
        /// Its length.
        length: usize,
        /// Most bytes that fit.
        limit: usize,
    },
    /// Another serve has the data folder.
    #[error("another neap{} serves {data_dir}", pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    Locked {
        /// The folder.
        data_dir: Utf8PathBuf,
        /// Who, if it can be read.
        pid: Option<u32>,
    },
    /// A newer neap has made the folder, or used it.
    #[error("the data folder {path} has form {found}, and this neap knows none after {known}")]
    NewerData {
        /// The folder.
        path: Utf8PathBuf,
        /// Its form.
        found: u32,
        /// The newest that is known.
        known: u32,
    },
    /// No serve answers on the socket.
    #[error("no neap serves {data_dir}")]
    NotServing {
        /// The folder whose socket does not answer.
        data_dir: Utf8PathBuf,
    },
    /// A serve took the question and gave no answer.
    #[error("the neap that serves {data_dir} gave no answer: {why}")]
    NoAnswer {
        /// The folder.
        data_dir: Utf8PathBuf,
        /// How that showed.
        why: std::io::Error,
    },
    /// The folder is not an installation of neap.
    #[error("{path} is not a data folder of neap: it holds no file `installation`")]
    NotAnInstallation {
        /// The folder.
        path: Utf8PathBuf,
    },
    /// The folder holds what neap did not put there.
    #[error("the data folder {path} holds what is not neap's: {what}")]
    ForeignFiles {
        /// The folder.
        path: Utf8PathBuf,
        /// Names of what is in it.
        what: String,
    },
    /// There is no such cluster.
    #[error("there is no cluster {name} in account {account}")]
    NoCluster {
        /// Namespace on the hub.
        account: String,
        /// Name.
        name: String,
    },
    /// There is no such machine.
    #[error("there is no machine {name} in account {account}")]
    NoMachine {
        /// Namespace on the hub.
        account: String,
        /// Name.
        name: String,
    },
    /// Nothing of it has been started.
    #[error("{what} has no logs on this host: nothing of it has been started here yet")]
    NoLogs {
        /// The cluster or machine.
        what: String,
        /// The command that says why.
        look: String,
    },
    /// No audit log was asked for.
    #[error("cluster {name} in account {account} has no audit log")]
    NoAudit {
        /// Namespace on the hub.
        account: String,
        /// Name.
        name: String,
    },
    /// There is one of that name already.
    #[error("there is a cluster {name} in account {account} already")]
    ClusterExists {
        /// Namespace on the hub.
        account: String,
        /// Name.
        name: String,
    },
    /// The one of that name is not gone yet.
    #[error("cluster {name} in account {account} is still being deleted")]
    ClusterLeaves {
        /// Namespace on the hub.
        account: String,
        /// Name.
        name: String,
    },
    /// What it waits for comes only after its pause.
    #[error("cluster {name} in account {account} is paused, and {what} waits until it is resumed")]
    Paused {
        /// Namespace on the hub.
        account: String,
        /// Name.
        name: String,
        /// What: `its stop`, `its deletion`.
        what: &'static str,
    },
    /// What it waits for never comes.
    #[error("cluster {name} does not become Ready: {why}")]
    NeverReady {
        /// Name.
        name: String,
        /// As its condition Ready says.
        why: String,
        /// What to do about it.
        look: String,
    },
    /// The API server refused what was asked for.
    #[error("refused: {message}")]
    Refused {
        /// What the API server said.
        message: String,
    },
    /// `neap serve` refused what was asked on its socket.
    #[error("{message}")]
    RefusedBySocket {
        /// Its stable code.
        code: String,
        /// What is wrong.
        message: String,
        /// What to do about it.
        next: String,
    },
    /// Nobody to ask for a confirmation.
    #[error("nobody is there to confirm it: the input is no terminal")]
    NotConfirmed,
    /// The user said no.
    #[error("not confirmed")]
    Declined,
    /// A wait ended at its deadline.
    #[error("{what} did not happen within {after}")]
    TimedOut {
        /// What was waited for.
        what: String,
        /// How long.
        after: String,
        /// What to look at next.
        look: String,
    },
    /// The same, where the look itself says where it stood.
    #[error("{what} did not happen within {after}; at the end: {stood}")]
    Stuck {
        /// What was waited for.
        what: String,
        /// How long.
        after: String,
        /// Where it stood at the end.
        stood: String,
    },
    /// SIGINT or SIGTERM.
    #[error("interrupted")]
    Interrupted,
    /// The end that reads the output is gone.
    #[error("the reader of the output is gone")]
    BrokenPipe,
    /// A step of the demo did not hold.
    #[error("step {step} did not hold: {why}")]
    StepFailed {
        /// Name of the step.
        step: &'static str,
        /// What was seen instead.
        why: String,
    },
    /// The host lacks what neap needs.
    #[error("{failed} of what neap needs {} missing on this host", if *failed == 1 { "is" } else { "are" })]
    Unwell {
        /// How many checks failed.
        failed: usize,
    },
    /// Something is still there after it was removed.
    #[error("still there after removing it: {what}")]
    Leftovers {
        /// Named things, in one line.
        what: String,
    },
    /// The command line cannot be followed.
    #[error("{message}")]
    Usage {
        /// Which part and why.
        message: String,
    },
}

impl Problem {
    /// The exit code that it ends with.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::NotRoot { .. }
            | Self::NoDistro { .. }
            | Self::BadDistro { .. }
            | Self::Listen { .. }
            | Self::NoControllers { .. }
            | Self::PathTooLong { .. }
            | Self::Locked { .. }
            | Self::NewerData { .. }
            | Self::NotAnInstallation { .. }
            | Self::ForeignFiles { .. }
            | Self::ClusterExists { .. }
            | Self::ClusterLeaves { .. }
            | Self::Paused { .. }
            | Self::NeverReady { .. }
            | Self::Declined
            | Self::StepFailed { .. }
            | Self::Unwell { .. }
            | Self::Leftovers { .. } => Exit::Failed,
            Self::Refused { .. } | Self::NotConfirmed | Self::Usage { .. } => Exit::Usage,
            Self::NoCluster { .. }
            | Self::NoMachine { .. }
            | Self::NoLogs { .. }
            | Self::NoAudit { .. } => Exit::NotFound,
            Self::RefusedBySocket { code, .. } if code.contains("NotFound") => Exit::NotFound,
            Self::RefusedBySocket { code, .. } if code.contains("NotReady") => Exit::Unreachable,
            Self::RefusedBySocket { .. } => Exit::Failed,
            Self::NotServing { .. } | Self::NoAnswer { .. } => Exit::Unreachable,
            Self::TimedOut { .. } | Self::Stuck { .. } => Exit::Timeout,
            Self::Interrupted => Exit::Interrupted,
            Self::BrokenPipe => Exit::Done,
        }
    }

    /// The way out, as an instruction.
    pub(crate) fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NotRoot { .. } => "run it as root, for example with sudo".into(),
            Self::NoDistro { .. } => {
                "build one with `cargo xtask distro`, or name one with --distro or NEAP_DISTRO".into()
            }
            Self::BadDistro { .. } => "build it again with `cargo xtask distro`".into(),
            Self::Listen { .. } => "name a free address with --listen, for example --listen 127.0.0.1:0".into(),
            Self::NoControllers { .. } => {
                "mount them below /sys/fs/cgroup; in a container, run it privileged with the host's cgroups".into()
            }
            Self::PathTooLong { .. } => "choose a shorter folder with --data-dir".into(),
            Self::Locked { data_dir, pid } => match pid {
                Some(pid) => format!("stop it first (kill {pid}), or choose another folder than {data_dir} with --data-dir"),
                None => format!("stop it first, or choose another folder than {data_dir} with --data-dir"),
            },
            Self::NotServing { .. } => {
                "start it with `neap serve`, or name its folder with --data-dir or NEAP_DATA_DIR".into()
            }
            Self::NoAnswer { .. } => {
                "see whether `neap serve` ends or starts just now and what it logs, then repeat".into()
            }
            Self::NewerData { .. } => {
                "serve it with the neap that it was served with last, or a newer one".into()
            }
            Self::NotAnInstallation { .. } => {
                "name the data folder of an installation, or one that is empty or not there yet, with --data-dir".into()
            }
            Self::ForeignFiles { .. } => "move that elsewhere first".into(),
            Self::NoCluster { .. } => "`neap cluster list -A` shows all of them".into(),
            Self::NoMachine { .. } => "`neap machine list -A` shows all of them".into(),
            Self::NoAudit { account, name } => format!(
                "set spec.controlPlane.audit with `kubectl -n {account} edit nc {name}`; it begins when the cluster is stopped and started"
            ),
            Self::NoLogs { look, .. } => format!("`{look}` says why"),
            Self::ClusterExists { account, name } => {
                format!("choose another name, or look at it with `neap cluster get {name} -n {account}`")
            }
            Self::ClusterLeaves { account, name } => format!(
                "repeat it once it is gone; `neap why cluster {name} -n {account}` says what is left of it"
            ),
            Self::Paused { account, name, .. } => {
                format!("run `neap cluster resume {name} -n {account}`")
            }
            Self::NotConfirmed => "repeat it with --yes".into(),
            Self::TimedOut { look, .. } | Self::NeverReady { look, .. } => look.clone(),
            Self::RefusedBySocket { next, .. } => next.clone(),
            Self::Unwell { .. } => "do what stands behind each FAIL, then repeat".into(),
            Self::Leftovers { .. } => "look at what holds it, then repeat".into(),
            Self::Refused { .. }
            | Self::Declined
            | Self::Interrupted
            | Self::BrokenPipe
            | Self::Stuck { .. }
            | Self::StepFailed { .. }
            | Self::Usage { .. } => return None,
        })
    }
}
