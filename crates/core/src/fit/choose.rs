//! Which class the new machines are of: the one that fits the most pods, then
//! by priority, least waste, price, name.

use super::amount::{CPU, MEMORY};
use super::fill::{Source, Which, fill_all};
use super::pack::tighten;
use super::problem::Problem;
use super::state::State;
use std::cmp::Reverse;

/// What a class would have come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its place in the input.
    pub class: usize,
    /// Pods that find a place with it.
    pub placed: u64,
    /// Machines that it takes.
    pub machines: u32,
    /// Unused CPU and memory of them, in millionths of both.
    pub waste_millionths: u64,
    /// What they cost.
    pub price: u64,
    /// The priority of the class.
    pub priority: i32,
}

/// One choice: the candidates, the best first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The first was chosen, the others lost.
    pub candidates: Vec<Candidate>,
}

/// Places what can be placed. Classes are tried one by one for all that still
/// waits; the best one is kept, and the rest goes to those that remain.
pub(super) fn place(problem: &Problem<'_>) -> (State, Vec<Choice>) {
    let mut state = State::new(problem);
    let mut choices = Vec::new();
    if problem.templates.is_empty() {
        fill_all(problem, &mut state, Source::None, Which::All);
        return (state, choices);
    }
    while state.waiting() > 0 {
        let mut best: Option<(Candidate, State)> = None;
        let mut candidates = Vec::new();
        // Every trial counts, not only the one that is kept.
        let mut steps = state.steps;
        for class in 0..problem.templates.len() {
            let mut tried = state.clone();
            tried.steps = steps;
            fill_all(problem, &mut tried, Source::Class(class), Which::All);
            let tried = tighten(problem, &state, tried, class);
            steps = tried.steps;
            let candidate = judge(problem, &state, &tried, class);
            candidates.push(candidate.clone());
            if best
                .as_ref()
                .is_none_or(|(other, _)| rank(problem, &candidate) < rank(problem, other))
            {
                best = Some((candidate, tried));
            }
        }
        let Some((chosen, next)) = best else { break };
        if chosen.placed == 0 {
            break;
        }
        state = next;
        state.steps = steps;
        if chosen.machines > 0 {
            candidates.sort_by(|one, other| rank(problem, one).cmp(&rank(problem, other)));
            choices.push(Choice { candidates });
        }
    }
    (state, choices)
}

/// The less the better.
fn rank<'p>(
    problem: &'p Problem<'_>,
    candidate: &Candidate,
) -> (Reverse<u64>, Reverse<i32>, u64, u64, Option<&'p str>, usize) {
    let shape = problem.templates.get(candidate.class);
    (
        Reverse(candidate.placed),
        Reverse(candidate.priority),
        candidate.waste_millionths,
        candidate.price,
        shape.map(|template| template.shape.name.as_str()),
        candidate.class,
    )
}

fn judge(problem: &Problem<'_>, before: &State, after: &State, class: usize) -> Candidate {
    let machines = after.machines.len() - before.machines.len();
    let mut unused = [0_i128; 2];
    let mut whole = [0_i128; 2];
    let Some(template) = problem.templates.get(class) else {
        return Candidate {
            class,
            placed: 0,
            machines: 0,
            waste_millionths: 0,
            price: 0,
            priority: 0,
        };
    };
    let of = |name: &str| problem.dimensions.iter().position(|own| own == name);
    for (place, name) in [CPU, MEMORY].into_iter().enumerate() {
        let Some(dimension) = of(name) else { continue };
        let capacity = template.free.get(dimension).copied().unwrap_or_default();
        let free = (before.nodes()..after.nodes())
            .map(|node| after.free(node).get(dimension).copied().unwrap_or_default())
            .map(i128::from)
            .sum();
        if let (Some(unused), Some(whole)) = (unused.get_mut(place), whole.get_mut(place)) {
            *unused = free;
            *whole = i128::from(capacity) * i128::try_from(machines).unwrap_or_default();
        }
    }
    let shares = unused.iter().zip(&whole);
    let millionths: i128 = shares
        .map(|(unused, whole)| unused * 1_000_000 / (*whole).max(1))
        .sum();
    let machines = u32::try_from(machines).unwrap_or(u32::MAX);
    Candidate {
        class,
        placed: before.waiting() - after.waiting(),
        machines,
        waste_millionths: u64::try_from(millionths / 2).unwrap_or_default(),
        price: template.shape.price.saturating_mul(u64::from(machines)),
        priority: template.shape.priority,
    }
}
