//! neap is killed while nodes come and while they go. Started again, it adopts
//! what runs and comes to the same end; nothing is made twice or restarted.

use anyhow::{Context as _, Result, bail};
use kube::api::Api;
use neap::installation::{Look, until};
use neap_api::Machine;
use neap_api::machine::MachinePhase;
use neap_proofs::{Proof, pod, prove};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    prove(steps)
}

async fn steps(proof: &mut Proof) -> Result<()> {
    let create = [
        "cluster",
        "create",
        "wreck",
        "--max-nodes",
        "2",
        "--pods-per-node",
        "1",
        "--hold",
        "3s",
    ];
    proof.neap(&create).await?;
    let control_planes = control_plane_processes(proof);
    if control_planes.len() < 2 {
        bail!("hub and cluster should run, found {control_planes:?}");
    }

    proof.step("neap is killed while two nodes come");
    let tenant = proof.installation.tenant("default", "wreck").await?;
    proof
        .give(&tenant, &[pod("one", "sleep 9"), pod("two", "sleep 9")])
        .await?;
    let made = until("two Machine records", DEADLINE, async || {
        let machines = uids(&proof.machines("default", "wreck").await?);
        Ok(if machines.len() == 2 {
            Look::Done(machines)
        } else {
            Look::Not(format!("{machines:?}"))
        })
    })
    .await?;
    proof.installation.kill_serve().await?;
    let logs = proof
        .neap(&["cluster", "logs", "wreck", "--tail", "3"])
        .await?;
    if logs.lines().count() != 3 {
        bail!("without neap the logs are {logs:?}");
    }
    proof.installation.start_serve().await?;

    proof.step("started again, it brings these two and no other");
    let tenant = proof.installation.tenant("default", "wreck").await?;
    let nodes = proof.until_running(&tenant, &["one", "two"]).await?;
    if nodes.len() != 2 {
        bail!("two pods run on {nodes:?}");
    }
    let now = uids(&proof.machines("default", "wreck").await?);
    if now != made {
        bail!("the machines were {made:?} and are {now:?}");
    }
    if control_plane_processes(proof) != control_planes {
        bail!(
            "control planes were restarted: {control_planes:?}, now {:?}",
            control_plane_processes(proof)
        );
    }

    proof.step("neap is killed while they go");
    let hub = proof.installation.hub().await?;
    until("a machine that leaves", DEADLINE, async || {
        let api = Api::<Machine>::namespaced(hub.clone(), "default");
        let phases: Vec<_> = api
            .list(&kube::api::ListParams::default())
            .await?
            .items
            .into_iter()
            .filter_map(|machine| machine.status.and_then(|status| status.phase))
            .collect();
        let leaves = phases
            .iter()
            .any(|phase| matches!(phase, MachinePhase::Releasing | MachinePhase::Draining));
        Ok(if leaves {
            Look::Done(())
        } else {
            Look::Not(format!("{phases:?}"))
        })
    })
    .await?;
    proof.installation.kill_serve().await?;
    proof.installation.start_serve().await?;

    proof.step("started again, it comes to zero all the same");
    proof.until_zero("default", "wreck").await?;
    proof.is_ready_at_zero("default", "wreck").await?;
    if control_plane_processes(proof) != control_planes {
        bail!(
            "control planes were restarted: {control_planes:?}, now {:?}",
            control_plane_processes(proof)
        );
    }
    let pods = Api::<k8s_openapi::api::core::v1::Pod>::namespaced(
        proof.installation.tenant("default", "wreck").await?,
        "default",
    );
    for name in ["one", "two"] {
        let pod = pods.get(name).await?;
        let phase = pod
            .status
            .and_then(|status| status.phase)
            .context("a pod that ran has a phase")?;
        if phase != "Succeeded" {
            bail!("pod {name} is {phase}: it should have ended by itself");
        }
    }
    Ok(())
}

fn uids(machines: &[Machine]) -> BTreeMap<String, String> {
    machines
        .iter()
        .filter_map(|machine| {
            Some((
                machine.metadata.name.clone()?,
                machine.metadata.uid.clone()?,
            ))
        })
        .collect()
}

/// `pid command` of each control plane: the same after a restart of neap.
fn control_plane_processes(proof: &mut Proof) -> Vec<String> {
    proof
        .processes("hyperkube control-plane")
        .into_iter()
        .collect()
}
