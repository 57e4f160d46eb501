//! One task per Machine record at a time. Which step it takes, `neap-core`
//! decides from what is true when the task is free.

use super::actor::{Actor, DriveMachineError, Outcome};
use jiff::{SignedDuration, Timestamp};
use neap_api::Machine;
use neap_core::driver::MachineStep;
use neap_core::fence::Fence;
use neap_core::ids::MachineUid;
use neap_core::reason::Reason;
use neap_core::supervision::{backoff, pending_retry, retry_at};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

/// How long a task that found its record changed waits for the watch to tell.
const TELL_TIME: SignedDuration = SignedDuration::from_millis(100);

/// What a task is to do with its machine.
#[derive(Clone, Debug)]
pub(super) enum Errand {
    /// The step that the record and the world call for.
    Step(MachineStep),
    /// What the decision calls for: remove it for this reason.
    Remove(Reason),
    /// What the decision calls for: take it back.
    Undo,
}

/// The end of a task.
#[derive(Debug)]
pub(super) struct Ended {
    /// Its machine.
    pub(super) machine: MachineUid,
    /// How often the provider had told of a change when the task began.
    pub(super) power_changes: u64,
    /// How it ended; `None` for a panic.
    pub(super) result: Option<Result<Outcome, DriveMachineError>>,
}

struct Running {
    machine: MachineUid,
    power_changes: u64,
    undo: CancellationToken,
    /// It removes a machine that never came up.
    may_back_off: bool,
}

/// What a machine is made for, beyond its record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Circumstances {
    /// DaemonSets that will put a pod on its Node.
    pub(super) daemon_sets: u32,
    /// Whether it keeps its containers in.
    pub(super) fence: Fence,
}

/// What a task is begun with.
pub(super) struct Assignment {
    /// UID of the record.
    pub(super) uid: MachineUid,
    /// The record.
    pub(super) machine: Arc<Machine>,
    /// How often the provider has told of a change of the machine.
    pub(super) power_changes: u64,
    /// What the machine is made for.
    pub(super) circumstances: Circumstances,
    /// What to do.
    pub(super) errand: Errand,
}

/// What became of asking a task to take a release back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UndoAsked {
    /// It was asked.
    Now,
    /// It had been asked before.
    Before,
    /// There is no task to ask.
    NoTask,
}

/// The tasks of one Cluster's machines. Dropping it ends them.
#[derive(Default)]
pub(super) struct Drivers {
    tasks: JoinSet<Result<Outcome, DriveMachineError>>,
    running: BTreeMap<Id, Running>,
    /// Failures in a row of a machine's tasks, and when the next may begin.
    retries: BTreeMap<MachineUid, (u32, Timestamp)>,
}

impl Drivers {
    /// A task of this machine runs.
    pub(super) fn is_busy(&self, machine: &MachineUid) -> bool {
        self.running
            .values()
            .any(|running| running.machine == *machine)
    }

    /// When the next task of this machine may begin, if that is not now.
    pub(super) fn retry_at(&self, machine: &MachineUid, now: Timestamp) -> Option<Timestamp> {
        pending_retry(self.retries.get(machine).map(|(_, at)| *at), now)
    }

    /// Begins a task. The caller has seen that the machine has none.
    pub(super) fn begin(&mut self, actor: Actor, assignment: Assignment) {
        let Assignment {
            uid,
            machine,
            power_changes,
            circumstances,
            errand,
        } = assignment;
        tracing::debug!(cluster = %actor.id, machine = %uid, ?errand, "machine step");
        let undo = CancellationToken::new();
        let may_back_off =
            matches!(&errand, Errand::Remove(reason) if reason.is_provisioning_failure());
        let task = self.tasks.spawn(carry_out(
            actor,
            machine,
            circumstances,
            errand,
            undo.clone(),
        ));
        self.running.insert(
            task.id(),
            Running {
                machine: uid,
                power_changes,
                undo,
                may_back_off,
            },
        );
    }

    /// A task may end in a backoff before more machines are made.
    pub(super) fn may_back_off(&self) -> bool {
        self.running.values().any(|running| running.may_back_off)
    }

    /// Asks the task of this machine to take a release back.
    pub(super) fn undo(&self, machine: &MachineUid) -> UndoAsked {
        match self
            .running
            .values()
            .find(|running| running.machine == *machine)
        {
            None => UndoAsked::NoTask,
            Some(running) if running.undo.is_cancelled() => UndoAsked::Before,
            Some(running) => {
                running.undo.cancel();
                UndoAsked::Now
            }
        }
    }

    /// The next end of a task; never while there is none.
    pub(super) async fn ended(&mut self, now: impl Fn() -> Timestamp) -> Ended {
        loop {
            let Some(end) = self.tasks.join_next_with_id().await else {
                return std::future::pending().await;
            };
            if let Some(ended) = self.observe_end(end, now()) {
                return ended;
            }
        }
    }

    /// Waits until every task has ended.
    pub(super) async fn finish(&mut self) {
        while self.tasks.join_next().await.is_some() {}
        self.running.clear();
    }

