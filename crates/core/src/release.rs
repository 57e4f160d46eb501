//! The pure rules of letting a machine go without losing a pod.
//!
//! Between the decision and the cordon a pod may still be bound. So the actor
//! writes Releasing, cordons, waits [`SETTLE`], lists the node's pods live,
//! stops the kubelet (containers run on), lists again, and only then writes
//! Draining. After each of the two lists [`decide_after_list`] says whether to
//! go on. A machine without a Node begins at the stop of the kubelet. What is
//! bound later still, and what a dead machine held, is settled by
//! [`decide_fates`].

use crate::ids::{ObjectKey, ObjectUid};
use jiff::SignedDuration;

/// From the cordon to the first list: the time that a binding on its way has
/// to arrive.
pub const SETTLE: SignedDuration = SignedDuration::from_secs(1);

/// A pod as a live list by `spec.nodeName` shows it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodOnNode {
    /// Namespace and name.
    pub key: ObjectKey,
    /// UID, the precondition of whatever is done to it.
    pub uid: ObjectUid,
    /// Succeeded or Failed.
    pub finished: bool,
    /// DaemonSet or mirror pod, or labelled baseline in kube-system.
    pub baseline: bool,
    /// It has a deletion timestamp.
    pub terminating: bool,
}

impl PodOnNode {
    /// Work holds its node; baseline and finished pods do not.
    pub fn is_work(&self) -> bool {
        !self.finished && !self.baseline
    }
}

/// What follows from a live list of a Releasing machine's pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AfterList {
    /// Nothing that works is on it: go on.
    Proceed,
    /// Start the kubelet, lift our own cordon, Running again.
    Undo {
        /// The pod that came in between; the first by name of several.
        pod: ObjectKey,
    },
}

/// Decides after each live list of a Releasing machine's pods. A pod counts
/// whether it has started or not, and while it terminates.
pub fn decide_after_list(pods: &[PodOnNode]) -> AfterList {
    match pods
        .iter()
        .filter(|pod| pod.is_work())
        .map(|pod| &pod.key)
        .min()
    {
        None => AfterList::Proceed,
        Some(key) => AfterList::Undo { pod: key.clone() },
    }
}

/// What becomes of a pod whose machine does not come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodFate {
    /// Mark it Failed with the condition DisruptionTarget, delete it at once,
    /// and report it: its owner must know, and no new node of that name may
    /// start it again.
    Fail,
    /// Delete it at once, without a report.
    Delete,
    /// Leave it: it is finished and nobody waits for its end.
    Leave,
}

/// Decides what becomes of the pods of a machine that is past the point of no
/// return, in the order of their names. On a Draining machine the pods to be
/// failed were bound late and never started; on a dead one they are lost.
pub fn decide_fates(pods: &[PodOnNode]) -> Vec<(PodOnNode, PodFate)> {
    let mut fates: Vec<_> = pods.iter().map(|pod| (pod.clone(), fate(pod))).collect();
    fates.sort();
    fates
}

fn fate(pod: &PodOnNode) -> PodFate {
    match (pod.finished, pod.baseline, pod.terminating) {
        (false, false, _) => PodFate::Fail,
        // A kubelet that is gone never completes a deletion.
        (false, true, _) | (true, _, true) => PodFate::Delete,
        (true, _, false) => PodFate::Leave,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(name: &str) -> PodOnNode {
        PodOnNode {
            key: ObjectKey::new("ci", name),
            uid: ObjectUid::new(format!("uid-{name}")),
            finished: false,
            baseline: false,
            terminating: false,
        }
    }

    fn finished(name: &str) -> PodOnNode {
        PodOnNode {
            finished: true,
            ..work(name)
        }
    }

    fn baseline(name: &str) -> PodOnNode {
        PodOnNode {
            baseline: true,
            ..work(name)
        }
    }

    fn terminating(pod: PodOnNode) -> PodOnNode {
        PodOnNode {
            terminating: true,
            ..pod
        }
    }

    #[test]
    fn a_release_goes_on_while_nothing_works_on_the_node() {
        assert_eq!(decide_after_list(&[]), AfterList::Proceed);
        assert_eq!(
            decide_after_list(&[finished("a"), baseline("b")]),
            AfterList::Proceed
        );
        assert_eq!(
            decide_after_list(&[terminating(baseline("b"))]),
            AfterList::Proceed
        );
    }

    #[test]
    fn a_release_is_undone_by_an_unfinished_pod_started_or_not() {
        let undo = |name: &str| AfterList::Undo {
            pod: ObjectKey::new("ci", name),
        };
        assert_eq!(decide_after_list(&[finished("a"), work("b")]), undo("b"));
        assert_eq!(decide_after_list(&[terminating(work("b"))]), undo("b"));
    }

    #[test]
    fn the_pod_named_in_an_undo_does_not_depend_on_the_order_of_the_list() {
        let lists = [[work("x"), work("b")], [work("b"), work("x")]];
        for list in lists {
            assert_eq!(
                decide_after_list(&list),
                AfterList::Undo {
                    pod: ObjectKey::new("ci", "b")
                }
            );
        }
    }

    #[test]
    fn work_is_failed_baseline_deleted_and_what_has_finished_left() {
        let table = [
            (work("a"), PodFate::Fail),
            (terminating(work("b")), PodFate::Fail),
            (baseline("c"), PodFate::Delete),
            (terminating(baseline("d")), PodFate::Delete),
            (finished("e"), PodFate::Leave),
            (terminating(finished("f")), PodFate::Delete),
        ];
        let pods: Vec<_> = table.iter().rev().map(|(pod, _)| pod.clone()).collect();
        assert_eq!(decide_fates(&pods), table);
    }

    #[test]
    fn a_pod_that_would_undo_a_release_is_never_just_deleted() {
        for bits in 0..8_u8 {
            let pod = PodOnNode {
                finished: bits & 1 != 0,
                baseline: bits & 2 != 0,
                terminating: bits & 4 != 0,
                ..work("p")
            };
            assert_eq!(fate(&pod) == PodFate::Fail, pod.is_work(), "{pod:?}");
        }
    }
}
