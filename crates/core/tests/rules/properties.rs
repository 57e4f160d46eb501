//! What holds in any world.

use crate::strategies::any_world;
use crate::world::World;
use neap_core::demand::is_work;
use neap_core::ids::MachineName;
use neap_core::machine::MachinePhase;
use neap_core::observation::Observation;
use neap_core::scale::{Action, Activity, Decision, State, decide};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn ordinals(decision: &Decision) -> Vec<u32> {
    let provisions = decision.actions.iter().filter_map(|action| match action {
        Action::Provision { ordinals } => Some(ordinals.clone()),
        _ => None,
    });
    provisions.flatten().collect()
}

/// Machines that are let go because they are not needed.
fn let_go(decision: &Decision) -> Vec<MachineName> {
    let machines = decision.actions.iter().flat_map(|action| match action {
        Action::Release { machine } => vec![machine.clone()],
        Action::Teardown { machines } => machines.clone(),
        _ => Vec::new(),
    });
    machines.collect()
}

fn undone(decision: &Decision) -> usize {
    let undo = |action: &&Action| matches!(action, Action::Undo { .. });
    decision.actions.iter().filter(undo).count()
}

fn named(action: &Action) -> Vec<MachineName> {
    match action {
        Action::Provision { .. } => Vec::new(),
        Action::Remove { machine, .. } | Action::Release { machine } | Action::Undo { machine } => {
            vec![machine.clone()]
        }
        Action::Teardown { machines } => machines.clone(),
    }
}

