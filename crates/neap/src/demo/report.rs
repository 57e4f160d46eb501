//! What the demo says: a line for each step, and a table of timings.

use super::HOLD_SECONDS;
use crate::clock::Stopwatch;
use crate::output::progress::{Progress, Shown};
use crate::output::table::columns;
use crate::output::{note, print};
use anyhow::Context as _;
use jiff::SignedDuration;
use serde::Serialize;

/// Says how each step went.
#[derive(Debug)]
pub(super) struct Reporter {
    json: bool,
    shown: Shown,
}

/// A step that is under way.
#[derive(Debug)]
pub(super) struct Step {
    name: &'static str,
    watch: Stopwatch,
    progress: Progress,
}

impl Step {
    /// Says where it stands.
    pub(super) fn update(&mut self, text: &str) {
        self.progress.update(text, self.watch.elapsed());
    }

    /// Time since it began.
    pub(super) fn elapsed(&self) -> SignedDuration {
        self.watch.elapsed()
    }
}

impl Reporter {
    pub(super) fn new(json: bool, shown: Shown) -> Self {
        Self {
            json,
            shown: if json { Shown::Not } else { shown },
        }
    }

    pub(super) fn is_json(&self) -> bool {
        self.json
    }

    /// A sentence for people.
    pub(super) fn say(&self, text: &str) {
        if self.shown != Shown::Not {
            note(text);
        }
    }

    pub(super) fn begin(&self, name: &'static str, text: &str) -> Step {
        Step {
            name,
            watch: Stopwatch::start(),
            progress: Progress::start(self.shown, text),
        }
    }

    /// Ends a step with what it found, in one line.
    pub(super) fn end<T>(
        &self,
        step: Step,
        outcome: anyhow::Result<(T, String)>,
    ) -> anyhow::Result<T> {
        let took = step.watch.elapsed();
        if self.json {
            print(&line(step.name, outcome.as_ref().err(), took)?)?;
        }
        match outcome {
            Ok((value, found)) => {
                step.progress
                    .finish(&format!("✓ {}: {found}", step.name), took);
                Ok(value)
            }
            Err(error) => {
                step.progress.finish(&format!("✗ {}", step.name), took);
                Err(error.context(format!("failed at step {}", step.name)))
            }
        }
    }
}

/// One line of `--json`.
#[derive(Debug, Serialize)]
struct Line<'a> {
    step: &'a str,
    ok: bool,
    seconds: f64,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

fn line(step: &str, error: Option<&anyhow::Error>, took: SignedDuration) -> anyhow::Result<String> {
    let error = error.map(|error| crate::problem::chain(error.as_ref()));
    let line = Line {
        step,
        ok: error.is_none(),
        seconds: rounded(took),
        error,
    };
    Ok(format!(
        "{}\n",
        serde_json::to_string(&line).context("failed to write JSON")?
    ))
}

/// Seconds to the millisecond.
fn rounded(took: SignedDuration) -> f64 {
    (took.as_secs_f64() * 1000.0).round() / 1000.0
}

/// What was measured on the way.
#[derive(Clone, Debug, Default)]
pub(super) struct Timings {
    /// `serve` started → its management API answers.
    pub(super) serve: Option<SignedDuration>,
    /// Cluster created → Ready.
    pub(super) ready: Option<SignedDuration>,
    /// Machine record seen → its Node Ready, of each.
    pub(super) nodes: Vec<SignedDuration>,
    /// Pods created → the first is Running.
    pub(super) first_running: Option<SignedDuration>,
    /// Pods created → all are Running, each on a node of its own.
    pub(super) all_running: Option<SignedDuration>,
    /// Last pod finished → no machine is left.
    pub(super) back: Option<SignedDuration>,
    /// Pods created → no machine is left.
    pub(super) there_and_back: Option<SignedDuration>,
    /// Cluster created → no machine is left.
    pub(super) four_steps: Option<SignedDuration>,
    /// Cluster deleted → nothing of it is left.
    pub(super) delete: Option<SignedDuration>,
    /// All of the demo.
    pub(super) whole: Option<SignedDuration>,
}

