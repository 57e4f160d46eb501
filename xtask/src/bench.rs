//! `cargo xtask bench`: the figures. A program of its own takes them, on
//! release builds; here is what it needs.

use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Result, anyhow};

use crate::{build, command, distro, setup};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// NAME [--runs N] [--json]; without a name the known ones are listed
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    setup::require_root("bench")?;
    setup::install_packages()?;
    let distro = distro::ensure()?;
    let folder = build::release(&["neap", "neap-bench"])?;
    let own = std::env::current_exe().context("cannot find this program")?;
    let mut bench = Command::new(folder.join("neap-bench"));
    bench
        .args(&arguments.arguments)
        .env("NEAP_BIN", folder.join("neap"))
        .env("NEAP_DISTRO", distro.folder)
        .env("NEAP_XTASK", own);
    let error = bench.exec();
    Err(anyhow!(error).context(format!("cannot run `{}`", command::show(&bench))))
}
