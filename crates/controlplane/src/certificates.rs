//! Which certificates a control plane is made of, and their files.

use crate::files::{WriteFileError, make_folder, write_private};
use crate::names::{
    ADMIN_NAME, ADMINS_GROUP, FRONT_PROXY_NAME, HUB_OPERATORS_GROUP, HUB_SERVER_NAME,
    KUBELET_CLIENT_NAME, MASTERS_GROUP, NODES_GROUP, OPERATOR_NAME, OPERATORS_GROUP, PROXY_NAME,
    cluster_server_name,
};
use crate::record::Role;
use crate::site::Site;
use jiff::{SignedDuration, Timestamp};
use neap_core::addressing::{API_PORT, API_SERVER_URL, BRIDGE_ADDRESS, KUBERNETES_SERVICE};
use neap_core::ids::MachineName;
use neap_operator::traits::NodeCredentials;
use neap_pki::{
    CertificateRequest, ClusterPki, IssueCertificateError, ParseKeyError, Usage, encryption_config,
    kubeconfig,
};
use std::net::{IpAddr, Ipv4Addr};

const HOUR: SignedDuration = SignedDuration::from_hours(1);
/// Of the parts of a control plane and of nodes; renewed at each start.
const COMPONENT_LIFETIME: SignedDuration = SignedDuration::from_hours(365 * 24);
/// With less left, the certificates of a running control plane are renewed;
/// Kubernetes reads its certificate files again.
const COMPONENT_RENEWAL: SignedDuration = SignedDuration::from_hours(120 * 24);
/// Of the loops; in memory alone.
pub(crate) const OPERATOR_LIFETIME: SignedDuration = SignedDuration::from_hours(24);
const BOOTSTRAP_LIFETIME: SignedDuration = SignedDuration::from_mins(10);
const USER_LIFETIME: SignedDuration = HOUR;

