//! Network namespaces, the bridge inside one, links to others, and dialling
//! from within.
//!
//! Everything is idempotent: ensuring twice is ensuring once, and removing
//! what is absent succeeds. Work inside a namespace happens on a thread made
//! for it, which ends with the work; threads of the runtime never leave the
//! namespace that they were born in.
//!
//! It must never know what a cluster or a node is beyond addresses and names,
//! and never touch an interface of the host's own namespace.
//!
//! `neap-controlplane`, `neap-machine` and the program call it.

mod cluster;
mod dial;
mod namespace;
mod netlink;
mod node;
mod observe;
mod range;

pub use cluster::{ClusterNetwork, ensure_cluster_network};
pub use dial::dial;
pub use namespace::{
    EnsureNamespaceError, EnterNamespaceError, NetworkNamespace, RemoveNamespaceError, list, tidy,
};
pub use node::{NodeLink, attach_node, detach_node};
pub use observe::{observe_links, observe_routes};
pub use range::{Ipv4Range, ParseRangeError};

/// A change of a network that failed.
#[derive(Debug, thiserror::Error)]
#[error("failed to {operation} {thing} in network namespace {namespace}")]
pub struct ChangeNetworkError {
    /// A verb.
    pub operation: &'static str,
    /// The interface, address, route or setting.
    pub thing: String,
    /// Name of the namespace.
    pub namespace: String,
    /// Why.
    #[source]
    pub source: std::io::Error,
}
