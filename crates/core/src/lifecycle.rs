//! What a Cluster needs next: the states in use and the step between them.

use crate::reason::{PausedWork, Reason};
use crate::supervision::{is_hung, pending_retry};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Phase of a Cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ClusterPhase {
    /// Recorded; nothing started yet.
    Created,
    /// Its control plane is on the way up.
    Starting,
    /// Its API answers and can take pods.
    Running,
    /// On its way to Stopped: its machines go, then its control plane.
    Stopping,
    /// Nothing of it runs; its data is kept.
    Stopped,
    /// Being taken apart.
    Destroying,
    /// Its control plane fails again and again; neap goes on trying.
    Error,
}

/// The program of a control plane as found on this host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ObservedControlPlane {
    /// There is neither process nor folder.
    Absent,
    /// The process runs; whether its API answers is asked of the API.
    Running {
        /// Start of the process.
        since: Timestamp,
        /// The distro that it runs.
        distro: String,
    },
    /// There is a folder and no process.
    Exited {
        /// When it ended, if that is known.
        at: Option<Timestamp>,
        /// How, for people.
        how: String,
    },
}

/// Failures in a row from which on a Cluster shows [`ClusterPhase::Error`].
pub const ERROR_AFTER: u32 = 3;

/// What the API of a Cluster says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ApiState {
    /// Nobody answers.
    Unreachable,
    /// It answers that it is not ready.
    NotReady,
    /// It is ready.
    Ready {
        /// The default ServiceAccount is there, so that pods are accepted.
        service_account: bool,
    },
}

/// All that the next step of a Cluster depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedCluster {
    /// Its record has a deletion timestamp.
    pub deleting: bool,
    /// Its record bears our finalizer.
    pub finalizer: bool,
    /// It is meant to run (`spec.running`).
    pub wanted: bool,
    /// Nothing is to be made or ended for it (`spec.paused`).
    pub paused: bool,
    /// Minor version of Kubernetes that it asks for.
    pub version: Option<String>,
    /// It was started before, with a build that it keeps.
    pub has_distro: bool,
    /// Minor versions that there are on this machine.
    pub versions: Vec<String>,
    /// The program of its control plane.
    pub control_plane: ObservedControlPlane,
    /// Its API.
    pub api: ApiState,
    /// Since when nobody has answered at its API, while it runs.
    pub silent_since: Option<Timestamp>,
    /// Our RBAC objects are written.
    pub bootstrapped: bool,
    /// Machines that are left: by their records, and those that their provider
    /// has without one. Looked at while it is to stop or to go.
    pub machines: usize,
    /// Starts that failed, or ends that came unasked, in a row.
    pub failures: u32,
    /// No start before this time.
    pub retry_at: Option<Timestamp>,
    /// It has been Running before.
    pub was_running: bool,
}

/// The one next thing to do for a Cluster. Each may be repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterStep {
    /// Put our finalizer on the record, before anything is made.
    AddFinalizer,
    /// Start the control plane.
    Start,
    /// Nothing to do but to look again.
    WaitFor {
        /// For what.
        reason: Reason,
    },
    /// Write our RBAC objects.
    Bootstrap,
    /// All is well: only the status is written.
    Running,
    /// Start the control plane, but not before this time.
    RetryAt {
        /// The time.
        at: Timestamp,
    },
    /// End the control plane, which hangs, and count that as a failure.
    End {
        /// Why.
        reason: Reason,
    },
    /// Let the scaling loop fail the pods and remove all machines.
    Empty,
    /// Stop the control plane and keep its data.
    StopControlPlane,
    /// End all machines, recorded or not, and delete their records. Nothing is
    /// asked of the Cluster's API.
    DeleteMachines,
    /// Stop the control plane and remove all that it is.
    DeleteControlPlane,
    /// Nothing is left: let the record go.
    RemoveFinalizer,
}

/// Decides the next step of a Cluster. Pure and total.
pub fn decide_cluster(cluster: &ObservedCluster, now: Timestamp) -> ClusterStep {
    if cluster.deleting && !(cluster.finalizer && cluster.paused) {
        return decide_deletion(cluster);
    }
    if let Some(reason) = missing_version(cluster) {
        return ClusterStep::WaitFor { reason };
    }
    if !cluster.finalizer {
        return ClusterStep::AddFinalizer;
    }
    if !cluster.wanted {
        return decide_stop(cluster, now);
    }
    match pause(cluster) {
        Some(reason) if cluster.control_plane == ObservedControlPlane::Absent => {
            ClusterStep::WaitFor { reason }
        }
        _ => decide_running(cluster, now),
    }
}

