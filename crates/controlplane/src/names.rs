//! The names by which API servers are addressed and identities are known.

/// The domain of all names below; nothing resolves it, TLS alone carries it.
pub const DOMAIN: &str = "neap.internal";

/// TLS server name of the hub.
pub const HUB_SERVER_NAME: &str = "hub.neap.internal";

/// Group of the loops, in every tenant.
pub const OPERATORS_GROUP: &str = "neap:operators";

/// Common name of the loops, in every tenant and on the hub.
pub const OPERATOR_NAME: &str = "neap:operator";

/// Group of the loops on the hub.
pub const HUB_OPERATORS_GROUP: &str = "neap:hub-operators";

/// Group of those who may do everything in one cluster.
pub const ADMINS_GROUP: &str = "neap:cluster-admins";

/// Common name of the people of this machine's root.
pub const ADMIN_NAME: &str = "neap:admin";

/// Common name of the API server towards kubelets.
pub const KUBELET_CLIENT_NAME: &str = "kube-apiserver-kubelet-client";

/// Common name of the API server towards extension API servers.
pub const FRONT_PROXY_NAME: &str = "front-proxy";

/// Common name of kube-proxy.
pub const PROXY_NAME: &str = "system:kube-proxy";

/// Group of kubelets.
pub const NODES_GROUP: &str = "system:nodes";

/// Group that authorization does not bind.
pub const MASTERS_GROUP: &str = "system:masters";

/// TLS server name of a Cluster.
#[must_use]
pub fn cluster_server_name(account: &str, cluster: &str) -> String {
    format!("{cluster}.{account}.clusters.{DOMAIN}").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_names_are_distinct_and_lower_case() {
        assert_eq!(
            cluster_server_name("team", "Ci"),
            "ci.team.clusters.neap.internal"
        );
        assert_ne!(cluster_server_name("a", "b"), cluster_server_name("b", "a"));
        assert_ne!(cluster_server_name("a", "hub"), HUB_SERVER_NAME);
    }
}
