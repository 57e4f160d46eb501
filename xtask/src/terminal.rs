//! What a person or a CI log sees: results on standard output, progress on
//! standard error. A spinner on a terminal, plain lines elsewhere.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// A log without a terminal shows that a long stage still lives this often.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// Writes a result to standard output. A closed pipe is the reader's choice.
pub(crate) fn print(line: &str) {
    let _ = writeln!(io::stdout().lock(), "{line}");
}

/// Writes a remark to standard error.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// How long something took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "the one clock of xtask")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// `0.4 s`, `12 s`, `2 min 31 s`.
pub(crate) fn show_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", duration.as_secs_f64()),
        10..60 => format!("{seconds} s"),
        _ => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// A piece of work that is shown while it runs. Dropped without `done`, it
/// is shown as failed.
#[derive(Debug)]
pub(crate) struct Stage {
    what: String,
    watch: Stopwatch,
    display: Option<Display>,
}

#[derive(Debug)]
enum Display {
    Terminal(ProgressBar),
    Log {
        note: Arc<Mutex<String>>,
        stop: mpsc::Sender<()>,
        heartbeat: JoinHandle<()>,
    },
}

impl Stage {
    pub(crate) fn start(what: impl Into<String>) -> Self {
        Self::start_long(what, "")
    }

    /// Starts what takes its time, and says how much.
    pub(crate) fn start_long(what: impl Into<String>, takes: &str) -> Self {
        let what = what.into();
        let watch = Stopwatch::start();
        let display = if io::stderr().is_terminal() {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) =
                ProgressStyle::with_template("{spinner} {prefix} ({elapsed}) {wide_msg:.dim}")
            {
                bar.set_style(style);
            }
            bar.set_prefix(what.clone());
            bar.set_message(takes.to_owned());
            bar.enable_steady_tick(Duration::from_millis(100));
            Display::Terminal(bar)
        } else {
            let separator = if takes.is_empty() { "" } else { ": " };
            say(&format!("   {what} …{separator}{takes}"));
            log_display(what.clone(), watch)
        };
        Self {
            what,
            watch,
            display: Some(display),
        }
    }

    /// What it is at just now.
    pub(crate) fn note(&self, text: &str) {
        match &self.display {
            Some(Display::Terminal(bar)) => bar.set_message(text.to_owned()),
            Some(Display::Log { note, .. }) => {
                text.clone_into(&mut note.lock().unwrap_or_else(PoisonError::into_inner));
            }
            None => {}
        }
    }

    pub(crate) fn done(mut self) {
        self.end("✓");
    }

    fn end(&mut self, mark: &str) {
        match self.display.take() {
            Some(Display::Terminal(bar)) => bar.finish_and_clear(),
            Some(Display::Log {
                stop, heartbeat, ..
            }) => {
                drop(stop);
                // A heartbeat that panicked has nothing left to show.
                let _ = heartbeat.join();
            }
            None => return,
        }
        say(&format!(
            " {mark} {} ({})",
            self.what,
            show_duration(self.watch.elapsed())
        ));
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.end("✗");
    }
}

fn log_display(what: String, watch: Stopwatch) -> Display {
    let note = Arc::new(Mutex::new(String::new()));
    let (stop, stopped) = mpsc::channel();
    let shared = Arc::clone(&note);
    let heartbeat = std::thread::spawn(move || {
        while stopped.recv_timeout(HEARTBEAT) == Err(RecvTimeoutError::Timeout) {
            let note = shared.lock().unwrap_or_else(PoisonError::into_inner);
            let elapsed = show_duration(watch.elapsed());
            let separator = if note.is_empty() { "" } else { ": " };
            say(&format!("   {what}, {elapsed} so far{separator}{note}"));
        }
    });
    Display::Log {
        note,
        stop,
        heartbeat,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_grow_coarser() {
        assert_eq!(show_duration(Duration::from_millis(430)), "0.4 s");
        assert_eq!(show_duration(Duration::from_millis(12_900)), "12 s");
        assert_eq!(show_duration(Duration::from_secs(151)), "2 min 31 s");
    }
}
