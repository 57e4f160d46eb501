//! Selectors, terms between pods, spreads.

use super::{Malformed, ObserveShapeError};
use k8s_openapi::api::core::v1::{
    NodeSelector as WireNodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PodAffinityTerm,
    PodSpec, TopologySpreadConstraint,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector as WireSelector;
use neap_core::fit::selector::{
    FieldRequirement, LabelSelector, Labels, NodeSelector, NodeTerm, Requirement,
};
use neap_core::fit::shape::{Inclusion, PodTerm, Spread};
use std::collections::BTreeSet;

/// Terms of a node selector.
pub(super) fn node_selector(
    wire: &WireNodeSelector,
    path: &str,
    malformed: Malformed,
) -> Result<NodeSelector, ObserveShapeError> {
    let mut terms = Vec::new();
    for (at, term) in wire.node_selector_terms.iter().enumerate() {
        match node_term(term) {
            Ok(term) => terms.push(term),
            Err(_) if malformed == Malformed::Empty => {}
            Err(error) => return Err(error.below(&format!("{path}.nodeSelectorTerms[{at}]"))),
        }
    }
    Ok(NodeSelector { terms })
}

fn node_term(wire: &NodeSelectorTerm) -> Result<NodeTerm, ObserveShapeError> {
    let mut term = NodeTerm::default();
    for (at, wire) in wire.match_expressions.iter().flatten().enumerate() {
        let path = format!("matchExpressions[{at}]");
        let values = wire.values.as_deref().unwrap_or_default();
        let read = requirement(&wire.key, &wire.operator, values, &path)?;
        term.labels.push(read);
    }
    for (at, wire) in wire.match_fields.iter().flatten().enumerate() {
        let path = format!("matchFields[{at}]");
        term.fields.push(field_requirement(wire, &path)?);
    }
    Ok(term)
}

fn field_requirement(
    wire: &NodeSelectorRequirement,
    path: &str,
) -> Result<FieldRequirement, ObserveShapeError> {
    let Some([value]) = wire.values.as_deref() else {
        let why = "a field is compared with exactly one value";
        return Err(ObserveShapeError::new(format!("{path}.values"), why));
    };
    let (field, value) = (wire.key.clone(), value.clone());
    match wire.operator.as_str() {
        "In" => Ok(FieldRequirement::Is { field, value }),
        "NotIn" => Ok(FieldRequirement::IsNot { field, value }),
        other => Err(ObserveShapeError::new(
            format!("{path}.operator"),
            format!("{other} is none of In, NotIn"),
        )),
    }
}

/// A condition on a label.
fn requirement(
    key: &str,
    operator: &str,
    values: &[String],
    path: &str,
) -> Result<Requirement, ObserveShapeError> {
    let key = key.to_owned();
    let wrong = |why: String| Err(ObserveShapeError::new(format!("{path}.values"), why));
    let some = || -> BTreeSet<String> { values.iter().cloned().collect() };
    match operator {
        "In" | "NotIn" if values.is_empty() => wrong(format!("{operator} needs a value")),
        "In" => Ok(Requirement::In {
            key,
            values: some(),
        }),
        "NotIn" => Ok(Requirement::NotIn {
            key,
            values: some(),
        }),
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            wrong(format!("{operator} takes no value"))
        }
        "Exists" => Ok(Requirement::Exists { key }),
        "DoesNotExist" => Ok(Requirement::DoesNotExist { key }),
        "Gt" | "Lt" => match values {
            [only] => match only.parse() {
                Ok(bound) if operator == "Gt" => Ok(Requirement::Gt { key, bound }),
                Ok(bound) => Ok(Requirement::Lt { key, bound }),
                Err(_) => wrong(format!("{only} is no whole number")),
            },
            _ => wrong(format!("{operator} needs exactly one value")),
        },
        other => Err(ObserveShapeError::new(
            format!("{path}.operator"),
            format!("{other} is no operator"),
        )),
    }
}

/// A selector of labels; the operators of numbers are none of its own.
fn label_selector(wire: &WireSelector, path: &str) -> Result<LabelSelector, ObserveShapeError> {
    let mut requirements = BTreeSet::new();
    for (key, value) in wire.match_labels.iter().flatten() {
        requirements.insert(is_in(key, value));
    }
    for (at, wire) in wire.match_expressions.iter().flatten().enumerate() {
        let path = format!("{path}.matchExpressions[{at}]");
        if matches!(wire.operator.as_str(), "Gt" | "Lt") {
            return Err(ObserveShapeError::new(
                format!("{path}.operator"),
                format!("{} compares labels of nodes alone", wire.operator),
            ));
        }
        let values = wire.values.as_deref().unwrap_or_default();
        requirements.insert(requirement(&wire.key, &wire.operator, values, &path)?);
    }
    Ok(LabelSelector { requirements })
}

