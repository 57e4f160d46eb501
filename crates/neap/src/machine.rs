//! `neap machine …`.

use crate::access::Access;
use crate::cli::{Global, MachineCommand, MachineListArgs};
use crate::clock::now;
use crate::cluster::list_of;
use crate::logs;
use crate::output::table::columns;
use crate::output::{Format, age, encode_object, note, print};
use crate::problem::Problem;
use crate::records::{find_machine, get_cluster, list_machines};
use anyhow::Context as _;
use jiff::Timestamp;
use kube::ResourceExt as _;
use neap_api::{Machine, names};

pub(crate) async fn execute(command: MachineCommand, global: &Global) -> anyhow::Result<()> {
    match command {
        MachineCommand::List(args) => list(global, &args).await,
        MachineCommand::Get(args) => get(global, &args.name).await,
        MachineCommand::Logs(args) => logs::machine(global, &args).await,
    }
}

async fn list(global: &Global, args: &MachineListArgs) -> anyhow::Result<()> {
    let hub = Access::new(&global.data_dir)
        .hub()
        .await
        .context("failed to list machines")?;
    let account = (!args.list.all_accounts).then_some(global.account.as_str());
    if let (Some(account), Some(cluster)) = (account, &args.cluster) {
        get_cluster(&hub, account, cluster)
            .await
            .context("failed to list machines")?;
    }
    let machines = list_machines(&hub, account, args.cluster.as_deref()).await?;
    if machines.is_empty() && matches!(global.output, Format::Table | Format::Wide) {
        note("no machines: nothing wants any");
        return Ok(());
    }
    print(&shown(
        &machines,
        global.output,
        args.list.all_accounts,
        now(),
    )?)
}

async fn get(global: &Global, name: &str) -> anyhow::Result<()> {
    let account = &global.account;
    let doing = || format!("failed to get machine {account}/{name}");
    let hub = Access::new(&global.data_dir)
        .hub()
        .await
        .with_context(doing)?;
    let machine = find_machine(&hub, account, name)
        .await
        .with_context(doing)?
        .ok_or_else(|| Problem::NoMachine {
            account: account.clone(),
            name: name.to_owned(),
        })
        .with_context(doing)?;
    match global.output {
        Format::Json | Format::Yaml => print(&encode_object(&machine, global.output)?),
        format => print(&shown(&[machine], format, false, now())?),
    }
}

fn shown(
    machines: &[Machine],
    format: Format,
    with_account: bool,
    now: Timestamp,
) -> anyhow::Result<String> {
    Ok(match format {
        Format::Json | Format::Yaml => encode_object(&list_of(machines), format)?,
        Format::Name => machines
            .iter()
            .map(|machine| format!("machine.{}/{}\n", names::GROUP, machine.name_any()))
            .collect(),
        Format::Table | Format::Wide => {
            let wide = format == Format::Wide;
            let mut heading = vec!["NAME", "CLUSTER", "PHASE", "POWER", "NODE", "AGE"];
            if wide {
                heading.extend([
                    "CPU",
                    "MEMORY",
                    "DISK",
                    "PODS/NODE",
                    "ADDRESS",
                    "IDLE",
                    "PROVIDER-ID",
                    "MESSAGE",
                ]);
            }
            if with_account {
                heading.insert(0, "ACCOUNT");
            }
            let rows: Vec<Vec<String>> = machines
                .iter()
                .map(|machine| {
                    let mut row = row_of(machine, wide, now);
                    if with_account {
                        row.insert(0, machine.namespace().unwrap_or_default());
                    }
                    row
                })
                .collect();
            columns(&heading, &rows)
        }
    })
}

/// Cells of one Machine; empty ones are not known.
fn row_of(machine: &Machine, wide: bool, now: Timestamp) -> Vec<String> {
    let status = machine.status.clone().unwrap_or_default();
    let mut row = vec![
        machine.name_any(),
        machine.spec.cluster.clone(),
        machine.phase().to_string(),
        machine.power().to_string(),
        status.node_name.unwrap_or_default(),
        machine
            .creation_timestamp()
            .map(|time| age(time.0, now))
            .unwrap_or_default(),
    ];
    if wide {
        row.extend([
            machine.spec.class.cpu.0.clone(),
            machine.spec.class.memory.0.clone(),
            machine.spec.class.disk.0.clone(),
            machine.spec.pods_per_node.to_string(),
            status
                .addresses
                .first()
                .map(|address| address.address.clone())
                .unwrap_or_default(),
            status
                .idle_since
                .map(|since| age(since, now))
                .unwrap_or_default(),
            status.provider_id.unwrap_or_default(),
            status.message.unwrap_or_default(),
        ]);
    }
    row
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    fn machines() -> Vec<Machine> {
        vec![
            serde_json::from_value(json!({
                "apiVersion": "neap.dev/v1alpha1", "kind": "Machine",
                "metadata": {"name": "ci-node1", "namespace": "team", "creationTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {"cluster": "ci", "clusterUid": "u1", "ordinal": 1, "podsPerNode": 8},
                "status": {"phase": "Running", "power": "Running", "nodeName": "ci-node1",
                           "message": "disk\nfull\u{1b}[2J"},
            }))
            .unwrap(),
            serde_json::from_value(json!({
                "apiVersion": "neap.dev/v1alpha1", "kind": "Machine",
                "metadata": {"name": "ci-node2", "namespace": "team", "creationTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {"cluster": "ci", "clusterUid": "u1", "ordinal": 2, "podsPerNode": 8},
            }))
            .unwrap(),
        ]
    }

    fn at(format: Format) -> String {
        shown(
            &machines(),
            format,
            false,
            "2026-01-01T00:00:05Z".parse().unwrap(),
        )
        .unwrap()
    }

    #[test]
    fn a_table_says_where_each_machine_stands() {
        assert_eq!(
            at(Format::Table),
            "NAME      CLUSTER  PHASE    POWER    NODE      AGE\n\
             ci-node1  ci       Running  Running  ci-node1  5s\n\
             ci-node2  ci       Pending  Unknown  -         5s\n"
        );
    }

    #[test]
    fn what_a_machine_says_of_itself_steers_no_terminal() {
        let text = at(Format::Wide);
        assert!(text.contains("disk\\nfull\\u{1b}[2J"), "{text}");
        assert_eq!(text.lines().count(), 3);
    }

    #[test]
    fn names_can_be_fed_to_kubectl() {
        assert_eq!(
            at(Format::Name),
            "machine.neap.dev/ci-node1\nmachine.neap.dev/ci-node2\n"
        );
    }
}
