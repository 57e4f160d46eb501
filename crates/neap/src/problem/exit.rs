//! The exit codes of the program.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_the_documented_ones() {
        let codes: Vec<u8> = Exit::ALL.iter().map(|(exit, _)| exit.code()).collect();
        assert_eq!(codes, [0, 1, 2, 3, 4, 5, 130]);
    }
}
