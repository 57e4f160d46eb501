//! Making machines: the record first, the machine second, the Node by itself.

use super::actor::{Actor, CreateMachineError, DriveMachineError, Milestone, Outcome, uid_of};
use super::driver::Circumstances;
use crate::calls::CallApiError;
use crate::traits::MachinePlan;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::NodeAddress;
use kube::api::PostParams;
use kube::{Resource, ResourceExt};
use neap_api::convert::ObserveMachineError;
use neap_api::machine::MachineStatus;
use neap_api::names::{
    CONDITION_DISK_BOUNDED, CONDITION_SHARED_KERNEL, FINALIZER_MACHINE, LABEL_CLUSTER,
    LABEL_INSTALLATION, LABEL_MACHINE_UID, machine_name, provider_id, reasons,
};
use neap_api::{Cluster, Machine, MachineSpec};
use neap_core::addressing::{
    BRIDGE_ADDRESS, DNS_SERVICE, NODE_NETWORK, POD_NETWORK, node_address, pod_range,
};
use neap_core::driver::ProviderView;
use neap_core::ids::MachineUid;
use neap_core::machine::Power;
use neap_core::scale::JOIN_DEADLINE;
use neap_kube::conditions::Wanted;
use std::collections::BTreeMap;

/// What is said of a machine until its Node is Ready.
pub(super) const NODE_PENDING: &str = "Its Node has not joined yet.";

/// When a machine that has not joined is removed.
pub(super) fn join_deadline(machine: &Machine) -> Result<Option<Timestamp>, ObserveMachineError> {
    Ok(machine.observe()?.created.checked_add(JOIN_DEADLINE).ok())
}

impl Actor {
    /// Makes the record of this ordinal. One that is there already is the
    /// outcome of an earlier pass.
    pub(super) async fn make_record(
        &self,
        cluster: &Cluster,
        ordinal: u32,
    ) -> Result<(), CallApiError> {
        let record = self.record(cluster, ordinal);
        let api = self.machines();
        match self
            .calls
            .call(
                "make the Machine",
                api.create(&PostParams::default(), &record),
            )
            .await
        {
            Err(error) if !error.is_conflict() => Err(error),
            _ => Ok(()),
        }
    }

    fn record(&self, cluster: &Cluster, ordinal: u32) -> Machine {
        let name = machine_name(&self.id.name, ordinal);
        let spec = MachineSpec {
            cluster: self.id.name.clone(),
            cluster_uid: self.id.uid.to_string(),
            ordinal,
            provider: cluster.spec.nodes.provider,
            class: cluster.spec.nodes.class.clone(),
            pods_per_node: cluster.spec.scaling.pods_per_node,
        };
        let mut record = Machine::new(name.as_str(), spec);
        record.metadata.namespace = Some(self.id.account.clone());
        record.metadata.labels = Some(self.labels());
        record.metadata.finalizers = Some(vec![FINALIZER_MACHINE.into()]);
        record.metadata.owner_references =
            cluster.controller_owner_ref(&()).map(|owner| vec![owner]);
        record
    }

    fn labels(&self) -> BTreeMap<String, String> {
        BTreeMap::from([
            (LABEL_CLUSTER.into(), self.id.name.clone()),
            (
                LABEL_INSTALLATION.into(),
                self.context.installation.to_string(),
            ),
        ])
    }

