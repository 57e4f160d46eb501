//! Pods that a proof gives to a cluster, and what became of them.

use anyhow::Result;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, ListParams};
use std::collections::BTreeMap;

/// The image that every node has.
pub const IMAGE: &str = "localhost/neap-busybox:1";

/// A pod that runs a shell command once.
///
/// # Panics
/// Never: the literal is a Pod.
pub fn pod(name: &str, command: &str) -> Pod {
    serde_json::from_value(serde_json::json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [{
                "name": "main",
                "image": IMAGE,
                "imagePullPolicy": "Never",
                "command": ["sh", "-c", command],
            }],
        },
    }))
    .expect("the literal is a Pod")
}

/// Names of the Nodes that are Ready.
///
/// # Errors
/// When they cannot be listed.
pub async fn ready_nodes(tenant: &kube::Client) -> Result<Vec<String>> {
    let nodes = Api::<Node>::all(tenant.clone())
        .list(&ListParams::default())
        .await?;
    Ok(nodes
        .items
        .iter()
        .filter(|node| is_ready(node))
        .filter_map(|node| node.metadata.name.clone())
        .collect())
}

fn is_ready(node: &Node) -> bool {
    let conditions = node
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|all| {
        all.iter()
            .any(|one| one.type_ == "Ready" && one.status == "True")
    })
}

/// The Running pods of namespace `default`, each with its node.
///
/// # Errors
/// When they cannot be listed.
pub async fn running_pods(tenant: &kube::Client) -> Result<BTreeMap<String, String>> {
    let pods = Api::<Pod>::namespaced(tenant.clone(), "default")
        .list(&ListParams::default())
        .await?;
    Ok(pods
        .items
        .into_iter()
        .filter(|pod| {
            pod.status
                .as_ref()
                .and_then(|status| status.phase.as_deref())
                == Some("Running")
        })
        .filter_map(|pod| Some((pod.metadata.name?, pod.spec?.node_name?)))
        .collect())
}
