//! As many machines as wanted, or more: wait for the hold, then let go.

use super::Action;
use super::pass::{Census, Pass, Verdict};
use super::size;
use crate::machine::ObservedMachine;
use crate::reason::Reason;
use crate::supervision::after;
use jiff::Timestamp;
use std::cmp::Reverse;

impl<'a> Pass<'a> {
    pub(super) fn shrink(&self, census: &Census<'a>) -> Verdict {
        let surplus = census.counted().saturating_sub(self.target);
        if surplus == 0 {
            return Verdict::wait(self.rest(census.counted()), None);
        }
        match self.idle_since {
            Some(since) => self.tear_down(census, surplus, since),
            None => self.release(census),
        }
    }

    /// No work for the whole hold: what its user stopped goes at once.
    pub(super) fn remove_stopped(&self, census: &Census<'_>) -> Verdict {
        let Some(since) = self.idle_since.filter(|_| !census.stopped.is_empty()) else {
            return Verdict::default();
        };
        let until = after(since, self.hold);
        if until > self.now {
            return Verdict {
                next: Some(until),
                ..Verdict::default()
            };
        }
        Verdict::remove(census.stopped.iter().map(|machine| {
            let reason = Reason::StoppedWithoutWork {
                machine: machine.name.clone(),
                power: machine.power,
                since,
            };
            (machine.name.clone(), reason)
        }))
    }

    /// No work for the whole hold: the surplus leaves, newest first.
    fn tear_down(&self, census: &Census<'_>, surplus: u32, since: Timestamp) -> Verdict {
        let leaving = surplus;
        let until = after(since, self.hold);
        if until > self.now {
            let reason = Reason::AwaitingHold {
                since,
                until,
                leaving,
            };
            return Verdict::wait(reason, Some(until));
        }
        let newest = census.counted.iter().rev().take(size(surplus));
        let machines = newest.map(|machine| machine.name.clone()).collect();
        let reason = Reason::WorkEnded {
            since,
            hold: self.hold,
            leaving,
            staying: census.counted().saturating_sub(leaving),
        };
        Verdict::act(Action::Teardown { machines }, reason)
    }

    /// Work, and more machines than it wants: one that was idle for the whole
    /// hold leaves, and one in a hold.
    fn release(&self, census: &Census<'a>) -> Verdict {
        let (counted, target) = (census.counted(), self.target);
        let (held, waiting): (Vec<_>, Vec<_>) = self
            .idle(census)
            .into_iter()
            .map(|(machine, since)| (machine, since, after(since, self.hold)))
            .partition(|(_, _, until)| *until <= self.now);
        let emptiest = held
            .iter()
            .min_by_key(|(machine, ..)| self.release_order(machine));
        match (emptiest, self.release_hold()) {
            (Some(_), None) if census.joined() <= target => {
                let joined = census.joined();
                let reason = Reason::AwaitingJoin {
                    joined,
                    counted,
                    target,
                };
                Verdict::wait(reason, None)
            }
            (Some((machine, since, _)), None) => {
                let machine = machine.name.clone();
                let reason = Reason::NodeIdle {
                    machine: machine.clone(),
                    since: *since,
                    counted,
                    target,
                };
                Verdict::act(Action::Release { machine }, reason)
            }
            (Some(_), Some((last_release, until))) => {
                let reason = Reason::AwaitingReleaseHold {
                    last_release,
                    until,
                    counted,
                    target,
                };
                Verdict::wait(reason, Some(until))
            }
            (None, release_hold) => {
                let ends = waiting
                    .iter()
                    .map(|(machine, _, until)| (*until, &machine.name));
                let Some((until, machine)) = ends.min() else {
                    return Verdict::wait(Reason::NoIdleNode { counted, target }, None);
                };
                let until = release_hold.map_or(until, |(_, hold)| until.max(hold));
                let reason = Reason::AwaitingIdleHold {
                    machine: machine.clone(),
                    until,
                    counted,
                    target,
                };
                Verdict::wait(reason, Some(until))
            }
        }
    }

    /// Emptiest first, then newest.
    fn release_order(&self, machine: &ObservedMachine) -> impl Ord + use<> {
        let newest = Reverse((machine.created, machine.ordinal));
        (self.occupation.pods_on(machine), newest)
    }

    /// The last release, and when the next may be, if not now. One that is
    /// still to come is from before the clock jumped back, and binds nobody.
    fn release_hold(&self) -> Option<(Timestamp, Timestamp)> {
        let last = self.state.last_release.filter(|last| *last <= self.now)?;
        let until = after(last, self.hold);
        (until > self.now).then_some((last, until))
    }
}
