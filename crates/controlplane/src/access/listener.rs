//! The one TCP listener: TLS passed through by server name.

use super::client_hello::{LIMIT, ParsedHello, parse_client_hello};
use super::directory::Directory;
use async_trait::async_trait;
use neap_core::ids::ClusterUid;
use rustix::process::{Resource, getrlimit};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

/// How long a client may take to say what it wants.
const HELLO_DEADLINE: Duration = Duration::from_secs(5);
/// How long the way to an API server may take; it is on this machine.
const DIAL_DEADLINE: Duration = Duration::from_secs(5);
/// Pause after a failed accept, so that a shortage of descriptors is not made
/// worse by a hot loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Streams at the same time, over all Clusters, where the limit on open files
/// allows it.
const STREAMS: usize = 4096;
/// Open files that no stream may take: neap itself needs them.
const OTHER_FILES: u64 = 512;
/// Clients at the same time that have not yet said what they want. One more
/// pushes out the one that has been silent for the longest: whoever fills the
/// places keeps nobody out who speaks at once, as every real client does.
const UNKNOWN_CLIENTS: usize = 256;

/// Fatal alert `unrecognized_name`: kubectl shows it by name.
const ALERT_UNRECOGNIZED_NAME: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];
/// Fatal alert `internal_error`.
const ALERT_INTERNAL_ERROR: [u8; 7] = [21, 3, 3, 0, 2, 2, 80];

/// The way to the API server of a Cluster.
#[async_trait]
pub trait Reach: Send + Sync {
    /// A fresh connection to it.
    async fn reach(&self, cluster: &ClusterUid) -> std::io::Result<TcpStream>;
}

/// The address cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("failed to listen on {address} for clients of the clusters")]
pub struct BindListenerError {
    /// The address asked for.
    pub address: SocketAddr,
    /// Why.
    #[source]
    pub source: std::io::Error,
}

/// A bound listener that does not accept yet.
#[derive(Debug)]
pub struct Listener {
    tcp: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Takes the address; port 0 takes any free one.
    ///
    /// # Errors
    /// When another program has it.
    pub async fn bind(address: SocketAddr) -> Result<Self, BindListenerError> {
        let failed = |source| BindListenerError { address, source };
        let tcp = TcpListener::bind(address).await.map_err(failed)?;
        let bound = tcp.local_addr().map_err(failed)?;
        Ok(Self {
            tcp,
            address: bound,
        })
    }

