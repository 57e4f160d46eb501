//! One look at the demo's cluster: its record, its machines, its pods and
//! nodes.

use super::work::{NAMESPACE, owns_node};
use crate::problem::Problem;
use crate::records::{find_cluster, is_ready, list_machines, phase_text};
use anyhow::Context as _;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use neap_api::machine::MachinePhase;
use neap_api::{Cluster, Machine};
use std::collections::BTreeSet;

/// Account and name of the demo's cluster.
pub(super) const ACCOUNT: &str = "demo";
/// Its name.
pub(super) const CLUSTER: &str = "demo";

/// The two APIs.
#[derive(Clone)]
pub(super) struct Apis {
    pub(super) hub: Client,
    pub(super) tenant: Client,
}

/// What was seen.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) cluster: Cluster,
    pub(super) machines: Vec<Machine>,
    pub(super) pods: Vec<Pod>,
    pub(super) nodes: Vec<Node>,
}

impl Apis {
    /// Looks, and insists that the cluster is Ready, which it is all along.
    pub(super) async fn look(&self) -> anyhow::Result<Seen> {
        let cluster = find_cluster(&self.hub, ACCOUNT, CLUSTER).await?;
        let cluster = cluster.ok_or(Problem::NoCluster {
            account: ACCOUNT.into(),
            name: CLUSTER.into(),
        })?;
        if !is_ready(&cluster) {
            let why = format!(
                "the control plane is {} and not Ready",
                phase_text(&cluster)
            );
            return Err(anyhow::anyhow!(why));
        }
        let machines = list_machines(&self.hub, Some(ACCOUNT), Some(CLUSTER)).await?;
        let pods: Api<Pod> = Api::namespaced(self.tenant.clone(), NAMESPACE);
        let nodes: Api<Node> = Api::all(self.tenant.clone());
        let params = ListParams::default();
        let pods = pods
            .list(&params)
            .await
            .context("failed to list pods")?
            .items;
        let nodes = nodes
            .list(&params)
            .await
            .context("failed to list nodes")?
            .items;
        Ok(Seen {
            cluster,
            machines,
            pods,
            nodes,
        })
    }
}

impl Seen {
    /// Neither a machine nor a node.
    pub(super) fn is_at_zero(&self) -> bool {
        self.machines.is_empty() && self.nodes.is_empty()
    }

    /// Pods in this phase.
    pub(super) fn pods_in(&self, phase: &str) -> usize {
        self.pods
            .iter()
            .filter(|pod| phase_of(pod) == phase)
            .count()
    }

    /// The nodes that pods were bound to.
    pub(super) fn used_nodes(&self) -> BTreeSet<String> {
        self.pods
            .iter()
            .filter_map(|pod| pod.spec.as_ref()?.node_name.clone())
            .collect()
    }

    /// Machines whose Node has been Ready.
    pub(super) fn running_machines(&self) -> impl Iterator<Item = &Machine> {
        self.machines
            .iter()
            .filter(|machine| machine.phase() == MachinePhase::Running)
    }

    /// The machine of each node that a pod was bound to.
    pub(super) fn nodes_are_machines(&self) -> bool {
        self.used_nodes().iter().all(|name| {
            let machine = self
                .machines
                .iter()
                .find(|machine| machine.name_any() == *name);
            let node = self.nodes.iter().find(|node| node.name_any() == *name);
            machine
                .zip(node)
                .is_some_and(|(machine, node)| owns_node(machine, node))
        })
    }

    /// Where it stands, in one line.
    pub(super) fn standing(&self) -> String {
        let decision = self
            .cluster
            .status
            .as_ref()
            .and_then(|status| status.last_decision.as_ref());
        let said = decision
            .map(|decision| format!("; {}", decision.message))
            .unwrap_or_default();
        format!(
            "{} machines, {} nodes, pods: {} Pending, {} Running, {} Succeeded{said}",
            self.machines.len(),
            self.nodes.len(),
            self.pods_in("Pending"),
            self.pods_in("Running"),
            self.pods_in("Succeeded"),
        )
    }
}

pub(super) fn phase_of(pod: &Pod) -> &str {
    pod.status
        .as_ref()
        .and_then(|status| status.phase.as_deref())
        .unwrap_or("Pending")
}
