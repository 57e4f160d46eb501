//! Control groups, for real. Needs root.

#![expect(clippy::unwrap_used, reason = "tests")]

use neap_process::cgroup::{Cgroup, CgroupPath, Limits, RemoveCgroupError};
use std::process::{Child, Command};
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(20);

/// A group of this test's own, which goes with it.
struct Group(Cgroup);

impl Group {
    fn new(name: &str, limits: &Limits) -> Self {
        let path = CgroupPath::new(format!("neap-test-{}/{name}", std::process::id())).unwrap();
        Self(Cgroup::ensure(&path, limits).unwrap())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let cgroup = self.0.clone();
        let removal = std::thread::spawn(move || {
            runtime().block_on(async {
                cgroup.kill_all().await.unwrap();
                cgroup.remove(DEADLINE).await.unwrap();
            });
            // The parent is shared by the tests of this program: the last one
            // removes it.
            for folder in Cgroup::at(&CgroupPath::new(parent()).unwrap()).folders() {
                std::fs::remove_dir(folder).ok();
            }
        });
        if removal.join().is_err() {
            assert!(
                std::thread::panicking(),
                "the control group could not be removed"
            );
        }
    }
}

fn parent() -> String {
    format!("neap-test-{}", std::process::id())
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// What a file of the group holds, by its name in version 1 or 2.
fn setting(cgroup: &Cgroup, names: [&str; 2]) -> String {
    let files = cgroup
        .folders()
        .into_iter()
        .flat_map(|folder| names.map(|name| folder.join(name)));
    let file = files.into_iter().find(|file| file.exists()).unwrap();
    std::fs::read_to_string(file).unwrap().trim().to_owned()
}

/// A process in a group, and in all groups below that are named.
fn member(cgroup: &Cgroup) -> Child {
    let child = Command::new("/bin/sleep").arg("infinity").spawn().unwrap();
    for folder in cgroup.folders() {
        std::fs::write(folder.join("cgroup.procs"), child.id().to_string()).unwrap();
    }
    child
}

#[test]
fn limits_are_written_and_taken_back() {
    let limits = Limits {
        cpu_milli: Some(1500),
        memory_bytes: Some(64 << 20),
        pids: Some(77),
    };
    let group = Group::new("limits", &limits);
    let cpu = setting(&group.0, ["cpu.cfs_quota_us", "cpu.max"]);
    assert!(["150000", "150000 100000"].contains(&cpu.as_str()), "{cpu}");
    let memory = setting(&group.0, ["memory.limit_in_bytes", "memory.max"]);
    assert_eq!(memory, (64 << 20).to_string());
    assert_eq!(setting(&group.0, ["pids.max", "pids.max"]), "77");

    Cgroup::ensure(group.0.path(), &Limits::default()).unwrap();
    assert_eq!(setting(&group.0, ["pids.max", "pids.max"]), "max");
    assert_ne!(
        setting(&group.0, ["memory.limit_in_bytes", "memory.max"]),
        memory
    );
}

#[test]
fn a_process_limit_holds() {
    let group = Group::new(
        "pids",
        &Limits {
            pids: Some(1),
            ..Limits::default()
        },
    );
    let mut shell = Command::new("/bin/sh")
        .args(["-c", "read go; /bin/true && echo forked"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    for folder in group.0.folders() {
        std::fs::write(folder.join("cgroup.procs"), shell.id().to_string()).unwrap();
    }
    drop(shell.stdin.take());
    assert_eq!(shell.wait_with_output().unwrap().stdout, b"");
}

#[test]
fn a_group_deep_down_takes_processes() {
    let group = Group::new("deep/er/est", &Limits::default());
    let mut child = member(&group.0);
    let pid = i32::try_from(child.id()).unwrap();
    assert_eq!(group.0.pids().unwrap(), [pid]);
    let above = Cgroup::at(&CgroupPath::new(format!("{}/deep", parent())).unwrap());
    assert_eq!(above.pids().unwrap(), [pid]);
    child.kill().unwrap();
    child.wait().unwrap();
    drop(group);
    runtime().block_on(above.remove(DEADLINE)).unwrap();
}

#[test]
fn killing_ends_all_below_and_nothing_else() {
    let group = Group::new("kill", &Limits::default());
    let below = Cgroup::ensure(&group.0.path().join("below").unwrap(), &Limits::default()).unwrap();
    let beside = Group::new("kill-not", &Limits::default());
    // Version 2 has no processes beside groups with controllers.
    let (mut inside, mut outside) = (member(&below), member(&beside.0));
    let reaper = std::thread::spawn(move || inside.wait().unwrap());
    runtime().block_on(group.0.kill_all()).unwrap();
    assert!(!reaper.join().unwrap().success());
    assert_eq!(group.0.pids().unwrap(), [0; 0]);
    assert!(outside.try_wait().unwrap().is_none());
    outside.kill().unwrap();
    outside.wait().unwrap();
}

#[test]
fn what_is_frozen_is_killed_too() {
    let group = Group::new("frozen", &Limits::default());
    let mut child = member(&group.0);
    for folder in group.0.folders() {
        for (name, text) in [("freezer.state", "FROZEN"), ("cgroup.freeze", "1")] {
            if folder.join(name).exists() {
                std::fs::write(folder.join(name), text).unwrap();
            }
        }
    }
    let reaper = std::thread::spawn(move || child.wait().unwrap());
    runtime().block_on(group.0.kill_all()).unwrap();
    assert!(!reaper.join().unwrap().success());
}

#[test]
fn removal_leaves_nothing_of_a_tree() {
    let group = Group::new("tree", &Limits::default());
    for folder in group.0.folders() {
        // As a kubelet makes them, each in its own way.
        std::fs::create_dir_all(folder.join("kubepods/burstable/pod1/container")).unwrap();
        std::fs::create_dir_all(folder.join("kubepods/besteffort")).unwrap();
    }
    runtime().block_on(group.0.remove(DEADLINE)).unwrap();
    assert!(!group.0.exists());
    runtime().block_on(group.0.remove(DEADLINE)).unwrap();
}

#[test]
fn removal_names_what_is_left() {
    let group = Group::new("busy", &Limits::default());
    let below = Cgroup::ensure(&group.0.path().join("a").unwrap(), &Limits::default()).unwrap();
    let mut child = member(&below);
    let Err(RemoveCgroupError::Left { left }) = runtime().block_on(group.0.remove(Duration::ZERO))
    else {
        panic!("a busy group was removed");
    };
    for folder in below.folders() {
        assert!(left.contains(&folder), "{left:?}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}
