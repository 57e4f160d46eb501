//! The one place of the program that reads a clock and waits for wall time.

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use neap_operator::traits::Clock;
use std::time::Duration;

/// The host's clock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HostClock;

#[async_trait]
impl Clock for HostClock {
    fn now(&self) -> Timestamp {
        now()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// Wall clock time.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the clock that the rest is given"
)]
pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}

/// Measures how long something takes, by the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(std::time::Instant);

impl Stopwatch {
    /// Begins now.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the clock that the rest is given"
    )]
    pub(crate) fn start() -> Self {
        Self(std::time::Instant::now())
    }

    /// Time since the start.
    pub(crate) fn elapsed(&self) -> SignedDuration {
        SignedDuration::try_from(self.0.elapsed()).unwrap_or(SignedDuration::MAX)
    }
}
