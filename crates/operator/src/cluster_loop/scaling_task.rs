//! The scaling loop of a Cluster, as the cluster loop supervises it.

use super::{ClusterLoop, TurnClusterError};
use crate::scaling::{self, RunScalingError};
use crate::traits::TenantIdentity;
use jiff::Timestamp;
use neap_core::supervision::{failures_after_end, pending_retry, retry_at};
use neap_kube::EventKind;
use std::sync::Arc;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

/// How a scaling loop ended: by itself with an error, or by a panic.
pub(super) type ScalingEnd = Result<Result<(), RunScalingError>, JoinError>;

/// At most one scaling loop. Dropping it ends the loop.
#[derive(Default)]
pub(super) struct ScalingTask {
    task: JoinSet<Result<(), RunScalingError>>,
    ending: CancellationToken,
    started: Option<Timestamp>,
    failures: u32,
    retry_at: Option<Timestamp>,
}

impl ScalingTask {
    /// The end of the loop; never while there is none.
    pub(super) async fn ended(&mut self) -> ScalingEnd {
        match self.task.join_next().await {
            Some(end) => end,
            None => std::future::pending().await,
        }
    }

    /// Ends the loop and waits until what it had begun is over.
    pub(super) async fn stop(&mut self) {
        self.ending.cancel();
        while self.task.join_next().await.is_some() {}
    }
}

impl ClusterLoop {
    /// Starts the scaling loop unless it runs or has just failed.
    pub(super) async fn start_scaling(&mut self) -> Result<(), TurnClusterError> {
        let now = self.context.clock.now();
        if !self.scaling.task.is_empty() || pending_retry(self.scaling.retry_at, now).is_some() {
            return Ok(());
        }
        let client = self
            .context
            .control_planes
            .client(&self.id.uid, TenantIdentity::Operator)
            .await?;
        self.scaling.started = Some(now);
        self.scaling.ending = self.ending.child_token();
        let run = scaling::run(
            Arc::clone(&self.context),
            self.id.clone(),
            self.view.clone(),
            client,
            self.scaling.ending.clone(),
        );
        self.scaling.task.spawn(run);
        Ok(())
    }

    /// A loop that ended by itself is started again, later each time.
    pub(super) async fn observe_scaling_end(&mut self, end: ScalingEnd) {
        let how = match end {
            Ok(Ok(())) => return,
            Ok(Err(error)) => neap_kube::describe(&error),
            Err(error) => error.to_string(),
        };
        // Somebody in the tenant may have taken its rights away.
        self.bootstrapped = false;
        let (scaling, now) = (&mut self.scaling, self.context.clock.now());
        let started = scaling.started.unwrap_or(now);
        scaling.failures = failures_after_end(scaling.failures, started, now);
        scaling.retry_at = Some(retry_at(scaling.failures, now));
        tracing::error!(cluster = %self.id, error = how, "scaling loop ended");
        let note = format!("The scaling loop ended and is started again: {how}");
        self.publish(EventKind::Warning, "ScalingLoopEnded", "Scale", note)
            .await;
    }
}
