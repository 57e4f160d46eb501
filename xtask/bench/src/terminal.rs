//! Results on standard output, progress on standard error: a spinner on a
//! terminal, plain lines elsewhere.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Writes a result. A closed pipe is the reader's choice.
pub(crate) fn print(line: &str) {
    let _ = writeln!(io::stdout().lock(), "{line}");
}

/// Writes a remark.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// How long something took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "the one clock of the benches")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn seconds(self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

/// What is measured just now.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    watch: Stopwatch,
}

impl Progress {
    pub(crate) fn start(what: &str) -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) =
                ProgressStyle::with_template("{spinner} {prefix} ({elapsed}) {wide_msg:.dim}")
            {
                bar.set_style(style);
            }
            bar.set_prefix(what.to_owned());
            bar.enable_steady_tick(Duration::from_millis(100));
            bar
        });
        if bar.is_none() {
            say(&format!("{what} …"));
        }
        Self {
            bar,
            watch: Stopwatch::start(),
        }
    }

    /// What it is at.
    pub(crate) fn note(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(text.to_owned()),
            None => say(&format!("   {:>6.1} s  {text}", self.watch.seconds())),
        }
    }

    pub(crate) fn end(self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
