//! The nodes while pods are placed on them.

use super::problem::{Group, ITS_OWN, NOWHERE, Problem, ports};
use super::shape::HostPort;
use super::tally::Tally;
use std::collections::BTreeMap;

/// So many pods of a group on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Placement {
    /// The node: first those that are there, in the order of the input, then
    /// the new machines.
    pub node: usize,
    /// The group.
    pub group: usize,
    /// How many.
    pub count: u32,
}

/// What a node says to one more pod of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Room for so many at once.
    Room(u32),
    /// Not while other domains are emptier.
    Later,
    /// Not as long as pods only come.
    Never,
}

/// Nodes that are there, then new machines.
#[derive(Clone, Debug)]
pub(super) struct State {
    width: usize,
    keys: usize,
    free: Vec<i64>,
    domains: Vec<usize>,
    pub(super) sites: Vec<usize>,
    /// The class of each new machine, in the order in which they were opened.
    pub(super) machines: Vec<usize>,
    tallies: Vec<Tally>,
    counter_keys: Vec<usize>,
    next_domains: Vec<usize>,
    ports: BTreeMap<usize, Vec<HostPort>>,
    /// Pods that still wait, by group.
    pub(super) left: Vec<u32>,
    pub(super) placements: Vec<Placement>,
    /// New machines by class.
    pub(super) opened: Vec<u32>,
    pub(super) steps: u64,
}

impl State {
    pub(super) fn new(problem: &Problem<'_>) -> Self {
        let mut state = Self {
            width: problem.dimensions.len(),
            keys: problem.keys.len(),
            free: Vec::new(),
            domains: problem.node_domains.clone(),
            sites: problem.node_sites.clone(),
            machines: Vec::new(),
            tallies: vec![Tally::default(); problem.counters.len()],
            counter_keys: problem.counters.iter().map(|counter| counter.key).collect(),
            next_domains: problem.first_domains.clone(),
            ports: BTreeMap::new(),
            left: problem.groups.iter().map(|group| group.count).collect(),
            placements: Vec::new(),
            opened: vec![0; problem.templates.len()],
            steps: 0,
        };
        for (at, node) in problem.nodes.iter().enumerate() {
            state
                .free
                .extend(problem.free(&node.allocatable, &node.pods));
            let taken = ports(&node.pods);
            if !taken.is_empty() {
                state.ports.insert(at, taken);
            }
            state.join(problem, at);
            if problem.counters.is_empty() {
                continue;
            }
            for group in &node.pods {
                for counter in problem.fed_by(&group.shape) {
                    state.feed(problem, at, counter, group.count);
                }
            }
        }
        state
    }

    pub(super) fn nodes(&self) -> usize {
        self.sites.len()
    }

    /// Nodes that were there from the start.
    pub(super) fn old_nodes(&self) -> usize {
        self.sites.len() - self.machines.len()
    }

    pub(super) fn free(&self, node: usize) -> &[i64] {
        let start = node * self.width;
        self.free.get(start..start + self.width).unwrap_or(&[])
    }

    pub(super) fn domain(&self, node: usize, key: usize) -> usize {
        let place = node * self.keys + key;
        self.domains.get(place).copied().unwrap_or(NOWHERE)
    }

    pub(super) fn left(&self, group: usize) -> u32 {
        self.left.get(group).copied().unwrap_or_default()
    }

    pub(super) fn waiting(&self) -> u64 {
        self.left.iter().copied().map(u64::from).sum()
    }

    /// Ports that are taken on a node.
    pub(super) fn ports(&self, node: usize) -> &[HostPort] {
        self.ports.get(&node).map_or(&[], Vec::as_slice)
    }

    /// The node is a domain for this spread.
    fn counts_for(&self, problem: &Problem<'_>, node: usize, counter: usize) -> bool {
        let Some(domains) = problem
            .counters
            .get(counter)
            .and_then(|counter| counter.domains.as_ref())
        else {
            return true;
        };
        let site = self.sites.get(node).copied().unwrap_or(NOWHERE);
        domains.sites.get(site) == Some(&true)
            && domains
                .keys
                .iter()
                .all(|key| self.domain(node, *key) != NOWHERE)
    }

