//! Control groups, of version 1 (every controller its own tree) and 2.

mod end;
mod ensure;
mod hierarchy;
mod path;
mod usage;

pub use end::{KillCgroupError, RemoveCgroupError};
pub use ensure::EnsureCgroupError;
pub use path::{CgroupPath, ParseCgroupPathError};
pub use usage::ObserveCgroupError;

use camino::{Utf8Path, Utf8PathBuf};
use hierarchy::Hierarchy;
use rustix::fd::OwnedFd;
use std::fs::OpenOptions;
use std::io;

/// The most that a group may use; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// CPU, in thousandths.
    pub cpu_milli: Option<u64>,
    /// Memory.
    pub memory_bytes: Option<u64>,
    /// Processes and threads.
    pub pids: Option<u64>,
}

/// A control group and all below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup {
    path: CgroupPath,
}

impl Cgroup {
    /// A handle on a group that may or may not exist.
    pub fn at(path: &CgroupPath) -> Self {
        Self { path: path.clone() }
    }

    /// Its path.
    pub fn path(&self) -> &CgroupPath {
        &self.path
    }

    /// Its folders, one per tree of the host that it exists in: controllers of
    /// version 1, the tree of the service manager, and that of version 2.
    pub fn folders(&self) -> Vec<Utf8PathBuf> {
        let places = Hierarchy::host().roots().into_iter();
        places
            .map(|root| root.join(self.path.as_path()))
            .filter(|path| path.is_dir())
            .collect()
    }

    /// Whether it exists in any tree.
    pub fn exists(&self) -> bool {
        !self.folders().is_empty()
    }

    /// The lists of members, to be written to by who joins: a pid, or zero
    /// for the writer. Fails where the group does not exist in a tree.
    pub(crate) fn open_members(&self) -> io::Result<Vec<OwnedFd>> {
        let open = |root: Utf8PathBuf| {
            let members = root.join(self.path.as_path()).join("cgroup.procs");
            Ok(OpenOptions::new().write(true).open(members)?.into())
        };
        Hierarchy::host().roots().into_iter().map(open).collect()
    }
}

/// A folder and all below it, the deepest first. What vanishes meanwhile is
/// left out.
fn subtree(folder: &Utf8Path) -> io::Result<Vec<Utf8PathBuf>> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        let entries = match folder.read_dir_utf8() {
            Ok(entries) => entries,
            Err(error) if is_absent(&error) => continue,
            Err(error) => return Err(error),
        };
        for entry in entries {
            match entry.and_then(|entry| Ok((entry.file_type()?, entry.into_path()))) {
                Ok((kind, path)) if kind.is_dir() => waiting.push(path),
                Ok(_) => {}
                Err(error) if is_absent(&error) => {}
                Err(error) => return Err(error),
            }
        }
        found.push(folder);
    }
    found.reverse();
    Ok(found)
}

/// Members of one folder. Threaded groups of version 2 list none.
fn members(folder: &Utf8Path) -> io::Result<Vec<i32>> {
    use rustix::io::Errno;
    match std::fs::read_to_string(folder.join("cgroup.procs")) {
        Ok(text) => Ok(text.lines().filter_map(|pid| pid.parse().ok()).collect()),
        Err(error) if is_absent(&error) => Ok(Vec::new()),
        Err(error) if error.raw_os_error() == Some(Errno::OPNOTSUPP.raw_os_error()) => {
            Ok(Vec::new())
        }
        Err(error) => Err(error),
    }
}

/// The folder is gone, or is going while it is looked at.
fn is_absent(error: &io::Error) -> bool {
    use rustix::io::Errno;
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(Errno::NODEV.raw_os_error())
}
