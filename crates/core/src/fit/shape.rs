//! Pods, nodes and classes, reduced to what scheduling sees. Owner and name of
//! a pod play no part, so that equal pods are one group with a count.

use super::amount::Resources;
use super::misfit::Obstacle;
use super::selector::{LabelSelector, Labels, NodeSelector};
use super::taint::{Taint, Toleration, TolerationComparison};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// Label with a value of its own on every node.
pub const HOSTNAME: &str = "kubernetes.io/hostname";

/// Protocol of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// The default.
    #[default]
    Tcp,
    /// Datagrams.
    Udp,
    /// Streams of messages.
    Sctp,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Sctp => "SCTP",
        })
    }
}

/// A port of the node that a pod takes for itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPort {
    /// Its number.
    pub port: u16,
    /// Its protocol.
    pub protocol: Protocol,
    /// The address of the node, or every one of them.
    pub address: Option<String>,
}

impl HostPort {
    /// Both cannot be had on one node.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        let same_address = match (&self.address, &other.address) {
            (Some(own), Some(other)) => own == other,
            _ => true,
        };
        self.port == other.port && self.protocol == other.protocol && same_address
    }
}

/// Pods that another one wants near, or keeps away from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodTerm {
    /// The label of nodes that says what is near.
    pub topology_key: String,
    /// Which pods; none when absent.
    pub selector: Option<LabelSelector>,
    /// Namespaces by name. A term that names none and has no selector of
    /// namespaces holds the pod's own.
    pub namespaces: BTreeSet<String>,
    /// Namespaces by label; none when absent.
    pub namespace_selector: Option<LabelSelector>,
}

/// Whether a property of nodes is looked at when domains are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Inclusion {
    /// Nodes that do not have it are no domain.
    Honor,
    /// It does not matter.
    Ignore,
}

/// A required spread over domains.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spread {
    /// The label of nodes that names the domain.
    pub topology_key: String,
    /// Pods that count, in the pod's own namespace; none when absent.
    pub selector: Option<LabelSelector>,
    /// Most pods above the emptiest domain.
    pub max_skew: u32,
    /// With fewer domains the emptiest counts as empty.
    pub min_domains: u32,
    /// Nodes that the pod's node affinity rejects.
    pub node_affinity: Inclusion,
    /// Nodes whose taints it does not tolerate.
    pub node_taints: Inclusion,
}

/// Everything about a pod that scheduling sees. Preferences are not part of
/// it: they never add a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodShape {
    /// Its effective request.
    pub requests: Resources,
    /// Its namespace.
    pub namespace: String,
    /// Its labels.
    pub labels: Labels,
    /// Labels that a node must have.
    pub node_selector: Labels,
    /// Required node affinity.
    pub node_affinity: Option<NodeSelector>,
    /// Each bound volume, or each class of a volume that is bound later, says
    /// on which nodes it can be had.
    pub volume_affinity: Vec<NodeSelector>,
    /// Taints that do not keep it away.
    pub tolerations: Vec<Toleration>,
    /// Ports of the node that it takes.
    pub host_ports: Vec<HostPort>,
    /// Pods that must be near.
    pub affinity: Vec<PodTerm>,
    /// Pods that must not be near.
    pub anti_affinity: Vec<PodTerm>,
    /// How it spreads.
    pub spread: Vec<Spread>,
    /// Features that its node must declare.
    pub features: BTreeSet<String>,
    /// It is being deleted.
    pub terminating: bool,
    /// Why no node at all would help it.
    pub obstacle: Option<Obstacle>,
}

/// Equal pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodGroup {
    /// What they are like.
    pub shape: Arc<PodShape>,
    /// How many.
    pub count: u32,
}

impl PodGroup {
    /// So many pods of a shape.
    pub fn new(shape: PodShape, count: u32) -> Self {
        Self {
            shape: Arc::new(shape),
            count,
        }
    }
}

/// What a node has for pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allocatable {
    /// Amounts.
    pub resources: Resources,
    /// Places.
    pub pods: u64,
}

/// A node that is there, with all unfinished pods on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeShape {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: Labels,
    /// Its taints. Unknown ones on a young node are temporary and left out by
    /// whoever observes it.
    pub taints: Vec<Taint>,
    /// It is cordoned.
    pub unschedulable: bool,
    /// What it has for pods.
    pub allocatable: Allocatable,
    /// Features that it declares.
    pub features: BTreeSet<String>,
    /// The pods on it.
    pub pods: Vec<PodGroup>,
}

/// Machines that can be made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassShape {
    /// Its name.
    pub name: String,
    /// Labels of its nodes; the host name of each comes on top.
    pub labels: Labels,
    /// Taints of its nodes.
    pub taints: Vec<Taint>,
    /// What its nodes have for pods, reserves taken off.
    pub allocatable: Allocatable,
    /// Features that its nodes declare.
    pub features: BTreeSet<String>,
    /// Pods that every node has from the start.
    pub baseline: Vec<PodGroup>,
    /// Most new machines of it; without a limit when absent.
    pub limit: Option<u32>,
    /// Price of one machine, in any unit that all classes share.
    pub price: u64,
    /// Among classes that fit the same, the higher one first.
    pub priority: i32,
}

impl ClassShape {
    /// A young machine of it, which counts as its template until it has joined.
    pub fn young(&self, name: impl Into<String>) -> NodeShape {
        let name = name.into();
        let mut labels = self.labels.clone();
        labels.insert(HOSTNAME.to_owned(), name.clone());
        NodeShape {
            name,
            labels,
            taints: self.taints.clone(),
            unschedulable: false,
            allocatable: self.allocatable.clone(),
            features: self.features.clone(),
            pods: self.baseline.clone(),
        }
    }
}

/// Labels of namespaces by name.
pub type Namespaces = BTreeMap<String, Labels>;

/// All that a plan is made from.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Pods that wait for a node.
    pub pods: Vec<PodGroup>,
    /// Nodes that are there, or on their way.
    pub nodes: Vec<NodeShape>,
    /// Machines that can be made.
    pub classes: Vec<ClassShape>,
    /// The namespaces that are known.
    pub namespaces: Namespaces,
    /// A gate of the scheduler.
    pub comparison: TolerationComparison,
}
