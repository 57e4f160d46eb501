//! Names that are free for another machine.

use super::size;
use crate::addressing::MAX_ORDINAL;
use crate::observation::Observation;
use std::collections::BTreeSet;

/// The lowest free ordinals, at most `count`. An ordinal is taken by a record,
/// by a Node of its name, and by a pod that is not finished and bound to that
/// name: it would start on the new node.
///
/// The part of a name before the ordinal is the Cluster's and the same for
/// all of its machines; a Node with another one takes the ordinal as well,
/// which wastes a number and harms nobody.
pub(super) fn free_ordinals(observation: &Observation, count: u32) -> Vec<u32> {
    let records = observation
        .machines
        .iter()
        .flat_map(|machine| [Some(machine.ordinal), machine.name.node().ordinal()]);
    let nodes = observation.nodes.iter().map(|node| node.name.ordinal());
    let pods = observation
        .pods
        .iter()
        .filter(|(pod, count)| !pod.finished && *count > 0)
        .map(|(pod, _)| pod.node.as_ref().and_then(|node| node.ordinal()));
    let taken: BTreeSet<u32> = records.chain(nodes).chain(pods).flatten().collect();
    (1..=MAX_ORDINAL)
        .filter(|ordinal| !taken.contains(ordinal))
        .take(size(count))
        .collect()
}
