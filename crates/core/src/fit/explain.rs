//! Why a group is left: for each class and for the nodes that are there, the
//! first filter that says no, with its numbers.

use super::amount::{CPU, PODS};
use super::fill::{MOST_STEPS, may_open};
use super::misfit::{Amount, Misfit};
use super::problem::{Group, NOWHERE, Problem};
use super::site::{feature_misfit, node_misfit, volume_misfit};
use super::state::State;
use std::collections::BTreeMap;

/// Why one class does not help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassMisfit {
    /// Its place in the input.
    pub class: usize,
    /// The first filter that says no.
    pub misfit: Misfit,
}

/// Why nodes that are there do not help; alike ones are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodesMisfit {
    /// How many nodes say no by this filter.
    pub nodes: u32,
    /// What the first of them says.
    pub misfit: Misfit,
}

/// Pods that found no place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unplaced {
    /// The group.
    pub group: usize,
    /// How many of it.
    pub count: u32,
    /// Why no class helps, in the order of the input.
    pub classes: Vec<ClassMisfit>,
    /// Why no node helps, the most common first.
    pub nodes: Vec<NodesMisfit>,
}

pub(super) fn explain(problem: &Problem<'_>, state: &mut State) -> Vec<Unplaced> {
    let mut unplaced = Vec::new();
    for (at, group) in problem.groups.iter().enumerate() {
        let count = state.left(at);
        if count == 0 {
            continue;
        }
        let classes = (0..problem.templates.len()).map(|class| ClassMisfit {
            class,
            misfit: of_class(problem, state, group, class),
        });
        unplaced.push(Unplaced {
            group: at,
            count,
            classes: classes.collect(),
            nodes: of_nodes(problem, state, group),
        });
    }
    unplaced
}

fn of_class(problem: &Problem<'_>, state: &mut State, group: &Group<'_>, class: usize) -> Misfit {
    let opened = state.open(problem, class);
    let misfit = of_node(problem, state, group, opened.node);
    state.close(problem, &opened);
    let limit = problem
        .templates
        .get(class)
        .and_then(|template| template.shape.limit);
    match (misfit, limit) {
        (Some(misfit), _) => misfit,
        (None, Some(limit)) if !may_open(problem, state, class) => Misfit::Limit { limit },
        (None, _) => Misfit::Steps { limit: MOST_STEPS },
    }
}

fn of_nodes(problem: &Problem<'_>, state: &State, group: &Group<'_>) -> Vec<NodesMisfit> {
    let mut by_code: BTreeMap<&'static str, NodesMisfit> = BTreeMap::new();
    for node in 0..state.old_nodes() {
        let misfit = of_node(problem, state, group, node);
        let misfit = misfit.unwrap_or(Misfit::Steps { limit: MOST_STEPS });
        by_code
            .entry(misfit.code())
            .or_insert(NodesMisfit { nodes: 0, misfit })
            .nodes += 1;
    }
    let mut all: Vec<NodesMisfit> = by_code.into_values().collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.nodes));
    all
}

/// The first filter that says no on a node.
fn of_node(problem: &Problem<'_>, state: &State, group: &Group<'_>, node: usize) -> Option<Misfit> {
    let shape = group.shape;
    if let Some(obstacle) = &shape.obstacle {
        return Some(Misfit::Obstacle(obstacle.clone()));
    }
    let site = problem.sites.get(*state.sites.get(node)?)?;
    node_misfit(shape, site, problem.observed.comparison)
        .or_else(|| {
            let taken = state.ports(node);
            let blocked = shape
                .host_ports
                .iter()
                .find(|port| taken.iter().any(|other| port.conflicts_with(other)))?;
            Some(Misfit::HostPort {
                port: blocked.port,
                protocol: blocked.protocol,
                address: blocked.address.clone(),
            })
        })
        .or_else(|| resources(problem, state, group, node))
        .or_else(|| volume_misfit(shape, site))
        .or_else(|| spread(problem, state, group, node))
        .or_else(|| pods(problem, state, group, node))
        .or_else(|| feature_misfit(shape, site))
}

