//! Waiting for an API server.

use http::Request;
use kube::Client;
use neap_process::Exit;
use std::future::Future;
use std::time::Duration;

/// Longer than any start that succeeds.
const DEADLINE: Duration = Duration::from_secs(60);
/// The API server is on this machine: looking costs next to nothing.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// An API server did not become ready.
#[derive(Debug, thiserror::Error)]
pub enum AwaitReadyError {
    /// Its process ended first.
    #[error("its process ended while it started: {0:?}")]
    Ended(Exit),
    /// It took too long.
    #[error("it was not ready within {DEADLINE:?}")]
    Late(#[source] kube::Error),
}

/// Returns when `/readyz` says so, which includes that the roles of Kubernetes
/// itself are written.
///
/// # Errors
/// When the process ends or the deadline passes before.
pub async fn await_ready(
    client: &Client,
    ended: impl Future<Output = Exit>,
) -> Result<(), AwaitReadyError> {
    let mut last = None;
    let look = async {
        while let Err(error) = is_ready(client).await {
            last = Some(error);
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    };
    tokio::select! {
        looked = tokio::time::timeout(DEADLINE, look) => match (looked, last) {
            (Err(_), Some(error)) => Err(AwaitReadyError::Late(error)),
            (Err(late), None) => Err(AwaitReadyError::Late(kube::Error::Service(late.into()))),
            (Ok(()), _) => Ok(()),
        },
        exit = ended => Err(AwaitReadyError::Ended(exit)),
    }
}

/// Whether anybody answers within `deadline`, whatever the answer is.
pub(crate) async fn answers(client: &Client, deadline: Duration) -> bool {
    match tokio::time::timeout(deadline, is_ready(client)).await {
        Ok(Ok(()) | Err(kube::Error::Api(_))) => true,
        Ok(Err(_)) | Err(_) => false,
    }
}

async fn is_ready(client: &Client) -> Result<(), kube::Error> {
    let request = Request::get("/readyz")
        .body(Vec::new())
        .map_err(kube::Error::HttpError)?;
    client.request_text(request).await.map(drop)
}
