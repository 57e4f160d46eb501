//! The flags of every part of a control plane: which, and why.

use crate::site::Site;
use neap_core::addressing::{API_PORT, BRIDGE_ADDRESS, SERVICE_NETWORK};
use neap_core::audit::AuditLevel;
use neap_core::logs::AUDIT_MIB;
use serde::Serialize;

/// What people expect to find in a service account token. Tokens of one
/// Cluster are worthless in another: each has its own signing key.
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
const AUDIENCES: &str =
    "https://kubernetes.default.svc.cluster.local,https://kubernetes.default.svc";

/// The configuration of `hyperkube control-plane`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HyperkubeConfig {
    probe_kubeconfig: String,
    kine: Vec<String>,
    api_server: Vec<String>,
    controller_manager: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scheduler: Vec<String>,
}

/// What the flags depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parts {
    /// A whole control plane.
    Tenant {
        allow_privileged: bool,
        audit: AuditLevel,
    },
    /// An API with the controllers that its own objects need, and no
    /// scheduler: the hub has no pods.
    Hub,
}

impl HyperkubeConfig {
    pub(crate) fn plan(site: &Site, parts: Parts) -> Self {
        Self {
            probe_kubeconfig: site.kubeconfig("controller-manager").into_string(),
            kine: kine(site),
            api_server: api_server(site, parts),
            controller_manager: controller_manager(site, parts),
            scheduler: match parts {
                Parts::Tenant { .. } => scheduler(site),
                Parts::Hub => Vec::new(),
            },
        }
    }
}

fn kine(site: &Site) -> Vec<String> {
    vec![
        // A socket in a private folder needs no TLS.
        format!("--listen-address=unix://{}", site.store_socket()),
        format!(
            "--endpoint=sqlite://{}?_journal=WAL&cache=shared&_busy_timeout=30000",
            site.store()
        ),
        "--metrics-bind-address=0".to_owned(),
        // How often each of some sixty watches hears how far the store is
        // though nothing happened to it. An API server that must know asks,
        // and is answered at once; this only keeps an idle watch from falling
        // behind the compaction, minutes later.
        "--watch-progress-notify-interval=60s".to_owned(),
    ]
}

fn api_server(site: &Site, parts: Parts) -> Vec<String> {
    let pki = |file: &str| site.pki().join(file);
    let allow_privileged = matches!(
        parts,
        Parts::Tenant {
            allow_privileged: true,
            ..
        }
    );
    let mut flags = vec![
        format!("--etcd-servers=unix://{}", site.store_socket()),
        "--bind-address=0.0.0.0".to_owned(),
        format!("--secure-port={API_PORT}"),
        // The Service `kubernetes` needs an endpoint, and there may be no
        // default route to guess it from.
        format!("--advertise-address={}", BRIDGE_ADDRESS),
        "--endpoint-reconciler-type=lease".to_owned(),
        format!("--service-cluster-ip-range={}", SERVICE_NETWORK),
        // Who may come in.
        "--anonymous-auth=false".to_owned(),
        format!("--client-ca-file={}", pki("client-ca.crt")),
        format!("--tls-cert-file={}", pki("apiserver.crt")),
        format!("--tls-private-key-file={}", pki("apiserver.key")),
        "--authorization-mode=Node,RBAC".to_owned(),
        "--enable-admission-plugins=NodeRestriction".to_owned(),
        format!("--allow-privileged={allow_privileged}"),
        // Service accounts.
        format!("--service-account-issuer={ISSUER}"),
        format!("--api-audiences={AUDIENCES}"),
        format!("--service-account-key-file={}", pki("service-account.pub")),
        format!(
            "--service-account-signing-key-file={}",
            pki("service-account.key")
        ),
        // Secrets at rest.
        format!("--encryption-provider-config={}", site.encryption()),
        // Aggregation: with no kube-proxy beside it, to endpoints and not to
        // Service addresses.
        format!(
            "--requestheader-client-ca-file={}",
            pki("front-proxy-ca.crt")
        ),
        format!(
            "--requestheader-allowed-names={}",
            crate::names::FRONT_PROXY_NAME
        ),
        "--requestheader-extra-headers-prefix=X-Remote-Extra-".to_owned(),
        "--requestheader-group-headers=X-Remote-Group".to_owned(),
        "--requestheader-username-headers=X-Remote-User".to_owned(),
        format!("--proxy-client-cert-file={}", pki("front-proxy.crt")),
        format!("--proxy-client-key-file={}", pki("front-proxy.key")),
        "--enable-aggregator-routing".to_owned(),
        // Towards kubelets: names seldom resolve, and exec must not trust any
        // certificate.
        format!("--kubelet-certificate-authority={}", pki("server-ca.crt")),
        format!("--kubelet-client-certificate={}", pki("kubelet-client.crt")),
        format!("--kubelet-client-key={}", pki("kubelet-client.key")),
        "--kubelet-preferred-address-types=InternalIP,Hostname".to_owned(),
        // There is no second API server that could serve what this one does
        // not know; with the proxy on, it writes a lease for such peers every
        // ten seconds.
        "--feature-gates=UnknownVersionInteroperabilityProxy=false".to_owned(),
        // Events are the most frequent write, and the most rows in the store.
        "--event-ttl=30m".to_owned(),
        "--profiling=false".to_owned(),
    ];
    flags.extend(audit(site, parts));
    flags
}

