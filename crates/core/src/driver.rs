//! What one Machine record needs next, apart from the scale decision: a step
//! from what the record says, what its provider has and which Node joined.
//!
//! Level-triggered: the same view always yields the same step, so that a
//! restart of neap at any point goes on from the phase on the record.

use crate::ids::MachineUid;
use crate::machine::{MachinePhase, Power};
use crate::observation::NodeFacts;
use crate::reason::Reason;
use crate::supervision::pending_retry;
use jiff::Timestamp;

/// What the provider has of a machine, as far as it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderView {
    /// It was not asked since neap started or the machine changed.
    NotAsked,
    /// It has none: a proof.
    Absent,
    /// It has one.
    Present(Power),
}

impl ProviderView {
    /// The power state to record; none while nothing is known. A machine that
    /// its provider does not have is destroyed.
    pub fn power(self) -> Option<Power> {
        match self {
            Self::NotAsked => None,
            Self::Absent => Some(Power::Destroyed),
            Self::Present(power) => Some(power),
        }
    }

    /// Known to be down, absence included.
    pub fn is_down(self) -> bool {
        self.power().is_some_and(Power::is_down)
    }
}

/// The Node that bears the machine's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeView {
    /// There is none.
    Absent,
    /// It says by our label that it is this very machine.
    Ours {
        /// Condition Ready is True.
        ready: bool,
    },
    /// It is another's, or of an earlier record of that name.
    Foreign,
}

impl NodeView {
    /// What the Node of a machine's name, if there is one, is to the machine.
    pub fn of(node: Option<&NodeFacts>, machine: &MachineUid) -> Self {
        match node {
            None => Self::Absent,
            Some(node) if node.machine.as_ref() == Some(machine) => {
                Self::Ours { ready: node.ready }
            }
            Some(_) => Self::Foreign,
        }
    }
}

/// All that the next step of a machine is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineView {
    /// Phase on the record.
    pub phase: MachinePhase,
    /// The record has a deletion timestamp: its user deleted it.
    pub deleting: bool,
    /// Power state on the record.
    pub recorded_power: Power,
    /// Condition Ready on the record, if it has one.
    pub recorded_ready: Option<bool>,
    /// What the provider has.
    pub provider: ProviderView,
    /// The Node of its name.
    pub node: NodeView,
    /// No machine is made before this time.
    pub retry_at: Option<Timestamp>,
    /// Pods that it has room for, from the record.
    pub pods_per_node: u32,
    /// Pods that a new machine of its Cluster would be made for.
    pub wanted_pods_per_node: u32,
    /// It is not given more room before this time.
    pub resize_retry_at: Option<Timestamp>,
    /// Its Cluster is paused: no machine is made, changed or given up.
    pub paused: bool,
}

/// What one machine needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachineStep {
    /// Nothing until something changes.
    Rest,
    /// Nothing before this time.
    RestUntil(Timestamp),
    /// Ask the provider what it has.
    Observe,
    /// Make the machine.
    Create,
    /// Write the power state to the record.
    RecordPower(Power),
    /// Write to the record whether its Node is Ready.
    RecordReady(bool),
    /// The Node is Ready for the first time: write Running and the time.
    Join,
    /// Give it room for so many pods, which is more than it has.
    Resize(u32),
    /// Go on with the release, from its first step.
    Release,
    /// Its user deleted it: past the point of no return, whatever it holds.
    BeginDraining,
    /// Take it apart.
    Drain,
}

/// The next step of a machine.
pub fn decide_machine(view: &MachineView, now: Timestamp) -> MachineStep {
    match decide_unpaused(view, now) {
        MachineStep::Create
        | MachineStep::Resize(_)
        | MachineStep::Release
        | MachineStep::BeginDraining
            if view.paused =>
        {
            MachineStep::Rest
        }
        step => step,
    }
}

fn decide_unpaused(view: &MachineView, now: Timestamp) -> MachineStep {
    if view.phase == MachinePhase::Draining {
        return MachineStep::Drain;
    }
    if view.deleting {
        return MachineStep::BeginDraining;
    }
    let ready = view.node == NodeView::Ours { ready: true };
    match (view.phase, view.provider) {
        (_, ProviderView::NotAsked) => MachineStep::Observe,
        (MachinePhase::Pending, ProviderView::Absent) => match pending_retry(view.retry_at, now) {
            Some(at) => MachineStep::RestUntil(at),
            None => MachineStep::Create,
        },
        (MachinePhase::Pending, ProviderView::Present(power)) if ready && !power.is_down() => {
            MachineStep::Join
        }
        (phase, provider) => match provider.power() {
            Some(power) if power != view.recorded_power => MachineStep::RecordPower(power),
            _ if provider.is_down() => MachineStep::Rest,
            _ => decide_up(phase, ready, view, now),
        },
    }
}

