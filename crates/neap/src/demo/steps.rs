//! The steps of the demo, each of which must hold.

use super::HOLD_SECONDS;
use super::look::{ACCOUNT, Apis, CLUSTER, Seen};
use super::report::{Reporter, Step, Timings};
use super::work::{NAMESPACE, PODS, pod};
use crate::clock::Stopwatch;
use crate::installation::{Installation, Look, until};
use crate::problem::Problem;
use crate::records::{
    create_cluster, delete_cluster, find_cluster, get_cluster, is_ready, list_machines,
    ready_condition,
};
use anyhow::Context as _;
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use neap_api::names::ANNOTATION_REQUESTED_AT;
use neap_api::{Cluster, ClusterSpec};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Passes that find no work and leave the cluster at zero.
const PASSES: usize = 10;
/// How long any one step may take.
const DEADLINE: Duration = Duration::from_secs(90);

pub(super) async fn run(
    installation: &mut Installation,
    reporter: &mut Reporter,
    keep: bool,
) -> anyhow::Result<Timings> {
    let mut timings = Timings::default();

    let step = reporter.begin("serve", "neap serve starts");
    let served = installation
        .start_serve()
        .await
        .map(|()| ((), "the management API answers".to_owned()));
    timings.serve = Some(step.elapsed());
    reporter.end(step, served)?;

    let hub = installation.hub().await?;
    let four_steps = Stopwatch::start();
    let mut step = reporter.begin("ready", "a cluster is made");
    let made = ready_at_zero(installation, &hub, &mut step).await;
    timings.ready = Some(step.elapsed());
    let apis = reporter.end(step, made)?;

    let mut step = reporter.begin("zero", "passes without work");
    let stayed = stays_at_zero(&apis, &mut step).await;
    reporter.end(step, stayed)?;

    let work = Stopwatch::start();
    let mut step = reporter.begin("machines", "three pods are made");
    let came = machines_come(&apis, &mut step, &mut timings).await;
    let watched = reporter.end(step, came)?;

    let mut step = reporter.begin("running", "each pod runs on a node of its own");
    let ran = all_run(&apis, &mut step, work, watched, &mut timings).await;
    let uids = reporter.end(step, ran)?;
    for uid in &uids {
        installation.remember(uid);
    }

    let mut step = reporter.begin("succeeded", "the pods end their work");
    let ended = all_succeed(&apis, &mut step).await;
    reporter.end(step, ended)?;
    let finished = Stopwatch::start();

    let mut step = reporter.begin("back", "the nodes stay for the hold and leave");
    let left = back_to_zero(&apis, &mut step, finished).await;
    timings.back = Some(finished.elapsed());
    timings.there_and_back = Some(work.elapsed());
    timings.four_steps = Some(four_steps.elapsed());
    reporter.end(step, left)?;
    if keep {
        return Ok(timings);
    }

    let mut step = reporter.begin("delete", "the cluster is deleted");
    let deleted = nothing_left(installation, &apis.hub, &uids, &mut step).await;
    timings.delete = Some(step.elapsed());
    reporter.end(step, deleted)?;
    Ok(timings)
}

fn not_held(step: &'static str, why: impl Into<String>) -> anyhow::Error {
    Problem::StepFailed {
        step,
        why: why.into(),
    }
    .into()
}

async fn ready_at_zero(
    installation: &mut Installation,
    hub: &Client,
    step: &mut Step,
) -> anyhow::Result<(Apis, String)> {
    let mut spec = ClusterSpec::default();
    spec.scaling.max_nodes = u32::try_from(PODS).unwrap_or(u32::MAX);
    spec.scaling.pods_per_node = 1;
    spec.scaling.hold = format!("{HOLD_SECONDS}s");
    let made = create_cluster(hub, ACCOUNT, CLUSTER, spec).await?;
    installation.remember(&made.uid().unwrap_or_default());
    until("Ready", DEADLINE, async || {
        let cluster = get_cluster(hub, ACCOUNT, CLUSTER).await?;
        if is_ready(&cluster) {
            return Ok(Look::Done(()));
        }
        let standing = ready_condition(&cluster).map_or_else(
            || "its control plane starts".to_owned(),
            |condition| condition.message.clone(),
        );
        step.update(&format!("a cluster is made: {standing}"));
        Ok(Look::Not(standing))
    })
    .await?;
    let tenant = installation.tenant(ACCOUNT, CLUSTER).await?;
    let apis = Apis {
        hub: hub.clone(),
        tenant,
    };
    let seen = apis.look().await?;
    if !seen.is_at_zero() {
        return Err(not_held(
            "ready",
            format!("there is something without work: {}", seen.standing()),
        ));
    }
    Ok((apis, "the cluster is Ready, with zero nodes".to_owned()))
}

