//! `cargo xtask cases`: cases that are written as data. A program of its own
//! runs them, since it needs neap's types.

use std::os::unix::process::CommandExt;

use anyhow::{Context, Result, anyhow};

use crate::{command, workspace};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// KIND FILE…; a kind is `fit`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Files are looked for from where the caller stands.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let stands = std::env::current_dir().context("cannot tell the current folder")?;
    let mut cargo = workspace::cargo();
    let manifest = workspace::root().join("Cargo.toml");
    cargo
        .current_dir(stands)
        .args([
            "run",
            "--quiet",
            "--package",
            "neap-cases",
            "--manifest-path",
        ])
        .arg(manifest)
        .arg("--")
        .args(&arguments.arguments);
    let error = cargo.exec();
    Err(anyhow!(error).context(format!("cannot run `{}`", command::show(&cargo))))
}
