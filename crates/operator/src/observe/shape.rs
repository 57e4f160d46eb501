//! Pods and Nodes as the fitting policy sees them.
//!
//! What the API server fills in when it takes an object is expected to be
//! there, except where filling it in twice changes nothing.

mod affinity;
mod quantities;

pub use quantities::with_text_quantities;

use affinity::{node_selector, pod_terms, spreads};
use k8s_openapi::api::core::v1::{
    Container, ContainerPort, Node, PodSpec, ResourceRequirements, Taint as WireTaint,
    Toleration as WireToleration,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;
use neap_core::fit::amount::{Amounts, InitContainer, PODS, PodRequest, Resources};
use neap_core::fit::selector::{Labels, NodeSelector};
use neap_core::fit::shape::{Allocatable, HostPort, NodeShape, PodShape, Protocol};
use neap_core::fit::{Effect, Obstacle, Taint, Toleration, TolerationOperator};
use neap_core::quantity::Quantity;
use std::collections::{BTreeMap, BTreeSet};

/// The scheduler whose rules are known.
const OUR_SCHEDULER: &str = "default-scheduler";

/// Feature that a pod with users of its own in the host's network needs.
const HOST_NETWORK_USERS: &str = "UserNamespacesHostNetworkSupport";

/// A field says something that the API server would refuse.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {why}")]
pub struct ObserveShapeError {
    /// Its path, from `spec` on.
    pub field: String,
    /// What is wrong with it.
    pub why: String,
}

impl ObserveShapeError {
    pub(crate) fn new(field: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            why: why.into(),
        }
    }

    /// The same, with the path to what was looked at.
    #[must_use]
    pub fn below(mut self, path: &str) -> Self {
        self.field = format!("{path}.{}", self.field);
        self
    }
}

/// What is known of a claim for a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimFacts {
    /// Bound, or bound once there is a pod: on these nodes, or on all.
    On(Option<NodeSelector>),
    /// Not bound, and it does not wait for a pod.
    Unbound,
}

/// Claims of the pod's namespace by name.
#[derive(Clone, Copy, Debug)]
pub enum Claims<'a> {
    /// Nobody has looked: every claim is had everywhere.
    Unknown,
    /// All that there are.
    Known(&'a BTreeMap<String, ClaimFacts>),
}

/// What becomes of a part that no API server would take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Malformed {
    /// It is an error.
    Refused,
    /// A term of a node affinity matches nothing and a toleration tolerates
    /// nothing, as in the scheduler.
    Empty,
}

/// What scheduling sees of a pod that somebody writes.
///
/// # Errors
/// When a field says what no API server would take.
pub fn observe_shape(
    namespace: &str,
    labels: &Labels,
    spec: &PodSpec,
    claims: Claims<'_>,
) -> Result<PodShape, ObserveShapeError> {
    read_shape(namespace, labels, spec, claims, Malformed::Refused)
}

/// What scheduling sees of a pod that is there. One that the scheduler cannot
/// read finds no place, and stands in nobody's way.
pub fn observe_waiting_shape(
    namespace: &str,
    labels: &Labels,
    spec: &PodSpec,
    claims: Claims<'_>,
) -> PodShape {
    read_shape(namespace, labels, spec, claims, Malformed::Empty).unwrap_or_else(|error| PodShape {
        namespace: namespace.to_owned(),
        labels: labels.clone(),
        obstacle: Some(Obstacle::Malformed {
            why: error.to_string(),
        }),
        ..PodShape::default()
    })
}