fn is_in(key: &str, value: &str) -> Requirement {
    Requirement::In {
        key: key.to_owned(),
        values: BTreeSet::from([value.to_owned()]),
    }
}

fn optional(
    wire: Option<&WireSelector>,
    path: &str,
) -> Result<Option<LabelSelector>, ObserveShapeError> {
    wire.map(|wire| label_selector(wire, path)).transpose()
}

/// Terms of a pod affinity or anti-affinity.
///
/// Keys whose values come from the pod's own labels become conditions of the
/// selector. The API server does the same when it takes the pod.
pub(super) fn pod_terms(
    wire: &[PodAffinityTerm],
    namespace: &str,
    labels: &Labels,
    path: &str,
) -> Result<Vec<PodTerm>, ObserveShapeError> {
    let mut terms = BTreeSet::new();
    for (at, wire) in wire.iter().enumerate() {
        let path = format!("{path}[{at}]");
        if wire.topology_key.is_empty() {
            let why = "a term needs a label of nodes";
            return Err(ObserveShapeError::new(format!("{path}.topologyKey"), why));
        }
        let mut selector = optional(
            wire.label_selector.as_ref(),
            &format!("{path}.labelSelector"),
        )?;
        if let Some(selector) = &mut selector {
            let own = |key: &String| labels.get(key).map(|value| (key.clone(), value.clone()));
            let same = wire.match_label_keys.iter().flatten().filter_map(own);
            let other = wire.mismatch_label_keys.iter().flatten().filter_map(own);
            for (key, value) in same {
                selector.requirements.insert(is_in(&key, &value));
            }
            for (key, value) in other {
                selector.requirements.insert(Requirement::NotIn {
                    key,
                    values: BTreeSet::from([value]),
                });
            }
        }
        let named = wire.namespaces.iter().flatten().cloned();
        let mut namespaces: BTreeSet<String> = named.collect();
        if namespaces.is_empty() && wire.namespace_selector.is_none() {
            namespaces.insert(namespace.to_owned());
        }
        terms.insert(PodTerm {
            topology_key: wire.topology_key.clone(),
            selector,
            namespaces,
            namespace_selector: optional(
                wire.namespace_selector.as_ref(),
                &format!("{path}.namespaceSelector"),
            )?,
        });
    }
    Ok(terms.into_iter().collect())
}

/// Required spreads. Those that are only preferred never add a node.
pub(super) fn spreads(spec: &PodSpec, labels: &Labels) -> Result<Vec<Spread>, ObserveShapeError> {
    let mut spreads = BTreeSet::new();
    let wire = spec.topology_spread_constraints.iter().flatten();
    for (at, wire) in wire.enumerate() {
        let path = format!("topologySpreadConstraints[{at}]");
        match wire.when_unsatisfiable.as_str() {
            "DoNotSchedule" => {
                spreads.insert(spread(wire, labels, &path)?);
            }
            "ScheduleAnyway" => {}
            other => {
                return Err(ObserveShapeError::new(
                    format!("{path}.whenUnsatisfiable"),
                    format!("{other} is none of DoNotSchedule, ScheduleAnyway"),
                ));
            }
        }
    }
    Ok(spreads.into_iter().collect())
}

fn spread(
    wire: &TopologySpreadConstraint,
    labels: &Labels,
    path: &str,
) -> Result<Spread, ObserveShapeError> {
    let positive = |value: i32, field: &str| {
        let number = u32::try_from(value).ok().filter(|number| *number > 0);
        number.ok_or_else(|| {
            ObserveShapeError::new(
                format!("{path}.{field}"),
                format!("{value} is not above zero"),
            )
        })
    };
    let inclusion = |text: Option<&str>, default: Inclusion, field: &str| match text {
        None => Ok(default),
        Some("Honor") => Ok(Inclusion::Honor),
        Some("Ignore") => Ok(Inclusion::Ignore),
        Some(other) => Err(ObserveShapeError::new(
            format!("{path}.{field}"),
            format!("{other} is none of Honor, Ignore"),
        )),
    };
    let mut selector = optional(
        wire.label_selector.as_ref(),
        &format!("{path}.labelSelector"),
    )?;
    if let Some(selector) = &mut selector {
        for key in wire.match_label_keys.iter().flatten() {
            if let Some(value) = labels.get(key) {
                selector.requirements.insert(is_in(key, value));
            }
        }
    }
    Ok(Spread {
        topology_key: wire.topology_key.clone(),
        selector,
        max_skew: positive(wire.max_skew, "maxSkew")?,
        min_domains: positive(wire.min_domains.unwrap_or(1), "minDomains")?,
        node_affinity: inclusion(
            wire.node_affinity_policy.as_deref(),
            Inclusion::Honor,
            "nodeAffinityPolicy",
        )?,
        node_taints: inclusion(
            wire.node_taints_policy.as_deref(),
            Inclusion::Ignore,
            "nodeTaintsPolicy",
        )?,
    })
}
