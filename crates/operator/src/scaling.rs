//! The loop `scaling`: watches what wants pods in one Cluster, makes a pass
//! whenever a decision could differ, and drives each Machine record from step
//! to step. It owns all that it knows; watches, tasks and time come in as
//! messages.

mod actor;
mod driver;
mod events;
mod pass;
mod provision;
mod release;
mod remove;
mod resize;
mod status;
mod watch;

use crate::calls::Calls;
use crate::operator::Context;
use crate::view::{ClusterId, HubView, Records, until};
use actor::{Actor, DriveMachineError, Milestone};
use driver::{Assignment, Circumstances, Drivers, Ended, Errand};
use events::PodEvents;
use futures::{FutureExt, StreamExt};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use neap_api::names::CONDITION_READY;
use neap_api::{Cluster, Machine};
use neap_core::driver::{MachineStep, MachineView, ProviderView, decide_machine};
use neap_core::fence::Fence;
use neap_core::ids::MachineUid;
use neap_core::machine::ObservedMachine;
use neap_core::reason::Reason;
use neap_core::supervision::backoff;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch as channel;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Passes are at least this far apart, however much happens.
const SPACING: SignedDuration = SignedDuration::from_millis(50);
/// How long nothing is said of lists that are missing: a watch that breaks
/// lists again at once, as long as there is somebody to ask.
const TELL_AFTER: SignedDuration = SignedDuration::from_secs(1);
/// How long the loop goes on with a client by which nothing can be listed.
const STALE_AFTER: SignedDuration = SignedDuration::from_secs(60);
/// The longest wait; everything that matters wakes the loop before.
const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// Most events that are on their way at a time.
const MOST_EVENTS: usize = 64;

/// The loop ended by itself; it is started again with a new client.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunScalingError {
    /// The tenant could not be listed for long.
    #[error("the cluster could not be listed for {} s: {why}", STALE_AFTER.as_secs())]
    ListTenant {
        /// What failed last.
        why: String,
    },
}

/// Runs the loop until `ending` is cancelled. Steps of machines that have
/// begun are waited for.
pub(crate) async fn run(
    context: Arc<Context>,
    id: ClusterId,
    view: channel::Receiver<HubView>,
    tenant: Client,
    ending: CancellationToken,
) -> Result<(), RunScalingError> {
    let calls = Calls::new(Arc::clone(&context.clock), ending.clone());
    let changes = watch::watch_tenant(&tenant, &context.installation);
    let actor = Actor::new(context, id, tenant, calls);
    let mut scaling = ScalingLoop::new(actor, view);
    let end = scaling.run(changes, &ending).await;
    ending.cancel();
    scaling.drivers.finish().await;
    end
}

/// All of the hub that makes a pass worth while; the rest of a record is what
/// this loop wrote itself.
#[derive(Debug, PartialEq)]
struct HubKey {
    generation: Option<i64>,
    requested_at: Option<String>,
    deleting: bool,
    unreadable: Option<String>,
    machines: Vec<Option<ObservedMachine>>,
}

struct ScalingLoop {
    actor: Actor,
    view: channel::Receiver<HubView>,
    tenant: watch::TenantCache,
    records: Records,
    hub: Option<HubKey>,
    /// What the provider has of each machine, and at which of its changes it
    /// was asked.
    provided: BTreeMap<MachineUid, (ProviderView, u64)>,
    drivers: Drivers,
    status: status::StatusMemory,
    pod_events: PodEvents,
    limit_told: bool,
    telling: JoinSet<()>,
    /// A decision could differ.
    pending: bool,
    earliest: Timestamp,
    next: Option<Timestamp>,
    /// When the next step of a machine is due by time alone.
    steps_at: Option<Timestamp>,
    unreadable_since: Option<Timestamp>,
    failures: u32,
}

