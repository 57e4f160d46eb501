//! Workloads: what still wants pods.

use super::{controller_of, key_of, uid_of};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use neap_core::demand::JobCounts;
use neap_core::ids::ObjectKey;
use neap_core::observation::{WorkloadFacts, WorkloadKind};

/// A workload as its watch tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObservedWorkload {
    /// Namespace and name.
    pub(crate) key: ObjectKey,
    /// What a decision reads of it.
    pub(crate) facts: WorkloadFacts,
}

/// Reads a Job.
pub(crate) fn observe_job(job: &Job) -> ObservedWorkload {
    workload(WorkloadKind::Job, &job.metadata, job_wants(job))
}

/// Reads a Deployment.
pub(crate) fn observe_deployment(deployment: &Deployment) -> ObservedWorkload {
    let spec = deployment.spec.as_ref();
    let replicas = count(spec.and_then(|spec| spec.replicas), 1);
    workload(
        WorkloadKind::Deployment,
        &deployment.metadata,
        unless_gated(spec.map(|spec| &spec.template), replicas),
    )
}

/// Reads a StatefulSet.
pub(crate) fn observe_stateful_set(set: &StatefulSet) -> ObservedWorkload {
    let spec = set.spec.as_ref();
    let replicas = count(spec.and_then(|spec| spec.replicas), 1);
    workload(
        WorkloadKind::StatefulSet,
        &set.metadata,
        unless_gated(spec.map(|spec| &spec.template), replicas),
    )
}

/// Reads a ReplicaSet: a link from its pods to its Deployment.
pub(crate) fn observe_replica_set(set: &ReplicaSet) -> ObservedWorkload {
    workload(WorkloadKind::ReplicaSet, &set.metadata, 0)
}

/// Reads a DaemonSet.
pub(crate) fn observe_daemon_set(set: &DaemonSet) -> ObservedWorkload {
    let desired = set
        .status
        .as_ref()
        .map(|status| status.desired_number_scheduled);
    workload(WorkloadKind::DaemonSet, &set.metadata, count(desired, 0))
}

/// One that is being deleted wants no more pods; those it has count by
/// themselves.
fn workload(kind: WorkloadKind, metadata: &ObjectMeta, wants: u32) -> ObservedWorkload {
    let wants = if metadata.deletion_timestamp.is_some() {
        0
    } else {
        wants
    };
    ObservedWorkload {
        key: key_of(metadata),
        facts: WorkloadFacts {
            kind,
            uid: uid_of(metadata),
            owner: controller_of(metadata),
            wants,
        },
    }
}

/// The pods that a Job still needs at one time.
fn job_wants(job: &Job) -> u32 {
    let Some(spec) = &job.spec else { return 0 };
    let status = job.status.as_ref();
    let finished = status
        .and_then(|status| status.conditions.as_ref())
        .into_iter()
        .flatten()
        .any(|condition| {
            condition.status == "True"
                && matches!(
                    condition.type_.as_str(),
                    "Complete" | "Failed" | "SuccessCriteriaMet" | "FailureTarget"
                )
        });
    let counts = JobCounts {
        parallelism: count(spec.parallelism, 1),
        completions: spec
            .completions
            .map(|completions| count(Some(completions), 0)),
        succeeded: count(status.and_then(|status| status.succeeded), 0),
        suspended: spec.suspend == Some(true),
        finished,
    };
    unless_gated(Some(&spec.template), counts.needs())
}

/// Pods that are born with scheduling gates count by themselves once these are
/// lifted: until then no node would help.
fn unless_gated(template: Option<&PodTemplateSpec>, wants: u32) -> u32 {
    let gates = template
        .and_then(|template| template.spec.as_ref())
        .and_then(|spec| spec.scheduling_gates.as_ref());
    if gates.is_some_and(|gates| !gates.is_empty()) {
        0
    } else {
        wants
    }
}

