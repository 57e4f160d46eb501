//! Runs cases that are written as data, and compares what neap says with what
//! they expect.
//!
//! `cargo xtask cases` builds it and calls it. One line a case on standard
//! output; the exit code is 1 on any difference.

mod fit;

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use camino::Utf8PathBuf;
use clap::{Parser, ValueEnum};

/// Runs cases from files
#[derive(Debug, Parser)]
#[command(name = "cargo xtask cases", bin_name = "cargo xtask cases")]
struct Arguments {
    /// What the cases are about
    kind: Kind,
    /// Files of cases
    #[arg(required = true)]
    files: Vec<Utf8PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    // Which pods fit on how many nodes.
    Fit,
}

/// What came of one case.
#[derive(Debug)]
struct Outcome {
    name: String,
    expected: String,
    actual: String,
}

impl Outcome {
    fn is_as_expected(&self) -> bool {
        self.expected == self.actual
    }

    fn line(&self) -> String {
        let verdict = if self.is_as_expected() {
            "ok"
        } else {
            "DIFFERS"
        };
        let Self {
            name,
            expected,
            actual,
        } = self;
        format!("{verdict:<8} {name:<40} expected {expected}, actual {actual}")
    }
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr().lock(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let mut outcomes = Vec::new();
    for file in &arguments.files {
        let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?;
        let of_file = match arguments.kind {
            Kind::Fit => fit::outcomes(&text),
        };
        outcomes.extend(of_file.with_context(|| format!("cannot run the cases of {file}"))?);
    }
    let mut out = io::stdout().lock();
    for outcome in &outcomes {
        writeln!(out, "{}", outcome.line())?;
    }
    let differ = outcomes
        .iter()
        .filter(|outcome| !outcome.is_as_expected())
        .count();
    if differ > 0 {
        bail!("{differ} of {} cases differ", outcomes.len());
    }
    Ok(())
}
