//! What is checked before anything is tested, cheapest first.

mod dependencies;
mod tidy;

use std::process::Command;

use anyhow::{Result, bail};

use crate::terminal::Stage;
use crate::{command, generate, workspace};

pub(crate) fn run() -> Result<()> {
    for (name, check) in [
        ("Formatting", check_formatting as fn() -> Result<()>),
        ("Structure", check_structure),
        ("Lints", check_lints),
        ("Generated files", generate::check),
    ] {
        let stage = Stage::start(name);
        check()?;
        stage.done();
    }
    Ok(())
}

fn check_formatting() -> Result<()> {
    command::read(workspace::cargo().args(["fmt", "--all", "--check", "--", "-l"]))
        .map_err(|error| error.context("not formatted: run `cargo fmt --all`"))?;
    let distro = workspace::root().join("distro");
    let files = command::read(Command::new("gofmt").args(["-l", distro.as_str()]))?;
    if !files.is_empty() {
        bail!("not formatted, run gofmt -w on: {}", files.trim());
    }
    Ok(())
}

fn check_structure() -> Result<()> {
    let root = workspace::root();
    let metadata = workspace::metadata()?;
    let mut problems = dependencies::problems(&metadata.packages);
    let tree = command::read(workspace::cargo().args([
        "tree",
        "--workspace",
        "--edges=normal,build",
        "--prefix=none",
        "--format={p}",
    ]))?;
    problems.extend(dependencies::problems_of_tree(&tree));
    problems.extend(tidy::problems(&root, &metadata.packages)?);
    if problems.is_empty() {
        return Ok(());
    }
    bail!("{} problem(s):\n{}", problems.len(), problems.join("\n"))
}

fn check_lints() -> Result<()> {
    command::run(workspace::cargo().args([
        "clippy",
        "--quiet",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))
}
