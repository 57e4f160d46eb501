//! How much work needs a node.
//!
//! An unfinished pod that is no baseline counts; a workload counts the pods it
//! still wants. An owner and its pods are one need seen twice: the larger of
//! the two numbers counts, never the sum. A pod that is held back by gates
//! needs no node yet, and neither does its owner for that pod.

use crate::ids::ObjectUid;
use crate::observation::{Observation, PodFacts, WorkloadFacts, WorkloadKind};
use crate::scale::DaemonSets;
use std::collections::BTreeMap;

/// Number of pods that need a node.
pub fn demand(observation: &Observation, daemon_sets: DaemonSets) -> u32 {
    let workloads = Workloads::of(observation);
    let mut owners: BTreeMap<&ObjectUid, Need> = BTreeMap::new();
    for workload in &observation.workloads {
        let need = owners.entry(workloads.root(&workload.uid)).or_default();
        need.wanted = need.wanted.max(wants(workload, daemon_sets));
        need.deployment |= workload.kind == WorkloadKind::Deployment;
    }
    let mut ownerless = Need::default();
    let mut unknown = Need::default();
    for (pod, count) in observation.pods.iter().filter(|(pod, _)| is_work(pod)) {
        let need = match &pod.owner {
            None => &mut ownerless,
            Some(owner) => match owners.get_mut(workloads.root(owner)) {
                Some(need) => need,
                None => &mut unknown,
            },
        };
        let counter = if pod.gated {
            &mut need.gated
        } else {
            &mut need.pods
        };
        *counter = counter.saturating_add(*count);
    }
    // Each kind has a watch of its own, so a pod may be seen before the
    // ReplicaSet that leads to its Deployment. Pods of owners that are not
    // known and the pods that Deployments still miss are therefore one need
    // until the link is there, or one pod would bring two nodes.
    let deployments = owners.values().filter(|need| need.deployment);
    unknown.wanted = deployments.fold(0, |sum, need| sum.saturating_add(need.missing()));
    let known = owners.values().map(|need| {
        if need.deployment {
            need.pods
        } else {
            need.number()
        }
    });
    [ownerless.pods, unknown.number()]
        .into_iter()
        .chain(known)
        .fold(0, u32::saturating_add)
}

/// Whether there is work: the one definition of it.
pub fn intent(demand: u32) -> bool {
    demand > 0
}

/// Whether a pod is work: unfinished and no baseline. It holds the node that
/// it is bound to.
pub fn is_work(pod: &PodFacts) -> bool {
    !pod.finished && !pod.baseline
}

/// What a Job says of itself, after the API server has filled in defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobCounts {
    /// `spec.parallelism`.
    pub parallelism: u32,
    /// `spec.completions`; absent for a work queue.
    pub completions: Option<u32>,
    /// `status.succeeded`.
    pub succeeded: u32,
    /// `spec.suspend`.
    pub suspended: bool,
    /// It has, or is about to have, the condition Complete or Failed.
    pub finished: bool,
}

impl JobCounts {
    /// Pods that the Job still needs at once.
    pub fn needs(self) -> u32 {
        if self.suspended || self.finished {
            return 0;
        }
        match self.completions {
            Some(completions) => self
                .parallelism
                .min(completions.saturating_sub(self.succeeded)),
            // A work queue starts no pod after the first that succeeded; those
            // that still run count as pods.
            None if self.succeeded > 0 => 0,
            None => self.parallelism,
        }
    }
}

/// Somebody who wants pods, and the pods.
#[derive(Clone, Copy, Debug, Default)]
struct Need {
    wanted: u32,
    pods: u32,
    gated: u32,
    deployment: bool,
}

impl Need {
    /// The larger of pods wanted and pods there; what is gated is not wanted
    /// yet.
    fn number(self) -> u32 {
        self.pods.max(self.wanted.saturating_sub(self.gated))
    }

    /// Pods wanted beyond those there.
    fn missing(self) -> u32 {
        self.number() - self.pods
    }
}

fn wants(workload: &WorkloadFacts, daemon_sets: DaemonSets) -> u32 {
    match (workload.kind, daemon_sets) {
        (WorkloadKind::ReplicaSet, _) | (WorkloadKind::DaemonSet, DaemonSets::Ignore) => 0,
        (WorkloadKind::DaemonSet, DaemonSets::Count)
        | (WorkloadKind::Job | WorkloadKind::Deployment | WorkloadKind::StatefulSet, _) => {
            workload.wants
        }
    }
}

/// Workloads by UID, to find who stands behind a pod.
struct Workloads<'a>(BTreeMap<&'a ObjectUid, &'a WorkloadFacts>);

impl<'a> Workloads<'a> {
    fn of(observation: &'a Observation) -> Self {
        let by_uid = observation
            .workloads
            .iter()
            .map(|workload| (&workload.uid, workload));
        Self(by_uid.collect())
    }

    /// The owner behind an owner: a ReplicaSet stands for its Deployment, if
    /// that is known. Anybody else stands for itself.
    fn root<'b>(&self, owner: &'b ObjectUid) -> &'b ObjectUid
    where
        'a: 'b,
    {
        match self.0.get(owner) {
            Some(WorkloadFacts {
                kind: WorkloadKind::ReplicaSet,
                owner: Some(deployment),
                ..
            }) if self.0.contains_key(deployment) => deployment,
            _ => owner,
        }
    }
}
