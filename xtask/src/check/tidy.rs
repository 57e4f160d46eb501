//! Rules on files that no compiler checks.

use std::fs;

use anyhow::{Context, Result};
use camino::{Utf8Path, Utf8PathBuf};

use crate::workspace::Package;

const MOST_LINES: usize = 500;

/// Folders of our own source text.
const SOURCES: [&str; 4] = ["crates", "distro", "tests", "xtask"];

/// Names that say nothing about what is in a module.
const EMPTY_NAMES: [&str; 9] = [
    "common", "helper", "helpers", "manager", "misc", "mod", "shared", "util", "utils",
];

/// Every breach, as a sentence.
pub(super) fn problems(root: &Utf8Path, packages: &[Package]) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for source in SOURCES.map(|folder| root.join(folder)) {
        if source.exists() {
            check_folder(root, &source, &mut problems)?;
        }
    }
    for package in packages {
        let text = read(&package.manifest_path)?;
        if !inherits_lints(&text) {
            problems.push(format!(
                "{} has no `[lints]` with `workspace = true`",
                relative(root, &package.manifest_path)
            ));
        }
    }
    Ok(problems)
}

fn check_folder(root: &Utf8Path, folder: &Utf8Path, problems: &mut Vec<String>) -> Result<()> {
    let mut paths: Vec<Utf8PathBuf> = folder
        .read_dir_utf8()
        .and_then(|entries| entries.map(|entry| Ok(entry?.into_path())).collect())
        .with_context(|| format!("cannot list {folder}"))?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            problems.extend(name_problem(root, &path));
            check_folder(root, &path, problems)?;
        } else if matches!(path.extension(), Some("rs" | "go")) {
            problems.extend(name_problem(root, &path));
            let lines = read(&path)?.lines().count();
            if lines >= MOST_LINES {
                problems.push(format!(
                    "{} has {lines} lines; a file stays under {MOST_LINES}",
                    relative(root, &path)
                ));
            }
        }
    }
    Ok(())
}

fn name_problem(root: &Utf8Path, path: &Utf8Path) -> Option<String> {
    let name = path.file_stem()?;
    EMPTY_NAMES
        .contains(&name)
        .then(|| format!("{}: {name} names nothing", relative(root, path)))
}

fn inherits_lints(manifest: &str) -> bool {
    manifest
        .lines()
        .map(str::trim)
        .skip_while(|&line| line != "[lints]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .any(|line| line.replace(' ', "") == "workspace=true")
}

fn relative<'a>(root: &Utf8Path, path: &'a Utf8Path) -> &'a Utf8Path {
    path.strip_prefix(root).unwrap_or(path)
}

fn read(path: &Utf8Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {path}"))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn long_files_and_empty_names_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        for (name, lines) in [
            ("crates/a/src/short.rs", 499),
            ("crates/a/src/long.rs", 500),
            ("crates/a/src/long.txt", 900),
            ("crates/a/src/utils.rs", 1),
            ("crates/a/src/manager/x.rs", 1),
            ("distro/a/mod.go", 1),
        ] {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "\n".repeat(lines)).unwrap();
        }
        let found = problems(root, &[]).unwrap();
        assert_eq!(
            found,
            [
                "crates/a/src/long.rs has 500 lines; a file stays under 500",
                "crates/a/src/manager: manager names nothing",
                "crates/a/src/utils.rs: utils names nothing",
                "distro/a/mod.go: mod names nothing",
            ]
        );
    }

    #[test]
    fn lints_are_inherited_only_by_their_own_table() {
        assert!(inherits_lints("[package]\n[lints]\nworkspace = true\n"));
        assert!(!inherits_lints("[package]\nversion.workspace = true\n"));
        assert!(!inherits_lints("[lints]\n[other]\nworkspace = true\n"));
    }
}
