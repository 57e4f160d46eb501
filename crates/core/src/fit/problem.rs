//! The question, put into numbers: names become places in lists, so that the
//! search compares numbers alone.

use super::amount::{CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Resources};
use super::counter::{Counter, Counters, Profile};
use super::shape::{
    Allocatable, ClassShape, HOSTNAME, HostPort, NodeShape, Observed, PodGroup, PodShape, PodTerm,
};
use super::site::{Site, site_misfit, sites};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The domain of a node under a key that it has no label for.
pub(super) const NOWHERE: usize = usize::MAX;
/// The domain of a class's node under the host name: each has its own.
pub(super) const ITS_OWN: usize = usize::MAX - 1;

/// Equal pods that wait, and all that is known about them in advance.
#[derive(Debug)]
pub(super) struct Group<'a> {
    pub(super) shape: &'a PodShape,
    pub(super) count: u32,
    /// What one asks for, in the order of the dimensions.
    pub(super) requests: Vec<i64>,
    /// Whether nothing but room and other pods stands against it, by site.
    pub(super) sites: Vec<bool>,
    pub(super) ties: Ties,
}

impl Group<'_> {
    /// It neither sees other pods nor is seen by them.
    pub(super) fn is_free(&self) -> bool {
        self.ties.is_none() && self.shape.host_ports.is_empty()
    }
}

/// How a group depends on other pods, all of it as counters.
#[derive(Debug, Default)]
pub(super) struct Ties {
    /// Counters that one more pod of it raises.
    pub(super) feeds: Vec<usize>,
    /// Domains with anything in one of these are closed; the first `own` of
    /// them by its own wish.
    pub(super) repelled: Vec<usize>,
    pub(super) own: usize,
    /// One pod of it closes its domain for the next.
    pub(super) alone: bool,
    /// Each of these must have something in the domain.
    pub(super) near: Vec<usize>,
    /// It is what it looks for, so the first one needs nobody.
    pub(super) near_itself: bool,
    pub(super) spread: Vec<SpreadTie>,
}

impl Ties {
    fn is_none(&self) -> bool {
        self.feeds.is_empty()
            && self.repelled.is_empty()
            && self.near.is_empty()
            && self.spread.is_empty()
    }
}

/// One required spread of a group.
#[derive(Debug)]
pub(super) struct SpreadTie {
    pub(super) counter: usize,
    pub(super) max_skew: u32,
    pub(super) min_domains: u32,
    /// 1 when a pod of the group counts itself.
    pub(super) itself: u32,
}

/// A class, in numbers.
#[derive(Debug)]
pub(super) struct Template<'a> {
    pub(super) shape: &'a ClassShape,
    pub(super) site: usize,
    pub(super) free: Vec<i64>,
    pub(super) domains: Vec<usize>,
    /// Counters that its baseline raises on every new node.
    pub(super) feeds: Vec<(usize, u32)>,
    pub(super) ports: Vec<HostPort>,
}

/// The question.
#[derive(Debug)]
pub(super) struct Problem<'a> {
    pub(super) observed: &'a Observed,
    /// By name, so that the order of the input plays no part.
    pub(super) nodes: Vec<&'a NodeShape>,
    /// Where each of them is in the input.
    pub(super) node_inputs: Vec<usize>,
    /// The largest first.
    pub(super) groups: Vec<Group<'a>>,
    /// The group of each input.
    pub(super) inputs: Vec<usize>,
    /// Names of the resources that matter.
    pub(super) dimensions: Vec<String>,
    pub(super) keys: Vec<String>,
    pub(super) counters: Vec<Counter<'a>>,
    pub(super) profiles: BTreeMap<Profile<'a>, Vec<usize>>,
    pub(super) held: BTreeMap<&'a PodTerm, usize>,
    pub(super) sites: Vec<Site>,
    pub(super) templates: Vec<Template<'a>>,
    /// Site of each node that is there.
    pub(super) node_sites: Vec<usize>,
    /// Domains of each node that is there, key by key.
    pub(super) node_domains: Vec<usize>,
    /// The first domain that is free under each key.
    pub(super) first_domains: Vec<usize>,
}

