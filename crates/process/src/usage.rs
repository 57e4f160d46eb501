//! What a single process uses.

use crate::identity::stat_field;
use std::io;
use std::time::Duration;

/// Memory and CPU time of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessUsage {
    /// Memory of its own (anonymous), without files that it maps.
    pub own_memory_bytes: u64,
    /// All resident memory.
    pub memory_bytes: u64,
    /// CPU time since it started, with threads that have ended; in steps of
    /// a clock tick.
    pub cpu: Duration,
}

/// The usage of a process could not be read.
#[derive(Debug, thiserror::Error)]
#[error("failed to read the usage of process {pid}")]
pub struct ObserveUsageError {
    /// Its pid.
    pub pid: i32,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// What this process uses now.
pub fn observe_process(pid: i32) -> Result<ProcessUsage, ObserveUsageError> {
    let read = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        Ok(ProcessUsage {
            // A process that has ended has no memory, and no such lines.
            own_memory_bytes: status_bytes(&status, "RssAnon:").unwrap_or(0),
            memory_bytes: status_bytes(&status, "VmRSS:").unwrap_or(0),
            cpu: cpu(&stat).ok_or_else(|| io::Error::other("unexpected stat line"))?,
        })
    };
    read().map_err(|source| ObserveUsageError { pid, source })
}

fn status_bytes(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    kib.checked_mul(1024)
}

fn cpu(stat: &str) -> Option<Duration> {
    let ticks = stat_field(stat, 14)?.checked_add(stat_field(stat, 15)?)?;
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Some(Duration::from_nanos(
        ticks.checked_mul(1_000_000_000 / per_second)?,
    ))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn status_lines_are_read_as_bytes() {
        let status = "Name:\tx\nVmRSS:\t    2048 kB\nRssAnon:\t      12 kB\n";
        assert_eq!(status_bytes(status, "VmRSS:"), Some(2048 * 1024));
        assert_eq!(status_bytes(status, "RssAnon:"), Some(12 * 1024));
        assert_eq!(status_bytes(status, "RssFile:"), None);
    }

    #[test]
    fn own_memory_is_a_part_of_resident_memory() {
        let usage = observe_process(i32::try_from(std::process::id()).unwrap()).unwrap();
        assert!(usage.own_memory_bytes > 0);
        assert!(usage.memory_bytes > usage.own_memory_bytes);
    }

    #[test]
    fn a_process_that_is_not_there_is_an_error() {
        assert_eq!(observe_process(-7).unwrap_err().pid, -7);
    }
}
