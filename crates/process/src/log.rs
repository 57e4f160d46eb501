//! Log files of bounded size.

use camino::{Utf8Path, Utf8PathBuf};
use neap_core::logs::{LogFill, bytes_that_fit};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;

/// A log that one process writes: a file, and beside it the one before, whose
/// name ends in `.1`. Readable by root alone.
#[derive(Debug)]
pub struct LogFile {
    path: Utf8PathBuf,
    limit: u64,
    file: File,
    fill: LogFill,
}

impl LogFile {
    /// Opens a log of at most `limit` bytes a file, to go on at its end. One
    /// that is full already is put aside.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, or there is no folder for it.
    pub fn open(path: &Utf8Path, limit: u64) -> io::Result<Self> {
        let file = open(path)?;
        let bytes = file.metadata()?.len();
        let mut log = Self {
            path: path.to_owned(),
            limit,
            file,
            fill: LogFill {
                bytes,
                within_line: false,
            },
        };
        if bytes >= limit {
            log.turn()?;
        }
        Ok(log)
    }

    /// Appends output as it came.
    ///
    /// # Errors
    ///
    /// It cannot be written, say because the disk is full: it is lost then,
    /// and the next may be written again.
    pub fn append(&mut self, mut output: &[u8]) -> io::Result<()> {
        while !output.is_empty() {
            let (now, later) = output.split_at(bytes_that_fit(self.limit, self.fill, output));
            let written = self.file.write_all(now);
            self.fill = LogFill {
                bytes: self.file.metadata()?.len(),
                within_line: now
                    .last()
                    .map_or(self.fill.within_line, |byte| *byte != b'\n'),
            };
            written?;
            if !later.is_empty() {
                self.turn()?;
            }
            output = later;
        }
        Ok(())
    }

    /// The file alone, for who writes only a few lines.
    pub(crate) fn into_file(self) -> File {
        self.file
    }

    /// Where the older file cannot be replaced, its bound comes first: what the
    /// file holds is dropped.
    fn turn(&mut self) -> io::Result<()> {
        match std::fs::rename(&self.path, older(&self.path)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => self.file.set_len(0)?,
            _ => self.file = open(&self.path)?,
        }
        self.fill = LogFill::default();
        Ok(())
    }
}

/// The file that a log was before it was turned.
pub fn older(log: &Utf8Path) -> Utf8PathBuf {
    Utf8PathBuf::from(format!("{log}.1"))
}

fn open(path: &Utf8Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn read(path: &Utf8Path) -> String {
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn a_full_log_is_put_aside_and_the_oldest_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("log");
        let mut log = LogFile::open(&path, 8).unwrap();
        log.append(b"one\ntwo\nthree\n").unwrap();
        assert_eq!(read(&older(&path)), "one\ntwo\n");
        assert_eq!(read(&path), "three\n");
        log.append(b"four\n").unwrap();
        assert_eq!(read(&older(&path)), "three\n");
        assert_eq!(read(&path), "four\n");
        // One who comes later goes on where the last one ended.
        let mut log = LogFile::open(&path, 8).unwrap();
        log.append(b"5\n").unwrap();
        log.append(b"six\n").unwrap();
        assert_eq!(read(&older(&path)), "four\n5\n");
        assert_eq!(read(&path), "six\n");
    }

    #[test]
    fn a_log_that_is_too_large_already_is_put_aside_when_it_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("log");
        std::fs::write(&path, "of an earlier neap\n").unwrap();
        LogFile::open(&path, 8).unwrap();
        assert_eq!(read(&older(&path)), "of an earlier neap\n");
        assert_eq!(read(&path), "");
    }

    #[test]
    fn a_log_that_cannot_be_put_aside_keeps_its_bound() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("log");
        std::fs::create_dir(older(&path)).unwrap();
        let mut log = LogFile::open(&path, 8).unwrap();
        log.append(b"one\ntwo\nthree\n").unwrap();
        assert_eq!(read(&path), "three\n");
    }
}
