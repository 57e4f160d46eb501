//! What happens one after the other, and how long it takes.

use anyhow::{Result, bail};
use neap::installation::Installation;
use serde_json::json;

use super::tenant::Tenant;
use super::{Figures, HOLD_SECONDS};
use crate::terminal::{Progress, Stopwatch};

/// How long a released machine is left to settle.
const SETTLE_SECONDS: f64 = 1.0;

/// Ready at zero, at zero over ten passes, a node for a pod, zero again.
pub(super) async fn four_steps(
    installation: &Installation,
    figures: &mut Figures,
    progress: &Progress,
) -> Result<()> {
    progress.note("four steps: a cluster at zero, ten passes, a pod, zero");
    let proof = Stopwatch::start();
    let tenant = Tenant::create(
        installation,
        "one",
        json!({"hold": format!("{HOLD_SECONDS}s")}),
    )
    .await?;
    figures.ready.add(proof.seconds());
    for pass in 1..=10 {
        tenant.pass(&format!("pass-{pass}")).await?;
    }

    let node = tenant.node(1);
    let asked = Stopwatch::start();
    tenant.give(&["work"], 1).await?;
    let (recorded_to_ready, running) = tokio::try_join!(
        async {
            tenant.recorded(&node).await?;
            let recorded = Stopwatch::start();
            tenant.node_ready(&node).await?;
            anyhow::Ok(recorded.seconds())
        },
        async {
            tenant.running(&["work"]).await?;
            anyhow::Ok(asked.seconds())
        },
    )?;
    figures.node_ready.add(recorded_to_ready);
    figures.pod_running.add(running);

    tenant.releasing(&node).await?;
    let release = Stopwatch::start();
    tenant.gone(&[node]).await?;
    figures.no_trace.add(release.seconds() - SETTLE_SECONDS);
    figures.four_steps.add(proof.seconds() - HOLD_SECONDS);

    let uid = tenant.uid().await?;
    tenant.delete().await?;
    let left = installation.traces_of(&uid, []);
    if !left.is_empty() {
        bail!(
            "the cluster is deleted, and there is still {}",
            left.summary()
        );
    }
    Ok(())
}

/// Three pods at zero, a node each, and back.
pub(super) async fn three_nodes(
    installation: &Installation,
    figures: &mut Figures,
    progress: &Progress,
) -> Result<()> {
    progress.note("three pods at zero, three nodes, and back");
    let scaling = json!({"maxNodes": 3, "podsPerNode": 1, "hold": format!("{HOLD_SECONDS}s")});
    let tenant = Tenant::create(installation, "three", scaling).await?;
    let pods = ["a", "b", "c"];
    let asked = Stopwatch::start();
    tenant.give(&pods, 3).await?;
    tenant.running(&pods).await?;
    figures.three_running.add(asked.seconds());

    tenant.succeeded(&pods).await?;
    let ended = Stopwatch::start();
    let nodes: Vec<String> = (1..=3).map(|ordinal| tenant.node(ordinal)).collect();
    tenant.gone(&nodes).await?;
    figures.three_back.add(ended.seconds() - HOLD_SECONDS);
    tenant.delete().await
}
