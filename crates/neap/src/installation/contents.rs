//! What lies in a data folder: what neap puts there, and nothing else.

use crate::problem::Problem;
use anyhow::Context as _;
use camino::{Utf8DirEntry, Utf8Path, Utf8PathBuf};

/// All that neap ever makes in the folder itself.
const OF_NEAP: [&str; 8] = [
    "clusters",
    "format",
    "format.new",
    "hub",
    "installation",
    "installation.new",
    "lock",
    "neap.sock",
];
/// A `serve` that ended before it had an identity leaves no more than these.
const BEGINNINGS: [&str; 2] = ["installation.new", "lock"];
/// File systems have it at their top; it is nobody's.
const LOST_AND_FOUND: &str = "lost+found";

/// The folder by the name that the kernel has for it, without links and
/// detours: mounts and processes are known by that one. What is not there yet
/// keeps the name that it is to have.
pub(crate) fn resolve(data_dir: &Utf8Path) -> anyhow::Result<Utf8PathBuf> {
    let failed = || format!("failed to find the data folder {data_dir}");
    let absolute = camino::absolute_utf8(data_dir).with_context(failed)?;
    let mut there = absolute.as_path();
    loop {
        match there.canonicalize_utf8() {
            Ok(found) => {
                let rest = absolute.strip_prefix(there).unwrap_or(Utf8Path::new(""));
                return Ok(if rest.as_str().is_empty() {
                    found
                } else {
                    found.join(rest)
                });
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => match there.parent() {
                Some(parent) => there = parent,
                None => return Err(error).with_context(failed),
            },
            Err(error) => return Err(error).with_context(failed),
        }
    }
}

/// Whether nothing is in the folder, or no more than a file system begins with.
pub(crate) fn is_empty(data_dir: &Utf8Path) -> anyhow::Result<bool> {
    Ok(names(data_dir)?.iter().all(|name| name == LOST_AND_FOUND))
}

/// Whether neap makes what bears this name.
pub(crate) fn is_of_neap(entry: &Utf8DirEntry) -> bool {
    OF_NEAP.contains(&entry.file_name())
}

/// Refuses a folder that is something else's, or holds something else's.
pub(crate) fn check(data_dir: &Utf8Path) -> anyhow::Result<()> {
    let mut names = names(data_dir)?;
    names.retain(|name| name != LOST_AND_FOUND);
    let begun = |name: &String| BEGINNINGS.contains(&name.as_str());
    if !names.iter().any(|name| name == "installation") && !names.iter().all(begun) {
        return Err(Problem::NotAnInstallation {
            path: data_dir.to_owned(),
        }
        .into());
    }
    names.retain(|name| !OF_NEAP.contains(&name.as_str()));
    if names.is_empty() {
        return Ok(());
    }
    Err(Problem::ForeignFiles {
        path: data_dir.to_owned(),
        what: names.join(", "),
    }
    .into())
}

fn names(data_dir: &Utf8Path) -> anyhow::Result<Vec<String>> {
    let failed = || format!("failed to read {data_dir}");
    let mut names = Vec::new();
    // Names that are no text are not ours, and are to be seen all the same.
    for entry in data_dir.as_std_path().read_dir().with_context(failed)? {
        let entry = entry.with_context(failed)?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn folder_with(names: &[&str]) -> (tempfile::TempDir, Utf8PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path())
            .unwrap()
            .canonicalize_utf8()
            .unwrap();
        for name in names {
            std::fs::write(path.join(name), "").unwrap();
        }
        (folder, path)
    }

    #[test]
    fn a_folder_is_ours_by_its_identity_and_holds_nothing_else() {
        for (names, ours) in [
            (&[][..], true),
            (&["lock", "installation.new"], true),
            (&["lost+found"], true),
            (
                &["installation", "clusters", "hub", "lock", "neap.sock"],
                true,
            ),
            (&["installation", "precious"], false),
            (&["precious"], false),
            // Whose they are is not known any more.
            (&["clusters", "hub", "lock"], false),
        ] {
            let (_keep, path) = folder_with(names);
            assert_eq!(check(&path).is_ok(), ours, "{names:?}");
        }
    }

    #[test]
    fn links_and_detours_lead_to_one_name() {
        let (_keep, path) = folder_with(&[]);
        std::fs::create_dir(path.join("real")).unwrap();
        std::os::unix::fs::symlink(path.join("real"), path.join("link")).unwrap();
        for (name, real) in [
            ("link", "real"),
            ("link/new/data", "real/new/data"),
            ("real/../link", "real"),
            ("new", "new"),
        ] {
            assert_eq!(
                resolve(&path.join(name)).unwrap(),
                path.join(real),
                "{name}"
            );
        }
    }
}
