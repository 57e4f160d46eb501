//! A failed run in words: one line with the whole chain, one with the way out.

use super::{Exit, Problem};
use std::fmt::Write as _;

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
}
