//! The hub and the control plane of a Cluster hang: they live and answer
//! nobody. Both are ended and started again, and the Cluster's record counts
//! it. Then neap itself starts beside a hub that hangs, and comes up.

use anyhow::{Context as _, Result, bail};
use neap::installation::{Look, until};
use neap_proofs::{Proof, pod, prove};
use rustix::process::{Pid, Signal, kill_process};
use std::process::ExitCode;
use std::time::Duration;

/// A start is given two minutes before silence counts, then half a minute.
const DEADLINE: Duration = Duration::from_secs(260);

fn main() -> ExitCode {
    prove(steps)
}

async fn steps(proof: &mut Proof) -> Result<()> {
    proof.neap(&["cluster", "create", "stuck"]).await?;

    proof.step("the control plane of a cluster hangs, and is started again");
    let before = control_plane(proof, "/clusters/")?;
    freeze(before)?;
    let restarts = async |proof: &Proof| -> Result<Option<u32>> {
        let cluster = proof.cluster("default", "stuck").await?;
        Ok(cluster.status.and_then(|status| status.restarts))
    };
    until("a restart on the record", DEADLINE, async || {
        Ok(match restarts(proof).await? {
            Some(1) => Look::Done(()),
            seen => Look::Not(format!("{seen:?}")),
        })
    })
    .await?;
    let last = proof.cluster("default", "stuck").await?.status;
    let last = last.and_then(|status| status.last_failure);
    let last = last.context("a failure that was counted is told")?;
    if !last.message.contains("has not answered") {
        bail!("the last failure is {:?}", last.message);
    }
    proof.neap(&["cluster", "start", "stuck"]).await?;
    if control_plane(proof, "/clusters/")? == before {
        bail!("the process that hung is there still");
    }
    let tenant = proof.installation.tenant("default", "stuck").await?;
    proof.give(&tenant, &[pod("alive", "sleep 600")]).await?;
    proof.until_running(&tenant, &["alive"]).await?;

    proof.step("the hub hangs, and is started again");
    let before = control_plane(proof, "/hub/")?;
    freeze(before)?;
    until_another_hub(proof, before).await?;
    proof.until_running(&tenant, &["alive"]).await?;

    proof.step("neap starts beside a hub that hangs, and comes up");
    let before = control_plane(proof, "/hub/")?;
    proof.installation.kill_serve().await?;
    freeze(before)?;
    // What waits here for an answer gives up before neap does.
    let _late = proof.installation.start_serve().await;
    until_another_hub(proof, before).await?;
    let tenant = proof.installation.tenant("default", "stuck").await?;
    proof.until_running(&tenant, &["alive"]).await?;
    Ok(())
}

async fn until_another_hub(proof: &mut Proof, before: Pid) -> Result<()> {
    until("another hub", DEADLINE, async || {
        Ok(match control_plane(proof, "/hub/") {
            Ok(pid) if pid != before => Look::Done(()),
            other => Look::Not(format!("{other:?}")),
        })
    })
    .await?;
    until("an answer of the hub", DEADLINE, async || {
        Ok(match proof.cluster("default", "stuck").await {
            Ok(_) => Look::Done(()),
            Err(error) => Look::Not(format!("{error:#}")),
        })
    })
    .await
}

/// The process of the hub, or of the one cluster.
fn control_plane(proof: &mut Proof, folder: &str) -> Result<Pid> {
    let processes = proof.processes("hyperkube control-plane");
    let mut found = processes.iter().filter(|line| line.contains(folder));
    let (Some(one), None) = (found.next(), found.next()) else {
        bail!("one with {folder} should run of {processes:?}");
    };
    let pid = one.split(' ').next().context("pid and command")?;
    Pid::from_raw(pid.parse()?).context("a pid is not 0")
}

/// Stops a process that this proof has started.
fn freeze(pid: Pid) -> Result<()> {
    Ok(kill_process(pid, Signal::STOP)?)
}
