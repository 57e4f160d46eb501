//! From the wire to the types of `neap-core`, and back.

use crate::cluster::{Audit, DaemonSetCounting, DecidedAction, LastDecision, MachineClass};
use crate::machine::{MachinePhase, PowerState};
use crate::names::{ANNOTATION_REQUESTED_AT, machine_name};
use crate::{Cluster, Machine};
use jiff::Timestamp;
use kube::ResourceExt;
use neap_core::audit::AuditLevel;
use neap_core::duration::{ParseDurationError, parse_duration};
use neap_core::ids::{ClusterUid, MachineName, MachineUid};
use neap_core::machine::ObservedMachine;
use neap_core::quantity::{ParseQuantityError, Quantity};
use neap_core::scale::{Action, Activity, DaemonSets, Decision, Policy};

/// The scaling settings of a Cluster are none.
#[derive(Debug, thiserror::Error)]
pub enum ParsePolicyError {
    /// The hold is no duration.
    #[error("spec.scaling.hold is {value:?}")]
    ParseHold {
        /// As written.
        value: String,
        /// Why.
        #[source]
        source: ParseDurationError,
    },
    /// A number that must be at least 1 is 0.
    #[error("{field} is 0 and must be at least 1")]
    RefuseZero {
        /// Path of the field.
        field: &'static str,
    },
}

/// A quantity of a class is none.
#[derive(Debug, thiserror::Error)]
#[error("{field} is {value:?}")]
pub struct ParseClassError {
    /// `cpu`, `memory` or `disk`.
    field: &'static str,
    /// As written.
    value: String,
    /// Why.
    #[source]
    source: ParseQuantityError,
}

/// A Machine record lacks what every record that an API server returns has.
#[derive(Debug, thiserror::Error)]
#[error("Machine {name:?} has no metadata.{field}")]
pub struct ObserveMachineError {
    /// Its name, as far as it has one.
    name: String,
    /// What is missing.
    field: &'static str,
}

/// A [`MachineClass`] in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassSize {
    /// CPU, thousandths.
    pub cpu_milli: u64,
    /// Memory.
    pub memory_bytes: u64,
    /// Disk.
    pub disk_bytes: u64,
}

impl From<Audit> for AuditLevel {
    fn from(audit: Audit) -> Self {
        match audit {
            Audit::Off => Self::Off,
            Audit::Metadata => Self::Metadata,
            Audit::Request => Self::Request,
            Audit::RequestResponse => Self::RequestResponse,
        }
    }
}

impl MachineClass {
    /// The class in numbers.
    pub fn size(&self) -> Result<ClassSize, ParseClassError> {
        let parse = |field, value: &str| {
            value.parse::<Quantity>().map_err(|source| ParseClassError {
                field,
                value: value.to_owned(),
                source,
            })
        };
        Ok(ClassSize {
            cpu_milli: parse("class.cpu", &self.cpu.0)?.cpu_milli(),
            memory_bytes: parse("class.memory", &self.memory.0)?.bytes(),
            disk_bytes: parse("class.disk", &self.disk.0)?.bytes(),
        })
    }
}

impl Cluster {
    /// UID of the record, once it has one.
    pub fn cluster_uid(&self) -> Option<ClusterUid> {
        self.uid().map(ClusterUid::new)
    }

    /// The account that it belongs to: its namespace.
    pub fn account(&self) -> String {
        self.namespace().unwrap_or_default()
    }

    /// The counting policy that its spec asks for.
    pub fn policy(&self) -> Result<Policy, ParsePolicyError> {
        let scaling = &self.spec.scaling;
        let at_least_one = |field, value| match value {
            0 => Err(ParsePolicyError::RefuseZero { field }),
            value => Ok(value),
        };
        Ok(Policy {
            pods_per_node: at_least_one("spec.scaling.podsPerNode", scaling.pods_per_node)?,
            max_nodes: at_least_one("spec.scaling.maxNodes", scaling.max_nodes)?,
            min_nodes: scaling.min_nodes,
            hold: parse_duration(&scaling.hold).map_err(|source| ParsePolicyError::ParseHold {
                value: scaling.hold.clone(),
                source,
            })?,
            daemon_sets: scaling.daemon_sets.into(),
            activity: Activity::of(self.spec.running, self.spec.paused),
        })
    }