fn resources(
    problem: &Problem<'_>,
    state: &State,
    group: &Group<'_>,
    node: usize,
) -> Option<Misfit> {
    let old = state.old_nodes();
    let (allocatable, baseline) = match node.checked_sub(old) {
        None => (&problem.nodes.get(node)?.allocatable, None),
        Some(machine) => {
            let class = problem
                .observed
                .classes
                .get(*state.machines.get(machine)?)?;
            (&class.allocatable, Some(&class.baseline))
        }
    };
    let whole = problem.free(allocatable, &[]);
    let without = baseline.map(|baseline| problem.free(allocatable, baseline));
    let free = state.free(node);
    for (dimension, name) in problem.dimensions.iter().enumerate() {
        let asked = group.requests.get(dimension).copied().unwrap_or_default();
        let free = free.get(dimension).copied().unwrap_or_default();
        if asked == 0 || free >= asked {
            continue;
        }
        let capacity = whole.get(dimension).copied().unwrap_or_default();
        let without = without.as_ref().and_then(|without| without.get(dimension));
        let overhead = without.map_or(0, |without| capacity - without);
        return Some(shortage(name, asked, free, capacity, overhead));
    }
    None
}

fn shortage(name: &str, asked: i64, free: i64, capacity: i64, overhead: i64) -> Misfit {
    let positive = |amount: i64| u64::try_from(amount).unwrap_or(0);
    let amount = |amount: i64| match name {
        CPU => Amount::Milli(positive(amount)),
        _ => Amount::Units(positive(amount)),
    };
    match name {
        PODS => Misfit::Pods {
            capacity: positive(capacity),
            overhead: positive(overhead),
        },
        _ if capacity == 0 => Misfit::NoResource {
            resource: name.to_owned(),
            asked: amount(asked),
        },
        _ => Misfit::Resource {
            resource: name.to_owned(),
            asked: amount(asked),
            free: amount(free),
            capacity: amount(capacity),
            overhead: amount(overhead),
        },
    }
}

fn key_of(problem: &Problem<'_>, counter: usize) -> String {
    let key = problem.counters.get(counter).map_or(NOWHERE, |c| c.key);
    problem.keys.get(key).cloned().unwrap_or_default()
}

fn spread(problem: &Problem<'_>, state: &State, group: &Group<'_>, node: usize) -> Option<Misfit> {
    group.ties.spread.iter().find_map(|tie| {
        let key = key_of(problem, tie.counter);
        let Some(count) = state.count_at(tie.counter, node) else {
            return Some(Misfit::SpreadKey { key });
        };
        let minimum = state.minimum(tie.counter, tie.min_domains);
        let over = count.saturating_add(tie.itself) > minimum.saturating_add(tie.max_skew);
        over.then_some(Misfit::SpreadSkew {
            key,
            count,
            minimum,
            max_skew: tie.max_skew,
        })
    })
}

fn pods(problem: &Problem<'_>, state: &State, group: &Group<'_>, node: usize) -> Option<Misfit> {
    let ties = &group.ties;
    let first = ties.near_itself && state.is_first(&ties.near);
    for counter in &ties.near {
        let key = || key_of(problem, *counter);
        match state.count_at(*counter, node) {
            None => return Some(Misfit::AffinityKey { key: key() }),
            Some(0) if !first => return Some(Misfit::Affinity { key: key() }),
            Some(_) => {}
        }
    }
    let occupied = |counter: &usize| state.count_at(*counter, node) > Some(0);
    let at = ties.repelled.iter().position(occupied)?;
    let key = key_of(problem, ties.repelled.get(at).copied().unwrap_or(NOWHERE));
    Some(if at < ties.own {
        Misfit::AntiAffinity { key }
    } else {
        Misfit::RefusedByPod { key }
    })
}
