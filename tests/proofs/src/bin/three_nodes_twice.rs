//! Three pods on three nodes, then zero; twice in a row, and the second time
//! ends where the first one did.

use anyhow::{Result, bail};
use neap::installation::Traces;
use neap_proofs::{Proof, pod, prove};
use std::process::ExitCode;

fn main() -> ExitCode {
    prove(steps)
}

async fn steps(proof: &mut Proof) -> Result<()> {
    let create = [
        "cluster",
        "create",
        "surf",
        "--max-nodes",
        "3",
        "--pods-per-node",
        "1",
        "--hold",
        "2s",
    ];
    proof.neap(&create).await?;
    let at_first = host_traces(proof);
    for round in 1..=2 {
        proof.step(&format!("round {round}: three pods run on three nodes"));
        three_and_zero(proof, round).await?;
        let more = host_traces(proof).difference(&at_first);
        if !more.is_empty() {
            bail!("round {round} left something: {}", more.summary());
        }
    }
    Ok(())
}

async fn three_and_zero(proof: &Proof, round: u32) -> Result<()> {
    let tenant = proof.installation.tenant("default", "surf").await?;
    let names: Vec<String> = (1..=3).map(|n| format!("round{round}-{n}")).collect();
    let pods: Vec<_> = names.iter().map(|name| pod(name, "sleep 5")).collect();
    proof.give(&tenant, &pods).await?;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let nodes = proof.until_running(&tenant, &names).await?;
    if nodes.len() != 3 {
        bail!("three pods run on {nodes:?}");
    }
    if proof.machines("default", "surf").await?.len() != 3 {
        bail!("there are not three machines");
    }
    proof.step(&format!("round {round}: the pods end, and zero comes"));
    proof.until_zero("default", "surf").await
}

/// Without files: logs and the store grow.
fn host_traces(proof: &mut Proof) -> Traces {
    Traces {
        files: std::collections::BTreeSet::new(),
        ..proof.installation.traces()
    }
}
