//! Machines that do not follow the work: those of a Cluster that is paused stay
//! as they are, those of one that stops go.

use super::leaving::can_return;
use super::pass::{Pass, Verdict};
use super::{Action, Activity};
use crate::machine::{MachinePhase, ObservedMachine};
use crate::reason::{PausedWork, Reason};

impl Pass<'_> {
    /// What is done instead of scaling; none while machines follow the work.
    pub(super) fn halt(&self) -> Option<Verdict> {
        match self.policy.activity {
            Activity::Scale => None,
            Activity::Pause => Some(self.hold_still()),
            Activity::Empty => Some(self.empty()),
        }
    }

    /// Nothing comes or goes; what is leaving and can be taken back, stays.
    fn hold_still(&self) -> Verdict {
        let undone = self.having(can_return);
        let undo = undone.iter().map(|machine| Action::Undo {
            machine: machine.name.clone(),
        });
        Verdict {
            actions: undo.collect(),
            reason: Some(Reason::ClusterPaused {
                waiting: PausedWork::Scaling,
            }),
            next: None,
        }
    }

    /// All go at once that are not going yet.
    fn empty(&self) -> Verdict {
        let staying = self.having(is_here);
        let removals = staying.iter().map(|machine| {
            let machine = machine.name.clone();
            let reason = Reason::StoppedWithCluster {
                machine: machine.clone(),
            };
            (machine, reason)
        });
        Verdict {
            reason: Some(Reason::ClusterStopping {
                machines: self.records(),
            }),
            ..Verdict::remove(removals)
        }
    }
}

/// Not past the point of no return.
fn is_here(machine: &ObservedMachine) -> bool {
    machine.phase != MachinePhase::Draining && !machine.deleting
}
