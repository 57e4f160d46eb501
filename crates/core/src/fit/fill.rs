//! Places groups: the first node that takes them, then new machines.

use super::problem::{Group, Problem};
use super::state::{Answer, State};

/// Most steps of one plan: a look at one node for one group is one. It ends
/// the work on absurd inputs alone, and the same on every machine.
pub(super) const MOST_STEPS: u64 = 200_000_000;

/// Steps that a new machine counts for, since it takes memory too.
pub(super) const STEPS_OF_MACHINE: u64 = 100;

/// Where new machines may come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// From nowhere: the nodes that are there must do.
    None,
    /// From one class, up to its limit.
    Class(usize),
}

/// Whether a pass takes groups up that neither see nor are seen by others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// All of them.
    All,
    /// Only those with ties.
    Tied,
}

/// Places every group in order, and again as long as that helps: a pod may
/// wait for one that comes later.
pub(super) fn fill_all(problem: &Problem<'_>, state: &mut State, source: Source, which: Which) {
    let mut again = which;
    loop {
        let mut progress = false;
        for (at, group) in problem.groups.iter().enumerate() {
            let skipped = again == Which::Tied && group.is_free();
            if skipped || state.left(at) == 0 || group.shape.obstacle.is_some() {
                continue;
            }
            progress |= fill(problem, state, at, group, source);
        }
        // What is free of ties has been told no for good.
        again = Which::Tied;
        if !progress || state.waiting() == 0 || state.steps >= MOST_STEPS {
            return;
        }
    }
}

/// Places as many of a group as there is room for; true when any was placed.
pub(super) fn fill(
    problem: &Problem<'_>,
    state: &mut State,
    at: usize,
    group: &Group<'_>,
    source: Source,
) -> bool {
    let before = state.left(at);
    let mut cursor = 0;
    // The first node that may take one later, when emptier domains are not.
    let mut later: Option<usize> = None;
    let mut dead = Dead::of(group);
    loop {
        let left = state.left(at);
        if left == 0 || state.steps >= MOST_STEPS {
            break;
        }
        if cursor >= state.nodes() {
            let Source::Class(class) = source else { break };
            if !open_for(problem, state, group, class) {
                break;
            }
        }
        if dead.has(cursor) {
            cursor += 1;
            continue;
        }
        match state.ask(group, cursor) {
            Answer::Room(room) => {
                let minimum = minimum(state, group);
                state.put(problem, at, cursor, left.min(room));
                if self::minimum(state, group) > minimum
                    && let Some(first) = later.take()
                {
                    cursor = first;
                }
            }
            Answer::Later => {
                later = later.or(Some(cursor));
                cursor += 1;
            }
            Answer::Never => {
                dead.add(cursor);
                cursor += 1;
            }
        }
    }
    state.left(at) < before
}

/// Opens a machine that takes one of the group, or none.
fn open_for(problem: &Problem<'_>, state: &mut State, group: &Group<'_>, class: usize) -> bool {
    if !may_open(problem, state, class) {
        return false;
    }
    let stands = problem
        .templates
        .get(class)
        .is_some_and(|template| group.sites.get(template.site) == Some(&true));
    if !stands {
        return false;
    }
    let opened = state.open(problem, class);
    state.steps += STEPS_OF_MACHINE;
    if matches!(state.ask(group, opened.node), Answer::Room(_)) {
        return true;
    }
    state.close(problem, &opened);
    false
}

/// The class has machines left.
pub(super) fn may_open(problem: &Problem<'_>, state: &State, class: usize) -> bool {
    let opened = state.opened.get(class).copied().unwrap_or_default();
    problem
        .templates
        .get(class)
        .is_some_and(|template| template.shape.limit.is_none_or(|limit| opened < limit))
}

/// The emptiest domains of all its spreads together: when it rises, nodes that
/// had to wait may take one.
fn minimum(state: &State, group: &Group<'_>) -> u64 {
    let spread = group.ties.spread.iter();
    spread
        .map(|tie| u64::from(state.minimum(tie.counter, tie.min_domains)))
        .sum()
}

/// Nodes that will not take another one. Only a group that goes back to nodes
/// has to remember them.
struct Dead {
    nodes: Option<Vec<bool>>,
}

impl Dead {
    fn of(group: &Group<'_>) -> Self {
        Self {
            nodes: (!group.ties.spread.is_empty()).then(Vec::new),
        }
    }

    fn add(&mut self, node: usize) {
        if let Some(nodes) = &mut self.nodes {
            if nodes.len() <= node {
                nodes.resize(node + 1, false);
            }
            if let Some(dead) = nodes.get_mut(node) {
                *dead = true;
            }
        }
    }

    fn has(&self, node: usize) -> bool {
        self.nodes
            .as_ref()
            .is_some_and(|nodes| nodes.get(node) == Some(&true))
    }
}
