//! A cluster under measurement, and waiting for what becomes of it.

use anyhow::{Context as _, Result};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use kube::runtime::conditions::{is_deleted, is_pod_running};
use kube::runtime::wait::{Condition, await_condition};
use neap::installation::Installation;
use neap_api::machine::MachinePhase;
use neap_api::names::CONDITION_READY;
use neap_api::{Cluster, Machine};
use serde_json::{Value, json};
use std::fmt::Debug;
use std::time::Duration;

/// No step may take longer.
const DEADLINE: Duration = Duration::from_secs(60);

/// A cluster that is Ready.
#[derive(Debug)]
pub(super) struct Tenant {
    pub(super) name: String,
    clusters: Api<Cluster>,
    machines: Api<Machine>,
    nodes: Api<Node>,
    pods: Api<Pod>,
}

/// Waits for an object, and says for what it waited at the deadline.
async fn wait<K>(
    api: &Api<K>,
    name: &str,
    what: &str,
    condition: impl Condition<K>,
) -> Result<Option<K>>
where
    K: Clone + Debug + Send + serde::de::DeserializeOwned + kube::Resource + 'static,
    K::DynamicType: Default,
{
    tokio::time::timeout(DEADLINE, await_condition(api.clone(), name, condition))
        .await
        .with_context(|| format!("{name} was not {what} within {DEADLINE:?}"))?
        .with_context(|| format!("cannot watch {name}"))
}

impl Tenant {
    /// Makes a cluster and returns once it is Ready.
    pub(super) async fn create(
        installation: &Installation,
        name: &str,
        scaling: Value,
    ) -> Result<Self> {
        let hub = installation.hub().await?;
        let clusters = Api::<Cluster>::namespaced(hub.clone(), "default");
        let cluster = serde_json::from_value(json!({
            "apiVersion": "neap.dev/v1alpha1",
            "kind": "Cluster",
            "metadata": {"name": name},
            "spec": {"scaling": scaling},
        }))?;
        clusters.create(&PostParams::default(), &cluster).await?;
        let is_ready = |cluster: Option<&Cluster>| {
            let status = cluster.and_then(|cluster| cluster.status.as_ref());
            status.is_some_and(|status| {
                status
                    .conditions
                    .iter()
                    .any(|one| one.type_ == CONDITION_READY && one.status == "True")
            })
        };
        wait(&clusters, name, "Ready", is_ready).await?;
        let tenant = installation.tenant("default", name).await?;
        Ok(Self {
            name: name.to_owned(),
            clusters,
            machines: Api::namespaced(hub, "default"),
            nodes: Api::all(tenant.clone()),
            pods: Api::namespaced(tenant, "default"),
        })
    }

    pub(super) fn node(&self, ordinal: u32) -> String {
        neap_api::names::machine_name(&self.name, ordinal).to_string()
    }

    pub(super) async fn give(&self, names: &[&str], seconds: u32) -> Result<()> {
        try_join_all(names.iter().map(async |name| {
            let pod = serde_json::from_value(json!({
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name},
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{
                        "name": "main",
                        "image": "localhost/neap-busybox:1",
                        "imagePullPolicy": "Never",
                        "command": ["sleep", seconds.to_string()],
                    }],
                },
            }))?;
            self.pods.create(&PostParams::default(), &pod).await?;
            anyhow::Ok(())
        }))
        .await?;
        Ok(())
    }

    pub(super) async fn recorded(&self, node: &str) -> Result<()> {
        wait(
            &self.machines,
            node,
            "recorded",
            |machine: Option<&Machine>| machine.is_some(),
        )
        .await?;
        Ok(())
    }

    pub(super) async fn node_ready(&self, node: &str) -> Result<()> {
        let is_ready = |node: Option<&Node>| {
            let conditions = node.and_then(|node| node.status.as_ref()?.conditions.as_ref());
            conditions.is_some_and(|all| {
                all.iter()
                    .any(|one| one.type_ == "Ready" && one.status == "True")
            })
        };
        wait(&self.nodes, node, "Ready", is_ready).await?;
        Ok(())
    }

    pub(super) async fn running(&self, names: &[&str]) -> Result<()> {
        try_join_all(
            names
                .iter()
                .map(|name| wait(&self.pods, name, "Running", is_pod_running())),
        )
        .await?;
        Ok(())
    }

    pub(super) async fn succeeded(&self, names: &[&str]) -> Result<()> {
        let has_ended = |pod: Option<&Pod>| {
            pod.and_then(|pod| pod.status.as_ref()?.phase.as_deref()) == Some("Succeeded")
        };
        try_join_all(
            names
                .iter()
                .map(|name| wait(&self.pods, name, "Succeeded", has_ended)),
        )
        .await?;
        Ok(())
    }

    pub(super) async fn releasing(&self, node: &str) -> Result<()> {
        let leaves = |machine: Option<&Machine>| {
            let phase = machine.and_then(|machine| machine.status.as_ref()?.phase);
            machine.is_none()
                || matches!(
                    phase,
                    Some(MachinePhase::Releasing | MachinePhase::Draining)
                )
        };
        wait(&self.machines, node, "leaving", leaves).await?;
        Ok(())
    }

    pub(super) async fn gone(&self, nodes: &[String]) -> Result<()> {
        try_join_all(nodes.iter().map(async |node| {
            wait(&self.machines, node, "gone", |machine: Option<&Machine>| {
                machine.is_none()
            })
            .await?;
            wait(&self.nodes, node, "gone", |node: Option<&Node>| {
                node.is_none()
            })
            .await?;
            anyhow::Ok(())
        }))
        .await?;
        Ok(())
    }

    pub(super) async fn keep_nodes(&self, count: u32) -> Result<()> {
        let patch = json!({"spec": {"scaling": {"minNodes": count}}});
        self.clusters
            .patch(
                &self.name,
                &kube::api::PatchParams::default(),
                &kube::api::Patch::Merge(patch),
            )
            .await?;
        Ok(())
    }

    /// Asks for a pass and returns when it was made.
    pub(super) async fn pass(&self, word: &str) -> Result<()> {
        let patch =
            json!({"metadata": {"annotations": {neap_api::names::ANNOTATION_REQUESTED_AT: word}}});
        self.clusters
            .patch(
                &self.name,
                &kube::api::PatchParams::default(),
                &kube::api::Patch::Merge(patch),
            )
            .await?;
        let was_made = |cluster: Option<&Cluster>| {
            let decision =
                cluster.and_then(|cluster| cluster.status.as_ref()?.last_decision.as_ref());
            decision.and_then(|decision| decision.requested_at.as_deref()) == Some(word)
        };
        wait(&self.clusters, &self.name, "decided", was_made).await?;
        Ok(())
    }

    pub(super) async fn uid(&self) -> Result<String> {
        self.clusters
            .get(&self.name)
            .await?
            .metadata
            .uid
            .context("a record that was read has a UID")
    }

    pub(super) async fn machine_uid(&self, node: &str) -> Result<String> {
        let machine = self.machines.get(node).await?;
        machine
            .metadata
            .uid
            .context("a record that was read has a UID")
    }

    pub(super) async fn delete(self) -> Result<()> {
        let uid = self.uid().await?;
        self.clusters
            .delete(&self.name, &DeleteParams::default())
            .await?;
        wait(&self.clusters, &self.name, "deleted", is_deleted(&uid)).await?;
        Ok(())
    }
}