fn audit(site: &Site, parts: Parts) -> Vec<String> {
    match parts {
        Parts::Hub
        | Parts::Tenant {
            audit: AuditLevel::Off,
            ..
        } => Vec::new(),
        Parts::Tenant { .. } => vec![
            format!("--audit-policy-file={}", site.audit_policy()),
            format!("--audit-log-path={}", site.audit_log()),
            format!("--audit-log-maxsize={AUDIT_MIB}"),
            "--audit-log-maxbackup=1".to_owned(),
        ],
    }
}

/// Controllers of what cannot be here: the addresses of nodes are neap's, and
/// clusters are never so large that kubelets must be told to ask less often. A
/// list of what is denied, so that a new version's controllers run unless
/// named; a name that is unknown is an error to upstream.
const DENIED: &str = "*,-node-ipam-controller,-ttl-controller";

/// What the objects of the hub need.
const HUB: &str = "namespace-controller,garbage-collector-controller,serviceaccount-controller";

fn controller_manager(site: &Site, parts: Parts) -> Vec<String> {
    let kubeconfig = site.kubeconfig("controller-manager");
    let pki = |file: &str| site.pki().join(file);
    let mut flags = vec![
        format!("--kubeconfig={kubeconfig}"),
        "--use-service-account-credentials".to_owned(),
        format!(
            "--service-account-private-key-file={}",
            pki("service-account.key")
        ),
        format!("--root-ca-file={}", pki("server-ca.crt")),
        // One replica; a lease would only be a write every two seconds.
        "--leader-elect=false".to_owned(),
        format!(
            "--controllers={}",
            match parts {
                Parts::Tenant { .. } => DENIED,
                Parts::Hub => HUB,
            }
        ),
        // Nobody asks it anything: its end is the end of the whole process.
        "--secure-port=0".to_owned(),
        // Each controller begins with an identity of its own; with the
        // default of 20 requests a second that alone takes seconds.
        "--kube-api-qps=200".to_owned(),
        "--kube-api-burst=400".to_owned(),
        "--profiling=false".to_owned(),
    ];
    if let Parts::Tenant { .. } = parts {
        flags.push("--allocate-node-cidrs=false".to_owned());
        for (signer, ca) in [
            ("kube-apiserver-client", "client-ca"),
            ("kubelet-client", "client-ca"),
            ("kubelet-serving", "server-ca"),
            ("legacy-unknown", "server-ca"),
        ] {
            flags.push(format!(
                "--cluster-signing-{signer}-cert-file={}",
                pki(&format!("{ca}.crt"))
            ));
            flags.push(format!(
                "--cluster-signing-{signer}-key-file={}",
                pki(&format!("{ca}.key"))
            ));
        }
    }
    flags
}

fn scheduler(site: &Site) -> Vec<String> {
    vec![
        format!("--config={}", site.scheduler()),
        // As the controller manager: nobody asks it anything.
        "--secure-port=0".to_owned(),
    ]
}

/// The scheduler's own configuration: a pending pod is tried again within a
/// second of a node's arrival, and nodes are filled one after another, so
/// that the others can leave.
pub(crate) fn scheduler_config(site: &Site) -> String {
    let kubeconfig = site.kubeconfig("scheduler");
    format!(
        "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: false
clientConnection:
  kubeconfig: {kubeconfig:?}
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 1
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: MostAllocated
        resources:
        - name: cpu
          weight: 1
        - name: memory
          weight: 1
"
    )
}

#[cfg(test)]
#[path = "flags/tests.rs"]
mod tests;
