//! What is said on the root-only socket: JSON, one request and one reply a
//! line.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What the program asks of `neap serve`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// A short credential of a Cluster.
    Credential {
        /// Namespace of its record.
        account: String,
        /// Its name.
        cluster: String,
    },
    /// A short credential of the hub.
    HubCredential,
    /// Who answers, and where it serves.
    Status,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "kebab-case")]
pub enum Reply {
    /// To both requests for a credential.
    Credential(MintedCredential),
    /// To the request for the status.
    Status(StatusReport),
    /// When it is refused.
    Error(Refusal),
}

/// A short client certificate and all that is needed to use it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MintedCredential {
    /// Client certificate, PEM.
    pub certificate: String,
    /// Its key, PEM.
    pub key: String,
    /// CA of the API server's certificate, PEM.
    pub ca: String,
    /// URL of the API as seen from this machine.
    pub server: String,
    /// The name that the API server has in TLS.
    pub tls_server_name: String,
    /// When the certificate ends.
    pub expires: Timestamp,
}

impl std::fmt::Debug for MintedCredential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MintedCredential")
            .field("server", &self.server)
            .field("tls_server_name", &self.tls_server_name)
            .field("expires", &self.expires)
            .finish_non_exhaustive()
    }
}

/// Who answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusReport {
    /// Version of neap.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// Identity of the installation.
    pub installation: String,
    /// URL under which all API servers are reached from this machine.
    pub endpoint: String,
    /// The distro that new Clusters get.
    pub distro: String,
}

/// A request that was understood and not granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}; {next}")]
pub struct Refusal {
    /// Stable, for programs.
    pub code: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub next: String,
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn requests_are_the_lines_that_the_plugin_writes() {
        let cases = [
            (
                r#"{"request":"credential","account":"team","cluster":"ci"}"#,
                Request::Credential {
                    account: "team".into(),
                    cluster: "ci".into(),
                },
            ),
            (r#"{"request":"hub-credential"}"#, Request::HubCredential),
            (r#"{"request":"status"}"#, Request::Status),
        ];
        for (line, request) in cases {
            assert_eq!(serde_json::from_str::<Request>(line).unwrap(), request);
            assert_eq!(serde_json::to_string(&request).unwrap(), line);
        }
    }

    #[test]
    fn a_key_is_never_in_the_debug_form() {
        let minted = MintedCredential {
            certificate: "C".into(),
            key: "topsecret".into(),
            ca: "A".into(),
            server: "https://127.0.0.1:7443".into(),
            tls_server_name: "hub.neap.internal".into(),
            expires: Timestamp::UNIX_EPOCH,
        };
        assert!(!format!("{:?}", Reply::Credential(minted)).contains("topsecret"));
    }
}
