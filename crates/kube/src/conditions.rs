//! Conditions that know since when they are so.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// What a condition is to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its type.
    pub type_: &'static str,
    /// Whether it holds; `None`: not known.
    pub holds: Option<bool>,
    /// Why, for programs.
    pub reason: &'static str,
    /// Why, for people.
    pub message: String,
}

/// This condition as it is to be written: the time of its last transition is
/// that of the one before, unless its status is another.
pub fn condition(
    wanted: Wanted,
    before: &[Condition],
    generation: Option<i64>,
    now: Timestamp,
) -> Condition {
    let status = match wanted.holds {
        Some(true) => "True",
        Some(false) => "False",
        None => "Unknown",
    };
    let since = before
        .iter()
        .find(|condition| condition.type_ == wanted.type_ && condition.status == status)
        .map_or(Time(now), |condition| {
            condition.last_transition_time.clone()
        });
    Condition {
        type_: wanted.type_.to_owned(),
        status: status.to_owned(),
        reason: wanted.reason.to_owned(),
        message: wanted.message,
        last_transition_time: since,
        observed_generation: generation,
    }
}

/// Puts this condition among the others, in place of the one before.
pub fn set(
    conditions: &mut Vec<Condition>,
    wanted: Wanted,
    generation: Option<i64>,
    now: Timestamp,
) {
    let new = condition(wanted, conditions, generation, now);
    match conditions
        .iter_mut()
        .find(|condition| condition.type_ == new.type_)
    {
        Some(place) => *place = new,
        None => conditions.push(new),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn ready(holds: Option<bool>, message: &str) -> Wanted {
        Wanted {
            type_: "Ready",
            holds,
            reason: "Because",
            message: message.into(),
        }
    }

    #[test]
    fn only_another_status_is_a_transition() {
        let (first, second, third) = (
            time("2026-11-29T12:00:00Z"),
            time("2026-11-29T12:01:00Z"),
            time("2026-11-29T12:02:00Z"),
        );
        let mut all = Vec::new();
        set(&mut all, ready(Some(false), "not yet"), Some(1), first);
        set(&mut all, ready(Some(false), "still not"), Some(2), second);
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].last_transition_time.0, first);
        assert_eq!(
            (&*all[0].message, all[0].observed_generation),
            ("still not", Some(2))
        );
        set(&mut all, ready(Some(true), "now"), Some(2), third);
        assert_eq!(all[0].last_transition_time.0, third);
        assert_eq!(all[0].status, "True");
        set(&mut all, ready(None, "who knows"), None, third);
        assert_eq!(all[0].status, "Unknown");
    }

    #[test]
    fn others_stay_as_they_are() {
        let now = time("2026-11-29T12:00:00Z");
        let mut all = Vec::new();
        set(
            &mut all,
            Wanted {
                type_: "Other",
                ..ready(Some(true), "")
            },
            None,
            now,
        );
        set(&mut all, ready(Some(false), ""), None, now);
        let types: Vec<_> = all
            .iter()
            .map(|condition| condition.type_.as_str())
            .collect();
        assert_eq!(types, ["Other", "Ready"]);
        assert_eq!(all[0].status, "True");
    }
}
