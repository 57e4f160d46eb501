//! The fitting policy against a checker that shares nothing with it but the
//! shapes, and as properties of any world.

#![expect(clippy::unwrap_used, reason = "tests")]

mod checker;
mod strategies;

use checker::{Place, World};
use neap_core::fit::shape::{ClassShape, Observed, PodGroup, PodShape};
use neap_core::fit::{Plan, plan};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Puts every pod of a plan where it says, in its order, and asks the checker
/// each time. Returns the world at the end.
fn replay<'a>(observed: &'a Observed, plan: &'a Plan) -> Result<World<'a>, TestCaseError> {
    let mut world = World::new(observed);
    let old = observed.nodes.len();
    for placement in &plan.placements {
        while world.nodes() <= placement.node {
            let class = plan.machines[world.nodes() - old];
            world.open(class);
        }
        let shape = &plan.groups[placement.group].shape;
        for _ in 0..placement.count {
            let refusal = world.refusal(shape, placement.node);
            prop_assert_eq!(refusal, None, "{:?} of {:?}", placement, plan);
            world.put(shape, placement.node);
        }
    }
    prop_assert_eq!(world.nodes(), old + plan.machines.len());
    Ok(world)
}

/// What a plan says without places in lists: machines by class, pods left.
fn summary(observed: &Observed, plan: &Plan) -> (BTreeMap<String, usize>, Vec<(PodShape, u32)>) {
    let mut machines = BTreeMap::new();
    for class in &plan.machines {
        *machines
            .entry(observed.classes[*class].name.clone())
            .or_default() += 1;
    }
    let left = plan.unplaced.iter().map(|unplaced| {
        let shape = &plan.groups[unplaced.group].shape;
        ((**shape).clone(), unplaced.count)
    });
    let mut left: Vec<_> = left.collect();
    left.sort();
    (machines, left)
}

proptest! {
    #[test]
    fn every_placement_satisfies_every_filter(observed in strategies::observed()) {
        let plan = plan(&observed);
        replay(&observed, &plan)?;
        let mut counts: Vec<u32> = vec![0; plan.groups.len()];
        for placement in &plan.placements {
            counts[placement.group] += placement.count;
        }
        for unplaced in &plan.unplaced {
            counts[unplaced.group] += unplaced.count;
        }
        let all: Vec<u32> = plan.groups.iter().map(|group| group.count).collect();
        prop_assert_eq!(counts, all);
        for (class, shape) in observed.classes.iter().enumerate() {
            prop_assert!(plan.machines_of(class) <= shape.limit.map_or(usize::MAX, |limit| limit as usize));
        }
    }

    #[test]
    fn what_is_left_fits_nowhere(observed in strategies::observed()) {
        let plan = plan(&observed);
        let mut world = replay(&observed, &plan)?;
        for unplaced in &plan.unplaced {
            let shape = &plan.groups[unplaced.group].shape;
            for node in 0..world.nodes() {
                prop_assert!(world.refusal(shape, node).is_some(), "{shape:?} fits on {node} of {plan:?}");
            }
            for (class, limit) in observed.classes.iter().map(|class| class.limit).enumerate() {
                let misfit = &unplaced.classes[class].misfit;
                if limit.is_some_and(|limit| plan.machines_of(class) >= limit as usize) {
                    continue;
                }
                world.open(class);
                let refusal = world.refusal(shape, world.nodes() - 1);
                world.close();
                prop_assert_eq!(refusal, Some(Place::of(misfit)), "{:?} on class {} of {:?}", shape, class, plan);
            }
        }
    }

    #[test]
    fn the_order_of_the_input_never_matters(
        (one, other) in strategies::observed().prop_flat_map(|observed| {
            let pods = Just(observed.pods.clone()).prop_shuffle();
            let nodes = Just(observed.nodes.clone()).prop_shuffle();
            let classes = Just(observed.classes.clone()).prop_shuffle();
            (Just(observed), pods, nodes, classes).prop_map(|(observed, pods, nodes, classes)| {
                let other = Observed { pods, nodes, classes, ..observed.clone() };
                (observed, other)
            })
        })
    ) {
        prop_assert_eq!(summary(&one, &plan(&one)), summary(&other, &plan(&other)));
    }

    #[test]
    fn pods_one_by_one_are_the_same_as_a_group(observed in strategies::observed()) {
        let mut single = observed.clone();
        single.pods = observed.pods.iter().flat_map(|group| {
            let one = PodGroup { count: 1, ..group.clone() };
            std::iter::repeat_n(one, group.count as usize)
        }).collect();
        prop_assert_eq!(summary(&observed, &plan(&observed)), summary(&single, &plan(&single)));
    }

    #[test]
    fn room_that_is_added_never_adds_machines_for_equal_pods(
        group in strategies::group(),
        class in strategies::class(),
        room in strategies::class(),
    ) {
        let mut shape = (*group.shape).clone();
        shape.spread.clear();
        shape.affinity.clear();
        let pods = vec![PodGroup::new(shape, group.count)];
        let class = ClassShape { limit: None, ..class };
        let before = Observed { pods, classes: vec![class], ..Observed::default() };
        let mut after = before.clone();
        after.nodes.push(room.young("room"));
        prop_assert!(plan(&after).machines.len() <= plan(&before).machines.len());
    }
}
