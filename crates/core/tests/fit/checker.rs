//! kube-scheduler's filters in the plainest form: for every question each pod
//! on each node is looked at anew.

use neap_core::fit::selector::Labels;
use neap_core::fit::shape::{
    HOSTNAME, HostPort, Inclusion, Namespaces, Observed, PodShape, PodTerm, Spread,
};
use neap_core::fit::{Effect, Misfit, Taint, Toleration, TolerationOperator};

/// The filter that refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Obstacle,
    Cordon,
    Taints,
    Affinity,
    Ports,
    Resources,
    Volumes,
    Spread,
    Pods,
    Features,
    Limit,
}

impl Place {
    /// The filter that a reason of a plan belongs to.
    pub(crate) fn of(misfit: &Misfit) -> Self {
        match misfit {
            Misfit::Obstacle(_) => Self::Obstacle,
            Misfit::Cordoned => Self::Cordon,
            Misfit::Taint(_) => Self::Taints,
            Misfit::NodeSelector { .. } | Misfit::NodeAffinity { .. } => Self::Affinity,
            Misfit::HostPort { .. } => Self::Ports,
            Misfit::Pods { .. } | Misfit::Resource { .. } | Misfit::NoResource { .. } => {
                Self::Resources
            }
            Misfit::Volume => Self::Volumes,
            Misfit::SpreadKey { .. } | Misfit::SpreadSkew { .. } => Self::Spread,
            Misfit::RefusedByPod { .. }
            | Misfit::AntiAffinity { .. }
            | Misfit::AffinityKey { .. }
            | Misfit::Affinity { .. } => Self::Pods,
            Misfit::Feature { .. } => Self::Features,
            Misfit::Limit { .. } | Misfit::Steps { .. } => Self::Limit,
        }
    }
}

struct Node<'a> {
    name: String,
    labels: Labels,
    taints: &'a [Taint],
    cordoned: bool,
    cpu: u64,
    memory: u64,
    places: u64,
    pods: Vec<&'a PodShape>,
}

pub(crate) struct World<'a> {
    observed: &'a Observed,
    nodes: Vec<Node<'a>>,
}

impl<'a> World<'a> {
    pub(crate) fn new(observed: &'a Observed) -> Self {
        let nodes = observed.nodes.iter().map(|node| Node {
            name: node.name.clone(),
            labels: node.labels.clone(),
            taints: &node.taints,
            cordoned: node.unschedulable,
            cpu: node.allocatable.resources.cpu_milli,
            memory: node.allocatable.resources.memory,
            places: node.allocatable.pods,
            pods: each(&node.pods),
        });
        Self {
            observed,
            nodes: nodes.collect(),
        }
    }

