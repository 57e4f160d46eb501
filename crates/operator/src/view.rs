//! What the hub says of one Cluster, as the task that watches the hub hands it
//! to the task of that Cluster.

use jiff::Timestamp;
use kube::ResourceExt;
use neap_api::{Cluster, Machine};
use neap_core::ids::{ClusterUid, MachineName, MachineUid};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Who a Cluster is; it never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClusterId {
    /// UID of the record.
    pub(crate) uid: ClusterUid,
    /// Its namespace.
    pub(crate) account: String,
    /// Its name.
    pub(crate) name: String,
}

impl ClusterId {
    /// The identity of a record that a server returned.
    pub(crate) fn of(cluster: &Cluster) -> Option<Self> {
        Some(Self {
            uid: cluster.cluster_uid()?,
            account: cluster.account(),
            name: cluster.name_any(),
        })
    }
}

impl std::fmt::Display for ClusterId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.account, self.name)
    }
}

/// One Cluster and its Machines as last heard of.
#[derive(Clone, Debug)]
pub(crate) struct HubView {
    /// The record.
    pub(crate) cluster: Arc<Cluster>,
    /// Its Machine records.
    pub(crate) machines: BTreeMap<MachineName, Arc<Machine>>,
    /// Why this must not be decided on: a watch of the hub has not listed
    /// since it began or broke.
    pub(crate) unreadable: Option<String>,
    /// How often the provider said that the power of a machine changed.
    pub(crate) power_changes: BTreeMap<MachineUid, u64>,
}

/// The Machine records of a Cluster: what the watch told, or what this loop
/// wrote itself when that is newer.
#[derive(Debug, Default)]
pub(crate) struct Records {
    by_name: BTreeMap<MachineName, Arc<Machine>>,
    /// Records that this loop let go and that the watch still tells of.
    let_go: BTreeSet<MachineUid>,
}

impl Records {
    /// Takes over what the watch told, keeping own writes that it has not
    /// told yet.
    pub(crate) fn observe(&mut self, told: &BTreeMap<MachineName, Arc<Machine>>) {
        let mut merged = told.clone();
        self.let_go.retain(|uid| {
            told.values()
                .any(|machine| machine.machine_uid().as_ref() == Some(uid))
        });
        for (name, machine) in &mut merged {
            if let Some(own) = self.by_name.get(name)
                && own.uid() == machine.uid()
                && version(own) > version(machine)
            {
                *machine = Arc::clone(own);
            }
        }
        self.by_name = merged;
    }

    /// Keeps the outcome of an own write. A record that is not listed, or is
    /// newer already, is left as it is.
    pub(crate) fn wrote(&mut self, machine: Machine) {
        if let Some(known) = self.by_name.get_mut(&machine.machine_name())
            && known.uid() == machine.uid()
            && version(known) < version(&machine)
        {
            *known = Arc::new(machine);
        }
    }

    /// Keeps in mind that this loop let a record go. It holds its place until
    /// the watch tells that it is gone: somebody else may hold it too.
    pub(crate) fn let_go(&mut self, uid: MachineUid) {
        if self
            .iter()
            .any(|machine| machine.machine_uid().as_ref() == Some(&uid))
        {
            self.let_go.insert(uid);
        }
    }

    /// This loop has nothing more to do with the record.
    pub(crate) fn is_let_go(&self, uid: &MachineUid) -> bool {
        self.let_go.contains(uid)
    }

    /// One record.
    pub(crate) fn get(&self, name: &MachineName) -> Option<&Arc<Machine>> {
        self.by_name.get(name)
    }

    /// All records by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Machine>> {
        self.by_name.values()
    }
}

/// Versions of one resource on one server are ordered numbers.
fn version(machine: &Machine) -> u64 {
    machine
        .resource_version()
        .and_then(|version| version.parse().ok())
        .unwrap_or(0)
}