    /// The annotation that asks for a pass.
    pub fn requested_at(&self) -> Option<String> {
        self.annotations().get(ANNOTATION_REQUESTED_AT).cloned()
    }
}

impl From<DaemonSetCounting> for DaemonSets {
    fn from(value: DaemonSetCounting) -> Self {
        match value {
            DaemonSetCounting::Ignore => Self::Ignore,
            DaemonSetCounting::Count => Self::Count,
        }
    }
}

impl Machine {
    /// UID of the record, once it has one.
    pub fn machine_uid(&self) -> Option<MachineUid> {
        self.uid().map(MachineUid::new)
    }

    /// Name of the record.
    pub fn machine_name(&self) -> MachineName {
        MachineName::new(self.name_any())
    }

    /// UID of the Cluster that it was made for.
    pub fn cluster_uid(&self) -> ClusterUid {
        ClusterUid::new(self.spec.cluster_uid.clone())
    }

    /// Phase on the record; a record without a status is Pending.
    pub fn phase(&self) -> MachinePhase {
        self.status
            .as_ref()
            .and_then(|status| status.phase)
            .unwrap_or(MachinePhase::Pending)
    }

    /// Power state on the record; a record without a status is Unknown.
    pub fn power(&self) -> PowerState {
        self.status
            .as_ref()
            .and_then(|status| status.power)
            .unwrap_or(PowerState::Unknown)
    }

    /// The record as a decision reads it.
    pub fn observe(&self) -> Result<ObservedMachine, ObserveMachineError> {
        let lacks = |field| ObserveMachineError {
            name: self.name_any(),
            field,
        };
        let status = self.status.as_ref();
        Ok(ObservedMachine {
            name: MachineName::new(self.metadata.name.clone().ok_or_else(|| lacks("name"))?),
            uid: self.machine_uid().ok_or_else(|| lacks("uid"))?,
            ordinal: self.spec.ordinal,
            phase: self.phase().into(),
            power: self.power().into(),
            created: self
                .creation_timestamp()
                .ok_or_else(|| lacks("creationTimestamp"))?
                .0,
            joined: status.and_then(|status| status.joined),
            idle_since: status.and_then(|status| status.idle_since),
            pods_per_node: self.spec.pods_per_node,
            resize_failed: status.is_some_and(|status| status.resizing.is_some()),
            deleting: self.metadata.deletion_timestamp.is_some(),
        })
    }
}

impl LastDecision {
    /// A decision as `status.lastDecision` of this Cluster shows it.
    pub fn new(decision: &Decision, cluster: &Cluster, time: Timestamp) -> Self {
        let name = cluster.name_any();
        Self {
            time,
            requested_at: cluster.requested_at(),
            demand: decision.demand,
            target: decision.target,
            counted: decision.counted,
            reason: decision.reason.code().into(),
            message: decision.reason.to_string(),
            actions: decision
                .actions
                .iter()
                .map(|action| DecidedAction::new(action, &name))
                .collect(),
            next: decision.next,
        }
    }
}

impl DecidedAction {
    /// An action on Machines of the Cluster of this name.
    fn new(action: &Action, cluster: &str) -> Self {
        let (verb, machines, reason) = match action {
            Action::Provision { ordinals } => (
                "Provision",
                ordinals
                    .iter()
                    .map(|ordinal| machine_name(cluster, *ordinal))
                    .collect(),
                None,
            ),
            Action::Remove { machine, reason } => {
                ("Remove", vec![machine.clone()], Some(reason.to_string()))
            }
            Action::Release { machine } => ("Release", vec![machine.clone()], None),
            Action::Teardown { machines } => ("Teardown", machines.clone(), None),
            Action::Undo { machine } => ("Undo", vec![machine.clone()], None),
        };
        Self {
            action: verb.into(),
            machines: machines.iter().map(ToString::to_string).collect(),
            reason,
        }
    }
}

#[cfg(test)]
mod tests;