impl ScalingLoop {
    fn new(actor: Actor, view: channel::Receiver<HubView>) -> Self {
        let recorded = view.borrow().cluster.status.clone().unwrap_or_default();
        let now = actor.context.clock.now();
        Self {
            actor,
            view,
            tenant: watch::TenantCache::default(),
            records: Records::default(),
            hub: None,
            provided: BTreeMap::new(),
            drivers: Drivers::default(),
            status: status::StatusMemory::new(recorded),
            pod_events: PodEvents::default(),
            limit_told: false,
            telling: JoinSet::new(),
            pending: false,
            earliest: now,
            next: None,
            steps_at: None,
            unreadable_since: Some(now),
            failures: 0,
        }
    }

    async fn run(
        &mut self,
        mut changes: impl futures::Stream<Item = watch::TenantChange> + Unpin,
        ending: &CancellationToken,
    ) -> Result<(), RunScalingError> {
        self.observe_hub();
        loop {
            let now = self.actor.context.clock.now();
            self.check_stale(now)?;
            if self.is_due(now) {
                self.pass_and_pace().await;
            }
            self.take_steps();
            let clock = Arc::clone(&self.actor.context.clock);
            let wait = self.wait();
            tokio::select! {
                () = ending.cancelled() => return Ok(()),
                change = changes.next() => {
                    // All that has arrived is one reason for one pass.
                    let mut change = change;
                    while let Some(told) = change {
                        self.pending |= self.tenant.observe(told);
                        change = changes.next().now_or_never().flatten();
                    }
                }
                changed = self.view.changed() => {
                    if changed.is_err() {
                        return Ok(());
                    }
                    self.observe_hub();
                }
                ended = self.drivers.ended(|| clock.now()) => self.observe_end(ended),
                Some(_) = self.telling.join_next() => {}
                () = clock.sleep(wait) => {}
            }
        }
    }

    /// A pass is due when something changed or its time has come.
    fn is_due(&self, now: Timestamp) -> bool {
        now >= self.earliest && (self.pending || self.next.is_some_and(|next| next <= now))
    }

    async fn pass_and_pace(&mut self) {
        self.pending = false;
        let result = self.pass().await;
        let now = self.actor.context.clock.now();
        self.earliest = now.saturating_add(SPACING).unwrap_or(now);
        match result {
            Ok(()) => self.failures = 0,
            Err(error) if error.is_interrupt() => {}
            Err(error) => {
                self.pending = true;
                if !error.is_conflict() {
                    self.failures = self.failures.saturating_add(1);
                    self.earliest = now.saturating_add(backoff(self.failures)).unwrap_or(now);
                    tracing::warn!(cluster = %self.actor.id, error = neap_kube::describe(&error), "pass failed; trying again");
                }
            }
        }
    }

    /// Has another pass made, after what is on its way has had time to arrive.
    fn pass_soon(&mut self) {
        self.pending = true;
    }

    /// How long nothing is due.
    fn wait(&self) -> Duration {
        let now = self.actor.context.clock.now();
        let pass = if self.pending {
            Some(self.earliest)
        } else {
            self.next.map(|next| next.max(self.earliest))
        };
        let stale = self
            .unreadable_since
            .and_then(|since| since.checked_add(STALE_AFTER).ok());
        let due = [pass, self.steps_at, stale].into_iter().flatten().min();
        due.map_or(LONGEST_WAIT, |due| until(due, now))
            .min(LONGEST_WAIT)
    }

    /// Why nothing may be decided now.
    fn unreadable(&self) -> Option<String> {
        self.view
            .borrow()
            .unreadable
            .clone()
            .or_else(|| self.tenant.unreadable())
    }

    /// A client by which nothing can be listed for long may be the reason: its
    /// certificate may have ended.
    fn check_stale(&mut self, now: Timestamp) -> Result<(), RunScalingError> {
        let Some(why) = self.unreadable() else {
            self.unreadable_since = None;
            return Ok(());
        };
        let since = *self.unreadable_since.get_or_insert(now);
        if now.duration_since(since) < STALE_AFTER || self.tenant.unreadable().is_none() {
            return Ok(());
        }
        Err(RunScalingError::ListTenant { why })
    }