/// What a paused Cluster waits with; none while it is not paused.
pub fn pause(cluster: &ObservedCluster) -> Option<Reason> {
    let waiting = if cluster.deleting {
        PausedWork::Deletion
    } else if !cluster.wanted && !is_stopped(cluster) {
        PausedWork::Stop
    } else {
        PausedWork::Scaling
    };
    cluster.paused.then_some(Reason::ClusterPaused { waiting })
}

/// Nothing of it runs that is not meant to.
fn is_stopped(cluster: &ObservedCluster) -> bool {
    let runs = matches!(cluster.control_plane, ObservedControlPlane::Running { .. });
    !cluster.wanted && !runs && cluster.machines == 0
}

/// Machines first, by the scaling loop, which fails their pods: for that the
/// API is needed, and brought back if it is gone. Where it does not come back,
/// the machines go without it.
fn decide_stop(cluster: &ObservedCluster, now: Timestamp) -> ClusterStep {
    if is_stopped(cluster) {
        return ClusterStep::WaitFor {
            reason: Reason::ClusterStopped,
        };
    }
    if cluster.paused {
        // What crashed is restarted all the same.
        return decide_running(cluster, now);
    }
    if cluster.machines == 0 {
        return ClusterStep::StopControlPlane;
    }
    if cluster.failures >= ERROR_AFTER {
        return ClusterStep::DeleteMachines;
    }
    match decide_running(cluster, now) {
        ClusterStep::Running => ClusterStep::Empty,
        step => step,
    }
}

/// The way up, and back up.
fn decide_running(cluster: &ObservedCluster, now: Timestamp) -> ClusterStep {
    match &cluster.control_plane {
        ObservedControlPlane::Absent | ObservedControlPlane::Exited { .. } => {
            match pending_retry(cluster.retry_at, now) {
                None => ClusterStep::Start,
                Some(at) => ClusterStep::RetryAt { at },
            }
        }
        ObservedControlPlane::Running { since, .. } => match cluster.api {
            ApiState::Unreachable if is_hung(*since, cluster.silent_since, now) => {
                ClusterStep::End {
                    reason: Reason::ControlPlaneHung {
                        since: cluster.silent_since.unwrap_or(*since),
                    },
                }
            }
            ApiState::Unreachable => ClusterStep::WaitFor {
                reason: Reason::ControlPlaneStarting { since: *since },
            },
            ApiState::NotReady => ClusterStep::WaitFor {
                reason: Reason::ApiNotReady,
            },
            ApiState::Ready { .. } if !cluster.bootstrapped => ClusterStep::Bootstrap,
            ApiState::Ready {
                service_account: false,
            } => ClusterStep::WaitFor {
                reason: Reason::ServiceAccountMissing,
            },
            ApiState::Ready {
                service_account: true,
            } => ClusterStep::Running,
        },
    }
}

/// Why nothing of a Cluster is begun: it asks for a version that there is not.
fn missing_version(cluster: &ObservedCluster) -> Option<Reason> {
    let version = cluster.version.as_ref()?;
    let begun = cluster.has_distro || cluster.control_plane != ObservedControlPlane::Absent;
    if begun || cluster.versions.contains(version) {
        return None;
    }
    Some(Reason::VersionNotBuilt {
        version: version.clone(),
        built: cluster.versions.clone(),
    })
}

fn decide_deletion(cluster: &ObservedCluster) -> ClusterStep {
    if !cluster.finalizer {
        // Whatever holds the record now is not ours.
        return ClusterStep::WaitFor {
            reason: Reason::NothingLeft,
        };
    }
    if cluster.machines > 0 {
        return ClusterStep::DeleteMachines;
    }
    match cluster.control_plane {
        ObservedControlPlane::Absent => ClusterStep::RemoveFinalizer,
        ObservedControlPlane::Running { .. } | ObservedControlPlane::Exited { .. } => {
            ClusterStep::DeleteControlPlane
        }
    }
}

/// The phase to show for a Cluster: what is true, not what is hoped for.
pub fn phase(cluster: &ObservedCluster) -> ClusterPhase {
    if cluster.deleting && !cluster.paused {
        return ClusterPhase::Destroying;
    }
    if is_stopped(cluster) {
        return ClusterPhase::Stopped;
    }
    if !cluster.wanted && !cluster.paused {
        return ClusterPhase::Stopping;
    }
    let running = matches!(cluster.control_plane, ObservedControlPlane::Running { .. });
    let ready = cluster.api
        == ApiState::Ready {
            service_account: true,
        };
    if cluster.finalizer && running && ready && cluster.bootstrapped {
        return ClusterPhase::Running;
    }
    if cluster.failures >= ERROR_AFTER {
        return ClusterPhase::Error;
    }
    match cluster.control_plane {
        ObservedControlPlane::Absent if !cluster.was_running => ClusterPhase::Created,
        _ => ClusterPhase::Starting,
    }
}

#[cfg(test)]
mod tests;