impl<'a> Problem<'a> {
    pub(super) fn new(observed: &'a Observed) -> Self {
        let mut by_name: Vec<(usize, &NodeShape)> = observed.nodes.iter().enumerate().collect();
        by_name.sort_by_key(|(_, node)| node.name.as_str());
        let (node_inputs, nodes): (Vec<usize>, Vec<&NodeShape>) = by_name.into_iter().unzip();
        let (mut groups, inputs) = group(observed);
        let dimensions = dimensions(&groups);
        for group in &mut groups {
            group.requests = row(&dimensions, &group.shape.requests, 1);
        }
        let (sites, node_sites, class_sites) = sites(observed, &nodes, &groups);
        for group in &mut groups {
            let stands = |site: &Site| {
                group.shape.obstacle.is_none()
                    && site_misfit(group.shape, site, observed.comparison).is_none()
            };
            group.sites = sites.iter().map(stands).collect();
        }
        let Counters {
            counters,
            keys,
            profiles,
            held,
        } = Counters::of(observed, &mut groups, &sites);
        let (node_domains, class_domains, first_domains) = domains(observed, &nodes, &keys);
        let mut problem = Self {
            observed,
            nodes,
            node_inputs,
            groups,
            inputs,
            dimensions,
            keys,
            counters,
            profiles,
            held,
            sites,
            templates: Vec::new(),
            node_sites,
            node_domains,
            first_domains,
        };
        let templates = observed.classes.iter().zip(class_sites).zip(class_domains);
        problem.templates = templates
            .map(|((class, site), domains)| problem.template(class, site, domains))
            .collect();
        problem
    }

