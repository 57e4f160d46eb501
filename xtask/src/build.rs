//! The release builds.

use anyhow::Result;
use camino::Utf8PathBuf;

use crate::command;
use crate::terminal;
use crate::workspace;

pub(crate) fn run() -> Result<()> {
    let program = release(&["neap"])?.join("neap");
    terminal::print(program.as_str());
    Ok(())
}

/// Builds packages with cargo's own progress, and returns the folder where
/// their programs are.
pub(crate) fn release(packages: &[&str]) -> Result<Utf8PathBuf> {
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--release", "--bins"]);
    for package in packages {
        cargo.args(["--package", package]);
    }
    command::run(&mut cargo)?;
    Ok(workspace::metadata()?.target_directory.join("release"))
}
