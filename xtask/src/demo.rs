//! `cargo xtask demo`: from a fresh machine to `neap demo`.

use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Result, anyhow};

use crate::command;
use crate::{build, distro, setup};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Passed on to `neap demo`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    setup::require_root("demo")?;
    setup::install_packages()?;
    let distro = distro::ensure()?;
    let neap = build::release(&["neap"])?.join("neap");
    let mut demo = Command::new(neap);
    demo.arg("demo")
        .args(&arguments.arguments)
        .env("NEAP_DISTRO", distro.folder);
    // The demo takes this process's place, so that an interrupt reaches it
    // and its exit code is ours.
    let error = demo.exec();
    Err(anyhow!(error).context(format!("cannot run `{}`", command::show(&demo))))
}