fn read_shape(
    namespace: &str,
    labels: &Labels,
    spec: &PodSpec,
    claims: Claims<'_>,
    malformed: Malformed,
) -> Result<PodShape, ObserveShapeError> {
    let affinity = spec.affinity.as_ref();
    let node_affinity = affinity
        .and_then(|affinity| affinity.node_affinity.as_ref())
        .and_then(|affinity| {
            affinity
                .required_during_scheduling_ignored_during_execution
                .as_ref()
        });
    let near = affinity
        .and_then(|affinity| affinity.pod_affinity.as_ref())
        .and_then(|affinity| {
            affinity
                .required_during_scheduling_ignored_during_execution
                .as_ref()
        });
    let apart = affinity
        .and_then(|affinity| affinity.pod_anti_affinity.as_ref())
        .and_then(|affinity| {
            affinity
                .required_during_scheduling_ignored_during_execution
                .as_ref()
        });
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    let (volume_affinity, missing) = volumes(spec, claims);
    Ok(PodShape {
        requests: Resources::of(&request(spec)?.effective()),
        namespace: namespace.to_owned(),
        labels: labels.clone(),
        node_selector: spec.node_selector.clone().unwrap_or_default(),
        node_affinity: node_affinity
            .map(|selector| {
                let path = format!("affinity.nodeAffinity.{REQUIRED}");
                node_selector(selector, &path, malformed)
            })
            .transpose()?,
        volume_affinity,
        tolerations: tolerations(spec.tolerations.as_deref().unwrap_or_default(), malformed)?,
        host_ports: host_ports(spec)?,
        affinity: pod_terms(
            near.map_or(&[], Vec::as_slice),
            namespace,
            labels,
            &format!("affinity.podAffinity.{REQUIRED}"),
        )?,
        anti_affinity: pod_terms(
            apart.map_or(&[], Vec::as_slice),
            namespace,
            labels,
            &format!("affinity.podAntiAffinity.{REQUIRED}"),
        )?,
        spread: spreads(spec, labels)?,
        features: features(spec),
        terminating: false,
        obstacle: obstacle(spec).or(missing),
    })
}

/// Why no node at all would help.
fn obstacle(spec: &PodSpec) -> Option<Obstacle> {
    let gates = spec.scheduling_gates.as_ref();
    if gates.is_some_and(|gates| !gates.is_empty()) {
        return Some(Obstacle::Gated);
    }
    if let Some(node) = spec.node_name.as_ref().filter(|name| !name.is_empty()) {
        return Some(Obstacle::PinnedToNode { node: node.clone() });
    }
    let foreign = |name: &&String| !name.is_empty() && *name != OUR_SCHEDULER;
    if let Some(scheduler) = spec.scheduler_name.as_ref().filter(foreign) {
        return Some(Obstacle::ForeignScheduler {
            scheduler: scheduler.clone(),
        });
    }
    let claim = spec.resource_claims.as_ref()?.first()?;
    Some(Obstacle::ResourceClaims {
        claim: claim.name.clone(),
    })
}

fn volumes(spec: &PodSpec, claims: Claims<'_>) -> (Vec<NodeSelector>, Option<Obstacle>) {
    let Claims::Known(known) = claims else {
        return (Vec::new(), None);
    };
    let mut selectors = BTreeSet::new();
    let mut obstacle = None;
    for volume in spec.volumes.iter().flatten() {
        let Some(source) = &volume.persistent_volume_claim else {
            continue;
        };
        let claim = source.claim_name.clone();
        match known.get(&claim) {
            Some(ClaimFacts::On(Some(selector))) => {
                selectors.insert(selector.clone());
            }
            Some(ClaimFacts::On(None)) => {}
            Some(ClaimFacts::Unbound) => {
                obstacle.get_or_insert(Obstacle::ClaimUnbound { claim });
            }
            None => {
                obstacle.get_or_insert(Obstacle::ClaimMissing { claim });
            }
        }
    }
    (selectors.into_iter().collect(), obstacle)
}

fn features(spec: &PodSpec) -> BTreeSet<String> {
    let own_users = spec.host_users == Some(false) && spec.host_network == Some(true);
    own_users
        .then(|| HOST_NETWORK_USERS.to_owned())
        .into_iter()
        .collect()
}

