//! `neap demo`: a cluster ebbs and flows in a temporary folder, and every
//! step is looked at and timed.

mod host;
mod look;
mod report;
mod steps;
mod work;

use crate::cli::DemoArgs;
use crate::clock::Stopwatch;
use crate::distro::Distro;
use crate::installation::{Installation, Options};
use crate::output::progress::Shown;
use crate::output::{escape, note, print};
use crate::preflight::check_root;
use crate::problem::Problem;
use anyhow::Context as _;
use camino::Utf8PathBuf;
use host::HostSettings;
use report::{Reporter, Timings};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How long nodes stay without work here.
const HOLD_SECONDS: i64 = 10;
/// Lines of the log that are shown when a step fails.
const LOG_LINES: usize = 15;

pub(crate) async fn demo(args: &DemoArgs, shown: Shown) -> anyhow::Result<()> {
    let mut signals = Signals::listen()?;
    check_root("neap demo")?;
    let distro = Distro::find(args.distro.as_deref())?;
    let program =
        Utf8PathBuf::try_from(std::env::current_exe().context("failed to find this program")?)?;
    let before = HostSettings::read();
    let mut installation = Installation::prepare(Options {
        program,
        distro: Some(distro.path.clone()),
        data: None,
        keep: args.keep,
    })?;
    let mut reporter = Reporter::new(args.json, shown);
    reporter.say(&format!(
        "Kubernetes {}, data in {}, nodes stay {HOLD_SECONDS} s without work",
        distro.kubernetes,
        installation.data_dir()
    ));

    let whole = Stopwatch::start();
    let outcome = tokio::select! {
        outcome = steps::run(&mut installation, &mut reporter, args.keep) => outcome,
        () = signals.next() => Err(Problem::Interrupted.into()),
    };
    if args.keep {
        keep(installation);
        return finish(outcome, &reporter);
    }
    if let Err(error) = &outcome
        && !matches!(error.downcast_ref(), Some(Problem::Interrupted))
    {
        note(&format!("the last lines of {}:", installation.log()));
        installation
            .log_tail(LOG_LINES)
            .lines()
            .for_each(|line| note(&format!("  {}", escape(line))));
    }
    let cleaned = clean_up(installation, &mut reporter, &mut signals, &before).await;
    match (outcome, cleaned) {
        (Ok(mut timings), Ok(())) => {
            timings.whole = Some(whole.elapsed());
            finish(Ok(timings), &reporter)
        }
        (Err(error), Ok(())) | (Ok(_), Err(error)) => Err(error),
        (Err(error), Err(left)) => {
            note(&format!("error: {}", crate::problem::chain(left.as_ref())));
            Err(error)
        }
    }
}

fn finish(outcome: anyhow::Result<Timings>, reporter: &Reporter) -> anyhow::Result<()> {
    let timings = outcome?;
    if reporter.is_json() {
        Ok(())
    } else {
        print(&timings.table())
    }
}

/// Removes the whole installation; a signal is heard and changes nothing.
async fn clean_up(
    installation: Installation,
    reporter: &mut Reporter,
    signals: &mut Signals,
    before: &HostSettings,
) -> anyhow::Result<()> {
    let data_dir = installation.data_dir().to_owned();
    let step = reporter.begin(
        "clean",
        "serve ends, and all of the installation is removed",
    );
    let purge = installation.purge();
    tokio::pin!(purge);
    let purged = loop {
        tokio::select! {
            purged = &mut purge => break purged,
            () = signals.next() => note("removing what was made; a moment"),
        }
    };
    let checked = purged
        .with_context(|| {
            format!(
                "failed to leave the host as it was; `neap uninstall --data-dir {data_dir}` tries again"
            )
        })
        .and_then(|found| before.compare(&HostSettings::read()).map(|()| found));
    reporter.end(
        step,
        checked.map(|found| ((), format!("gone: {}; nothing is left", found.counts()))),
    )
}

fn keep(installation: Installation) {
    let data_dir = installation.keep();
    note(&format!(
        "The installation runs on. Look at it, and remove it at the end:\n  \
           export NEAP_DATA_DIR={data_dir}\n  \
           neap cluster list\n  \
           kill $(cat {data_dir}/lock) && neap uninstall --yes"
    ));
}

/// SIGINT, SIGTERM, and the end of the terminal.
#[derive(Debug)]
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    fn listen() -> anyhow::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).context("failed to listen for SIGINT")?,
            terminate: signal(SignalKind::terminate()).context("failed to listen for SIGTERM")?,
            hangup: signal(SignalKind::hangup()).context("failed to listen for SIGHUP")?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}