async fn stays_at_zero(apis: &Apis, step: &mut Step) -> anyhow::Result<((), String)> {
    let clusters: Api<Cluster> = Api::namespaced(apis.hub.clone(), ACCOUNT);
    for pass in 1..=PASSES {
        let asked = format!("{}-{pass}", crate::clock::now());
        let patch = json!({"metadata": {"annotations": {ANNOTATION_REQUESTED_AT: asked}}});
        clusters
            .patch(CLUSTER, &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .context("failed to ask for a pass")?;
        until(&format!("pass {pass}"), DEADLINE, async || {
            let seen = apis.look().await?;
            if !seen.is_at_zero() {
                return Err(not_held(
                    "zero",
                    format!("something came without work: {}", seen.standing()),
                ));
            }
            let decision = seen
                .cluster
                .status
                .as_ref()
                .and_then(|status| status.last_decision.as_ref());
            match decision {
                Some(decision) if decision.requested_at.as_ref() == Some(&asked) => {
                    if decision.target == 0 && decision.actions.is_empty() {
                        Ok(Look::Done(()))
                    } else {
                        Err(not_held(
                            "zero",
                            format!("it was decided: {}", decision.message),
                        ))
                    }
                }
                _ => Ok(Look::Not(seen.standing())),
            }
        })
        .await?;
        step.update(&format!(
            "{pass} of {PASSES} passes without work, zero nodes"
        ));
    }
    Ok((
        (),
        format!("zero nodes after {PASSES} passes, each asked for and seen"),
    ))
}

/// When each machine was first seen, since the pods were made.
#[derive(Debug)]
struct Watched {
    since: Stopwatch,
    records: BTreeMap<String, SignedDuration>,
    joined: BTreeSet<String>,
}

impl Watched {
    fn observe(&mut self, seen: &Seen, timings: &mut Timings) {
        let now = self.since.elapsed();
        for machine in &seen.machines {
            self.records.entry(machine.name_any()).or_insert(now);
        }
        for machine in seen.running_machines() {
            let name = machine.name_any();
            if let Some(record) = self.records.get(&name)
                && self.joined.insert(name)
            {
                timings.nodes.push(now - *record);
            }
        }
        if timings.first_running.is_none()
            && seen.pods_in("Running") + seen.pods_in("Succeeded") > 0
        {
            timings.first_running = Some(now);
        }
    }
}

async fn machines_come(
    apis: &Apis,
    step: &mut Step,
    timings: &mut Timings,
) -> anyhow::Result<(Watched, String)> {
    let pods: Api<Pod> = Api::namespaced(apis.tenant.clone(), NAMESPACE);
    let mut watched = Watched {
        since: Stopwatch::start(),
        records: BTreeMap::new(),
        joined: BTreeSet::new(),
    };
    for n in 1..=PODS {
        let pod = pod(n).context("failed to write a pod")?;
        pods.create(&PostParams::default(), &pod)
            .await
            .with_context(|| format!("failed to create pod {n}"))?;
    }
    let expected: BTreeSet<String> = (1..=PODS)
        .map(|ordinal| format!("{CLUSTER}-node{ordinal}"))
        .collect();
    until("three machines", DEADLINE, async || {
        let seen = apis.look().await?;
        watched.observe(&seen, timings);
        step.update(&seen.standing());
        let names: BTreeSet<String> = seen
            .machines
            .iter()
            .map(|machine| machine.name_any())
            .collect();
        if !names.is_subset(&expected) {
            return Err(not_held(
                "machines",
                format!("there are {}", Vec::from_iter(names).join(", ")),
            ));
        }
        Ok(if names == expected {
            Look::Done(())
        } else {
            Look::Not(seen.standing())
        })
    })
    .await?;
    let names: Vec<String> = expected.into_iter().collect();
    Ok((watched, format!("three machines: {}", names.join(", "))))
}

async fn all_run(
    apis: &Apis,
    step: &mut Step,
    work: Stopwatch,
    mut watched: Watched,
    timings: &mut Timings,
) -> anyhow::Result<(Vec<String>, String)> {
    let mut ran: BTreeSet<String> = BTreeSet::new();
    let uids = until("three running pods", DEADLINE, async || {
        let seen = apis.look().await?;
        watched.observe(&seen, timings);
        step.update(&seen.standing());
        for pod in &seen.pods {
            match super::look::phase_of(pod) {
                "Running" => {
                    ran.insert(pod.name_any());
                }
                "Failed" => {
                    return Err(not_held(
                        "running",
                        format!("pod {} failed", pod.name_any()),
                    ));
                }
                _ => {}
            }
        }
        if ran.len() < PODS || watched.joined.len() < PODS {
            return Ok(Look::Not(seen.standing()));
        }
        if seen.used_nodes().len() != PODS || !seen.nodes_are_machines() {
            let nodes: Vec<String> = seen.used_nodes().into_iter().collect();
            return Err(not_held(
                "running",
                format!("the pods are on {}", nodes.join(", ")),
            ));
        }
        Ok(Look::Done(
            seen.machines
                .iter()
                .filter_map(|machine| machine.uid())
                .collect::<Vec<_>>(),
        ))
    })
    .await?;
    timings.all_running = Some(work.elapsed());
    Ok((uids, "three pods run, each on a node of its own".to_owned()))
}

async fn all_succeed(apis: &Apis, step: &mut Step) -> anyhow::Result<((), String)> {
    until("three pods that succeeded", DEADLINE, async || {
        let seen = apis.look().await?;
        step.update(&seen.standing());
        if seen.pods_in("Failed") > 0 {
            return Err(not_held("succeeded", "a pod failed"));
        }
        Ok(if seen.pods_in("Succeeded") == PODS {
            Look::Done(())
        } else {
            Look::Not(seen.standing())
        })
    })
    .await?;
    Ok(((), "three pods Succeeded".to_owned()))
}

async fn back_to_zero(
    apis: &Apis,
    step: &mut Step,
    finished: Stopwatch,
) -> anyhow::Result<((), String)> {
    // The decision sees the end of the last pod a little before this does.
    let earliest = SignedDuration::from_secs(HOLD_SECONDS) - SignedDuration::from_secs(1);
    // Where a pod ended a whole hold before the last one, its node has left.
    let at_first = apis.look().await?.running_machines().count();
    let mut first_left = None;
    until("zero nodes", DEADLINE, async || {
        let seen = apis.look().await?;
        step.update(&seen.standing());
        if first_left.is_none() && seen.running_machines().count() < at_first {
            let after = finished.elapsed();
            first_left = Some(after);
            if after < earliest {
                return Err(not_held(
                    "back",
                    format!(
                        "a node began to leave {:.1} s into the hold",
                        after.as_secs_f64()
                    ),
                ));
            }
        }
        Ok(if seen.is_at_zero() {
            Look::Done(())
        } else {
            Look::Not(seen.standing())
        })
    })
    .await?;
    let began = first_left.unwrap_or_default().as_secs_f64();
    Ok((
        (),
        format!(
            "zero nodes again; they began to leave after {began:.1} s, the control plane was Ready all along"
        ),
    ))
}

async fn nothing_left(
    installation: &Installation,
    hub: &Client,
    machines: &[String],
    step: &mut Step,
) -> anyhow::Result<((), String)> {
    let cluster = get_cluster(hub, ACCOUNT, CLUSTER).await?;
    let uid = cluster.uid().unwrap_or_default();
    delete_cluster(hub, &cluster).await?;
    until("the end of the cluster", DEADLINE, async || {
        Ok(match find_cluster(hub, ACCOUNT, CLUSTER).await? {
            None => Look::Done(()),
            Some(_) => Look::Not("its record is still there".to_owned()),
        })
    })
    .await?;
    step.update("the record is gone; looking for traces");
    let records = list_machines(hub, Some(ACCOUNT), None).await?.len();
    if records > 0 {
        return Err(not_held(
            "delete",
            format!("{records} machine records are left"),
        ));
    }
    let left = installation.traces_of(&uid, machines.iter().map(String::as_str));
    if !left.is_empty() {
        return Err(not_held(
            "delete",
            format!("something is left: {}", left.summary()),
        ));
    }
    Ok((
        (),
        "the cluster is gone: no process, namespace, mount, interface, cgroup or file is left"
            .to_owned(),
    ))
}
