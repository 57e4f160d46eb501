//! The root-only unix socket on which credentials are minted, and its client.

use super::protocol::{Refusal, Reply, Request};
use async_trait::async_trait;
use camino::{Utf8Path, Utf8PathBuf};
use rustix::process::{Uid, geteuid};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tracing::{debug, warn};

/// No request line is longer.
const REQUEST_LIMIT: u64 = 64 * 1024;
/// No reply line is longer.
const REPLY_LIMIT: u64 = 1024 * 1024;
/// How long a client may be silent.
const IDLE: Duration = Duration::from_secs(30);
/// How long a reply may take.
const REPLY_DEADLINE: Duration = Duration::from_secs(10);
/// Clients at the same time.
const CLIENTS: usize = 64;
/// Pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The kernel's `sun_path`, its closing zero included.
const PATH_LIMIT: usize = 108;

/// Answers requests; it may not take longer than seconds.
#[async_trait]
pub trait Answer: Send + Sync {
    /// The reply to one request.
    async fn answer(&self, request: Request) -> Reply;
}

/// The socket cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenSocketError {
    /// The kernel takes no such path.
    #[error(
        "the path {path} has {length} bytes, and a unix socket at most 107: choose a shorter data folder"
    )]
    TooLong {
        /// The path.
        path: Utf8PathBuf,
        /// Its length.
        length: usize,
    },
    /// The file system or the kernel refuses.
    #[error("failed to open the socket {path}")]
    Open {
        /// The path.
        path: Utf8PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// Refuses a path that no unix socket can have.
///
/// # Errors
/// With the length that it has.
pub fn check_socket_path(path: &Utf8Path) -> Result<(), OpenSocketError> {
    let length = path.as_str().len();
    if length < PATH_LIMIT {
        Ok(())
    } else {
        Err(OpenSocketError::TooLong {
            path: path.to_owned(),
            length,
        })
    }
}

/// The open socket; its file goes with it.
#[derive(Debug)]
pub struct Socket {
    listener: UnixListener,
    path: Utf8PathBuf,
    file: (u64, u64),
    owner: Uid,
}

impl Drop for Socket {
    fn drop(&mut self) {
        // The next server may have put its own file in place already.
        if identify(&self.path).is_ok_and(|file| file == self.file) {
            let _removed = std::fs::remove_file(&self.path);
        }
    }
}

/// Device and inode: the file itself, whatever its name.
fn identify(path: &Utf8Path) -> std::io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

impl Socket {
    /// Opens it for the user of this process alone. The caller holds the lock
    /// on the data folder: a file found there is a leftover.
    ///
    /// # Errors
    /// When the path is too long or refused.
    pub fn open(path: &Utf8Path) -> Result<Self, OpenSocketError> {
        use std::os::unix::fs::PermissionsExt;
        check_socket_path(path)?;
        let failed = |source| OpenSocketError::Open {
            path: path.to_owned(),
            source,
        };
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(failed(error));
            }
            _ => {}
        }
        let listener = UnixListener::bind(path).map_err(failed)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
        let file = identify(path).map_err(failed)?;
        Ok(Self {
            listener,
            path: path.to_owned(),
            file,
            owner: geteuid(),
        })
    }

    /// Answers until the future is dropped.
    pub async fn serve(self, answer: Arc<dyn Answer>) {
        let mut clients = JoinSet::new();
        let free = Arc::new(Semaphore::new(CLIENTS));
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((client, _)) => {
                        let Ok(permit) = Arc::clone(&free).try_acquire_owned() else {
                            warn!("too many clients on the socket; refused one");
                            continue;
                        };
                        if !self.admits(&client) {
                            continue;
                        }
                        let answer = Arc::clone(&answer);
                        clients.spawn(async move {
                            let _permit = permit;
                            if let Err(error) = converse(client, &*answer).await {
                                debug!(%error, "client of the socket left");
                            }
                        });
                    }
                    Err(error) => {
                        warn!(%error, "failed to accept a client of the socket");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some(ended) = clients.join_next() => {
                    if let Err(error) = ended {
                        warn!(%error, "the task of a client of the socket failed");
                    }
                }
            }
        }
    }

    /// The file's mode keeps others out; this holds even where a folder was
    /// opened or the descriptor handed on.
    fn admits(&self, client: &UnixStream) -> bool {
        match client.peer_cred() {
            Ok(peer) if admits(peer.uid(), self.owner) => true,
            Ok(peer) => {
                warn!(
                    uid = peer.uid(),
                    pid = peer.pid(),
                    "refused a client of the socket"
                );
                false
            }
            Err(error) => {
                warn!(%error, "refused a client of the socket that cannot be identified");
                false
            }
        }
    }
}

