//! Where things are, and what cargo knows about the workspace.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context, Result};
use camino::{Utf8Path, Utf8PathBuf};
use serde::Deserialize;

use crate::command;

/// The root of the work tree.
pub(crate) fn root() -> Utf8PathBuf {
    let own = Utf8Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}

/// The cargo that runs this program, in the root of the work tree.
pub(crate) fn cargo() -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// The answer of `cargo metadata`, as far as it is used.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    pub(crate) target_directory: Utf8PathBuf,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) manifest_path: Utf8PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) targets: Vec<Target>,
    #[serde(default)]
    pub(crate) metadata: Option<PackageMetadata>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Absent, `dev` or `build`.
    pub(crate) kind: Option<String>,
    /// Set for a crate of this workspace.
    pub(crate) path: Option<Utf8PathBuf>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) kind: Vec<String>,
}

/// What a package says to xtask in `[package.metadata]`.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct PackageMetadata {
    #[serde(default)]
    pub(crate) proofs: BTreeMap<String, ProofMetadata>,
}

/// `[package.metadata.proofs.NAME]` of a package below `tests/`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct ProofMetadata {
    pub(crate) deadline_seconds: u64,
    #[serde(default)]
    pub(crate) long: bool,
}

/// The packages of this workspace, without what they depend on.
pub(crate) fn metadata() -> Result<Metadata> {
    let text = command::read(cargo().args(["metadata", "--no-deps", "--format-version=1"]))?;
    serde_json::from_str(&text).context("cannot understand the answer of cargo metadata")
}
