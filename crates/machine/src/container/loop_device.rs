//! Files as block devices: the kernel's loop devices.

#![expect(
    unsafe_code,
    reason = "loop devices are configured by ioctls that no safe wrapper has"
)]

use camino::{Utf8Path, Utf8PathBuf};
use rustix::io::Errno;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl};
use std::ffi::c_void;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;

/// Where free devices are asked for.
pub(super) const CONTROL: &str = "/dev/loop-control";

const CTL_GET_FREE: Opcode = 0x4C82;
const CONFIGURE: Opcode = 0x4C0A;

/// The device is free again once nobody has it open or mounted.
const AUTOCLEAR: u32 = 4;
/// What the file system on it keeps in memory is not kept a second time.
const DIRECT_IO: u32 = 16;

/// Size of what is read and written at once.
const BLOCK: u32 = 4096;
/// Another process may take the device that was free a moment ago.
const TRIES: u32 = 16;

/// `struct loop_info64` of the kernel.
#[repr(C)]
struct LoopInfo {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// `struct loop_config` of the kernel.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

struct GetFree;

// SAFETY: the call takes no argument and returns the number of a device.
unsafe impl Ioctl for GetFree {
    type Output = i32;

    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        CTL_GET_FREE
    }

    fn as_ptr(&mut self) -> *mut c_void {
        std::ptr::null_mut()
    }

    unsafe fn output_from_ptr(number: IoctlOutput, _: *mut c_void) -> rustix::io::Result<i32> {
        Ok(number)
    }
}

struct Configure(LoopConfig);

// SAFETY: the call reads one `struct loop_config`, of which this is one.
unsafe impl Ioctl for Configure {
    type Output = ();

    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        CONFIGURE
    }

    fn as_ptr(&mut self) -> *mut c_void {
        std::ptr::from_mut(&mut self.0).cast()
    }

    unsafe fn output_from_ptr(_: IoctlOutput, _: *mut c_void) -> rustix::io::Result<()> {
        Ok(())
    }
}

/// A file could not be made a device.
#[derive(Debug, thiserror::Error)]
pub(super) enum AttachFileError {
    /// Something is not there or may not be opened.
    #[error("failed to open {path}")]
    Open {
        /// What.
        path: Utf8PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The kernel gives no device.
    #[error("failed to get a free loop device from {CONTROL}")]
    NoneFree(#[source] io::Error),
    /// The kernel does not take the file.
    #[error("failed to make {file} the loop device {device}")]
    Configure {
        /// The file.
        file: Utf8PathBuf,
        /// The device.
        device: Utf8PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

fn open(path: &Utf8Path) -> Result<File, AttachFileError> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .map_err(|source| AttachFileError::Open {
            path: path.to_owned(),
            source,
        })
}

/// Makes the file a device, which it is as long as the device is open or
/// mounted.
pub(super) fn attach(file: &Utf8Path) -> Result<(File, Utf8PathBuf), AttachFileError> {
    let control = open(Utf8Path::new(CONTROL))?;
    let backing = open(file)?;
    let mut tries = TRIES;
    loop {
        // SAFETY: as of `GetFree`; the descriptor is that of the control device.
        let number = unsafe { ioctl(&control, GetFree) }
            .map_err(|error| AttachFileError::NoneFree(error.into()))?;
        let path = Utf8PathBuf::from(format!("/dev/loop{number}"));
        let device = open(&path)?;
        let mut config = LoopConfig {
            fd: backing.as_raw_fd().unsigned_abs(),
            block_size: BLOCK,
            info: LoopInfo {
                device: 0,
                inode: 0,
                rdevice: 0,
                offset: 0,
                size_limit: 0,
                number: 0,
                encrypt_type: 0,
                encrypt_key_size: 0,
                flags: AUTOCLEAR | DIRECT_IO,
                file_name: [0; 64],
                crypt_name: [0; 64],
                encrypt_key: [0; 32],
                init: [0; 2],
            },
            reserved: [0; 8],
        };
        // What lists the devices shows this name, of which it takes 63 bytes.
        let name = file.as_str().as_bytes();
        for (to, from) in config.info.file_name.iter_mut().take(63).zip(name) {
            *to = *from;
        }
        // SAFETY: as of `Configure`; the descriptor is that of a loop device.
        match unsafe { ioctl(&device, Configure(config)) } {
            Ok(()) => return Ok((device, path)),
            Err(Errno::BUSY) if tries > 0 => tries -= 1,
            Err(error) => {
                return Err(AttachFileError::Configure {
                    file: file.to_owned(),
                    device: path,
                    source: error.into(),
                });
            }
        }
    }
}

/// The devices that this file is.
pub(super) fn of_file(file: &Utf8Path) -> Vec<String> {
    let Ok(entries) = Utf8Path::new("/sys/block").read_dir_utf8() else {
        return Vec::new();
    };
    entries
        .filter_map(Result::ok)
        .filter(|entry| {
            let backing = entry.path().join("loop/backing_file");
            std::fs::read_to_string(backing)
                .is_ok_and(|text| text.trim_end_matches('\n') == file.as_str())
        })
        .map(|entry| entry.file_name().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn the_kernels_structures_have_their_sizes() {
        assert_eq!(size_of::<LoopInfo>(), 232);
        assert_eq!(size_of::<LoopConfig>(), 304);
    }

    #[test]
    fn a_device_is_free_again_once_it_is_closed() {
        // Devices belong to root, and not every host has them.
        if !rustix::process::geteuid().is_root() || !Utf8Path::new(CONTROL).exists() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(folder.path())
            .unwrap()
            .canonicalize_utf8()
            .unwrap();
        let file = folder.join("disk");
        File::create(&file).unwrap().set_len(1 << 20).unwrap();
        let (device, path) = attach(&file).unwrap();
        assert_eq!(of_file(&file), [path.file_name().unwrap()]);
        assert_eq!(of_file(&folder.join("dis")), Vec::<String>::new());
        drop(device);
        assert_eq!(of_file(&file), Vec::<String>::new());
    }
}
