//! What decides about a node beside its room and the pods on it.

use super::misfit::Misfit;
use super::problem::Group;
use super::selector::{Labels, NodeSelector};
use super::shape::{ClassShape, HOSTNAME, NodeShape, Observed, PodShape};
use super::taint::{Effect, Taint, TolerationComparison, untolerated};
use std::collections::{BTreeMap, BTreeSet};

/// Name of a node that is not made yet. No node and no host bears it.
const NEW_NODE: &str = "\u{0}new";

/// What decides about a node beside its room and its pods. Equal for most.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Site {
    pub(super) name: String,
    pub(super) labels: Labels,
    pub(super) taints: Vec<Taint>,
    pub(super) cordoned: bool,
    pub(super) features: BTreeSet<String>,
}

/// Nodes that no waiting pod can tell apart share a site.
pub(super) fn sites(
    observed: &Observed,
    nodes: &[&NodeShape],
    groups: &[Group<'_>],
) -> (Vec<Site>, Vec<usize>, Vec<usize>) {
    let mut looked_at: BTreeSet<&str> = BTreeSet::new();
    let mut names_nodes = false;
    for Group { shape, .. } in groups {
        looked_at.extend(shape.node_selector.keys().map(String::as_str));
        for selector in shape.node_affinity.iter().chain(&shape.volume_affinity) {
            looked_at.extend(selector.keys());
            names_nodes |= selector.names_nodes();
        }
    }
    let seen = |name: &str, labels: &Labels| -> (String, Labels) {
        let name = if names_nodes { name } else { "" };
        let labels = labels
            .iter()
            .filter(|(key, _)| looked_at.contains(key.as_str()))
            .map(|(key, value)| (key.clone(), value.clone()));
        (name.to_owned(), labels.collect())
    };
    let of_node = |node: &NodeShape| {
        let (name, labels) = seen(&node.name, &node.labels);
        Site {
            name,
            labels,
            taints: node.taints.clone(),
            cordoned: node.unschedulable,
            features: node.features.clone(),
        }
    };
    let of_class = |class: &ClassShape| {
        let (name, mut labels) = seen(NEW_NODE, &class.labels);
        if looked_at.contains(HOSTNAME) {
            labels.insert(HOSTNAME.to_owned(), NEW_NODE.to_owned());
        }
        Site {
            name,
            labels,
            taints: class.taints.clone(),
            cordoned: false,
            features: class.features.clone(),
        }
    };
    let mut places: BTreeMap<Site, usize> = BTreeMap::new();
    let mut place = |site: Site| {
        let next = places.len();
        *places.entry(site).or_insert(next)
    };
    let node_sites = nodes.iter().map(|node| place(of_node(node))).collect();
    let class_sites = observed
        .classes
        .iter()
        .map(|class| place(of_class(class)))
        .collect();
    let mut sites: Vec<(usize, Site)> = places.into_iter().map(|(site, at)| (at, site)).collect();
    sites.sort_by_key(|(at, _)| *at);
    let sites = sites.into_iter().map(|(_, site)| site).collect();
    (sites, node_sites, class_sites)
}

/// What stands against a pod on a site, whatever else is there; in the order
/// of the scheduler's filters as far as they look at nothing else.
pub(super) fn site_misfit(
    shape: &PodShape,
    site: &Site,
    comparison: TolerationComparison,
) -> Option<Misfit> {
    node_misfit(shape, site, comparison)
        .or_else(|| volume_misfit(shape, site))
        .or_else(|| feature_misfit(shape, site))
}

/// Filters that come before ports and resources.
pub(super) fn node_misfit(
    shape: &PodShape,
    site: &Site,
    comparison: TolerationComparison,
) -> Option<Misfit> {
    if site.cordoned {
        let cordon = Taint {
            key: "node.kubernetes.io/unschedulable".to_owned(),
            value: String::new(),
            effect: Effect::NoSchedule,
        };
        if untolerated(&[cordon], &shape.tolerations, comparison).is_some() {
            return Some(Misfit::Cordoned);
        }
    }
    if let Some(taint) = untolerated(&site.taints, &shape.tolerations, comparison) {
        return Some(Misfit::Taint(taint.clone()));
    }
    affinity_misfit(shape, site)
}

/// Node selector and node affinity.
pub(super) fn affinity_misfit(shape: &PodShape, site: &Site) -> Option<Misfit> {
    for (key, wanted) in &shape.node_selector {
        let found = site.labels.get(key);
        if found != Some(wanted) {
            return Some(Misfit::NodeSelector {
                key: key.clone(),
                wanted: wanted.clone(),
                found: found.cloned(),
            });
        }
    }
    let affinity = shape.node_affinity.as_ref()?;
    (!affinity.matches(&site.name, &site.labels)).then_some(Misfit::NodeAffinity {
        terms: affinity.terms.len(),
    })
}

/// Volumes that cannot be had there.
pub(super) fn volume_misfit(shape: &PodShape, site: &Site) -> Option<Misfit> {
    let had = |volume: &NodeSelector| volume.matches(&site.name, &site.labels);
    (!shape.volume_affinity.iter().all(had)).then_some(Misfit::Volume)
}

/// Features that the node does not declare.
pub(super) fn feature_misfit(shape: &PodShape, site: &Site) -> Option<Misfit> {
    let missing = shape.features.difference(&site.features).next()?;
    Some(Misfit::Feature {
        feature: missing.clone(),
    })
}

/// Whether the DaemonSet controller makes a pod on nodes of a class.
pub(super) fn takes_daemon(shape: &PodShape, class: &ClassShape) -> bool {
    let mut labels = class.labels.clone();
    labels.insert(HOSTNAME.to_owned(), NEW_NODE.to_owned());
    let site = Site {
        name: NEW_NODE.to_owned(),
        labels,
        taints: class.taints.clone(),
        cordoned: false,
        features: class.features.clone(),
    };
    node_misfit(shape, &site, TolerationComparison::Off).is_none()
}
