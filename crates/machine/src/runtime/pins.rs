//! Binds that keep what was looked at in place, until runc has mounted it.

use super::RunContainerError;
use camino::{Utf8Path, Utf8PathBuf};
use rustix::fd::{AsRawFd as _, OwnedFd};
use rustix::fs::{FileType, fstat};
use rustix::mount::{UnmountFlags, mount_bind_recursive, unmount};
use std::fs;
use std::io;

/// Where none but the node's own programs write.
pub(super) const PINS: &str = "/run/neap/pins";

/// What is pinned; unpinned when dropped.
#[derive(Debug, Default)]
pub(super) struct Pins(Vec<Utf8PathBuf>);

impl Pins {
    /// Nothing is pinned.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Pins an open file or folder and says where.
    pub(super) fn add(&mut self, file: &OwnedFd) -> Result<&Utf8Path, RunContainerError> {
        let name = format!("{}-{}", std::process::id(), self.0.len());
        let path = Utf8Path::new(PINS).join(name);
        let failed = |source| RunContainerError::Pin {
            path: path.clone(),
            source,
        };
        let kind = FileType::from_raw_mode(fstat(file).map_err(|e| failed(e.into()))?.st_mode);
        make(&path, kind).map_err(failed)?;
        let source = format!("/proc/self/fd/{}", file.as_raw_fd());
        let bound = mount_bind_recursive(source, path.as_std_path());
        self.0.push(path.clone());
        bound.map_err(|error| failed(error.into()))?;
        Ok(self.0.last().map_or(Utf8Path::new(""), |path| path))
    }
}

fn make(path: &Utf8Path, kind: FileType) -> io::Result<()> {
    fs::create_dir_all(PINS)?;
    if kind == FileType::Directory {
        fs::create_dir(path)
    } else {
        fs::File::create_new(path).map(drop)
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        for path in &self.0 {
            // What is left ends with the node; another one of this name meets
            // it and is refused.
            let _ = unmount(path.as_std_path(), UnmountFlags::DETACH);
            let _ = fs::remove_dir(path).or_else(|_| fs::remove_file(path));
        }
    }
}
