//! Signals as something to read.

use crate::Signal;
use rustix::fd::{FromRawFd, OwnedFd};
use rustix::io::Errno;
use std::io;
use std::mem::MaybeUninit;

/// What is passed on to the child.
const PASSED: [(libc::c_int, Signal); 6] = [
    (libc::SIGTERM, Signal::TERM),
    (libc::SIGINT, Signal::INT),
    (libc::SIGHUP, Signal::HUP),
    (libc::SIGQUIT, Signal::QUIT),
    (libc::SIGUSR1, Signal::USR1),
    (libc::SIGUSR2, Signal::USR2),
];

/// Size of a `struct signalfd_siginfo`, which begins with the number.
const RECORD: usize = 128;

/// Signals that are held back from this process, to be taken one by one.
#[derive(Debug)]
pub(super) struct Signals(OwnedFd);

impl Signals {
    pub(super) fn block() -> io::Result<Self> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: `sigemptyset` writes the whole set before anything reads it,
        // and `signalfd` returns a descriptor that nothing else owns, or -1.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            let mut set = set.assume_init();
            for (number, _) in PASSED {
                libc::sigaddset(&raw mut set, number);
            }
            if libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error());
            }
            let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
            match libc::signalfd(-1, &raw const set, flags) {
                -1 => Err(io::Error::last_os_error()),
                raw => Ok(Self(OwnedFd::from_raw_fd(raw))),
            }
        }
    }

    pub(super) fn descriptor(&self) -> &OwnedFd {
        &self.0
    }

    /// The next one, if one came.
    pub(super) fn take(&self) -> io::Result<Option<Signal>> {
        let mut record = [0_u8; RECORD];
        match rustix::io::read(&self.0, &mut record) {
            Ok(_) => {}
            Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let number = record
            .first_chunk()
            .map_or(0, |bytes| i32::from_ne_bytes(*bytes));
        Ok(PASSED
            .iter()
            .find(|(passed, _)| *passed == number)
            .map(|(_, signal)| *signal))
    }
}

/// What a program starts with: nothing ignored by a starter of ours, nothing
/// held back by the shim.
pub(super) fn reset() {
    // All zero is the kernel's own action with the default disposition. The C
    // library keeps two signals to itself, which are ignored now and then too.
    let default = [0_u64; 8];
    for number in 1..=64 {
        // SAFETY: The kernel reads no more of the action than there is, and
        // the default disposition runs no code of ours. Signals that cannot be
        // changed are refused, which is well.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                number,
                default.as_ptr(),
                std::ptr::null_mut::<u64>(),
                size_of::<u64>(),
            )
        };
    }
    let mut none = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` writes the whole set before it is read.
    unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut());
    }
}