    pub(crate) fn nodes(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn open(&mut self, class: usize) {
        let class = &self.observed.classes[class];
        let name = format!("new-machine-{}", self.nodes.len());
        let mut labels = class.labels.clone();
        labels.insert(HOSTNAME.to_owned(), name.clone());
        self.nodes.push(Node {
            name,
            labels,
            taints: &class.taints,
            cordoned: false,
            cpu: class.allocatable.resources.cpu_milli,
            memory: class.allocatable.resources.memory,
            places: class.allocatable.pods,
            pods: each(&class.baseline),
        });
    }

    pub(crate) fn close(&mut self) {
        self.nodes.pop();
    }

    pub(crate) fn put(&mut self, shape: &'a PodShape, node: usize) {
        self.nodes[node].pods.push(shape);
    }

    /// The first filter that refuses, in the order of the scheduler.
    pub(crate) fn refusal(&self, pod: &PodShape, node: usize) -> Option<Place> {
        let node = &self.nodes[node];
        let refusals = [
            (Place::Obstacle, pod.obstacle.is_some()),
            (Place::Cordon, node.cordoned && !tolerates_cordon(pod)),
            (Place::Taints, !tolerates(pod, node)),
            (Place::Affinity, !likes(pod, node)),
            (Place::Ports, ports_clash(pod, node)),
            (Place::Resources, !has_room(pod, node)),
            (
                Place::Spread,
                !pod.spread
                    .iter()
                    .all(|spread| self.is_even(pod, spread, node)),
            ),
            (Place::Pods, !self.pods_agree(pod, node)),
        ];
        refusals
            .into_iter()
            .find(|(_, refused)| *refused)
            .map(|(place, _)| place)
    }

    fn is_even(&self, pod: &PodShape, spread: &Spread, node: &Node<'_>) -> bool {
        let Some(own) = node.labels.get(&spread.topology_key) else {
            return false;
        };
        let mut domains: Vec<(&String, u32)> = Vec::new();
        for other in &self.nodes {
            let all = pod
                .spread
                .iter()
                .all(|spread| other.labels.contains_key(&spread.topology_key));
            let by_affinity = spread.node_affinity == Inclusion::Ignore || likes(pod, other);
            let by_taints = spread.node_taints == Inclusion::Ignore || tolerates(pod, other);
            if !(all && by_affinity && by_taints) {
                continue;
            }
            let value = &other.labels[&spread.topology_key];
            let counted = other.pods.iter().filter(|counted| {
                counted.namespace == pod.namespace
                    && !counted.terminating
                    && spread.selector.as_ref().is_some_and(|selector| {
                        !selector.is_empty() && selector.matches(&counted.labels)
                    })
            });
            let counted = u32::try_from(counted.count()).unwrap();
            match domains.iter_mut().find(|(domain, _)| *domain == value) {
                Some((_, count)) => *count += counted,
                None => domains.push((value, counted)),
            }
        }
        let few = domains.len() < usize::try_from(spread.min_domains.max(1)).unwrap();
        let least = if few {
            0
        } else {
            domains.iter().map(|(_, count)| *count).min().unwrap()
        };
        let here = domains
            .iter()
            .find(|(domain, _)| *domain == own)
            .map_or(0, |(_, count)| *count);
        let itself = spread
            .selector
            .as_ref()
            .is_some_and(|selector| selector.matches(&pod.labels));
        here + u32::from(itself) <= least + spread.max_skew
    }

    fn pods_agree(&self, pod: &PodShape, node: &Node<'_>) -> bool {
        let names = &self.observed.namespaces;
        let together = |other: &Node<'_>, key: &str| {
            other.labels.contains_key(key) && other.labels.get(key) == node.labels.get(key)
        };
        let wanted_by_all =
            |other: &PodShape| pod.affinity.iter().all(|term| wants(term, other, names));
        if !pod.affinity.is_empty() {
            let labelled = pod
                .affinity
                .iter()
                .all(|term| node.labels.contains_key(&term.topology_key));
            let near = pod.affinity.iter().all(|term| {
                self.nodes.iter().any(|other| {
                    together(other, &term.topology_key)
                        && other.pods.iter().any(|pod| wanted_by_all(pod))
                })
            });
            let anywhere = self.nodes.iter().any(|other| {
                pod.affinity
                    .iter()
                    .any(|term| other.labels.contains_key(&term.topology_key))
                    && other.pods.iter().any(|pod| wanted_by_all(pod))
            });
            if !labelled || !(near || (!anywhere && wanted_by_all(pod))) {
                return false;
            }
        }
        self.nodes.iter().all(|other| {
            other.pods.iter().all(|there| {
                let refused = pod
                    .anti_affinity
                    .iter()
                    .any(|term| together(other, &term.topology_key) && wants(term, there, names));
                let refuses = there.anti_affinity.iter().any(|term| {
                    together(other, &term.topology_key) && keeps_away(term, pod, names)
                });
                !refused && !refuses
            })
        })
    }
}

