//! The cache: folders named by what they were made from, put in place whole.

use std::fs::{self, File, TryLockError};
use std::os::unix::fs::symlink;

use anyhow::{Context, Result};
use camino::{Utf8Path, Utf8PathBuf};
use sha2::{Digest, Sha256};

use crate::terminal::Stage;

/// Folders that are being built start so; under the lock they are nobody's.
const UNFINISHED: &str = ".building-";

/// The hash of everything that something is made from.
#[derive(Debug, Clone)]
pub(super) struct Key(Sha256);

impl Key {
    pub(super) fn start(kind: &str, builder: u32) -> Self {
        let mut key = Self(Sha256::new());
        key.add("kind", kind);
        key.add("builder", &builder.to_string());
        key
    }

    pub(super) fn add(&mut self, name: &str, value: &str) {
        self.add_bytes(name, value.as_bytes());
    }

    fn add_bytes(&mut self, name: &str, value: &[u8]) {
        // Lengths keep apart what would read the same when joined.
        for part in [name.as_bytes(), value] {
            self.0.update(part.len().to_string());
            self.0.update(":");
            self.0.update(part);
        }
    }

    /// Every file below a folder, by name and content.
    pub(super) fn add_tree(&mut self, folder: &Utf8Path) -> Result<()> {
        for path in files_below(folder)? {
            let content = fs::read(&path).with_context(|| format!("cannot read {path}"))?;
            let name = path.strip_prefix(folder).unwrap_or(&path);
            self.add_bytes(name.as_str(), &content);
        }
        Ok(())
    }

    pub(super) fn hex(&self) -> String {
        hex(&self.0.clone().finalize())
    }

    /// Enough of it for people and for records.
    pub(super) fn short(&self) -> String {
        self.hex().chars().take(12).collect()
    }
}

/// Lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn files_below(folder: &Utf8Path) -> Result<Vec<Utf8PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = folder
            .read_dir_utf8()
            .with_context(|| format!("cannot list {folder}"))?;
        for entry in entries {
            let path = entry
                .with_context(|| format!("cannot list {folder}"))?
                .into_path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The folder of all distros, and of the parts that they share.
#[derive(Debug)]
pub(super) struct Cache {
    base: Utf8PathBuf,
}

impl Cache {
    /// `$NEAP_CACHE`, or neap's place in the user's cache.
    pub(super) fn locate() -> Result<Self> {
        let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let caches = set("NEAP_CACHE")
            .or_else(|| set("XDG_CACHE_HOME"))
            .or_else(|| set("HOME").map(|home| format!("{home}/.cache")))
            .context("no place for the cache: set NEAP_CACHE (or HOME)")?;
        Self::at(&Utf8PathBuf::from(caches).join("neap/distro"))
    }

    fn at(base: &Utf8Path) -> Result<Self> {
        fs::create_dir_all(base).with_context(|| format!("cannot make the cache {base}"))?;
        let base = base
            .canonicalize_utf8()
            .with_context(|| format!("cannot resolve {base}"))?;
        Ok(Self { base })
    }

    /// Where the distro of a key is.
    pub(super) fn place(&self, key: &Key) -> Utf8PathBuf {
        self.base.join(key.hex())
    }

    /// Where a part that several distros share is.
    pub(super) fn part(&self, name: &str, key: &Key) -> Utf8PathBuf {
        self.base
            .join("parts")
            .join(format!("{name}-{}", key.hex()))
    }

    /// Debian's packages, as they were fetched.
    pub(super) fn packages(&self) -> Result<Utf8PathBuf> {
        self.folder("packages")
    }

    /// The whole output of each build step.
    pub(super) fn log(&self, name: &str) -> Result<Utf8PathBuf> {
        Ok(self.folder("logs")?.join(format!("{name}.log")))
    }

    fn folder(&self, name: &str) -> Result<Utf8PathBuf> {
        let folder = self.base.join(name);
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {folder}"))?;
        Ok(folder)
    }

    /// One builder at a time. The lock lasts as long as the answer.
    pub(super) fn lock(&self) -> Result<File> {
        let path = self.base.join("lock");
        let file = File::create(&path).with_context(|| format!("cannot make {path}"))?;
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock {path}"));
            }
        }
        let stage = Stage::start("Wait for another build of the distro");
        file.lock().with_context(|| format!("cannot lock {path}"))?;
        stage.done();
        Ok(file)
    }

    /// Removes what an interrupted builder left. Only under the lock.
    pub(super) fn remove_leftovers(&self) -> Result<()> {
        for folder in [self.base.clone(), self.folder("parts")?] {
            let entries = folder
                .read_dir_utf8()
                .with_context(|| format!("cannot list {folder}"))?;
            for entry in entries {
                let entry = entry.with_context(|| format!("cannot list {folder}"))?;
                if entry.file_name().starts_with(UNFINISHED) {
                    let path = entry.path();
                    fs::remove_dir_all(path)
                        .with_context(|| format!("cannot remove the unfinished {path}"))?;
                }
            }
        }
        Ok(())
    }

    /// Lets `build` fill a folder beside `place`, and puts it there whole.
    pub(super) fn fill(
        &self,
        place: &Utf8Path,
        build: impl FnOnce(&Utf8Path) -> Result<()>,
    ) -> Result<()> {
        let (parent, name) = place
            .parent()
            .zip(place.file_name())
            .with_context(|| format!("{place} is no place in {}", self.base))?;
        // A compiler that outlived its builder must not write into this one's.
        let builder = std::process::id();
        let unfinished = parent.join(format!("{UNFINISHED}{name}-{builder}"));
        fs::create_dir_all(&unfinished).with_context(|| format!("cannot make {unfinished}"))?;
        build(&unfinished)?;
        if place.exists() {
            // Without its last file it is what a power failure left.
            fs::remove_dir_all(place).with_context(|| format!("cannot replace {place}"))?;
        }
        fs::rename(&unfinished, place)
            .with_context(|| format!("cannot rename {unfinished} to {place}"))
    }

    /// Points `current` at the distro of a key.
    pub(super) fn set_current(&self, key: &Key) -> Result<()> {
        let link = self.base.join("current");
        let target = key.hex();
        if link.read_link_utf8().is_ok_and(|now| now == target) {
            return Ok(());
        }
        let fresh = self.base.join(format!(".current-{}", std::process::id()));
        symlink(&target, &fresh).with_context(|| format!("cannot make the link {fresh}"))?;
        fs::rename(&fresh, &link).with_context(|| format!("cannot replace {link}"))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn temporary() -> (tempfile::TempDir, Cache) {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(Utf8Path::from_path(folder.path()).unwrap()).unwrap();
        (folder, cache)
    }

    fn tree_key(files: &[(&str, &str)]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let base = Utf8Path::from_path(folder.path()).unwrap();
        for (name, content) in files {
            let path = base.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let mut key = Key::start("test", 1);
        key.add_tree(base).unwrap();
        key.hex()
    }

    #[test]
    fn a_key_depends_on_names_and_contents_and_not_on_the_place() {
        let key = tree_key(&[("a/b", "x"), ("c", "y")]);
        assert_eq!(key, tree_key(&[("c", "y"), ("a/b", "x")]));
        assert_ne!(key, tree_key(&[("a/b", "x"), ("c", "z")]));
        assert_ne!(key, tree_key(&[("a/d", "x"), ("c", "y")]));
        assert_ne!(tree_key(&[("ab", "c")]), tree_key(&[("a", "bc")]));
    }

    #[test]
    fn a_failed_build_leaves_nothing_in_its_place_and_its_rest_is_removed() {
        let (_folder, cache) = temporary();
        let place = cache.place(&Key::start("test", 1));
        let outcome = cache.fill(&place, |unfinished| {
            fs::write(unfinished.join("half"), "")?;
            anyhow::bail!("no space left")
        });
        assert!(outcome.is_err());
        assert!(!place.exists());
        cache.remove_leftovers().unwrap();
        let left: Vec<_> = fs::read_dir(&cache.base).unwrap().collect();
        assert_eq!(left.len(), 1, "only the folder of parts: {left:?}");
    }

    #[test]
    fn current_moves_to_the_newest() {
        let (_folder, cache) = temporary();
        for number in [1, 2, 2] {
            let key = Key::start("test", number);
            cache
                .fill(&cache.place(&key), |place| {
                    Ok(fs::write(place.join("x"), key.hex())?)
                })
                .unwrap();
            cache.set_current(&key).unwrap();
            let seen = fs::read_to_string(cache.base.join("current/x")).unwrap();
            assert_eq!(seen, key.hex());
        }
    }
}
