//! Where keys are kept.

use camino::{Utf8Path, Utf8PathBuf};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};

/// A key could not be read.
#[derive(Debug, thiserror::Error)]
#[error("failed to read {place}")]
pub struct LoadKeyError {
    /// Where it is kept.
    pub place: String,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// A key could not be kept.
#[derive(Debug, thiserror::Error)]
#[error("failed to write {place}")]
pub struct StoreKeyError {
    /// Where it is kept.
    pub place: String,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// Keeps keys by name.
pub trait KeyStore: Send + Sync {
    /// What is kept under this name, or `None`.
    fn load(&self, name: &str) -> Result<Option<Vec<u8>>, LoadKeyError>;

    /// Keeps these bytes under this name: all of them, or what was there
    /// before.
    fn store(&self, name: &str, bytes: &[u8]) -> Result<(), StoreKeyError>;
}

/// Keeps each key in a file that only its owner reads.
#[derive(Clone, Debug)]
pub struct FileKeyStore {
    dir: Utf8PathBuf,
}

impl FileKeyStore {
    /// Keeps keys in this folder, which is made at the first write.
    pub fn new(dir: impl Into<Utf8PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// The folder.
    pub fn dir(&self) -> &Utf8Path {
        &self.dir
    }

    fn path(&self, name: &str) -> io::Result<Utf8PathBuf> {
        if name.is_empty() || name.starts_with('.') || name.contains('/') {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not a name of a key",
            ));
        }
        Ok(self.dir.join(name))
    }

    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.path(name)?;
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.dir)?;
        let temporary = self.dir.join(format!(".{name}.new"));
        // A leftover of a crash may have any mode: never write into it.
        match std::fs::remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&temporary, &path)?;
        File::open(&self.dir)?.sync_all()
    }
}

impl KeyStore for FileKeyStore {
    fn load(&self, name: &str) -> Result<Option<Vec<u8>>, LoadKeyError> {
        match self.path(name).and_then(std::fs::read) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(LoadKeyError {
                place: self.dir.join(name).into(),
                source,
            }),
        }
    }

    fn store(&self, name: &str, bytes: &[u8]) -> Result<(), StoreKeyError> {
        self.write(name, bytes).map_err(|source| StoreKeyError {
            place: self.dir.join(name).into(),
            source,
        })
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn store() -> (tempfile::TempDir, FileKeyStore) {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(dir.path().join("pki")).unwrap();
        (dir, FileKeyStore::new(path))
    }

    fn mode(path: &Utf8Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn what_is_stored_is_loaded_and_nothing_else() {
        let (_guard, store) = store();
        assert_eq!(store.load("key").unwrap(), None);
        store.store("key", b"first").unwrap();
        store.store("key", b"second").unwrap();
        assert_eq!(store.load("key").unwrap().as_deref(), Some(&b"second"[..]));
        let names: Vec<_> = std::fs::read_dir(store.dir())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, ["key"], "no temporary file stays");
    }

    #[test]
    fn only_the_owner_reads_even_after_a_crash_left_an_open_file() {
        let (_guard, store) = store();
        store.store("key", b"first").unwrap();
        let leftover = store.dir().join(".key.new");
        std::fs::write(&leftover, b"half").unwrap();
        std::fs::set_permissions(&leftover, std::fs::Permissions::from_mode(0o644)).unwrap();
        store.store("key", b"second").unwrap();
        assert_eq!(mode(&store.dir().join("key")), 0o600);
        assert_eq!(mode(store.dir()), 0o700);
    }

    #[test]
    fn names_cannot_leave_the_folder() {
        let (_guard, store) = store();
        for name in ["../key", "", ".hidden", "a/b"] {
            assert!(store.store(name, b"x").is_err(), "{name:?}");
            assert!(store.load(name).is_err(), "{name:?}");
        }
    }
}
