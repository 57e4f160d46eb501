//! The loop `cluster`: starts, watches and ends the control plane of one
//! Cluster. Each turn observes, asks `neap-core` for the one next step and
//! takes it; the next turn begins at what is true then.

mod deletion;
pub(crate) use deletion::{delete_record, list_machines};
mod probe;
mod scaling_task;
mod status;

use crate::calls::{CallApiError, Calls};
use crate::operator::Context;
use crate::traits::{ControlPlaneError, ControlPlanePlan, ListMachinesError, MachineError};
use crate::view::{ClusterId, HubView, until};
use jiff::Timestamp;
use kube::{Api, Resource, ResourceExt};
use neap_api::Cluster;
use neap_api::cluster::Failures;
use neap_api::names::{FINALIZER_CLUSTER, MANAGER_CLUSTER, reasons};
use neap_core::lifecycle::{
    ApiState, ClusterStep, ObservedCluster, ObservedControlPlane, decide_cluster,
};
use neap_core::reason::Reason;
use neap_core::supervision::{backoff, is_settled, retry_at};
use neap_kube::{EventKind, write};
use probe::Probe;
use scaling_task::ScalingTask;
use status::StatusMemory;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Between two looks at a control plane that is on its way up.
const LOOK_SOON: Duration = Duration::from_millis(25);
/// The same, when it takes longer than it ever should.
const LOOK_SELDOM: Duration = Duration::from_millis(500);
/// After a turn that failed once.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// How long after its start it is looked at often.
const SOON: Duration = Duration::from_secs(15);
/// Between two looks at one of which nothing is begun until its record or this
/// neap is another.
const LOOK_RARELY: Duration = Duration::from_secs(60);
/// Between two looks at the process of one that is Ready.
const LOOK_RUNNING: Duration = Duration::from_secs(1);

