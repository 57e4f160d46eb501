//! Every call to an API is bounded: it ends by its answer, by a deadline, or
//! because its loop ends. A server that hangs holds nobody up.

use crate::traits::{Cause, Clock};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Longer than any answer of a server that works.
const DEADLINE: Duration = Duration::from_secs(10);

/// A call to an API that brought no answer, or a refusal.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallApiError {
    /// The loop that called is ending.
    #[error("interrupted: {operation}")]
    Interrupt {
        /// What was to be done.
        operation: &'static str,
    },
    /// The server did not answer.
    #[error("no answer within {} s: {operation}", DEADLINE.as_secs())]
    Wait {
        /// What was to be done.
        operation: &'static str,
    },
    /// The server or the connection refused.
    #[error("failed to {operation}")]
    Refuse {
        /// What was to be done.
        operation: &'static str,
        /// Why.
        #[source]
        source: Cause,
    },
}

impl CallApiError {
    /// The server's refusal, wherever in the chain it is.
    fn refusal(&self) -> Option<&kube::Error> {
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            let boxed = error.downcast_ref::<Box<kube::Error>>().map(AsRef::as_ref);
            if let Some(refusal @ kube::Error::Api(_)) = error.downcast_ref().or(boxed) {
                return Some(refusal);
            }
            cause = error.source();
        }
        None
    }

    /// The object is not there.
    pub(crate) fn is_not_found(&self) -> bool {
        self.refusal().is_some_and(neap_kube::is_not_found)
    }

    /// The object is there already, has changed since, or is another.
    pub(crate) fn is_conflict(&self) -> bool {
        self.refusal().is_some_and(|refusal| {
            neap_kube::is_conflict(refusal) || neap_kube::is_already_exists(refusal)
        })
    }

    /// The loop that called is ending; nothing is wrong.
    pub(crate) fn is_interrupt(&self) -> bool {
        matches!(self, Self::Interrupt { .. })
    }
}

/// Makes calls for one loop.
#[derive(Clone)]
pub(crate) struct Calls {
    clock: Arc<dyn Clock>,
    ending: CancellationToken,
}

impl Calls {
    /// Calls that end with this token.
    pub(crate) fn new(clock: Arc<dyn Clock>, ending: CancellationToken) -> Self {
        Self { clock, ending }
    }

    /// Waits for one answer.
    pub(crate) async fn call<T, E: Into<Cause>>(
        &self,
        operation: &'static str,
        answer: impl Future<Output = Result<T, E>>,
    ) -> Result<T, CallApiError> {
        tokio::select! {
            biased;
            answer = answer => answer.map_err(|error| CallApiError::Refuse { operation, source: error.into() }),
            () = self.ending.cancelled() => Err(CallApiError::Interrupt { operation }),
            () = self.clock.sleep(DEADLINE) => Err(CallApiError::Wait { operation }),
        }
    }
}

impl Calls {
    /// Waits, unless the loop ends.
    pub(crate) async fn pause(
        &self,
        operation: &'static str,
        duration: Duration,
    ) -> Result<(), CallApiError> {
        tokio::select! {
            () = self.ending.cancelled() => Err(CallApiError::Interrupt { operation }),
            () = self.clock.sleep(duration) => Ok(()),
        }
    }
}

impl std::fmt::Debug for Calls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Calls")
            .field("ending", &self.ending.is_cancelled())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use async_trait::async_trait;
    use jiff::Timestamp;

    /// A clock on which every wait is over at once.
    pub(crate) struct HastyClock;

    #[async_trait]
    impl Clock for HastyClock {
        fn now(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH
        }
        async fn sleep(&self, _: Duration) {
            tokio::task::yield_now().await;
        }
    }

    fn refusal(code: u16) -> kube::Error {
        kube::Error::Api(Box::new(kube::core::Status {
            code,
            ..Default::default()
        }))
    }

    #[derive(Debug, thiserror::Error)]
    #[error("failed to write")]
    struct WrapError(#[source] kube::Error);

    #[tokio::test]
    async fn hanging_call_ends_by_its_deadline_and_by_its_loop() {
        let ending = CancellationToken::new();
        let calls = Calls::new(Arc::new(HastyClock), ending.clone());
        let hang = || std::future::pending::<Result<(), kube::Error>>();
        assert!(matches!(
            calls.call("list", hang()).await,
            Err(CallApiError::Wait { .. })
        ));
        ending.cancel();
        assert!(
            calls
                .call("list", hang())
                .await
                .is_err_and(|error| error.is_interrupt())
        );
    }

    #[tokio::test]
    async fn write_that_names_another_object_is_a_conflict() {
        let calls = Calls::new(Arc::new(HastyClock), CancellationToken::new());
        let status = serde_json::from_value(serde_json::json!({
            "status": "Failure", "code": 422, "reason": "Invalid",
            "details": {"causes": [{"field": "metadata.uid"}]},
        }))
        .unwrap();
        let answer = async { Err::<(), _>(WrapError(kube::Error::Api(Box::new(status)))) };
        assert!(
            calls
                .call("write", answer)
                .await
                .is_err_and(|error| error.is_conflict())
        );
    }

    #[tokio::test]
    async fn refusal_is_recognised_behind_other_errors() {
        let calls = Calls::new(Arc::new(HastyClock), CancellationToken::new());
        let answer = async { Err::<(), _>(WrapError(refusal(409))) };
        assert!(
            calls
                .call("write", answer)
                .await
                .is_err_and(|error| error.is_conflict() && !error.is_not_found())
        );
    }
}