impl Timings {
    /// Beside the figures of the reference, an autoscaler for CloudStack
    /// whose nodes are virtual machines and which held them for a minute.
    pub(super) fn table(&self) -> String {
        const REFERENCE_HOLD: f64 = 60.0;
        let hold = SignedDuration::from_secs(HOLD_SECONDS);
        let seconds = |took: Option<SignedDuration>| {
            took.map(|took| format!("{:.2} s", took.as_secs_f64()))
                .unwrap_or_default()
        };
        let without = |took: Option<SignedDuration>| seconds(took.map(|took| took - hold));
        let reference = |value: f64| format!("{value:.2} s");
        let mut nodes = self.nodes.clone();
        nodes.sort();
        let node = nodes.get(nodes.len() / 2).copied();
        let none = String::new;
        let rows: Vec<Vec<String>> = [
            (
                "serve started → management API answers",
                seconds(self.serve),
                none(),
            ),
            ("cluster created → Ready", seconds(self.ready), none()),
            (
                "machine record → node Ready (median of three)",
                seconds(node),
                reference(5.43),
            ),
            (
                "pods at zero → the first Running",
                seconds(self.first_running),
                none(),
            ),
            (
                "three pods at zero → three nodes, all Running",
                seconds(self.all_running),
                none(),
            ),
            (
                "last pod finished → zero nodes, hold included",
                seconds(self.back),
                none(),
            ),
            (
                "three pods → three nodes → zero, hold included",
                seconds(self.there_and_back),
                reference(95.65),
            ),
            (
                "… without the hold",
                without(self.there_and_back),
                reference(95.65 - REFERENCE_HOLD),
            ),
            (
                "create → zero → work → zero, hold included",
                seconds(self.four_steps),
                reference(100.5),
            ),
            (
                "… without the hold",
                without(self.four_steps),
                reference(100.5 - REFERENCE_HOLD),
            ),
            (
                "cluster deleted → nothing left of it",
                seconds(self.delete),
                none(),
            ),
            ("all of the demo", seconds(self.whole), none()),
        ]
        .into_iter()
        .map(|(what, neap, reference)| vec![what.to_owned(), neap, reference])
        .collect();
        let mut text = columns(&["", "NEAP", "REFERENCE"], &rows);
        text.push_str(&format!(
            "The hold is {HOLD_SECONDS} s here and was 60 s there. A node is a container here and was a microVM there.\n"
        ));
        text
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn a_step_is_one_json_line_with_the_promised_fields() {
        let text = line("ready", None, SignedDuration::from_micros(1_234_567)).unwrap();
        assert_eq!(text, "{\"step\":\"ready\",\"ok\":true,\"seconds\":1.235}\n");
        let error = anyhow::anyhow!("no\nnode");
        let failed: serde_json::Value =
            serde_json::from_str(&line("hold", Some(&error), SignedDuration::ZERO).unwrap())
                .unwrap();
        assert_eq!(
            failed,
            json!({"step": "hold", "ok": false, "seconds": 0.0, "error": "no\\nnode"})
        );
    }

    #[test]
    fn a_failed_step_is_named_in_the_error() {
        let reporter = Reporter::new(false, Shown::Not);
        let step = reporter.begin("zero", "x");
        let error = reporter
            .end::<()>(step, Err(anyhow::anyhow!("a node came")))
            .unwrap_err();
        assert_eq!(format!("{error:#}"), "failed at step zero: a node came");
    }

    #[test]
    fn the_table_compares_with_and_without_the_hold() {
        let timings = Timings {
            nodes: [3, 1, 2].map(SignedDuration::from_secs).to_vec(),
            there_and_back: Some(SignedDuration::from_secs(22)),
            ..Timings::default()
        };
        let text = timings.table();
        let row = |start: &str| {
            text.lines()
                .find(|line| line.starts_with(start))
                .unwrap()
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert!(row("machine record").ends_with("2.00 s 5.43 s"), "{text}");
        assert!(
            row("three pods → three").ends_with("22.00 s 95.65 s"),
            "{text}"
        );
        assert!(row("… without").ends_with("12.00 s 35.65 s"), "{text}");
        assert!(row("cluster created").ends_with("- -"), "{text}");
    }
}
