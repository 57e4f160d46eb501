//! What the loop says of a Cluster on its record: its own part of the status,
//! written only when it differs from what is there.

use super::{ClusterLoop, TurnClusterError};
use jiff::Timestamp;
use neap_api::cluster::{ClusterPhase, Failures, LastFailure};
use neap_api::names::{
    CONDITION_CONTROL_PLANE_READY, CONDITION_PAUSED, CONDITION_READY, MANAGER_CLUSTER, reasons,
};
use neap_api::{Cluster, ClusterStatus};
use neap_core::lifecycle::{self, ApiState, ClusterStep, ObservedCluster};
use neap_core::reason::Reason;
use neap_kube::conditions::{Wanted, condition};
use neap_kube::write;

/// What the record says of the loop's own part, as last read or written.
pub(super) struct StatusMemory {
    /// The distro that the control plane was started with.
    pub(super) distro: Option<String>,
    restarts: u32,
    last_failure: Option<LastFailure>,
    written: ClusterStatus,
}

impl StatusMemory {
    pub(super) fn new(recorded: ClusterStatus) -> Self {
        Self {
            distro: recorded.distro.clone(),
            restarts: recorded.restarts.unwrap_or_default(),
            last_failure: recorded.last_failure.clone(),
            written: own_part(recorded),
        }
    }

    /// The control plane failed once more.
    pub(super) fn failed(&mut self, message: String, time: Timestamp) {
        self.restarts = self.restarts.saturating_add(1);
        self.last_failure = Some(LastFailure { time, message });
    }
}

/// The record says that it has been Running.
pub(super) fn was_running(recorded: &ClusterStatus) -> bool {
    recorded.phase == Some(ClusterPhase::Running)
}

/// Steps that are over in a moment are not worth a write: the next turn tells
/// what they led to.
pub(super) fn is_worth_telling(step: &ClusterStep) -> bool {
    match step {
        ClusterStep::AddFinalizer
        | ClusterStep::Start
        | ClusterStep::Bootstrap
        | ClusterStep::RemoveFinalizer
        | ClusterStep::WaitFor {
            reason: Reason::NothingLeft,
        } => false,
        ClusterStep::WaitFor { .. }
        | ClusterStep::Running
        | ClusterStep::RetryAt { .. }
        | ClusterStep::End { .. }
        | ClusterStep::Empty
        | ClusterStep::StopControlPlane
        | ClusterStep::DeleteMachines
        | ClusterStep::DeleteControlPlane => true,
    }
}

impl ClusterLoop {
    /// The reason to show with this step.
    pub(super) fn tell(&self, observed: &ObservedCluster, step: &ClusterStep) -> Reason {
        let machines = u32::try_from(observed.machines).unwrap_or(u32::MAX);
        match step {
            ClusterStep::WaitFor { reason } | ClusterStep::End { reason } => reason.clone(),
            ClusterStep::RetryAt { at } => Reason::ControlPlaneFailed {
                how: self.failures.message.clone().unwrap_or_default(),
                failures: self.failures.failures,
                retry_at: *at,
            },
            ClusterStep::Empty | ClusterStep::StopControlPlane => {
                Reason::ClusterStopping { machines }
            }
            ClusterStep::DeleteMachines if !observed.deleting => {
                Reason::ClusterStopping { machines }
            }
            ClusterStep::DeleteMachines | ClusterStep::DeleteControlPlane => {
                Reason::MachinesLeft { machines }
            }
            ClusterStep::RemoveFinalizer => Reason::NothingLeft,
            ClusterStep::AddFinalizer
            | ClusterStep::Start
            | ClusterStep::Bootstrap
            | ClusterStep::Running => Reason::ControlPlaneReady,
        }
    }

    /// Writes the own part of the status when it differs.
    pub(super) async fn apply_status(
        &mut self,
        cluster: &Cluster,
        observed: &ObservedCluster,
        reason: Reason,
    ) -> Result<(), TurnClusterError> {
        let desired = ClusterStatus {
            endpoint: Some(self.context.control_planes.endpoint(&self.plan(cluster))),
            distro: self.status.distro.clone(),
            observed_generation: cluster.metadata.generation,
            control_plane: Some(self.failures.clone()).filter(|failures| failures.failures > 0),
            restarts: Some(self.status.restarts).filter(|restarts| *restarts > 0),
            last_failure: self.status.last_failure.clone(),
            ..describe(
                observed,
                &reason,
                &self.status.written,
                cluster.metadata.generation,
                self.context.clock.now(),
            )
        };
        if desired == self.status.written {
            return Ok(());
        }
        let api = self.clusters();
        let written = write::apply_status(&api, &self.id.name, MANAGER_CLUSTER, None, &desired);
        self.calls
            .call("write the status of the Cluster", written)
            .await?;
        self.status.written = desired;
        Ok(())
    }
}

impl ClusterLoop {
    /// Says that turns of the loop fail: what it knew may be true no more.
    pub(super) async fn tell_failure(&mut self, how: String) {
        let desired = describe_failure(how, &self.status.written, self.context.clock.now());
        if desired == self.status.written {
            return;
        }
        let api = self.clusters();
        let written = write::apply_status(&api, &self.id.name, MANAGER_CLUSTER, None, &desired);
        match self
            .calls
            .call("write the status of the Cluster", written)
            .await
        {
            Ok(_) => self.status.written = desired,
            // The failure itself has been logged.
            Err(error) => {
                tracing::debug!(cluster = %self.id, error = neap_kube::describe(&error), "failure not told");
            }
        }
    }
}

