//! Stopping a control plane; its data stays.

use super::HostedControlPlanes;
use super::delete::{DeleteSiteError, end, has_machines};
use neap_core::ids::ClusterUid;
use neap_operator::traits::Cause;
use std::time::Duration;
use tracing::info;

/// How long it may take to end in order, its store last.
const GRACE: Duration = Duration::from_secs(10);

impl HostedControlPlanes {
    /// Ends its process. Its network and its groups go too, unless there are
    /// machines, which use them.
    pub(super) async fn stop_site(&self, uid: &ClusterUid) -> Result<(), Cause> {
        let entry = self.entry(uid)?;
        let mut state = entry.state.lock().await;
        let site = &entry.site;
        // Proves that it is ours, where there is one.
        self.read_record(site)?;
        let process = self
            .find_running(&entry, &mut state)
            .map_err(DeleteSiteError::from)?;
        state.running = None;
        if let Some(process) = process {
            let exit = process.stop(GRACE).await.map_err(DeleteSiteError::from)?;
            info!(cluster = %uid, ?exit, "stopped a control plane");
        }
        if !has_machines(site)? {
            end(site).await?;
        }
        Ok(())
    }
}
