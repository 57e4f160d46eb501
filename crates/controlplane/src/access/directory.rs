//! Which Cluster a TLS server name means.

use crate::names::{HUB_SERVER_NAME, cluster_server_name};
use neap_core::ids::ClusterUid;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Names and the Clusters behind them; a cheap handle on one shared table.
///
/// It is filled from the records beside the data and by `ensure`, and emptied
/// by `delete`, so that a name is known exactly as long as its control plane is
/// meant to exist.
#[derive(Clone, Debug, Default)]
pub struct Directory {
    entries: Arc<RwLock<BTreeMap<String, ClusterUid>>>,
}

impl Directory {
    /// Makes the name of a Cluster mean this record. A record that had the
    /// name before loses it.
    pub fn set(&self, account: &str, cluster: &str, uid: ClusterUid) {
        self.insert(cluster_server_name(account, cluster), uid);
    }

    /// Makes the hub known.
    pub fn set_hub(&self, uid: ClusterUid) {
        self.insert(HUB_SERVER_NAME.to_owned(), uid);
    }

    /// Forgets every name of this record, and of no other.
    pub fn remove(&self, uid: &ClusterUid) {
        self.entries
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|_, entry| entry != uid);
    }

    /// The Cluster of a server name.
    #[must_use]
    pub fn find(&self, server_name: &str) -> Option<ClusterUid> {
        self.entries
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(server_name)
            .cloned()
    }

    fn insert(&self, name: String, uid: ClusterUid) {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|_, entry| *entry != uid);
        entries.insert(name, uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_taken_over_survives_the_end_of_its_first_owner() {
        let directory = Directory::default();
        directory.set("team", "ci", ClusterUid::new("old"));
        directory.set("team", "ci", ClusterUid::new("new"));
        directory.remove(&ClusterUid::new("old"));
        assert_eq!(
            directory.find("ci.team.clusters.neap.internal"),
            Some(ClusterUid::new("new"))
        );
    }

    #[test]
    fn a_removed_cluster_has_no_name() {
        let directory = Directory::default();
        directory.set_hub(ClusterUid::new("hub"));
        directory.set("team", "ci", ClusterUid::new("one"));
        directory.remove(&ClusterUid::new("one"));
        assert_eq!(directory.find("ci.team.clusters.neap.internal"), None);
        assert_eq!(
            directory.find(HUB_SERVER_NAME),
            Some(ClusterUid::new("hub"))
        );
    }
}