    fn spread_domains(&self, problem: &Problem<'_>, node: usize) -> Vec<(usize, usize)> {
        let counters = problem.counters.iter().enumerate();
        counters
            .filter(|(at, counter)| {
                counter.domains.is_some() && self.counts_for(problem, node, *at)
            })
            .map(|(at, counter)| (at, self.domain(node, counter.key)))
            .collect()
    }

    /// The node's domains count for spreads from now on.
    fn join(&mut self, problem: &Problem<'_>, node: usize) -> Vec<(usize, usize)> {
        if problem.counters.is_empty() {
            return Vec::new();
        }
        let mut joined = self.spread_domains(problem, node);
        joined.retain(|(counter, domain)| {
            self.tallies
                .get_mut(*counter)
                .is_some_and(|tally| tally.join(*domain))
        });
        joined
    }

    fn feed(&mut self, problem: &Problem<'_>, node: usize, counter: usize, pods: u32) {
        let Some(key) = problem.counters.get(counter).map(|counter| counter.key) else {
            return;
        };
        let domain = self.domain(node, key);
        if domain == NOWHERE || !self.counts_for(problem, node, counter) {
            return;
        }
        if let Some(tally) = self.tallies.get_mut(counter) {
            tally.add(domain, pods);
        }
    }

    /// Another machine of a class.
    pub(super) fn open(&mut self, problem: &Problem<'_>, class: usize) -> Opened {
        let node = self.nodes();
        let mut opened = Opened {
            node,
            class,
            joined: Vec::new(),
        };
        let Some(template) = problem.templates.get(class) else {
            return opened;
        };
        self.free.extend_from_slice(&template.free);
        for (domain, next) in template.domains.iter().zip(&mut self.next_domains) {
            self.domains.push(if *domain == ITS_OWN {
                *next += 1;
                *next - 1
            } else {
                *domain
            });
        }
        self.sites.push(template.site);
        self.machines.push(class);
        if let Some(machines) = self.opened.get_mut(class) {
            *machines += 1;
        }
        if !template.ports.is_empty() {
            self.ports.insert(node, template.ports.clone());
        }
        opened.joined = self.join(problem, node);
        for (counter, pods) in &template.feeds {
            self.feed(problem, node, *counter, *pods);
        }
        opened
    }

    /// Takes back the machine that was opened last and has got no pod.
    pub(super) fn close(&mut self, problem: &Problem<'_>, opened: &Opened) {
        let Some(template) = problem.templates.get(opened.class) else {
            return;
        };
        for (counter, pods) in &template.feeds {
            let key = problem.counters.get(*counter).map(|counter| counter.key);
            let domain = key.map_or(NOWHERE, |key| self.domain(opened.node, key));
            if domain != NOWHERE
                && self.counts_for(problem, opened.node, *counter)
                && let Some(tally) = self.tallies.get_mut(*counter)
            {
                tally.take_back(domain, *pods);
            }
        }
        for (counter, domain) in &opened.joined {
            if let Some(tally) = self.tallies.get_mut(*counter) {
                tally.leave(*domain);
            }
        }
        self.ports.remove(&opened.node);
        self.machines.pop();
        self.sites.pop();
        if let Some(machines) = self.opened.get_mut(opened.class) {
            *machines = machines.saturating_sub(1);
        }
        for (domain, next) in template.domains.iter().zip(&mut self.next_domains) {
            if *domain == ITS_OWN {
                *next -= 1;
            }
        }
        self.domains.truncate(opened.node * self.keys);
        self.free.truncate(opened.node * self.width);
    }

