//! A folder for a test, in which nothing survives the test.

use crate::program;
use camino::{Utf8Path, Utf8PathBuf};
use neap_process::cgroup::{Cgroup, CgroupPath, Limits};
use neap_process::{ProcessSpec, Shims, Signal, StartProcessError, Supervised};
use std::time::Duration;

/// Longer than anything here takes.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

pub(crate) struct Place {
    folder: tempfile::TempDir,
    pub(crate) shims: Shims,
    pub(crate) dir: Utf8PathBuf,
    pub(crate) log: Utf8PathBuf,
    cgroup: Option<Cgroup>,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap();
        let (dir, log) = (path.join("child"), path.join("log/child.log"));
        Self {
            folder,
            shims: Shims::new(program()),
            dir,
            log,
            cgroup: None,
        }
    }

    /// A control group that goes with the place.
    pub(crate) fn cgroup(&mut self) -> CgroupPath {
        let name = self.folder.path().file_name().unwrap().to_str().unwrap();
        let path = CgroupPath::new(format!("neap-test{name}")).unwrap();
        self.cgroup = Some(Cgroup::ensure(&path, &Limits::default()).unwrap());
        path
    }

    pub(crate) fn path(&self) -> &Utf8Path {
        Utf8Path::from_path(self.folder.path()).unwrap()
    }

    pub(crate) fn spec(&self, argv: &[&str]) -> ProcessSpec {
        ProcessSpec::new(argv.iter().copied(), "/", &self.log)
    }

    /// A shell that finds the usual programs.
    pub(crate) fn shell(&self, script: &str) -> ProcessSpec {
        let mut spec = self.spec(&["/bin/sh", "-c", script]);
        spec.env.insert("PATH".into(), "/usr/bin:/bin".into());
        spec
    }

    pub(crate) async fn start(&self, spec: &ProcessSpec) -> Result<Supervised, StartProcessError> {
        self.shims.start(&self.dir, spec).await
    }

    pub(crate) fn adopt(&self) -> Option<Supervised> {
        self.shims.adopt(&self.dir).unwrap()
    }

    /// Waits for a line of the child.
    pub(crate) async fn logged(&self, line: &str) {
        until(&format!("the line {line:?}"), || {
            self.lines().iter().any(|found| found == line)
        })
        .await;
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Ok(Some(child)) = self.shims.adopt(&self.dir) {
            child.signal(Signal::KILL).ok();
            while child.is_running() {
                std::thread::yield_now();
            }
        }
        let Some(cgroup) = self.cgroup.take() else {
            return;
        };
        // The runtime that the test runs on cannot be waited on from here.
        let removal = std::thread::spawn(move || {
            crate::runtime().block_on(async {
                cgroup.kill_all().await.unwrap();
                cgroup.remove(DEADLINE).await.unwrap();
            });
        });
        if removal.join().is_err() {
            assert!(
                std::thread::panicking(),
                "the control group could not be removed"
            );
        }
    }
}

/// Waits for a condition.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    assert!(
        tokio::time::timeout(DEADLINE, waiting).await.is_ok(),
        "{what} did not come"
    );
}

/// Whether a process lives. When init takes away the dead is its own affair.
pub(crate) fn lives(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// A field of `/proc/PID/stat` behind the name; the first is the state.
pub(crate) fn stat(pid: i32, field: usize) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(')')
        .unwrap()
        .1
        .split_ascii_whitespace()
        .nth(field)
        .unwrap()
        .to_owned()
}

/// Signals a process of which the test knows that it is one of its own.
pub(crate) fn kill(pid: i32, signal: Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal).unwrap();
}