/// The next step of a machine that is up and whose power state is recorded.
fn decide_up(phase: MachinePhase, ready: bool, view: &MachineView, now: Timestamp) -> MachineStep {
    match phase {
        MachinePhase::Releasing => MachineStep::Release,
        MachinePhase::Running if view.recorded_ready != Some(ready) => {
            MachineStep::RecordReady(ready)
        }
        MachinePhase::Running => decide_room(view, now),
        _ => MachineStep::Rest,
    }
}

/// A machine keeps the room that it was made with; a larger number is applied
/// to it, a smaller one never: its kubelet would refuse pods that run. One
/// that has not joined yet is given more after that.
fn decide_room(view: &MachineView, now: Timestamp) -> MachineStep {
    if view.wanted_pods_per_node <= view.pods_per_node {
        return MachineStep::Rest;
    }
    match pending_retry(view.resize_retry_at, now) {
        Some(at) => MachineStep::RestUntil(at),
        None => MachineStep::Resize(view.wanted_pods_per_node),
    }
}

/// Whether the reason to remove a machine still holds by a live read of what
/// it rests on: a machine that is down must be down, a Node that vanished or
/// never came must not be there.
pub fn removal_holds(reason: &Reason, provider: ProviderView, node: NodeView) -> bool {
    match reason {
        Reason::MachineLost { .. }
        | Reason::LostBeforeJoin { .. }
        | Reason::StoppedWithoutWork { .. }
        | Reason::PlaceNeeded { .. }
        | Reason::StoppedWhileLeaving { .. } => provider.is_down(),
        Reason::JoinDeadlinePassed { .. } => node != NodeView::Ours { ready: true },
        Reason::NodeVanished { .. } => !matches!(node, NodeView::Ours { .. }),
        Reason::StoppedWithCluster { .. } => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::MachineName;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;
    const READY: NodeView = NodeView::Ours { ready: true };
    const UP: ProviderView = ProviderView::Present(Power::Running);
    const DOWN: ProviderView = ProviderView::Present(Power::Error);

    fn view(phase: MachinePhase, provider: ProviderView, node: NodeView) -> MachineView {
        MachineView {
            phase,
            deleting: false,
            recorded_power: Power::Running,
            recorded_ready: Some(node == READY),
            provider,
            node,
            retry_at: None,
            pods_per_node: 8,
            wanted_pods_per_node: 8,
            resize_retry_at: None,
            paused: false,
        }
    }

    fn check(view: MachineView, step: MachineStep) {
        assert_eq!(decide_machine(&view, NOW), step, "{view:?}");
    }

    #[test]
    fn provider_is_asked_before_anything_is_made_or_released() {
        for phase in [
            MachinePhase::Pending,
            MachinePhase::Running,
            MachinePhase::Releasing,
        ] {
            for node in [NodeView::Absent, READY, NodeView::Foreign] {
                check(
                    view(phase, ProviderView::NotAsked, node),
                    MachineStep::Observe,
                );
            }
        }
    }

    #[test]
    fn pending_machine_is_made_once_and_joins_by_its_own_node_alone() {
        use MachinePhase::Pending;
        check(
            view(Pending, ProviderView::Absent, NodeView::Absent),
            MachineStep::Create,
        );
        check(view(Pending, UP, NodeView::Absent), MachineStep::Rest);
        check(
            view(Pending, UP, NodeView::Ours { ready: false }),
            MachineStep::Rest,
        );
        check(view(Pending, UP, NodeView::Foreign), MachineStep::Rest);
        check(view(Pending, UP, READY), MachineStep::Join);
        check(
            view(Pending, DOWN, READY),
            MachineStep::RecordPower(Power::Error),
        );
    }

    #[test]
    fn of_a_paused_cluster_no_machine_is_made_changed_or_given_up() {
        let paused = |view| MachineView {
            paused: true,
            ..view
        };
        let pending = view(
            MachinePhase::Pending,
            ProviderView::Absent,
            NodeView::Absent,
        );
        check(paused(pending), MachineStep::Rest);
        check(
            paused(view(MachinePhase::Releasing, UP, READY)),
            MachineStep::Rest,
        );
        let small = MachineView {
            wanted_pods_per_node: 9,
            ..view(MachinePhase::Running, UP, READY)
        };
        check(paused(small), MachineStep::Rest);
        let deleted = MachineView {
            deleting: true,
            ..view(MachinePhase::Running, UP, READY)
        };
        check(paused(deleted), MachineStep::Rest);
        // What is past the point of no return is not left half done.
        check(
            paused(view(MachinePhase::Draining, UP, READY)),
            MachineStep::Drain,
        );
    }

    #[test]
    fn failed_creation_waits_for_its_time() {
        let at = NOW + jiff::SignedDuration::from_secs(5);
        let late = MachineView {
            retry_at: Some(at),
            ..view(
                MachinePhase::Pending,
                ProviderView::Absent,
                NodeView::Absent,
            )
        };
        check(late, MachineStep::RestUntil(at));
        check(
            MachineView {
                retry_at: Some(NOW),
                ..late
            },
            MachineStep::Create,
        );
    }

    #[test]
    fn machine_that_its_provider_lost_is_recorded_as_destroyed_and_left_to_the_decision() {
        let lost = view(MachinePhase::Running, ProviderView::Absent, READY);
        check(lost, MachineStep::RecordPower(Power::Destroyed));
        check(
            MachineView {
                recorded_power: Power::Destroyed,
                ..lost
            },
            MachineStep::Rest,
        );
    }

    #[test]
    fn running_machine_rests_until_something_differs() {
        use MachinePhase::Running;
        check(view(Running, UP, READY), MachineStep::Rest);
        check(
            view(Running, DOWN, READY),
            MachineStep::RecordPower(Power::Error),
        );
        let unready = MachineView {
            recorded_ready: Some(true),
            ..view(Running, UP, NodeView::Absent)
        };
        check(unready, MachineStep::RecordReady(false));
    }

    #[test]
    fn larger_number_of_pods_is_applied_to_a_running_machine_and_a_smaller_one_is_not() {
        let wanting = |wanted, phase, provider| MachineView {
            wanted_pods_per_node: wanted,
            ..view(phase, provider, READY)
        };
        use MachinePhase::{Draining, Pending, Releasing, Running};
        check(wanting(16, Running, UP), MachineStep::Resize(16));
        check(wanting(8, Running, UP), MachineStep::Rest);
        check(wanting(4, Running, UP), MachineStep::Rest);
        // What else is due comes first.
        check(wanting(16, Pending, UP), MachineStep::Join);
        check(wanting(16, Releasing, UP), MachineStep::Release);
        check(wanting(16, Draining, UP), MachineStep::Drain);
        check(
            wanting(16, Running, DOWN),
            MachineStep::RecordPower(Power::Error),
        );
    }

    #[test]
    fn machine_that_could_not_be_given_more_room_is_tried_again_at_its_time() {
        let at = NOW + jiff::SignedDuration::from_secs(5);
        let failed = MachineView {
            wanted_pods_per_node: 16,
            resize_retry_at: Some(at),
            ..view(MachinePhase::Running, UP, READY)
        };
        check(failed, MachineStep::RestUntil(at));
        assert_eq!(decide_machine(&failed, at), MachineStep::Resize(16));
        let enough = MachineView {
            wanted_pods_per_node: 8,
            ..failed
        };
        check(enough, MachineStep::Rest);
    }

    #[test]
    fn releasing_machine_goes_on_unless_it_is_down() {
        use MachinePhase::Releasing;
        check(view(Releasing, UP, READY), MachineStep::Release);
        check(view(Releasing, UP, NodeView::Absent), MachineStep::Release);
        let down = MachineView {
            recorded_power: Power::Error,
            ..view(Releasing, DOWN, READY)
        };
        check(down, MachineStep::Rest);
    }

    #[test]
    fn deleted_record_goes_straight_to_draining_from_every_phase() {
        use MachinePhase::{Pending, Releasing, Running};
        for phase in [Pending, Running, Releasing] {
            for provider in [ProviderView::NotAsked, ProviderView::Absent, UP, DOWN] {
                let deleted = MachineView {
                    deleting: true,
                    ..view(phase, provider, READY)
                };
                check(deleted, MachineStep::BeginDraining);
            }
        }
    }

    #[test]
    fn draining_machine_is_taken_apart_whatever_else_is_true() {
        for deleting in [false, true] {
            for provider in [ProviderView::NotAsked, ProviderView::Absent, UP, DOWN] {
                let draining = MachineView {
                    deleting,
                    ..view(MachinePhase::Draining, provider, READY)
                };
                check(draining, MachineStep::Drain);
            }
        }
    }

    #[test]
    fn machine_is_removed_only_while_the_reason_still_holds() {
        let machine = MachineName::new("c-node1");
        let lost = Reason::MachineLost {
            machine: machine.clone(),
            power: Power::Error,
        };
        assert!(removal_holds(&lost, DOWN, READY));
        assert!(removal_holds(&lost, ProviderView::Absent, READY));
        assert!(!removal_holds(&lost, UP, NodeView::Absent));
        assert!(!removal_holds(
            &lost,
            ProviderView::NotAsked,
            NodeView::Absent
        ));

        let vanished = Reason::NodeVanished {
            machine: machine.clone(),
        };
        assert!(removal_holds(&vanished, UP, NodeView::Absent));
        assert!(removal_holds(&vanished, UP, NodeView::Foreign));
        assert!(!removal_holds(
            &vanished,
            UP,
            NodeView::Ours { ready: false }
        ));

        let deadline = crate::scale::JOIN_DEADLINE;
        let late = Reason::JoinDeadlinePassed {
            machine,
            created: NOW,
            deadline,
        };
        assert!(removal_holds(&late, UP, NodeView::Ours { ready: false }));
        assert!(!removal_holds(&late, UP, READY));

        assert!(!removal_holds(
            &Reason::ControlPlaneReady,
            DOWN,
            NodeView::Absent
        ));
    }
}
