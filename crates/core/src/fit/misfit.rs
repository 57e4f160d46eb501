//! Why a pod does not fit, down to the numbers: a closed set, one sentence
//! each.

use super::shape::Protocol;
use super::taint::Taint;
use crate::quantity::Quantity;
use std::fmt;

/// Why no node at all would help a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Obstacle {
    /// It has scheduling gates.
    Gated,
    /// Another scheduler binds it.
    ForeignScheduler {
        /// Its name.
        scheduler: String,
    },
    /// It names its node itself.
    PinnedToNode {
        /// The node.
        node: String,
    },
    /// It is being deleted.
    Terminating,
    /// A claim is not bound yet, and no pod is needed to bind it.
    ClaimUnbound {
        /// The claim.
        claim: String,
    },
    /// A claim is not there.
    ClaimMissing {
        /// The claim.
        claim: String,
    },
    /// It wants devices through claims, which are not simulated.
    ResourceClaims {
        /// The claim's name in the pod.
        claim: String,
    },
    /// The scheduler cannot read it.
    Malformed {
        /// Path of the field, and what is wrong with it.
        why: String,
    },
}

/// An amount of a resource, shown in its own unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Amount {
    /// Thousandths.
    Milli(u64),
    /// Whole units.
    Units(u64),
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Milli(milli) => Quantity::from_milli(*milli).fmt(f),
            Self::Units(units) => Quantity::from_units(*units).fmt(f),
        }
    }
}

/// The first filter that rejects a pod on a node or class, in the order of
/// kube-scheduler.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Misfit {
    /// No node would help.
    Obstacle(Obstacle),
    /// The node is cordoned.
    Cordoned,
    /// A taint that it does not tolerate.
    Taint(Taint),
    /// A label that its node selector wants.
    NodeSelector {
        /// The label.
        key: String,
        /// What it should say.
        wanted: String,
        /// What it says.
        found: Option<String>,
    },
    /// None of the terms of its node affinity.
    NodeAffinity {
        /// How many there are.
        terms: usize,
    },
    /// A port of the node that another pod has.
    HostPort {
        /// The number.
        port: u16,
        /// The protocol.
        protocol: Protocol,
        /// The address, or every one.
        address: Option<String>,
    },
    /// All places for pods are taken.
    Pods {
        /// Places.
        capacity: u64,
        /// Of them taken by pods that every node of the class has.
        overhead: u64,
    },
    /// Too little of a resource.
    Resource {
        /// Its name.
        resource: String,
        /// What the pod asks for.
        asked: Amount,
        /// What is left.
        free: Amount,
        /// What the node has.
        capacity: Amount,
        /// Of it taken by pods that every node of the class has.
        overhead: Amount,
    },
    /// The node has nothing of a resource.
    NoResource {
        /// Its name.
        resource: String,
        /// What the pod asks for.
        asked: Amount,
    },
    /// One of its volumes cannot be had there.
    Volume,
    /// The node lacks the label that a spread goes over.
    SpreadKey {
        /// The label.
        key: String,
    },
    /// One domain would have too many pods.
    SpreadSkew {
        /// The label.
        key: String,
        /// Pods of the spread in the domain.
        count: u32,
        /// Pods in the emptiest domain.
        minimum: u32,
        /// The limit.
        max_skew: u32,
    },
    /// A pod there keeps it away.
    RefusedByPod {
        /// The label that says what is near.
        key: String,
    },
    /// It keeps away from a pod there.
    AntiAffinity {
        /// The label that says what is near.
        key: String,
    },
    /// The node lacks the label that an affinity goes over.
    AffinityKey {
        /// The label.
        key: String,
    },
    /// No pod there that it must be near.
    Affinity {
        /// The label that says what is near.
        key: String,
    },
    /// The node does not declare a feature.
    Feature {
        /// Its name.
        feature: String,
    },
    /// It fits, and there are no more machines.
    Limit {
        /// The limit of the class.
        limit: u32,
    },
    /// It was not looked at: the plan had used up its steps.
    Steps {
        /// The limit.
        limit: u64,
    },
}

impl Obstacle {
    /// Stable name, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Gated => "SchedulingGated",
            Self::ForeignScheduler { .. } => "ForeignScheduler",
            Self::PinnedToNode { .. } => "PinnedToNode",
            Self::Terminating => "Terminating",
            Self::ClaimUnbound { .. } => "ClaimUnbound",
            Self::ClaimMissing { .. } => "ClaimMissing",
            Self::ResourceClaims { .. } => "ResourceClaims",
            Self::Malformed { .. } => "Malformed",
        }
    }
}

