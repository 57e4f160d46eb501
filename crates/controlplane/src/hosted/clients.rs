//! Clients that outlive their certificates.

use crate::certificates::OPERATOR_LIFETIME;
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use neap_core::addressing::API_PORT;
use neap_kube::{ApiAddress, BuildClientError, Dial};
use neap_net::NetworkNamespace;
use neap_operator::traits::Clock;
use neap_pki::{CertificateRequest, ClusterPki, IssueCertificateError};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::sync::Mutex;

/// A client is built again when its certificate has less left than this.
const RENEWAL: SignedDuration = SignedDuration::from_hours(OPERATOR_LIFETIME.as_hours() / 2);

/// No client could be made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectIdentityError {
    /// No certificate.
    #[error("failed to make the certificate of {name}")]
    Issue {
        /// Its common name.
        name: String,
        /// Why.
        #[source]
        source: IssueCertificateError,
    },
    /// No client.
    #[error("failed to build a client as {name}")]
    Build {
        /// The common name of its certificate.
        name: String,
        /// Why.
        #[source]
        source: BuildClientError,
    },
}

/// Dials the API server inside its namespace.
#[derive(Clone, Debug)]
pub(crate) struct NamespaceDial(pub(crate) NetworkNamespace);

impl NamespaceDial {
    pub(crate) async fn connect(&self) -> std::io::Result<TcpStream> {
        neap_net::dial(&self.0, SocketAddr::from((Ipv4Addr::LOCALHOST, API_PORT))).await
    }
}

impl Dial for NamespaceDial {
    fn dial(&self) -> BoxFuture<'_, std::io::Result<TcpStream>> {
        self.connect().boxed()
    }
}

/// All that a client of one API server as one identity is made from.
pub(crate) struct Source {
    pub(crate) pki: Arc<ClusterPki>,
    pub(crate) dial: Arc<dyn Dial>,
    pub(crate) server_name: String,
    pub(crate) request: CertificateRequest,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Source {
    /// A client and the end of its certificate.
    pub(crate) fn build(&self) -> Result<(kube::Client, Timestamp), ConnectIdentityError> {
        let name = || self.request.common_name.clone();
        let credential = self
            .pki
            .client
            .issue(&self.request, self.clock.now())
            .map_err(|source| ConnectIdentityError::Issue {
                name: name(),
                source,
            })?;
        let until = credential.not_after;
        let address = ApiAddress {
            server_name: self.server_name.clone(),
            ca_pem: self.pki.server.certificate_pem().to_owned(),
            certificate_pem: credential.certificate_pem,
            key_pem: credential.key_pem,
        };
        let client = neap_kube::connect(&address, Arc::clone(&self.dial)).map_err(|source| {
            ConnectIdentityError::Build {
                name: name(),
                source,
            }
        })?;
        Ok((client, until))
    }
}

/// A client whose requests always go out under a certificate that is valid
/// long enough: a caller may keep it for ever.
pub(crate) fn lasting(source: Source) -> Result<kube::Client, ConnectIdentityError> {
    let current = source.build()?;
    let shared = Arc::new((source, Mutex::new(current)));
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let shared = Arc::clone(&shared);
        async move {
            let (source, current) = &*shared;
            let client = {
                let mut current = current.lock().await;
                if current.1.duration_since(source.clock.now()) < RENEWAL {
                    *current = source
                        .build()
                        .map_err(|error| kube::Error::Service(Box::new(error)))?;
                }
                current.0.clone()
            };
            client.send(request).await
        }
    });
    Ok(kube::Client::new(service, "default"))
}

#[cfg(test)]
#[path = "clients/tests.rs"]
mod tests;
