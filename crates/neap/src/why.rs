//! `neap why cluster`: the last decision as sentences with its numbers, the
//! machines, and what time alone will change. It explains what the records
//! say; it decides nothing.

use crate::access::Access;
use crate::cli::Global;
use crate::clock::now;
use crate::output::{Format, age, elapsed, encode, escape, print};
use crate::records::{
    condition, get_cluster, is_paused, list_machines, phase_text, ready_condition,
};
use anyhow::Context as _;
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;
use neap_api::cluster::{ClusterPhase, LastDecision};
use neap_api::machine::MachinePhase;
use neap_api::names::CONDITION_PAUSED;
use neap_api::{Cluster, Machine};
use serde::Serialize;

/// The explanation; `-o json` writes it as it is.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Explanation {
    cluster: String,
    phase: String,
    /// That it is paused, and what waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    paused: Option<String>,
    /// Why it is not Ready, if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_ready: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<LastDecision>,
    machines: Vec<Explained>,
    next: Vec<Next>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Explained {
    name: String,
    phase: String,
    power: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// Something that happens by itself.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Next {
    /// When, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<Timestamp>,
    what: String,
}

pub(crate) async fn why_cluster(global: &Global, name: &str) -> anyhow::Result<()> {
    let account = &global.account;
    let doing = || format!("failed to explain cluster {account}/{name}");
    let hub = Access::new(&global.data_dir)
        .hub()
        .await
        .with_context(doing)?;
    let cluster = get_cluster(&hub, account, name).await.with_context(doing)?;
    let machines = list_machines(&hub, Some(account), Some(name))
        .await
        .with_context(doing)?;
    let explanation = explain(&cluster, &machines, now());
    match global.output {
        Format::Json | Format::Yaml => print(&encode(&explanation, global.output)?),
        Format::Table | Format::Wide | Format::Name => print(&sentences(&explanation, now())),
    }
}

fn explain(cluster: &Cluster, machines: &[Machine], now: Timestamp) -> Explanation {
    let not_ready = ready_condition(cluster)
        .filter(|condition| condition.status != "True")
        .map(|condition| format!("{}: {}", condition.reason, condition.message));
    Explanation {
        cluster: format!("{}/{}", cluster.account(), cluster.name_any()),
        phase: phase_text(cluster).to_owned(),
        paused: is_paused(cluster)
            .then(|| condition(cluster, CONDITION_PAUSED).map(|paused| paused.message.clone()))
            .flatten(),
        not_ready,
        decision: cluster
            .status
            .as_ref()
            .and_then(|status| status.last_decision.clone()),
        machines: machines
            .iter()
            .map(|machine| Explained {
                name: machine.name_any(),
                phase: machine.phase().to_string(),
                power: machine.power().to_string(),
                message: machine.status.as_ref().and_then(|status| {
                    let small = status.resizing.as_ref();
                    let small = small.and_then(|failures| failures.message.clone());
                    status.message.clone().or(small)
                }),
            })
            .collect(),
        next: next(cluster, machines, now),
    }
}

