//! The fitting decision on the workloads that its rivals were measured on: one
//! thread, from shapes to a plan. Each run is the best of a few, since the
//! machine is shared and the work always the same.

mod workloads;

use anyhow::{Result, ensure};
use neap_core::fit::plan;
use neap_core::fit::shape::Observed;

use crate::Subject;
use crate::figure::{Figure, Goal};
use crate::terminal::{Progress, Stopwatch};

/// Plans of one run.
const TRIES: u32 = 5;

/// A workload: what it should take, and what it should come to.
struct Workload {
    name: &'static str,
    observed: Observed,
    milliseconds: f64,
    /// Most machines, where a goal says so.
    machines: Option<f64>,
}

pub(crate) fn measure(subject: &Subject, progress: &Progress) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for workload in workloads::all()? {
        progress.note(workload.name);
        let mut time =
            Figure::new(workload.name, "ms").with_goal(Goal::AtMost(workload.milliseconds));
        let mut machines = Figure::new(format!("{}, machines", workload.name), "");
        if let Some(most) = workload.machines {
            machines = machines.with_goal(Goal::AtMost(most));
        }
        for _ in 0..subject.runs {
            let (milliseconds, count) = best(&workload.observed)?;
            time.add(milliseconds);
            machines.add(count);
        }
        figures.push(time);
        if workload.machines.is_some() {
            figures.push(machines);
        }
    }
    Ok(figures)
}

fn best(observed: &Observed) -> Result<(f64, f64)> {
    let mut least = f64::INFINITY;
    let mut machines = 0;
    for _ in 0..TRIES {
        let watch = Stopwatch::start();
        let plan = plan(observed);
        least = least.min(watch.seconds() * 1_000.0);
        machines = plan.machines.len();
        ensure!(plan.steps > 0, "nothing was looked at");
    }
    Ok((least, f64::from(u32::try_from(machines)?)))
}
