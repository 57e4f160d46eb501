//! Files that describe machine classes.

use super::Document;
use anyhow::bail;
use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;
use neap_core::fit::amount::{Amounts, EPHEMERAL_STORAGE, PODS, Resources};
use neap_core::fit::shape::{Allocatable, ClassShape};
use neap_core::quantity::Quantity;
use neap_operator::shape::{amounts, taints};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const API_VERSION: &str = "neap.dev/v1alpha1";
const KIND: &str = "MachineClass";

/// Places for pods unless a class says so: the kubelet's own default.
const DEFAULT_PODS: u64 = 110;

/// Prices are counted in millionths.
pub(super) const PRICE_PARTS: u64 = 1_000_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct MachineClass {
    api_version: String,
    kind: String,
    metadata: Metadata,
    spec: Spec,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    name: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Spec {
    /// What a machine has.
    capacity: BTreeMap<String, Value>,
    /// What of it is not for pods.
    #[serde(default)]
    reserve: BTreeMap<String, Value>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    taints: Vec<Taint>,
    /// Of one machine, in any unit that all classes share.
    price: Option<Value>,
    /// Most machines.
    limit: Option<u32>,
    #[serde(default)]
    priority: i32,
}

/// Reads classes. Two of one name are refused.
pub(super) fn read(documents: &[Document]) -> anyhow::Result<Vec<ClassShape>> {
    let mut names = BTreeSet::new();
    let mut classes = Vec::new();
    for document in documents {
        let class = class(document)?;
        if !names.insert(class.name.clone()) {
            bail!(document.refuse(format!(
                "metadata.name: there is a class {} already",
                class.name
            )));
        }
        classes.push(class);
    }
    Ok(classes)
}

fn class(document: &Document) -> anyhow::Result<ClassShape> {
    let kind = document.text("/kind").unwrap_or_default();
    if kind != KIND {
        bail!(document.refuse(format!("kind: {kind:?} is no {KIND}")));
    }
    let class: MachineClass = document.read(document.value.clone(), "")?;
    debug_assert_eq!(class.kind, KIND);
    if class.api_version != API_VERSION {
        let why = format!(
            "apiVersion: {:?} is not known, {API_VERSION} is",
            class.api_version
        );
        bail!(document.refuse(why));
    }
    let spec = class.spec;
    let capacity = read_amounts(document, &spec.capacity, "spec.capacity")?;
    let reserve = read_amounts(document, &spec.reserve, "spec.reserve")?;
    let read_taints = taints(&spec.taints).map_err(|error| document.refuse(error.below("spec")))?;
    Ok(ClassShape {
        name: class.metadata.name,
        labels: spec.labels,
        taints: read_taints,
        allocatable: allocatable(document, capacity, &reserve)?,
        limit: spec.limit,
        price: price(document, spec.price.as_ref())?,
        priority: spec.priority,
        ..ClassShape::default()
    })
}

/// Names are written as in our other resources; others are Kubernetes' own.
fn read_amounts(
    document: &Document,
    wire: &BTreeMap<String, Value>,
    path: &str,
) -> anyhow::Result<Amounts> {
    let mut named = BTreeMap::new();
    for (name, value) in wire {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            other => bail!(document.refuse(format!("{path}.{name}: {other} is no quantity"))),
        };
        let name = match name.as_str() {
            "ephemeralStorage" => EPHEMERAL_STORAGE,
            other => other,
        };
        named.insert(name.to_owned(), WireQuantity(text));
    }
    amounts(Some(&named), path).map_err(|error| document.refuse(error))
}

fn allocatable(
    document: &Document,
    mut capacity: Amounts,
    reserve: &Amounts,
) -> anyhow::Result<Allocatable> {
    capacity
        .entry(PODS.to_owned())
        .or_insert_with(|| Quantity::from_units(DEFAULT_PODS));
    for (name, kept) in reserve {
        let has = capacity.get(name).copied().unwrap_or_default();
        if *kept > has {
            bail!(document.refuse(format!(
                "spec.reserve.{name}: {kept} is kept back, and there is {has}"
            )));
        }
        let left = Quantity::from_nano(has.nano() - kept.nano());
        capacity.insert(name.clone(), left);
    }
    Ok(Allocatable {
        resources: Resources::of(&capacity),
        pods: capacity.get(PODS).map_or(0, |pods| pods.bytes()),
    })
}

/// A decimal number, in millionths.
fn price(document: &Document, price: Option<&Value>) -> anyhow::Result<u64> {
    let text = match price {
        None => return Ok(0),
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => bail!(document.refuse(format!("spec.price: {other} is no number"))),
    };
    let parsed = Quantity::parse(&text).ok();
    let parts = parsed.and_then(|price| {
        let nano = u128::try_from(price.nano()).ok()?;
        u64::try_from(nano / 1_000).ok()
    });
    parts.ok_or_else(|| document.refuse(format!("spec.price: {text} is no price")))
}
