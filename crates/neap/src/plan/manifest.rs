//! Manifests: what wants pods.

use super::Document;
use anyhow::bail;
use k8s_openapi::api::core::v1::{Container, PodSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use neap_core::fit::selector::Labels;
use neap_core::fit::shape::{Namespaces, PodGroup, PodShape};
use neap_operator::shape::{Claims, observe_shape, with_text_quantities};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Something that wants pods.
#[derive(Clone, Debug)]
pub(super) struct Workload {
    /// `Kind namespace/name`.
    pub(super) name: String,
    pub(super) shape: Arc<PodShape>,
    pub(super) count: u32,
}

/// All that manifests say about pods.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) workloads: Vec<Workload>,
    /// One pod of each DaemonSet.
    pub(super) daemons: Vec<PodGroup>,
    pub(super) namespaces: Namespaces,
    /// Objects that want no pods, by kind.
    pub(super) ignored: BTreeMap<String, u32>,
}

pub(super) fn read(documents: &[Document]) -> anyhow::Result<Work> {
    let mut work = Work::default();
    let all: BTreeSet<_> = documents.iter().filter_map(identity).collect();
    for document in documents {
        // The pods of a workload that is here too are the workload's.
        let owner = owner(document);
        if owner.is_none_or(|owner| !all.contains(&owner)) {
            read_one(document, &mut work)?;
        }
    }
    // Every namespace has a label with its name.
    let used: Vec<String> = work
        .workloads
        .iter()
        .map(|workload| &workload.shape)
        .chain(work.daemons.iter().map(|daemon| &daemon.shape))
        .map(|shape| shape.namespace.clone())
        .collect();
    for namespace in used {
        work.namespaces.entry(namespace).or_default();
    }
    for (name, labels) in &mut work.namespaces {
        labels.insert("kubernetes.io/metadata.name".to_owned(), name.clone());
    }
    Ok(work)
}

/// Kind, namespace and name.
type Identity<'a> = (&'a str, &'a str, &'a str);

fn namespace(document: &Document) -> &str {
    document.text("/metadata/namespace").unwrap_or("default")
}

fn identity(document: &Document) -> Option<Identity<'_>> {
    let name = document.text("/metadata/name")?;
    Some((document.text("/kind")?, namespace(document), name))
}

/// Who controls it.
fn owner(document: &Document) -> Option<Identity<'_>> {
    let owners = document.value.pointer("/metadata/ownerReferences")?;
    let controls = |owner: &&Value| owner.get("controller") == Some(&Value::Bool(true));
    let owner = owners.as_array()?.iter().find(controls)?;
    let text = |field| owner.get(field).and_then(Value::as_str);
    Some((text("kind")?, namespace(document), text("name")?))
}

fn read_one(document: &Document, work: &mut Work) -> anyhow::Result<()> {
    let Some(kind) = document.text("/kind") else {
        bail!(document.refuse("kind: there is none, so it is no manifest"));
    };
    let name = document
        .text("/metadata/name")
        .or_else(|| document.text("/metadata/generateName"))
        .unwrap_or_default();
    if name.is_empty() {
        bail!(document.refuse("metadata.name: there is none"));
    }
    let namespace = namespace(document);
    let labels = |pointer: &str| -> anyhow::Result<Labels> {
        let value = document.value.pointer(pointer).cloned();
        let path = pointer.trim_start_matches('/').replace('/', ".");
        let labels: Option<Labels> = document.read(value.unwrap_or(Value::Null), &path)?;
        Ok(labels.unwrap_or_default())
    };
    let mut add = |path: &str, labels: Labels, count: u32| -> anyhow::Result<()> {
        let shape = Arc::new(shape(document, namespace, &labels, path)?);
        if kind == "DaemonSet" {
            work.daemons.push(PodGroup { shape, count });
        } else {
            work.workloads.push(Workload {
                name: format!("{kind} {namespace}/{name}"),
                shape,
                count,
            });
        }
        Ok(())
    };
    const TEMPLATE: &str = "/spec/template/metadata/labels";
    match kind {
        "Pod" => {
            let finished = matches!(document.text("/status/phase"), Some("Succeeded" | "Failed"));
            if !finished {
                add("spec", labels("/metadata/labels")?, 1)?;
            }
        }
        "Deployment" | "StatefulSet" | "ReplicaSet" | "ReplicationController" => {
            let replicas = number(document, "/spec/replicas")?.unwrap_or(1);
            add("spec.template.spec", labels(TEMPLATE)?, replicas)?;
        }
        "Job" => add("spec.template.spec", labels(TEMPLATE)?, job_pods(document)?)?,
        "DaemonSet" => add("spec.template.spec", labels(TEMPLATE)?, 1)?,
        "Namespace" => {
            let labels = labels("/metadata/labels")?;
            work.namespaces.insert(name.to_owned(), labels);
        }
        other => *work.ignored.entry(other.to_owned()).or_default() += 1,
    }
    Ok(())
}

/// Pods that a Job runs at one time.
fn job_pods(document: &Document) -> anyhow::Result<u32> {
    if document.value.pointer("/spec/suspend") == Some(&Value::Bool(true)) {
        return Ok(0);
    }
    let parallelism = number(document, "/spec/parallelism")?.unwrap_or(1);
    let completions = number(document, "/spec/completions")?;
    Ok(completions.map_or(parallelism, |completions| parallelism.min(completions)))
}

fn number(document: &Document, pointer: &str) -> anyhow::Result<Option<u32>> {
    let path = pointer.trim_start_matches('/').replace('/', ".");
    let value = document.value.pointer(pointer).cloned();
    document.read(value.unwrap_or(Value::Null), &path)
}

fn shape(
    document: &Document,
    namespace: &str,
    labels: &Labels,
    path: &str,
) -> anyhow::Result<PodShape> {
    let pointer = format!("/{}", path.replace('.', "/"));
    let Some(value) = document.value.pointer(&pointer) else {
        bail!(document.refuse(format!("{path}: there is none")));
    };
    let mut spec: PodSpec = document.read(with_text_quantities(value.clone()), path)?;
    if spec.containers.is_empty() {
        bail!(document.refuse(format!("{path}.containers: there is none")));
    }
    fill_in(&mut spec);
    observe_shape(namespace, labels, &spec, Claims::Unknown)
        .map_err(|error| document.refuse(error.below(path)))
}

/// What the API server fills in when it takes a pod: requests from limits, and
/// the ports of pods in the host's network.
fn fill_in(spec: &mut PodSpec) {
    let host_network = spec.host_network == Some(true);
    let containers = spec.containers.iter_mut();
    for container in containers.chain(spec.init_containers.iter_mut().flatten()) {
        requests_from_limits(container);
        if host_network {
            for port in container.ports.iter_mut().flatten() {
                if port.host_port.unwrap_or_default() == 0 {
                    port.host_port = Some(port.container_port);
                }
            }
        }
    }
}

fn requests_from_limits(container: &mut Container) {
    let Some(resources) = &mut container.resources else {
        return;
    };
    let limits: BTreeMap<String, Quantity> = resources.limits.clone().unwrap_or_default();
    if limits.is_empty() {
        return;
    }
    let requests = resources.requests.get_or_insert_default();
    for (name, limit) in limits {
        requests.entry(name).or_insert(limit);
    }
}
