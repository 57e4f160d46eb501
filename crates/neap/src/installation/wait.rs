//! Waiting for something to become true, with a deadline.

use crate::output::elapsed;
use crate::problem::Problem;
use jiff::SignedDuration;
use std::time::Duration;

/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(25);

/// What a look has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look<T> {
    /// It has happened.
    Done(T),
    /// It has not; where it stands, for the error at the deadline.
    Not(String),
}

/// Looks until it has happened, and at the deadline says where it stood. A
/// look that hangs is ended by the deadline too.
///
/// # Errors
/// What a look returns, or an error that says where it stood.
pub async fn until<T>(
    what: &str,
    deadline: Duration,
    mut look: impl AsyncFnMut() -> anyhow::Result<Look<T>>,
) -> anyhow::Result<T> {
    let mut stood = "not looked at yet".to_owned();
    let looks = async {
        loop {
            match look().await? {
                Look::Done(value) => return anyhow::Ok(value),
                Look::Not(now) => stood = now,
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    if let Ok(outcome) = tokio::time::timeout(deadline, looks).await {
        return outcome;
    }
    let after =
        SignedDuration::try_from(deadline).map_or_else(|_| format!("{deadline:?}"), elapsed);
    Err(Problem::Stuck {
        what: what.to_owned(),
        after,
        stood,
    }
    .into())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_looks_until_it_has_happened() {
        let mut looks = 0;
        let value = until("a third look", Duration::from_secs(1), async || {
            looks += 1;
            Ok(if looks == 3 {
                Look::Done(looks)
            } else {
                Look::Not(format!("look {looks}"))
            })
        })
        .await;
        assert_eq!(value.unwrap(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn the_deadline_says_where_it_stood() {
        let error = until::<()>("a node", Duration::from_secs(5), async || {
            Ok(Look::Not("no machine".into()))
        })
        .await
        .unwrap_err();
        let said = crate::problem::report(&error);
        assert_eq!(said.exit, crate::problem::Exit::Timeout);
        assert!(
            said.text.contains("a node did not happen within 5.0s"),
            "{}",
            said.text
        );
        assert!(said.text.contains("no machine"), "{}", said.text);
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_that_hangs_is_ended_too() {
        let error = until::<()>("an answer", Duration::from_secs(5), async || {
            std::future::pending().await
        })
        .await
        .unwrap_err();
        assert!(error.to_string().contains("an answer"), "{error}");
    }
}
