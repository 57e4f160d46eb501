//! kubeconfigs that hold no secret: they name this program as exec plugin.

use crate::access::Access;
use crate::cli::Global;
use crate::output::{Format, encode, print};
use crate::problem::Problem;
use crate::records::get_cluster;
use anyhow::Context as _;
use camino::{Utf8Path, Utf8PathBuf};
use neap_controlplane::access::MintedCredential;
use neap_pki::kubeconfig::{ExecKubeconfig, with_exec};
use std::collections::BTreeMap;

pub(crate) async fn cluster_kubeconfig(global: &Global, name: &str) -> anyhow::Result<()> {
    let account = &global.account;
    let doing = || format!("failed to write a kubeconfig for cluster {account}/{name}");
    let access = Access::new(&global.data_dir);
    let hub = access.hub().await.with_context(doing)?;
    get_cluster(&hub, account, name).await.with_context(doing)?;
    let credential = access
        .cluster_credential(account, name)
        .await
        .with_context(doing)?;
    let data_dir = absolute(&global.data_dir).with_context(doing)?;
    let target = Target::Cluster { account, name };
    say(
        &write(
            &credential,
            &program().with_context(doing)?,
            &data_dir,
            target,
        ),
        global.output,
    )
}

pub(crate) async fn hub_kubeconfig(global: &Global) -> anyhow::Result<()> {
    let doing = "failed to write a kubeconfig for the management API";
    let credential = Access::new(&global.data_dir)
        .hub_credential()
        .await
        .context(doing)?;
    let data_dir = absolute(&global.data_dir).context(doing)?;
    say(
        &write(
            &credential,
            &program().context(doing)?,
            &data_dir,
            Target::Hub,
        ),
        global.output,
    )
}

/// A kubeconfig is YAML, of which JSON is a part.
fn say(kubeconfig: &str, format: Format) -> anyhow::Result<()> {
    match format {
        Format::Table | Format::Yaml => print(kubeconfig),
        Format::Json => {
            let value: serde_json::Value =
                serde_saphyr::from_str(kubeconfig).context("failed to write JSON")?;
            print(&encode(&value, format)?)
        }
        Format::Wide | Format::Name => Err(Problem::Usage {
            message: "a kubeconfig is written with -o yaml or -o json".into(),
        }
        .into()),
    }
}

/// Whose API the kubeconfig is for.
#[derive(Clone, Copy, Debug)]
enum Target<'a> {
    Hub,
    Cluster { account: &'a str, name: &'a str },
}

fn write(
    credential: &MintedCredential,
    program: &Utf8Path,
    data_dir: &Utf8Path,
    target: Target<'_>,
) -> String {
    let mut args = vec![
        "credential".to_owned(),
        "--data-dir".to_owned(),
        data_dir.to_string(),
    ];
    let name = match target {
        Target::Hub => {
            args.push("--hub".to_owned());
            "neap".to_owned()
        }
        Target::Cluster { account, name } => {
            args.extend(["--account", account, "--cluster", name].map(str::to_owned));
            format!("neap-{account}-{name}")
        }
    };
    with_exec(&ExecKubeconfig {
        server: credential.server.clone(),
        tls_server_name: Some(credential.tls_server_name.clone()),
        ca_pem: credential.ca.clone(),
        command: program.to_string(),
        args,
        env: BTreeMap::new(),
        context: name.clone(),
        cluster: name.clone(),
        user: name,
    })
}

/// This very program: kubectl may run with another PATH.
fn program() -> anyhow::Result<Utf8PathBuf> {
    let path = std::env::current_exe().context("failed to find this program")?;
    Ok(Utf8PathBuf::try_from(path)?)
}

/// kubectl may run in another folder.
fn absolute(path: &Utf8Path) -> anyhow::Result<Utf8PathBuf> {
    camino::absolute_utf8(path).with_context(|| format!("failed to find {path}"))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn written(target: Target<'_>) -> String {
        let credential = MintedCredential {
            certificate: "CERTIFICATE".into(),
            key: "TOPSECRET".into(),
            ca: "-----BEGIN CERTIFICATE-----".into(),
            server: "https://127.0.0.1:7443".into(),
            tls_server_name: "ci.team.clusters.neap.internal".into(),
            expires: jiff::Timestamp::UNIX_EPOCH,
        };
        write(
            &credential,
            "/usr/bin/neap".into(),
            "/var/lib/neap".into(),
            target,
        )
    }

    #[test]
    fn a_kubeconfig_holds_no_secret() {
        for target in [
            Target::Hub,
            Target::Cluster {
                account: "team",
                name: "ci",
            },
        ] {
            let text = written(target);
            for secret in [
                "TOPSECRET",
                "CERTIFICATE\"",
                "client-key-data",
                "client-certificate-data",
                "token",
            ] {
                assert!(!text.contains(secret), "{secret} is in\n{text}");
            }
        }
    }

    #[test]
    fn kubectl_is_told_whom_to_ask_and_whom_to_expect() {
        let text = written(Target::Cluster {
            account: "team",
            name: "ci",
        });
        let config: kube::config::Kubeconfig = serde_saphyr::from_str(&text).unwrap();
        let cluster = config.clusters.first().unwrap().cluster.as_ref().unwrap();
        assert_eq!(cluster.server.as_deref(), Some("https://127.0.0.1:7443"));
        assert_eq!(
            cluster.tls_server_name.as_deref(),
            Some("ci.team.clusters.neap.internal")
        );
        assert!(cluster.certificate_authority_data.is_some());
        let user = config
            .auth_infos
            .first()
            .unwrap()
            .auth_info
            .as_ref()
            .unwrap();
        let exec = user.exec.as_ref().unwrap();
        assert_eq!(exec.command.as_deref(), Some("/usr/bin/neap"));
        assert_eq!(
            exec.args.clone().unwrap(),
            [
                "credential",
                "--data-dir",
                "/var/lib/neap",
                "--account",
                "team",
                "--cluster",
                "ci"
            ]
        );
        let context = config.contexts.first().unwrap();
        assert_eq!(
            config.current_context.as_deref(),
            Some(context.name.as_str())
        );
    }
}
