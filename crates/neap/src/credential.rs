//! `neap credential`: the exec plugin that kubeconfigs name.

use crate::access::Access;
use crate::cli::{CredentialArgs, Global};
use crate::output::print;
use crate::problem::Problem;
use anyhow::Context as _;
use neap_controlplane::access::MintedCredential;
use neap_pki::{Credential, exec_credential};
use serde_json::Value;

/// The version that is answered when none is asked for.
const VERSION: &str = "client.authentication.k8s.io/v1";
/// Versions whose answer has the same form.
const KNOWN: [&str; 2] = [VERSION, "client.authentication.k8s.io/v1beta1"];

pub(crate) async fn credential(global: &Global, args: &CredentialArgs) -> anyhow::Result<()> {
    let version = asked_version(std::env::var("KUBERNETES_EXEC_INFO").ok().as_deref());
    let access = Access::new(&global.data_dir);
    let minted = match &args.cluster {
        Some(cluster) => {
            let doing = || {
                format!(
                    "failed to get a credential of cluster {}/{cluster}",
                    global.account
                )
            };
            access
                .cluster_credential(&global.account, cluster)
                .await
                .with_context(doing)?
        }
        None if args.hub => access
            .hub_credential()
            .await
            .context("failed to get a credential of the management API")?,
        None => {
            return Err(Problem::Usage {
                message: "name a cluster with --cluster, or --hub".into(),
            }
            .into());
        }
    };
    print(&format!("{}\n", answer(minted, version)?))
}

/// The version that the client speaks. What cannot be read or is not known is
/// answered as the current one: the client refuses that with its own words.
fn asked_version(info: Option<&str>) -> &'static str {
    let info: Value = info
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let asked = info
        .get("apiVersion")
        .and_then(Value::as_str)
        .unwrap_or(VERSION);
    KNOWN
        .into_iter()
        .find(|known| *known == asked)
        .unwrap_or(VERSION)
}

fn answer(minted: MintedCredential, version: &str) -> anyhow::Result<String> {
    let credential = Credential {
        certificate_pem: minted.certificate,
        key_pem: minted.key,
        not_after: minted.expires,
    };
    let mut answer: Value = serde_json::from_str(&exec_credential(&credential))
        .context("failed to write the credential")?;
    if let Some(field) = answer.get_mut("apiVersion") {
        *field = version.into();
    }
    Ok(answer.to_string())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn the_version_is_the_clients_where_it_is_known() {
        for (info, version) in [
            (None, VERSION),
            (Some("not json"), VERSION),
            (Some("[]"), VERSION),
            (Some(r#"{"apiVersion": 7}"#), VERSION),
            (
                Some(r#"{"apiVersion": "client.authentication.k8s.io/v9"}"#),
                VERSION,
            ),
            (
                Some(r#"{"apiVersion": "client.authentication.k8s.io/v1beta1"}"#),
                "client.authentication.k8s.io/v1beta1",
            ),
        ] {
            assert_eq!(asked_version(info), version, "{info:?}");
        }
    }

    #[test]
    fn the_answer_is_what_client_go_reads() {
        let minted = MintedCredential {
            certificate: "C".into(),
            key: "K".into(),
            ca: "A".into(),
            server: "https://127.0.0.1:7443".into(),
            tls_server_name: "hub.neap.internal".into(),
            expires: "2026-01-01T00:00:00Z".parse().unwrap(),
        };
        let answer: Value = serde_json::from_str(&answer(minted, KNOWN[1]).unwrap()).unwrap();
        assert_eq!(answer.pointer("/apiVersion").unwrap(), KNOWN[1]);
        assert_eq!(answer.pointer("/kind").unwrap(), "ExecCredential");
        assert_eq!(
            answer.pointer("/status/clientCertificateData").unwrap(),
            "C"
        );
        assert_eq!(answer.pointer("/status/clientKeyData").unwrap(), "K");
        assert_eq!(
            answer.pointer("/status/expirationTimestamp").unwrap(),
            "2026-01-01T00:00:00Z"
        );
    }
}
