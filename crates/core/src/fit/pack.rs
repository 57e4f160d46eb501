//! A tighter packing than the order of size gives: each machine is filled with
//! what suits its rest best, so that CPU, memory and places run out together.

use super::fill::{MOST_STEPS, STEPS_OF_MACHINE, Source, Which, fill, fill_all, may_open};
use super::problem::Problem;
use super::state::State;

/// Parts of one whole node that shares are counted in.
const WHOLE: i64 = 1 << 20;

/// Tries to need fewer machines of a class than `placed` does, with the same
/// pods placed; `start` is the state before it.
pub(super) fn tighten(
    problem: &Problem<'_>,
    start: &State,
    mut placed: State,
    class: usize,
) -> State {
    let opened = |state: &State| state.opened.get(class).copied().unwrap_or_default();
    if opened(&placed) <= least(problem, start, &placed, class) {
        return placed;
    }
    let mut tight = start.clone();
    tight.steps = placed.steps;
    fill_all(problem, &mut tight, Source::Class(class), Which::Tied);
    if opened(&tight) >= opened(&placed) {
        placed.steps = tight.steps;
        return placed;
    }
    pack(problem, &mut tight, class, opened(&placed));
    fill_all(problem, &mut tight, Source::Class(class), Which::Tied);
    if tight.left == placed.left && opened(&tight) < opened(&placed) {
        tight
    } else {
        placed.steps = tight.steps;
        placed
    }
}

/// No plan that places the same needs fewer machines than this.
fn least(problem: &Problem<'_>, start: &State, placed: &State, class: usize) -> u32 {
    let Some(template) = problem.templates.get(class) else {
        return 0;
    };
    let mut most = i64::from(start.opened.get(class).copied().unwrap_or_default());
    let before = most;
    for (dimension, whole) in template.free.iter().enumerate() {
        let taken: i64 = problem
            .groups
            .iter()
            .zip(start.left.iter().zip(&placed.left))
            .map(|(group, (before, after))| {
                let asked = group.requests.get(dimension).copied().unwrap_or_default();
                asked.saturating_mul(i64::from(before.saturating_sub(*after)))
            })
            .fold(0, i64::saturating_add);
        let there: i64 = (0..start.nodes())
            .map(|node| start.free(node).get(dimension).copied().unwrap_or_default())
            .map(|free| free.max(0))
            .fold(0, i64::saturating_add);
        let rest = taken.saturating_sub(there).max(0);
        if *whole > 0 {
            most = most.max(before + rest / whole + i64::from(rest % whole > 0));
        }
    }
    u32::try_from(most).unwrap_or(u32::MAX)
}

/// A free group, with its request as shares of a node.
struct Item {
    group: usize,
    shares: Vec<i64>,
}

fn pack(problem: &Problem<'_>, state: &mut State, class: usize, bound: u32) {
    let Some(template) = problem.templates.get(class) else {
        return;
    };
    let old = state.old_nodes();
    // Nodes that are there are filled as ever: what is left on them is theirs.
    let mut items = Vec::new();
    for (at, group) in problem.groups.iter().enumerate() {
        if state.left(at) == 0 || !group.is_free() || group.shape.obstacle.is_some() {
            continue;
        }
        if old > 0 {
            fill(problem, state, at, group, Source::None);
        }
        if state.left(at) > 0 && group.sites.get(template.site) == Some(&true) {
            let shares = group.requests.iter().zip(&template.free);
            items.push(Item {
                group: at,
                shares: shares.map(|(asked, whole)| share(*asked, *whole)).collect(),
            });
        }
    }
    while items.iter().any(|item| state.left(item.group) > 0) {
        let opened = state.opened.get(class).copied().unwrap_or_default();
        let enough = opened >= bound || state.steps >= MOST_STEPS;
        if enough || !may_open(problem, state, class) {
            return;
        }
        let pattern = pattern(problem, state, &items, &template.free);
        let repeats = pattern
            .iter()
            .map(|(group, pods)| state.left(*group) / pods);
        let Some(repeats) = repeats.min() else { return };
        for _ in 0..repeats.max(1) {
            if !may_open(problem, state, class) {
                return;
            }
            let opened = state.open(problem, class);
            state.steps += STEPS_OF_MACHINE;
            for (group, pods) in &pattern {
                state.put(problem, *group, opened.node, *pods);
            }
        }
    }
}

fn share(asked: i64, whole: i64) -> i64 {
    if whole <= 0 {
        return 0;
    }
    let share = i128::from(asked) * i128::from(WHOLE) / i128::from(whole);
    i64::try_from(share).unwrap_or(WHOLE).min(WHOLE)
}

/// What one machine is filled with: again and again the group whose request
/// points the most to where room is, weighted by what runs out first.
fn pattern(
    problem: &Problem<'_>,
    state: &mut State,
    items: &[Item],
    whole: &[i64],
) -> Vec<(usize, u32)> {
    let weights = weights(state, items, whole.len());
    let mut free = whole.to_vec();
    let mut taken: Vec<u32> = vec![0; items.len()];
    loop {
        let pull: Vec<i64> = free
            .iter()
            .zip(whole)
            .zip(&weights)
            .map(|((free, whole), weight)| share(*free, *whole) * weight / WHOLE)
            .collect();
        let mut best: Option<(i64, usize)> = None;
        for (at, (item, taken)) in items.iter().zip(&taken).enumerate() {
            state.steps += 1;
            if state.left(item.group) <= *taken {
                continue;
            }
            let Some(group) = problem.groups.get(item.group) else {
                continue;
            };
            if free
                .iter()
                .zip(&group.requests)
                .any(|(free, asked)| free < asked)
            {
                continue;
            }
            let score = item.shares.iter().zip(&pull);
            let score: i64 = score.map(|(share, pull)| share * pull).sum();
            if best.is_none_or(|(most, _)| score > most) {
                best = Some((score, at));
            }
        }
        let Some((_, at)) = best else { break };
        let group = items
            .get(at)
            .and_then(|item| problem.groups.get(item.group));
        if let (Some(group), Some(taken)) = (group, taken.get_mut(at)) {
            *taken += 1;
            for (free, asked) in free.iter_mut().zip(&group.requests) {
                *free -= asked;
            }
        }
    }
    let filled = items.iter().zip(taken);
    filled
        .filter(|(_, pods)| *pods > 0)
        .map(|(item, pods)| (item.group, pods))
        .collect()
}

/// How much of all that still waits is in each dimension.
fn weights(state: &State, items: &[Item], dimensions: usize) -> Vec<i64> {
    let mut sums = vec![0_i128; dimensions];
    for item in items {
        let left = i128::from(state.left(item.group));
        for (sum, share) in sums.iter_mut().zip(&item.shares) {
            *sum += left * i128::from(*share);
        }
    }
    let all: i128 = sums.iter().sum::<i128>().max(1);
    sums.iter()
        .map(|sum| i64::try_from(sum * i128::from(WHOLE) / all).unwrap_or(WHOLE))
        .collect()
}
