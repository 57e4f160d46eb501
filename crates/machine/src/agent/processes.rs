//! Which of the node's programs are to run, and when one that died is started
//! again. Pure: time is an argument, pids come from outside.

use std::collections::BTreeMap;
use std::time::Duration;

/// First wait after a program died.
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// Longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// A program that ran this long has not failed in a row.
const HEALTHY: Duration = Duration::from_secs(30);

/// A program that the agent keeps running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Program {
    /// Runs containers.
    Containerd,
    /// Runs pods.
    Kubelet,
    /// Makes Services reachable.
    KubeProxy,
}

impl Program {
    /// All, in the order of their start.
    pub(crate) const ALL: [Self; 3] = [Self::Containerd, Self::Kubelet, Self::KubeProxy];

    /// Its name, also of its log.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Containerd => "containerd",
            Self::Kubelet => "kubelet",
            Self::KubeProxy => "kube-proxy",
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Entry {
    wanted: bool,
    /// Its end is asked for, so that it is started anew.
    restarting: bool,
    pid: Option<i32>,
    started: Duration,
    failures: u32,
    not_before: Duration,
}

/// The state of all programs.
#[derive(Clone, Debug)]
pub(crate) struct Processes {
    entries: BTreeMap<Program, Entry>,
}

impl Default for Processes {
    fn default() -> Self {
        Self {
            entries: Program::ALL
                .into_iter()
                .map(|program| (program, Entry::default()))
                .collect(),
        }
    }
}

impl Processes {
    fn entry(&mut self, program: Program) -> &mut Entry {
        self.entries.entry(program).or_default()
    }

    /// It is to run from now on, at once even after failures.
    pub(crate) fn want(&mut self, program: Program) {
        let entry = self.entry(program);
        if !entry.wanted {
            *entry = Entry {
                wanted: true,
                pid: entry.pid,
                started: entry.started,
                ..Entry::default()
            };
        }
    }

    /// It is not to run any more; ending it is up to the caller.
    pub(crate) fn unwant(&mut self, program: Program) {
        let entry = self.entry(program);
        entry.wanted = false;
        entry.restarting = false;
    }

    /// The end that the caller asks of it is no failure: it is started anew at
    /// once. Returns its pid, if it is wanted and runs.
    pub(crate) fn restart(&mut self, program: Program) -> Option<i32> {
        let entry = self.entry(program);
        let pid = entry.pid.filter(|_| entry.wanted)?;
        entry.restarting = true;
        Some(pid)
    }

    /// What is to be started now.
    pub(crate) fn due(&self, now: Duration) -> Vec<Program> {
        self.waiting()
            .filter(|(_, entry)| entry.not_before <= now)
            .map(|(program, _)| program)
            .collect()
    }

    /// When something is to be started next.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.waiting().map(|(_, entry)| entry.not_before).min()
    }

    fn waiting(&self) -> impl Iterator<Item = (Program, &Entry)> {
        self.entries
            .iter()
            .filter(|(_, entry)| entry.wanted && entry.pid.is_none())
            .map(|(key, entry)| (*key, entry))
    }

    /// It was started.
    pub(crate) fn started(&mut self, program: Program, pid: i32, now: Duration) {
        let entry = self.entry(program);
        entry.pid = Some(pid);
        entry.started = now;
    }

    /// It could not be started; counts like a death.
    pub(crate) fn start_failed(&mut self, program: Program, now: Duration) {
        let entry = self.entry(program);
        entry.pid = None;
        entry.failures = entry.failures.saturating_add(1);
        let factor = 1_u32
            .checked_shl(entry.failures.saturating_sub(1))
            .unwrap_or(u32::MAX);
        entry.not_before = now + FIRST_WAIT.saturating_mul(factor).min(LONGEST_WAIT);
    }

    /// A process ended; the program whose it was, if one's.
    pub(crate) fn ended(&mut self, pid: i32, now: Duration) -> Option<Program> {
        let program = *self
            .entries
            .iter()
            .find(|(_, entry)| entry.pid == Some(pid))?
            .0;
        let entry = self.entry(program);
        if now.saturating_sub(entry.started) >= HEALTHY {
            entry.failures = 0;
        }
        if entry.wanted && !entry.restarting {
            self.start_failed(program, now);
        } else {
            entry.pid = None;
            entry.restarting = false;
            entry.not_before = Duration::ZERO;
        }
        Some(program)
    }

