//! When to try again what failed, and when what is silent counts as hung.

use jiff::{SignedDuration, Timestamp};

/// Longest wait between two tries.
pub const MAX_BACKOFF: SignedDuration = SignedDuration::from_secs(60);

/// How long a process must have run before its earlier failures are forgotten:
/// one that ends again and again soon after its start is not well.
pub const SETTLED_AFTER: SignedDuration = SignedDuration::from_secs(60);

/// How long a process may be asked in vain before it counts as hung.
pub const HUNG_AFTER: SignedDuration = SignedDuration::from_secs(30);

/// How long a process may take from its start to its first answer.
pub const START_GRACE: SignedDuration = SignedDuration::from_secs(120);

/// Whether a process hangs that was started at `since` and has been asked in
/// vain since `silent_since`, without an answer in between.
pub fn is_hung(since: Timestamp, silent_since: Option<Timestamp>, now: Timestamp) -> bool {
    silent_since.is_some_and(|silent| now >= after(silent, HUNG_AFTER))
        && now >= after(since, START_GRACE)
}

/// Whether a process that has run since then may forget its earlier failures.
pub fn is_settled(since: Timestamp, now: Timestamp) -> bool {
    now >= after(since, SETTLED_AFTER)
}

/// Failures in a row once a process has ended that ran since then, and that had
/// failed so often before.
pub fn failures_after_end(before: u32, since: Timestamp, ended: Timestamp) -> u32 {
    if is_settled(since, ended) {
        1
    } else {
        before.saturating_add(1)
    }
}

/// How long to wait after this many failures in a row: nothing after none, 1 s
/// after the first, then the double each time, and never more than
/// [`MAX_BACKOFF`].
pub fn backoff(failures: u32) -> SignedDuration {
    if failures == 0 {
        return SignedDuration::ZERO;
    }
    // Seven failures reach the longest wait; a larger shift adds nothing.
    let seconds = 1_i64 << (failures - 1).min(6);
    SignedDuration::from_secs(seconds).min(MAX_BACKOFF)
}

/// When to try again after the latest of this many failures in a row, which
/// was at `failed`.
pub fn retry_at(failures: u32, failed: Timestamp) -> Timestamp {
    after(failed, backoff(failures))
}

/// The time that a next try has to wait for, if there is one. A time further
/// off than any backoff was written before the clock jumped back, and binds
/// nobody.
pub fn pending_retry(retry_at: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
    retry_at.filter(|at| *at > now && *at <= after(now, MAX_BACKOFF))
}

/// A later time, or the last one there is.
pub(crate) fn after(time: Timestamp, duration: SignedDuration) -> Timestamp {
    time.checked_add(duration).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn backoff_doubles_from_one_second_to_a_minute() {
        let seconds: Vec<i64> = (0..10)
            .map(|failures| backoff(failures).as_secs())
            .collect();
        assert_eq!(seconds, [0, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(backoff(u32::MAX), MAX_BACKOFF);
    }

    #[test]
    fn a_retry_is_pending_until_its_time() {
        let now = Timestamp::from_second(1_000).unwrap();
        let at = |second| Some(Timestamp::from_second(second).unwrap());
        assert_eq!(pending_retry(None, now), None);
        assert_eq!(pending_retry(at(999), now), None);
        assert_eq!(pending_retry(at(1_000), now), None);
        assert_eq!(pending_retry(at(1_001), now), at(1_001));
        assert_eq!(pending_retry(at(1_060), now), at(1_060));
    }

    #[test]
    fn a_retry_from_before_the_clock_jumped_back_binds_nobody() {
        let now = Timestamp::from_second(1_000).unwrap();
        let far = Timestamp::from_second(4_600).unwrap();
        assert_eq!(pending_retry(Some(far), now), None);
    }

    #[test]
    fn failures_are_forgotten_after_a_minute_of_running() {
        let since = Timestamp::from_second(1_000).unwrap();
        assert!(!is_settled(since, since));
        assert!(!is_settled(since, Timestamp::from_second(1_059).unwrap()));
        assert!(is_settled(since, Timestamp::from_second(1_060).unwrap()));
    }

    #[test]
    fn an_end_after_a_minute_of_running_is_the_first_failure() {
        let since = Timestamp::from_second(1_000).unwrap();
        let ended = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(failures_after_end(0, since, ended(1_001)), 1);
        assert_eq!(failures_after_end(4, since, ended(1_059)), 5);
        assert_eq!(failures_after_end(4, since, ended(1_060)), 1);
        assert_eq!(failures_after_end(u32::MAX, since, ended(1_001)), u32::MAX);
    }

    #[test]
    fn only_silence_that_lasts_after_the_start_is_a_hang() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let since = at(1_000);
        assert!(!is_hung(since, None, at(9_000)));
        assert!(!is_hung(since, Some(at(1_000)), at(1_119)));
        assert!(is_hung(since, Some(at(1_000)), at(1_120)));
        assert!(!is_hung(since, Some(at(5_000)), at(5_029)));
        assert!(is_hung(since, Some(at(5_000)), at(5_030)));
    }

    #[test]
    fn the_end_of_time_does_not_overflow() {
        assert_eq!(retry_at(3, Timestamp::MAX), Timestamp::MAX);
    }
}