    fn template(&self, class: &'a ClassShape, site: usize, domains: Vec<usize>) -> Template<'a> {
        let mut feeds: BTreeMap<usize, u32> = BTreeMap::new();
        for group in &class.baseline {
            for counter in self.fed_by(&group.shape) {
                let fed = feeds.entry(counter).or_default();
                *fed = fed.saturating_add(group.count);
            }
        }
        Template {
            shape: class,
            site,
            free: self.free(&class.allocatable, &class.baseline),
            domains,
            feeds: feeds.into_iter().collect(),
            ports: ports(&class.baseline),
        }
    }

    /// What is left of a node, in the order of the dimensions.
    pub(super) fn free(&self, allocatable: &Allocatable, pods: &[PodGroup]) -> Vec<i64> {
        let mut free = row(&self.dimensions, &allocatable.resources, allocatable.pods);
        for group in pods {
            let taken = row(&self.dimensions, &group.shape.requests, 1);
            for (free, taken) in free.iter_mut().zip(taken) {
                *free = free.saturating_sub(taken.saturating_mul(i64::from(group.count)));
            }
        }
        free
    }

    /// Counters that a pod on a node raises.
    pub(super) fn fed_by(&self, shape: &'a PodShape) -> impl Iterator<Item = usize> {
        let seen = self.profiles.get(&Profile::of(shape));
        let holds = shape.anti_affinity.iter();
        seen.into_iter()
            .flatten()
            .copied()
            .chain(holds.filter_map(|term| self.held.get(term).copied()))
    }
}

/// Ports that pods take.
pub(super) fn ports(pods: &[PodGroup]) -> Vec<HostPort> {
    pods.iter()
        .flat_map(|group| group.shape.host_ports.iter().cloned())
        .collect()
}

/// Equal pods become one group; the largest first, and among equals by what
/// they are, so that the order of the input plays no part.
fn group(observed: &Observed) -> (Vec<Group<'_>>, Vec<usize>) {
    let mut found: BTreeMap<&PodShape, usize> = BTreeMap::new();
    let mut counted: Vec<(&PodShape, u32)> = Vec::new();
    let mut inputs = Vec::with_capacity(observed.pods.len());
    let mut last = 0;
    for input in &observed.pods {
        let shape = &*input.shape;
        // Equal pods mostly come one after the other.
        if counted.get(last).is_none_or(|(own, _)| *own != shape) {
            let next = counted.len();
            last = *found.entry(shape).or_insert(next);
            if last == next {
                counted.push((shape, 0));
            }
        }
        if let Some((_, count)) = counted.get_mut(last) {
            *count = count.saturating_add(input.count);
        }
        inputs.push(last);
    }
    let all: Vec<&Allocatable> = if observed.classes.is_empty() {
        observed
            .nodes
            .iter()
            .map(|node| &node.allocatable)
            .collect()
    } else {
        observed
            .classes
            .iter()
            .map(|class| &class.allocatable)
            .collect()
    };
    let most = |of: fn(&Resources) -> u64| {
        let amounts = all.iter().map(|allocatable| of(&allocatable.resources));
        u128::from(amounts.max().unwrap_or_default().max(1))
    };
    let (cpu, memory) = (most(|all| all.cpu_milli), most(|all| all.memory));
    let size = |shape: &PodShape| {
        u128::from(shape.requests.cpu_milli) * memory + u128::from(shape.requests.memory) * cpu
    };
    let mut sorted: Vec<(u128, usize)> = found
        .into_values()
        .map(|at| (counted.get(at).map_or(0, |(shape, _)| size(shape)), at))
        .collect();
    sorted.sort_by_key(|(size, _)| Reverse(*size));
    let mut places = vec![0; counted.len()];
    let mut groups = Vec::with_capacity(counted.len());
    for (_, at) in sorted {
        if let (Some(place), Some((shape, count))) = (places.get_mut(at), counted.get(at)) {
            *place = groups.len();
            groups.push(Group {
                shape,
                count: *count,
                requests: Vec::new(),
                sites: Vec::new(),
                ties: Ties::default(),
            });
        }
    }
    for input in &mut inputs {
        *input = places.get(*input).copied().unwrap_or_default();
    }
    (groups, inputs)
}

/// Places for pods, and every resource that a waiting pod asks for.
fn dimensions(groups: &[Group<'_>]) -> Vec<String> {
    let mut names = BTreeSet::new();
    for Group { shape, .. } in groups {
        let requests = &shape.requests;
        let fixed = [
            (CPU, requests.cpu_milli),
            (MEMORY, requests.memory),
            (EPHEMERAL_STORAGE, requests.ephemeral_storage),
        ];
        let scalars = requests.scalars.iter();
        names.extend(
            fixed
                .into_iter()
                .chain(scalars.map(|(name, amount)| (name.as_str(), *amount)))
                .filter(|(_, amount)| *amount > 0)
                .map(|(name, _)| name),
        );
    }
    std::iter::once(PODS)
        .chain(names)
        .map(str::to_owned)
        .collect()
}

/// An amount of one dimension.
pub(super) fn amount_of(resources: &Resources, dimension: &str) -> u64 {
    match dimension {
        CPU => resources.cpu_milli,
        MEMORY => resources.memory,
        EPHEMERAL_STORAGE => resources.ephemeral_storage,
        scalar => resources.scalars.get(scalar).copied().unwrap_or_default(),
    }
}

fn row(dimensions: &[String], resources: &Resources, pods: u64) -> Vec<i64> {
    let amount = |name: &String| match name.as_str() {
        PODS => pods,
        other => amount_of(resources, other),
    };
    dimensions
        .iter()
        .map(|name| i64::try_from(amount(name)).unwrap_or(i64::MAX))
        .collect()
}

/// Domains of all nodes and classes, and how many there are under each key.
fn domains(
    observed: &Observed,
    nodes: &[&NodeShape],
    keys: &[String],
) -> (Vec<usize>, Vec<Vec<usize>>, Vec<usize>) {
    let mut values: Vec<BTreeMap<&str, usize>> = vec![BTreeMap::new(); keys.len()];
    let mut node_domains = Vec::with_capacity(nodes.len() * keys.len());
    for node in nodes {
        for (key, values) in keys.iter().zip(&mut values) {
            node_domains.push(domain(node.labels.get(key), values));
        }
    }
    let mut class_domains = Vec::with_capacity(observed.classes.len());
    for class in &observed.classes {
        let mut row = Vec::with_capacity(keys.len());
        for (key, values) in keys.iter().zip(&mut values) {
            row.push(if key == HOSTNAME {
                ITS_OWN
            } else {
                domain(class.labels.get(key), values)
            });
        }
        class_domains.push(row);
    }
    let first = values.iter().map(BTreeMap::len).collect();
    (node_domains, class_domains, first)
}

fn domain<'a>(label: Option<&'a String>, values: &mut BTreeMap<&'a str, usize>) -> usize {
    let Some(value) = label else { return NOWHERE };
    let next = values.len();
    *values.entry(value).or_insert(next)
}
