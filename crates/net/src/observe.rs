//! What is in a namespace, for proofs of presence and absence.

use crate::netlink::inside;
use crate::{ChangeNetworkError, Ipv4Range, NetworkNamespace};
use std::io;
use std::net::Ipv4Addr;

/// Names of the interfaces in a namespace, in order; empty when it is absent.
pub async fn observe_links(
    namespace: &NetworkNamespace,
) -> Result<Vec<String>, ChangeNetworkError> {
    empty_if_absent(inside([namespace], |[inside]| async move { inside.links().await }).await)
}

/// IPv4 routes through a gateway in a namespace, in order; empty when it is
/// absent. The default route has the range `0.0.0.0/0`.
pub async fn observe_routes(
    namespace: &NetworkNamespace,
) -> Result<Vec<(Ipv4Range, Ipv4Addr)>, ChangeNetworkError> {
    empty_if_absent(inside([namespace], |[inside]| async move { inside.routes().await }).await)
}

fn empty_if_absent<T>(
    found: Result<Vec<T>, ChangeNetworkError>,
) -> Result<Vec<T>, ChangeNetworkError> {
    match found {
        Err(error) if error.source.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        found => found,
    }
}
