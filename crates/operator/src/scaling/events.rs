//! Which waiting pods are told what: each once for the same thing, and not
//! more at a time than anybody reads.

use k8s_openapi::api::core::v1::ObjectReference;
use neap_core::ids::{ObjectKey, ObjectUid};
use std::collections::BTreeMap;

/// Most pods that one pass tells.
const AT_ONCE: usize = 20;

/// What the pods that wait have been told.
#[derive(Debug, Default)]
pub(super) struct PodEvents {
    told: BTreeMap<ObjectUid, &'static str>,
}

impl PodEvents {
    /// The pods to tell this event now. Pods that wait no longer are
    /// forgotten, so that this is never more than those that wait.
    pub(super) fn choose(
        &mut self,
        waiting: &BTreeMap<ObjectKey, ObjectUid>,
        event: &'static str,
    ) -> Vec<ObjectReference> {
        let mut told = std::mem::take(&mut self.told);
        let mut chosen = Vec::new();
        for (key, uid) in waiting {
            let known = told.remove(uid);
            if known == Some(event) || chosen.len() == AT_ONCE {
                self.told.extend(known.map(|known| (uid.clone(), known)));
                continue;
            }
            self.told.insert(uid.clone(), event);
            chosen.push(pod_reference(key, uid));
        }
        chosen
    }
}

fn pod_reference(key: &ObjectKey, uid: &ObjectUid) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".into()),
        kind: Some("Pod".into()),
        namespace: Some(key.namespace.clone()),
        name: Some(key.name.clone()),
        uid: Some(uid.to_string()),
        ..ObjectReference::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(names: impl IntoIterator<Item = usize>) -> BTreeMap<ObjectKey, ObjectUid> {
        let pod = |name| {
            (
                ObjectKey::new("n", format!("p{name:03}")),
                ObjectUid::new(format!("u{name}")),
            )
        };
        names.into_iter().map(pod).collect()
    }

    #[test]
    fn pod_is_told_the_same_thing_once() {
        let mut events = PodEvents::default();
        assert_eq!(events.choose(&waiting([1, 2]), "Up").len(), 2);
        assert_eq!(events.choose(&waiting([1, 2, 3]), "Up").len(), 1);
        assert_eq!(events.choose(&waiting([1, 2, 3]), "NotUp").len(), 3);
    }

    #[test]
    fn many_pods_are_told_in_turn() {
        let mut events = PodEvents::default();
        let many = waiting(0..50);
        let told: Vec<usize> = (0..4).map(|_| events.choose(&many, "Up").len()).collect();
        assert_eq!(told, [20, 20, 10, 0]);
    }

    #[test]
    fn pods_that_wait_no_longer_are_forgotten() {
        let mut events = PodEvents::default();
        events.choose(&waiting([1, 2]), "Up");
        events.choose(&waiting([2]), "Up");
        assert_eq!(events.told.len(), 1);
    }
}