/// What time alone changes, the soonest first.
fn next(cluster: &Cluster, machines: &[Machine], now: Timestamp) -> Vec<Next> {
    let Some(status) = &cluster.status else {
        return vec![Next {
            at: None,
            what: "its control plane is started".into(),
        }];
    };
    let (account, name) = (cluster.account(), cluster.name_any());
    let only = |what: String| vec![Next { at: None, what }];
    if cluster.spec.paused {
        return only(format!(
            "nothing comes or goes until `neap cluster resume {name} -n {account}`"
        ));
    }
    if cluster.metadata.deletion_timestamp.is_some() {
        return only(
            "its machines go, then its control plane, then its data and its record".into(),
        );
    }
    if !cluster.spec.running {
        return only(match status.phase {
            Some(ClusterPhase::Stopped) => {
                format!("nothing until `neap cluster start {name} -n {account}`")
            }
            _ => "its machines go, then its control plane; its data is kept".into(),
        });
    }
    let mut next = Vec::new();
    let hold = cluster.policy().ok().map(|policy| policy.hold);
    let min = cluster.spec.scaling.min_nodes;
    let here = u32::try_from(machines.len()).unwrap_or(u32::MAX);
    let at = |since: Option<Timestamp>| {
        since
            .zip(hold)
            .and_then(|(since, hold)| since.checked_add(hold).ok())
    };
    if status.idle_since.is_some() && here > min {
        let what = match min {
            0 => "if no work has come by then, all nodes leave".to_owned(),
            min => format!("if no work has come by then, nodes leave down to the minimum of {min}"),
        };
        next.push(Next {
            at: at(status.idle_since),
            what,
        });
    }
    for (failures, what) in [
        (&status.provisioning, "making machines is tried again"),
        (&status.control_plane, "its control plane is started again"),
    ] {
        if let Some(failures) = failures
            .as_ref()
            .filter(|failures| failures.retry_at.is_some_and(|at| at > now))
        {
            let after = failures
                .message
                .as_deref()
                .map(|message| format!(": {message}"))
                .unwrap_or_default();
            let what = format!(
                "{what} after {} failures in a row{after}",
                failures.failures
            );
            next.push(Next {
                at: failures.retry_at,
                what,
            });
        }
    }
    for machine in machines {
        let name = machine.name_any();
        let deadline = machine.status.as_ref().and_then(|status| status.deadline);
        let what = match machine.phase() {
            MachinePhase::Pending => {
                format!("{name} is given up if its node has not joined by then")
            }
            MachinePhase::Releasing => {
                format!("{name} is looked at again, and leaves if it is still idle")
            }
            MachinePhase::Draining => format!("{name} is removed"),
            MachinePhase::Running => continue,
        };
        next.push(Next { at: deadline, what });
    }
    let decided = status.last_decision.as_ref().and_then(|last| last.next);
    if let Some(at) = decided.filter(|at| next.iter().all(|next| next.at != Some(*at))) {
        next.push(Next {
            at: Some(at),
            what: "it is decided again, for time alone changes that".into(),
        });
    }
    next.sort_by_key(|next| (next.at.is_none(), next.at));
    next
}

fn sentences(explanation: &Explanation, now: Timestamp) -> String {
    let mut lines = vec![format!("{} is {}.", explanation.cluster, explanation.phase)];
    if let Some(paused) = &explanation.paused {
        lines.push(paused.clone());
    }
    if let Some(not_ready) = &explanation.not_ready {
        lines.push(format!("It is not Ready: {not_ready}"));
    }
    match &explanation.decision {
        None => lines.push("Nothing has been decided yet.".into()),
        Some(decision) => {
            lines.push(String::new());
            lines.push(format!(
                "Decided {} ago: {}",
                age(decision.time, now),
                decision.message
            ));
            lines.push(format!(
                "  demand {}, target {}, counted {}, reason {}",
                decision.demand, decision.target, decision.counted, decision.reason
            ));
            if decision.actions.is_empty() {
                lines.push("  nothing to do".into());
            }
            for action in &decision.actions {
                let reason = action
                    .reason
                    .as_deref()
                    .map(|reason| format!(": {reason}"))
                    .unwrap_or_default();
                lines.push(format!(
                    "  {} {}{reason}",
                    action.action,
                    action.machines.join(", ")
                ));
            }
        }
    }
    lines.push(String::new());
    if explanation.machines.is_empty() {
        lines.push("Machines: none".into());
    } else {
        lines.push("Machines:".into());
        for machine in &explanation.machines {
            let message = machine
                .message
                .as_deref()
                .map(|message| format!(", {message}"))
                .unwrap_or_default();
            lines.push(format!(
                "  {} is {}, power {}{message}",
                machine.name, machine.phase, machine.power
            ));
        }
    }
    lines.push(String::new());
    if explanation.next.is_empty() {
        lines.push("Next: nothing until something changes.".into());
    } else {
        lines.push("Next:".into());
        for next in &explanation.next {
            lines.push(format!("  {}: {}", when(next.at, now), next.what));
        }
    }
    lines
        .iter()
        .map(|line| format!("{}\n", escape(line)))
        .collect()
}

fn when(at: Option<Timestamp>, now: Timestamp) -> String {
    match at.map(|at| at.duration_since(now)) {
        None => "now".into(),
        Some(left) if left <= SignedDuration::ZERO => "now".into(),
        Some(left) => format!("in {}", elapsed(left)),
    }
}

#[cfg(test)]
#[path = "why/tests.rs"]
mod tests;