    fn observe_hub(&mut self) {
        let view = self.view.borrow_and_update().clone();
        self.records.observe(&view.machines);
        for (machine, (provider, asked_at)) in &mut self.provided {
            let changes = view.power_changes.get(machine).copied().unwrap_or(0);
            if changes != *asked_at {
                *provider = ProviderView::NotAsked;
                *asked_at = changes;
            }
        }
        self.provided.retain(|uid, _| {
            view.machines
                .values()
                .any(|machine| machine.machine_uid().as_ref() == Some(uid))
        });
        let key = HubKey {
            generation: view.cluster.metadata.generation,
            requested_at: view.cluster.requested_at(),
            deleting: view.cluster.metadata.deletion_timestamp.is_some(),
            unreadable: view.unreadable,
            machines: self
                .records
                .iter()
                .map(|machine| machine.observe().ok())
                .collect(),
        };
        if self.hub.as_ref() != Some(&key) {
            self.pending = true;
            self.hub = Some(key);
        }
    }

    /// Begins the next step of every machine that has no task.
    fn take_steps(&mut self) {
        let now = self.actor.context.clock.now();
        let readable = self.unreadable().is_none();
        self.steps_at = None;
        for machine in self.records.iter().cloned().collect::<Vec<_>>() {
            let Some(uid) = machine.machine_uid() else {
                continue;
            };
            if self.drivers.is_busy(&uid) || self.records.is_let_go(&uid) {
                continue;
            }
            if let Some(at) = self.drivers.retry_at(&uid, now) {
                self.wake_at(at);
                continue;
            }
            let step = decide_machine(&self.machine_view(&machine, &uid), now);
            match step {
                MachineStep::Rest => {}
                MachineStep::RestUntil(at) => self.wake_at(at),
                // On a list that failed nothing is made, released or told.
                MachineStep::Create
                | MachineStep::Join
                | MachineStep::Resize(_)
                | MachineStep::Release
                | MachineStep::RecordReady(_)
                    if !readable => {}
                _ => self.begin(uid, machine, Errand::Step(step)),
            }
        }
    }

    fn begin(&mut self, uid: MachineUid, machine: Arc<Machine>, errand: Errand) {
        let power_changes = self.power_changes(&uid);
        let control_plane = self.view.borrow().cluster.spec.control_plane.clone();
        let circumstances = Circumstances {
            daemon_sets: self.tenant.daemon_sets(),
            fence: Fence::of_cluster(control_plane.allow_privileged),
        };
        self.drivers.begin(
            self.actor.clone(),
            Assignment {
                uid,
                machine,
                power_changes,
                circumstances,
                errand,
            },
        );
    }

    /// How often the provider has told of a change of this machine.
    fn power_changes(&self, machine: &MachineUid) -> u64 {
        self.view
            .borrow()
            .power_changes
            .get(machine)
            .copied()
            .unwrap_or(0)
    }

    fn wake_at(&mut self, at: Timestamp) {
        self.steps_at = Some(self.steps_at.map_or(at, |other| other.min(at)));
    }

    fn machine_view(&self, machine: &Machine, uid: &MachineUid) -> MachineView {
        MachineView {
            phase: machine.phase().into(),
            deleting: machine.metadata.deletion_timestamp.is_some(),
            recorded_power: machine.power().into(),
            recorded_ready: recorded_ready(machine),
            provider: self
                .provided
                .get(uid)
                .map_or(ProviderView::NotAsked, |(provider, _)| *provider),
            node: self.tenant.node_view(&machine.machine_name(), uid),
            retry_at: self.status.retry_at(),
            pods_per_node: machine.spec.pods_per_node,
            wanted_pods_per_node: self.view.borrow().cluster.spec.scaling.pods_per_node,
            resize_retry_at: resize::retry_at(machine),
            paused: self.view.borrow().cluster.spec.paused,
        }
    }

