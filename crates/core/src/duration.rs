//! Durations as people write them: `2m`, `1h30m`, `20s`, `500ms`, `0s`.

use jiff::SignedDuration;

/// Units from large to small, with their milliseconds.
const UNITS: [(&str, i64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// The text is no duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no duration: write whole numbers with h, m, s or ms, largest first, as in 1h30m or 20s"
)]
pub struct ParseDurationError {
    /// The text as it was given.
    pub text: String,
}

/// Reads a duration. Each unit may appear once, the larger before the smaller;
/// a number without a unit is refused.
pub fn parse_duration(text: &str) -> Result<SignedDuration, ParseDurationError> {
    parse_millis(text)
        .map(SignedDuration::from_millis)
        .ok_or_else(|| ParseDurationError {
            text: text.to_owned(),
        })
}

fn parse_millis(text: &str) -> Option<i64> {
    if text.is_empty() {
        return None;
    }
    let mut rest = text;
    let mut units = UNITS.iter();
    let mut millis: i64 = 0;
    while !rest.is_empty() {
        let (digits, after) = split_where(rest, |c| !c.is_ascii_digit());
        let (unit, after) = split_where(after, |c| c.is_ascii_digit());
        // The iterator goes on from the last unit, so that none comes twice.
        let (_, scale) = units.find(|(name, _)| *name == unit)?;
        let amount: i64 = digits.parse().ok()?;
        millis = millis.checked_add(amount.checked_mul(*scale)?)?;
        rest = after;
    }
    Some(millis)
}

fn split_where(text: &str, ends: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(ends).unwrap_or(text.len()))
}

/// Writes a duration so that [`parse_duration`] reads it again; what is below
/// a millisecond is dropped, and a negative duration is `0s`.
pub fn format_duration(duration: SignedDuration) -> String {
    let mut rest = i64::try_from(duration.as_millis())
        .unwrap_or(i64::MAX)
        .max(0);
    let mut text = String::new();
    for (unit, scale) in UNITS {
        let amount = rest / scale;
        rest %= scale;
        if amount > 0 {
            text.push_str(&format!("{amount}{unit}"));
        }
    }
    if text.is_empty() {
        "0s".to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_people_write() {
        let table = [
            ("0s", 0),
            ("20s", 20_000),
            ("2m", 120_000),
            ("1h30m", 5_400_000),
            ("1h1s", 3_601_000),
            ("90m", 5_400_000),
            ("500ms", 500),
            ("1s500ms", 1_500),
        ];
        for (text, millis) in table {
            assert_eq!(
                parse_duration(text),
                Ok(SignedDuration::from_millis(millis)),
                "{text}"
            );
        }
    }

    #[test]
    fn refuses_what_is_no_duration() {
        for text in [
            "",
            "5",
            "m",
            "2 m",
            "-2m",
            "2m1h",
            "1m1m",
            "1.5h",
            "2d",
            "2M",
            "99999999999999999999s",
            "9223372036854775807h",
            "never",
            "2m\n",
            "٣s",
        ] {
            assert_eq!(
                parse_duration(text),
                Err(ParseDurationError {
                    text: text.to_owned()
                })
            );
        }
    }

    #[test]
    fn writes_the_shortest_form() {
        for (millis, text) in [
            (0, "0s"),
            (-5, "0s"),
            (90_000, "1m30s"),
            (3_600_000, "1h"),
            (61_001, "1m1s1ms"),
        ] {
            assert_eq!(format_duration(SignedDuration::from_millis(millis)), text);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(millis in 0..i64::MAX) {
            let duration = SignedDuration::from_millis(millis);
            prop_assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,20}|[0-9hms]{0,30}") {
            let _ = parse_duration(&text);
        }
    }
}
