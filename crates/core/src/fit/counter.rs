//! What is counted of pods, so that no rule between pods ever looks at pods:
//! each distinct term of an affinity, an anti-affinity or a spread is one
//! counter by domain.

use super::problem::{Group, SpreadTie, Ties};
use super::selector::{LabelSelector, Labels, NodeSelector};
use super::shape::{Inclusion, Namespaces, Observed, PodShape, PodTerm, Spread};
use super::site::{Site, affinity_misfit};
use super::taint::{Toleration, untolerated};
use std::collections::{BTreeMap, BTreeSet};

/// What is counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What<'a> {
    /// Pods that all these terms select.
    Selected(&'a [PodTerm]),
    /// Pods that have this term.
    Holding(&'a PodTerm),
    /// Pods that a spread selects, on nodes that are domains for it.
    Spread(SpreadOver<'a>),
}

/// A spread as far as its counter goes; skew and least domains are the pod's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SpreadOver<'a> {
    namespace: &'a str,
    selector: Option<&'a LabelSelector>,
    /// Every key that the pod spreads over: a node counts with all of them.
    keys: Vec<&'a str>,
    affinity: Option<(&'a Labels, Option<&'a NodeSelector>)>,
    tolerations: Option<&'a [Toleration]>,
}

/// One counter.
#[derive(Debug)]
pub(super) struct Counter<'a> {
    what: What<'a>,
    /// Its topology key.
    pub(super) key: usize,
    /// For a spread: the sites and the keys of nodes that are domains.
    pub(super) domains: Option<Domains>,
}

/// Which nodes are domains of a spread.
#[derive(Debug)]
pub(super) struct Domains {
    pub(super) sites: Vec<bool>,
    pub(super) keys: Vec<usize>,
}

/// What terms see of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Profile<'a> {
    namespace: &'a str,
    labels: &'a Labels,
    terminating: bool,
}

impl<'a> Profile<'a> {
    pub(super) fn of(shape: &'a PodShape) -> Self {
        Self {
            namespace: &shape.namespace,
            labels: &shape.labels,
            terminating: shape.terminating,
        }
    }
}

/// All counters, and who raises them.
#[derive(Debug, Default)]
pub(super) struct Counters<'a> {
    pub(super) counters: Vec<Counter<'a>>,
    pub(super) keys: Vec<String>,
    /// Counters that a pod of a profile raises by what it is.
    pub(super) profiles: BTreeMap<Profile<'a>, Vec<usize>>,
    /// Counters that a pod raises by a term that it holds.
    pub(super) held: BTreeMap<&'a PodTerm, usize>,
}

/// Counters by what they count, while they are being found.
#[derive(Default)]
struct Found<'a> {
    places: BTreeMap<(What<'a>, &'a str), usize>,
}

impl<'a> Found<'a> {
    fn place(&mut self, what: What<'a>, key: &'a str) -> usize {
        let next = self.places.len();
        *self.places.entry((what, key)).or_insert(next)
    }
}

impl<'a> Counters<'a> {
    /// Finds every counter, and ties the groups to them.
    pub(super) fn of(observed: &'a Observed, groups: &mut [Group<'a>], sites: &[Site]) -> Self {
        let mut found = Found::default();
        for group in &mut *groups {
            if group.shape.obstacle.is_none() {
                group.ties = ties(group.shape, &mut found);
            }
        }
        let resident = || {
            let on_nodes = observed.nodes.iter().flat_map(|node| &node.pods);
            let on_classes = observed.classes.iter().flat_map(|class| &class.baseline);
            on_nodes.chain(on_classes).map(|group| &*group.shape)
        };
        let mut held = BTreeMap::new();
        let waiting: Vec<&'a PodShape> = groups.iter().map(|group| group.shape).collect();
        for shape in resident().chain(waiting.iter().copied()) {
            for term in &shape.anti_affinity {
                let place = found.place(What::Holding(term), &term.topology_key);
                held.insert(term, place);
            }
        }
        if found.places.is_empty() {
            return Self::default();
        }
        let mut all = Self::collect(found, observed, groups, sites);
        all.held = held;
        for shape in resident().chain(waiting) {
            let profile = Profile::of(shape);
            if !all.profiles.contains_key(&profile) {
                let fed = all.fed_by(profile, &observed.namespaces);
                all.profiles.insert(profile, fed);
            }
        }
        for group in groups {
            all.tie(group, &observed.namespaces);
        }
        all
    }

    fn collect(
        found: Found<'a>,
        observed: &'a Observed,
        groups: &[Group<'a>],
        sites: &[Site],
    ) -> Self {
        let used: BTreeSet<&str> = found
            .places
            .keys()
            .flat_map(|(what, key)| {
                let over = match what {
                    What::Spread(over) => over.keys.as_slice(),
                    What::Selected(_) | What::Holding(_) => &[],
                };
                over.iter().copied().chain([*key])
            })
            .collect();
        let keys: Vec<String> = used.iter().map(|key| (*key).to_owned()).collect();
        let place = |key: &str| keys.iter().position(|own| own == key).unwrap_or_default();
        let mut spreading: BTreeMap<SpreadOver<'a>, &'a PodShape> = BTreeMap::new();
        for group in groups {
            for spread in &group.shape.spread {
                spreading.insert(over(group.shape, spread), group.shape);
            }
        }
        let mut sorted: Vec<((What<'a>, &'a str), usize)> = found.places.into_iter().collect();
        sorted.sort_by_key(|(_, at)| *at);
        let counters = sorted.into_iter().map(|((what, key), _)| {
            let domains = match &what {
                What::Spread(over) => spreading.get(over).map(|shape| Domains {
                    sites: sites
                        .iter()
                        .map(|site| is_domain(shape, over, site, observed))
                        .collect(),
                    keys: over.keys.iter().map(|key| place(key)).collect(),
                }),
                What::Selected(_) | What::Holding(_) => None,
            };
            Counter {
                what,
                key: place(key),
                domains,
            }
        });
        Self {
            counters: counters.collect(),
            keys,
            ..Self::default()
        }
    }

    /// Counters that a pod raises by what it is.
    fn fed_by(&self, profile: Profile<'_>, namespaces: &Namespaces) -> Vec<usize> {
        let feeds = |counter: &Counter<'_>| match &counter.what {
            What::Selected(terms) => terms.iter().all(|term| selects(term, profile, namespaces)),
            What::Holding(_) => false,
            What::Spread(over) => {
                // An empty selector counts nobody, as in the scheduler.
                !profile.terminating
                    && profile.namespace == over.namespace
                    && over.selector.is_some_and(|selector| {
                        !selector.is_empty() && selector.matches(profile.labels)
                    })
            }
        };
        let all = self.counters.iter().enumerate();
        all.filter(|(_, counter)| feeds(counter))
            .map(|(at, _)| at)
            .collect()
    }

    fn tie(&self, group: &mut Group<'a>, namespaces: &Namespaces) {
        let profile = Profile::of(group.shape);
        let ties = &mut group.ties;
        ties.feeds = self.profiles.get(&profile).cloned().unwrap_or_default();
        let holds = group.shape.anti_affinity.iter();
        ties.feeds
            .extend(holds.filter_map(|term| self.held.get(term)).copied());
        ties.own = ties.repelled.len();
        let refusing = self.held.iter();
        ties.repelled.extend(
            refusing
                .filter(|(term, _)| refuses(term, profile, namespaces))
                .map(|(_, counter)| *counter),
        );
        ties.alone = ties
            .repelled
            .iter()
            .any(|counter| ties.feeds.contains(counter));
        ties.near_itself = group
            .shape
            .affinity
            .iter()
            .all(|term| selects(term, profile, namespaces));
    }
}

