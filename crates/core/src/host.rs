//! Whether a host can carry clusters: what is enough of each thing, and what
//! to do where it is not.

use jiff::SignedDuration;
use serde::Serialize;

/// inotify instances of root that are enough for hundreds of nodes: a control
/// plane needs about eleven and a node about nine.
pub const INOTIFY_INSTANCES: u64 = 8192;
/// inotify watches that are enough for as many.
const INOTIFY_WATCHES: u64 = 65_536;
/// Keys of root: each container of each node takes one.
const ROOT_KEYS: u64 = 10_000;
/// Processes and threads: a node has some 150, a control plane some 20.
const PIDS: u64 = 32_768;
/// With fewer not even a few nodes can start.
const LEAST_PIDS: u64 = 4096;
/// Open files that neap asks the kernel for.
pub const OPEN_FILES: u64 = 16_384;
/// Room that a distro, a few clusters and their images take, in bytes.
const FREE_DISK: u64 = 10 << 30;
/// With less the stores of clusters are in danger, in bytes.
const LEAST_DISK: u64 = 1 << 30;
/// Memory for a few clusters with their nodes, in bytes.
const FREE_MEMORY: u64 = 2 << 30;
/// With less the hub and one cluster do not start, in bytes.
const LEAST_MEMORY: u64 = 512 << 20;
/// What a write that reaches the disk may take: each change in an API waits
/// for one.
const QUICK_SYNC: SignedDuration = SignedDuration::from_millis(10);

/// One thing of a host, as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostFact {
    /// Limit on inotify instances of one user.
    InotifyInstances(u64),
    /// Limit on inotify watches of one user.
    InotifyWatches(u64),
    /// Limit on keys of root.
    RootKeys(u64),
    /// Limit on processes and threads.
    Pids(u64),
    /// Highest limit on open files that this process may ask for.
    OpenFiles(u64),
    /// Free bytes where the data lies.
    FreeDisk(u64),
    /// Free bytes of memory.
    FreeMemory(u64),
    /// Median time of a small write that reaches the disk.
    Sync(SignedDuration),
    /// `/dev/kvm` can be opened.
    Kvm(bool),
}

/// Whether something is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It is.
    Ok,
    /// It works, and will get in the way.
    Warn,
    /// It does not work.
    Fail,
}

/// What was found of one thing, and the way out where it is not enough.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub check: &'static str,
    /// Whether it is enough.
    pub verdict: Verdict,
    /// As it is, for people.
    pub found: String,
    /// What to do; none where nothing is to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl HostFact {
    /// What it is called.
    pub fn check(self) -> &'static str {
        match self {
            Self::InotifyInstances(_) => "inotify instances",
            Self::InotifyWatches(_) => "inotify watches",
            Self::RootKeys(_) => "keys of root",
            Self::Pids(_) => "processes",
            Self::OpenFiles(_) => "open files",
            Self::FreeDisk(_) => "free disk",
            Self::FreeMemory(_) => "free memory",
            Self::Sync(_) => "disk speed",
            Self::Kvm(_) => "KVM",
        }
    }

    /// Judges it.
    pub fn judge(self) -> Finding {
        let (verdict, found, remedy) = match self {
            Self::InotifyInstances(number) => (
                at_least(number, INOTIFY_INSTANCES, 0),
                format!("{number} for each user"),
                format!(
                    "`neap serve` raises it; where it may not: sysctl -w fs.inotify.max_user_instances={INOTIFY_INSTANCES}"
                ),
            ),
            Self::InotifyWatches(number) => (
                at_least(number, INOTIFY_WATCHES, 0),
                format!("{number} for each user"),
                format!("sysctl -w fs.inotify.max_user_watches={INOTIFY_WATCHES}"),
            ),
            Self::RootKeys(number) => (
                at_least(number, ROOT_KEYS, 0),
                format!("{number}, one for each container"),
                "sysctl -w kernel.keys.root_maxkeys=1000000 kernel.keys.root_maxbytes=25000000"
                    .into(),
            ),
            Self::Pids(number) => (
                at_least(number, PIDS, LEAST_PIDS),
                format!("{number} on this host"),
                "sysctl -w kernel.pid_max=4194304".into(),
            ),
            Self::OpenFiles(number) => (
                at_least(number, OPEN_FILES, 0),
                format!("{number} for each process"),
                format!("raise LimitNOFILE of its unit, or the hard limit, to {OPEN_FILES}"),
            ),
            Self::FreeDisk(bytes) => (
                at_least(bytes, FREE_DISK, LEAST_DISK),
                mebibytes(bytes),
                "free space, or lay the data elsewhere with --data-dir".into(),
            ),
            Self::FreeMemory(bytes) => (
                at_least(bytes, FREE_MEMORY, LEAST_MEMORY),
                mebibytes(bytes),
                "a cluster takes some 130 MiB, a node the memory of its class at most".into(),
            ),
            Self::Sync(took) => (
                if took <= QUICK_SYNC {
                    Verdict::Ok
                } else {
                    Verdict::Warn
                },
                format!("a write reaches it in {:.1} ms", took.as_secs_f64() * 1e3),
                "each change in an API waits as long: lay the data on a faster disk with --data-dir"
                    .into(),
            ),
            // Container nodes do without.
            Self::Kvm(there) => (
                Verdict::Ok,
                if there { "can be used" } else { "cannot be used; container nodes do without" }.into(),
                String::new(),
            ),
        };
        Finding {
            check: self.check(),
            verdict,
            found,
            remedy: (verdict != Verdict::Ok).then_some(remedy),
        }
    }
}

/// Enough from `enough` on, too little below `least`.
fn at_least(number: u64, enough: u64, least: u64) -> Verdict {
    if number >= enough {
        Verdict::Ok
    } else if number >= least {
        Verdict::Warn
    } else {
        Verdict::Fail
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_is_judged_at_its_edge() {
        use HostFact::*;
        use Verdict::{Fail, Ok, Warn};
        let ms = SignedDuration::from_millis;
        let table = [
            (InotifyInstances(8192), Ok),
            (InotifyInstances(128), Warn),
            (InotifyWatches(65_536), Ok),
            (InotifyWatches(65_535), Warn),
            (RootKeys(1_000_000), Ok),
            (RootKeys(200), Warn),
            (Pids(32_768), Ok),
            (Pids(32_767), Warn),
            (Pids(4095), Fail),
            (OpenFiles(16_384), Ok),
            (OpenFiles(1024), Warn),
            (FreeDisk(10 << 30), Ok),
            (FreeDisk((10 << 30) - 1), Warn),
            (FreeDisk((1 << 30) - 1), Fail),
            (FreeMemory(2 << 30), Ok),
            (FreeMemory(512 << 20), Warn),
            (FreeMemory((512 << 20) - 1), Fail),
            (Sync(ms(10)), Ok),
            (Sync(ms(11)), Warn),
            (Kvm(true), Ok),
            (Kvm(false), Ok),
        ];
        for (fact, verdict) in table {
            let finding = fact.judge();
            assert_eq!(finding.verdict, verdict, "{fact:?}");
            assert_eq!(finding.remedy.is_some(), verdict != Ok, "{fact:?}");
        }
    }
}