    /// The address that it really has.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Passes streams through until the future is dropped; the streams end
    /// with it.
    pub async fn serve(self, directory: Directory, reach: Arc<dyn Reach>) {
        let mut streams = JoinSet::new();
        let all = Arc::new(Semaphore::new(streams_within(
            getrlimit(Resource::Nofile).current,
        )));
        let unknown = Unknown::default();
        loop {
            tokio::select! {
                accepted = self.tcp.accept() => match accepted {
                    Ok((client, from)) => {
                        let Ok(stream) = Arc::clone(&all).try_acquire_owned() else {
                            warn!(%from, "too many clients at once; refused one");
                            continue;
                        };
                        let hello = unknown.enter();
                        let (directory, reach) = (directory.clone(), Arc::clone(&reach));
                        streams.spawn(async move {
                            let _stream = stream;
                            if let Err(error) = pass(client, hello, &directory, &*reach).await {
                                debug!(%from, %error, "stream ended");
                            }
                        });
                    }
                    Err(error) => {
                        warn!(%error, "failed to accept a client");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some(ended) = streams.join_next() => {
                    if let Err(error) = ended {
                        warn!(%error, "a stream's task failed");
                    }
                }
            }
        }
    }
}

/// Clients that may come by a limit on open files: each takes two, of which
/// one leads to the API server.
fn streams_within(files: Option<u64>) -> usize {
    let Some(files) = files else { return STREAMS };
    let rest = files.saturating_sub(OTHER_FILES.min(files / 2)) / 2;
    usize::try_from(rest).map_or(STREAMS, |rest| rest.min(STREAMS))
}

/// Those who have not yet said what they want, in the order in which they came.
#[derive(Clone, Default)]
struct Unknown(Arc<Mutex<Waiting>>);

#[derive(Default)]
struct Waiting {
    next: u64,
    clients: BTreeMap<u64, CancellationToken>,
}

/// The place of one of them, free again when it is dropped.
struct Place {
    unknown: Unknown,
    number: u64,
    pushed_out: CancellationToken,
}

impl Unknown {
    /// Takes a place, if need be from whoever has had one for the longest.
    fn enter(&self) -> Place {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.clients.len() >= UNKNOWN_CLIENTS
            && let Some((_, oldest)) = waiting.clients.pop_first()
        {
            oldest.cancel();
        }
        let number = waiting.next;
        waiting.next += 1;
        let pushed_out = CancellationToken::new();
        waiting.clients.insert(number, pushed_out.clone());
        Place {
            unknown: self.clone(),
            number,
            pushed_out,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut waiting = self
            .unknown
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        waiting.clients.remove(&self.number);
    }
}

#[derive(Debug, thiserror::Error)]
enum PassStreamError {
    #[error("the client was silent while too many others came")]
    PushedOut,
    #[error("the client sent no whole ClientHello")]
    Hello(#[source] std::io::Error),
    #[error(transparent)]
    Parse(#[from] super::client_hello::ParseClientHelloError),
    #[error("the client named no server")]
    NoName,
    #[error("no cluster is named {0}")]
    UnknownName(String),
    #[error("the API server of {name} cannot be reached")]
    Reach {
        name: String,
        #[source]
        source: std::io::Error,
    },
    #[error("the stream broke")]
    Stream(#[source] std::io::Error),
}

async fn pass(
    mut client: TcpStream,
    hello: Place,
    directory: &Directory,
    reach: &dyn Reach,
) -> Result<(), PassStreamError> {
    let read = tokio::select! {
        read = tokio::time::timeout(HELLO_DEADLINE, read_hello(&mut client)) => match read {
            Ok(read) => read,
            Err(late) => Err(PassStreamError::Hello(late.into())),
        },
        () = hello.pushed_out.cancelled() => Err(PassStreamError::PushedOut),
    };
    drop(hello);
    let (bytes, name) = match read {
        Ok((bytes, Some(name))) => (bytes, name),
        Ok((_, None)) => {
            alert(client, &ALERT_UNRECOGNIZED_NAME).await;
            return Err(PassStreamError::NoName);
        }
        Err(error) => return Err(error),
    };
    let Some(cluster) = directory.find(&name) else {
        alert(client, &ALERT_UNRECOGNIZED_NAME).await;
        return Err(PassStreamError::UnknownName(name));
    };
    let reached = match tokio::time::timeout(DIAL_DEADLINE, reach.reach(&cluster)).await {
        Ok(reached) => reached,
        Err(late) => Err(late.into()),
    };
    let mut server = match reached {
        Ok(server) => server,
        Err(source) => {
            alert(client, &ALERT_INTERNAL_ERROR).await;
            return Err(PassStreamError::Reach { name, source });
        }
    };
    for stream in [&client, &server] {
        keep_alive(stream).map_err(PassStreamError::Stream)?;
    }
    server
        .write_all(&bytes)
        .await
        .map_err(PassStreamError::Stream)?;
    drop(bytes);
    // Each direction ends on its own, so that a client which has said all
    // still hears the answer.
    tokio::io::copy_bidirectional(&mut client, &mut server)
        .await
        .map_err(PassStreamError::Stream)?;
    Ok(())
}

/// Reads until the server name is known; returns all that was read.
async fn read_hello(client: &mut TcpStream) -> Result<(Vec<u8>, Option<String>), PassStreamError> {
    let mut bytes = Vec::with_capacity(2048);
    loop {
        match parse_client_hello(&bytes)? {
            ParsedHello::Complete { server_name } => return Ok((bytes, server_name)),
            ParsedHello::Incomplete { need } => {
                while bytes.len() < need {
                    let room = u64::try_from(LIMIT.saturating_sub(bytes.len())).unwrap_or(u64::MAX);
                    let read = (&mut *client).take(room).read_buf(&mut bytes).await;
                    if read.map_err(PassStreamError::Hello)? == 0 {
                        return Err(PassStreamError::Hello(
                            std::io::ErrorKind::UnexpectedEof.into(),
                        ));
                    }
                }
            }
        }
    }
}

/// Tells the client why before the stream ends; best effort.
async fn alert(mut client: TcpStream, bytes: &[u8]) {
    if client.write_all(bytes).await.is_ok() {
        let _closed = client.shutdown().await;
    }
}

/// A peer that vanished without a word is noticed within minutes.
fn keep_alive(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    rustix::net::sockopt::set_socket_keepalive(stream, true)?;
    rustix::net::sockopt::set_tcp_keepidle(stream, Duration::from_secs(60))?;
    rustix::net::sockopt::set_tcp_keepintvl(stream, Duration::from_secs(20))?;
    Ok(())
}

#[cfg(test)]
#[path = "listener/tests.rs"]
mod tests;
