//! What a group uses.

use super::hierarchy::Hierarchy;
use super::{Cgroup, CgroupPath, members, subtree};
use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

/// A figure of a control group could not be read.
#[derive(Debug, thiserror::Error)]
#[error("failed to read {what} of control group {cgroup}")]
pub struct ObserveCgroupError {
    /// The figure.
    pub what: &'static str,
    /// The group.
    pub cgroup: CgroupPath,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// Where a figure is found: controller and file of version 1, file of
/// version 2, and the name of the line if the file has several.
struct Figure {
    what: &'static str,
    controller: &'static str,
    file: (&'static str, Option<&'static str>),
    unified: (&'static str, Option<&'static str>),
}

const MEMORY: Figure = Figure {
    what: "the memory",
    controller: "memory",
    file: ("memory.usage_in_bytes", None),
    unified: ("memory.current", None),
};

const OWN_MEMORY: Figure = Figure {
    what: "the anonymous memory",
    controller: "memory",
    file: ("memory.stat", Some("total_rss")),
    unified: ("memory.stat", Some("anon")),
};

const CPU: Figure = Figure {
    what: "the CPU time",
    controller: "cpuacct",
    file: ("cpuacct.usage", None),
    unified: ("cpu.stat", Some("usage_usec")),
};

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
        read().map_err(self.failed("the processes"))
    }

    /// All memory that it and those below are charged for, page cache
    /// included.
    pub fn memory_bytes(&self) -> Result<u64, ObserveCgroupError> {
        self.read(&MEMORY)
    }

    /// The anonymous part of that: memory of its own, without page cache.
    pub fn own_memory_bytes(&self) -> Result<u64, ObserveCgroupError> {
        self.read(&OWN_MEMORY)
    }

    /// CPU time that it and those below have used.
    pub fn cpu_usage(&self) -> Result<Duration, ObserveCgroupError> {
        let used = self.read(&CPU)?;
        Ok(match Hierarchy::host() {
            Hierarchy::V1(_) => Duration::from_nanos(used),
            Hierarchy::V2(_) => Duration::from_micros(used),
        })
    }

    fn read(&self, figure: &Figure) -> Result<u64, ObserveCgroupError> {
        let host = Hierarchy::host();
        let place = match host {
            Hierarchy::V1(_) => host
                .root_of(figure.controller)
                .map(|root| (root, figure.file)),
            Hierarchy::V2(root) => Some((root, figure.unified)),
        };
        let read = || {
            let (root, (file, line)) = place.ok_or(io::ErrorKind::Unsupported)?;
            let text = std::fs::read_to_string(root.join(self.path.as_path()).join(file))?;
            number(&text, line).ok_or_else(|| io::Error::other(format!("{file} has no such line")))
        };
        read().map_err(self.failed(figure.what))
    }

    fn failed(&self, what: &'static str) -> impl FnOnce(io::Error) -> ObserveCgroupError {
        let cgroup = self.path.clone();
        move |source| ObserveCgroupError {
            what,
            cgroup,
            source,
        }
    }
}

fn number(text: &str, line: Option<&str>) -> Option<u64> {
    let Some(name) = line else {
        return text.trim().parse().ok();
    };
    let mut pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs
        .find(|(found, _)| *found == name)?
        .1
        .trim()
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_the_whole_file_or_a_named_line() {
        assert_eq!(number("12\n", None), Some(12));
        let text = "rss 1\ntotal_rss 2\ntotal_rss_huge 3\n";
        assert_eq!(number(text, Some("total_rss")), Some(2));
        assert_eq!(number(text, Some("anon")), None);
    }
}
