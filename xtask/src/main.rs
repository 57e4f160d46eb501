//! The task runner of neap, for people and for CI.
//!
//! It sets a machine up, builds the distro and the program, checks the
//! workspace, runs every test and measures the figures. It is never shipped,
//! and depends on no crate of neap, so that it starts fast on a fresh machine.

mod bench;
mod build;
mod cases;
mod check;
mod command;
mod demo;
mod distro;
mod generate;
mod setup;
mod terminal;
mod test;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Builds, checks, tests and measures neap.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Check formatting, structure, lints and generated files
    Check,
    /// Write the files that are generated from neap's types (deploy/crds)
    Generate,
    /// Install the Debian packages that building and running need
    Setup,
    /// Build the distro (Kubernetes, containerd, the node root) into the cache
    Distro,
    /// Build neap for release
    Build,
    /// Set up, build, check, and run every test and live proof; needs root
    Test(test::Arguments),
    /// Run cases that are written as data: one line each, exit code 1 on any difference
    Cases(cases::Arguments),
    /// Set up, build, and run `neap demo`; needs root
    Demo(demo::Arguments),
    /// Set up, build, and measure figures: several runs, minimum, median, goal; needs root
    Bench(bench::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match arguments.task {
        Task::Check => check::run(),
        Task::Generate => generate::write(),
        Task::Setup => setup::run(),
        Task::Distro => distro::run(),
        Task::Build => build::run(),
        Task::Test(arguments) => test::run(&arguments),
        Task::Cases(arguments) => cases::run(&arguments),
        Task::Demo(arguments) => demo::run(&arguments),
        Task::Bench(arguments) => bench::run(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
