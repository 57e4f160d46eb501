//! Whether everything in the node root finds its shared libraries there.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, bail};
use camino::{Utf8Path, Utf8PathBuf};

use super::elf;
use super::node_root::normal;

/// Longer chains of links are loops.
const MOST_LINKS: usize = 16;

/// Fails when a program or library in the root, or a program of the distro,
/// needs a library that the root has not.
pub(super) fn check(root: &Utf8Path, bin: &Utf8Path) -> Result<()> {
    let libraries = Libraries::of(root)?;
    let mut programs = regular_files(bin)?;
    programs.extend(regular_files(&bin.join("cni"))?);
    for folder in ["usr/bin", "usr/sbin"] {
        programs.extend(regular_files(&root.join(folder))?);
    }
    programs.extend(libraries.files.values().cloned());
    for program in programs {
        libraries.closure(&program, &[])?;
    }
    Ok(())
}

fn regular_files(folder: &Utf8Path) -> Result<Vec<Utf8PathBuf>> {
    let mut files = Vec::new();
    for entry in folder
        .read_dir_utf8()
        .with_context(|| format!("cannot list {folder}"))?
    {
        let entry = entry.with_context(|| format!("cannot list {folder}"))?;
        if entry.file_type().is_ok_and(|kind| kind.is_file()) {
            files.push(entry.into_path());
        }
    }
    Ok(files)
}

/// The shared libraries of a root, by name.
pub(super) struct Libraries {
    root: Utf8PathBuf,
    /// The folder where they are, relative to the root.
    folder: String,
    files: BTreeMap<String, Utf8PathBuf>,
}

impl Libraries {
    pub(super) fn of(root: &Utf8Path) -> Result<Self> {
        let folder = format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH);
        let mut files = BTreeMap::new();
        let path = root.join(&folder);
        for entry in path
            .read_dir_utf8()
            .with_context(|| format!("cannot list {path}"))?
        {
            let entry = entry.with_context(|| format!("cannot list {path}"))?;
            let place = Utf8Path::new(&folder).join(entry.file_name());
            if let Some(file) = resolve(root, &place) {
                files.insert(entry.file_name().to_owned(), file);
            }
        }
        Ok(Self {
            root: root.to_owned(),
            folder,
            files,
        })
    }

    /// Everything that a program needs to start, and the libraries that it
    /// opens later: where each belongs in a root, and where it is now.
    pub(super) fn closure(
        &self,
        program: &Utf8Path,
        opened: &[&str],
    ) -> Result<BTreeMap<Utf8PathBuf, Utf8PathBuf>> {
        let mut found = BTreeMap::new();
        let mut names: Vec<String> = opened.iter().map(|&name| name.to_owned()).collect();
        let needs = needs(program)?;
        names.extend(needs.libraries);
        if let Some(interpreter) = needs.interpreter {
            let place = normal(Utf8Path::new(&interpreter));
            let Some(file) = resolve(&self.root, &place) else {
                bail!("the node root lacks {interpreter}, which {program} needs");
            };
            found.insert(place, file);
        }
        while let Some(name) = names.pop() {
            let place = Utf8Path::new(&self.folder).join(&name);
            if found.contains_key(&place) {
                continue;
            }
            let Some(file) = self.files.get(&name) else {
                bail!(
                    "the node root lacks {name}, which {program} needs: add its package to \
                     distro/node-root.packages"
                );
            };
            found.insert(place, file.clone());
            names.extend(self::needs(file)?.libraries);
        }
        Ok(found)
    }
}

/// The regular file that a place in a root leads to. A link with an absolute
/// target stays in the root: opened as it is, it would lead to the host's.
fn resolve(root: &Utf8Path, place: &Utf8Path) -> Option<Utf8PathBuf> {
    let mut place = place.to_owned();
    for _ in 0..MOST_LINKS {
        let path = root.join(&place);
        let kind = path.symlink_metadata().ok()?.file_type();
        if !kind.is_symlink() {
            return kind.is_file().then_some(path);
        }
        let target = path.read_link_utf8().ok()?;
        place = if target.is_absolute() {
            normal(&target)
        } else {
            normal(&place.parent()?.join(target))
        };
    }
    None
}

fn needs(file: &Utf8Path) -> Result<elf::Needs> {
    let content = fs::read(file).with_context(|| format!("cannot read {file}"))?;
    Ok(elf::needs(&content).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use std::os::unix::fs::symlink;

    use super::*;

    fn own_program() -> Utf8PathBuf {
        Utf8PathBuf::from_path_buf(std::env::current_exe().unwrap()).unwrap()
    }

    /// A root whose libraries are empty files.
    fn root_with(libraries: &[&str]) -> (tempfile::TempDir, Utf8PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap().to_owned();
        let place = root.join(format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH));
        fs::create_dir_all(&place).unwrap();
        for library in libraries {
            fs::write(place.join(library), "").unwrap();
        }
        let loader = needs(&own_program()).unwrap().interpreter.unwrap();
        let loader = root.join(normal(Utf8Path::new(&loader)));
        fs::create_dir_all(loader.parent().unwrap()).unwrap();
        fs::write(loader, "").unwrap();
        (folder, root)
    }

    #[test]
    fn a_missing_library_is_named_with_who_needs_it() {
        let needed = needs(&own_program()).unwrap().libraries;
        let names: Vec<_> = needed.iter().map(String::as_str).collect();
        let (_folder, root) = root_with(&names);
        let libraries = Libraries::of(&root).unwrap();
        let found = libraries.closure(&own_program(), &[]).unwrap();
        assert_eq!(found.len(), needed.len() + 1, "{found:?}");

        let rest: Vec<_> = names.into_iter().filter(|&n| n != "libc.so.6").collect();
        let (_folder, root) = root_with(&rest);
        let libraries = Libraries::of(&root).unwrap();
        let error = libraries
            .closure(&own_program(), &[])
            .unwrap_err()
            .to_string();
        assert!(error.contains("lacks libc.so.6"), "{error}");
        assert!(error.contains(own_program().as_str()), "{error}");
    }

    #[test]
    fn links_stay_in_the_root() {
        let (_folder, root) = root_with(&[]);
        fs::create_dir_all(root.join("etc")).unwrap();
        symlink("/etc/passwd", root.join("etc/absolute")).unwrap();
        symlink("loop", root.join("etc/loop")).unwrap();
        assert_eq!(resolve(&root, Utf8Path::new("etc/absolute")), None);
        assert_eq!(resolve(&root, Utf8Path::new("etc/loop")), None);
        fs::write(root.join("etc/passwd"), "").unwrap();
        let found = resolve(&root, Utf8Path::new("etc/absolute"));
        assert_eq!(found, Some(root.join("etc/passwd")));
    }
}
