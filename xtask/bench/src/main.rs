//! Takes the figures of neap: several runs, minimum and median, the goal and
//! whether it is met.
//!
//! `cargo xtask bench` builds it for release and calls it with NEAP_BIN,
//! NEAP_DISTRO and NEAP_XTASK. A figure is never asserted in a test.

mod benches;
mod figure;
mod terminal;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use camino::Utf8PathBuf;
use clap::Parser;

use figure::Figure;
use terminal::Progress;

/// Measures figures of neap
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench")]
struct Arguments {
    /// What to measure; without a name the known ones are listed
    name: Option<String>,
    /// How often
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// One line of JSON a figure
    #[arg(long)]
    json: bool,
    /// The neap that is measured
    #[arg(long, env = "NEAP_BIN", hide = true)]
    neap: Utf8PathBuf,
    /// The distro that it uses
    #[arg(long, env = "NEAP_DISTRO", hide = true)]
    distro: Utf8PathBuf,
    /// The task runner
    #[arg(long, env = "NEAP_XTASK", hide = true)]
    xtask: Utf8PathBuf,
}

/// A bench: it does something as often as it is told, and returns figures.
struct Bench {
    name: &'static str,
    about: &'static str,
    measure: fn(&Subject, &Progress) -> Result<Vec<Figure>>,
}

/// What a bench is given.
#[derive(Debug)]
struct Subject {
    /// How often each figure is taken.
    runs: u32,
    neap: Utf8PathBuf,
    distro: Utf8PathBuf,
    xtask: Utf8PathBuf,
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Result<()> {
    let Some(name) = arguments.name else {
        terminal::print(&known());
        return Ok(());
    };
    let Some(bench) = benches::ALL.iter().find(|bench| bench.name == name) else {
        bail!("no bench is named {name}; known:\n{}", known());
    };
    let subject = Subject {
        runs: arguments.runs,
        neap: arguments.neap,
        distro: arguments.distro,
        xtask: arguments.xtask,
    };
    let progress = Progress::start(&format!("Measure {name}, {} runs", subject.runs));
    let figures =
        (bench.measure)(&subject, &progress).with_context(|| format!("cannot measure {name}"))?;
    progress.end();
    for line in figure::lines(&figures, arguments.json)? {
        terminal::print(&line);
    }
    Ok(())
}

fn known() -> String {
    let lines: Vec<_> = benches::ALL
        .iter()
        .map(|bench| format!("  {:<14} {}", bench.name, bench.about))
        .collect();
    lines.join("\n")
}
