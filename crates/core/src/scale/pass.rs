//! One pass: what is known, the order of the rules, and the outcome.

use super::leaving::{Occupation, can_return, counts, foreign_record, is_stopped, join_deadline};
use super::{
    Action, Activity, DECISION_VERSION, Decision, Policy, Remember, State, limited, number,
    wanted_beside,
};
use crate::demand::{demand, intent};
use crate::ids::MachineName;
use crate::machine::{MachinePhase, ObservedMachine};
use crate::observation::Observation;
use crate::reason::Reason;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

/// Machines, oldest first.
pub(super) type Machines<'a> = Vec<&'a ObservedMachine>;

/// The input of a pass, and what follows from it at once.
pub(super) struct Pass<'a> {
    pub(super) observation: &'a Observation,
    pub(super) state: &'a State,
    pub(super) now: Timestamp,
    pub(super) policy: &'a Policy,
    pub(super) occupation: Occupation<'a>,
    pub(super) hold: SignedDuration,
    pub(super) demand: u32,
    /// Nodes that the work fills, before any limit.
    pub(super) wanted: u32,
    pub(super) target: u32,
    /// Since when there has been no work; none while there is.
    pub(super) idle_since: Option<Timestamp>,
    machines: Machines<'a>,
}

/// Machines by what may become of them. Those that are on their way out, or
/// have to go in this pass, are in none.
pub(super) struct Census<'a> {
    /// They count.
    pub(super) counted: Machines<'a>,
    /// Their user stopped them.
    pub(super) stopped: Machines<'a>,
    /// They are leaving and can be taken back.
    pub(super) returnable: Machines<'a>,
}

impl Census<'_> {
    /// Machines that count.
    pub(super) fn counted(&self) -> u32 {
        number(&self.counted)
    }

    /// Those of them whose Node has joined.
    pub(super) fn joined(&self) -> u32 {
        let joined: Machines<'_> = running(&self.counted).collect();
        number(&joined)
    }
}

/// What one rule says: what to do, why, and when time would change that.
#[derive(Default)]
pub(super) struct Verdict {
    pub(super) actions: Vec<Action>,
    pub(super) reason: Option<Reason>,
    pub(super) next: Option<Timestamp>,
}

impl Verdict {
    pub(super) fn act(action: Action, reason: Reason) -> Self {
        Self {
            actions: vec![action],
            reason: Some(reason),
            next: None,
        }
    }

    pub(super) fn wait(reason: Reason, next: Option<Timestamp>) -> Self {
        Self {
            actions: Vec::new(),
            reason: Some(reason),
            next,
        }
    }

    /// Each of these machines goes at once.
    pub(super) fn remove(removals: impl IntoIterator<Item = (MachineName, Reason)>) -> Self {
        let mut verdict = Self::default();
        for (machine, reason) in removals {
            verdict.reason.get_or_insert_with(|| reason.clone());
            verdict.actions.push(Action::Remove { machine, reason });
        }
        verdict
    }
}

impl<'a> Pass<'a> {
    pub(super) fn new(
        observation: &'a Observation,
        state: &'a State,
        now: Timestamp,
        policy: &'a Policy,
    ) -> Self {
        let demand = demand(observation, policy.daemon_sets);
        let mut machines: Machines<'_> = observation.machines.iter().collect();
        machines.sort_by_key(|machine| (machine.created, machine.ordinal, &machine.name));
        let occupation = Occupation::of(observation);
        // A machine that is given more room in a moment counts as if it had it.
        let small: Vec<u32> = machines
            .iter()
            .filter(|machine| machine.resize_failed && counts(machine))
            .filter(|machine| occupation.loss(machine, now).is_none())
            .map(|machine| machine.pods_per_node)
            .filter(|room| *room < policy.pods_per_node)
            .collect();
        let wanted = wanted_beside(&small, demand, policy);
        Self {
            observation,
            state,
            now,
            policy,
            occupation,
            hold: policy.hold.max(SignedDuration::ZERO),
            demand,
            wanted,
            target: limited(wanted, demand, policy),
            idle_since: (!intent(demand)).then(|| since(state.idle_since, now)),
            machines,
        }
    }

    pub(super) fn decide(&self) -> Decision {
        match foreign_record(self.observation) {
            // What is paused is left alone, whatever it is.
            Some(reason) if self.policy.activity != Activity::Pause => self.void(reason),
            _ => self.proceed(),
        }
    }

    /// A pass that must not act: what is remembered stays as it is.
    fn void(&self, reason: Reason) -> Decision {
        let counted = self.having(counts);
        let remembered =
            running(&counted).map(|machine| (machine.name.clone(), machine.idle_since));
        let remember = Remember {
            idle_since: self.state.idle_since,
            machines: remembered.collect(),
        };
        self.decision(number(&counted), Verdict::wait(reason, None), remember)
    }

