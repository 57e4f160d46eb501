//! All that leaves the program: data to standard output, all else to standard
//! error. Text that came from a tenant passes through [`escape`] on its way.

pub(crate) mod progress;
pub(crate) mod table;

use crate::problem::Problem;
use anyhow::Context as _;
use clap::ValueEnum;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::Value;
use std::io::{IsTerminal as _, Write as _};

/// How data is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    // Columns for people.
    #[default]
    Table,
    // More columns.
    Wide,
    // JSON.
    Json,
    // YAML.
    Yaml,
    // kind/name, one a line.
    Name,
}

/// Writes to standard output. A reader that has gone is a [`Problem`] of its
/// own, which ends the program silently.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    print_bytes(text.as_bytes())
}

/// As [`print`], for what may be no text.
pub(crate) fn print_bytes(bytes: &[u8]) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(bytes).and_then(|()| stdout.flush());
    match written {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            Err(Problem::BrokenPipe.into())
        }
        Err(error) => Err(error).context("failed to write to standard output"),
    }
}

/// Writes one line to standard error. That it cannot be written changes
/// nothing, and there is nobody left to tell.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Whether a person looks at standard error.
pub(crate) fn is_watched() -> bool {
    std::io::stderr().is_terminal()
}

/// One value as JSON or YAML, with a line break at its end.
pub(crate) fn encode<T: Serialize>(value: &T, format: Format) -> anyhow::Result<String> {
    let mut text = if format == Format::Yaml {
        serde_saphyr::to_string(value).context("failed to write YAML")?
    } else {
        serde_json::to_string_pretty(value).context("failed to write JSON")?
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

/// An object of an API, or a list of them, without the notes on which fields
/// belong to whom, as kubectl shows it.
pub(crate) fn encode_object<T: Serialize>(object: &T, format: Format) -> anyhow::Result<String> {
    let mut object = serde_json::to_value(object).context("failed to write an object")?;
    strip(&mut object);
    if let Some(Value::Array(items)) = object.get_mut("items") {
        items.iter_mut().for_each(strip);
    }
    encode(&object, format)
}

fn strip(object: &mut Value) {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.remove("managedFields");
    }
}

/// Text without characters that steer a terminal or hide what it says: they
/// are shown as Rust escapes.
pub(crate) fn escape(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut safe, c| {
        let hides = matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
        match c {
            '\n' => safe.push_str("\\n"),
            '\t' => safe.push_str("\\t"),
            '\r' => safe.push_str("\\r"),
            c if c.is_control() || hides => safe.extend(c.escape_unicode()),
            c => safe.push(c),
        }
        safe
    })
}

/// How long ago, in the one or two largest units, as kubectl writes ages.
pub(crate) fn age(since: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(since).as_secs().max(0);
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600, seconds / 60);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 if seconds % 60 != 0 => format!("{minutes}m{}s", seconds % 60),
        120..7_200 => format!("{minutes}m"),
        7_200..172_800 => format!("{hours}h"),
        _ => format!("{days}d"),
    }
}

/// Elapsed time for people who wait: tenths below a minute.
pub(crate) fn elapsed(duration: SignedDuration) -> String {
    let tenths = duration.as_millis() / 100;
    let seconds = tenths / 10;
    if seconds < 60 {
        format!("{seconds}.{}s", tenths % 10)
    } else {
        format!("{}m{:02}s", seconds / 60, seconds % 60)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn notes_on_fields_are_not_shown() {
        let object = || serde_json::json!({"metadata": {"name": "ci", "managedFields": [1]}});
        let list = serde_json::json!({"items": [object()]});
        for shown in [object(), list] {
            let text = encode_object(&shown, Format::Json).unwrap();
            assert!(
                text.contains("ci") && !text.contains("managedFields"),
                "{text}"
            );
        }
    }

    #[test]
    fn control_and_hiding_characters_are_shown_not_obeyed() {
        for (raw, shown) in [
            ("plain text, Ünïcode", "plain text, Ünïcode"),
            ("a\nb\tc\r", "a\\nb\\tc\\r"),
            ("\u{1b}[2J", "\\u{1b}[2J"),
            ("ding\u{7}", "ding\\u{7}"),
            ("\u{61c}x", "\\u{61c}x"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("safe\u{202e}evil", "safe\\u{202e}evil"),
            ("\u{7f}\0", "\\u{7f}\\u{0}"),
        ] {
            assert_eq!(escape(raw), shown);
        }
    }

    #[test]
    fn ages_have_the_largest_units() {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        for (seconds, text) in [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (150, "2m30s"),
            (600, "10m"),
            (601, "10m"),
            (7_200, "2h"),
            (172_800, "2d"),
            (-5, "0s"),
        ] {
            assert_eq!(
                age(start, start + SignedDuration::from_secs(seconds)),
                text,
                "{seconds}"
            );
        }
    }

    #[test]
    fn elapsed_time_has_tenths_below_a_minute() {
        for (millis, text) in [
            (0, "0.0s"),
            (950, "0.9s"),
            (59_999, "59.9s"),
            (60_000, "1m00s"),
            (125_000, "2m05s"),
        ] {
            assert_eq!(elapsed(SignedDuration::from_millis(millis)), text);
        }
    }

    #[test]
    fn both_encodings_end_with_a_line_break() {
        let value = serde_json::json!({"a": 1});
        assert_eq!(encode(&value, Format::Json).unwrap(), "{\n  \"a\": 1\n}\n");
        assert_eq!(encode(&value, Format::Yaml).unwrap(), "a: 1\n");
    }
}
