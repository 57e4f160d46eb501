//! The distro is looked up before every demo and test: the second time must
//! be instant.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::Subject;
use crate::figure::{Figure, Goal};
use crate::terminal::{Progress, Stopwatch};

pub(crate) fn measure(subject: &Subject, progress: &Progress) -> Result<Vec<Figure>> {
    let mut warm = Figure::new("distro found again", "s").with_goal(Goal::AtMost(0.5));
    for run in 1..=subject.runs {
        progress.note(&format!("run {run} of {}", subject.runs));
        let watch = Stopwatch::start();
        let found = Command::new(&subject.xtask)
            .arg("distro")
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot run {}", subject.xtask))?;
        let seconds = watch.seconds();
        if String::from_utf8_lossy(&found.stdout).trim() != subject.distro {
            bail!(
                "`xtask distro` found another distro than {}",
                subject.distro
            );
        }
        warm.add(seconds);
    }
    Ok(vec![warm])
}
