//! Files that only their owner may read, replaced whole or not at all.

use camino::{Utf8Path, Utf8PathBuf};
use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};

/// A file cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("failed to write {path}")]
pub struct WriteFileError {
    /// The file or folder.
    pub path: Utf8PathBuf,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// Makes a folder and those above it, for their owner alone.
pub(crate) fn make_folder(path: &Utf8Path) -> Result<(), WriteFileError> {
    let failed = |source| WriteFileError {
        path: path.to_owned(),
        source,
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(failed)
}

/// Writes a file beside itself and puts it in place.
pub(crate) fn write_private(path: &Utf8Path, bytes: &[u8]) -> Result<(), WriteFileError> {
    let failed = |source| WriteFileError {
        path: path.to_owned(),
        source,
    };
    let draft = Utf8PathBuf::from(format!("{path}.new"));
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&draft)
        .map_err(failed)?;
    // A leftover draft may have had another mode.
    file.set_permissions(Permissions::from_mode(0o600))
        .map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    drop(file);
    std::fs::rename(&draft, path).map_err(failed)
}

/// The last line that a log holds, shortened, for people.
pub(crate) fn last_line(path: &Utf8Path) -> Option<String> {
    const TAIL: u64 = 4096;
    const SHOWN: usize = 300;
    let mut file = std::fs::File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(io::SeekFrom::Start(length.saturating_sub(TAIL)))
        .ok()?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    Some(line.chars().take(SHOWN).collect())
}

/// Removes a file or a folder with all that it holds; absent is removed.
pub(crate) fn remove(path: &Utf8Path) -> Result<(), WriteFileError> {
    let removed = if path.is_dir() {
        std::fs::remove_dir_all(path)
    } else {
        std::fs::remove_file(path)
    };
    match removed {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(WriteFileError {
            path: path.to_owned(),
            source,
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn a_file_is_its_owners_alone_also_over_a_leftover_draft() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("key");
        std::fs::write(format!("{path}.new"), "a leftover that is longer").unwrap();
        std::fs::set_permissions(format!("{path}.new"), Permissions::from_mode(0o644)).unwrap();
        write_private(&path, b"secret").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"secret");
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }

    #[test]
    fn the_last_line_is_the_last_that_says_something() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("log");
        assert_eq!(last_line(&path), None);
        std::fs::write(&path, format!("{}\nstore broke\n\n", "x".repeat(9000))).unwrap();
        assert_eq!(last_line(&path).unwrap(), "store broke");
    }
}
