//! What the scaling loop says and remembers on the Cluster: its own part of
//! the status, written only when it differs from what is there.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use neap_api::cluster::{Failures, LastDecision};
use neap_api::names::{CONDITION_PROVISIONED, CONDITION_TENANT_READABLE, reasons};
use neap_api::{Cluster, ClusterStatus};
use neap_core::scale::{Decision, State};
use neap_core::supervision::retry_at;
use neap_kube::conditions::{Wanted, set};

/// The loop's own part of the status: as it should be, and as it is.
pub(super) struct StatusMemory {
    desired: ClusterStatus,
    written: ClusterStatus,
}

impl StatusMemory {
    /// Goes on from what the record says.
    pub(super) fn new(recorded: ClusterStatus) -> Self {
        let own = own_part(recorded);
        Self {
            desired: own.clone(),
            written: own,
        }
    }

    /// What the decision remembers between passes.
    pub(super) fn state(&self) -> State {
        State {
            idle_since: self.desired.idle_since,
            last_release: self.desired.last_release,
            retry_at: self.retry_at(),
        }
    }

    /// No machine is made before this time.
    pub(super) fn retry_at(&self) -> Option<Timestamp> {
        self.desired
            .provisioning
            .as_ref()
            .and_then(|failures| failures.retry_at)
    }

    /// Takes over a decision. Its time is that of the first pass that made it
    /// or was asked for.
    pub(super) fn decided(
        &mut self,
        decision: &Decision,
        cluster: &Cluster,
        nodes: u32,
        now: Timestamp,
    ) {
        let mut decided = LastDecision::new(decision, cluster, now);
        if let Some(last) = &self.desired.last_decision {
            let same = LastDecision {
                time: last.time,
                ..decided.clone()
            };
            if same == *last {
                decided = same;
            }
        }
        self.desired.demand = Some(decision.demand);
        self.desired.target = Some(decision.target);
        self.desired.nodes = Some(nodes);
        self.desired.idle_since = decision.remember.idle_since;
        self.desired.last_decision = Some(decided);
    }

    /// Whether the tenant and the hub can be read, and if not, why.
    pub(super) fn observed(&mut self, unreadable: Option<&str>, now: Timestamp) {
        let (holds, reason, message) = match unreadable {
            None => (
                true,
                reasons::LISTED,
                "Everything that a decision reads is listed.",
            ),
            Some(why) => (false, reasons::LIST_FAILED, why),
        };
        self.set(CONDITION_TENANT_READABLE, holds, reason, message, now);
    }

    /// A machine was released while there was work.
    pub(super) fn released(&mut self, now: Timestamp) {
        self.desired.last_release = Some(now);
    }

    /// Making a machine failed.
    pub(super) fn provisioning_failed(&mut self, how: String, now: Timestamp) {
        let failures = self
            .desired
            .provisioning
            .as_ref()
            .map_or(0, |failures| failures.failures)
            .saturating_add(1);
        self.set(
            CONDITION_PROVISIONED,
            false,
            reasons::BACKING_OFF,
            &how,
            now,
        );
        self.desired.provisioning = Some(Failures {
            failures,
            retry_at: Some(retry_at(failures, now)),
            message: Some(how),
        });
    }

    /// A machine became Ready for the first time.
    pub(super) fn provisioned(&mut self, now: Timestamp) {
        self.set(
            CONDITION_PROVISIONED,
            true,
            reasons::MACHINES_MADE,
            "The last machine that was made joined.",
            now,
        );
        self.desired.provisioning = None;
    }

    /// What to write, if it differs from what is there.
    pub(super) fn due(&self) -> Option<ClusterStatus> {
        (self.desired != self.written).then(|| self.desired.clone())
    }

    /// It is there.
    pub(super) fn wrote(&mut self, written: ClusterStatus) {
        self.written = written;
    }

    fn set(
        &mut self,
        type_: &'static str,
        holds: bool,
        reason: &'static str,
        message: &str,
        now: Timestamp,
    ) {
        let wanted = Wanted {
            type_,
            holds: Some(holds),
            reason,
            message: message.into(),
        };
        set(&mut self.desired.conditions, wanted, None, now);
        self.desired
            .conditions
            .sort_by(|one, other| one.type_.cmp(&other.type_));
    }
}

