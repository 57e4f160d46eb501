//! Reads and writes of the records on the hub that several commands share.

use crate::problem::Problem;
use anyhow::Context as _;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{
    Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions,
};
use kube::{Client, ResourceExt as _};
use neap_api::cluster::ClusterPhase;
use neap_api::names::{CONDITION_PAUSED, CONDITION_READY, LABEL_CLUSTER};
use neap_api::{Cluster, ClusterSpec, Machine};

/// Field manager of what people do with this program.
const MANAGER: &str = "neap-cli";

/// The Cluster, or a [`Problem`] that names it.
pub(crate) async fn get_cluster(
    hub: &Client,
    account: &str,
    name: &str,
) -> anyhow::Result<Cluster> {
    find_cluster(hub, account, name).await?.ok_or_else(|| {
        Problem::NoCluster {
            account: account.to_owned(),
            name: name.to_owned(),
        }
        .into()
    })
}

/// The Cluster, if there is one.
pub(crate) async fn find_cluster(
    hub: &Client,
    account: &str,
    name: &str,
) -> anyhow::Result<Option<Cluster>> {
    let clusters: Api<Cluster> = Api::namespaced(hub.clone(), account);
    clusters
        .get_opt(name)
        .await
        .with_context(|| format!("failed to read cluster {account}/{name}"))
}

/// The Machine, if there is one.
pub(crate) async fn find_machine(
    hub: &Client,
    account: &str,
    name: &str,
) -> anyhow::Result<Option<Machine>> {
    let machines: Api<Machine> = Api::namespaced(hub.clone(), account);
    machines
        .get_opt(name)
        .await
        .with_context(|| format!("failed to read machine {account}/{name}"))
}

/// The Clusters of an account, or of all, by account and name.
pub(crate) async fn list_clusters(
    hub: &Client,
    account: Option<&str>,
) -> anyhow::Result<Vec<Cluster>> {
    let clusters: Api<Cluster> = scoped(hub, account);
    let mut items = clusters
        .list(&ListParams::default())
        .await
        .context("failed to list clusters")?
        .items;
    items.sort_by_key(|cluster| (cluster.namespace(), cluster.name_any()));
    Ok(items)
}

/// The Machines of an account, or of all, by account, cluster and ordinal.
pub(crate) async fn list_machines(
    hub: &Client,
    account: Option<&str>,
    cluster: Option<&str>,
) -> anyhow::Result<Vec<Machine>> {
    let machines: Api<Machine> = scoped(hub, account);
    let mut params = ListParams::default();
    if let Some(cluster) = cluster {
        params = params.labels(&format!("{LABEL_CLUSTER}={cluster}"));
    }
    let mut items = machines
        .list(&params)
        .await
        .context("failed to list machines")?
        .items;
    items.retain(|machine| cluster.is_none_or(|cluster| machine.spec.cluster == cluster));
    items.sort_by_key(|machine| {
        (
            machine.namespace(),
            machine.spec.cluster.clone(),
            machine.spec.ordinal,
        )
    });
    Ok(items)
}

/// Makes the record, and the account's namespace where there is none: not for
/// a record that is refused.
pub(crate) async fn create_cluster(
    hub: &Client,
    account: &str,
    name: &str,
    spec: ClusterSpec,
) -> anyhow::Result<Cluster> {
    let params = PostParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PostParams::default()
    };
    let record = Cluster::new(name, spec);
    let clusters: Api<Cluster> = Api::namespaced(hub.clone(), account);
    let mut made = clusters.create(&params, &record).await;
    if made
        .as_ref()
        .is_err_and(|error| code_of(error) == Some(404))
    {
        rehearse(hub, &params, &record).await?;
        create_account(hub, &params, account).await?;
        made = clusters.create(&params, &record).await;
    }
    match made {
        Ok(cluster) => Ok(cluster),
        Err(error) if code_of(&error) == Some(409) => {
            let found = find_cluster(hub, account, name).await?;
            Err(taken(account, name, found.as_ref()).into())
        }
        Err(error) => Err(refused_or(error)),
    }
}