    /// Its pid while it runs.
    pub(crate) fn pid(&self, program: Program) -> Option<i32> {
        self.entries.get(&program)?.pid
    }

    /// What runs, for people.
    pub(crate) fn report(&self) -> BTreeMap<String, String> {
        let state = |entry: &Entry| match (entry.pid, entry.wanted) {
            (Some(pid), _) => format!("running as {pid}"),
            (None, true) => format!("to be started, {} failures", entry.failures),
            (None, false) => "stopped".to_owned(),
        };
        self.entries
            .iter()
            .map(|(program, entry)| (program.name().to_owned(), state(entry)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Program::{Containerd, Kubelet};

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn what_is_wanted_is_started_at_once() {
        let mut processes = Processes::default();
        assert_eq!(processes.due(at(0)), []);
        processes.want(Containerd);
        assert_eq!(processes.due(at(0)), [Containerd]);
        processes.started(Containerd, 7, at(0));
        assert_eq!(processes.due(at(0)), []);
        assert_eq!(processes.next_due(), None);
    }

    #[test]
    fn what_dies_again_and_again_waits_longer() {
        let mut processes = Processes::default();
        processes.want(Kubelet);
        let mut now = at(0);
        let mut waits = Vec::new();
        for pid in 1..=8 {
            processes.started(Kubelet, pid, now);
            assert_eq!(processes.ended(pid, now), Some(Kubelet));
            let next = processes.next_due().unwrap_or_default();
            waits.push((next - now).as_millis());
            now = next;
        }
        assert_eq!(waits, [200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
    }

    #[test]
    fn a_long_run_clears_earlier_failures() {
        let mut processes = Processes::default();
        processes.want(Kubelet);
        for pid in 1..=5 {
            processes.started(Kubelet, pid, at(0));
            processes.ended(pid, at(0));
        }
        processes.started(Kubelet, 6, at(10_000));
        processes.ended(6, at(50_000));
        assert_eq!(processes.next_due(), Some(at(50_200)));
    }

    #[test]
    fn a_stopped_kubelet_stays_stopped_until_it_is_wanted_again() {
        let mut processes = Processes::default();
        processes.want(Kubelet);
        processes.started(Kubelet, 3, at(0));
        processes.unwant(Kubelet);
        assert_eq!(processes.pid(Kubelet), Some(3));
        assert_eq!(processes.ended(3, at(10)), Some(Kubelet));
        assert_eq!(processes.due(at(1_000_000)), []);
        processes.want(Kubelet);
        assert_eq!(processes.due(at(20)), [Kubelet]);
    }

    #[test]
    fn stopping_what_waits_for_its_restart_cancels_the_restart() {
        let mut processes = Processes::default();
        processes.want(Kubelet);
        processes.started(Kubelet, 3, at(0));
        processes.ended(3, at(0));
        processes.unwant(Kubelet);
        assert_eq!(processes.next_due(), None);
    }

    #[test]
    fn a_restart_that_was_asked_for_is_no_failure_and_does_not_wait() {
        let mut processes = Processes::default();
        assert_eq!(processes.restart(Kubelet), None);
        processes.want(Kubelet);
        processes.started(Kubelet, 3, at(0));
        assert_eq!(processes.restart(Kubelet), Some(3));
        assert_eq!(processes.due(at(1)), []);
        processes.ended(3, at(10));
        assert_eq!(processes.due(at(10)), [Kubelet]);
        // The next end is an ordinary one.
        processes.started(Kubelet, 4, at(10));
        processes.ended(4, at(20));
        assert_eq!(processes.next_due(), Some(at(220)));
        // What is not to run is not started anew.
        processes.started(Kubelet, 5, at(300));
        processes.restart(Kubelet);
        processes.unwant(Kubelet);
        processes.ended(5, at(310));
        assert_eq!(processes.next_due(), None);
    }

    #[test]
    fn an_orphan_belongs_to_no_program() {
        let mut processes = Processes::default();
        processes.want(Kubelet);
        processes.started(Kubelet, 3, at(0));
        assert_eq!(processes.ended(99, at(1)), None);
        assert_eq!(processes.pid(Kubelet), Some(3));
    }
}
