//! The fitting policy: how many machines of which class, for which pods, and
//! why, as kube-scheduler's default profile would bind them.
//!
//! [`plan`] is a pure function. Pods are reduced to what scheduling sees and
//! grouped by equality of exactly that ([`shape`]). The largest groups go
//! first, each to the first node that takes it and then to new machines; a pod
//! that waits for another one is tried again while that helps. Rules between
//! pods never look at pods: every distinct term is a counter by domain, kept
//! up as pods are placed. The work is bounded by counted steps, never by a
//! clock, so the same question has the same answer on every machine.
//!
//! Preferences never add a machine, and nothing is preempted.

pub mod amount;
mod choose;
mod counter;
mod explain;
mod fill;
pub mod misfit;
mod pack;
mod problem;
pub mod selector;
pub mod shape;
mod site;
mod state;
mod taint;
mod tally;

pub use choose::{Candidate, Choice};
pub use explain::{ClassMisfit, NodesMisfit, Unplaced};
pub use misfit::{Amount, Misfit, Obstacle};
pub use state::Placement;
pub use taint::{Effect, Taint, Toleration, TolerationComparison, TolerationOperator};

use shape::{ClassShape, Observed, PodGroup, PodShape};
use std::sync::Arc;

/// What would be done, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Waiting pods that are equal, the largest first.
    pub groups: Vec<PodGroup>,
    /// The group of each entry of the input.
    pub inputs: Vec<usize>,
    /// New machines, each with the place of its class in the input.
    pub machines: Vec<usize>,
    /// What goes where, in an order in which it can be bound. A node of a number
    /// below that of the nodes that are there is one of them; the others are
    /// the new machines.
    pub placements: Vec<Placement>,
    /// What is left.
    pub unplaced: Vec<Unplaced>,
    /// Why machines are of these classes.
    pub choices: Vec<Choice>,
    /// Looks at one node for one group.
    pub steps: u64,
}

impl Plan {
    /// New machines of a class.
    pub fn machines_of(&self, class: usize) -> usize {
        self.machines.iter().filter(|own| **own == class).count()
    }

    /// What is left of each entry of the input. Of equal pods the last ones
    /// are left.
    pub fn unplaced_by_input(&self, pods: &[PodGroup]) -> Vec<u32> {
        let mut left = vec![0; self.groups.len()];
        for unplaced in &self.unplaced {
            if let Some(left) = left.get_mut(unplaced.group) {
                *left = unplaced.count;
            }
        }
        let mut by_input: Vec<u32> = self
            .inputs
            .iter()
            .zip(pods)
            .rev()
            .map(|(group, input)| {
                let Some(left) = left.get_mut(*group) else {
                    return 0;
                };
                let own = input.count.min(*left);
                *left -= own;
                own
            })
            .collect();
        by_input.reverse();
        by_input
    }
}

/// Plans for what was observed.
pub fn plan(observed: &Observed) -> Plan {
    let problem = problem::Problem::new(observed);
    let (mut state, choices) = choose::place(&problem);
    let unplaced = explain::explain(&problem, &mut state);
    let mut placements = std::mem::take(&mut state.placements);
    for placement in &mut placements {
        if let Some(input) = problem.node_inputs.get(placement.node) {
            placement.node = *input;
        }
    }
    Plan {
        groups: groups(&problem),
        inputs: problem.inputs.clone(),
        machines: state.machines,
        placements,
        unplaced,
        choices,
        steps: state.steps,
    }
}

fn groups(problem: &problem::Problem<'_>) -> Vec<PodGroup> {
    let mut shapes: Vec<Option<Arc<PodShape>>> = vec![None; problem.groups.len()];
    for (input, group) in problem.observed.pods.iter().zip(&problem.inputs) {
        if let Some(shape) = shapes.get_mut(*group) {
            shape.get_or_insert_with(|| Arc::clone(&input.shape));
        }
    }
    let counted = shapes.into_iter().flatten().zip(&problem.groups);
    counted
        .map(|(shape, group)| PodGroup {
            shape,
            count: group.count,
        })
        .collect()
}

/// Whether a DaemonSet runs a pod of this shape on nodes of a class: the
/// DaemonSet controller looks at taints, selector and node affinity alone.
pub fn runs_on(shape: &PodShape, class: &ClassShape) -> bool {
    site::takes_daemon(shape, class)
}
