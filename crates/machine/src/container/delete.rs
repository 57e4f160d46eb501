//! Ending a machine, with proof that nothing of it is left.

use super::files::MachineDir;
use super::record::MachineRecord;
use super::{ContainerNodes, disk, network};
use crate::agent;
use camino::{Utf8Path, Utf8PathBuf};
use neap_core::ids::{InstallationId, MachineUid};
use neap_operator::traits::Cause;
use neap_process::cgroup::Cgroup;
use rustix::mount::UnmountFlags;
use std::time::Duration;

/// How long the agent may take to end its programs in order.
const GRACE: Duration = Duration::from_millis(2500);
/// How long the kernel may take to let go of the groups of ended processes.
const GROUPS: Duration = Duration::from_secs(5);
/// Pause between two looks at what is to go.
const LOOK: Duration = Duration::from_millis(5);

/// A machine that may not be deleted, or is not gone.
#[derive(Debug, thiserror::Error)]
enum DeleteMachineError {
    #[error("it belongs to installation {found}, this is {own}")]
    Foreign {
        found: InstallationId,
        own: InstallationId,
    },
    #[error("failed to remove {path}")]
    Folder {
        path: Utf8PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("still there: {}", .left.join(", "))]
    Left { left: Vec<String> },
}

impl ContainerNodes {
    /// Ends the machine and removes all that it is.
    pub(super) async fn deleted(&self, machine: &MachineUid) -> Result<(), Cause> {
        let slot = self.slot(machine);
        let mut slot = slot.lock().await;
        if let Some(dir) = self.find(machine)? {
            // Its end is asked for now: nobody needs to hear of it.
            *slot = None;
            self.ended(&dir).await?;
        }
        self.forget(machine);
        Ok(())
    }

    async fn ended(&self, dir: &MachineDir) -> Result<(), Cause> {
        let Some(record) = MachineRecord::read(&dir.record())? else {
            // The record goes last: nothing but the folder can be left.
            return remove_folder(dir).await;
        };
        if record.installation != self.config.installation {
            let own = self.config.installation.clone();
            return Err(DeleteMachineError::Foreign {
                found: record.installation,
                own,
            }
            .into());
        }
        if let Some(process) = self.shims.adopt(&dir.shim())? {
            process.stop(GRACE).await?;
        }
        let link = record.link()?;
        let group = Cgroup::at(&record.cgroup()?);
        group.kill_all().await?;
        network::remove(&link).await?;
        unmount_below(dir.path());
        group.remove(GROUPS).await?;
        let unbounded = agent::remove_unbounded(group.path().as_path());

        let mut left = network::left(&link).await?;
        let mut groups = group.folders();
        groups.extend(unbounded);
        left.extend(
            groups
                .iter()
                .map(|folder| format!("control group {folder}")),
        );
        left.extend(devices_left(dir).await);
        if !left.is_empty() {
            return Err(DeleteMachineError::Left { left }.into());
        }
        remove_folder(dir).await
    }
}

/// The device of a disk goes a moment after its last mount, also one in a
/// namespace that was made from the host's just now.
async fn devices_left(dir: &MachineDir) -> Vec<String> {
    let gone = async {
        while !disk::left(dir).is_empty() {
            tokio::time::sleep(LOOK).await;
        }
    };
    match tokio::time::timeout(GROUPS, gone).await {
        Ok(()) => Vec::new(),
        Err(_) => disk::left(dir),
    }
}

async fn remove_folder(dir: &MachineDir) -> Result<(), Cause> {
    let path = dir.path().to_owned();
    let dir = dir.clone();
    // Images and layers are many files.
    tokio::task::spawn_blocking(move || dir.remove())
        .await?
        .map_err(|source| DeleteMachineError::Folder { path, source }.into())
}

/// The node's mounts end with its mount namespace; its disk is mounted on the
/// host too. What somebody mounted below the folder would be emptied with it,
/// so it is let go first.
fn unmount_below(dir: &Utf8Path) {
    let Ok(mounts) = std::fs::read_to_string("/proc/self/mounts") else {
        return;
    };
    for target in mounts
        .lines()
        .rev()
        .filter_map(|line| line.split(' ').nth(1))
    {
        if Utf8Path::new(target).starts_with(dir) {
            // What cannot be unmounted cannot be removed either, and that is
            // reported.
            let _ = rustix::mount::unmount(target, UnmountFlags::DETACH);
        }
    }
}
