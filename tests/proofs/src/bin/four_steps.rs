//! Ready at zero; at zero over ten passes without work; work brings a node by
//! name and runs; after the hold zero again, the control plane Ready all along.

use anyhow::{Result, bail};
use neap_proofs::{Proof, Steady, pod, prove, ready_nodes};
use std::collections::BTreeSet;
use std::process::ExitCode;

fn main() -> ExitCode {
    prove(steps)
}

async fn steps(proof: &mut Proof) -> Result<()> {
    proof.step("a cluster is Ready with no node");
    proof
        .neap(&["cluster", "create", "tide", "--hold", "3s"])
        .await?;
    proof.is_ready_at_zero("default", "tide").await?;
    let steady = Steady::begin(&proof.installation.hub().await?, "default", "tide").await?;

    proof.step("ten passes without work make nothing");
    for pass in 1..=10 {
        let cluster = proof
            .pass("default", "tide", &format!("pass-{pass}"))
            .await?;
        let decision = cluster.status.and_then(|status| status.last_decision);
        match decision {
            Some(decision)
                if decision.demand == 0 && decision.target == 0 && decision.actions.is_empty() => {}
            other => bail!("pass {pass} decided {other:?}"),
        }
        proof.is_ready_at_zero("default", "tide").await?;
    }

    proof.step("a pod brings the node tide-node1 and runs on it");
    let tenant = proof.installation.tenant("default", "tide").await?;
    proof.give(&tenant, &[pod("work", "sleep 1")]).await?;
    let nodes = proof.until_running(&tenant, &["work"]).await?;
    if nodes != BTreeSet::from(["tide-node1".to_owned()]) {
        bail!("the pod runs on {nodes:?}");
    }
    if ready_nodes(&tenant).await? != ["tide-node1"] {
        bail!("the Ready nodes are {:?}", ready_nodes(&tenant).await?);
    }

    proof.step("the work is done: after the hold there is no node");
    proof.until_zero("default", "tide").await?;
    proof.is_ready_at_zero("default", "tide").await?;
    steady.end().await
}
