#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::site::tests::site;
use std::collections::BTreeSet;

const TENANT: Parts = Parts::Tenant {
    allow_privileged: false,
    audit: AuditLevel::Off,
};

fn value<'a>(flags: &'a [String], name: &str) -> Option<&'a str> {
    flags
        .iter()
        .find_map(|flag| flag.strip_prefix(&format!("--{name}=")))
}

fn all(config: &HyperkubeConfig) -> impl Iterator<Item = &Vec<String>> {
    [
        &config.kine,
        &config.api_server,
        &config.controller_manager,
        &config.scheduler,
    ]
    .into_iter()
}

#[test]
fn nobody_comes_in_without_a_certificate_or_a_token() {
    let flags = api_server(&site(), TENANT);
    assert_eq!(value(&flags, "anonymous-auth"), Some("false"));
    assert_eq!(value(&flags, "authorization-mode"), Some("Node,RBAC"));
    assert_eq!(
        value(&flags, "enable-admission-plugins"),
        Some("NodeRestriction")
    );
    assert_eq!(value(&flags, "enable-bootstrap-token-auth"), None);
}

#[test]
fn client_and_proxy_certificates_have_authorities_of_their_own() {
    let flags = api_server(&site(), TENANT);
    let authorities: BTreeSet<_> = [
        "client-ca-file",
        "requestheader-client-ca-file",
        "kubelet-certificate-authority",
    ]
    .map(|flag| value(&flags, flag).unwrap())
    .into();
    assert_eq!(authorities.len(), 3);
}

#[test]
fn exec_reaches_only_kubelets_that_prove_who_they_are() {
    let flags = api_server(&site(), TENANT);
    for flag in [
        "kubelet-certificate-authority",
        "kubelet-client-certificate",
        "kubelet-client-key",
    ] {
        assert!(value(&flags, flag).is_some(), "{flag}");
    }
    assert_eq!(
        value(&flags, "kubelet-preferred-address-types"),
        Some("InternalIP,Hostname")
    );
}

#[test]
fn the_service_kubernetes_has_the_bridge_as_endpoint() {
    let flags = api_server(&site(), TENANT);
    assert_eq!(value(&flags, "advertise-address"), Some("10.250.0.1"));
    assert_eq!(value(&flags, "endpoint-reconciler-type"), Some("lease"));
    assert_eq!(
        value(&flags, "service-cluster-ip-range"),
        Some("10.96.0.0/16")
    );
    assert!(flags.contains(&"--enable-aggregator-routing".to_owned()));
}

#[test]
fn secrets_are_encrypted_and_privileged_pods_need_to_be_asked_for() {
    let flags = api_server(&site(), TENANT);
    assert!(value(&flags, "encryption-provider-config").is_some());
    assert_eq!(value(&flags, "allow-privileged"), Some("false"));
    let asked = api_server(
        &site(),
        Parts::Tenant {
            allow_privileged: true,
            audit: AuditLevel::Off,
        },
    );
    assert_eq!(value(&asked, "allow-privileged"), Some("true"));
    assert_eq!(
        value(&api_server(&site(), Parts::Hub), "allow-privileged"),
        Some("false")
    );
}

#[test]
fn an_audit_log_is_kept_where_it_is_asked_for_and_is_bounded() {
    let log = |parts| value(&api_server(&site(), parts), "audit-log-path").map(str::to_owned);
    assert_eq!(log(TENANT), None);
    assert_eq!(log(Parts::Hub), None);
    let asked = Parts::Tenant {
        allow_privileged: false,
        audit: AuditLevel::Metadata,
    };
    assert_eq!(log(asked), Some(site().audit_log().into_string()));
    let flags = api_server(&site(), asked);
    assert_eq!(value(&flags, "audit-log-maxbackup"), Some("1"));
    assert_eq!(value(&flags, "audit-log-maxsize"), Some("16"));
}

#[test]
fn each_signer_has_the_authority_that_its_users_trust() {
    let flags = controller_manager(&site(), TENANT);
    let signer = |name: &str| value(&flags, &format!("cluster-signing-{name}-cert-file")).unwrap();
    assert!(signer("kube-apiserver-client").ends_with("/client-ca.crt"));
    assert!(signer("kubelet-client").ends_with("/client-ca.crt"));
    assert!(signer("kubelet-serving").ends_with("/server-ca.crt"));
    assert!(signer("legacy-unknown").ends_with("/server-ca.crt"));
    // The combined pair cannot be mixed with these.
    assert_eq!(value(&flags, "cluster-signing-cert-file"), None);
}

