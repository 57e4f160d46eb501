//! Debian's packages, fetched by apt from the sources of this machine, which
//! also checks them.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};
use camino::{Utf8Path, Utf8PathBuf};

use super::cache::Cache;
use crate::terminal::Stage;
use crate::{command, setup};

/// A package in the cache.
#[derive(Debug)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) file: Utf8PathBuf,
}

/// The release that packages come from, as os-release names it.
pub(super) fn release() -> Result<String> {
    let path = "/etc/os-release";
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    text.lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="))
        .map(|name| name.trim_matches('"').to_owned())
        .with_context(|| format!("{path} has no VERSION_CODENAME: neap is built on Debian"))
}

/// Fetches the packages that a list names, in its order.
pub(super) fn fetch(list: &Utf8Path, cache: &Cache) -> Result<Vec<Package>> {
    let text = fs::read_to_string(list).with_context(|| format!("cannot read {list}"))?;
    let names = names(&text);
    let stage = Stage::start(format!("Fetch {} Debian packages", names.len()));
    let folder = cache.packages()?;
    let files = setup::with_current_lists(|| {
        // What is there already apt checks and keeps.
        command::read(apt(&folder).args(&names))?;
        // It names only files that are not there, and in /proc none is.
        let nowhere = Utf8Path::new("/proc");
        let answer = command::read(apt(nowhere).arg("--print-uris").args(&names))?;
        file_names(&answer)
    })?;
    let packages = files
        .iter()
        .map(|name| describe(folder.join(name)))
        .collect::<Result<Vec<_>>>()?;
    for name in &names {
        if !packages.iter().any(|package| package.name == *name) {
            bail!("apt fetched no package {name}, which {list} names");
        }
    }
    stage.done();
    Ok(packages)
}

fn names(text: &str) -> Vec<&str> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect()
}

fn apt(folder: &Utf8Path) -> Command {
    let mut apt = Command::new("apt-get");
    // apt's own user cannot write into a folder of root's.
    apt.current_dir(folder)
        .args(["-o", "APT::Sandbox::User=root", "download"]);
    apt
}

/// Lines of apt are `'ADDRESS' FILE SIZE HASH`.
fn file_names(answer: &str) -> Result<Vec<String>> {
    answer
        .lines()
        .filter(|line| line.starts_with('\''))
        .map(|line| {
            line.split_whitespace()
                .nth(1)
                .map(str::to_owned)
                .with_context(|| format!("apt said something else than a file: {line}"))
        })
        .collect()
}

fn describe(file: Utf8PathBuf) -> Result<Package> {
    let answer = command::read(Command::new("dpkg-deb").args([
        "--show",
        "--showformat=${Package} ${Version}",
        file.as_str(),
    ]))?;
    let (name, version) = answer
        .trim()
        .split_once(' ')
        .with_context(|| format!("{file} has no name and version"))?;
    Ok(Package {
        name: name.to_owned(),
        version: version.to_owned(),
        file,
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn a_list_is_names_and_comments() {
        assert_eq!(names("# why\nrunc\n\n  libc6 \n#x\n"), ["runc", "libc6"]);
    }

    #[test]
    fn apt_names_its_files() {
        let answer = "W: a warning\n\
            'http://example.org/runc_1.1.5_amd64.deb' runc_1.1.5_amd64.deb 2709684 SHA256:ab\n\
            'http://example.org/l' libc6_2%3a1_amd64.deb 1 SHA256:cd\n";
        let files = file_names(answer).unwrap();
        assert_eq!(files, ["runc_1.1.5_amd64.deb", "libc6_2%3a1_amd64.deb"]);
        assert!(file_names("'http://example.org/x'\n").is_err());
    }
}