/// The fields that this loop writes, and no others.
fn own_part(recorded: ClusterStatus) -> ClusterStatus {
    let own = |condition: &Condition| {
        matches!(
            condition.type_.as_str(),
            CONDITION_TENANT_READABLE | CONDITION_PROVISIONED
        )
    };
    let mut conditions = recorded.conditions;
    conditions.retain(own);
    conditions.sort_by(|one, other| one.type_.cmp(&other.type_));
    ClusterStatus {
        conditions,
        demand: recorded.demand,
        target: recorded.target,
        nodes: recorded.nodes,
        idle_since: recorded.idle_since,
        last_release: recorded.last_release,
        last_decision: recorded.last_decision,
        provisioning: recorded.provisioning,
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use neap_api::ClusterSpec;
    use neap_core::reason::Reason;
    use neap_core::scale::{DECISION_VERSION, Remember};

    fn at(second: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_secs(second)
    }

    fn cluster(requested_at: &str) -> Cluster {
        let mut cluster = Cluster::new("c", ClusterSpec::default());
        let annotation = ("neap.dev/requested-at".to_owned(), requested_at.to_owned());
        cluster.metadata.annotations = Some([annotation].into());
        cluster
    }

    fn nothing() -> Decision {
        Decision {
            version: DECISION_VERSION,
            demand: 0,
            target: 0,
            counted: 0,
            actions: vec![],
            reason: Reason::NoWork { counted: 0 },
            remember: Remember {
                idle_since: Some(at(1)),
                ..Default::default()
            },
            next: None,
        }
    }

    fn decided(memory: &mut StatusMemory, requested_at: &str, second: i64) -> Option<Timestamp> {
        memory.decided(&nothing(), &cluster(requested_at), 0, at(second));
        let due = memory.due();
        if let Some(status) = &due {
            memory.wrote(status.clone());
        }
        due.map(|status| status.last_decision.unwrap().time)
    }

    #[test]
    fn same_decision_is_written_once_and_again_when_it_was_asked_for() {
        let mut memory = StatusMemory::new(ClusterStatus::default());
        assert_eq!(decided(&mut memory, "1", 10), Some(at(10)));
        assert_eq!(decided(&mut memory, "1", 11), None);
        assert_eq!(decided(&mut memory, "2", 12), Some(at(12)));
        assert_eq!(decided(&mut memory, "2", 13), None);
    }

    #[test]
    fn restart_goes_on_from_the_record_without_a_write() {
        let mut memory = StatusMemory::new(ClusterStatus::default());
        memory.observed(None, at(5));
        memory.released(at(6));
        memory.provisioning_failed("no space".into(), at(7));
        decided(&mut memory, "1", 10);
        let recorded = memory.written.clone();
        let mut restarted = StatusMemory::new(recorded);
        assert_eq!(restarted.state(), memory.state());
        restarted.observed(None, at(20));
        assert_eq!(decided(&mut restarted, "1", 21), None);
    }

    #[test]
    fn failures_are_counted_until_a_machine_joins() {
        let mut memory = StatusMemory::new(ClusterStatus::default());
        memory.provisioning_failed("a".into(), at(10));
        assert_eq!(memory.retry_at(), Some(at(11)));
        memory.provisioning_failed("b".into(), at(20));
        assert_eq!(memory.retry_at(), Some(at(22)));
        assert_eq!(
            memory
                .desired
                .provisioning
                .as_ref()
                .map(|failures| failures.failures),
            Some(2)
        );
        memory.provisioned(at(30));
        assert_eq!(memory.retry_at(), None);
        assert_eq!(memory.desired.provisioning, None);
    }

    #[test]
    fn failed_list_is_told_once_with_its_reason() {
        let mut memory = StatusMemory::new(ClusterStatus::default());
        memory.observed(Some("Pods of the cluster: refused"), at(1));
        let told = memory.due().unwrap();
        memory.wrote(told.clone());
        memory.observed(Some("Pods of the cluster: refused"), at(2));
        assert_eq!(memory.due(), None);
        let condition = told.conditions.first().unwrap();
        assert_eq!(
            (condition.status.as_str(), condition.message.as_str()),
            ("False", "Pods of the cluster: refused")
        );
    }

    #[test]
    fn part_of_the_cluster_loop_is_left_to_it() {
        let recorded = ClusterStatus {
            endpoint: Some("https://e".into()),
            distro: Some("d".into()),
            ..Default::default()
        };
        assert_eq!(
            StatusMemory::new(recorded).desired,
            ClusterStatus::default()
        );
    }
}