/// The parts of a pod's request.
fn request(spec: &PodSpec) -> Result<PodRequest, ObserveShapeError> {
    let mut request = PodRequest {
        overhead: amounts(spec.overhead.as_ref(), "overhead")?,
        ..PodRequest::default()
    };
    for (at, container) in spec.containers.iter().enumerate() {
        let requests = container_requests(container, &format!("containers[{at}]"))?;
        request.containers.push(requests);
    }
    for (at, container) in spec.init_containers.iter().flatten().enumerate() {
        let requests = container_requests(container, &format!("initContainers[{at}]"))?;
        request.init_containers.push(if is_sidecar(container) {
            InitContainer::Sidecar(requests)
        } else {
            InitContainer::Ordinary(requests)
        });
    }
    request.pod_level = requests(spec.resources.as_ref(), "resources")?;
    Ok(request)
}

fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

fn container_requests(container: &Container, path: &str) -> Result<Amounts, ObserveShapeError> {
    requests(container.resources.as_ref(), &format!("{path}.resources"))
}

fn requests(
    resources: Option<&ResourceRequirements>,
    path: &str,
) -> Result<Amounts, ObserveShapeError> {
    let requests = resources.and_then(|resources| resources.requests.as_ref());
    amounts(requests, &format!("{path}.requests"))
}

/// Amounts by resource.
///
/// # Errors
/// When one is no quantity, or a negative one.
pub fn amounts(
    wire: Option<&BTreeMap<String, WireQuantity>>,
    path: &str,
) -> Result<Amounts, ObserveShapeError> {
    let mut amounts = Amounts::new();
    for (name, WireQuantity(text)) in wire.into_iter().flatten() {
        let field = || format!("{path}[{name}]");
        let quantity = Quantity::parse(text)
            .map_err(|error| ObserveShapeError::new(field(), error.to_string()))?;
        if quantity < Quantity::ZERO {
            return Err(ObserveShapeError::new(
                field(),
                format!("{text} is below zero"),
            ));
        }
        amounts.insert(name.clone(), quantity);
    }
    Ok(amounts)
}

/// Ports of the node, of containers and of sidecars.
fn host_ports(spec: &PodSpec) -> Result<Vec<HostPort>, ObserveShapeError> {
    let containers = spec.containers.iter().enumerate();
    let sidecars = spec.init_containers.iter().flatten().enumerate();
    let lists = containers
        .map(|(at, container)| (format!("containers[{at}]"), container))
        .chain(
            sidecars
                .filter(|(_, container)| is_sidecar(container))
                .map(|(at, container)| (format!("initContainers[{at}]"), container)),
        );
    let mut ports = BTreeSet::new();
    for (path, container) in lists {
        for (at, port) in container.ports.iter().flatten().enumerate() {
            let found =
                host_port(port).map_err(|error| error.below(&format!("{path}.ports[{at}]")))?;
            ports.extend(found);
        }
    }
    Ok(ports.into_iter().collect())
}

fn host_port(port: &ContainerPort) -> Result<Option<HostPort>, ObserveShapeError> {
    let number = port.host_port.unwrap_or_default();
    if number == 0 {
        return Ok(None);
    }
    let number = u16::try_from(number)
        .map_err(|_| ObserveShapeError::new("hostPort", format!("{number} is no port")))?;
    let protocol = match port.protocol.as_deref() {
        None | Some("" | "TCP") => Protocol::Tcp,
        Some("UDP") => Protocol::Udp,
        Some("SCTP") => Protocol::Sctp,
        Some(other) => {
            let why = format!("{other} is none of TCP, UDP, SCTP");
            return Err(ObserveShapeError::new("protocol", why));
        }
    };
    let every = |address: &&String| !address.is_empty() && address.as_str() != "0.0.0.0";
    Ok(Some(HostPort {
        port: number,
        protocol,
        address: port.host_ip.as_ref().filter(every).cloned(),
    }))
}

