//! What containerd's shim asks for, as far as the fence must know.

use camino::Utf8PathBuf;
use std::ffi::OsString;

/// Options before the command that are followed by a value.
const GLOBAL_VALUES: [&str; 5] = ["root", "log", "log-format", "criu", "rootless"];

/// One call of the runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// Where errors are looked for.
    pub(super) log: Option<Utf8PathBuf>,
    /// What is to be done.
    pub(super) subject: Subject,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// Make a container.
    Create {
        /// Folder of its `config.json`.
        bundle: Option<Utf8PathBuf>,
        /// Its id.
        container: Option<String>,
    },
    /// Start a process in a container.
    Exec {
        /// What the process is.
        process: Option<Utf8PathBuf>,
    },
    /// Make a container from a memory image.
    Restore,
    /// Something that starts nothing new.
    Other,
}

impl Call {
    /// Understands a command line.
    pub(super) fn of(arguments: &[OsString]) -> Self {
        let texts: Vec<&str> = arguments
            .iter()
            .map(|argument| argument.to_str().unwrap_or_default())
            .collect();
        let mut rest = texts.as_slice();
        let mut log = None;
        while let Some((first, more)) = rest.split_first() {
            let Some(option) = first.strip_prefix('-') else {
                break;
            };
            rest = more;
            let option = option.trim_start_matches('-');
            if let Some((name, value)) = option.split_once('=') {
                if name == "log" {
                    log = Some(value.into());
                }
            } else if GLOBAL_VALUES.contains(&option)
                && let Some((value, more)) = rest.split_first()
            {
                rest = more;
                if option == "log" {
                    log = Some((*value).into());
                }
            }
        }
        let (command, rest) = rest
            .split_first()
            .map_or(("", rest), |(first, rest)| (*first, rest));
        let subject = match command {
            "create" | "run" => Subject::Create {
                bundle: value(rest, "bundle", "b").map(Utf8PathBuf::from),
                container: rest.last().map(|id| (*id).to_owned()),
            },
            "exec" => Subject::Exec {
                process: value(rest, "process", "p").map(Utf8PathBuf::from),
            },
            "restore" => Subject::Restore,
            _ => Subject::Other,
        };
        Self { log, subject }
    }
}

fn value<'a>(arguments: &[&'a str], long: &str, short: &str) -> Option<&'a str> {
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let Some(option) = argument.strip_prefix('-') else {
            continue;
        };
        let option = option.trim_start_matches('-');
        let (name, value) = option
            .split_once('=')
            .map_or((option, None), |(name, value)| (name, Some(value)));
        if name == long || name == short {
            return value.or_else(|| arguments.next().copied());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(line: &str) -> Call {
        let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        Call::of(&arguments)
    }

    #[test]
    fn what_the_shim_calls_is_understood() {
        let check =
            |line: &str, subject: Subject| assert_eq!(call(line).subject, subject, "{line}");
        let global = "--root /run/containerd/runc/k8s.io --log /b/log.json --log-format json";
        let create = Subject::Create {
            bundle: Some("/b".into()),
            container: Some("c1".to_owned()),
        };
        for rest in [
            "create --bundle /b --pid-file /b/init.pid c1",
            "run --no-pivot -b /b c1",
            "create --bundle=/b c1",
        ] {
            check(&format!("{global} {rest}"), create.clone());
        }
        for rest in ["exec --process /p --detach c1", "exec -p /p c1"] {
            let process = Some("/p".into());
            check(&format!("{global} {rest}"), Subject::Exec { process });
        }
        for rest in ["exec c1 sh", "exec --cap CAP_SYS_ADMIN c1 sh"] {
            check(&format!("{global} {rest}"), Subject::Exec { process: None });
        }
        check(&format!("{global} restore c1"), Subject::Restore);
        for rest in ["start c1", "kill c1 9", "delete --force create", "state c1"] {
            check(&format!("{global} {rest}"), Subject::Other);
        }
        check("--debug --root=/r --systemd-cgroup create -b /b c1", create);
        check("--version", Subject::Other);
    }

    #[test]
    fn the_log_is_where_it_was_asked_for() {
        assert_eq!(
            call("--log /b/log.json state c1").log,
            Some("/b/log.json".into())
        );
        assert_eq!(
            call("--root /r --log=/b/log.json state c1").log,
            Some("/b/log.json".into())
        );
        assert_eq!(call("state --log c1").log, None);
    }
}
