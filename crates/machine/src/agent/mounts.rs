//! Mounting, with errors that say what was mounted where.

use camino::{Utf8Path, Utf8PathBuf};
use rustix::mount::{MountFlags, MountPropagationFlags};
use std::ffi::CString;
use std::io;

/// A step of building the node's root that failed.
#[derive(Debug, thiserror::Error)]
#[error("failed to {operation} {path} of the node's root")]
pub(crate) struct BuildRootError {
    operation: &'static str,
    path: Utf8PathBuf,
    #[source]
    source: io::Error,
}

/// Names the step and the path that an error of the kernel belongs to.
pub(crate) trait At<T> {
    /// Adds what was done to what.
    fn at(self, operation: &'static str, path: &Utf8Path) -> Result<T, BuildRootError>;
}

impl<T, E: Into<io::Error>> At<T> for Result<T, E> {
    fn at(self, operation: &'static str, path: &Utf8Path) -> Result<T, BuildRootError> {
        self.map_err(|source| BuildRootError {
            operation,
            path: path.to_owned(),
            source: source.into(),
        })
    }
}

/// Flags of file systems that hold no programs and no devices.
pub(crate) const DATA_ONLY: MountFlags = MountFlags::NOSUID
    .union(MountFlags::NODEV)
    .union(MountFlags::NOEXEC);

/// Makes the folder and those above it.
pub(crate) fn make_dir(path: &Utf8Path) -> Result<(), BuildRootError> {
    std::fs::create_dir_all(path).at("make the folder", path)
}

/// Mounts a file system of the kernel.
pub(crate) fn mount_kernel(
    kind: &'static str,
    target: &Utf8Path,
    flags: MountFlags,
    options: &str,
) -> Result<(), BuildRootError> {
    make_dir(target)?;
    let data = CString::new(options)
        .map_err(io::Error::from)
        .at("mount", target)?;
    rustix::mount::mount(kind, target.as_std_path(), kind, flags, data.as_c_str())
        .at("mount", target)
}

/// Shows a folder by way of a file system that has nowhere to write to: an
/// overlay without an upper layer cannot be made writable by any mount flag,
/// and neither can what is bound from it. What the folder's files have in the
/// page cache is shared.
pub(crate) fn mount_unchangeable(
    source: &Utf8Path,
    empty: &Utf8Path,
    target: &Utf8Path,
) -> Result<(), BuildRootError> {
    make_dir(target)?;
    make_dir(empty)?;
    let layers = format!("lowerdir={}:{}", escaped(source), escaped(empty));
    let data = CString::new(layers)
        .map_err(io::Error::from)
        .at("mount", target)?;
    rustix::mount::mount(
        "neap",
        target.as_std_path(),
        "overlay",
        MountFlags::RDONLY | MountFlags::NODEV,
        data.as_c_str(),
    )
    .at("mount", target)
}

/// A path as one of the layers of an overlay.
fn escaped(path: &Utf8Path) -> String {
    let mut escaped = String::new();
    for character in path.as_str().chars() {
        if matches!(character, '\\' | ':' | ',') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// Shows the folder or file of the host at the target.
pub(crate) fn bind(source: &Utf8Path, target: &Utf8Path) -> Result<(), BuildRootError> {
    let is_dir = std::fs::metadata(source)
        .at("find what belongs at", target)?
        .is_dir();
    if is_dir {
        make_dir(target)?;
    } else if !target.exists() {
        std::fs::write(target, b"").at("make the file", target)?;
    }
    rustix::mount::mount_bind(source.as_std_path(), target.as_std_path()).at("bind", target)
}

/// As [`bind`], read-only.
pub(crate) fn bind_read_only(source: &Utf8Path, target: &Utf8Path) -> Result<(), BuildRootError> {
    bind(source, target)?;
    remount(target, MountFlags::RDONLY)
}

/// Sets the flags of this mount alone.
pub(crate) fn remount(target: &Utf8Path, flags: MountFlags) -> Result<(), BuildRootError> {
    rustix::mount::mount_remount(target.as_std_path(), MountFlags::BIND | flags, "")
        .at("set the flags of", target)
}

/// Changes how mounts below the target spread.
pub(crate) fn spread(target: &Utf8Path, how: MountPropagationFlags) -> Result<(), BuildRootError> {
    rustix::mount::mount_change(target.as_std_path(), how | MountPropagationFlags::REC)
        .at("change the propagation of", target)
}
