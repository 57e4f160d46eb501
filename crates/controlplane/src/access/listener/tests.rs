#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::access::client_hello::tests::rustls_hello as hello;
use tokio::task::JoinHandle;

/// Every Cluster is one listener of the test.
struct ToAddress(SocketAddr);

#[async_trait]
impl Reach for ToAddress {
    async fn reach(&self, _cluster: &ClusterUid) -> std::io::Result<TcpStream> {
        TcpStream::connect(self.0).await
    }
}

struct Nowhere;

#[async_trait]
impl Reach for Nowhere {
    async fn reach(&self, _cluster: &ClusterUid) -> std::io::Result<TcpStream> {
        Err(std::io::ErrorKind::ConnectionRefused.into())
    }
}

struct Door {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Door {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn open(reach: impl Reach + 'static) -> Door {
    let directory = Directory::default();
    directory.set("team", "ci", ClusterUid::new("one"));
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap())
        .await
        .unwrap();
    let address = listener.address();
    let task = tokio::spawn(listener.serve(directory, Arc::new(reach)));
    Door { address, task }
}

async fn answer(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn a_stream_passes_unchanged_and_ends_in_halves() {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let door = open(ToAddress(server.local_addr().unwrap())).await;
    let hello = hello("ci.team.clusters.neap.internal");

    let mut client = TcpStream::connect(door.address).await.unwrap();
    // In two pieces, so that the name is not in the first.
    let (first, second) = hello.split_at(40);
    client.write_all(first).await.unwrap();
    client.flush().await.unwrap();
    client.write_all(second).await.unwrap();
    client.write_all(b"and more").await.unwrap();
    client.shutdown().await.unwrap();

    let (mut api, _) = server.accept().await.unwrap();
    let mut seen = Vec::new();
    // The end of what the client says arrives while the answer is still open.
    api.read_to_end(&mut seen).await.unwrap();
    assert_eq!(seen, [hello.as_slice(), b"and more"].concat());
    api.write_all(b"late answer").await.unwrap();
    drop(api);

    let mut answer = Vec::new();
    client.read_to_end(&mut answer).await.unwrap();
    assert_eq!(answer, b"late answer");
}

#[tokio::test]
async fn an_unknown_name_is_told_so() {
    let door = open(Nowhere).await;
    let answer = answer(door.address, &hello("other.team.clusters.neap.internal")).await;
    assert_eq!(answer, ALERT_UNRECOGNIZED_NAME);
}

#[tokio::test]
async fn an_api_server_that_is_down_is_an_alert_and_no_silence() {
    let door = open(Nowhere).await;
    let answer = answer(door.address, &hello("ci.team.clusters.neap.internal")).await;
    assert_eq!(answer, ALERT_INTERNAL_ERROR);
}

#[tokio::test]
async fn what_is_no_tls_is_cut_and_the_next_client_is_served() {
    let door = open(Nowhere).await;
    let mut client = TcpStream::connect(door.address).await.unwrap();
    client.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut bytes = Vec::new();
    // Unread bytes at the other end make the cut a reset.
    let _cut = client.read_to_end(&mut bytes).await;
    assert_eq!(bytes, b"");
    assert_eq!(
        answer(door.address, &hello("hub.neap.internal")).await,
        ALERT_UNRECOGNIZED_NAME
    );
}

#[tokio::test(start_paused = true)]
async fn a_silent_client_is_cut_after_the_deadline() {
    let door = open(Nowhere).await;
    let mut client = TcpStream::connect(door.address).await.unwrap();
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(HELLO_DEADLINE * 2, client.read_to_end(&mut bytes)).await;
    assert_eq!(read.unwrap().unwrap(), 0);
}

#[tokio::test]
async fn a_taken_address_is_named_in_the_error() {
    let door = open(Nowhere).await;
    let error = Listener::bind(door.address).await.unwrap_err();
    assert!(
        error.to_string().contains(&door.address.to_string()),
        "{error}"
    );
}

#[tokio::test]
async fn whoever_fills_the_places_with_silence_keeps_nobody_out() {
    let door = open(Nowhere).await;
    let mut silent = Vec::new();
    for _ in 0..=UNKNOWN_CLIENTS {
        silent.push(TcpStream::connect(door.address).await.unwrap());
    }
    let hello = hello("ci.team.clusters.neap.internal");
    let asked = answer(door.address, &hello);
    let asked = tokio::time::timeout(HELLO_DEADLINE / 2, asked).await;
    assert_eq!(asked.unwrap(), ALERT_INTERNAL_ERROR);
    // The one that was silent for the longest had to go.
    let mut first = silent.remove(0);
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(HELLO_DEADLINE / 2, first.read_to_end(&mut bytes)).await;
    assert_eq!(read.unwrap().unwrap(), 0);
}

#[test]
fn streams_leave_descriptors_to_neap_itself() {
    for (files, streams) in [
        (None, STREAMS),
        (Some(u64::MAX), STREAMS),
        (Some(16_384), STREAMS),
        (Some(1024), 256),
        (Some(64), 16),
        (Some(0), 0),
    ] {
        assert_eq!(streams_within(files), streams, "{files:?}");
    }
}
