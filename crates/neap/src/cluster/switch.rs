//! `neap cluster stop`, `start`, `pause` and `resume`: one field of the spec
//! each, and the wait until the record says that it is so.

use crate::access::Access;
use crate::cli::{Global, SwitchArgs};
use crate::clock::Stopwatch;
use crate::output::progress::{Progress, Shown};
use crate::output::{Format, elapsed, encode_object, print};
use crate::problem::Problem;
use crate::records::{
    change_cluster, get_cluster, is_observed, is_paused, is_ready, phase_of, standing,
};
use anyhow::Context as _;
use kube::{Client, ResourceExt as _};
use neap_api::cluster::ClusterPhase;
use neap_api::{Cluster, names};
use serde_json::{Value, json};
use std::time::Duration;

/// Pause between two looks at a record.
const PAUSE: Duration = Duration::from_millis(100);

/// What is wanted of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Switch {
    Stop,
    Start,
    Pause,
    Resume,
}

impl Switch {
    fn verb(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Start => "start",
            Self::Pause => "pause",
            Self::Resume => "resume",
        }
    }

    /// What is changed of the record.
    fn patch(self) -> Value {
        match self {
            Self::Stop => json!({"spec": {"running": false}}),
            Self::Start => json!({"spec": {"running": true}}),
            Self::Pause => json!({"spec": {"paused": true}}),
            Self::Resume => json!({"spec": {"paused": false}}),
        }
    }

    /// Whether the record says that it is done.
    fn is_done(self, cluster: &Cluster) -> bool {
        is_observed(cluster)
            && match self {
                Self::Stop => phase_of(cluster) == Some(ClusterPhase::Stopped),
                Self::Start => is_ready(cluster),
                Self::Pause => is_paused(cluster),
                Self::Resume => !is_paused(cluster),
            }
    }

    /// How it is once it is done.
    fn outcome(self) -> &'static str {
        match self {
            Self::Stop => "stopped",
            Self::Start => "Ready",
            Self::Pause => "paused",
            Self::Resume => "resumed",
        }
    }
}

pub(super) async fn switch(
    global: &Global,
    shown: Shown,
    args: &SwitchArgs,
    switch: Switch,
) -> anyhow::Result<()> {
    let (account, name) = (&global.account, &args.name);
    let doing = || format!("failed to {} cluster {account}/{name}", switch.verb());
    let started = Stopwatch::start();
    let hub = Access::new(&global.data_dir)
        .hub()
        .await
        .with_context(doing)?;
    let found = get_cluster(&hub, account, name).await.with_context(doing)?;
    let waits = args.wait.deadline();
    if switch == Switch::Stop && found.spec.paused && !switch.is_done(&found) && waits.is_some() {
        let (account, name) = (account.clone(), name.clone());
        let what = "its stop";
        return Err(Problem::Paused {
            account,
            name,
            what,
        })
        .with_context(doing);
    }
    let mut cluster = change_cluster(&hub, &found, &switch.patch())
        .await
        .with_context(doing)?;
    if let Some(deadline) = waits {
        cluster = wait_done(&hub, &cluster, switch, started, deadline, shown)
            .await
            .with_context(doing)?;
    }
    let said = match (global.output, waits) {
        (Format::Json | Format::Yaml, _) => encode_object(&cluster, global.output)?,
        (Format::Name, _) => format!("cluster.{}/{name}\n", names::GROUP),
        (Format::Table | Format::Wide, Some(_)) => format!(
            "cluster {account}/{name} is {} after {}\n",
            switch.outcome(),
            elapsed(started.elapsed())
        ),
        (Format::Table | Format::Wide, None) => {
            format!("cluster {account}/{name} is asked to {}\n", switch.verb())
        }
    };
    print(&said)
}

async fn wait_done(
    hub: &Client,
    asked: &Cluster,
    switch: Switch,
    started: Stopwatch,
    deadline: Duration,
    shown: Shown,
) -> anyhow::Result<Cluster> {
    let (account, name) = (asked.account(), asked.name_any());
    let mut progress = Progress::start(shown, &standing(asked));
    let waited = async {
        loop {
            let cluster = get_cluster(hub, &account, &name).await?;
            progress.update(&standing(&cluster), started.elapsed());
            if switch.is_done(&cluster) {
                return anyhow::Ok(cluster);
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    match tokio::time::timeout(deadline, waited).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Problem::TimedOut {
            what: format!("the {} of it", switch.verb()),
            after: format!("{deadline:?}"),
            look: format!(
                "it goes on: `neap why cluster {name} -n {account}` says where it stands"
            ),
        }
        .into()),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn cluster(phase: &str, ready: &str, paused: &str, observed: i64) -> Cluster {
        let condition = |type_, status| {
            json!({"type": type_, "status": status, "reason": "R", "message": "",
                   "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        serde_json::from_value(json!({
            "apiVersion": "neap.dev/v1alpha1", "kind": "Cluster",
            "metadata": {"name": "ci", "namespace": "team", "generation": 2},
            "spec": {},
            "status": {
                "phase": phase, "observedGeneration": observed,
                "conditions": [condition("Ready", ready), condition("Paused", paused)],
            },
        }))
        .unwrap()
    }

    #[test]
    fn nothing_is_done_before_the_loop_has_seen_what_was_asked() {
        let table = [
            (Switch::Stop, cluster("Stopped", "False", "False", 1)),
            (Switch::Start, cluster("Running", "True", "False", 1)),
            (Switch::Pause, cluster("Running", "True", "True", 1)),
            (Switch::Resume, cluster("Running", "True", "False", 1)),
        ];
        for (switch, seen_before) in table {
            assert!(!switch.is_done(&seen_before), "{switch:?}");
            let mut seen = seen_before;
            seen.status.as_mut().unwrap().observed_generation = Some(2);
            assert!(switch.is_done(&seen), "{switch:?}");
        }
    }

    #[test]
    fn what_is_on_its_way_is_not_done() {
        for (switch, on_its_way) in [
            (Switch::Stop, cluster("Stopping", "False", "False", 2)),
            (Switch::Start, cluster("Starting", "False", "False", 2)),
            (Switch::Pause, cluster("Running", "True", "False", 2)),
            (Switch::Resume, cluster("Running", "True", "True", 2)),
        ] {
            assert!(!switch.is_done(&on_its_way), "{switch:?}");
        }
    }
}