fn effect(text: &str, field: &str) -> Result<Effect, ObserveShapeError> {
    match text {
        "NoSchedule" => Ok(Effect::NoSchedule),
        "PreferNoSchedule" => Ok(Effect::PreferNoSchedule),
        "NoExecute" => Ok(Effect::NoExecute),
        other => Err(ObserveShapeError::new(
            field,
            format!("{other} is none of NoSchedule, PreferNoSchedule, NoExecute"),
        )),
    }
}

fn tolerations(
    wire: &[WireToleration],
    malformed: Malformed,
) -> Result<Vec<Toleration>, ObserveShapeError> {
    let mut tolerations = BTreeSet::new();
    for (at, wire) in wire.iter().enumerate() {
        match toleration(wire) {
            Ok(toleration) => {
                tolerations.insert(toleration);
            }
            Err(_) if malformed == Malformed::Empty => {}
            Err(error) => return Err(error.below(&format!("tolerations[{at}]"))),
        }
    }
    Ok(tolerations.into_iter().collect())
}

fn toleration(wire: &WireToleration) -> Result<Toleration, ObserveShapeError> {
    let operator = match wire.operator.as_deref() {
        None | Some("" | "Equal") => TolerationOperator::Equal,
        Some("Exists") => TolerationOperator::Exists,
        Some("Gt") => TolerationOperator::Gt,
        Some("Lt") => TolerationOperator::Lt,
        Some(other) => {
            let why = format!("{other} is none of Equal, Exists, Gt, Lt");
            return Err(ObserveShapeError::new("operator", why));
        }
    };
    let given = wire.effect.as_deref().filter(|text| !text.is_empty());
    Ok(Toleration {
        key: wire.key.clone().unwrap_or_default(),
        operator,
        value: wire.value.clone().unwrap_or_default(),
        effect: given.map(|text| effect(text, "effect")).transpose()?,
    })
}

/// Taints of a node.
///
/// # Errors
/// When one has an effect that is not known.
pub fn taints(wire: &[WireTaint]) -> Result<Vec<Taint>, ObserveShapeError> {
    let taints = wire.iter().enumerate().map(|(at, taint)| {
        Ok(Taint {
            key: taint.key.clone(),
            value: taint.value.clone().unwrap_or_default(),
            effect: effect(&taint.effect, &format!("taints[{at}].effect"))?,
        })
    });
    taints.collect()
}

/// What a node has for pods.
///
/// # Errors
/// When an amount is no quantity.
pub fn allocatable(
    wire: Option<&BTreeMap<String, WireQuantity>>,
    path: &str,
) -> Result<Allocatable, ObserveShapeError> {
    let amounts = amounts(wire, path)?;
    Ok(Allocatable {
        resources: Resources::of(&amounts),
        pods: amounts.get(PODS).map_or(0, |pods| pods.bytes()),
    })
}

/// What scheduling sees of a Node, without the pods on it.
///
/// # Errors
/// When a field says what no API server would take.
pub fn observe_node_shape(node: &Node) -> Result<NodeShape, ObserveShapeError> {
    let spec = node.spec.as_ref();
    let status = node.status.as_ref();
    let wire = spec.and_then(|spec| spec.taints.as_deref());
    Ok(NodeShape {
        name: node.metadata.name.clone().unwrap_or_default(),
        labels: node.metadata.labels.clone().unwrap_or_default(),
        taints: taints(wire.unwrap_or_default())?,
        unschedulable: spec.and_then(|spec| spec.unschedulable) == Some(true),
        allocatable: allocatable(
            status.and_then(|status| status.allocatable.as_ref()),
            "status.allocatable",
        )?,
        features: BTreeSet::new(),
        pods: Vec::new(),
    })
}

#[cfg(test)]
#[path = "shape/tests.rs"]
mod tests;
