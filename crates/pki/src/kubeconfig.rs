//! Kubeconfigs, as YAML.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use camino::Utf8Path;
use serde::Serialize;
use std::collections::BTreeMap;

/// What a kubeconfig with an exec plugin says. It holds no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecKubeconfig {
    /// URL of the API.
    pub server: String,
    /// Name that the API's certificate is verified against, and that is sent
    /// as SNI.
    pub tls_server_name: Option<String>,
    /// Authority of the API's certificate, PEM.
    pub ca_pem: String,
    /// The plugin.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment, beyond what kubectl has.
    pub env: BTreeMap<String, String>,
    /// Name of the context.
    pub context: String,
    /// Name of the cluster.
    pub cluster: String,
    /// Name of the user.
    pub user: String,
}

/// A kubeconfig that names files, for a component on this host.
pub fn with_files(
    server: &str,
    ca_file: &Utf8Path,
    certificate_file: &Utf8Path,
    key_file: &Utf8Path,
) -> String {
    write(
        Names::DEFAULT,
        Cluster {
            server,
            certificate_authority: Some(ca_file.as_str()),
            ..Cluster::default()
        },
        User {
            client_certificate: Some(certificate_file.as_str()),
            client_key: Some(key_file.as_str()),
            ..User::default()
        },
    )
}

/// A kubeconfig for people: it names the plugin that gets a credential.
pub fn with_exec(config: &ExecKubeconfig) -> String {
    write(
        Names {
            context: &config.context,
            cluster: &config.cluster,
            user: &config.user,
        },
        Cluster {
            server: &config.server,
            tls_server_name: config.tls_server_name.as_deref(),
            certificate_authority_data: Some(STANDARD.encode(&config.ca_pem)),
            ..Cluster::default()
        },
        User {
            exec: Some(Exec {
                api_version: "client.authentication.k8s.io/v1",
                command: &config.command,
                args: &config.args,
                env: config
                    .env
                    .iter()
                    .map(|(name, value)| EnvVar { name, value })
                    .collect(),
                interactive_mode: "Never",
                provide_cluster_info: false,
            }),
            ..User::default()
        },
    )
}

struct Names<'a> {
    context: &'a str,
    cluster: &'a str,
    user: &'a str,
}

impl Names<'static> {
    const DEFAULT: Self = Self {
        context: "default",
        cluster: "default",
        user: "default",
    };
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Config<'a> {
    api_version: &'static str,
    kind: &'static str,
    #[serde(rename = "current-context")]
    current_context: &'a str,
    clusters: [Named<'a, &'static str, Cluster<'a>>; 1],
    contexts: [Named<'a, &'static str, Context<'a>>; 1],
    users: [Named<'a, &'static str, User<'a>>; 1],
}

/// `{name: …, <kind>: …}`.
struct Named<'a, K, V> {
    name: &'a str,
    kind: K,
    value: V,
}

impl<V: Serialize> Serialize for Named<'_, &'static str, V> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("name", self.name)?;
        map.serialize_entry(self.kind, &self.value)?;
        map.end()
    }
}

#[derive(Default, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Cluster<'a> {
    server: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_server_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate_authority: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate_authority_data: Option<String>,
}

#[derive(Serialize)]
struct Context<'a> {
    cluster: &'a str,
    user: &'a str,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "kebab-case")]
struct User<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    client_certificate: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exec: Option<Exec<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Exec<'a> {
    api_version: &'static str,
    command: &'a str,
    args: &'a [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    env: Vec<EnvVar<'a>>,
    interactive_mode: &'static str,
    provide_cluster_info: bool,
}

#[derive(Serialize)]
struct EnvVar<'a> {
    name: &'a str,
    value: &'a str,
}

fn write(names: Names<'_>, cluster: Cluster<'_>, user: User<'_>) -> String {
    let Names {
        context,
        cluster: cluster_name,
        user: user_name,
    } = names;
    let config = Config {
        api_version: "v1",
        kind: "Config",
        current_context: context,
        clusters: [Named {
            name: cluster_name,
            kind: "cluster",
            value: cluster,
        }],
        contexts: [Named {
            name: context,
            kind: "context",
            value: Context {
                cluster: cluster_name,
                user: user_name,
            },
        }],
        users: [Named {
            name: user_name,
            kind: "user",
            value: user,
        }],
    };
    // Certificates stay on the line of their key, as kubectl writes them.
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    serde_saphyr::to_string_with_options(&config, options)
        .expect("a struct of strings can be written as YAML")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use serde_json::{Value, json};

    fn parse(yaml: &str) -> Value {
        serde_saphyr::from_str(yaml).unwrap()
    }

    #[test]
    fn files_are_named_by_path() {
        let config = parse(&with_files(
            "https://10.250.0.1:6443",
            "/x/ca.pem".into(),
            "/x/tls.pem".into(),
            "/x/tls.key".into(),
        ));
        assert_eq!(
            config,
            json!({
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "default",
                "clusters": [{"name": "default", "cluster": {
                    "server": "https://10.250.0.1:6443",
                    "certificate-authority": "/x/ca.pem",
                }}],
                "contexts": [{"name": "default", "context": {
                    "cluster": "default", "user": "default",
                }}],
                "users": [{"name": "default", "user": {
                    "client-certificate": "/x/tls.pem",
                    "client-key": "/x/tls.key",
                }}],
            })
        );
    }

    #[test]
    fn a_long_authority_stays_on_one_line() {
        let yaml = with_exec(&ExecKubeconfig {
            server: "https://h".into(),
            tls_server_name: None,
            ca_pem: "x".repeat(900),
            command: "neap".into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            context: "c".into(),
            cluster: "c".into(),
            user: "u".into(),
        });
        assert!(!yaml.contains('>'), "no value is folded: {yaml}");
    }

    #[test]
    fn a_users_kubeconfig_names_the_plugin_and_holds_no_secret() {
        let yaml = with_exec(&ExecKubeconfig {
            server: "https://127.0.0.1:7443".into(),
            tls_server_name: Some("web.default.neap".into()),
            ca_pem: "CA\n".into(),
            command: "/usr/bin/neap".into(),
            args: vec![
                "credential".into(),
                "--cluster".into(),
                "default/web: x #1".into(),
            ],
            env: BTreeMap::from([("NEAP_DATA".into(), "/var/lib/neap".into())]),
            context: "default/web".into(),
            cluster: "yes".into(),
            user: "neap".into(),
        });
        let config = parse(&yaml);
        assert_eq!(
            config["clusters"][0]["name"], "yes",
            "a word that YAML reads as true"
        );
        assert_eq!(
            config["clusters"][0]["cluster"]["certificate-authority-data"],
            "Q0EK"
        );
        assert_eq!(
            config["clusters"][0]["cluster"]["tls-server-name"],
            "web.default.neap"
        );
        assert_eq!(
            config["users"][0]["user"],
            json!({"exec": {
                "apiVersion": "client.authentication.k8s.io/v1",
                "command": "/usr/bin/neap",
                "args": ["credential", "--cluster", "default/web: x #1"],
                "env": [{"name": "NEAP_DATA", "value": "/var/lib/neap"}],
                "interactiveMode": "Never",
                "provideClusterInfo": false,
            }})
        );
        assert!(!yaml.contains("client-key"));
    }
}
