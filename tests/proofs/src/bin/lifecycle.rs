//! A Cluster is paused, resumed, stopped, started and deleted while stopped.
//! Stopped, nothing of it runs, also after a restart of neap; started again,
//! what its API held is there.

use anyhow::{Result, bail};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::ResourceExt as _;
use kube::api::{Api, ListParams, ObjectMeta, PostParams};
use neap::installation::{Look, until};
use neap_api::cluster::ClusterPhase;
use neap_proofs::{Proof, pod, prove, running_pods};
use std::process::ExitCode;
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    prove(steps)
}

async fn steps(proof: &mut Proof) -> Result<()> {
    let said = proof.neap(&["doctor", "--listen", "127.0.0.1:0"]).await?;
    for check in ["network", "nftables"] {
        let well = |line: &str| line.split_whitespace().take(2).eq(["ok", check]);
        if !said.lines().any(well) {
            bail!("the doctor should find {check} well: {said}");
        }
    }
    let create = ["--max-nodes", "2", "--pods-per-node", "1"];
    proof
        .neap(&[&["cluster", "create", "tide"], &create[..]].concat())
        .await?;
    let tenant = proof.installation.tenant("default", "tide").await?;
    proof.give(&tenant, &[pod("first", "sleep 600")]).await?;
    proof.until_running(&tenant, &["first"]).await?;

    proof.step("paused: another pod gets no node, and a stop is refused");
    proof.neap(&["cluster", "pause", "tide"]).await?;
    proof.give(&tenant, &[pod("second", "sleep 600")]).await?;
    let seen = until("the second pod seen", DEADLINE, async || {
        let cluster = proof.pass("default", "tide", "while paused").await?;
        let last = cluster.status.and_then(|status| status.last_decision);
        Ok(match last {
            Some(last) if last.demand == 2 => Look::Done(last),
            last => Look::Not(format!("{last:?}")),
        })
    })
    .await?;
    if seen.reason != "ClusterPaused" || !seen.actions.is_empty() {
        bail!("paused, it decided {seen:?}");
    }
    refused(
        proof,
        &["cluster", "stop", "tide"],
        "neap cluster resume tide",
    )
    .await?;
    if running_pods(&tenant).await?.len() != 1 {
        bail!("paused, the first pod should run on, and it alone");
    }

    proof.step("resumed: it gets one");
    proof.neap(&["cluster", "resume", "tide"]).await?;
    proof.until_running(&tenant, &["first", "second"]).await?;

    proof.step("stopped: nothing of it runs, also after a restart of neap");
    let kept = ConfigMap {
        metadata: ObjectMeta {
            name: Some("kept".into()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    };
    Api::namespaced(tenant.clone(), "default")
        .create(&PostParams::default(), &kept)
        .await?;
    proof.neap(&["cluster", "stop", "tide"]).await?;
    nothing_runs(proof).await?;
    proof.installation.restart_serve().await?;
    proof.neap(&["cluster", "stop", "tide"]).await?;
    nothing_runs(proof).await?;

    proof.step("started: what its API held is there, and the pods have failed");
    proof.neap(&["cluster", "start", "tide"]).await?;
    let tenant = proof.installation.tenant("default", "tide").await?;
    Api::<ConfigMap>::namespaced(tenant.clone(), "default")
        .get("kept")
        .await?;
    let pods = Api::<Pod>::namespaced(tenant, "default")
        .list(&ListParams::default())
        .await?;
    if !pods.items.is_empty() {
        let names: Vec<String> = pods.items.iter().map(Pod::name_any).collect();
        bail!("the pods should have been failed and removed, and there are {names:?}");
    }

    proof.step("its deletion waits while it is paused, and then takes it stopped");
    proof.neap(&["cluster", "stop", "tide"]).await?;
    proof.neap(&["cluster", "pause", "tide"]).await?;
    refused(
        proof,
        &["cluster", "delete", "tide", "--yes"],
        "neap cluster resume tide",
    )
    .await?;
    proof
        .neap(&["cluster", "delete", "tide", "--yes", "--no-wait"])
        .await?;
    let word = "its deletion waits";
    until(word, DEADLINE, async || {
        let said = proof.neap(&["why", "cluster", "tide"]).await?;
        Ok(if said.contains(word) {
            Look::Done(())
        } else {
            Look::Not(said)
        })
    })
    .await?;
    proof
        .neap(&["cluster", "resume", "tide", "--no-wait"])
        .await?;
    until("the end of the record", DEADLINE, async || {
        let left = proof.neap(&["cluster", "list", "-o", "name"]).await?;
        Ok(if left.is_empty() {
            Look::Done(())
        } else {
            Look::Not(left)
        })
    })
    .await
}

/// A command that has to fail, and name the way out.
async fn refused(proof: &Proof, arguments: &[&str], way_out: &str) -> Result<()> {
    match proof.neap(arguments).await {
        Ok(said) => bail!("neap {} succeeded: {said}", arguments.join(" ")),
        Err(error) if error.to_string().contains(way_out) => Ok(()),
        Err(error) => Err(error.context(format!("it should name `{way_out}`"))),
    }
}

/// Only the hub has processes, and the record says so.
async fn nothing_runs(proof: &mut Proof) -> Result<()> {
    let cluster = proof.cluster("default", "tide").await?;
    let status = cluster.status.unwrap_or_default();
    if status.phase != Some(ClusterPhase::Stopped) || status.nodes.unwrap_or(0) != 0 {
        bail!("the record says {status:?}");
    }
    let control_planes = proof.processes("hyperkube control-plane");
    let others = proof.processes("node-agent");
    if control_planes.len() != 1 || !others.is_empty() {
        bail!("stopped, there still run {control_planes:?} and {others:?}");
    }
    if !proof.machines("default", "tide").await?.is_empty() {
        bail!("stopped, there are still machines");
    }
    Ok(())
}
