//! One `serve` per data folder.

use crate::problem::Problem;
use anyhow::Context as _;
use camino::Utf8Path;
use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};

/// The data folder, held until this is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct DataLock {
    _file: File,
}

impl DataLock {
    /// Makes the folder if need be and takes it, for its owner alone, or says
    /// who has it.
    pub(crate) fn take(data_dir: &Utf8Path) -> anyhow::Result<Self> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(data_dir)
            .with_context(|| format!("failed to make the data folder {data_dir}"))?;
        let lock = Self::take_existing(data_dir)?;
        // One that was made by hand before is open to everybody as a rule.
        std::fs::set_permissions(data_dir, Permissions::from_mode(0o700))
            .with_context(|| format!("failed to close the data folder {data_dir} to others"))?;
        Ok(lock)
    }

    /// Whether somebody has the folder now.
    pub(crate) fn is_held(data_dir: &Utf8Path) -> bool {
        let lock = File::open(data_dir.join("lock"));
        lock.is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
    }

    /// Takes a folder that exists.
    pub(crate) fn take_existing(data_dir: &Utf8Path) -> anyhow::Result<Self> {
        let path = data_dir.join("lock");
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .with_context(|| format!("failed to open {path}"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let pid = file
                    .read_to_string(&mut text)
                    .ok()
                    .and_then(|_| text.trim().parse().ok());
                return Err(Problem::Locked {
                    data_dir: data_dir.to_owned(),
                    pid,
                }
                .into());
            }
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("failed to lock {path}"));
            }
        }
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()))
            .with_context(|| format!("failed to write {path}"))?;
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_second_holder_is_refused_and_told_the_pid_of_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("data");
        let first = DataLock::take(&path).unwrap();
        assert!(DataLock::is_held(&path));
        let refused = DataLock::take(&path).unwrap_err();
        match refused.downcast_ref::<Problem>() {
            Some(Problem::Locked { pid, .. }) => assert_eq!(*pid, Some(std::process::id())),
            other => panic!("{other:?}"),
        }
        drop(first);
        DataLock::take(&path).unwrap();
    }

    #[test]
    fn the_folder_is_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("a/b");
        std::fs::create_dir_all(&path).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        let _lock = DataLock::take(&path).unwrap();
        let mode = |path: &Utf8Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o700);
        assert_eq!(mode(&path.join("lock")), 0o600);
    }
}
