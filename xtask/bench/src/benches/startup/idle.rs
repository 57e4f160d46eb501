//! What stands idle costs: own memory (without pages of files, which all
//! share) and CPU over a window.

use anyhow::{Context as _, Result};
use neap::installation::{Installation, Scope, Traces};
use neap_process::usage::observe_process;
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

use super::Figures;
use super::tenant::Tenant;
use crate::terminal::{Progress, Stopwatch};

/// What a control plane or a node does once after its start is over by then.
const SETTLE: Duration = Duration::from_secs(30);
/// Over which CPU is measured.
const WINDOW: Duration = Duration::from_secs(15);

/// Processes that are measured together.
#[derive(Debug)]
struct Group(BTreeSet<i32>);

/// Megabytes, and per cent of a core.
#[derive(Clone, Copy, Debug)]
struct Cost {
    memory: f64,
    cpu: f64,
}

impl Group {
    fn usage(&self) -> Result<(f64, Duration)> {
        let mut memory = 0.0;
        let mut cpu = Duration::ZERO;
        for pid in &self.0 {
            let usage = observe_process(*pid)?;
            memory += megabytes(usage.own_memory_bytes);
            cpu += usage.cpu;
        }
        Ok((memory, cpu))
    }
}

fn megabytes(bytes: u64) -> f64 {
    // Kibibytes fit, and a megabyte is what the goals are written in.
    u32::try_from(bytes / 1000).map_or(f64::INFINITY, |thousands| f64::from(thousands) / 1000.0)
}

async fn cost<const N: usize>(groups: [&Group; N]) -> Result<[Cost; N]> {
    let before = groups.map(|group| group.usage());
    let watch = Stopwatch::start();
    tokio::time::sleep(WINDOW).await;
    let seconds = watch.seconds();
    let mut costs = Vec::new();
    for (before, group) in before.into_iter().zip(groups) {
        let (_, cpu_before) = before?;
        let (memory, cpu) = group.usage()?;
        costs.push(Cost {
            memory,
            cpu: (cpu - cpu_before).as_secs_f64() / seconds * 100.0,
        });
    }
    costs.try_into().ok().context("as many costs as groups")
}

/// Of a line `pid command`.
fn pid_of(line: &str) -> Option<i32> {
    line.split(' ').next()?.parse().ok()
}

pub(super) async fn measure(
    installation: &Installation,
    figures: &mut Figures,
    progress: &Progress,
) -> Result<()> {
    progress.note("idle: neap, hub and a tenant at zero");
    let serve = installation
        .serve_pid()
        .and_then(|pid| i32::try_from(pid).ok())
        .context("serve runs")?;
    let neap = Group(BTreeSet::from([serve]));
    let processes = |words: &str| {
        let all = Traces::take(&Scope::read(installation.data_dir())).processes;
        all.iter()
            .filter(|line| line.contains(words))
            .filter_map(|line| pid_of(line))
            .collect::<BTreeSet<i32>>()
    };
    let hub = Group(processes("hyperkube control-plane"));
    let tenant = Tenant::create(installation, "idle", json!({"hold": "1s"})).await?;
    let control_plane = Group(&processes("hyperkube control-plane") - &hub.0);
    tokio::time::sleep(SETTLE).await;
    let [of_neap, of_hub, of_tenant] = cost([&neap, &hub, &control_plane]).await?;
    figures.neap_memory.add(of_neap.memory);
    figures.neap_cpu.add(of_neap.cpu);
    figures.hub_memory.add(of_hub.memory);
    figures.hub_cpu.add(of_hub.cpu);
    figures.tenant_memory.add(of_tenant.memory);
    figures.tenant_cpu.add(of_tenant.cpu);

    progress.note("idle: a further tenant");
    let further = Tenant::create(installation, "further", json!({})).await?;
    tokio::time::sleep(SETTLE).await;
    figures
        .further_tenant
        .add((neap.usage()?.0 - of_neap.memory).max(0.0));
    further.delete().await?;

    progress.note("idle: a node");
    let uid = tenant.uid().await?;
    let before = installation.traces_of(&uid, []).processes;
    tenant.keep_nodes(1).await?;
    tenant.node_ready(&tenant.node(1)).await?;
    tokio::time::sleep(SETTLE).await;
    // The programs of the node; it has no pods.
    let machine = tenant.machine_uid(&tenant.node(1)).await?;
    let with_node = installation.traces_of(&uid, [machine.as_str()]).processes;
    let node = Group(
        with_node
            .difference(&before)
            .filter_map(|line| pid_of(line))
            .collect(),
    );
    let [of_node] = cost([&node]).await?;
    figures.node_memory.add(of_node.memory);
    figures.node_cpu.add(of_node.cpu);
    tenant.delete().await
}
