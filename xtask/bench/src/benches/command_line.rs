//! Every command of a person, and kubectl's plugin for each of its calls,
//! starts neap once.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::Subject;
use crate::figure::Figure;
use crate::terminal::{Progress, Stopwatch};

pub(crate) fn measure(subject: &Subject, progress: &Progress) -> Result<Vec<Figure>> {
    let mut start = Figure::new("neap --help", "s");
    for run in 1..=subject.runs {
        progress.note(&format!("run {run} of {}", subject.runs));
        let watch = Stopwatch::start();
        let output = Command::new(&subject.neap)
            .arg("--help")
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot run {}", subject.neap))?;
        let seconds = watch.seconds();
        if !output.status.success() {
            bail!("`{} --help` failed ({})", subject.neap, output.status);
        }
        start.add(seconds);
    }
    Ok(vec![start])
}
