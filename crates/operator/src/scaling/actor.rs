//! Acts on the machines of one Cluster: each act reads what it rests on live,
//! states what it is based on, and may be carried out again.

use crate::calls::{CallApiError, Calls};
use crate::observe::observe_node;
use crate::operator::Context;
use crate::traits::{ControlPlaneError, MachineError};
use crate::view::ClusterId;
use k8s_openapi::api::core::v1::{Node, ObjectReference, Pod};
use kube::api::ListParams;
use kube::{Api, Client, Resource, ResourceExt};
use neap_api::convert::{ObserveMachineError, ParseClassError};
use neap_api::machine::MachineStatus;
use neap_api::names::{CONDITION_READY, MANAGER_SCALING};
use neap_api::{Cluster, Machine};
use neap_core::addressing::AddressOrdinalError;
use neap_core::driver::{NodeView, ProviderView};
use neap_core::ids::MachineUid;
use neap_core::reason::Reason;
use neap_kube::conditions::{self, Wanted};
use neap_kube::{EventKind, Events, write};
use std::sync::Arc;

/// A step of a machine that failed; it is taken again.
#[derive(Debug, thiserror::Error)]
pub(super) enum DriveMachineError {
    /// The hub or the tenant could not be asked or told.
    #[error(transparent)]
    CallApi(#[from] CallApiError),
    /// The provider could not act.
    #[error(transparent)]
    ActOnMachine(#[from] MachineError),
    /// The machine was not made.
    #[error("no machine was made for {name}")]
    CreateMachine {
        /// Its name.
        name: String,
        /// Why.
        #[source]
        source: CreateMachineError,
    },
    /// The record is none that a server returned.
    #[error(transparent)]
    ObserveMachine(#[from] ObserveMachineError),
}

impl DriveMachineError {
    /// The record has changed since it was read: not a failure.
    pub(super) fn is_conflict(&self) -> bool {
        matches!(self, Self::CallApi(error) if error.is_conflict())
    }

    /// The loop is ending: not a failure.
    pub(super) fn is_interrupt(&self) -> bool {
        matches!(self, Self::CallApi(error) if error.is_interrupt())
    }
}

/// Why a machine was not made.
#[derive(Debug, thiserror::Error)]
pub(super) enum CreateMachineError {
    /// Its ordinal has no place in the Cluster's network.
    #[error(transparent)]
    AddressOrdinal(#[from] AddressOrdinalError),
    /// Its class is none.
    #[error(transparent)]
    ParseClass(#[from] ParseClassError),
    /// There are no certificates for it.
    #[error(transparent)]
    IssueCredentials(#[from] ControlPlaneError),
    /// The provider did not make it.
    #[error(transparent)]
    ActOnMachine(#[from] MachineError),
}

/// What a step led to.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// The record as it was written.
    pub(super) record: Option<Machine>,
    /// What the provider has now.
    pub(super) provider: Option<ProviderView>,
    /// What the scaling loop has to remember.
    pub(super) milestone: Option<Milestone>,
}

impl Outcome {
    pub(super) fn wrote(record: Machine) -> Self {
        Self {
            record: Some(record),
            ..Self::default()
        }
    }

    pub(super) fn observed(provider: ProviderView) -> Self {
        Self {
            provider: Some(provider),
            ..Self::default()
        }
    }

    pub(super) fn with(self, milestone: Milestone) -> Self {
        Self {
            milestone: Some(milestone),
            ..self
        }
    }
}

/// A step that changes what is remembered of the Cluster.
#[derive(Debug)]
pub(super) enum Milestone {
    /// The Node was Ready for the first time.
    Joined,
    /// The removal for this reason is past the point of no return.
    Removing(Reason),
    /// A machine that was leaving stays, because of this.
    TakenBack(Reason),
    /// The record is gone.
    Gone,
}

/// Acts for one Cluster; cheap to clone.
#[derive(Clone)]
pub(super) struct Actor {
    pub(super) context: Arc<Context>,
    pub(super) id: ClusterId,
    pub(super) calls: Calls,
    tenant: Client,
    tenant_events: Events,
}

impl Actor {
    pub(super) fn new(context: Arc<Context>, id: ClusterId, tenant: Client, calls: Calls) -> Self {
        let tenant_events = Events::new(tenant.clone(), MANAGER_SCALING);
        Self {
            context,
            id,
            calls,
            tenant,
            tenant_events,
        }
    }

    pub(super) fn nodes(&self) -> Api<Node> {
        Api::all(self.tenant.clone())
    }

    pub(super) fn pods(&self, namespace: &str) -> Api<Pod> {
        Api::namespaced(self.tenant.clone(), namespace)
    }

    pub(super) fn machines(&self) -> Api<Machine> {
        Api::namespaced(self.context.hub.clone(), &self.id.account)
    }

    pub(super) fn clusters(&self) -> Api<Cluster> {
        Api::namespaced(self.context.hub.clone(), &self.id.account)
    }

    /// What the provider has, asked now.
    pub(super) async fn observe_provider(
        &self,
        machine: &MachineUid,
    ) -> Result<(ProviderView, Option<String>), MachineError> {
        Ok(match self.context.provider.observe(machine).await? {
            None => (ProviderView::Absent, None),
            Some(provided) => (ProviderView::Present(provided.power), provided.message),
        })
    }

    /// The Node of the machine's name, read now.
    pub(super) async fn observe_node(
        &self,
        machine: &Machine,
        uid: &MachineUid,
    ) -> Result<(NodeView, Option<Node>), CallApiError> {
        let found = self
            .calls
            .call("read the Node", self.nodes().get_opt(&machine.name_any()))
            .await?;
        let facts = found
            .as_ref()
            .map(|node| observe_node(node, &self.context.installation));
        Ok((NodeView::of(facts.as_ref(), uid), found))
    }

    /// The pods bound to the machine's Node, read now.
    pub(super) async fn list_pods(&self, machine: &Machine) -> Result<Vec<Pod>, CallApiError> {
        let bound = ListParams::default().fields(&format!("spec.nodeName={}", machine.name_any()));
        let pods: Api<Pod> = Api::all(self.tenant.clone());
        Ok(self
            .calls
            .call("list the pods of the Node", pods.list(&bound))
            .await?
            .items)
    }

    /// Writes a change of the record's status, based on the record as read:
    /// when it has changed since, the write is refused.
    pub(super) async fn write_status(
        &self,
        machine: &Machine,
        change: impl FnOnce(&mut MachineStatus),
    ) -> Result<Machine, CallApiError> {
        let mut status = machine.status.clone().unwrap_or_default();
        change(&mut status);
        if machine.status.as_ref() == Some(&status) {
            return Ok(machine.clone());
        }
        let (api, name) = (self.machines(), machine.name_any());
        let version = machine.resource_version();
        let written =
            write::apply_status(&api, &name, MANAGER_SCALING, version.as_deref(), &status);
        self.calls
            .call("write the status of the Machine", written)
            .await
    }

    /// Sets the condition Ready in a status.
    pub(super) fn set_ready(
        &self,
        status: &mut MachineStatus,
        ready: bool,
        reason: &'static str,
        message: &str,
    ) {
        let wanted = Wanted {
            type_: CONDITION_READY,
            holds: Some(ready),
            reason,
            message: message.into(),
        };
        self.set_condition(status, wanted);
    }

    pub(super) fn set_condition(&self, status: &mut MachineStatus, wanted: Wanted) {
        let now = self.context.clock.now();
        conditions::set(&mut status.conditions, wanted, None, now);
    }

    /// Tells on a record why something is done.
    pub(super) async fn tell(
        &self,
        about: &impl Resource<DynamicType = ()>,
        action: &str,
        reason: &Reason,
    ) {
        let (events, about) = (&self.context.scaling_events, about.object_ref(&()));
        self.publish(events, about, reason.cluster_event(), action, reason)
            .await;
    }

    /// Tells on an object of the tenant why something is done.
    pub(super) async fn tell_tenant(
        &self,
        about: ObjectReference,
        event: &str,
        action: &str,
        reason: &Reason,
    ) {
        self.publish(&self.tenant_events, about, event, action, reason)
            .await;
    }

    async fn publish(
        &self,
        events: &Events,
        about: ObjectReference,
        event: &str,
        action: &str,
        reason: &Reason,
    ) {
        let kind = if reason.is_warning() {
            EventKind::Warning
        } else {
            EventKind::Normal
        };
        let (calls, note) = (&self.calls, reason.to_string());
        self.context
            .publish(calls, events, about, kind, event, action, &note)
            .await;
    }
}

/// UID of a record that a server returned.
pub(super) fn uid_of(machine: &Machine) -> Result<MachineUid, ObserveMachineError> {
    Ok(machine.observe()?.uid)
}
