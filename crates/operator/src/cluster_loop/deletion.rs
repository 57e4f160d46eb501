//! Deleting a Cluster asks its API nothing: its machines go at once.

use super::TurnClusterError;
use crate::calls::{CallApiError, Calls};
use crate::operator::Context;
use crate::view::ClusterId;
use futures::StreamExt;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use neap_api::Machine;
use neap_api::names::{FINALIZER_MACHINE, MANAGER_SCALING};
use neap_core::ids::MachineUid;
use neap_kube::write;
use std::collections::BTreeSet;

/// Machines that are ended at the same time.
const AT_ONCE: usize = 8;

/// The Machine records of a Cluster, read from the hub itself.
pub(crate) async fn list_machines(
    calls: &Calls,
    hub: &Client,
    cluster: &ClusterId,
) -> Result<Vec<Machine>, CallApiError> {
    let api: Api<Machine> = Api::namespaced(hub.clone(), &cluster.account);
    let mut machines = calls
        .call(
            "list the Machines of the Cluster",
            api.list(&ListParams::default()),
        )
        .await?
        .items;
    machines.retain(|machine| machine.cluster_uid() == cluster.uid);
    Ok(machines)
}

/// Machines that are left of a Cluster, recorded or not.
pub(super) async fn left(
    calls: &Calls,
    context: &Context,
    cluster: &ClusterId,
) -> Result<usize, TurnClusterError> {
    let records = list_machines(calls, &context.hub, cluster).await?;
    let provided = context.provider.list(&cluster.uid).await?;
    // A record without a UID is none that a server returned.
    let left: BTreeSet<MachineUid> = records
        .iter()
        .filter_map(Machine::machine_uid)
        .chain(provided.into_iter().map(|provided| provided.machine))
        .collect();
    Ok(left.len())
}

/// Ends every machine and lets its record go; then those that the provider has
/// without a record, because somebody removed it. One that fails holds up no
/// other; the first failure is returned.
pub(super) async fn delete_machines(
    calls: &Calls,
    context: &Context,
    cluster: &ClusterId,
) -> Result<(), TurnClusterError> {
    let machines = list_machines(calls, &context.hub, cluster).await?;
    let records: BTreeSet<MachineUid> = machines.iter().filter_map(Machine::machine_uid).collect();
    let deletions: Vec<_> = machines
        .into_iter()
        .map(|machine| delete_machine(calls.clone(), context, machine))
        .collect();
    let mut deleted: Vec<Result<(), TurnClusterError>> = futures::stream::iter(deletions)
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    for provided in context.provider.list(&cluster.uid).await? {
        if records.contains(&provided.machine) {
            // That one has failed just now.
            continue;
        }
        let machine = &provided.machine;
        tracing::warn!(%cluster, %machine, "ending a machine without a record");
        deleted.push(context.provider.delete(machine).await.map_err(Into::into));
    }
    deleted.into_iter().collect()
}

async fn delete_machine(
    calls: Calls,
    context: &Context,
    machine: Machine,
) -> Result<(), TurnClusterError> {
    if let Some(uid) = machine.machine_uid() {
        context.provider.delete(&uid).await?;
    }
    Ok(delete_record(&calls, &context.hub, &machine).await?)
}

/// Lets a record go whose machine is gone: deletes it by its UID, then takes
/// off the finalizer that held it.
pub(crate) async fn delete_record(
    calls: &Calls,
    hub: &Client,
    machine: &Machine,
) -> Result<(), CallApiError> {
    let api: Api<Machine> = Api::namespaced(hub.clone(), &machine.namespace().unwrap_or_default());
    let (name, uid) = (machine.name_any(), machine.uid().unwrap_or_default());
    calls
        .call(
            "delete the Machine",
            write::delete_with_uid(&api, &name, &uid),
        )
        .await?;
    let removed = write::remove_finalizer(&api, machine, MANAGER_SCALING, FINALIZER_MACHINE);
    calls
        .call("remove the finalizer of the Machine", removed)
        .await
}