/// The status as it was, but that nobody knows whether it still is so.
fn describe_failure(how: String, written: &ClusterStatus, now: Timestamp) -> ClusterStatus {
    let unknown = |type_| {
        let wanted = Wanted {
            type_,
            holds: None,
            reason: reasons::LOOP_FAILED,
            message: how.clone(),
        };
        condition(
            wanted,
            &written.conditions,
            written.observed_generation,
            now,
        )
    };
    ClusterStatus {
        conditions: written
            .conditions
            .iter()
            .filter(|kept| kept.type_ == CONDITION_PAUSED)
            .cloned()
            .chain([CONDITION_CONTROL_PLANE_READY, CONDITION_READY].map(unknown))
            .collect(),
        ..written.clone()
    }
}

/// Phase and condition for what was observed.
fn describe(
    observed: &ObservedCluster,
    reason: &Reason,
    written: &ClusterStatus,
    generation: Option<i64>,
    now: Timestamp,
) -> ClusterStatus {
    let phase = ClusterPhase::from(lifecycle::phase(observed));
    let ready = Wanted {
        type_: CONDITION_READY,
        holds: Some(phase == ClusterPhase::Running),
        reason: reason.code(),
        message: reason.to_string(),
    };
    let control_plane = Wanted {
        type_: CONDITION_CONTROL_PLANE_READY,
        holds: Some(matches!(observed.api, ApiState::Ready { .. })),
        ..ready.clone()
    };
    let was_paused = written
        .conditions
        .iter()
        .any(|condition| condition.type_ == CONDITION_PAUSED);
    let paused = match lifecycle::pause(observed) {
        Some(reason) => Some(Wanted {
            type_: CONDITION_PAUSED,
            holds: Some(true),
            reason: reason.code(),
            message: reason.to_string(),
        }),
        // One that never was is not worth a word.
        None => was_paused.then(|| Wanted {
            type_: CONDITION_PAUSED,
            holds: Some(false),
            reason: reasons::NOT_PAUSED,
            message: String::new(),
        }),
    };
    ClusterStatus {
        phase: Some(phase),
        conditions: [control_plane]
            .into_iter()
            .chain(paused)
            .chain([ready])
            .map(|wanted| condition(wanted, &written.conditions, generation, now))
            .collect(),
        ..Default::default()
    }
}

/// The fields that this loop writes, and no others.
fn own_part(recorded: ClusterStatus) -> ClusterStatus {
    let mut conditions = recorded.conditions;
    conditions.retain(|own| {
        matches!(
            own.type_.as_str(),
            CONDITION_CONTROL_PLANE_READY | CONDITION_PAUSED | CONDITION_READY
        )
    });
    conditions.sort_by(|one, other| one.type_.cmp(&other.type_));
    ClusterStatus {
        phase: recorded.phase,
        conditions,
        endpoint: recorded.endpoint,
        observed_generation: recorded.observed_generation,
        distro: recorded.distro,
        control_plane: recorded
            .control_plane
            .filter(|failures: &Failures| failures.failures > 0),
        restarts: recorded.restarts,
        last_failure: recorded.last_failure,
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
    use neap_core::lifecycle::ObservedControlPlane;

    fn at(second: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_secs(second)
    }

    fn running() -> ObservedCluster {
        ObservedCluster {
            deleting: false,
            finalizer: true,
            wanted: true,
            paused: false,
            version: None,
            has_distro: true,
            versions: Vec::new(),
            control_plane: ObservedControlPlane::Running {
                since: at(0),
                distro: "d".into(),
            },
            api: ApiState::Ready {
                service_account: true,
            },
            silent_since: None,
            bootstrapped: true,
            machines: 0,
            failures: 0,
            retry_at: None,
            was_running: true,
        }
    }

    #[test]
    fn nothing_is_written_again_while_nothing_changes() {
        let first = describe(
            &running(),
            &Reason::ControlPlaneReady,
            &ClusterStatus::default(),
            Some(1),
            at(5),
        );
        assert_eq!(
            describe(
                &running(),
                &Reason::ControlPlaneReady,
                &first,
                Some(1),
                at(60)
            ),
            first
        );
    }

    #[test]
    fn transition_time_moves_with_the_status_alone() {
        let down = ObservedCluster {
            api: ApiState::NotReady,
            ..running()
        };
        let ready = describe(
            &running(),
            &Reason::ControlPlaneReady,
            &ClusterStatus::default(),
            Some(1),
            at(5),
        );
        let unready = describe(&down, &Reason::ApiNotReady, &ready, Some(1), at(9));
        assert_eq!(unready.phase, Some(ClusterPhase::Starting));
        let condition = |status: &ClusterStatus| {
            let ready = status
                .conditions
                .iter()
                .find(|condition| condition.type_ == CONDITION_READY);
            ready.map(|ready| {
                (
                    ready.status.clone(),
                    ready.reason.clone(),
                    ready.last_transition_time.0,
                )
            })
        };
        assert_eq!(
            condition(&ready),
            Some(("True".into(), "ControlPlaneReady".into(), at(5)))
        );
        assert_eq!(
            condition(&unready),
            Some(("False".into(), "ApiNotReady".into(), at(9)))
        );
        let still = describe(
            &down,
            &Reason::ServiceAccountMissing,
            &unready,
            Some(1),
            at(12),
        );
        assert_eq!(
            condition(&still),
            Some(("False".into(), "ServiceAccountMissing".into(), at(9)))
        );
    }

    #[test]
    fn part_of_the_scaling_loop_is_left_to_it() {
        let foreign = Condition {
            type_: "TenantReadable".into(),
            status: "True".into(),
            reason: "Listed".into(),
            message: String::new(),
            observed_generation: None,
            last_transition_time: Time(at(1)),
        };
        let recorded = ClusterStatus {
            demand: Some(3),
            conditions: vec![foreign],
            ..Default::default()
        };
        assert_eq!(own_part(recorded), ClusterStatus::default());
    }
}