    /// Makes the machine of a record, unless the provider has it already.
    pub(super) async fn create(
        &self,
        machine: &Machine,
        circumstances: Circumstances,
    ) -> Result<Outcome, DriveMachineError> {
        let uid = uid_of(machine)?;
        let (found, _) = self.observe_provider(&uid).await?;
        if found != ProviderView::Absent {
            return Ok(Outcome::observed(found));
        }
        self.make(machine, uid, circumstances)
            .await
            .map_err(|source| DriveMachineError::CreateMachine {
                name: machine.name_any(),
                source,
            })?;
        let deadline = join_deadline(machine)?;
        let record = self
            .write_status(machine, |status| {
                status.phase = Some(neap_core::machine::MachinePhase::Pending.into());
                status.power = Some(Power::Running.into());
                status.deadline = deadline;
                status.message = None;
                self.set_ready(status, false, reasons::NODE_PENDING, NODE_PENDING);
                self.introduce(machine, status);
            })
            .await;
        match record {
            Ok(record) => Ok(Outcome {
                provider: Some(ProviderView::Present(Power::Running)),
                ..Outcome::wrote(record)
            }),
            // The machine is there; the record is written by the next step.
            Err(error) if error.is_conflict() => {
                Ok(Outcome::observed(ProviderView::Present(Power::Running)))
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn make(
        &self,
        machine: &Machine,
        uid: MachineUid,
        circumstances: Circumstances,
    ) -> Result<(), CreateMachineError> {
        let name = machine.machine_name();
        let spec = &machine.spec;
        let address = node_address(spec.ordinal)?;
        let size = spec.class.size()?;
        let mut labels = self.labels();
        labels.insert(LABEL_MACHINE_UID.into(), uid.to_string());
        let plan = MachinePlan {
            cluster: self.id.uid.clone(),
            cluster_name: self.id.to_string(),
            address,
            prefix: NODE_NETWORK.prefix,
            gateway: BRIDGE_ADDRESS,
            pod_range: pod_range(spec.ordinal)?.to_string(),
            cluster_range: POD_NETWORK.to_string(),
            dns: DNS_SERVICE,
            cpu_milli: size.cpu_milli,
            memory_bytes: size.memory_bytes,
            disk_bytes: size.disk_bytes,
            max_pods: spec.pods_per_node.saturating_add(circumstances.daemon_sets),
            fence: circumstances.fence,
            provider_id: provider_id(&self.id.name, name.as_str()),
            labels,
            credentials: self
                .context
                .control_planes
                .node_credentials(&self.id.uid, &name, address)
                .await?,
            machine: uid,
            name,
        };
        Ok(self.context.provider.create(&plan).await?)
    }

    /// What the machine is and where: it follows from its record, so that a
    /// join writes what a creation that was cut short did not.
    fn introduce(&self, machine: &Machine, status: &mut MachineStatus) {
        let name = machine.name_any();
        status.provider_id = Some(provider_id(&self.id.name, &name));
        if let Ok(address) = node_address(machine.spec.ordinal) {
            status.addresses = addresses(&address.to_string(), &name);
        }
        status.node_name = Some(name);
        if self.context.provider.shares_kernel() {
            let shared = Wanted {
                type_: CONDITION_SHARED_KERNEL,
                holds: Some(true),
                reason: reasons::CONTAINER,
                message: "It shares the kernel of the host: for tenants that are trusted.".into(),
            };
            self.set_condition(status, shared);
        }
        let provider = &self.context.provider;
        let unbounded = machine
            .machine_uid()
            .and_then(|uid| provider.unbounded_disk(&self.id.uid, &uid));
        let disk = Wanted {
            type_: CONDITION_DISK_BOUNDED,
            holds: Some(unbounded.is_none()),
            reason: match &unbounded {
                None => reasons::OWN_FILE_SYSTEM,
                Some(_) => reasons::HOST_FILE_SYSTEM,
            },
            message: match unbounded {
                None => "Its disk has the size of its class.".into(),
                Some(why) => format!("It can fill the disk of the host: {why}."),
            },
        };
        self.set_condition(status, disk);
    }

    /// The Node was Ready for the first time.
    pub(super) async fn join(&self, machine: &Machine) -> Result<Outcome, DriveMachineError> {
        let now = self.context.clock.now();
        let record = self
            .write_status(machine, |status| {
                status.phase = Some(neap_core::machine::MachinePhase::Running.into());
                status.power = Some(Power::Running.into());
                self.introduce(machine, status);
                status.joined = Some(now);
                status.deadline = None;
                status.message = None;
                self.set_ready(status, true, reasons::NODE_READY, "Its Node is Ready.");
            })
            .await?;
        Ok(Outcome::wrote(record).with(Milestone::Joined))
    }

    /// Writes the power state as the provider reports it now.
    pub(super) async fn record_power(
        &self,
        machine: &Machine,
    ) -> Result<Outcome, DriveMachineError> {
        let (provider, message) = self.observe_provider(&uid_of(machine)?).await?;
        let record = self
            .write_status(machine, |status| {
                if let Some(power) = provider.power() {
                    status.power = Some(power.into());
                }
                status.message = message;
            })
            .await?;
        Ok(Outcome {
            provider: Some(provider),
            ..Outcome::wrote(record)
        })
    }

    /// Writes whether the Node is Ready.
    pub(super) async fn record_ready(
        &self,
        machine: &Machine,
        ready: bool,
    ) -> Result<Outcome, DriveMachineError> {
        let (reason, message) = if ready {
            (reasons::NODE_READY, "Its Node is Ready.")
        } else {
            (reasons::NODE_NOT_READY, "Its Node is not Ready.")
        };
        let record = self
            .write_status(machine, |status| {
                self.set_ready(status, ready, reason, message)
            })
            .await?;
        Ok(Outcome::wrote(record))
    }
}

fn addresses(internal: &str, name: &str) -> Vec<NodeAddress> {
    let address = |type_: &str, address: &str| NodeAddress {
        type_: type_.into(),
        address: address.into(),
    };
    vec![address("InternalIP", internal), address("Hostname", name)]
}
