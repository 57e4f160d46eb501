//! Lines of a log that is turned while it is read.

use camino::{Utf8Path, Utf8PathBuf};
use neap_process::older;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;

/// What is read at once from the end backwards.
const CHUNK: u64 = 64 * 1024;

/// Reads a log from its older file into the newer one and on, whatever is put
/// aside meanwhile.
#[derive(Debug)]
pub(super) struct LogReader {
    path: Utf8PathBuf,
    /// In the order in which they were written; the last one is not left
    /// before there is another.
    files: VecDeque<BufReader<File>>,
    /// A line whose end is not written yet.
    line: Vec<u8>,
}

impl LogReader {
    /// Stands before the last `tail` lines, or at the begin of all that is
    /// kept. A log that is not there yet is empty.
    pub(super) fn open(path: &Utf8Path, tail: Option<usize>) -> io::Result<Self> {
        let mut files = loop {
            let newer = open(path)?;
            let before = open_before(path)?;
            match (before, newer) {
                // It was turned just now.
                (Some(before), Some(newer)) if same(&before, &newer)? => {}
                (before, newer) => break before.into_iter().chain(newer).collect::<Vec<_>>(),
            }
        };
        if let Some(tail) = tail {
            let mut missing = tail;
            for file in files.iter_mut().rev() {
                missing = seek_tail(file, missing)?;
            }
        }
        Ok(Self {
            path: path.to_owned(),
            files: files.into_iter().map(BufReader::new).collect(),
            line: Vec::new(),
        })
    }

    /// The next whole line with its end; `None` when no more is written yet.
    pub(super) fn next_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(file) = self.files.front_mut() {
                file.read_until(b'\n', &mut self.line)?;
                if self.line.ends_with(b"\n") {
                    return Ok(Some(std::mem::take(&mut self.line)));
                }
            }
            if self.files.len() > 1 {
                self.files.pop_front();
                continue;
            }
            let Some(file) = open(&self.path)? else {
                return Ok(None);
            };
            if let Some(last) = self.files.front()
                && same(last.get_ref(), &file)?
            {
                return Ok(None);
            }
            // The last one is read once more: it may have got more lines
            // before it was put aside.
            self.files.push_back(BufReader::new(file));
        }
    }

    /// A last line without an end.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.line)
    }

    /// Whether it was removed, folder and all, and nothing will come any more.
    pub(super) fn is_gone(&self) -> bool {
        self.path.parent().is_none_or(|folder| !folder.exists())
    }
}

fn open(path: &Utf8Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The file before: `.1`, or, where an API server turns a log, one with a time
/// at the end of its name, of which there is one but for a moment.
fn open_before(path: &Utf8Path) -> io::Result<Option<File>> {
    if let Some(file) = open(&older(path))? {
        return Ok(Some(file));
    }
    let (Some(folder), Some(stem)) = (path.parent(), path.file_stem()) else {
        return Ok(None);
    };
    let Ok(entries) = folder.read_dir_utf8() else {
        return Ok(None);
    };
    let begin = format!("{stem}-");
    let dated = |name: &str| name.starts_with(&begin) && name.ends_with(".log");
    let last = entries
        .filter_map(|entry| Some(entry.ok()?.into_path()))
        .filter(|path| path.file_name().is_some_and(dated))
        .max();
    last.map_or(Ok(None), |path| open(&path))
}

fn same(one: &File, other: &File) -> io::Result<bool> {
    let (one, other) = (one.metadata()?, other.metadata()?);
    Ok((one.dev(), one.ino()) == (other.dev(), other.ino()))
}

/// Goes to the last `lines` lines of a file; says how many it has too few.
fn seek_tail(file: &mut File, lines: usize) -> io::Result<usize> {
    let length = file.seek(SeekFrom::End(0))?;
    if lines == 0 || length == 0 {
        return Ok(lines);
    }
    let (mut at, mut found) = (length, 0);
    let mut chunk = Vec::new();
    while at > 0 {
        let size = at.min(CHUNK);
        at -= size;
        file.seek(SeekFrom::Start(at))?;
        chunk.clear();
        file.take(size).read_to_end(&mut chunk)?;
        let mut place = at + size;
        for byte in chunk.iter().rev() {
            place -= 1;
            // The end of the last line begins no other.
            if *byte != b'\n' || place + 1 == length {
                continue;
            }
            found += 1;
            if found == lines {
                file.seek(SeekFrom::Start(place + 1))?;
                return Ok(0);
            }
        }
    }
    file.seek(SeekFrom::Start(0))?;
    Ok(lines - found - 1)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use neap_process::LogFile;

    fn all(reader: &mut LogReader) -> String {
        let mut text = Vec::new();
        while let Some(line) = reader.next_line().unwrap() {
            text.extend(line);
        }
        String::from_utf8(text).unwrap()
    }

    fn tail(path: &Utf8Path, lines: usize) -> String {
        let mut reader = LogReader::open(path, Some(lines)).unwrap();
        let whole = all(&mut reader);
        whole + &String::from_utf8(reader.rest()).unwrap()
    }

    #[test]
    fn the_last_lines_are_those_of_both_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("log");
        assert_eq!(tail(&path, 3), "");
        std::fs::write(older(&path), "a\nb\nc\n").unwrap();
        assert_eq!(tail(&path, 2), "b\nc\n");
        std::fs::write(&path, "d\n\ne\nf").unwrap();
        for (lines, text) in [
            (0, ""),
            (1, "f"),
            (2, "e\nf"),
            (4, "d\n\ne\nf"),
            (5, "c\nd\n\ne\nf"),
            (9, "a\nb\nc\nd\n\ne\nf"),
        ] {
            assert_eq!(tail(&path, lines), text, "{lines}");
        }
    }

    #[test]
    fn a_file_that_an_api_server_put_aside_is_read_too() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        let before = folder.join("audit-2026-01-01T00-00-00.000.log");
        std::fs::write(before, "a\nb\n").unwrap();
        std::fs::write(folder.join("audit.log"), "c\n").unwrap();
        assert_eq!(tail(&folder.join("audit.log"), 2), "b\nc\n");
    }

    #[test]
    fn lines_are_counted_across_chunks() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("log");
        let lines: Vec<String> = (0..20_000).map(|n| format!("line {n}\n")).collect();
        std::fs::write(&path, lines.concat()).unwrap();
        for count in [1, 5_461, 5_462, 12_000, 20_000, 30_000] {
            let begin = lines.len().saturating_sub(count);
            assert_eq!(tail(&path, count), lines[begin..].concat(), "{count}");
        }
    }

    #[test]
    fn a_log_is_followed_beyond_its_turn() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("log");
        let mut reader = LogReader::open(&path, None).unwrap();
        assert_eq!(all(&mut reader), "");
        let mut log = LogFile::open(&path, 8).unwrap();
        log.append(b"one\nt").unwrap();
        assert_eq!(all(&mut reader), "one\n");
        log.append(b"wo\n").unwrap();
        assert_eq!(all(&mut reader), "two\n");
        // What came just before the turn is not lost.
        log.append(b"3\n").unwrap();
        log.append(b"four\n").unwrap();
        assert_eq!(all(&mut reader), "3\nfour\n");
        assert!(!reader.is_gone());
        folder.close().unwrap();
        assert_eq!(all(&mut reader), "");
        assert!(reader.is_gone());
    }
}