/// Time from one instant to a later one; nothing when it has passed.
pub(crate) fn until(later: Timestamp, now: Timestamp) -> std::time::Duration {
    std::time::Duration::try_from(later.duration_since(now)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use neap_api::MachineSpec;
    use neap_api::machine::{MachinePhase, MachineStatus};

    fn machine(uid: &str, version: &str, phase: MachinePhase) -> Machine {
        let spec = MachineSpec {
            cluster: "c".into(),
            cluster_uid: "cu".into(),
            ordinal: 1,
            provider: Default::default(),
            class: Default::default(),
            pods_per_node: 1,
        };
        let mut machine = Machine::new("c-node1", spec);
        machine.metadata.uid = Some(uid.into());
        machine.metadata.resource_version = Some(version.into());
        machine.status = Some(MachineStatus {
            phase: Some(phase),
            ..Default::default()
        });
        machine
    }

    fn told(machine: Machine) -> BTreeMap<MachineName, Arc<Machine>> {
        BTreeMap::from([(machine.machine_name(), Arc::new(machine))])
    }

    fn phase(records: &Records) -> Option<MachinePhase> {
        records
            .get(&MachineName::new("c-node1"))
            .map(|machine| machine.phase())
    }

    #[test]
    fn own_write_outlives_an_older_event_and_yields_to_a_newer_one() {
        let mut records = Records::default();
        records.observe(&told(machine("u", "9", MachinePhase::Running)));
        records.wrote(machine("u", "10", MachinePhase::Releasing));
        records.observe(&told(machine("u", "9", MachinePhase::Running)));
        assert_eq!(phase(&records), Some(MachinePhase::Releasing));
        records.observe(&told(machine("u", "11", MachinePhase::Draining)));
        assert_eq!(phase(&records), Some(MachinePhase::Draining));
    }

    #[test]
    fn own_write_of_an_earlier_record_of_that_name_is_forgotten() {
        let mut records = Records::default();
        records.observe(&told(machine("old", "5", MachinePhase::Draining)));
        records.observe(&told(machine("new", "3", MachinePhase::Pending)));
        assert_eq!(phase(&records), Some(MachinePhase::Pending));
        records.wrote(machine("old", "9", MachinePhase::Draining));
        assert_eq!(phase(&records), Some(MachinePhase::Pending));
    }

    #[test]
    fn record_that_the_watch_lost_is_gone_whatever_was_written() {
        let mut records = Records::default();
        records.observe(&told(machine("u", "5", MachinePhase::Draining)));
        records.observe(&BTreeMap::new());
        records.wrote(machine("u", "6", MachinePhase::Draining));
        assert_eq!(phase(&records), None);
    }

    #[test]
    fn record_that_was_let_go_holds_its_place_until_the_watch_tells_its_end() {
        let uid = MachineUid::new("u");
        let mut records = Records::default();
        records.observe(&told(machine("u", "5", MachinePhase::Draining)));
        records.let_go(uid.clone());
        records.observe(&told(machine("u", "6", MachinePhase::Draining)));
        assert_eq!(phase(&records), Some(MachinePhase::Draining));
        assert!(records.is_let_go(&uid));
        records.observe(&told(machine("next", "7", MachinePhase::Pending)));
        assert_eq!(phase(&records), Some(MachinePhase::Pending));
        assert!(!records.is_let_go(&uid));
    }

    #[test]
    fn record_whose_end_was_told_first_is_not_kept_in_mind() {
        let mut records = Records::default();
        records.let_go(MachineUid::new("u"));
        assert!(!records.is_let_go(&MachineUid::new("u")));
    }

    #[test]
    fn time_that_has_passed_is_no_wait() {
        let now = Timestamp::UNIX_EPOCH;
        assert_eq!(
            until(now + jiff::SignedDuration::from_secs(2), now),
            std::time::Duration::from_secs(2)
        );
        assert_eq!(
            until(now - jiff::SignedDuration::from_secs(2), now),
            std::time::Duration::ZERO
        );
    }
}
