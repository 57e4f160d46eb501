//! Watching a machine's process.

use neap_core::ids::MachineUid;
use neap_process::Supervised;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// A running process whose end is reported, as long as this is kept.
#[derive(Debug)]
pub(crate) struct Watched {
    process: Supervised,
    task: AbortHandle,
}

impl Watched {
    /// Reports the machine once its process has ended.
    pub(crate) fn new(
        process: Supervised,
        machine: MachineUid,
        changed: mpsc::Sender<MachineUid>,
    ) -> Self {
        let watched = process.clone();
        let task = tokio::spawn(async move {
            let exit = watched.ended().await;
            tracing::warn!(%machine, ?exit, "the process of a machine ended unasked");
            // Nobody listens when the program ends.
            let _ = changed.send(machine).await;
        });
        Self {
            process,
            task: task.abort_handle(),
        }
    }

    /// The process.
    pub(crate) fn process(&self) -> &Supervised {
        &self.process
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // What has ended unasked is still to be reported.
        if self.process.is_running() {
            self.task.abort();
        }
    }
}
