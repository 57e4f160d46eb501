//! What is known of a machine: its record's phase and its power state.

use crate::ids::{MachineName, MachineUid};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Phase of a Machine record. After `Draining` the record is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MachinePhase {
    /// Recorded; its Node is not Ready yet.
    Pending,
    /// Its Node has been Ready.
    Running,
    /// Cordoned; may still be undone.
    Releasing,
    /// Past the point of no return: only now may the Node go.
    Draining,
}

/// Power state of the machine itself, apart from its record's phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Power {
    /// Works, or is on its way to.
    Running,
    /// Stopped by its user.
    Stopped,
    /// Shut down from inside.
    Shutdown,
    /// Failed; a container whose process ended unasked.
    Error,
    /// Destroyed at the provider.
    Destroyed,
    /// Being erased at the provider.
    Expunging,
    /// On its way to another host.
    Migrating,
    /// Not known.
    Unknown,
}

impl Power {
    /// Down machines do not count; every other state may still run.
    pub fn is_down(self) -> bool {
        matches!(
            self,
            Self::Stopped | Self::Shutdown | Self::Error | Self::Destroyed | Self::Expunging
        )
    }

    /// Down for good, as opposed to stopped by its user.
    pub fn is_lost(self) -> bool {
        matches!(self, Self::Error | Self::Destroyed | Self::Expunging)
    }
}

/// A Machine record of this cluster as last read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedMachine {
    /// Name, `<cluster>-node<ordinal>`.
    pub name: MachineName,
    /// UID of the record.
    pub uid: MachineUid,
    /// Ordinal from 1.
    pub ordinal: u32,
    /// Phase on the record.
    pub phase: MachinePhase,
    /// Power state as the provider reports it.
    pub power: Power,
    /// Creation of the record.
    pub created: Timestamp,
    /// When its Node was first Ready, from the record.
    pub joined: Option<Timestamp>,
    /// Since when it has held nothing but baseline and finished pods.
    pub idle_since: Option<Timestamp>,
    /// Pods that it has room for.
    pub pods_per_node: u32,
    /// Room for more was wanted and could not be given; it is tried again.
    #[serde(default)]
    pub resize_failed: bool,
    /// Its record has a deletion timestamp.
    pub deleting: bool,
}
