//! How this program reaches the management API and the clusters of an
//! installation: it asks on the root-only socket for a short credential and
//! speaks TLS to the one listener, as kubectl does.

use crate::problem::Problem;
use anyhow::{Context as _, bail};
use camino::{Utf8Path, Utf8PathBuf};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use neap_controlplane::access::socket::{AskSocketError, ask};
use neap_controlplane::access::{MintedCredential, Reply, Request, StatusReport};
use neap_kube::{ApiAddress, Dial};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpStream;

/// Name of the socket in the data folder.
pub(crate) const SOCKET: &str = "neap.sock";

/// The way into one installation.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    data_dir: Utf8PathBuf,
}

impl Access {
    /// Of the installation in this folder.
    pub(crate) fn new(data_dir: &Utf8Path) -> Self {
        Self {
            data_dir: data_dir.to_owned(),
        }
    }

    /// Who serves it.
    pub(crate) async fn status(&self) -> anyhow::Result<StatusReport> {
        match self.ask(&Request::Status).await? {
            Reply::Status(report) => Ok(report),
            reply => Err(unexpected(reply)),
        }
    }

    /// A short credential of the hub.
    pub(crate) async fn hub_credential(&self) -> anyhow::Result<MintedCredential> {
        match self.ask(&Request::HubCredential).await? {
            Reply::Credential(credential) => Ok(credential),
            reply => Err(unexpected(reply)),
        }
    }

    /// A short credential of a Cluster.
    pub(crate) async fn cluster_credential(
        &self,
        account: &str,
        cluster: &str,
    ) -> anyhow::Result<MintedCredential> {
        let request = Request::Credential {
            account: account.to_owned(),
            cluster: cluster.to_owned(),
        };
        match self.ask(&request).await? {
            Reply::Credential(credential) => Ok(credential),
            reply => Err(unexpected(reply)),
        }
    }

    /// A client of the hub.
    pub(crate) async fn hub(&self) -> anyhow::Result<kube::Client> {
        client(
            self.hub_credential()
                .await
                .context("failed to reach the management API")?,
        )
    }

    /// A client of a Cluster.
    pub(crate) async fn tenant(
        &self,
        account: &str,
        cluster: &str,
    ) -> anyhow::Result<kube::Client> {
        let credential = self
            .cluster_credential(account, cluster)
            .await
            .with_context(|| format!("failed to reach cluster {account}/{cluster}"))?;
        client(credential)
    }

    async fn ask(&self, request: &Request) -> anyhow::Result<Reply> {
        let reply = ask(&self.data_dir.join(SOCKET), request).await;
        match reply {
            Ok(Reply::Error(refusal)) => Err(Problem::RefusedBySocket {
                code: refusal.code,
                message: refusal.message,
                next: refusal.next,
            }
            .into()),
            Ok(reply) => Ok(reply),
            Err(AskSocketError::Connect { source, .. })
                if source.kind() == std::io::ErrorKind::PermissionDenied =>
            {
                Err(Problem::NotRoot {
                    what: "access to the installation",
                }
                .into())
            }
            Err(AskSocketError::Connect { .. }) => Err(Problem::NotServing {
                data_dir: self.data_dir.clone(),
            }
            .into()),
            Err(AskSocketError::Exchange { source, .. }) => Err(Problem::NoAnswer {
                data_dir: self.data_dir.clone(),
                why: source,
            }
            .into()),
            Err(error) => Err(error.into()),
        }
    }
}

fn unexpected(_: Reply) -> anyhow::Error {
    anyhow::anyhow!(
        "`neap serve` gave another answer than was asked for; both ends need the same version of neap"
    )
}

fn client(credential: MintedCredential) -> anyhow::Result<kube::Client> {
    let address = address_of(&credential.server)?;
    let api = ApiAddress {
        server_name: credential.tls_server_name,
        ca_pem: credential.ca,
        certificate_pem: credential.certificate,
        key_pem: credential.key,
    };
    neap_kube::connect(&api, Arc::new(Listener { address })).context("failed to make a client")
}

/// Host and port of a URL that `serve` gave out.
fn address_of(server: &str) -> anyhow::Result<SocketAddr> {
    let Some(address) = server.strip_prefix("https://") else {
        bail!("{server} is no https URL")
    };
    address
        .trim_end_matches('/')
        .parse()
        .with_context(|| format!("{server} names no address"))
}

/// Dials the one listener.
#[derive(Debug)]
struct Listener {
    address: SocketAddr,
}

impl Dial for Listener {
    fn dial(&self) -> BoxFuture<'_, std::io::Result<TcpStream>> {
        TcpStream::connect(self.address).boxed()
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn the_address_is_that_of_the_url() {
        assert_eq!(
            address_of("https://127.0.0.1:7443").unwrap(),
            "127.0.0.1:7443".parse().unwrap()
        );
        assert_eq!(
            address_of("https://[::1]:7443/").unwrap(),
            "[::1]:7443".parse().unwrap()
        );
        assert!(address_of("http://127.0.0.1:7443").is_err());
        assert!(address_of("https://example.org").is_err());
    }

    #[tokio::test]
    async fn a_neap_that_hangs_up_is_one_that_cannot_be_reached() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap();
        let listener = tokio::net::UnixListener::bind(path.join(SOCKET)).unwrap();
        let hang_up = tokio::spawn(async move { drop(listener.accept().await) });
        let error = Access::new(path).hub_credential().await.unwrap_err();
        hang_up.await.unwrap();
        let report = crate::problem::report(&error);
        assert_eq!(report.exit, crate::problem::Exit::Unreachable);
        assert!(
            report.text.contains("hint: see whether `neap serve`"),
            "{}",
            report.text
        );
    }

    #[tokio::test]
    async fn a_folder_that_nobody_serves_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap();
        let error = Access::new(path).hub_credential().await.unwrap_err();
        match error
            .chain()
            .find_map(|cause| cause.downcast_ref::<Problem>())
        {
            Some(Problem::NotServing { data_dir }) => assert_eq!(data_dir, path),
            other => panic!("{other:?}"),
        }
    }
}