pub(crate) fn holds_work(observation: &Observation, machine: &MachineName) -> bool {
    let node = Some(machine.node());
    let mut pods = observation.pods.iter();
    pods.any(|(pod, _)| pod.node == node && is_work(pod))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn no_record_is_made_beyond_max_nodes(world in any_world()) {
        let made = ordinals(&world.decide()).len();
        let most = usize::try_from(world.policy.max_nodes).unwrap();
        prop_assert!(made == 0 || world.machines.len() + made <= most);
    }

    #[test]
    fn records_are_made_of_free_names_the_lowest_first(world in any_world()) {
        let observation = world.observe();
        let is_taken = |ordinal: u32| {
            let name = crate::world::node_name(ordinal);
            let record = observation.machines.iter().any(|machine| machine.ordinal == ordinal);
            let node = observation.nodes.iter().any(|node| node.name == name);
            let pod = observation.pods.iter().any(|(pod, _)| !pod.finished && pod.node.as_ref() == Some(&name));
            record || node || pod
        };
        let made = ordinals(&world.decide());
        let free: Vec<u32> = (1..).filter(|ordinal| !is_taken(*ordinal)).take(made.len()).collect();
        prop_assert_eq!(made, free);
    }

    #[test]
    fn no_busy_machine_is_let_go(world in any_world()) {
        let observation = world.observe();
        for machine in let_go(&world.decide()) {
            prop_assert!(!holds_work(&observation, &machine), "{machine} holds work");
        }
    }

    #[test]
    fn the_target_is_neither_overshot_nor_undershot(world in any_world()) {
        let decision = world.decide();
        let target = usize::try_from(decision.target).unwrap();
        let counted = usize::try_from(decision.counted).unwrap();
        let more = ordinals(&decision).len() + undone(&decision);
        let fewer = let_go(&decision).len();
        prop_assert!(more == 0 || counted + more <= target);
        prop_assert!(fewer == 0 || counted - fewer >= target);
        prop_assert!(decision.target <= world.policy.max_nodes);
    }

    #[test]
    fn of_a_paused_cluster_nothing_comes_or_goes(mut world in any_world()) {
        world.policy.activity = Activity::Pause;
        let decision = world.decide();
        prop_assert_eq!(decision.actions.len(), undone(&decision));
    }

    #[test]
    fn of_a_stopping_cluster_every_machine_goes_and_none_comes(mut world in any_world()) {
        world.policy.activity = Activity::Empty;
        let decision = world.decide();
        if decision.reason.code() != "ForeignRecord" {
            let removed: BTreeSet<_> = decision.actions.iter().flat_map(named).collect();
            for machine in &world.machines {
                let goes = machine.deleting || machine.phase == MachinePhase::Draining;
                prop_assert_eq!(removed.contains(&machine.name), !goes);
            }
        }
        let removes = |action: &Action| matches!(action, Action::Remove { .. });
        prop_assert!(decision.actions.iter().all(removes));
    }

    #[test]
    fn a_machine_is_named_in_one_action_at_most(world in any_world()) {
        let named: Vec<_> = world.decide().actions.iter().flat_map(named).collect();
        let different: BTreeSet<_> = named.iter().collect();
        prop_assert_eq!(named.len(), different.len());
        for machine in &world.machines {
            prop_assert!(!machine.deleting || !named.contains(&machine.name));
        }
    }

    #[test]
    fn what_is_removed_is_removed_before_what_is_undone_and_that_before_what_is_made(world in any_world()) {
        let rank = |action: &Action| match action {
            Action::Remove { reason, .. } if reason.code() != "PlaceNeeded" => 0,
            Action::Undo { .. } => 1,
            Action::Remove { .. } => 2,
            Action::Provision { .. } | Action::Release { .. } | Action::Teardown { .. } => 3,
        };
        let ranks: Vec<_> = world.decide().actions.iter().map(rank).collect();
        prop_assert!(ranks.is_sorted(), "{ranks:?}");
    }

    #[test]
    fn the_next_pass_is_later(world in any_world()) {
        let decision = world.decide();
        prop_assert!(decision.next.is_none_or(|next| next > world.now));
    }

    #[test]
    fn the_order_of_what_was_seen_does_not_matter(
        (world, (pods, workloads, nodes, machines)) in any_world().prop_flat_map(|world| {
            let Observation { pods, workloads, nodes, machines } = world.observe();
            let parts = (
                Just(pods).prop_shuffle(),
                Just(workloads).prop_shuffle(),
                Just(nodes).prop_shuffle(),
                Just(machines).prop_shuffle(),
            );
            (Just(world), parts)
        }),
    ) {
        let observation = Observation { pods, workloads, nodes, machines };
        let decision = decide(&observation, &world.state, world.now, &world.policy);
        prop_assert_eq!(decision, world.decide());
    }

    #[test]
    fn a_pass_repeated_with_what_it_remembered_decides_the_same(world in any_world()) {
        let first = world.decide();
        prop_assert_eq!(remembering(&world, &first).decide(), first);
    }

    #[test]
    fn time_changes_nothing_before_the_next_pass(world in any_world(), wait in 1..400_i64) {
        let decision = world.decide();
        // A stamp from the future is read anew in each pass until it is past.
        let mut later = remembering(&world, &decision);
        later.state = State {
            last_release: later.state.last_release.map(|at| at.min(world.now)),
            retry_at: later.state.retry_at.filter(|at| decision.next.is_some_and(|next| next <= *at)),
            ..later.state
        };
        for machine in &mut later.machines {
            machine.created = machine.created.min(world.now);
        }
        let decision = later.decide();
        if !decision.actions.is_empty() {
            // What it does changes more than time does.
            return Ok(());
        }
        let until = world.now + jiff::SignedDuration::from_secs(wait);
        later.now = decision.next.map_or(until, |next| {
            until.min(next - jiff::SignedDuration::from_nanos(1))
        });
        prop_assert_eq!(later.decide().actions, decision.actions);
    }

    #[test]
    fn a_decision_survives_being_stored(world in any_world()) {
        let decision = world.decide();
        let stored = serde_json::to_string(&decision).unwrap();
        prop_assert_eq!(serde_json::from_str::<Decision>(&stored).unwrap(), decision);
    }
}

/// The same world after what a pass remembered was written down.
fn remembering(world: &World, decision: &Decision) -> World {
    let mut world = world.clone();
    world.state.idle_since = decision.remember.idle_since;
    for machine in &mut world.machines {
        if let Some(idle_since) = decision.remember.machines.get(&machine.name) {
            machine.idle_since = *idle_since;
        }
    }
    world
}