    fn observe_end(&mut self, ended: Ended) {
        let now = self.actor.context.clock.now();
        let cluster = Arc::clone(&self.view.borrow().cluster);
        self.pending = true;
        let outcome = match ended.result {
            Some(Ok(outcome)) => outcome,
            Some(Err(DriveMachineError::CreateMachine { name, source })) => {
                let how = format!(
                    "no machine was made for {name}: {}",
                    neap_kube::describe(&source)
                );
                tracing::warn!(cluster = %self.actor.id, how, "provisioning failed");
                self.status.provisioning_failed(how, now);
                self.provided.remove(&ended.machine);
                return;
            }
            Some(Err(error)) => {
                if !error.is_conflict() && !error.is_interrupt() {
                    tracing::warn!(cluster = %self.actor.id, error = neap_kube::describe(&error), "machine step failed");
                }
                return;
            }
            None => return,
        };
        if let Some(provider) = outcome.provider {
            // What changed while it was asked is asked again.
            let changes = self.power_changes(&ended.machine);
            let known = if changes == ended.power_changes {
                provider
            } else {
                ProviderView::NotAsked
            };
            self.provided
                .insert(ended.machine.clone(), (known, changes));
        }
        if let Some(record) = outcome.record {
            self.records.wrote(record);
        }
        match outcome.milestone {
            Some(Milestone::Joined) => self.status.provisioned(now),
            Some(Milestone::Removing(reason)) => {
                tracing::warn!(cluster = %self.actor.id, machine = %ended.machine, why = %reason, "a machine is removed");
                if reason.is_provisioning_failure() {
                    self.status.provisioning_failed(reason.to_string(), now);
                }
                self.tell_cluster(&cluster, "Remove", &reason);
            }
            Some(Milestone::TakenBack(reason)) => self.tell_cluster(&cluster, "Undo", &reason),
            Some(Milestone::Gone) => self.records.let_go(ended.machine),
            None => {}
        }
    }

    /// Tells on the Cluster what is done and why.
    fn tell_cluster(&mut self, cluster: &Cluster, action: &'static str, reason: &Reason) {
        let (actor, cluster, reason) = (self.actor.clone(), cluster.clone(), reason.clone());
        self.tell(async move { actor.tell(&cluster, action, &reason).await });
    }

    /// Tells on the Cluster, once each time it comes to that, that MaxNodes is
    /// in the way.
    fn tell_limit(&mut self, cluster: &Cluster, reason: &Reason) {
        let at_limit = reason.is_at_max();
        if at_limit && !self.limit_told {
            self.tell_cluster(cluster, "Provision", reason);
        }
        self.limit_told = at_limit;
    }

    /// Tells the pods that wait what is done for them, or why nothing is.
    fn tell_waiting_pods(&mut self, reason: Option<Reason>) {
        let Some((reason, event)) =
            reason.and_then(|reason| reason.waiting_pod_event().map(|event| (reason, event)))
        else {
            return;
        };
        for pod in self.pod_events.choose(self.tenant.waiting(), event) {
            let (actor, reason) = (self.actor.clone(), reason.clone());
            self.tell(async move { actor.tell_tenant(pod, event, "Scale", &reason).await });
        }
    }

    /// Events hold nothing up, and are dropped before they pile up.
    fn tell(&mut self, telling: impl Future<Output = ()> + Send + 'static) {
        if self.telling.len() < MOST_EVENTS {
            self.telling.spawn(telling);
        }
    }
}

/// Condition Ready on the record.
fn recorded_ready(machine: &Machine) -> Option<bool> {
    let conditions = &machine.status.as_ref()?.conditions;
    conditions
        .iter()
        .find(|condition| condition.type_ == CONDITION_READY)
        .map(|ready| ready.status == "True")
}

#[cfg(test)]
mod tests;