/// A turn of the loop that failed; the next one begins anew.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TurnClusterError {
    /// The hub could not be asked or told.
    #[error(transparent)]
    CallHub(#[from] CallApiError),
    /// The control plane could not be acted on.
    #[error(transparent)]
    ActOnControlPlane(#[from] ControlPlaneError),
    /// It is not known which machines there are.
    #[error(transparent)]
    ListMachines(#[from] ListMachinesError),
    /// A machine could not be ended.
    #[error(transparent)]
    ActOnMachine(#[from] MachineError),
}

/// How the loop goes on after a turn.
enum Turn {
    /// Look again after this time, or when the record changes.
    Wait(Duration),
    /// The record holds nothing of ours any more.
    Gone,
}

/// Runs the loop until the Cluster is gone or `ending` is cancelled.
pub(crate) async fn run(
    context: Arc<Context>,
    id: ClusterId,
    view: watch::Receiver<HubView>,
    ending: CancellationToken,
) {
    ClusterLoop::new(context, id, view, ending).run().await;
}

struct ClusterLoop {
    context: Arc<Context>,
    id: ClusterId,
    view: watch::Receiver<HubView>,
    ending: CancellationToken,
    calls: Calls,
    /// As on the record; this loop alone changes it.
    failures: Failures,
    status: StatusMemory,
    probe: Probe,
    scaling: ScalingTask,
    /// `ensure` has succeeded in this life of the loop: started or adopted.
    ensured: bool,
    /// The process was seen to run, so that its end is one to be counted.
    seen_running: bool,
    bootstrapped: bool,
    was_running: bool,
    /// Turns in a row that failed.
    errors: u32,
}

impl ClusterLoop {
    fn new(
        context: Arc<Context>,
        id: ClusterId,
        view: watch::Receiver<HubView>,
        ending: CancellationToken,
    ) -> Self {
        let calls = Calls::new(Arc::clone(&context.clock), ending.clone());
        let recorded = view.borrow().cluster.status.clone().unwrap_or_default();
        Self {
            failures: recorded.control_plane.clone().unwrap_or_default(),
            was_running: status::was_running(&recorded),
            status: StatusMemory::new(recorded),
            probe: Probe::default(),
            scaling: ScalingTask::default(),
            ensured: false,
            seen_running: false,
            bootstrapped: false,
            errors: 0,
            context,
            id,
            view,
            ending,
            calls,
        }
    }

    async fn run(mut self) {
        loop {
            let wait = match self.turn().await {
                // What is true again is told by the next turn.
                Ok(Turn::Wait(_)) if std::mem::take(&mut self.errors) > 0 => LOOK_AGAIN,
                Ok(Turn::Wait(wait)) => wait,
                Ok(Turn::Gone) => break,
                Err(TurnClusterError::CallHub(error)) if error.is_interrupt() => break,
                // Another writer was faster: what it wrote is on its way.
                Err(TurnClusterError::CallHub(error)) if error.is_conflict() => LOOK_AGAIN,
                Err(error) => {
                    let how = neap_kube::describe(&error);
                    tracing::warn!(cluster = %self.id, error = how, "cluster loop failed; trying again");
                    // One failure is soon forgotten, and not worth a word.
                    let wait = if self.errors == 0 {
                        LOOK_AGAIN
                    } else {
                        self.tell_failure(how).await;
                        Duration::try_from(backoff(self.errors)).unwrap_or_default()
                    };
                    self.errors = self.errors.saturating_add(1);
                    wait
                }
            };
            let clock = Arc::clone(&self.context.clock);
            let control_planes = Arc::clone(&self.context.control_planes);
            tokio::select! {
                () = self.ending.cancelled() => break,
                changed = self.view.changed() => if changed.is_err() { break },
                end = self.scaling.ended() => self.observe_scaling_end(end).await,
                // After a turn that failed this would be so at once, again and again.
                () = control_planes.ended(&self.id.uid), if self.seen_running && self.errors == 0 => {}
                () = clock.sleep(wait) => {}
            }
        }
        self.scaling.stop().await;
    }

    async fn turn(&mut self) -> Result<Turn, TurnClusterError> {
        let cluster = Arc::clone(&self.view.borrow_and_update().cluster);
        let observed = self.observe(&cluster).await?;
        let now = self.context.clock.now();
        let step = decide_cluster(&observed, now);
        tracing::debug!(cluster = %self.id, ?step, "cluster loop");
        // While turns fail, that is what is told.
        if self.errors == 0 && status::is_worth_telling(&step) {
            let reason = self.tell(&observed, &step);
            self.apply_status(&cluster, &observed, reason).await?;
        }
        self.apply(&cluster, &observed, step, now).await
    }

    /// Reads what is true now. The tenant API is asked only while it matters.
    async fn observe(&mut self, cluster: &Cluster) -> Result<ObservedCluster, TurnClusterError> {
        let deleting = cluster.metadata.deletion_timestamp.is_some();
        let finalizer = cluster
            .finalizers()
            .iter()
            .any(|name| name == FINALIZER_CLUSTER);
        let mut control_plane = self.context.control_planes.observe(&self.id.uid).await?;
        let (wanted, paused) = (cluster.spec.running, cluster.spec.paused);
        let mut api = ApiState::Unreachable;
        let mut machines = 0;
        if deleting || !wanted {
            machines = deletion::left(&self.calls, &self.context, &self.id).await?;
        }
        if deleting && !paused {
            self.scaling.stop().await;
        } else if let ObservedControlPlane::Running { since, .. } = control_plane {
            if !self.ensured && finalizer {
                self.adopt(cluster).await?;
                control_plane = self.context.control_planes.observe(&self.id.uid).await?;
            }
            self.seen_running = true;
            api = self
                .probe
                .look(&self.context, &self.id, since, self.bootstrapped)
                .await;
        }
        if let ObservedControlPlane::Exited { how, .. } = &control_plane
            && self.seen_running
            && (!deleting || paused)
        {
            self.count_failure(how.clone()).await;
        }
        Ok(ObservedCluster {
            deleting,
            finalizer,
            wanted,
            paused,
            version: cluster.spec.version.clone(),
            has_distro: self.status.distro.is_some(),
            versions: self.context.control_planes.versions(),
            control_plane,
            api,
            silent_since: self.probe.silent_since(),
            bootstrapped: self.bootstrapped,
            machines,
            failures: self.failures.failures,
            retry_at: self.failures.retry_at,
            was_running: self.was_running,
        })
    }

    /// Takes one step; each may be taken again.
    async fn apply(
        &mut self,
        cluster: &Cluster,
        observed: &ObservedCluster,
        step: ClusterStep,
        now: Timestamp,
    ) -> Result<Turn, TurnClusterError> {
        let control_planes = Arc::clone(&self.context.control_planes);
        match step {
            ClusterStep::AddFinalizer => {
                let api = self.clusters();
                let added = write::add_finalizer(&api, cluster, MANAGER_CLUSTER, FINALIZER_CLUSTER);
                self.calls
                    .call("add the finalizer of the Cluster", added)
                    .await?;
                // The record that bears it is on its way by the watch.
                Ok(Turn::Wait(LOOK_RUNNING))
            }
            ClusterStep::Start => {
                self.scaling.stop().await;
                self.start(cluster).await;
                Ok(Turn::Wait(Duration::ZERO))
            }
            ClusterStep::RetryAt { at } => {
                self.scaling.stop().await;
                Ok(Turn::Wait(until(at, now)))
            }
            ClusterStep::WaitFor {
                reason: Reason::NothingLeft,
            } => Ok(Turn::Gone),
            ClusterStep::WaitFor {
                reason:
                    Reason::VersionNotBuilt { .. }
                    | Reason::ClusterStopped
                    | Reason::ClusterPaused { .. },
            } => Ok(Turn::Wait(LOOK_RARELY)),
            ClusterStep::WaitFor { .. } => Ok(Turn::Wait(match &observed.control_plane {
                ObservedControlPlane::Running { since, .. } => pause(*since, now),
                _ => LOOK_SELDOM,
            })),
            ClusterStep::Bootstrap => {
                control_planes.bootstrap(&self.id.uid).await?;
                self.bootstrapped = true;
                Ok(Turn::Wait(Duration::ZERO))
            }
            ClusterStep::Running => {
                self.was_running = true;
                if let ObservedControlPlane::Running { since, .. } = &observed.control_plane
                    && is_settled(*since, now)
                {
                    self.failures = Failures::default();
                }
                self.start_scaling().await?;
                Ok(Turn::Wait(LOOK_RUNNING))
            }
            ClusterStep::Empty => {
                self.start_scaling().await?;
                // The end of the last record wakes this loop.
                Ok(Turn::Wait(LOOK_SELDOM))
            }
            ClusterStep::End { reason } => {
                tracing::warn!(cluster = %self.id, %reason, "ending a control plane");
                self.scaling.stop().await;
                control_planes.stop(&self.id.uid).await?;
                let how = reason.to_string();
                self.count_failure(how.trim_end_matches('.').to_owned())
                    .await;
                Ok(Turn::Wait(Duration::ZERO))
            }
            ClusterStep::StopControlPlane => {
                self.scaling.stop().await;
                // From here on its end is no failure.
                self.seen_running = false;
                control_planes.stop(&self.id.uid).await?;
                self.failures = Failures::default();
                let note = Reason::ClusterStopped.to_string();
                self.publish(EventKind::Normal, reasons::STOPPED, "Stop", note)
                    .await;
                Ok(Turn::Wait(Duration::ZERO))
            }
            ClusterStep::DeleteMachines => {
                self.scaling.stop().await;
                deletion::delete_machines(&self.calls, &self.context, &self.id).await?;
                // The end of the last record is on its way by the watch; one
                // that somebody else holds too takes its time.
                Ok(Turn::Wait(LOOK_SELDOM))
            }
            ClusterStep::DeleteControlPlane => {
                control_planes.delete(&self.id.uid).await?;
                Ok(Turn::Wait(LOOK_SOON))
            }
            ClusterStep::RemoveFinalizer => {
                let api = self.clusters();
                let removed =
                    write::remove_finalizer(&api, cluster, MANAGER_CLUSTER, FINALIZER_CLUSTER);
                self.calls
                    .call("remove the finalizer of the Cluster", removed)
                    .await?;
                Ok(Turn::Gone)
            }
        }
    }

    /// Takes over a control plane that ran before this loop did.
    async fn adopt(&mut self, cluster: &Cluster) -> Result<(), TurnClusterError> {
        let distro = self
            .context
            .control_planes
            .ensure(&self.plan(cluster))
            .await?;
        self.ensured = true;
        self.status.distro = Some(distro);
        self.publish(
            EventKind::Normal,
            reasons::ADOPTED,
            "Adopt",
            "The control plane runs on.".into(),
        )
        .await;
        Ok(())
    }

    /// Starts the control plane; a failure is counted, and tried again later.
    async fn start(&mut self, cluster: &Cluster) {
        match self
            .context
            .control_planes
            .ensure(&self.plan(cluster))
            .await
        {
            Ok(distro) => {
                let note = format!("The control plane was started ({distro}).");
                self.ensured = true;
                self.seen_running = true;
                self.failures.retry_at = None;
                self.status.distro = Some(distro);
                self.publish(EventKind::Normal, reasons::STARTED, "Start", note)
                    .await;
            }
            Err(error) => self.count_failure(neap_kube::describe(&error)).await,
        }
    }

    async fn count_failure(&mut self, how: String) {
        let failures = self.failures.failures.saturating_add(1);
        let at = retry_at(failures, self.context.clock.now());
        self.seen_running = false;
        self.status.failed(how.clone(), self.context.clock.now());
        self.failures = Failures {
            failures,
            retry_at: Some(at),
            message: Some(how.clone()),
        };
        let reason = Reason::ControlPlaneFailed {
            how,
            failures,
            retry_at: at,
        };
        tracing::warn!(cluster = %self.id, %reason, "control plane failed");
        self.publish(
            EventKind::Warning,
            reason.code(),
            "Start",
            reason.to_string(),
        )
        .await;
    }

    fn plan(&self, cluster: &Cluster) -> ControlPlanePlan {
        ControlPlanePlan {
            cluster: self.id.uid.clone(),
            account: self.id.account.clone(),
            name: self.id.name.clone(),
            allow_privileged: cluster.spec.control_plane.allow_privileged,
            audit: cluster.spec.control_plane.audit.into(),
            distro: self.status.distro.clone(),
            version: cluster.spec.version.clone(),
        }
    }

    fn clusters(&self) -> Api<Cluster> {
        Api::namespaced(self.context.hub.clone(), &self.id.account)
    }

    /// Tells on the record, as an event, what happened.
    async fn publish(&self, kind: EventKind, reason: &str, action: &str, note: String) {
        let about = self.view.borrow().cluster.object_ref(&());
        self.context
            .publish(
                &self.calls,
                &self.context.cluster_events,
                about,
                kind,
                reason,
                action,
                &note,
            )
            .await;
    }
}

/// How long until the next look at a control plane that is on its way up.
fn pause(since: Timestamp, now: Timestamp) -> Duration {
    if until(now, since) < SOON {
        LOOK_SOON
    } else {
        LOOK_SELDOM
    }
}

#[cfg(test)]
mod tests;
