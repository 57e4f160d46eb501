//! The machine that everything is built and run on: Debian's packages, root,
//! and a Go that is new enough.

use std::process::Command;

use anyhow::{Context, Result, bail};
use camino::Utf8Path;

use crate::command;
use crate::terminal::{self, Stage};

/// What building and running need of Debian, with the reason that is shown.
const PACKAGES: [(&str, &str); 3] = [
    (
        "gcc",
        "compiles the C parts of cryptography and of the store",
    ),
    ("libc6-dev", "headers and the static library for them"),
    (
        "ca-certificates",
        "trusted roots for downloads and for nodes",
    ),
];

pub(crate) fn run() -> Result<()> {
    require_root("setup")?;
    install_packages()
}

/// Nodes are real kernels' namespaces, mounts and devices: nothing less than
/// root can make them.
pub(crate) fn require_root(task: &str) -> Result<()> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    bail!(
        "`cargo xtask {task}` needs root: it installs packages and makes namespaces, mounts and \
         cgroups. Run it as root, or: sudo --preserve-env=HOME,PATH env \"PATH=$PATH\" cargo xtask {task}"
    )
}

/// Installs what is missing, and says so before.
pub(crate) fn install_packages() -> Result<()> {
    require_debian()?;
    let missing: Vec<_> = PACKAGES
        .into_iter()
        .filter(|(package, _)| !is_installed(package))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    terminal::say("Installing Debian packages:");
    for (package, reason) in &missing {
        terminal::say(&format!("   {package}: {reason}"));
    }
    let stage = Stage::start("Install Debian packages");
    let names: Vec<_> = missing.iter().map(|(package, _)| *package).collect();
    with_current_lists(|| {
        command::read(
            Command::new("apt-get")
                .env("DEBIAN_FRONTEND", "noninteractive")
                .args(["install", "--yes", "--no-install-recommends"])
                .args(&names),
        )
    })?;
    stage.done();
    Ok(())
}

/// The node root is unpacked from Debian's packages with Debian's tools.
pub(crate) fn require_debian() -> Result<()> {
    for tool in ["apt-get", "dpkg-deb", "dpkg-query"] {
        if command::read(Command::new(tool).arg("--version")).is_err() {
            bail!(
                "{tool} is missing: neap is built on Debian 12 or newer (or a system made of it), \
                 because its nodes are made of Debian's packages"
            );
        }
    }
    Ok(())
}

fn is_installed(package: &str) -> bool {
    command::read(Command::new("dpkg-query").args(["-W", "-f=${db:Status-Status}", package]))
        .is_ok_and(|status| status == "installed")
}

/// Does something with apt; when it fails, the package lists may be old or
/// absent, so they are fetched once and it is tried again.
pub(crate) fn with_current_lists<T>(mut action: impl FnMut() -> Result<T>) -> Result<T> {
    let first = match action() {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    // A source of somebody else that does not answer is not our failure; what
    // is missing after that fails the second try.
    if let Err(error) = command::read(Command::new("apt-get").arg("update")) {
        terminal::say(&format!("warning: {error:#}"));
    }
    action().with_context(|| format!("after `apt-get update`; before it: {first:#}"))
}

/// The version of Go that builds a module, as Go itself says it.
pub(crate) fn go_version(module: &Utf8Path) -> Result<String> {
    const WAY_OUT: &str = "install Go 1.26 or newer (Debian's golang-go where it is new enough, \
                           else the archive of go.dev/dl in /usr/local/go) and put it on PATH";
    let wanted = wanted_go(module)?;
    let version = command::read(
        Command::new("go")
            .current_dir(module)
            .args(["env", "GOVERSION"]),
    )
    .with_context(|| format!("Go {wanted} is needed to build {module}: {WAY_OUT}"))?;
    let version = version.trim().to_owned();
    if !is_at_least(&version, &wanted) {
        bail!("{module} needs Go {wanted}, and this one is {version}: {WAY_OUT}");
    }
    Ok(version)
}

fn wanted_go(module: &Utf8Path) -> Result<String> {
    let path = module.join("go.mod");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    text.lines()
        .find_map(|line| line.strip_prefix("go "))
        .map(|version| version.trim().to_owned())
        .with_context(|| format!("{path} names no version of Go"))
}

/// `go1.26.8` against `1.26.5`. A development version of Go compares by the
/// numbers that it begins with.
fn is_at_least(have: &str, wanted: &str) -> bool {
    fn numbers(version: &str) -> Vec<u32> {
        version
            .trim_start_matches("go")
            .split(|c: char| !c.is_ascii_digit())
            .map_while(|part| part.parse().ok())
            .collect()
    }
    numbers(have) >= numbers(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_versions_compare_as_numbers() {
        assert!(is_at_least("go1.26.8", "1.26.5"));
        assert!(is_at_least("go1.26.10", "1.26.9"));
        assert!(is_at_least("go2.0", "1.26.9"));
        assert!(!is_at_least("go1.9.7", "1.26.0"));
        assert!(!is_at_least("go1.26", "1.26.5"));
        assert!(!is_at_least("devel", "1.26"));
    }
}