impl Misfit {
    /// Stable name, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Obstacle(obstacle) => obstacle.code(),
            Self::Cordoned => "Cordoned",
            Self::Taint(_) => "UntoleratedTaint",
            Self::NodeSelector { .. } => "NodeSelector",
            Self::NodeAffinity { .. } => "NodeAffinity",
            Self::HostPort { .. } => "HostPort",
            Self::Pods { .. } => "TooManyPods",
            Self::Resource { .. } => "InsufficientResource",
            Self::NoResource { .. } => "NoSuchResource",
            Self::Volume => "VolumeNodeAffinity",
            Self::SpreadKey { .. } => "SpreadKeyMissing",
            Self::SpreadSkew { .. } => "SpreadSkew",
            Self::RefusedByPod { .. } => "RefusedByPod",
            Self::AntiAffinity { .. } => "PodAntiAffinity",
            Self::AffinityKey { .. } => "AffinityKeyMissing",
            Self::Affinity { .. } => "PodAffinity",
            Self::Feature { .. } => "NodeFeature",
            Self::Limit { .. } => "ClassLimit",
            Self::Steps { .. } => "StepLimit",
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gated => write!(f, "it has scheduling gates"),
            Self::ForeignScheduler { scheduler } => {
                write!(
                    f,
                    "the scheduler {scheduler} binds it, which is not simulated"
                )
            }
            Self::PinnedToNode { node } => write!(f, "it names its node {node} itself"),
            Self::Terminating => write!(f, "it is being deleted"),
            Self::ClaimUnbound { claim } => write!(
                f,
                "its claim {claim} is not bound, and will be without a node"
            ),
            Self::ClaimMissing { claim } => write!(f, "its claim {claim} is not there"),
            Self::ResourceClaims { claim } => write!(
                f,
                "it wants a device through the resource claim {claim}, which is not simulated"
            ),
            Self::Malformed { why } => write!(f, "the scheduler cannot read it: {why}"),
        }
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Obstacle(obstacle) => obstacle.fmt(f),
            Self::Cordoned => write!(f, "the node is cordoned"),
            Self::Taint(taint) => write!(f, "the taint {taint} is not tolerated"),
            Self::NodeSelector { key, wanted, found } => match found {
                Some(found) => write!(f, "the label {key} is {found}, wanted is {wanted}"),
                None => write!(f, "there is no label {key}, wanted is {key}={wanted}"),
            },
            Self::NodeAffinity { terms: 1 } => {
                write!(f, "the term of its node affinity does not match")
            }
            Self::NodeAffinity { terms } => {
                write!(f, "none of the {terms} terms of its node affinity matches")
            }
            Self::HostPort {
                port,
                protocol,
                address,
            } => {
                write!(f, "the host port {port}/{protocol}")?;
                if let Some(address) = address {
                    write!(f, " on {address}")?;
                }
                write!(f, " is taken")
            }
            Self::Pods { capacity, overhead } => {
                write!(f, "all {capacity} places for pods are taken")?;
                if *overhead > 0 {
                    write!(f, ", {overhead} of them by the baseline")?;
                }
                Ok(())
            }
            Self::Resource {
                resource,
                asked,
                free,
                capacity,
                overhead,
            } => {
                write!(
                    f,
                    "it asks for {asked} {resource}, {free} of {capacity} is free"
                )?;
                if matches!(overhead, Amount::Milli(0) | Amount::Units(0)) {
                    return Ok(());
                }
                write!(f, ", the baseline takes {overhead}")
            }
            Self::NoResource { resource, asked } => {
                write!(f, "it asks for {asked} {resource}, and there is none")
            }
            Self::Volume => write!(f, "one of its volumes cannot be had there"),
            Self::SpreadKey { key } => write!(f, "there is no label {key} to spread over"),
            Self::SpreadSkew {
                key,
                count,
                minimum,
                max_skew,
            } => write!(
                f,
                "its domain of {key} has {count} such pods and the emptiest {minimum}, one more passes the skew of {max_skew}"
            ),
            Self::RefusedByPod { key } => {
                write!(f, "a pod in the same {key} keeps it away")
            }
            Self::AntiAffinity { key } => {
                write!(f, "it keeps away from a pod in the same {key}")
            }
            Self::AffinityKey { key } => {
                write!(f, "there is no label {key} that its pod affinity goes over")
            }
            Self::Affinity { key } => {
                write!(f, "no pod that it must be near is in the same {key}")
            }
            Self::Feature { feature } => write!(f, "the feature {feature} is not declared"),
            Self::Limit { limit: 0 } => write!(f, "it fits, and no machine may be made"),
            Self::Limit { limit } => write!(f, "it fits, and all {limit} machines are used"),
            Self::Steps { limit } => write!(f, "not looked at within {limit} steps"),
        }
    }
}
