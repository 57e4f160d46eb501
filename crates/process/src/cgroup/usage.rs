//! Which processes a group has.

use super::{Cgroup, CgroupPath, members, subtree};
use std::collections::BTreeSet;
use std::io;

/// The processes of a control group could not be read.
#[derive(Debug, thiserror::Error)]
#[error("failed to read the processes of control group {cgroup}")]
pub struct ObserveCgroupError {
    /// The group.
    pub cgroup: CgroupPath,
    /// Why.
    #[source]
    pub source: io::Error,
}

impl Cgroup {
    /// The processes in it and below, in order.
    pub fn pids(&self) -> Result<Vec<i32>, ObserveCgroupError> {
        let read = || {
            let mut found = BTreeSet::new();
            for folder in self.folders() {
                for folder in subtree(&folder)? {
                    found.extend(members(&folder)?);
                }
            }
            Ok(found.into_iter().collect())
        };
        read().map_err(|source| ObserveCgroupError {
            cgroup: self.path.clone(),
            source,
        })
    }
}
