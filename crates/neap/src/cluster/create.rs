//! `neap cluster create`: the record, and the wait until it is Ready.

use crate::access::Access;
use crate::cli::{AuditArg, CreateArgs, DaemonSetsArg, Global};
use crate::clock::Stopwatch;
use crate::output::progress::{Progress, Shown};
use crate::output::{Format, elapsed, encode_object, print};
use crate::problem::Problem;
use crate::records::{create_cluster, get_cluster, is_ready, ready_condition, standing};
use anyhow::Context as _;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::Client;
use neap_api::cluster::{Audit, ClusterSpec, DaemonSetCounting};
use neap_api::{Cluster, names};
use neap_core::reason::VERSION_NOT_BUILT;
use std::time::Duration;

/// Pause between two looks at a record.
const PAUSE: Duration = Duration::from_millis(100);

pub(crate) async fn create(global: &Global, shown: Shown, args: &CreateArgs) -> anyhow::Result<()> {
    let (account, name) = (&global.account, &args.name);
    let doing = || format!("failed to create cluster {account}/{name}");
    let started = Stopwatch::start();
    let hub = Access::new(&global.data_dir)
        .hub()
        .await
        .with_context(doing)?;
    let mut cluster = create_cluster(&hub, account, name, spec_of(args))
        .await
        .with_context(doing)?;
    if let Some(deadline) = args.wait.deadline() {
        cluster = wait_ready(&hub, account, name, started, deadline, shown)
            .await
            .with_context(doing)?;
    }
    match global.output {
        Format::Json | Format::Yaml => print(&encode_object(&cluster, global.output)?),
        Format::Name => print(&format!("cluster.{}/{name}\n", names::GROUP)),
        Format::Table | Format::Wide if args.wait.deadline().is_some() => print(&format!(
            "cluster {account}/{name} is Ready after {}\n",
            elapsed(started.elapsed())
        )),
        Format::Table | Format::Wide => print(&format!("cluster {account}/{name} is created\n")),
    }
}

/// The spec that the options ask for; what is not said keeps its default.
fn spec_of(args: &CreateArgs) -> ClusterSpec {
    let mut spec = ClusterSpec {
        version: args.kube_version.clone(),
        ..ClusterSpec::default()
    };
    let scaling = &mut spec.scaling;
    scaling.max_nodes = args.max_nodes.unwrap_or(scaling.max_nodes);
    scaling.min_nodes = args.min_nodes.unwrap_or(scaling.min_nodes);
    scaling.pods_per_node = args.pods_per_node.unwrap_or(scaling.pods_per_node);
    if let Some(hold) = &args.hold {
        scaling.hold.clone_from(hold);
    }
    match args.daemon_sets {
        Some(DaemonSetsArg::Ignore) => scaling.daemon_sets = DaemonSetCounting::Ignore,
        Some(DaemonSetsArg::Count) => scaling.daemon_sets = DaemonSetCounting::Count,
        None => {}
    }
    if let Some(cpu) = &args.cpu {
        spec.nodes.class.cpu = Quantity(cpu.clone());
    }
    if let Some(memory) = &args.memory {
        spec.nodes.class.memory = Quantity(memory.clone());
    }
    if let Some(disk) = &args.disk {
        spec.nodes.class.disk = Quantity(disk.clone());
    }
    spec.control_plane.allow_privileged = args.allow_privileged;
    if let Some(audit) = args.audit {
        spec.control_plane.audit = match audit {
            AuditArg::Off => Audit::Off,
            AuditArg::Metadata => Audit::Metadata,
            AuditArg::Request => Audit::Request,
            AuditArg::RequestResponse => Audit::RequestResponse,
        };
    }
    spec
}

async fn wait_ready(
    hub: &Client,
    account: &str,
    name: &str,
    started: Stopwatch,
    deadline: Duration,
    shown: Shown,
) -> anyhow::Result<Cluster> {
    let mut progress = Progress::start(shown, &format!("cluster {account}/{name}: Created"));
    let waited = async {
        loop {
            let cluster = get_cluster(hub, account, name).await?;
            progress.update(&standing(&cluster), started.elapsed());
            if is_ready(&cluster) {
                return anyhow::Ok(cluster);
            }
            if let Some(why) = never_ready(&cluster) {
                let look = format!(
                    "remove its record with `neap cluster delete {name} -n {account} --yes`"
                );
                let name = name.to_owned();
                return Err(Problem::NeverReady { name, why, look }.into());
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    match tokio::time::timeout(deadline, waited).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Problem::TimedOut {
            what: "Ready".to_owned(),
            after: format!("{deadline:?}"),
            look: format!(
                "it goes on being made: `neap why cluster {name} -n {account}` says where it stands"
            ),
        }
        .into()),
    }
}

/// Why waiting is of no use.
fn never_ready(cluster: &Cluster) -> Option<String> {
    ready_condition(cluster)
        .filter(|condition| condition.reason == VERSION_NOT_BUILT)
        .map(|condition| condition.message.clone())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::cli::{Cli, ClusterCommand, Command};
    use clap::Parser as _;

    fn spec(line: &str) -> ClusterSpec {
        match Cli::try_parse_from(line.split(' ')).unwrap().command {
            Command::Cluster(ClusterCommand::Create(args)) => spec_of(&args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn without_options_everything_has_its_default() {
        assert_eq!(spec("neap cluster create x"), ClusterSpec::default());
    }

    #[test]
    fn each_option_reaches_its_field() {
        let spec = spec(
            "neap cluster create x --max-nodes 4 --min-nodes 1 --pods-per-node 2 --hold 30s --daemon-sets count \
             --cpu 2 --memory 4Gi --disk 20Gi --allow-privileged --kube-version 1.37"
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .as_str(),
        );
        assert_eq!(spec.version.as_deref(), Some("1.37"));
        let scaling = &spec.scaling;
        assert_eq!(
            (scaling.max_nodes, scaling.min_nodes, scaling.pods_per_node),
            (4, 1, 2)
        );
        assert_eq!(
            (scaling.hold.as_str(), scaling.daemon_sets),
            ("30s", DaemonSetCounting::Count)
        );
        assert_eq!(
            (
                spec.nodes.class.cpu.0.as_str(),
                spec.nodes.class.memory.0.as_str(),
                spec.nodes.class.disk.0.as_str()
            ),
            ("2", "4Gi", "20Gi")
        );
        assert!(spec.control_plane.allow_privileged);
    }
}
