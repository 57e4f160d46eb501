//! Ending what is in a group, and the group.

use super::{Cgroup, CgroupPath, is_absent, members, subtree};
use crate::identity::raw_pid;
use camino::{Utf8Path, Utf8PathBuf};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

/// What is killed is gone after milliseconds, unless the kernel hangs.
const KILL_DEADLINE: Duration = Duration::from_secs(10);

/// Version 1 tells nobody when a group becomes empty, so it is asked.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// The processes of a control group could not be ended.
#[derive(Debug, thiserror::Error)]
pub enum KillCgroupError {
    /// A file of the group failed.
    #[error("failed to end the processes of {path}")]
    Access {
        /// The file or folder.
        path: Utf8PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Some live on.
    #[error("processes {pids:?} of control group {cgroup} are still there after they were killed")]
    Remain {
        /// The group.
        cgroup: CgroupPath,
        /// Their pids.
        pids: Vec<i32>,
    },
}

/// A control group could not be removed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveCgroupError {
    /// A folder failed.
    #[error("failed to remove {path}")]
    Access {
        /// The folder.
        path: Utf8PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Something is left after the deadline.
    #[error("control groups are left: {}", left.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Left {
        /// The folders that are left.
        left: Vec<Utf8PathBuf>,
    },
}

impl Cgroup {
    /// Kills every process in it and below, and waits until all are gone.
    pub async fn kill_all(&self) -> Result<(), KillCgroupError> {
        let mut left = BTreeSet::new();
        let mut pause = FIRST_PAUSE;
        let killing = async {
            loop {
                left = self.kill_once()?;
                if left.is_empty() {
                    return Ok(());
                }
                tokio::time::sleep(pause).await;
                pause = LONGEST_PAUSE.min(pause * 2);
            }
        };
        match tokio::time::timeout(KILL_DEADLINE, killing).await {
            Ok(result) => result,
            Err(_) => Err(KillCgroupError::Remain {
                cgroup: self.path.clone(),
                pids: left.into_iter().collect(),
            }),
        }
    }

    /// Removes it and all below, waiting up to `deadline` for processes that
    /// are about to be gone. Absent is removed.
    pub async fn remove(&self, deadline: Duration) -> Result<(), RemoveCgroupError> {
        let mut left = Vec::new();
        let mut pause = FIRST_PAUSE;
        let removing = async {
            loop {
                left = self.remove_once()?;
                if left.is_empty() {
                    return Ok(());
                }
                tokio::time::sleep(pause).await;
                pause = LONGEST_PAUSE.min(pause * 2);
            }
        };
        match tokio::time::timeout(deadline, removing).await {
            Ok(result) => result,
            Err(_) => Err(RemoveCgroupError::Left { left }),
        }
    }

    /// Returns those that were still there.
    fn kill_once(&self) -> Result<BTreeSet<i32>, KillCgroupError> {
        let mut found = BTreeSet::new();
        for folder in self.folders() {
            let failed = |path: &Utf8Path| {
                let path = path.to_owned();
                move |source| KillCgroupError::Access { path, source }
            };
            for folder in subtree(&folder).map_err(failed(&folder))? {
                // What is frozen does not even die.
                for (name, text) in [("freezer.state", "THAWED"), ("cgroup.freeze", "0")] {
                    write_if_there(&folder.join(name), text).map_err(failed(&folder))?;
                }
                let pids = members(&folder).map_err(failed(&folder))?;
                if pids.is_empty() {
                    continue;
                }
                // Version 2 ends a subtree at once, forks included.
                write_if_there(&folder.join("cgroup.kill"), "1").map_err(failed(&folder))?;
                for pid in &pids {
                    kill_member(&folder, *pid).map_err(failed(&folder))?;
                }
                found.extend(pids);
            }
        }
        Ok(found)
    }

    /// Returns the folders that are still in use.
    fn remove_once(&self) -> Result<Vec<Utf8PathBuf>, RemoveCgroupError> {
        let mut left = Vec::new();
        for folder in self.folders() {
            let failed =
                |path: Utf8PathBuf| move |source| RemoveCgroupError::Access { path, source };
            for folder in subtree(&folder).map_err(failed(folder))? {
                match std::fs::remove_dir(&folder) {
                    Ok(()) => {}
                    Err(error) if is_absent(&error) => {}
                    Err(error) if error.kind() == io::ErrorKind::ResourceBusy => left.push(folder),
                    Err(error) => return Err(failed(folder)(error)),
                }
            }
        }
        Ok(left)
    }
}

/// Kills a process that is proven to be a member: a pid that was used again
/// between list and signal is listed no more, or belongs to a member as well.
fn kill_member(folder: &Utf8Path, pid: i32) -> io::Result<()> {
    // Zero stands for processes that this one cannot see.
    let Some(raw) = raw_pid(pid) else {
        return Ok(());
    };
    let descriptor = match pidfd_open(raw, PidfdFlags::empty()) {
        Ok(descriptor) => descriptor,
        Err(Errno::SRCH | Errno::INVAL) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    if !members(folder)?.contains(&pid) {
        return Ok(());
    }
    match pidfd_send_signal(descriptor, Signal::KILL) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn write_if_there(path: &Utf8Path, text: &str) -> io::Result<()> {
    use std::io::Write;
    match std::fs::OpenOptions::new().write(true).open(path) {
        Ok(mut file) => match file.write_all(text.as_bytes()) {
            Err(error) if !is_absent(&error) => Err(error),
            _ => Ok(()),
        },
        Err(error) if is_absent(&error) => Ok(()),
        Err(error) => Err(error),
    }
}
