//! Cases of the fitting policy: groups of pods, a template, what comes out.

use std::collections::BTreeMap;

use anyhow::{Context, Result, anyhow};
use k8s_openapi::api::core::v1::{PodSpec, Taint};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use neap_core::fit::plan;
use neap_core::fit::shape::{ClassShape, NodeShape, Observed, PodGroup};
use neap_operator::shape::{
    Claims, allocatable, observe_waiting_shape, taints, with_text_quantities,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::Outcome;

#[derive(Debug, Deserialize)]
struct Case {
    name: String,
    node_template: Template,
    max_nodes: u32,
    #[serde(default)]
    existing: Vec<Template>,
    #[serde(default)]
    namespaces: Vec<Namespace>,
    pods: Vec<Pods>,
    expected_nodes: usize,
    expected_unplaced: u32,
    expected_unplaced_by_group: Option<Vec<u32>>,
}

/// A node, or what new ones are like.
#[derive(Debug, Deserialize)]
struct Template {
    #[serde(default)]
    name: String,
    allocatable: BTreeMap<String, Value>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    taints: Vec<Taint>,
    #[serde(default)]
    unschedulable: bool,
    #[serde(default)]
    pods: Vec<Pods>,
}

#[derive(Debug, Deserialize)]
struct Namespace {
    name: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

/// Equal pods: fields of a pod's spec under their own names beside ours.
#[derive(Debug, Deserialize)]
struct Pods {
    #[serde(default = "one")]
    count: u32,
    #[serde(default = "default_namespace")]
    namespace: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    terminating: bool,
    /// Of the one container, instead of `containers`.
    requests: Option<Value>,
    #[serde(rename = "hostPorts")]
    host_ports: Option<Value>,
    #[serde(flatten)]
    spec: Map<String, Value>,
}

fn one() -> u32 {
    1
}

fn default_namespace() -> String {
    "default".to_owned()
}

/// Runs all cases of a file.
pub(crate) fn outcomes(text: &str) -> Result<Vec<Outcome>> {
    let cases: Vec<Case> = serde_json::from_str(text).context("not a list of cases")?;
    let run = |case: &Case| outcome(case).with_context(|| format!("case {}", case.name));
    cases.iter().map(run).collect()
}

fn outcome(case: &Case) -> Result<Outcome> {
    let observed = observed(case)?;
    let plan = plan(&observed);
    let by_group = plan.unplaced_by_input(&observed.pods);
    let unplaced: u32 = by_group.iter().sum();
    let wanted = case.expected_unplaced_by_group.as_ref();
    Ok(Outcome {
        name: case.name.clone(),
        expected: sentence(case.expected_nodes, case.expected_unplaced, wanted),
        actual: sentence(plan.machines.len(), unplaced, wanted.map(|_| &by_group)),
    })
}

fn sentence(nodes: usize, unplaced: u32, by_group: Option<&Vec<u32>>) -> String {
    let groups = by_group.map_or_else(String::new, |groups| format!(" {groups:?}"));
    format!("{nodes}/{unplaced}{groups}")
}

fn observed(case: &Case) -> Result<Observed> {
    let template = &case.node_template;
    let class = ClassShape {
        name: "template".to_owned(),
        labels: template.labels.clone(),
        taints: taints(&template.taints)?,
        allocatable: allocatable(Some(&quantities(&template.allocatable)?), "allocatable")?,
        baseline: groups(&template.pods)?,
        limit: Some(case.max_nodes),
        ..ClassShape::default()
    };
    let namespaces = case.namespaces.iter();
    Ok(Observed {
        pods: groups(&case.pods)?,
        nodes: case.existing.iter().map(node).collect::<Result<_>>()?,
        classes: vec![class],
        namespaces: namespaces
            .map(|namespace| (namespace.name.clone(), namespace.labels.clone()))
            .collect(),
        ..Observed::default()
    })
}

fn node(existing: &Template) -> Result<NodeShape> {
    Ok(NodeShape {
        name: existing.name.clone(),
        labels: existing.labels.clone(),
        taints: taints(&existing.taints)?,
        unschedulable: existing.unschedulable,
        allocatable: allocatable(Some(&quantities(&existing.allocatable)?), "allocatable")?,
        features: Default::default(),
        pods: groups(&existing.pods)?,
    })
}

fn groups(pods: &[Pods]) -> Result<Vec<PodGroup>> {
    let group = |(at, pods): (usize, &Pods)| {
        group(pods).with_context(|| format!("the group of pods with index {at}"))
    };
    pods.iter().enumerate().map(group).collect()
}

fn group(pods: &Pods) -> Result<PodGroup> {
    let mut spec = Value::Object(pods.spec.clone());
    let mut only = json!({"name": "only"});
    if let Some(requests) = &pods.requests {
        only["resources"] = json!({"requests": requests});
    }
    if let Some(ports) = &pods.host_ports {
        only["ports"] = with_container_ports(ports.clone());
    }
    if spec.get("containers").is_none() {
        spec["containers"] = json!([only]);
    }
    let spec: PodSpec =
        serde_json::from_value(with_text_quantities(spec)).context("not a pod's spec")?;
    let mut shape = observe_waiting_shape(&pods.namespace, &pods.labels, &spec, Claims::Unknown);
    shape.terminating = pods.terminating;
    Ok(PodGroup::new(shape, pods.count))
}

/// A container's port may be left out in a case.
fn with_container_ports(mut ports: Value) -> Value {
    for port in ports.as_array_mut().into_iter().flatten() {
        if port.get("containerPort").is_none() {
            port["containerPort"] = port["hostPort"].clone();
        }
    }
    ports
}

fn quantities(amounts: &BTreeMap<String, Value>) -> Result<BTreeMap<String, Quantity>> {
    let quantity = |(name, amount): (&String, &Value)| {
        let text = match amount {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            other => return Err(anyhow!("{name} is {other}, which is no quantity")),
        };
        Ok((name.clone(), Quantity(text)))
    };
    amounts.iter().map(quantity).collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    const CASES: &str = include_str!("../../../tests/cases/fit/cases.json");

    #[test]
    fn every_case_comes_out_as_the_scheduler_says() {
        let outcomes = outcomes(CASES).unwrap();
        assert!(outcomes.len() > 80);
        let differ: Vec<String> = outcomes
            .iter()
            .filter(|outcome| !outcome.is_as_expected())
            .map(Outcome::line)
            .collect();
        assert!(differ.is_empty(), "{}", differ.join("\n"));
    }

    #[test]
    fn a_wrong_expectation_is_found() {
        let mut cases: Value = serde_json::from_str(CASES).unwrap();
        for case in cases.as_array_mut().unwrap() {
            let nodes = case["expected_nodes"].as_u64().unwrap();
            case["expected_nodes"] = json!(nodes + 1);
        }
        let outcomes = outcomes(&cases.to_string()).unwrap();
        assert!(outcomes.iter().all(|outcome| !outcome.is_as_expected()));
    }
}
