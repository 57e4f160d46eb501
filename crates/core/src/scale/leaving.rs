//! Which machines count, which have to go, and which may.

use super::JOIN_DEADLINE;
use crate::demand::is_work;
use crate::ids::NodeName;
use crate::machine::{MachinePhase, ObservedMachine};
use crate::observation::Observation;
use crate::reason::Reason;
use crate::supervision::after;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// What the tenant's Nodes and pods say about machines.
pub(super) struct Occupation<'a> {
    nodes: BTreeSet<&'a NodeName>,
    pods: BTreeMap<&'a NodeName, Load>,
}

#[derive(Clone, Copy, Default)]
struct Load {
    work: u32,
    all: u32,
}

impl<'a> Occupation<'a> {
    pub(super) fn of(observation: &'a Observation) -> Self {
        let mut pods: BTreeMap<&NodeName, Load> = BTreeMap::new();
        for (pod, count) in &observation.pods {
            if let Some(node) = &pod.node {
                let load = pods.entry(node).or_default();
                load.all = load.all.saturating_add(*count);
                if is_work(pod) {
                    load.work = load.work.saturating_add(*count);
                }
            }
        }
        Self {
            nodes: observation.nodes.iter().map(|node| &node.name).collect(),
            pods,
        }
    }

    fn load(&self, machine: &ObservedMachine) -> Load {
        let load = self.pods.get(&machine.name.node());
        load.copied().unwrap_or_default()
    }

    /// Whether the machine holds nothing but baseline and finished pods.
    pub(super) fn is_idle(&self, machine: &ObservedMachine) -> bool {
        self.load(machine).work == 0
    }

    /// Pods on the machine of any kind.
    pub(super) fn pods_on(&self, machine: &ObservedMachine) -> u32 {
        self.load(machine).all
    }

    /// Why a machine has to go at once, if it has to.
    pub(super) fn loss(&self, machine: &ObservedMachine, now: Timestamp) -> Option<Reason> {
        if machine.deleting || machine.phase == MachinePhase::Draining {
            // It is going already.
            return None;
        }
        let name = machine.name.clone();
        let power = machine.power;
        let lost_from_work = power.is_lost() && machine.joined.is_some();
        if machine.phase == MachinePhase::Releasing && power.is_down() && !lost_from_work {
            // Nobody wanted it any more: that it never came up is no failure.
            return Some(Reason::StoppedWhileLeaving {
                machine: name,
                power,
            });
        }
        match machine.joined {
            Some(_) if power.is_lost() => Some(Reason::MachineLost {
                machine: name,
                power,
            }),
            None if power.is_lost() => Some(Reason::LostBeforeJoin {
                machine: name,
                power,
            }),
            Some(_) if !self.nodes.contains(&name.node()) => {
                Some(Reason::NodeVanished { machine: name })
            }
            None if is_late(machine, now) => Some(Reason::JoinDeadlinePassed {
                machine: name,
                created: machine.created,
                deadline: JOIN_DEADLINE,
            }),
            _ => None,
        }
    }
}

/// When a machine that has not joined is removed; none for one that has, that
/// is leaving, or that its user stopped.
pub(super) fn join_deadline(machine: &ObservedMachine) -> Option<Timestamp> {
    (counts(machine) && machine.joined.is_none()).then(|| after(machine.created, JOIN_DEADLINE))
}

/// A creation further ahead than the deadline is from before the clock jumped
/// back: nobody knows how long it has been, and it must not wait for ever.
fn is_late(machine: &ObservedMachine, now: Timestamp) -> bool {
    join_deadline(machine)
        .is_some_and(|deadline| deadline <= now || machine.created > after(now, JOIN_DEADLINE))
}

/// On its way to work or working, as far as its record goes.
fn is_kept(machine: &ObservedMachine) -> bool {
    let phase = matches!(machine.phase, MachinePhase::Pending | MachinePhase::Running);
    phase && !machine.deleting
}

/// Whether a machine counts.
pub(super) fn counts(machine: &ObservedMachine) -> bool {
    is_kept(machine) && !machine.power.is_down()
}

/// Whether a machine was stopped by its user and stays for now.
pub(super) fn is_stopped(machine: &ObservedMachine) -> bool {
    is_kept(machine) && machine.power.is_down() && !machine.power.is_lost()
}

/// Whether a machine that is leaving can be taken back.
pub(super) fn can_return(machine: &ObservedMachine) -> bool {
    machine.phase == MachinePhase::Releasing && !machine.deleting && !machine.power.is_down()
}

/// Why nothing may be done at all: a Node that says it is ours, of a machine
/// without a record. The first by name of several.
pub(super) fn foreign_record(observation: &Observation) -> Option<Reason> {
    let records = observation.machines.iter().map(|machine| &machine.uid);
    let records: BTreeSet<_> = records.collect();
    let foreign = observation.nodes.iter().filter_map(|node| {
        let machine = node.machine.as_ref()?;
        (!records.contains(machine)).then_some((&node.name, machine))
    });
    let (node, machine) = foreign.min()?;
    Some(Reason::ForeignRecord {
        node: node.clone(),
        machine: machine.clone(),
    })
}
