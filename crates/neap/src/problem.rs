//! What can go wrong in front of a user: what is said, the way out of it, and
//! the exit code. Everything else is an `anyhow` chain and ends with code 1.

use camino::Utf8PathBuf;
use std::fmt::Write as _;
use std::process::ExitCode;

/// The exit codes of the program; part of its interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Done.
    Done = 0,
    /// It failed.
    Failed = 1,
    /// The command line is wrong.
    Usage = 2,
    /// What was named is not there.
    NotFound = 3,
    /// `neap serve` does not run, or its API does not answer.
    Unreachable = 4,
    /// It did not happen in time.
    Timeout = 5,
    /// Ended by SIGINT or SIGTERM.
    Interrupted = 130,
}

impl Exit {
    /// Every code with its meaning, for the help text.
    pub(crate) const ALL: [(Self, &'static str); 7] = [
        (Self::Done, "done"),
        (Self::Failed, "failed"),
        (Self::Usage, "wrong command line, or refused as asked"),
        (Self::NotFound, "not found"),
        (
            Self::Unreachable,
            "`neap serve` does not run, or its API does not answer",
        ),
        (Self::Timeout, "not in time"),
        (Self::Interrupted, "interrupted"),
    ];

    /// The number.
    pub(crate) fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

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
    /// No serve answers on the socket.
    #[error("no neap serves {data_dir}")]
    NotServing {
        /// The folder whose socket does not answer.
        data_dir: Utf8PathBuf,
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
            | Self::NotAnInstallation { .. }
            | Self::ForeignFiles { .. }
            | Self::ClusterExists { .. }
            | Self::ClusterLeaves { .. }
            | Self::NeverReady { .. }
            | Self::Declined
            | Self::StepFailed { .. }
            | Self::Leftovers { .. } => Exit::Failed,
            Self::Refused { .. } | Self::NotConfirmed | Self::Usage { .. } => Exit::Usage,
            Self::NoCluster { .. } | Self::NoMachine { .. } => Exit::NotFound,
            Self::RefusedBySocket { code, .. } if code.contains("NotFound") => Exit::NotFound,
            Self::RefusedBySocket { code, .. } if code.contains("NotReady") => Exit::Unreachable,
            Self::RefusedBySocket { .. } => Exit::Failed,
            Self::NotServing { .. } => Exit::Unreachable,
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
            Self::NotAnInstallation { .. } => {
                "name the data folder of an installation, or one that is empty or not there yet, with --data-dir".into()
            }
            Self::ForeignFiles { .. } => "move that elsewhere first".into(),
            Self::NoCluster { .. } => "`neap cluster list -A` shows all of them".into(),
            Self::NoMachine { .. } => "`neap machine list -A` shows all of them".into(),
            Self::ClusterExists { account, name } => {
                format!("choose another name, or look at it with `neap cluster get {name} -n {account}`")
            }
            Self::ClusterLeaves { account, name } => format!(
                "repeat it once it is gone; `neap why cluster {name} -n {account}` says what is left of it"
            ),
            Self::NotConfirmed => "repeat it with --yes".into(),
            Self::TimedOut { look, .. } | Self::NeverReady { look, .. } => look.clone(),
            Self::RefusedBySocket { next, .. } => next.clone(),
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

/// What is said of a failed run, and its exit code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    /// The code.
    pub(crate) exit: Exit,
    /// The lines for standard error; empty when nothing is to be said.
    pub(crate) text: String,
}

/// Puts a chain of errors into words: one line with the whole chain, one line
/// with the way out.
pub(crate) fn report(error: &anyhow::Error) -> Report {
    let problem = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<Problem>());
    let exit = problem.map_or_else(|| exit_of_foreign(error), Problem::exit);
    if matches!(problem, Some(Problem::BrokenPipe)) {
        return Report {
            exit,
            text: String::new(),
        };
    }
    let mut text = format!("error: {}\n", chain(error.as_ref()));
    let hint = match problem {
        Some(problem) => problem.hint(),
        None if exit == Exit::Unreachable => {
            Some("see whether `neap serve` runs and what it logs".to_owned())
        }
        None => None,
    };
    if let Some(hint) = hint {
        let _ = writeln!(text, "hint: {}", crate::output::escape(&hint));
    }
    Report { exit, text }
}

/// The whole chain in one line, without control characters. A cause whose
/// text the one before it already ends with is not said twice.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = String::new();
    let mut next = Some(error);
    while let Some(cause) = next {
        next = cause.source();
        let said = match cause.downcast_ref::<kube::Error>() {
            // Its own text holds the whole status twice.
            Some(kube::Error::Api(status)) => {
                next = None;
                status.message.clone()
            }
            // Its own text is that of its source with a type's name before it.
            Some(kube::Error::Service(_) | kube::Error::HyperError(_)) if next.is_some() => {
                continue;
            }
            _ => cause.to_string(),
        };
        let said = crate::output::escape(said.trim());
        if said.is_empty() || text.ends_with(&said) {
            continue;
        }
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&said);
    }
    text
}

