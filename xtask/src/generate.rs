//! Files that are generated from neap's own types. A program of its own
//! writes them, since it compiles much that the other tasks do without.

use std::process::Command;

use anyhow::{Context, Result};

use crate::command;
use crate::workspace;

/// Writes deploy/crds.
pub(crate) fn write() -> Result<()> {
    command::run(&mut generator())
}

/// Fails when deploy/crds is not what the types say.
pub(crate) fn check() -> Result<()> {
    command::run(generator().arg("--check"))
        .context("generated files differ from neap's types: run `cargo xtask generate`")
}

fn generator() -> Command {
    let mut command = workspace::cargo();
    command.args(["run", "--quiet", "--package", "xtask-generate", "--"]);
    command
}