/// A count on the wire is signed; a negative one is none.
fn count(value: Option<i32>, default: u32) -> u32 {
    value.map_or(default, |value| u32::try_from(value).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use neap_core::ids::ObjectUid;
    use serde_json::{Value, json};

    fn job(spec: Value, status: Value) -> u32 {
        let mut spec = spec;
        spec["template"] = json!({});
        let object = json!({"metadata": {"namespace": "n", "name": "j", "uid": "u"}, "spec": spec, "status": status});
        observe_job(&serde_json::from_value(object).unwrap())
            .facts
            .wants
    }

    #[test]
    fn job_wants_what_its_controller_would_run_at_one_time() {
        assert_eq!(
            job(json!({"completions": 1, "parallelism": 1}), json!({})),
            1
        );
        assert_eq!(
            job(
                json!({"completions": 10, "parallelism": 3}),
                json!({"succeeded": 2})
            ),
            3
        );
        assert_eq!(
            job(
                json!({"completions": 10, "parallelism": 3}),
                json!({"succeeded": 9})
            ),
            1
        );
        assert_eq!(
            job(
                json!({"completions": 10, "parallelism": 3}),
                json!({"succeeded": 11})
            ),
            0
        );
        assert_eq!(
            job(json!({"completions": 5, "parallelism": 0}), json!({})),
            0
        );
        assert_eq!(
            job(json!({"completions": 0, "parallelism": 1}), json!({})),
            0
        );
    }

    #[test]
    fn work_queue_wants_no_new_pods_once_one_has_succeeded() {
        assert_eq!(job(json!({"parallelism": 4}), json!({})), 4);
        assert_eq!(job(json!({"parallelism": 4}), json!({"succeeded": 1})), 0);
    }

    #[test]
    fn suspended_job_wants_nothing() {
        assert_eq!(
            job(
                json!({"completions": 3, "parallelism": 3, "suspend": true}),
                json!({})
            ),
            0
        );
        assert_eq!(
            job(
                json!({"completions": 3, "parallelism": 3, "suspend": false}),
                json!({})
            ),
            3
        );
    }

    #[test]
    fn finished_job_wants_nothing() {
        for type_ in ["Complete", "Failed", "SuccessCriteriaMet", "FailureTarget"] {
            let status = |value: &str| json!({"conditions": [{"type": type_, "status": value}]});
            assert_eq!(
                job(json!({"completions": 3, "parallelism": 3}), status("True")),
                0,
                "{type_}"
            );
            assert_eq!(
                job(json!({"completions": 3, "parallelism": 3}), status("False")),
                3,
                "{type_}"
            );
        }
    }

    #[test]
    fn workload_that_is_being_deleted_wants_nothing() {
        let mut object = json!({
            "metadata": {"namespace": "n", "name": "d", "uid": "u"},
            "spec": {"replicas": 3, "selector": {}, "template": {}},
        });
        assert_eq!(
            observe_deployment(&serde_json::from_value(object.clone()).unwrap())
                .facts
                .wants,
            3
        );
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(
            observe_deployment(&serde_json::from_value(object).unwrap())
                .facts
                .wants,
            0
        );
    }

    #[test]
    fn replicas_count_and_are_one_when_absent() {
        for (spec, wants) in [
            (json!({"replicas": 0}), 0),
            (json!({"replicas": 7}), 7),
            (json!({}), 1),
        ] {
            let mut spec = spec;
            spec["selector"] = json!({});
            spec["template"] = json!({});
            spec["serviceName"] = json!("s");
            let object =
                json!({"metadata": {"namespace": "n", "name": "d", "uid": "u"}, "spec": spec});
            let set = observe_stateful_set(&serde_json::from_value(object.clone()).unwrap()).facts;
            assert_eq!((set.kind, set.wants), (WorkloadKind::StatefulSet, wants));
            let deployment = observe_deployment(&serde_json::from_value(object).unwrap()).facts;
            assert_eq!(
                (deployment.kind, deployment.wants),
                (WorkloadKind::Deployment, wants)
            );
        }
    }

    #[test]
    fn workload_whose_pods_are_born_gated_wants_nothing() {
        let template = json!({"spec": {"containers": [], "schedulingGates": [{"name": "g"}]}});
        let object = json!({
            "metadata": {"namespace": "n", "name": "d", "uid": "u"},
            "spec": {"replicas": 3, "completions": 3, "parallelism": 3, "selector": {}, "serviceName": "s", "template": template},
        });
        assert_eq!(
            observe_job(&serde_json::from_value(object.clone()).unwrap())
                .facts
                .wants,
            0
        );
        assert_eq!(
            observe_deployment(&serde_json::from_value(object.clone()).unwrap())
                .facts
                .wants,
            0
        );
        assert_eq!(
            observe_stateful_set(&serde_json::from_value(object).unwrap())
                .facts
                .wants,
            0
        );
    }

    #[test]
    fn replica_set_is_a_link_to_its_deployment() {
        let object = json!({
            "metadata": {"namespace": "n", "name": "r", "uid": "u", "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "d", "controller": true}]},
            "spec": {"replicas": 3, "selector": {}},
        });
        let observed = observe_replica_set(&serde_json::from_value(object).unwrap());
        assert_eq!(observed.key, ObjectKey::new("n", "r"));
        assert_eq!(observed.facts.wants, 0);
        assert_eq!(observed.facts.owner, Some(ObjectUid::new("d")));
    }

    #[test]
    fn daemon_set_wants_its_desired_number() {
        let object = json!({
            "metadata": {"namespace": "n", "name": "d", "uid": "u"},
            "status": {"currentNumberScheduled": 1, "desiredNumberScheduled": 2, "numberMisscheduled": 0, "numberReady": 0},
        });
        assert_eq!(
            observe_daemon_set(&serde_json::from_value(object).unwrap())
                .facts
                .wants,
            2
        );
    }
}
