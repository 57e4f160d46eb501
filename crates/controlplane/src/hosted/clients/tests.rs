#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::certificates;
use crate::record::Role;
use async_trait::async_trait;
use neap_pki::{FileKeyStore, Usage};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::sync::Mutex as StdMutex;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::task::AbortOnDropHandle;

/// Time that the test moves.
struct Moved(StdMutex<Timestamp>);

#[async_trait]
impl Clock for Moved {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }

    async fn sleep(&self, _duration: Duration) {}
}

struct ToAddress(SocketAddr);

impl Dial for ToAddress {
    fn dial(&self) -> BoxFuture<'_, std::io::Result<TcpStream>> {
        TcpStream::connect(self.0).boxed()
    }
}

/// An API server that says "ok", and which client certificates it has seen.
struct Server {
    address: SocketAddr,
    seen: Arc<StdMutex<Vec<CertificateDer<'static>>>>,
    _task: AbortOnDropHandle<()>,
}

async fn serve(pki: &ClusterPki, name: &str, now: Timestamp) -> Server {
    let request = CertificateRequest {
        common_name: name.to_owned(),
        organizations: Vec::new(),
        usage: Usage::Server,
        names: vec![name.to_owned()],
        addresses: Vec::new(),
        lifetime: SignedDuration::from_hours(48),
    };
    let serving = pki.server.issue(&request, now).unwrap();
    let mut clients = RootCertStore::empty();
    clients
        .add(certificate(pki.client.certificate_pem()))
        .unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(clients), Arc::clone(&provider));
    let key = PrivateKeyDer::from_pem_slice(serving.key_pem.as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(vec![certificate(&serving.certificate_pem)], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Arc::new(StdMutex::new(Vec::new()));
    let task = tokio::spawn({
        let seen = Arc::clone(&seen);
        async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (acceptor, seen) = (acceptor.clone(), Arc::clone(&seen));
                tokio::spawn(async move {
                    let mut stream = acceptor.accept(stream).await.unwrap();
                    let certificate = stream
                        .get_ref()
                        .1
                        .peer_certificates()
                        .unwrap()
                        .first()
                        .unwrap();
                    seen.lock().unwrap().push(certificate.clone().into_owned());
                    let mut request = [0; 4096];
                    // A request fits into one read.
                    while stream.read(&mut request).await.is_ok_and(|read| read > 0) {
                        stream
                            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
                            .await
                            .unwrap();
                    }
                });
            }
        }
    });
    Server {
        address,
        seen,
        _task: AbortOnDropHandle::new(task),
    }
}

fn certificate(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}

async fn ask(client: &kube::Client) {
    let request = http::Request::get("/readyz").body(Vec::new()).unwrap();
    assert_eq!(client.request_text(request).await.unwrap(), "ok");
}

#[expect(
    clippy::disallowed_methods,
    reason = "TLS looks at the clock of the host"
)]
fn host_time() -> Timestamp {
    Timestamp::now()
}

#[tokio::test]
async fn a_client_that_is_kept_gets_a_new_certificate_before_the_old_one_ends() {
    let folder = tempfile::tempdir().unwrap();
    let keys = camino::Utf8Path::from_path(folder.path())
        .unwrap()
        .join("pki");
    // Certificates of then are still valid now, for less than half their time.
    let then = host_time() - SignedDuration::from_hours(13);
    let pki = Arc::new(ClusterPki::load_or_generate(&FileKeyStore::new(keys), then).unwrap());
    let clock = Arc::new(Moved(StdMutex::new(then)));
    let role = Role::Tenant {
        account: "team".into(),
        name: "ci".into(),
        allow_privileged: false,
        audit: neap_core::audit::AuditLevel::Off,
    };
    let server_name = certificates::server_name(&role);
    let server = serve(&pki, &server_name, then).await;
    let client = lasting(Source {
        pki,
        dial: Arc::new(ToAddress(server.address)),
        server_name,
        request: certificates::operator(&role),
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
    })
    .unwrap();

    ask(&client).await;
    ask(&client).await;
    assert_eq!(
        server.seen.lock().unwrap().len(),
        1,
        "one connection serves many requests"
    );

    *clock.0.lock().unwrap() = host_time();
    ask(&client).await;
    ask(&client).await;
    let seen = server.seen.lock().unwrap().clone();
    assert_eq!(seen.len(), 2);
    assert_ne!(seen.first(), seen.last());
}
