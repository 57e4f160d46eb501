#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use rustls::server::WebPkiClientVerifier;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

const SERVER_CA: &str = include_str!("testdata/server-ca.pem");
const SERVER: &str = include_str!("testdata/server.pem");
const SERVER_KEY: &str = include_str!("testdata/server.key");
const CLIENT_CA: &str = include_str!("testdata/client-ca.pem");
const CLIENT: &str = include_str!("testdata/client.pem");
const CLIENT_KEY: &str = include_str!("testdata/client.key");

fn address(server_name: &str) -> ApiAddress {
    ApiAddress {
        server_name: server_name.into(),
        ca_pem: SERVER_CA.into(),
        certificate_pem: CLIENT.into(),
        key_pem: CLIENT_KEY.into(),
    }
}

/// Dials one place, whatever the URL says, and counts.
struct To {
    address: SocketAddr,
    dialled: AtomicUsize,
}

impl Dial for To {
    fn dial(&self) -> BoxFuture<'_, io::Result<TcpStream>> {
        self.dialled.fetch_add(1, Ordering::Relaxed);
        Box::pin(TcpStream::connect(self.address))
    }
}

/// What a server saw of the first request.
#[derive(Debug)]
struct Seen {
    server_name: Option<String>,
    client: Vec<u8>,
    head: String,
}

/// A server that demands a client certificate and answers one request.
async fn serve() -> (Arc<To>, oneshot::Receiver<io::Result<Seen>>) {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(CLIENT_CA.as_bytes()).unwrap())
        .unwrap();
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .unwrap();
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(
            certificates("server certificate", SERVER).unwrap(),
            PrivateKeyDer::from_pem_slice(SERVER_KEY.as_bytes()).unwrap(),
        )
        .unwrap();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let dial = To {
        address: listener.local_addr().unwrap(),
        dialled: AtomicUsize::new(0),
    };
    let (tell, seen) = oneshot::channel();
    tokio::spawn(async move {
        // The receiver is gone where a test does not ask.
        drop(tell.send(answer_one(listener, acceptor).await));
    });
    (Arc::new(dial), seen)
}

async fn answer_one(listener: TcpListener, acceptor: TlsAcceptor) -> io::Result<Seen> {
    let (stream, _) = listener.accept().await?;
    let mut stream = acceptor.accept(stream).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let body = r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team"}}"#;
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.flush().await?;
    let connection = stream.get_ref().1;
    Ok(Seen {
        server_name: connection.server_name().map(ToOwned::to_owned),
        client: connection.peer_certificates().unwrap()[0].to_vec(),
        head: String::from_utf8(head).unwrap(),
    })
}

async fn get(client: kube::Client) -> kube::Result<Namespace> {
    Api::all(client).get("team").await
}

#[tokio::test]
async fn the_server_is_known_by_its_name_and_the_client_by_its_certificate() {
    let (dial, seen) = serve().await;
    let client = connect(&address("web.team.neap"), dial.clone()).unwrap();
    assert_eq!(
        dial.dialled.load(Ordering::Relaxed),
        0,
        "nothing is dialled before a request"
    );
    let namespace = get(client).await.unwrap();
    assert_eq!(namespace.metadata.name.as_deref(), Some("team"));
    let seen = seen.await.unwrap().unwrap();
    assert_eq!(seen.server_name.as_deref(), Some("web.team.neap"));
    assert_eq!(
        seen.client,
        CertificateDer::from_pem_slice(CLIENT.as_bytes())
            .unwrap()
            .to_vec()
    );
    assert!(
        seen.head
            .starts_with("GET /api/v1/namespaces/team HTTP/1.1\r\n"),
        "{}",
        seen.head
    );
    assert!(
        seen.head.contains("host: web.team.neap\r\n"),
        "{}",
        seen.head
    );
    assert!(seen.head.contains("user-agent: neap/"), "{}", seen.head);
    assert_eq!(dial.dialled.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn an_address_is_a_name_too() {
    let (dial, seen) = serve().await;
    get(connect(&address("10.250.0.1"), dial).unwrap())
        .await
        .unwrap();
    let seen = seen.await.unwrap().unwrap();
    assert_eq!(seen.server_name, None, "an address is not sent as SNI");
    assert!(seen.head.contains("host: 10.250.0.1\r\n"), "{}", seen.head);
}

#[tokio::test]
async fn another_server_is_refused() {
    for (address, words) in [
        (address("other.team.neap"), "not valid for name"),
        (
            ApiAddress {
                ca_pem: CLIENT_CA.into(),
                ..address("web.team.neap")
            },
            "UnknownIssuer",
        ),
    ] {
        let (dial, _seen) = serve().await;
        let error = get(connect(&address, dial).unwrap()).await.unwrap_err();
        let line = crate::describe(&error);
        assert!(line.contains("failed to agree on TLS"), "{line}");
        assert!(line.contains(words), "{line}");
    }
}

#[tokio::test]
async fn a_place_that_cannot_be_reached_is_said() {
    struct Nowhere;
    impl Dial for Nowhere {
        fn dial(&self) -> BoxFuture<'_, io::Result<TcpStream>> {
            Box::pin(async { Err(io::Error::other("no such network namespace")) })
        }
    }
    let client = connect(&address("web.team.neap"), Arc::new(Nowhere)).unwrap();
    let line = crate::describe(&get(client).await.unwrap_err());
    assert!(
        line.contains("failed to reach the API server: no such network namespace"),
        "{line}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_dial_that_never_ends_is_given_up() {
    struct Never;
    impl Dial for Never {
        fn dial(&self) -> BoxFuture<'_, io::Result<TcpStream>> {
            Box::pin(std::future::pending())
        }
    }
    let client = connect(&address("web.team.neap"), Arc::new(Never)).unwrap();
    let line = crate::describe(&get(client).await.unwrap_err());
    assert!(
        line.contains("did not take the connection within 5 s"),
        "{line}"
    );
}

#[tokio::test]
async fn what_cannot_work_is_refused_at_once() {
    struct Unused;
    impl Dial for Unused {
        fn dial(&self) -> BoxFuture<'_, io::Result<TcpStream>> {
            Box::pin(async { Err(io::Error::other("unused")) })
        }
    }
    let good = address("web.team.neap");
    for (bad, words) in [
        (address("not a name"), "is no name of a server"),
        (
            ApiAddress {
                ca_pem: String::new(),
                ..good.clone()
            },
            "holds no certificate",
        ),
        (
            ApiAddress {
                certificate_pem: String::new(),
                ..good.clone()
            },
            "client certificate",
        ),
        (
            ApiAddress {
                key_pem: String::new(),
                ..good.clone()
            },
            "client key",
        ),
        (
            ApiAddress {
                key_pem: SERVER_KEY.into(),
                ..good.clone()
            },
            "TLS refuses",
        ),
    ] {
        let error = connect(&bad, Arc::new(Unused)).err().unwrap();
        assert!(error.to_string().contains(words), "{error}");
    }
    assert!(!format!("{good:?}").contains("PRIVATE"));
}