    fn observe_end(
        &mut self,
        end: Result<(Id, Result<Outcome, DriveMachineError>), JoinError>,
        now: Timestamp,
    ) -> Option<Ended> {
        let (task, result) = match end {
            Ok((task, result)) => (task, Some(result)),
            Err(error) => {
                tracing::error!(%error, "machine task panicked");
                (error.id(), None)
            }
        };
        let Running {
            machine,
            power_changes,
            ..
        } = self.running.remove(&task)?;
        match &result {
            Some(Ok(_)) => {
                self.retries.remove(&machine);
            }
            Some(Err(error)) if error.is_conflict() => {
                let failures = self
                    .retries
                    .get(&machine)
                    .map_or(0, |(failures, _)| *failures);
                self.retries.insert(
                    machine.clone(),
                    (failures, now.checked_add(TELL_TIME).unwrap_or(now)),
                );
            }
            _ => {
                let failures = self
                    .retries
                    .get(&machine)
                    .map_or(0, |(failures, _)| *failures)
                    .saturating_add(1);
                self.retries
                    .insert(machine.clone(), (failures, retry_at(failures, now)));
                tracing::debug!(machine = %machine, wait = %backoff(failures), "machine step failed; trying again");
            }
        }
        Some(Ended {
            machine,
            power_changes,
            result,
        })
    }
}

async fn carry_out(
    actor: Actor,
    machine: Arc<Machine>,
    circumstances: Circumstances,
    errand: Errand,
    undo: CancellationToken,
) -> Result<Outcome, DriveMachineError> {
    let machine = machine.as_ref();
    match errand {
        Errand::Remove(reason) => actor.remove(machine, &reason).await,
        Errand::Undo => actor.undo(machine, None).await,
        Errand::Step(step) => match step {
            MachineStep::Rest | MachineStep::RestUntil(_) => Ok(Outcome::default()),
            MachineStep::Observe => {
                let (provider, _) = actor
                    .observe_provider(&super::actor::uid_of(machine)?)
                    .await?;
                Ok(Outcome::observed(provider))
            }
            MachineStep::Create => actor.create(machine, circumstances).await,
            MachineStep::RecordPower(_) => actor.record_power(machine).await,
            MachineStep::RecordReady(ready) => actor.record_ready(machine, ready).await,
            MachineStep::Join => actor.join(machine).await,
            MachineStep::Resize(pods) => {
                actor.resize(machine, pods, circumstances.daemon_sets).await
            }
            MachineStep::Release => actor.release(machine, &undo).await,
            MachineStep::BeginDraining => {
                let reason = Reason::DeletedByUser {
                    machine: machine.machine_name(),
                };
                actor.begin_draining(machine, &reason).await
            }
            MachineStep::Drain => actor.drain(machine).await,
        },
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::calls::CallApiError;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millisecond(ms).unwrap()
    }

    fn refuse(code: u16) -> Result<Outcome, DriveMachineError> {
        let refusal = kube::Error::Api(Box::new(kube::core::Status {
            code,
            ..Default::default()
        }));
        Err(CallApiError::Refuse {
            operation: "write",
            source: Box::new(refusal),
        }
        .into())
    }

    fn begin(
        drivers: &mut Drivers,
        name: &str,
        task: impl Future<Output = Result<Outcome, DriveMachineError>> + Send + 'static,
    ) -> MachineUid {
        let machine = MachineUid::new(name);
        let id = drivers.tasks.spawn(task).id();
        let running = Running {
            machine: machine.clone(),
            power_changes: 0,
            undo: CancellationToken::new(),
            may_back_off: false,
        };
        drivers.running.insert(id, running);
        machine
    }

    async fn run(
        drivers: &mut Drivers,
        name: &str,
        result: Result<Outcome, DriveMachineError>,
    ) -> Option<Timestamp> {
        let machine = begin(drivers, name, async { result });
        drivers.ended(|| at(0)).await;
        drivers.retry_at(&machine, at(0))
    }

    #[tokio::test]
    async fn failed_step_waits_longer_each_time_until_one_succeeds() {
        let mut drivers = Drivers::default();
        assert_eq!(run(&mut drivers, "m", refuse(500)).await, Some(at(1_000)));
        assert_eq!(run(&mut drivers, "m", refuse(500)).await, Some(at(2_000)));
        assert_eq!(run(&mut drivers, "m", Ok(Outcome::default())).await, None);
        assert_eq!(run(&mut drivers, "m", refuse(500)).await, Some(at(1_000)));
    }

    #[tokio::test]
    async fn changed_record_is_no_failure() {
        let mut drivers = Drivers::default();
        assert_eq!(run(&mut drivers, "m", refuse(409)).await, Some(at(100)));
        assert_eq!(run(&mut drivers, "m", refuse(409)).await, Some(at(100)));
        assert_eq!(run(&mut drivers, "m", refuse(500)).await, Some(at(1_000)));
    }

    #[tokio::test]
    async fn panicking_task_ends_alone_and_its_machine_is_tried_again() {
        let mut drivers = Drivers::default();
        let panics = begin(&mut drivers, "a", async { panic!("a bug") });
        let other = begin(&mut drivers, "b", std::future::pending());
        let ended = drivers.ended(|| at(0)).await;
        assert_eq!(ended.machine, panics);
        assert!(ended.result.is_none());
        assert!(drivers.is_busy(&other));
        assert!(!drivers.is_busy(&panics));
        assert_eq!(drivers.retry_at(&panics, at(0)), Some(at(1_000)));
    }

    #[tokio::test]
    async fn task_is_asked_once_to_take_a_release_back() {
        let mut drivers = Drivers::default();
        let busy = begin(&mut drivers, "a", std::future::pending());
        assert_eq!(drivers.undo(&busy), UndoAsked::Now);
        assert_eq!(drivers.undo(&busy), UndoAsked::Before);
        assert_eq!(drivers.undo(&MachineUid::new("b")), UndoAsked::NoTask);
    }
}
