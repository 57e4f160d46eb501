//! Fewer machines than wanted: take back, make room, make.

use super::ordinals::free_ordinals;
use super::pass::{Census, Pass, Verdict};
use super::{Action, number, size};
use crate::addressing::MAX_ORDINAL;
use crate::demand::intent;
use crate::reason::Reason;
use crate::supervision::pending_retry;

impl Pass<'_> {
    /// `failed` is why a machine that never came up is removed in this pass.
    pub(super) fn grow(&self, census: &Census<'_>, failed: Option<&Reason>) -> Vec<Verdict> {
        let missing = self.target.saturating_sub(census.counted());
        let (returned, undo) = self.undo(census, missing);
        let missing = missing - returned;
        let counted = census.counted().saturating_add(returned);
        let mut verdicts = vec![undo];
        if missing == 0 {
            return verdicts;
        }
        if let Some(reason) = failed {
            // The actor writes its backoff down; nothing is made before that.
            verdicts.push(Verdict::wait(reason.clone(), None));
        } else if let Some(retry_at) = pending_retry(self.state.retry_at, self.now) {
            let reason = Reason::BackingOff { missing, retry_at };
            verdicts.push(Verdict::wait(reason, Some(retry_at)));
        } else {
            verdicts.push(self.make_places(census, missing, counted));
            verdicts.push(self.provision(missing, counted));
        }
        verdicts
    }

    /// Takes back as many as are missing, the oldest first, and says how many.
    fn undo(&self, census: &Census<'_>, missing: u32) -> (u32, Verdict) {
        let undone = census.returnable.iter().take(size(missing));
        let actions: Vec<_> = undone
            .map(|machine| Action::Undo {
                machine: machine.name.clone(),
            })
            .collect();
        let returned = number(&actions);
        let reason = (returned > 0).then_some(Reason::WorkCameBack {
            target: self.target,
            counted: census.counted(),
            undone: returned,
        });
        let verdict = Verdict {
            actions,
            reason,
            next: None,
        };
        (returned, verdict)
    }

    /// Places under MaxNodes that no record holds.
    fn room(&self) -> u32 {
        self.policy.max_nodes.saturating_sub(self.records())
    }

    /// Work that finds no place under MaxNodes takes that of a stopped
    /// machine, the newest first, unless a place comes free by itself.
    fn make_places(&self, census: &Census<'_>, missing: u32, counted: u32) -> Verdict {
        if !intent(self.demand) {
            return Verdict::default();
        }
        let staying = counted.saturating_add(number(&census.stopped));
        let places = self.policy.max_nodes.saturating_sub(staying);
        let short = missing.saturating_sub(places);
        let newest = census.stopped.iter().rev().take(size(short));
        Verdict::remove(newest.map(|machine| {
            let reason = Reason::PlaceNeeded {
                machine: machine.name.clone(),
                power: machine.power,
                max_nodes: self.policy.max_nodes,
            };
            (machine.name.clone(), reason)
        }))
    }

    /// Makes what is missing, as far as there is room. `counted` are there.
    fn provision(&self, missing: u32, counted: u32) -> Verdict {
        let possible = missing.min(self.room());
        if possible == 0 {
            let reason = Reason::PlacesTaken {
                missing,
                records: self.records(),
                max_nodes: self.policy.max_nodes,
            };
            return Verdict::wait(reason, None);
        }
        let ordinals = free_ordinals(self.observation, possible);
        if ordinals.is_empty() {
            let highest = MAX_ORDINAL;
            return Verdict::wait(Reason::OrdinalsTaken { missing, highest }, None);
        }
        let reason = Reason::ScaleUp {
            demand: self.demand,
            pods_per_node: self.policy.pods_per_node,
            wanted: self.wanted,
            target: self.target,
            counted,
            new: number(&ordinals),
        };
        Verdict::act(Action::Provision { ordinals }, reason)
    }
}
