//! A client whose connections are opened by whoever knows the way.

mod tls;

use futures::future::BoxFuture;
use http::{HeaderValue, Request, Uri, header::USER_AGENT};
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::Body;
use kube::client::middleware::BaseUriLayer;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, InvalidDnsNameError, PrivateKeyDer, ServerName, pem};
use rustls::{ClientConfig, RootCertStore};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tls::TlsConnector;
use tokio::net::TcpStream;
use tower::{Layer, ServiceExt};

/// How long a connection may take, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an answer may take to begin. A watch answers at once, and then
/// goes on for as long as it likes.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// A peer that leaves a ping unanswered is dead, and every watch over the
/// connection ends with it.
const PING_INTERVAL: Duration = Duration::from_secs(5);
/// How long a ping may stay unanswered.
const PING_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an idle connection is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);

/// Opens connections to one API server, wherever it is.
pub trait Dial: Send + Sync {
    /// Opens one.
    fn dial(&self) -> BoxFuture<'_, io::Result<TcpStream>>;
}

/// Whom to speak to, and as whom.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiAddress {
    /// Name or address that the server's certificate must bear; a name is sent
    /// as SNI.
    pub server_name: String,
    /// Authority of the server's certificate, PEM.
    pub ca_pem: String,
    /// Own certificate, PEM.
    pub certificate_pem: String,
    /// Its key, PEM.
    pub key_pem: String,
}

impl fmt::Debug for ApiAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiAddress")
            .field("server_name", &self.server_name)
            .finish_non_exhaustive()
    }
}

/// A client could not be made.
#[derive(Debug, thiserror::Error)]
pub enum BuildClientError {
    /// Neither a DNS name nor an address.
    #[error("{name:?} is no name of a server")]
    ServerName {
        /// As given.
        name: String,
        /// Why.
        #[source]
        source: InvalidDnsNameError,
    },
    /// It cannot stand in a URL.
    #[error("{name:?} cannot stand in a URL")]
    Url {
        /// As given.
        name: String,
        /// Why.
        #[source]
        source: http::Error,
    },
    /// A PEM text holds nothing usable.
    #[error("failed to read the {what}")]
    Pem {
        /// Which.
        what: &'static str,
        /// Why.
        #[source]
        source: pem::Error,
    },
    /// A PEM text holds no certificate.
    #[error("the {what} holds no certificate")]
    NoCertificate {
        /// Which.
        what: &'static str,
    },
    /// TLS takes them not.
    #[error("TLS refuses the certificates")]
    Tls(#[source] rustls::Error),
}

/// A client of the API server at this address, over connections that `dial`
/// opens. The first is opened by the first request.
pub fn connect(
    address: &ApiAddress,
    dial: Arc<dyn Dial>,
) -> Result<kube::Client, BuildClientError> {
    let name = &address.server_name;
    let server_name =
        ServerName::try_from(name.clone()).map_err(|source| BuildClientError::ServerName {
            name: name.clone(),
            source,
        })?;
    let base = base_uri(&server_name).map_err(|source| BuildClientError::Url {
        name: name.clone(),
        source,
    })?;
    let connector = TlsConnector::new(dial, Arc::new(client_config(address)?), server_name);
    let http: legacy::Client<_, Body> = legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_TIMEOUT)
        .http2_keep_alive_interval(PING_INTERVAL)
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .build(connector);
    let service = tower::service_fn(move |mut request: Request<Body>| {
        request
            .headers_mut()
            .entry(USER_AGENT)
            .or_insert(HeaderValue::from_static(concat!(
                "neap/",
                env!("CARGO_PKG_VERSION")
            )));
        let answer = http.request(request);
        async move {
            match tokio::time::timeout(ANSWER_TIMEOUT, answer).await {
                Ok(answer) => answer.map_err(tower::BoxError::from),
                Err(_) => Err(tower::BoxError::from(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "the API server accepted the request and does not answer",
                ))),
            }
        }
    });
    let service = BaseUriLayer::new(base).layer(service);
    Ok(kube::Client::new(service.boxed(), "default"))
}

fn base_uri(name: &ServerName<'_>) -> Result<Uri, http::Error> {
    let host = match name {
        ServerName::IpAddress(rustls::pki_types::IpAddr::V6(_)) => format!("[{}]", name.to_str()),
        _ => name.to_str().into_owned(),
    };
    Uri::builder()
        .scheme("https")
        .authority(host)
        .path_and_query("/")
        .build()
}

fn client_config(address: &ApiAddress) -> Result<ClientConfig, BuildClientError> {
    let mut roots = RootCertStore::empty();
    for authority in certificates("certificate of the authority", &address.ca_pem)? {
        roots.add(authority).map_err(BuildClientError::Tls)?;
    }
    let chain = certificates("client certificate", &address.certificate_pem)?;
    let key = PrivateKeyDer::from_pem_slice(address.key_pem.as_bytes()).map_err(|source| {
        BuildClientError::Pem {
            what: "client key",
            source,
        }
    })?;
    // The provider is named, so that none has to be installed first.
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(BuildClientError::Tls)?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .map_err(BuildClientError::Tls)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn certificates(
    what: &'static str,
    pem: &str,
) -> Result<Vec<CertificateDer<'static>>, BuildClientError> {
    let all = CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|source| BuildClientError::Pem { what, source })?;
    if all.is_empty() {
        return Err(BuildClientError::NoCertificate { what });
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