/// The ties that a group has by its own terms.
fn ties<'a>(shape: &'a PodShape, found: &mut Found<'a>) -> Ties {
    let mut ties = Ties::default();
    for term in &shape.anti_affinity {
        let only = std::slice::from_ref(term);
        ties.repelled
            .push(found.place(What::Selected(only), &term.topology_key));
    }
    for term in &shape.affinity {
        ties.near
            .push(found.place(What::Selected(&shape.affinity), &term.topology_key));
    }
    for spread in &shape.spread {
        let selects_itself = spread
            .selector
            .as_ref()
            .is_some_and(|selector| selector.matches(&shape.labels));
        ties.spread.push(SpreadTie {
            counter: found.place(What::Spread(over(shape, spread)), &spread.topology_key),
            max_skew: spread.max_skew,
            min_domains: spread.min_domains,
            itself: u32::from(selects_itself),
        });
    }
    ties
}

fn over<'a>(shape: &'a PodShape, spread: &'a Spread) -> SpreadOver<'a> {
    let mut keys: Vec<&str> = shape
        .spread
        .iter()
        .map(|spread| spread.topology_key.as_str())
        .collect();
    keys.sort_unstable();
    keys.dedup();
    let honors = |inclusion| inclusion == Inclusion::Honor;
    SpreadOver {
        namespace: &shape.namespace,
        selector: spread.selector.as_ref(),
        keys,
        affinity: honors(spread.node_affinity)
            .then_some((&shape.node_selector, shape.node_affinity.as_ref())),
        tolerations: honors(spread.node_taints).then_some(&shape.tolerations),
    }
}

fn is_domain(shape: &PodShape, over: &SpreadOver<'_>, site: &Site, observed: &Observed) -> bool {
    let by_affinity = over.affinity.is_none() || affinity_misfit(shape, site).is_none();
    let by_taints = over.tolerations.is_none_or(|tolerations| {
        untolerated(&site.taints, tolerations, observed.comparison).is_none()
    });
    by_affinity && by_taints
}

/// A term of a waiting pod selects a pod. Its selector of namespaces is
/// resolved to those that are known; an empty one is all of them.
fn selects(term: &PodTerm, profile: Profile<'_>, namespaces: &Namespaces) -> bool {
    let by_label = |selector: &LabelSelector| {
        selector.is_empty()
            || namespaces
                .get(profile.namespace)
                .is_some_and(|labels| selector.matches(labels))
    };
    let in_namespace = term.namespaces.contains(profile.namespace)
        || term.namespace_selector.as_ref().is_some_and(by_label);
    in_namespace && by_selector(term, profile)
}

/// A term of a pod that is there keeps a waiting one away. The labels of the
/// waiting pod's namespace are looked up; an unknown one has none.
fn refuses(term: &PodTerm, profile: Profile<'_>, namespaces: &Namespaces) -> bool {
    let none = Labels::new();
    let labels = namespaces.get(profile.namespace).unwrap_or(&none);
    let by_label = |selector: &LabelSelector| selector.matches(labels);
    let in_namespace = term.namespaces.contains(profile.namespace)
        || term.namespace_selector.as_ref().is_some_and(by_label);
    in_namespace && by_selector(term, profile)
}

fn by_selector(term: &PodTerm, profile: Profile<'_>) -> bool {
    term.selector
        .as_ref()
        .is_some_and(|selector| selector.matches(profile.labels))
}
