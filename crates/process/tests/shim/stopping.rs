//! Ends, asked for and not.

use crate::place::{DEADLINE, Place, kill, lives, until};
use neap_process::cgroup::Cgroup;
use neap_process::{Exit, Namespace, Signal, last_exit};
use std::time::Duration;

pub(crate) async fn stop_asks_first() {
    let mut place = Place::new();
    let mut spec = place.shell("trap 'exit 3' TERM; sleep infinity & echo ready; wait");
    let cgroup = place.cgroup();
    spec.cgroup = Some(cgroup.clone());
    let child = place.start(&spec).await.unwrap();
    place.logged("ready").await;
    assert_eq!(child.stop(DEADLINE).await.unwrap(), Exit::Code(3));
    // What it left behind is gone as well.
    assert_eq!(Cgroup::at(&cgroup).pids().unwrap(), [0; 0]);
    // A stop of what has ended says how it ended.
    assert_eq!(child.stop(Duration::ZERO).await.unwrap(), Exit::Code(3));
}

pub(crate) async fn stop_kills_what_does_not_heed_and_all_it_started() {
    let mut place = Place::new();
    let mut spec = place.shell("trap '' TERM; setsid sleep infinity & echo ready; wait");
    let cgroup = place.cgroup();
    spec.cgroup = Some(cgroup.clone());
    let child = place.start(&spec).await.unwrap();
    place.logged("ready").await;
    let group = Cgroup::at(&cgroup);
    until("the second process", || group.pids().unwrap().len() == 2).await;
    assert_eq!(
        child.stop(Duration::from_millis(20)).await.unwrap(),
        Exit::Signal(9)
    );
    assert_eq!(group.pids().unwrap(), [0; 0]);
    assert_eq!(last_exit(&place.dir).unwrap().exit, Exit::Signal(9));
}

pub(crate) async fn a_child_dies_with_its_shim() {
    let place = Place::new();
    for namespaces in [vec![], vec![Namespace::Pid]] {
        let mut spec = place.spec(&["/bin/sleep", "infinity"]);
        spec.namespaces = namespaces.into_iter().collect();
        let child = place.start(&spec).await.unwrap();
        kill(child.shim().pid, Signal::KILL);
        assert_eq!(child.ended().await, Exit::Unknown);
        assert!(!lives(child.pid()));
        assert!(place.adopt().is_none());
        assert_eq!(last_exit(&place.dir).unwrap().exit, Exit::Unknown);
    }
}

pub(crate) async fn a_shim_that_hangs_is_no_way_to_live_on() {
    let place = Place::new();
    let child = place
        .start(&place.shell("echo ready; sleep infinity"))
        .await
        .unwrap();
    place.logged("ready").await;
    kill(child.shim().pid, Signal::STOP);
    let stopped = child.stop(Duration::ZERO).await.unwrap();
    assert_eq!(stopped, Exit::Unknown);
    assert!(!child.is_running());
    assert!(place.adopt().is_none());

    // Also where it is only looked at, by one who comes later.
    let child = place
        .start(&place.spec(&["/bin/sleep", "infinity"]))
        .await
        .unwrap();
    kill(child.shim().pid, Signal::STOP);
    kill(child.pid(), Signal::KILL);
    let later = place.adopt().unwrap();
    until("the end of the shim", || !later.is_running()).await;
    assert!(place.adopt().is_none());
}

pub(crate) async fn a_signal_to_the_shim_reaches_the_child() {
    let place = Place::new();
    let script = "trap 'echo hup' HUP; trap 'exit 4' TERM; echo ready; \
                  while :; do sleep 0.02; done";
    let child = place.start(&place.shell(script)).await.unwrap();
    place.logged("ready").await;
    kill(child.shim().pid, Signal::HUP);
    place.logged("hup").await;
    kill(child.shim().pid, Signal::TERM);
    assert_eq!(child.ended().await, Exit::Code(4));
}