#[test]
fn the_controllers_of_a_tenant_are_all_but_those_named() {
    let flags = controller_manager(&site(), TENANT);
    let controllers: Vec<_> = value(&flags, "controllers").unwrap().split(',').collect();
    assert_eq!(controllers.first(), Some(&"*"));
    assert!(controllers.iter().skip(1).all(|name| name.starts_with('-')));
    assert_eq!(value(&flags, "leader-elect"), Some("false"));
    // A dead node keeps the time that upstream gives it.
    assert_eq!(value(&flags, "node-monitor-grace-period"), None);
}

#[test]
fn the_hub_has_three_controllers_and_no_scheduler() {
    let config = HyperkubeConfig::plan(&site(), Parts::Hub);
    assert!(config.scheduler.is_empty());
    assert_eq!(
        value(&config.controller_manager, "controllers")
            .unwrap()
            .split(',')
            .count(),
        3
    );
    let json = serde_json::to_value(&config).unwrap();
    assert!(json.get("scheduler").is_none());
}

#[test]
fn the_configuration_has_the_keys_that_hyperkube_reads_and_no_other() {
    let json = serde_json::to_value(HyperkubeConfig::plan(&site(), TENANT)).unwrap();
    let keys: BTreeSet<_> = json
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        keys,
        BTreeSet::from([
            "probeKubeconfig",
            "kine",
            "apiServer",
            "controllerManager",
            "scheduler"
        ])
    );
}

#[test]
fn nothing_of_two_clusters_can_collide_on_the_host() {
    let config = HyperkubeConfig::plan(&site(), TENANT);
    // The one listener is the API server's, in a namespace of its own; the
    // store has a socket in the private folder.
    assert_eq!(value(&config.kine, "metrics-bind-address"), Some("0"));
    assert!(
        value(&config.kine, "listen-address")
            .unwrap()
            .starts_with("unix:///var/lib/neap/clusters/")
    );
    assert_eq!(value(&config.controller_manager, "secure-port"), Some("0"));
    assert_eq!(value(&config.scheduler, "secure-port"), Some("0"));
}

#[test]
fn no_flag_holds_a_secret_and_every_flag_is_given_once() {
    let config = HyperkubeConfig::plan(&site(), TENANT);
    for flags in all(&config) {
        let names: Vec<_> = flags
            .iter()
            .map(|flag| flag.split('=').next().unwrap())
            .collect();
        assert_eq!(
            names.len(),
            names.iter().collect::<BTreeSet<_>>().len(),
            "{names:?}"
        );
        assert!(
            flags
                .iter()
                .all(|flag| !flag.contains("PRIVATE") && !flag.contains("token="))
        );
    }
}

#[test]
fn the_scheduler_fills_nodes_and_tries_again_within_a_second() {
    let text = scheduler_config(&site());
    let config: serde_json::Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(config["podInitialBackoffSeconds"], 1);
    assert_eq!(config["podMaxBackoffSeconds"], 1);
    assert_eq!(config["leaderElection"]["leaderElect"], false);
    let scoring = &config["profiles"][0]["pluginConfig"][0]["args"]["scoringStrategy"];
    assert_eq!(scoring["type"], "MostAllocated");
    let kubeconfig = config["clientConnection"]["kubeconfig"].as_str().unwrap();
    assert!(kubeconfig.ends_with("/control-plane/scheduler.kubeconfig"));
}

#[test]
fn an_idle_control_plane_is_left_alone() {
    let config = HyperkubeConfig::plan(&site(), TENANT);
    assert_eq!(
        value(&config.kine, "watch-progress-notify-interval"),
        Some("60s")
    );
    // One API server: no lease for its peers.
    assert_eq!(
        value(&config.api_server, "feature-gates"),
        Some("UnknownVersionInteroperabilityProxy=false")
    );
    assert_eq!(
        value(&config.controller_manager, "leader-elect"),
        Some("false")
    );
}