    /// Puts pods on a node that has room for them.
    pub(super) fn put(&mut self, problem: &Problem<'_>, group: usize, node: usize, pods: u32) {
        let Some(placed) = problem.groups.get(group) else {
            return;
        };
        let start = node * self.width;
        if let Some(free) = self.free.get_mut(start..start + self.width) {
            for (free, asked) in free.iter_mut().zip(&placed.requests) {
                *free -= asked.saturating_mul(i64::from(pods));
            }
        }
        if !placed.shape.host_ports.is_empty() {
            let ports = self.ports.entry(node).or_default();
            ports.extend(placed.shape.host_ports.iter().cloned());
        }
        for counter in &placed.ties.feeds {
            self.feed(problem, node, *counter, pods);
        }
        if let Some(left) = self.left.get_mut(group) {
            *left = left.saturating_sub(pods);
        }
        match self.placements.last_mut() {
            Some(last) if last.group == group && last.node == node => last.count += pods,
            _ => self.placements.push(Placement {
                node,
                group,
                count: pods,
            }),
        }
    }

    /// What a node says to one more pod of a group.
    pub(super) fn ask(&mut self, group: &Group<'_>, node: usize) -> Answer {
        self.steps += 1;
        let room = room(self.free(node), &group.requests);
        if room == 0 {
            return Answer::Never;
        }
        let site = self.sites.get(node).copied().unwrap_or(NOWHERE);
        if group.sites.get(site) != Some(&true) {
            return Answer::Never;
        }
        if group.is_free() {
            return Answer::Room(room);
        }
        let wanted = &group.shape.host_ports;
        let taken = self.ports(node);
        if wanted
            .iter()
            .any(|port| taken.iter().any(|other| port.conflicts_with(other)))
        {
            return Answer::Never;
        }
        self.ask_pods(group, node, if wanted.is_empty() { room } else { 1 })
    }

    /// The rules between pods.
    fn ask_pods(&self, group: &Group<'_>, node: usize, room: u32) -> Answer {
        let ties = &group.ties;
        if !self.has_near(group, node) {
            return Answer::Never;
        }
        let occupied = |counter: &usize| self.count_at(*counter, node) > Some(0);
        if ties.repelled.iter().any(occupied) {
            return Answer::Never;
        }
        let mut room = if ties.alone { 1 } else { room };
        for spread in &ties.spread {
            let Some(count) = self.count_at(spread.counter, node) else {
                return Answer::Never;
            };
            let minimum = self.minimum(spread.counter, spread.min_domains);
            if count.saturating_add(spread.itself) > minimum.saturating_add(spread.max_skew) {
                return Answer::Later;
            }
            if ties.feeds.contains(&spread.counter) {
                room = 1;
            }
        }
        Answer::Room(room)
    }

    /// The pods that it must be near are near, or it is the first of its kind.
    fn has_near(&self, group: &Group<'_>, node: usize) -> bool {
        let near = &group.ties.near;
        let mut all = true;
        for counter in near {
            match self.count_at(*counter, node) {
                None => return false,
                Some(count) => all &= count > 0,
            }
        }
        all || (group.ties.near_itself && self.is_first(near))
    }

    /// No pod that these count is anywhere.
    pub(super) fn is_first(&self, near: &[usize]) -> bool {
        let total = |counter: &usize| self.tallies.get(*counter).map_or(0, Tally::total);
        near.iter().all(|counter| total(counter) == 0)
    }

    /// Pods of a counter in the node's domain; none without the label.
    pub(super) fn count_at(&self, counter: usize, node: usize) -> Option<u32> {
        let key = *self.counter_keys.get(counter)?;
        let domain = self.domain(node, key);
        if domain == NOWHERE {
            return None;
        }
        Some(self.tallies.get(counter)?.count(domain))
    }

    pub(super) fn minimum(&self, counter: usize, min_domains: u32) -> u32 {
        self.tallies
            .get(counter)
            .map_or(0, |tally| tally.minimum(min_domains))
    }
}

/// A machine that was opened to see whether it helps.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) node: usize,
    class: usize,
    joined: Vec<(usize, usize)>,
}

/// How many fit into what is free.
fn room(free: &[i64], requests: &[i64]) -> u32 {
    let mut room = i64::from(u32::MAX);
    for (free, asked) in free.iter().zip(requests) {
        if *asked > 0 {
            if free < asked {
                return 0;
            }
            room = room.min(free / asked);
        }
    }
    u32::try_from(room).unwrap_or(u32::MAX)
}
