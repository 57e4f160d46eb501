//! A tenant's API that cannot be listed: nothing is made and nothing is
//! released until it can be listed again.

use anyhow::{Context as _, Result, bail};
use neap::installation::{Look, until};
use neap_api::names::CONDITION_TENANT_READABLE;
use neap_proofs::{Proof, pod, prove, ready_nodes};
use rustix::process::{Pid, Signal, kill_process};
use std::process::ExitCode;
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    prove(steps)
}

async fn steps(proof: &mut Proof) -> Result<()> {
    let hub_alone = control_planes(proof);
    proof
        .neap(&[
            "cluster",
            "create",
            "fog",
            "--max-nodes",
            "2",
            "--pods-per-node",
            "1",
            "--hold",
            "3s",
        ])
        .await?;
    let control_plane = control_planes(proof)
        .into_iter()
        .find(|pid| !hub_alone.contains(pid))
        .context("the control plane of the cluster should run")?;
    let tenant = proof.installation.tenant("default", "fog").await?;

    proof.step("a node at work, whose work will end unseen");
    proof.give(&tenant, &[pod("work", "sleep 2")]).await?;
    proof.until_running(&tenant, &["work"]).await?;

    proof.step("its API hangs: that is said, and nothing changes");
    kill_process(control_plane, Signal::STOP)?;
    let frozen = async {
        until("the cluster shown as unreadable", DEADLINE, async || {
            let readable = readable(proof).await?;
            Ok(if readable == Some(false) {
                Look::Done(())
            } else {
                Look::Not(format!("{readable:?}"))
            })
        })
        .await?;
        // Demand without pods, longer than the hold: a list taken for empty
        // would make a second machine now, or release the first.
        let more = serde_json::json!({"spec": {"scaling": {"minNodes": 2}}});
        proof.patch_cluster("default", "fog", more).await?;
        stays(proof, 1, Duration::from_secs(6)).await
    };
    let outcome = frozen.await;
    kill_process(control_plane, Signal::CONT)?;
    outcome?;

    proof.step("it answers again: what was asked for is made");
    until("two nodes", DEADLINE, async || {
        let nodes = ready_nodes(&tenant).await?;
        Ok(if nodes.len() == 2 {
            Look::Done(())
        } else {
            Look::Not(format!("{nodes:?}"))
        })
    })
    .await?;
    if readable(proof).await? != Some(true) {
        bail!("the cluster is still shown as unreadable");
    }
    let none = serde_json::json!({"spec": {"scaling": {"minNodes": 0}}});
    proof.patch_cluster("default", "fog", none).await?;
    proof.until_zero("default", "fog").await
}

/// Proves that there are so many machines, none leaving, for a while.
async fn stays(proof: &Proof, count: usize, period: Duration) -> Result<()> {
    let changed = until("a change that must not be", period, async || {
        let machines = proof.machines("default", "fog").await?;
        let leaving = machines.iter().any(|machine| {
            machine.metadata.deletion_timestamp.is_some()
                || machine.status.as_ref().and_then(|status| status.phase)
                    != Some(neap_api::machine::MachinePhase::Running)
        });
        Ok(if machines.len() != count || leaving {
            Look::Done(machines)
        } else {
            Look::Not("unchanged".into())
        })
    })
    .await;
    match changed {
        Ok(machines) => bail!("while the API could not be listed the machines became {machines:?}"),
        Err(_) => Ok(()),
    }
}

async fn readable(proof: &Proof) -> Result<Option<bool>> {
    let cluster = proof.cluster("default", "fog").await?;
    let conditions = cluster
        .status
        .map(|status| status.conditions)
        .unwrap_or_default();
    Ok(conditions
        .iter()
        .find(|one| one.type_ == CONDITION_TENANT_READABLE)
        .map(|one| one.status == "True"))
}

fn control_planes(proof: &mut Proof) -> Vec<Pid> {
    proof
        .processes("hyperkube control-plane")
        .iter()
        .filter_map(|process| Pid::from_raw(process.split(' ').next()?.parse().ok()?))
        .collect()
}