fn admits(peer: u32, owner: Uid) -> bool {
    peer == owner.as_raw() || peer == Uid::ROOT.as_raw()
}

async fn converse(mut client: UnixStream, answer: &dyn Answer) -> std::io::Result<()> {
    let (read, mut write) = client.split();
    let mut lines = BufReader::new(read);
    loop {
        let mut line = Vec::new();
        let mut bounded = (&mut lines).take(REQUEST_LIMIT);
        if tokio::time::timeout(IDLE, bounded.read_until(b'\n', &mut line)).await?? == 0 {
            return Ok(());
        }
        let whole = line.ends_with(b"\n");
        let reply = match serde_json::from_slice::<Request>(&line) {
            Ok(request) if whole => answer.answer(request).await,
            Ok(_) => not_understood("the line has no end"),
            Err(error) => not_understood(&error.to_string()),
        };
        let mut bytes = serde_json::to_vec(&reply)?;
        bytes.push(b'\n');
        write.write_all(&bytes).await?;
        if !whole {
            return Ok(());
        }
    }
}

fn not_understood(why: &str) -> Reply {
    Reply::Error(Refusal {
        code: "RequestNotUnderstood".to_owned(),
        message: format!("the request is not one that this neap knows: {why}"),
        next: "use the same version of neap on both ends".to_owned(),
    })
}

/// Nobody answered on the socket.
#[derive(Debug, thiserror::Error)]
pub enum AskSocketError {
    /// No server.
    #[error("neap serve does not answer on {path}")]
    Connect {
        /// The socket.
        path: Utf8PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The server went away or is stuck.
    #[error("neap serve gave no answer on {path}")]
    Exchange {
        /// The socket.
        path: Utf8PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The server is of another version.
    #[error("neap serve gave an answer on {path} that this version does not know")]
    Understand {
        /// The socket.
        path: Utf8PathBuf,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}

/// Asks one thing of the `neap serve` behind the socket.
///
/// # Errors
/// When there is no such server or it does not answer in time; a refusal is
/// an answer.
pub async fn ask(path: &Utf8Path, request: &Request) -> Result<Reply, AskSocketError> {
    let connect = |source| AskSocketError::Connect {
        path: path.to_owned(),
        source,
    };
    let exchange = |source| AskSocketError::Exchange {
        path: path.to_owned(),
        source,
    };
    let mut stream = UnixStream::connect(path).await.map_err(connect)?;
    let mut bytes = serde_json::to_vec(request).map_err(|error| exchange(error.into()))?;
    bytes.push(b'\n');
    let talk = async {
        stream.write_all(&bytes).await?;
        let mut line = Vec::new();
        BufReader::new(&mut stream)
            .take(REPLY_LIMIT)
            .read_until(b'\n', &mut line)
            .await?;
        if line.ends_with(b"\n") {
            Ok(line)
        } else {
            Err(std::io::ErrorKind::UnexpectedEof.into())
        }
    };
    let line = match tokio::time::timeout(REPLY_DEADLINE, talk).await {
        Ok(line) => line.map_err(exchange)?,
        Err(late) => return Err(exchange(late.into())),
    };
    serde_json::from_slice(&line).map_err(|source| AskSocketError::Understand {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
#[path = "socket/tests.rs"]
mod tests;