/// Whether the API server takes the record, asked of an account that there
/// always is. That the name is taken there is said after all other checks.
async fn rehearse(hub: &Client, params: &PostParams, record: &Cluster) -> anyhow::Result<()> {
    let params = PostParams {
        dry_run: true,
        ..params.clone()
    };
    let clusters: Api<Cluster> = Api::namespaced(hub.clone(), "default");
    match clusters.create(&params, record).await {
        Err(error) if code_of(&error) != Some(409) => Err(refused_or(error)),
        _ => Ok(()),
    }
}

async fn create_account(hub: &Client, params: &PostParams, account: &str) -> anyhow::Result<()> {
    let namespaces: Api<Namespace> = Api::all(hub.clone());
    let namespace = Namespace {
        metadata: ObjectMeta {
            name: Some(account.to_owned()),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    };
    match namespaces.create(params, &namespace).await {
        Err(error) if code_of(&error) != Some(409) => {
            Err(refused_or(error)).with_context(|| format!("failed to create account {account}"))
        }
        _ => Ok(()),
    }
}

/// Why a name cannot be had: somebody has it, or still has it.
fn taken(account: &str, name: &str, found: Option<&Cluster>) -> Problem {
    let (account, name) = (account.to_owned(), name.to_owned());
    // One that has gone in between was leaving a moment ago.
    if found.is_none_or(|found| found.metadata.deletion_timestamp.is_some()) {
        Problem::ClusterLeaves { account, name }
    } else {
        Problem::ClusterExists { account, name }
    }
}

/// Asks for the end of exactly this record.
pub(crate) async fn delete_cluster(hub: &Client, cluster: &Cluster) -> anyhow::Result<()> {
    let clusters: Api<Cluster> = Api::namespaced(hub.clone(), &cluster.account());
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: cluster.uid(),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    match clusters.delete(&cluster.name_any(), &params).await {
        Err(error) if !matches!(code_of(&error), Some(404 | 409)) => Err(refused_or(error)),
        _ => Ok(()),
    }
}

/// Changes parts of exactly this record.
pub(crate) async fn change_cluster(
    hub: &Client,
    cluster: &Cluster,
    change: &serde_json::Value,
) -> anyhow::Result<Cluster> {
    let clusters: Api<Cluster> = Api::namespaced(hub.clone(), &cluster.account());
    let params = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let mut patch = change.clone();
    if let Some(uid) = cluster.uid() {
        patch["metadata"]["uid"] = uid.into();
    }
    clusters
        .patch(&cluster.name_any(), &params, &Patch::Merge(patch))
        .await
        .map_err(refused_or)
}

fn scoped<K>(hub: &Client, account: Option<&str>) -> Api<K>
where
    K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>,
    K::DynamicType: Default,
{
    match account {
        Some(account) => Api::namespaced(hub.clone(), account),
        None => Api::all(hub.clone()),
    }
}

fn code_of(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

/// A refusal of the API server in its own words, or the error as it is.
fn refused_or(error: kube::Error) -> anyhow::Error {
    match error {
        kube::Error::Api(status) if matches!(status.code, 400 | 403 | 422) => Problem::Refused {
            message: status.message,
        }
        .into(),
        error => error.into(),
    }
}

/// Its API answers and can take pods.
pub(crate) fn is_ready(cluster: &Cluster) -> bool {
    ready_condition(cluster).is_some_and(|condition| condition.status == "True")
        && phase_of(cluster) == Some(ClusterPhase::Running)
}

/// Its loop has seen the spec as it is.
pub(crate) fn is_observed(cluster: &Cluster) -> bool {
    let observed = cluster
        .status
        .as_ref()
        .and_then(|status| status.observed_generation);
    observed >= cluster.metadata.generation
}

/// Its loop leaves it as it is.
pub(crate) fn is_paused(cluster: &Cluster) -> bool {
    condition(cluster, CONDITION_PAUSED).is_some_and(|condition| condition.status == "True")
}

/// The condition Ready.
pub(crate) fn ready_condition(cluster: &Cluster) -> Option<&Condition> {
    condition(cluster, CONDITION_READY)
}

/// The condition of this type.
pub(crate) fn condition<'a>(cluster: &'a Cluster, type_: &str) -> Option<&'a Condition> {
    let conditions = &cluster.status.as_ref()?.conditions;
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Where it stands, in one line.
pub(crate) fn standing(cluster: &Cluster) -> String {
    let (account, name) = (cluster.account(), cluster.name_any());
    let phase = phase_text(cluster);
    match ready_condition(cluster).map(|condition| condition.message.as_str()) {
        Some(message) if !message.is_empty() => {
            format!("cluster {account}/{name}: {phase}, {message}")
        }
        _ => format!("cluster {account}/{name}: {phase}"),
    }
}

/// The phase, once there is one.
pub(crate) fn phase_of(cluster: &Cluster) -> Option<ClusterPhase> {
    cluster.status.as_ref()?.phase
}

/// The phase for people.
pub(crate) fn phase_text(cluster: &Cluster) -> &'static str {
    if cluster.metadata.deletion_timestamp.is_some() && !cluster.spec.paused {
        return ClusterPhase::Destroying.as_str();
    }
    phase_of(cluster).unwrap_or(ClusterPhase::Created).as_str()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use kube::client::Body;
    use std::sync::{Arc, Mutex};

    #[test]
    fn a_name_that_is_about_to_be_free_is_told_from_one_that_is_taken() {
        let mut found = Cluster::new("ci", ClusterSpec::default());
        let problem = taken("team", "ci", Some(&found));
        assert!(
            matches!(problem, Problem::ClusterExists { .. }),
            "{problem}"
        );
        found.metadata.deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
                "2026-01-01T00:00:00Z".parse().unwrap(),
            ));
        for found in [Some(&found), None] {
            let problem = taken("team", "ci", found);
            assert!(
                matches!(problem, Problem::ClusterLeaves { .. }),
                "{problem}"
            );
            assert!(problem.hint().unwrap().contains("repeat"));
        }
    }

    /// Creates a Cluster in an account that is not there, on a server that
    /// takes such records or refuses them; what was asked of it.
    async fn created(takes: bool) -> (bool, Vec<String>) {
        let log = Arc::new(Mutex::new(Vec::new()));
        let asked = Arc::clone(&log);
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let uri = request.uri().clone();
            let mut log = asked.lock().unwrap();
            let there = log.iter().any(|line| line == "/api/v1/namespaces");
            log.push(uri.path().to_owned());
            let rehearsal = uri.query().unwrap_or_default().contains("dryRun=All");
            let code = match uri.path() {
                "/api/v1/namespaces" => 201,
                "/apis/neap.dev/v1alpha1/namespaces/team/clusters" if !there => 404,
                "/apis/neap.dev/v1alpha1/namespaces/default/clusters" if !rehearsal => 500,
                _ if takes => 201,
                _ => 422,
            };
            let answer = if code == 201 {
                serde_json::json!({"metadata": {"name": "ci"}, "spec": {}})
            } else {
                serde_json::json!({"kind": "Status", "status": "Failure", "code": code})
            };
            let answer = Body::from(answer.to_string().into_bytes());
            let answer = http::Response::builder().status(code).body(answer).unwrap();
            async move { Ok::<_, std::convert::Infallible>(answer) }
        });
        let hub = Client::new(service, "default");
        let made = create_cluster(&hub, "team", "ci", ClusterSpec::default()).await;
        let log = log.lock().unwrap().clone();
        (made.is_ok(), log)
    }

    #[tokio::test]
    async fn no_account_is_made_for_a_cluster_that_is_refused() {
        let team = "/apis/neap.dev/v1alpha1/namespaces/team/clusters";
        let rehearsal = "/apis/neap.dev/v1alpha1/namespaces/default/clusters";
        let (made, asked) = created(false).await;
        assert!(!made);
        assert_eq!(asked, [team, rehearsal]);
        let (made, asked) = created(true).await;
        assert!(made);
        assert_eq!(asked, [team, rehearsal, "/api/v1/namespaces", team]);
    }
}
