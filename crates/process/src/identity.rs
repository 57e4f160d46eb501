//! Who a process is, beyond its pid.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::{Deserialize, Serialize};
use std::io;

/// Tells a process apart from every other one, also after a reboot and after
/// its pid was used again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    /// `/proc/sys/kernel/random/boot_id` of the boot that it runs in.
    pub boot_id: String,
    /// Its pid as the host sees it.
    pub pid: i32,
    /// When it started, in clock ticks since that boot.
    pub start_ticks: u64,
    /// Its command line when it was recorded.
    pub command_line: Vec<String>,
}

/// The facts of a process could not be read.
#[derive(Debug, thiserror::Error)]
#[error("failed to observe process {pid}")]
pub struct ObserveIdentityError {
    /// Its pid.
    pub pid: i32,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// Which facts are compared, beyond boot, pid and start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// The command line too.
    CommandLine,
    /// None: a program may execute another one and stay the same process.
    Start,
}

impl Identity {
    /// Who bears this pid now.
    pub fn observe(pid: i32) -> Result<Self, ObserveIdentityError> {
        let read = || {
            Ok(Self {
                boot_id: boot_id()?,
                pid,
                start_ticks: start_ticks(pid)?,
                command_line: command_line(pid)?,
            })
        };
        read().map_err(|source| ObserveIdentityError { pid, source })
    }

    /// A descriptor of exactly this process, or `None` when it is gone, be its
    /// pid free or another's.
    pub(crate) fn open(&self, proof: Proof) -> Result<Option<OwnedFd>, ObserveIdentityError> {
        match self.try_open(proof) {
            Ok(found) => Ok(found),
            Err(error) if is_gone(&error) => Ok(None),
            Err(source) => Err(ObserveIdentityError {
                pid: self.pid,
                source,
            }),
        }
    }

    /// Whether exactly this process lives; a dead one that nobody took away
    /// does not.
    pub(crate) fn lives(&self, proof: Proof) -> Result<bool, ObserveIdentityError> {
        Ok(self
            .open(proof)?
            .is_some_and(|descriptor| !has_ended(&descriptor)))
    }

    fn try_open(&self, proof: Proof) -> io::Result<Option<OwnedFd>> {
        let Some(pid) = raw_pid(self.pid) else {
            return Ok(None);
        };
        if boot_id()? != self.boot_id {
            return Ok(None);
        }
        // The descriptor comes first: whoever it is, facts read afterwards can
        // only match the recorded ones if it is the recorded process.
        let descriptor = pidfd_open(pid, PidfdFlags::empty())?;
        let same = start_ticks(self.pid)? == self.start_ticks
            && (proof == Proof::Start || command_line(self.pid)? == self.command_line);
        Ok(same.then_some(descriptor))
    }
}

/// Whether the process of a descriptor has ended.
pub(crate) fn has_ended(descriptor: &OwnedFd) -> bool {
    let mut waiting = [PollFd::new(descriptor, PollFlags::IN)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut waiting, Some(&now)).is_ok_and(|ready| ready > 0)
}

/// A pid that is one: zero and below stand for groups and whole systems.
pub(crate) fn raw_pid(pid: i32) -> Option<Pid> {
    if pid > 0 { Pid::from_raw(pid) } else { None }
}

/// What the kernel says about a pid that nobody has, or that is a thread's.
fn is_gone(error: &io::Error) -> bool {
    use rustix::io::Errno;
    error.kind() == io::ErrorKind::NotFound
        || [Errno::SRCH, Errno::INVAL]
            .iter()
            .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

fn boot_id() -> io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?
        .trim()
        .to_owned())
}

fn start_ticks(pid: i32) -> io::Result<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    stat_field(&stat, 22).ok_or_else(|| io::Error::other(format!("unexpected stat line {stat:?}")))
}

/// A numeric field of `/proc/PID/stat`, numbered as in proc(5). The name, the
/// second field, may hold blanks and parentheses.
pub(crate) fn stat_field(stat: &str, number: usize) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace()
        .nth(number.checked_sub(3)?)?
        .parse()
        .ok()
}

fn command_line(pid: i32) -> io::Result<Vec<String>> {
    let raw = std::fs::read(format!("/proc/{pid}/cmdline"))?;
    Ok(raw
        .strip_suffix(b"\0")
        .unwrap_or(&raw)
        .split(|byte| *byte == 0)
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let stat = "7 (a) S 9 (b)) R 1 7 7 0 -1 4194304 1 0 0 0 11 12 0 0 20 0 1 0 4242 1 2";
        assert_eq!(stat_field(stat, 4), Some(1));
        assert_eq!(stat_field(stat, 14), Some(11));
        assert_eq!(stat_field(stat, 22), Some(4242));
        assert_eq!(stat_field("7", 22), None);
    }

    #[test]
    fn a_process_is_found_only_when_every_fact_holds() {
        let own = Identity::observe(i32::try_from(std::process::id()).unwrap()).unwrap();
        let found = |identity: &Identity, proof| identity.open(proof).unwrap().is_some();
        assert!(found(&own, Proof::CommandLine));

        let later = Identity {
            start_ticks: own.start_ticks + 1,
            ..own.clone()
        };
        assert!(!found(&later, Proof::Start));
        let rebooted = Identity {
            boot_id: "another".into(),
            ..own.clone()
        };
        assert!(!found(&rebooted, Proof::Start));
        let renamed = Identity {
            command_line: vec!["other".into()],
            ..own.clone()
        };
        assert!(!found(&renamed, Proof::CommandLine));
        assert!(found(&renamed, Proof::Start));
        for pid in [0, -1, i32::MAX] {
            assert!(!found(&Identity { pid, ..own.clone() }, Proof::Start));
        }
    }
}
