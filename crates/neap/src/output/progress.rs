//! What people see while they wait, on standard error: one line that changes
//! on a terminal, a line for each change elsewhere.

use super::{elapsed, escape, is_watched, note};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::SignedDuration;
use std::time::Duration;

/// A wait with its elapsed time.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    last: String,
    shown: Shown,
}

/// Where progress goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// A line that changes.
    Live,
    /// A line for each change.
    Lines,
    /// Nowhere.
    Not,
}

impl Shown {
    /// What suits standard error.
    pub(crate) fn by_terminal() -> Self {
        if is_watched() {
            Self::Live
        } else {
            Self::Lines
        }
    }
}

impl Progress {
    /// Begins to show `text`.
    pub(crate) fn start(shown: Shown, text: &str) -> Self {
        let bar = (shown == Shown::Live).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}") {
                bar.set_style(style);
            }
            bar.set_message(escape(text));
            bar.enable_steady_tick(Duration::from_millis(100));
            bar
        });
        let mut progress = Self {
            bar,
            last: String::new(),
            shown,
        };
        progress.update(text, SignedDuration::ZERO);
        progress
    }

    /// Shows where the wait stands, if that has changed.
    pub(crate) fn update(&mut self, text: &str, since_start: SignedDuration) {
        if self.last == text {
            return;
        }
        text.clone_into(&mut self.last);
        match (&self.bar, self.shown) {
            (Some(bar), _) => bar.set_message(escape(text)),
            (None, Shown::Lines) => note(&line(text, since_start)),
            (None, _) => {}
        }
    }

    /// Ends the wait with a line that stays.
    pub(crate) fn finish(self, text: &str, took: SignedDuration) {
        let shown = self.shown;
        drop(self);
        if shown != Shown::Not {
            note(&line(text, took));
        }
    }
}

impl Drop for Progress {
    /// A line that changes is for as long as the wait.
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// One line with the time that it took until then.
fn line(text: &str, took: SignedDuration) -> String {
    format!("{:>7}  {}", elapsed(took), escape(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_begins_with_its_time() {
        assert_eq!(
            line("cluster demo: Starting", SignedDuration::from_millis(1_250)),
            "   1.2s  cluster demo: Starting"
        );
        assert_eq!(
            line("x\ny", SignedDuration::from_secs(75)),
            "  1m15s  x\\ny"
        );
    }
}
