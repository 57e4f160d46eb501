//! `neap cluster list` and `get`.

use crate::access::Access;
use crate::cli::{Global, ListArgs};
use crate::clock::now;
use crate::output::table::columns;
use crate::output::{Format, age, encode_object, note, print};
use crate::records::{get_cluster, list_clusters, phase_text};
use anyhow::Context as _;
use jiff::Timestamp;
use kube::ResourceExt as _;
use neap_api::{Cluster, names};
use serde_json::json;

pub(crate) async fn list(global: &Global, args: ListArgs) -> anyhow::Result<()> {
    let hub = Access::new(&global.data_dir)
        .hub()
        .await
        .context("failed to list clusters")?;
    let account = (!args.all_accounts).then_some(global.account.as_str());
    let clusters = list_clusters(&hub, account).await?;
    if clusters.is_empty() && matches!(global.output, Format::Table | Format::Wide) {
        match account {
            Some(account) => note(&format!(
                "no clusters in account {account}; `neap cluster create NAME` makes one"
            )),
            None => note("no clusters; `neap cluster create NAME` makes one"),
        }
        return Ok(());
    }
    print(&shown(&clusters, global.output, args.all_accounts, now())?)
}

pub(crate) async fn get(global: &Global, name: &str) -> anyhow::Result<()> {
    let doing = || format!("failed to get cluster {}/{name}", global.account);
    let hub = Access::new(&global.data_dir)
        .hub()
        .await
        .with_context(doing)?;
    let cluster = get_cluster(&hub, &global.account, name)
        .await
        .with_context(doing)?;
    match global.output {
        Format::Json | Format::Yaml => print(&encode_object(&cluster, global.output)?),
        format => print(&shown(&[cluster], format, false, now())?),
    }
}

fn shown(
    clusters: &[Cluster],
    format: Format,
    with_account: bool,
    now: Timestamp,
) -> anyhow::Result<String> {
    Ok(match format {
        Format::Json | Format::Yaml => encode_object(&list_of(clusters), format)?,
        Format::Name => clusters
            .iter()
            .map(|cluster| format!("cluster.{}/{}\n", names::GROUP, cluster.name_any()))
            .collect(),
        Format::Table | Format::Wide => {
            let wide = format == Format::Wide;
            let mut heading = vec!["NAME", "PHASE", "NODES", "DEMAND", "TARGET", "MAX", "AGE"];
            if wide {
                heading.extend(["PODS/NODE", "HOLD", "REASON", "DISTRO", "ENDPOINT"]);
            }
            if with_account {
                heading.insert(0, "ACCOUNT");
            }
            let rows: Vec<Vec<String>> = clusters
                .iter()
                .map(|cluster| {
                    let mut row = row_of(cluster, wide, now);
                    if with_account {
                        row.insert(0, cluster.account());
                    }
                    row
                })
                .collect();
            columns(&heading, &rows)
        }
    })
}

/// A list as the API server writes it.
pub(crate) fn list_of<T: serde::Serialize>(items: &[T]) -> serde_json::Value {
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

/// Cells of one Cluster; empty ones are not known yet.
fn row_of(cluster: &Cluster, wide: bool, now: Timestamp) -> Vec<String> {
    let status = cluster.status.clone().unwrap_or_default();
    let number = |value: Option<u32>| value.map(|value| value.to_string()).unwrap_or_default();
    let scaling = &cluster.spec.scaling;
    let mut row = vec![
        cluster.name_any(),
        phase_text(cluster).to_owned(),
        number(status.nodes),
        number(status.demand),
        number(status.target),
        scaling.max_nodes.to_string(),
        cluster
            .creation_timestamp()
            .map(|time| age(time.0, now))
            .unwrap_or_default(),
    ];
    if wide {
        row.extend([
            scaling.pods_per_node.to_string(),
            scaling.hold.clone(),
            status
                .last_decision
                .map(|decision| decision.reason)
                .unwrap_or_default(),
            status.distro.unwrap_or_default(),
            status.endpoint.unwrap_or_default(),
        ]);
    }
    row
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn clusters() -> Vec<Cluster> {
        let of = |value| serde_json::from_value(value).unwrap();
        vec![
            of(json!({
                "apiVersion": "neap.dev/v1alpha1", "kind": "Cluster",
                "metadata": {"name": "ci", "namespace": "team", "uid": "u1", "creationTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {"scaling": {"maxNodes": 3, "podsPerNode": 1, "hold": "30s"}},
                "status": {"phase": "Running", "nodes": 0, "demand": 2, "target": 2, "distro": "abc",
                           "endpoint": "https://127.0.0.1:7443"},
            })),
            of(json!({
                "apiVersion": "neap.dev/v1alpha1", "kind": "Cluster",
                "metadata": {"name": "new", "namespace": "team", "uid": "u2", "creationTimestamp": "2026-01-01T00:00:50Z"},
                "spec": {},
            })),
        ]
    }

    fn at(format: Format, with_account: bool) -> String {
        shown(
            &clusters(),
            format,
            with_account,
            "2026-01-01T00:01:00Z".parse().unwrap(),
        )
        .unwrap()
    }

    #[test]
    fn a_table_says_where_each_cluster_stands() {
        assert_eq!(
            at(Format::Table, false),
            "NAME  PHASE    NODES  DEMAND  TARGET  MAX  AGE\n\
             ci    Running  0      2       2       3    60s\n\
             new   Created  -      -       -       1    10s\n"
        );
    }

    #[test]
    fn all_accounts_have_a_column_of_their_own() {
        assert!(at(Format::Table, true).starts_with("ACCOUNT  NAME"));
    }

    #[test]
    fn the_wide_table_has_the_endpoint_and_the_policy() {
        let text = at(Format::Wide, false);
        for part in ["PODS/NODE", "HOLD", "30s", "abc", "https://127.0.0.1:7443"] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }

    #[test]
    fn names_can_be_fed_to_kubectl() {
        assert_eq!(
            at(Format::Name, false),
            "cluster.neap.dev/ci\ncluster.neap.dev/new\n"
        );
    }

    #[test]
    fn both_encodings_are_one_list() {
        let json: serde_json::Value = serde_json::from_str(&at(Format::Json, false)).unwrap();
        assert_eq!(json.pointer("/items/0/metadata/name").unwrap(), "ci");
        assert_eq!(json.pointer("/kind").unwrap(), "List");
        let yaml: serde_json::Value = serde_saphyr::from_str(&at(Format::Yaml, false)).unwrap();
        assert_eq!(yaml, json);
    }
}
