//! Namespaces and control groups.

#![expect(unsafe_code, reason = "a network namespace is made on a thread")]

use crate::place::{Place, lives, until};
use neap_process::cgroup::Cgroup;
use neap_process::{Exit, Namespace, Signal};
use rustix::thread::{UnshareFlags, gettid, unshare_unsafe};
use std::sync::mpsc;

pub(crate) async fn the_first_process_of_a_namespace_takes_its_tree_along() {
    let place = Place::new();
    let mut spec = place.shell("setsid sleep infinity & echo pid $$; wait");
    spec.namespaces.insert(Namespace::Pid);
    let child = place.start(&spec).await.unwrap();
    place.logged("pid 1").await;
    let path = format!("/proc/{0}/task/{0}/children", child.pid());
    let children = || std::fs::read_to_string(&path).unwrap();
    until("the second process", || !children().is_empty()).await;
    let second: i32 = children().trim().parse().unwrap();
    assert!(lives(second));
    child.signal(Signal::KILL).unwrap();
    assert_eq!(child.ended().await, Exit::Signal(9));
    assert!(!lives(second));
}

pub(crate) async fn has_the_namespaces_it_was_given() {
    let place = Place::new();
    let (said, heard) = mpsc::channel();
    let (done, wait) = mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        // SAFETY: Descriptors stay shared with all threads.
        unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.unwrap();
        said.send(gettid().as_raw_nonzero().get()).unwrap();
        wait.recv().ok();
    });
    let network = format!(
        "/proc/{}/task/{}/ns/net",
        std::process::id(),
        heard.recv().unwrap()
    );
    let name = |path: &str| {
        std::fs::read_link(path)
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned()
    };

    let kinds = ["net", "mnt", "uts", "ipc", "cgroup"];
    let mut spec =
        place.shell("cd /proc/self/ns; for n in net mnt uts ipc cgroup; do readlink $n; done");
    spec.network_namespace = Some(network.clone().into());
    spec.namespaces = [
        Namespace::Mount,
        Namespace::Uts,
        Namespace::Ipc,
        Namespace::Cgroup,
    ]
    .into();
    let child = place.start(&spec).await.unwrap();
    assert_eq!(child.ended().await, Exit::Code(0));
    let inside = place.lines();
    assert_eq!(inside[0], name(&network));
    for (kind, inside) in kinds.iter().zip(&inside) {
        assert!(inside.starts_with(kind), "{inside}");
        assert_ne!(*inside, name(&format!("/proc/self/ns/{kind}")), "{kind}");
    }
    drop(done);
    thread.join().unwrap();

    std::fs::remove_file(&place.log).unwrap();
    let child = place
        .start(&place.shell("readlink /proc/self/ns/mnt"))
        .await
        .unwrap();
    child.ended().await;
    assert_eq!(place.lines(), [name("/proc/self/ns/mnt")]);
}

pub(crate) async fn joins_its_control_group() {
    let mut place = Place::new();
    let mut spec = place.shell("cat /proc/self/cgroup; exec sleep infinity");
    let cgroup = place.cgroup();
    spec.cgroup = Some(cgroup.clone());
    // Its own group is then the root of what it sees.
    spec.namespaces.insert(Namespace::Cgroup);
    let child = place.start(&spec).await.unwrap();
    until("its groups", || !place.lines().is_empty()).await;
    until("itself", || {
        Cgroup::at(&cgroup).pids().unwrap() == [child.pid()]
    })
    .await;
    let folders = Cgroup::at(&cgroup).folders();
    assert!(!folders.is_empty());
    let own = std::fs::read_to_string(format!("/proc/{}/cgroup", child.pid())).unwrap();
    let joined = own
        .lines()
        .filter(|line| line.ends_with(&format!(":/{cgroup}")))
        .count();
    assert_eq!(joined, folders.len());
    let roots = place
        .lines()
        .iter()
        .filter(|line| line.ends_with(":/"))
        .count();
    assert!(roots >= folders.len(), "{:?}", place.lines());
    assert!(
        !Cgroup::at(&cgroup)
            .pids()
            .unwrap()
            .contains(&child.shim().pid)
    );
}

pub(crate) async fn mounts_do_not_reach_the_host() {
    let place = Place::new();
    let mounted = place.path().join("mounted");
    std::fs::create_dir(&mounted).unwrap();
    let script = format!(
        "mount -t tmpfs none {mounted} && touch {mounted}/inside && echo done; exec sleep infinity"
    );
    let mut spec = place.shell(&script);
    spec.namespaces.insert(Namespace::Mount);
    place.start(&spec).await.unwrap();
    place.logged("done").await;
    assert!(!mounted.join("inside").exists());
}
