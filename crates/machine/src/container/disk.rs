//! The disk of a machine: a file of the class's size with a file system of
//! its own, mounted where the data of the machine is. The file takes what is
//! written to it and no more, and gives back what is removed.

use super::files::MachineDir;
use super::loop_device::{self, AttachFileError, CONTROL};
use crate::node_config::NodeSoftware;
use camino::{Utf8Path, Utf8PathBuf};
use rustix::mount::MountFlags;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::process::{Command, Stdio};

/// The program that makes the file system, in the root of a node.
const MAKER: &str = "usr/sbin/mke2fs";

/// A disk could not be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum MakeDiskError {
    #[error("failed to make {path}")]
    File {
        path: Utf8PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("failed to make a file system on {path}: {said}")]
    FileSystem { path: Utf8PathBuf, said: String },
    #[error(transparent)]
    Attach(#[from] AttachFileError),
    #[error("failed to mount {device} on {path}")]
    Mount {
        device: Utf8PathBuf,
        path: Utf8PathBuf,
        #[source]
        source: io::Error,
    },
}

/// Why machines of this software can have no disk of their own on this host:
/// theirs is then that of the data folder, and nothing bounds what they write.
pub(super) fn obstacle(software: &NodeSoftware) -> Option<String> {
    if !Utf8Path::new(CONTROL).exists() {
        return Some(format!(
            "this host has no {CONTROL}: load the kernel module loop"
        ));
    }
    let maker = software.root.join(MAKER);
    (!maker.exists())
        .then(|| format!("the distro has no {MAKER}: build it anew with `cargo xtask distro`"))
}

/// Makes the disk and mounts it, unless that was done before.
pub(super) fn ensure(
    dir: &MachineDir,
    bytes: u64,
    software: &NodeSoftware,
) -> Result<(), MakeDiskError> {
    let place = dir.data();
    let failed = |path: &Utf8Path| {
        let path = path.to_owned();
        |source| MakeDiskError::File { path, source }
    };
    fs::create_dir_all(&place).map_err(failed(&place))?;
    if is_mounted(&place).map_err(failed(&place))? {
        return Ok(());
    }
    let disk = dir.disk();
    if !disk.exists() {
        let unfinished = Utf8PathBuf::from(format!("{disk}.unfinished"));
        make(&unfinished, bytes, software)?;
        fs::rename(&unfinished, &disk).map_err(failed(&disk))?;
    }
    // Mounted, the device stays when it is closed.
    let (_open, device) = loop_device::attach(&disk)?;
    rustix::mount::mount(
        device.as_str(),
        place.as_std_path(),
        "ext4",
        MountFlags::NOATIME | MountFlags::NODEV,
        c"discard",
    )
    .map_err(|source| MakeDiskError::Mount {
        device,
        path: place,
        source: source.into(),
    })
}

fn is_mounted(place: &Utf8Path) -> io::Result<bool> {
    let parent = place.parent().unwrap_or(place);
    Ok(fs::metadata(place)?.dev() != fs::metadata(parent)?.dev())
}

/// Makes a file with an empty file system. It has no journal: a machine is
/// never started a second time, so nobody mounts it again after a crash.
fn make(path: &Utf8Path, bytes: u64, software: &NodeSoftware) -> Result<(), MakeDiskError> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .and_then(|file| file.set_len(bytes))
        .map_err(|source| MakeDiskError::File {
            path: path.to_owned(),
            source,
        })?;
    let refused = |said: String| MakeDiskError::FileSystem {
        path: path.to_owned(),
        said,
    };
    let output = maker(&software.root)
        .args(["-q", "-F", "-t", "ext4", "-b", "4096", "-m", "0"])
        .args(["-O", "^has_journal,^resize_inode"])
        .args(["-E", "nodiscard,lazy_itable_init=1"])
        .arg(path)
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .map_err(|error| refused(error.to_string()))?;
    if output.status.success() {
        Ok(())
    } else {
        let said = String::from_utf8_lossy(&output.stderr);
        Err(refused(said.trim().replace('\n', "; ")))
    }
}

/// The program of the distro with the libraries of the distro: those of the
/// host may be others, or of another kind.
fn maker(root: &Utf8Path) -> Command {
    let libraries = root.join(format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH));
    let loader = match std::env::consts::ARCH {
        "aarch64" => "ld-linux-aarch64.so.1",
        _ => "ld-linux-x86-64.so.2",
    };
    let mut command = Command::new(libraries.join(loader));
    command
        .args(["--library-path", libraries.as_str()])
        .arg(root.join(MAKER));
    command
}

/// What is there of it besides the file.
pub(super) fn left(dir: &MachineDir) -> Vec<String> {
    let devices = loop_device::of_file(&dir.disk()).into_iter();
    devices.map(|name| format!("loop device {name}")).collect()
}