fn each(groups: &[neap_core::fit::shape::PodGroup]) -> Vec<&PodShape> {
    let pods = groups.iter().flat_map(|group| {
        std::iter::repeat_n(&*group.shape, usize::try_from(group.count).unwrap())
    });
    pods.collect()
}

fn tolerates(pod: &PodShape, node: &Node<'_>) -> bool {
    node.taints
        .iter()
        .filter(|taint| taint.effect.is_hard())
        .all(|taint| {
            pod.tolerations
                .iter()
                .any(|toleration| covers(toleration, taint))
        })
}

fn tolerates_cordon(pod: &PodShape) -> bool {
    let cordon = Taint {
        key: "node.kubernetes.io/unschedulable".to_owned(),
        value: String::new(),
        effect: Effect::NoSchedule,
    };
    let mut tolerations = pod.tolerations.iter();
    tolerations.any(|toleration| covers(toleration, &cordon))
}

fn covers(toleration: &Toleration, taint: &Taint) -> bool {
    if toleration
        .effect
        .is_some_and(|effect| effect != taint.effect)
    {
        return false;
    }
    if !toleration.key.is_empty() && toleration.key != taint.key {
        return false;
    }
    match toleration.operator {
        TolerationOperator::Exists => true,
        TolerationOperator::Equal => toleration.value == taint.value,
        TolerationOperator::Gt | TolerationOperator::Lt => false,
    }
}

fn likes(pod: &PodShape, node: &Node<'_>) -> bool {
    let selected = pod
        .node_selector
        .iter()
        .all(|(key, value)| node.labels.get(key) == Some(value));
    let affinity = pod.node_affinity.as_ref();
    selected
        && affinity.is_none_or(|terms| {
            terms
                .terms
                .iter()
                .any(|term| term.matches(&node.name, &node.labels))
        })
}

fn ports_clash(pod: &PodShape, node: &Node<'_>) -> bool {
    let clash = |one: &HostPort, other: &HostPort| {
        one.port == other.port
            && one.protocol == other.protocol
            && (one.address.is_none() || other.address.is_none() || one.address == other.address)
    };
    let mut taken = node.pods.iter().flat_map(|there| &there.host_ports);
    taken.any(|taken| pod.host_ports.iter().any(|wanted| clash(wanted, taken)))
}

fn has_room(pod: &PodShape, node: &Node<'_>) -> bool {
    let cpu: u64 = node.pods.iter().map(|there| there.requests.cpu_milli).sum();
    let memory: u64 = node.pods.iter().map(|there| there.requests.memory).sum();
    let fits = |asked: u64, taken: u64, whole: u64| asked == 0 || asked + taken <= whole;
    fits(1, u64::try_from(node.pods.len()).unwrap(), node.places)
        && fits(pod.requests.cpu_milli, cpu, node.cpu)
        && fits(pod.requests.memory, memory, node.memory)
}

/// A waiting pod's term looks at a pod that is there.
fn wants(term: &PodTerm, other: &PodShape, names: &Namespaces) -> bool {
    let by_label = term.namespace_selector.as_ref().is_some_and(|selector| {
        let known = names.get(&other.namespace);
        selector.is_empty() || known.is_some_and(|labels| selector.matches(labels))
    });
    (term.namespaces.contains(&other.namespace) || by_label)
        && term
            .selector
            .as_ref()
            .is_some_and(|selector| selector.matches(&other.labels))
}

/// The term of a pod that is there looks at a waiting one.
fn keeps_away(term: &PodTerm, waiting: &PodShape, names: &Namespaces) -> bool {
    let labels = names.get(&waiting.namespace).cloned().unwrap_or_default();
    let by_label = term
        .namespace_selector
        .as_ref()
        .is_some_and(|selector| selector.matches(&labels));
    (term.namespaces.contains(&waiting.namespace) || by_label)
        && term
            .selector
            .as_ref()
            .is_some_and(|selector| selector.matches(&waiting.labels))
}
