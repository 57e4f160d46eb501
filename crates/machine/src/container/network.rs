//! The network of a machine: a namespace and a link to its Cluster's bridge.

use neap_net::{NodeLink, attach_node, detach_node, observe_links};
use neap_operator::traits::Cause;

/// Makes both; what is there already stays.
pub(crate) async fn ensure(link: &NodeLink) -> Result<(), Cause> {
    link.node.ensure().await?;
    Ok(attach_node(link).await?)
}

/// Removes both, and the route to the machine's pods.
pub(crate) async fn remove(link: &NodeLink) -> Result<(), Cause> {
    detach_node(link).await?;
    Ok(link.node.remove()?)
}

/// What is left of them, by name.
pub(crate) async fn left(link: &NodeLink) -> Result<Vec<String>, Cause> {
    let mut left = Vec::new();
    if link.node.exists() {
        left.push(format!("network namespace {}", link.node.name()));
    }
    if observe_links(&link.cluster)
        .await?
        .contains(&link.link_name)
    {
        left.push(format!("interface {}", link.link_name));
    }
    Ok(left)
}