    fn proceed(&self) -> Decision {
        if let Some(verdict) = self.halt() {
            let counted = self.having(counts);
            let remember = Remember {
                idle_since: self.idle_since,
                machines: BTreeMap::new(),
            };
            return self.decision(number(&counted), verdict, remember);
        }
        let losses: BTreeMap<&MachineName, Reason> = self
            .machines
            .iter()
            .filter_map(|machine| Some((&machine.name, self.occupation.loss(machine, self.now)?)))
            .collect();
        let stays = |machine: &ObservedMachine| !losses.contains_key(&machine.name);
        let census = Census {
            counted: self.having(|machine| stays(machine) && counts(machine)),
            stopped: self.having(|machine| stays(machine) && is_stopped(machine)),
            returnable: self.having(|machine| stays(machine) && can_return(machine)),
        };
        let failed = losses
            .values()
            .find(|reason| reason.is_provisioning_failure());

        let mut verdicts = vec![
            Verdict::remove(
                losses
                    .iter()
                    .map(|(name, reason)| ((*name).clone(), reason.clone())),
            ),
            self.await_joins(&census),
            self.remove_stopped(&census),
        ];
        if self.target > census.counted() {
            verdicts.extend(self.grow(&census, failed));
        } else {
            verdicts.push(self.shrink(&census));
        }
        let remember = Remember {
            idle_since: self.idle_since,
            machines: self.idle_times(&census),
        };
        self.decision(census.counted(), self.sum(&census, verdicts), remember)
    }

    pub(super) fn having(&self, rule: impl Fn(&ObservedMachine) -> bool) -> Machines<'a> {
        let machines = self.machines.iter().copied();
        machines.filter(|machine| rule(machine)).collect()
    }

    /// All records: each holds its place under MaxNodes.
    pub(super) fn records(&self) -> u32 {
        number(&self.machines)
    }

    /// A machine that does not join in time will be removed then.
    fn await_joins(&self, census: &Census<'_>) -> Verdict {
        let deadlines = census
            .counted
            .iter()
            .filter_map(|machine| join_deadline(machine));
        Verdict {
            next: deadlines.min(),
            ..Verdict::default()
        }
    }

    /// Running machines without work, and since when.
    pub(super) fn idle(&self, census: &Census<'a>) -> Vec<(&'a ObservedMachine, Timestamp)> {
        running(&census.counted)
            .filter(|machine| self.occupation.is_idle(machine))
            .map(|machine| (machine, since(machine.idle_since, self.now)))
            .collect()
    }

    fn idle_times(&self, census: &Census<'a>) -> BTreeMap<MachineName, Option<Timestamp>> {
        let busy = running(&census.counted).map(|machine| (machine.name.clone(), None));
        let idle = self.idle(census).into_iter();
        let idle = idle.map(|(machine, since)| (machine.name.clone(), Some(since)));
        busy.chain(idle).collect()
    }

    /// Why nothing is to be done while as many are there as wanted.
    pub(super) fn rest(&self, counted: u32) -> Reason {
        let demand = self.demand;
        let wanted = self.wanted;
        let max_nodes = self.policy.max_nodes;
        if !intent(demand) {
            Reason::NoWork { counted }
        } else if wanted > max_nodes {
            Reason::MaxNodesReached {
                demand,
                wanted,
                max_nodes,
            }
        } else {
            Reason::Served { demand, counted }
        }
    }

    /// Puts the verdicts together. The reason of the pass is that of what it
    /// does, the last rule first; without a deed, why it does nothing.
    fn sum(&self, census: &Census<'_>, verdicts: Vec<Verdict>) -> Verdict {
        let deed = |verdict: &&Verdict| !verdict.actions.is_empty();
        let told = |verdict: &&Verdict| verdict.reason.is_some();
        let mut latest = verdicts.iter().rev();
        let teller = latest.clone().find(deed).or_else(|| latest.find(told));
        let reason = teller.and_then(|verdict| verdict.reason.clone());
        Verdict {
            reason: Some(reason.unwrap_or_else(|| self.rest(census.counted()))),
            next: verdicts.iter().filter_map(|verdict| verdict.next).min(),
            actions: verdicts
                .into_iter()
                .flat_map(|verdict| verdict.actions)
                .collect(),
        }
    }

    fn decision(&self, counted: u32, verdict: Verdict, remember: Remember) -> Decision {
        Decision {
            version: DECISION_VERSION,
            demand: self.demand,
            target: self.target,
            counted,
            actions: verdict.actions,
            reason: verdict.reason.unwrap_or_else(|| self.rest(counted)),
            remember,
            next: verdict.next,
        }
    }
}

fn running<'b, 'a: 'b>(
    machines: &'b [&'a ObservedMachine],
) -> impl Iterator<Item = &'a ObservedMachine> + 'b {
    let machines = machines.iter().copied();
    machines.filter(|machine| machine.phase == MachinePhase::Running)
}

/// A remembered time; none yet, or one still to come, is now.
fn since(remembered: Option<Timestamp>, now: Timestamp) -> Timestamp {
    remembered.map_or(now, |at| at.min(now))
}