/// Certificates of a control plane could not be made.
#[derive(Debug, thiserror::Error)]
pub enum WriteCertificatesError {
    /// A certificate.
    #[error("failed to make the certificate of {name}")]
    Issue {
        /// Its common name.
        name: String,
        /// Why.
        #[source]
        source: IssueCertificateError,
    },
    /// The key of an authority.
    #[error("failed to write the key of {name}")]
    Key {
        /// Name of its file.
        name: &'static str,
        /// Why.
        #[source]
        source: ParseKeyError,
    },
    /// A file.
    #[error(transparent)]
    Write(#[from] WriteFileError),
}

/// The name of an API server in TLS.
pub(crate) fn server_name(role: &Role) -> String {
    match role {
        Role::Hub => HUB_SERVER_NAME.to_owned(),
        Role::Tenant { account, name, .. } => cluster_server_name(account, name),
    }
}

fn client(name: &str, groups: &[&str], lifetime: SignedDuration) -> CertificateRequest {
    CertificateRequest {
        common_name: name.to_owned(),
        organizations: groups.iter().map(|&group| group.to_owned()).collect(),
        usage: Usage::Client,
        names: Vec::new(),
        addresses: Vec::new(),
        lifetime,
    }
}

/// The loops, in a tenant or on the hub.
pub(crate) fn operator(role: &Role) -> CertificateRequest {
    let group = match role {
        Role::Hub => HUB_OPERATORS_GROUP,
        Role::Tenant { .. } => OPERATORS_GROUP,
    };
    client(OPERATOR_NAME, &[group], OPERATOR_LIFETIME)
}

/// `system:masters`, for minutes.
pub(crate) fn bootstrap() -> CertificateRequest {
    client("neap:bootstrap", &[MASTERS_GROUP], BOOTSTRAP_LIFETIME)
}

/// Root of this machine, for an hour.
pub(crate) fn user() -> CertificateRequest {
    client(ADMIN_NAME, &[ADMINS_GROUP], USER_LIFETIME)
}

fn api_server(role: &Role) -> CertificateRequest {
    CertificateRequest {
        common_name: "kube-apiserver".to_owned(),
        organizations: Vec::new(),
        usage: Usage::Server,
        names: [
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
            "localhost",
        ]
        .map(str::to_owned)
        .into_iter()
        .chain([server_name(role)])
        .collect(),
        addresses: [Ipv4Addr::LOCALHOST, BRIDGE_ADDRESS, KUBERNETES_SERVICE]
            .map(IpAddr::V4)
            .to_vec(),
        lifetime: COMPONENT_LIFETIME,
    }
}

/// Writes what the parts of a control plane read: certificates of their own
/// and kubeconfigs. Returns when they end.
pub(crate) fn write_components(
    site: &Site,
    role: &Role,
    pki: &ClusterPki,
    now: Timestamp,
) -> Result<Timestamp, WriteCertificatesError> {
    let folder = site.pki();
    make_folder(&folder)?;
    for (name, authority) in [("server-ca", &pki.server), ("client-ca", &pki.client)] {
        // The controller manager signs with them.
        let key = authority
            .key_pem()
            .map_err(|source| WriteCertificatesError::Key { name, source })?;
        write_private(&folder.join(format!("{name}.key")), key.as_bytes())?;
        write_private(
            &folder.join(format!("{name}.crt")),
            authority.certificate_pem().as_bytes(),
        )?;
    }
    write_private(
        &folder.join("front-proxy-ca.crt"),
        pki.front_proxy.certificate_pem().as_bytes(),
    )?;
    write_private(
        &folder.join("service-account.key"),
        pki.service_account.private_pem().as_bytes(),
    )?;
    write_private(
        &folder.join("service-account.pub"),
        pki.service_account.public_pem().as_bytes(),
    )?;
    write_private(
        &site.encryption(),
        encryption_config(&pki.encryption_key).as_bytes(),
    )?;
    let mut until = Timestamp::MAX;
    let files = [
        ("apiserver", api_server(role), &pki.server),
        (
            "kubelet-client",
            client(KUBELET_CLIENT_NAME, &[], COMPONENT_LIFETIME),
            &pki.client,
        ),
        (
            "front-proxy",
            client(FRONT_PROXY_NAME, &[], COMPONENT_LIFETIME),
            &pki.front_proxy,
        ),
        (
            "controller-manager",
            client("system:kube-controller-manager", &[], COMPONENT_LIFETIME),
            &pki.client,
        ),
        (
            "scheduler",
            client("system:kube-scheduler", &[], COMPONENT_LIFETIME),
            &pki.client,
        ),
    ];
    for (file, request, authority) in files {
        let credential =
            authority
                .issue(&request, now)
                .map_err(|source| WriteCertificatesError::Issue {
                    name: request.common_name.clone(),
                    source,
                })?;
        until = until.min(credential.not_after);
        write_private(
            &folder.join(format!("{file}.key")),
            credential.key_pem.as_bytes(),
        )?;
        write_private(
            &folder.join(format!("{file}.crt")),
            credential.certificate_pem.as_bytes(),
        )?;
    }
    let server = format!("https://{}:{API_PORT}", Ipv4Addr::LOCALHOST);
    for component in ["controller-manager", "scheduler"] {
        let text = kubeconfig::with_files(
            &server,
            &folder.join("server-ca.crt"),
            &folder.join(format!("{component}.crt")),
            &folder.join(format!("{component}.key")),
        );
        write_private(&site.kubeconfig(component), text.as_bytes())?;
    }
    Ok(until)
}

/// Whether certificates that end then are to be renewed while in use.
pub(crate) fn due(until: Timestamp, now: Timestamp) -> bool {
    until.duration_since(now) < COMPONENT_RENEWAL
}

/// What a node is born with.
pub(crate) fn node_credentials(
    pki: &ClusterPki,
    node: &MachineName,
    address: Ipv4Addr,
    now: Timestamp,
) -> Result<NodeCredentials, WriteCertificatesError> {
    let name = format!("system:node:{node}");
    let failed = |name: &str| {
        let name = name.to_owned();
        move |source| WriteCertificatesError::Issue { name, source }
    };
    let serving = CertificateRequest {
        usage: Usage::Server,
        names: vec![node.as_str().to_owned()],
        addresses: vec![IpAddr::V4(address)],
        ..client(&name, &[NODES_GROUP], COMPONENT_LIFETIME)
    };
    let kubelet = client(&name, &[NODES_GROUP], COMPONENT_LIFETIME);
    let kubelet = pki.client.issue(&kubelet, now).map_err(failed(&name))?;
    let serving = pki.server.issue(&serving, now).map_err(failed(&name))?;
    let proxy = client(PROXY_NAME, &[], COMPONENT_LIFETIME);
    let proxy = pki.client.issue(&proxy, now).map_err(failed(PROXY_NAME))?;
    Ok(NodeCredentials {
        // Of the caller, who knows its record.
        distro: String::new(),
        server: API_SERVER_URL.to_owned(),
        server_ca: pki.server.certificate_pem().to_owned(),
        client_ca: pki.client.certificate_pem().to_owned(),
        client_certificate: kubelet.certificate_pem,
        client_key: kubelet.key_pem,
        proxy_certificate: proxy.certificate_pem,
        proxy_key: proxy.key_pem,
        serving_certificate: serving.certificate_pem,
        serving_key: serving.key_pem,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant() -> Role {
        Role::Tenant {
            account: "team".into(),
            name: "ci".into(),
            allow_privileged: false,
            audit: neap_core::audit::AuditLevel::Off,
        }
    }

    #[test]
    fn an_api_server_answers_to_its_own_name_and_to_no_other_clusters() {
        let names = api_server(&tenant()).names;
        assert!(names.contains(&"ci.team.clusters.neap.internal".to_owned()));
        assert!(!names.contains(&HUB_SERVER_NAME.to_owned()));
        assert!(
            api_server(&Role::Hub)
                .names
                .contains(&HUB_SERVER_NAME.to_owned())
        );
    }

    #[test]
    fn the_loops_are_no_masters_and_no_admins() {
        for role in [tenant(), Role::Hub] {
            let groups = operator(&role).organizations;
            assert!(
                !groups
                    .iter()
                    .any(|group| group == MASTERS_GROUP || group == ADMINS_GROUP),
                "{groups:?}"
            );
        }
        assert_ne!(
            operator(&tenant()).organizations,
            operator(&Role::Hub).organizations
        );
    }

    #[test]
    fn what_people_and_bootstrap_get_is_short() {
        assert_eq!(user().lifetime, SignedDuration::from_hours(1));
        assert!(bootstrap().lifetime <= SignedDuration::from_mins(10));
    }

    #[test]
    fn certificates_are_renewed_long_before_they_end() {
        let now = Timestamp::UNIX_EPOCH;
        assert!(!due(now + COMPONENT_LIFETIME, now));
        assert!(due(now + SignedDuration::from_hours(119 * 24), now));
        assert!(due(now, now + HOUR));
    }
}
