//! What is asked on the socket, and the way of a stream to its API server.

use super::HostedControlPlanes;
use super::clients::NamespaceDial;
use crate::access::listener::Reach;
use crate::access::socket::Answer;
use crate::access::{MintedCredential, Refusal, Reply, Request, StatusReport};
use crate::certificates;
use crate::names::{HUB_SERVER_NAME, cluster_server_name};
use async_trait::async_trait;
use neap_core::ids::ClusterUid;
use neap_operator::traits::Cause;
use tokio::net::TcpStream;
use tracing::warn;

impl HostedControlPlanes {
    /// A certificate for root of this machine, for an hour.
    async fn mint(&self, uid: &ClusterUid) -> Result<MintedCredential, Cause> {
        let entry = self.entry(uid)?;
        let mut state = entry.state.lock().await;
        let (record, pki) = self.load(&entry, &mut state)?;
        let credential = pki
            .client
            .issue(&certificates::user(), self.shared.clock.now())?;
        Ok(MintedCredential {
            certificate: credential.certificate_pem,
            key: credential.key_pem,
            ca: pki.server.certificate_pem().to_owned(),
            server: self.shared.config.server(),
            tls_server_name: certificates::server_name(&record.role),
            expires: credential.not_after,
        })
    }

    async fn mint_by_name(&self, server_name: &str, missing: Refusal) -> Reply {
        let Some(uid) = self.shared.directory.find(server_name) else {
            return Reply::Error(missing);
        };
        match self.mint(&uid).await {
            Ok(credential) => Reply::Credential(credential),
            Err(error) => {
                warn!(cluster = %uid, error = &*error, "failed to mint a credential");
                Reply::Error(Refusal {
                    code: "CredentialNotMinted".to_owned(),
                    message: format!("no credential could be made for {server_name}: {error}"),
                    next: "see the log of neap serve".to_owned(),
                })
            }
        }
    }
}

#[async_trait]
impl Answer for HostedControlPlanes {
    async fn answer(&self, request: Request) -> Reply {
        match request {
            Request::Credential { account, cluster } => {
                let missing = Refusal {
                    code: "ClusterNotFound".to_owned(),
                    message: format!("account {account} has no cluster {cluster} that was started"),
                    next: format!("see `neap cluster list -n {account}`"),
                };
                self.mint_by_name(&cluster_server_name(&account, &cluster), missing)
                    .await
            }
            Request::HubCredential => {
                let missing = Refusal {
                    code: "HubNotStarted".to_owned(),
                    message: "the management API is not started yet".to_owned(),
                    next: "try again in a few seconds".to_owned(),
                };
                self.mint_by_name(HUB_SERVER_NAME, missing).await
            }
            Request::Status => Reply::Status(StatusReport {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                pid: std::process::id(),
                installation: self.shared.config.installation.as_str().to_owned(),
                endpoint: self.shared.config.server(),
                distro: self.shared.config.distros.newest().id.clone(),
            }),
        }
    }
}

#[async_trait]
impl Reach for HostedControlPlanes {
    async fn reach(&self, cluster: &ClusterUid) -> std::io::Result<TcpStream> {
        let entry = self.entry(cluster).map_err(std::io::Error::other)?;
        NamespaceDial(entry.site.namespace().clone())
            .connect()
            .await
    }
}