/// Errors of libraries that have a code of their own.
fn exit_of_foreign(error: &anyhow::Error) -> Exit {
    for cause in error.chain() {
        if let Some(kube::Error::Api(status)) = cause.downcast_ref::<kube::Error>() {
            match status.code {
                404 => return Exit::NotFound,
                400 | 422 => return Exit::Usage,
                _ => {}
            }
        }
        if matches!(
            cause.downcast_ref::<kube::Error>(),
            Some(kube::Error::Service(_) | kube::Error::HyperError(_))
        ) {
            return Exit::Unreachable;
        }
    }
    Exit::Failed
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use anyhow::Context as _;

    fn reported(problem: Problem) -> Report {
        report(&anyhow::Error::new(problem).context("failed to create cluster demo"))
    }

    #[test]
    fn the_chain_is_one_line_and_the_hint_another() {
        let said = reported(Problem::NotServing {
            data_dir: "/var/lib/neap".into(),
        });
        assert_eq!(said.exit, Exit::Unreachable);
        assert_eq!(
            said.text,
            "error: failed to create cluster demo: no neap serves /var/lib/neap\n\
             hint: start it with `neap serve`, or name its folder with --data-dir or NEAP_DATA_DIR\n"
        );
    }

    #[test]
    fn a_broken_pipe_says_nothing_and_is_no_failure() {
        assert_eq!(
            reported(Problem::BrokenPipe),
            Report {
                exit: Exit::Done,
                text: String::new()
            }
        );
    }

    #[test]
    fn a_holder_of_the_lock_is_named_by_pid() {
        let said = reported(Problem::Locked {
            data_dir: "/d".into(),
            pid: Some(42),
        });
        assert!(
            said.text.contains("another neap (pid 42) serves /d"),
            "{}",
            said.text
        );
        assert!(said.text.contains("kill 42"), "{}", said.text);
    }

    #[test]
    fn control_characters_never_reach_the_terminal() {
        let said = reported(Problem::Refused {
            message: "spec\u{1b}[31m.nodes\nhint: pay me".into(),
        });
        assert_eq!(said.text.lines().count(), 1);
        assert!(!said.text.contains('\u{1b}'));
    }

    #[test]
    fn a_cause_is_not_repeated() {
        let inner = std::io::Error::other("no route");
        let error = Err::<(), _>(inner)
            .context("failed to dial: no route")
            .unwrap_err();
        assert_eq!(report(&error).text, "error: failed to dial: no route\n");
    }

    #[test]
    fn an_answer_of_the_api_has_its_code() {
        let status = |code| {
            kube::Error::Api(Box::new(kube::core::Status {
                code,
                ..Default::default()
            }))
        };
        for (code, exit) in [
            (404, Exit::NotFound),
            (422, Exit::Usage),
            (500, Exit::Failed),
        ] {
            let error = anyhow::Error::new(status(code)).context("failed to get it");
            assert_eq!(report(&error).exit, exit, "{code}");
        }
    }

    #[test]
    fn codes_are_the_documented_ones() {
        let codes: Vec<u8> = Exit::ALL.iter().map(|(exit, _)| exit.code()).collect();
        assert_eq!(codes, [0, 1, 2, 3, 4, 5, 130]);
    }
}
