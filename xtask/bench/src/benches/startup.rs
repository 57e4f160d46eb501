//! The way of a cluster from its record to nodes, to pods and to zero again,
//! and what stands idle costs.

mod idle;
mod rounds;
mod tenant;

use anyhow::{Context as _, Result};
use neap::installation::{Installation, Options};

use crate::Subject;
use crate::figure::{Figure, Goal};
use crate::terminal::Progress;

/// The hold of every cluster here. Figures that would contain it are given
/// without it.
const HOLD_SECONDS: f64 = 2.0;

/// All samples, one figure each.
struct Figures {
    ready: Figure,
    node_ready: Figure,
    pod_running: Figure,
    three_running: Figure,
    three_back: Figure,
    no_trace: Figure,
    four_steps: Figure,
    neap_memory: Figure,
    neap_cpu: Figure,
    hub_memory: Figure,
    hub_cpu: Figure,
    tenant_memory: Figure,
    tenant_cpu: Figure,
    further_tenant: Figure,
    node_memory: Figure,
    node_cpu: Figure,
}

impl Figures {
    fn new() -> Self {
        let at_most =
            |name: &str, unit, goal| Figure::new(name, unit).with_goal(Goal::AtMost(goal));
        Self {
            ready: at_most("cluster created → Ready", "s", 3.5),
            node_ready: at_most("machine recorded → Node Ready", "s", 1.2),
            pod_running: at_most("pod at zero → Running", "s", 3.5),
            three_running: at_most("three pods at zero → three nodes, all Running", "s", 6.0),
            three_back: at_most("last of three ended → zero, less the hold", "s", 4.0),
            no_trace: at_most("release → no trace, less the settle", "s", 3.0),
            four_steps: at_most("four steps, less the hold", "s", 10.0),
            neap_memory: at_most("neap idle, own memory", "MB", 30.0),
            neap_cpu: Figure::new("neap idle, CPU", "% of a core"),
            hub_memory: Figure::new("hub idle, own memory", "MB"),
            hub_cpu: Figure::new("hub idle, CPU", "% of a core"),
            tenant_memory: at_most("tenant idle, own memory", "MB", 130.0),
            tenant_cpu: at_most("tenant idle, CPU", "% of a core", 1.0),
            further_tenant: at_most("neap for a further idle tenant", "MB", 3.0),
            node_memory: at_most("node idle, own memory", "MB", 60.0),
            node_cpu: Figure::new("node idle, CPU", "% of a core"),
        }
    }

    fn list(self) -> Vec<Figure> {
        vec![
            self.ready,
            self.node_ready,
            self.pod_running,
            self.three_running,
            self.three_back,
            self.no_trace,
            self.four_steps,
            self.neap_memory,
            self.neap_cpu,
            self.further_tenant,
            self.hub_memory,
            self.hub_cpu,
            self.tenant_memory,
            self.tenant_cpu,
            self.node_memory,
            self.node_cpu,
        ]
    }
}

pub(crate) fn measure(subject: &Subject, progress: &Progress) -> Result<Vec<Figure>> {
    neap::runtime()?.block_on(async {
        let mut figures = Figures::new();
        let options = Options {
            program: subject.neap.clone(),
            distro: Some(subject.distro.clone()),
            data: None,
            keep: false,
        };
        let installation = Installation::start(options).await?;
        let outcome = runs(&installation, &mut figures, subject.runs, progress).await;
        let outcome =
            outcome.with_context(|| format!("serve said last:\n{}", installation.log_tail(20)));
        installation.purge().await?;
        outcome?;
        Ok(figures.list())
    })
}

async fn runs(
    installation: &Installation,
    figures: &mut Figures,
    runs: u32,
    progress: &Progress,
) -> Result<()> {
    for run in 1..=runs {
        progress.note(&format!("run {run} of {runs}"));
        rounds::four_steps(installation, figures, progress).await?;
        rounds::three_nodes(installation, figures, progress).await?;
        idle::measure(installation, figures, progress).await?;
    }
    Ok(())
}
