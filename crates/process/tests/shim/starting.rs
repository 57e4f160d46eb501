//! From a spec to a running program.

use crate::place::Place;
use neap_process::{Exit, StartProcessError, last_exit};
use rustix::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;

pub(crate) async fn records_the_exit_code() {
    let place = Place::new();
    assert_eq!(last_exit(&place.dir), None);
    let child = place
        .start(&place.shell("echo out; echo err >&2; exit 7"))
        .await
        .unwrap();
    assert_eq!(child.ended().await, Exit::Code(7));
    assert_eq!(child.ended().await, Exit::Code(7));
    assert!(!child.is_running());
    let last = last_exit(&place.dir).unwrap();
    assert_eq!(last.exit, Exit::Code(7));
    assert!(last.at >= child.since());
    assert_eq!(place.lines(), ["out", "err"]);
    assert!(place.adopt().is_none());

    let mode = |name: &str| {
        place
            .dir
            .join(name)
            .metadata()
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(mode(""), 0o700);
    for name in ["spec.json", "state.json", "exit.json", "shim.log"] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
    assert_eq!(
        std::fs::read_to_string(place.dir.join("shim.log")).unwrap(),
        ""
    );
}

pub(crate) async fn names_the_step_and_the_reason_of_a_failure() {
    let place = Place::new();
    let absent = "No such file or directory (os error 2)";
    let program = place.spec(&["/absent/program", "x"]);
    let mut folder = place.spec(&["/bin/true"]);
    folder.working_dir = "/absent/folder".into();
    let mut cgroup = place.spec(&["/bin/true"]);
    cgroup.cgroup = Some(neap_process::cgroup::CgroupPath::new("neap-absent/x").unwrap());
    let mut network = place.spec(&["/bin/true"]);
    network.network_namespace = Some("/bin/true".into());
    let cases = [
        (program, "execute /absent/program", absent),
        (folder, "enter the working directory /absent/folder", absent),
        (cgroup, "open the control group neap-absent/x", absent),
        (
            network,
            "enter the network namespace /bin/true",
            "Invalid argument (os error 22)",
        ),
        (
            place.spec(&[]),
            "find the program",
            "invalid input parameter",
        ),
    ];
    for (spec, expected, why) in cases {
        match place.start(&spec).await {
            Err(StartProcessError::Step { step, reason, .. }) => {
                assert_eq!((step.as_str(), reason.as_str()), (expected, why));
            }
            other => panic!("{expected}: {other:?}"),
        }
        assert!(place.adopt().is_none());
        assert_eq!(last_exit(&place.dir), None);
    }
}

pub(crate) async fn gives_the_child_exactly_its_environment_and_descriptors() {
    let place = Place::new();
    // Not closed on execution, as what a careless starter leaves behind.
    let left_open: OwnedFd = rustix::io::dup(std::fs::File::open("/bin/sh").unwrap()).unwrap();
    let mut spec = place.spec(&["/usr/bin/env"]);
    spec.env.insert("B".into(), "2 3".into());
    spec.env.insert("A".into(), "1".into());
    place.start(&spec).await.unwrap().ended().await;
    assert_eq!(place.lines(), ["A=1", "B=2 3"]);

    std::fs::remove_file(&place.log).unwrap();
    place
        .start(&place.spec(&["/bin/ls", "/proc/self/fd"]))
        .await
        .unwrap()
        .ended()
        .await;
    // The last one is the folder that is listed.
    assert_eq!(place.lines(), ["0", "1", "2", "3"]);
    drop(left_open);

    // A shell would clear what it inherited.
    std::fs::remove_file(&place.log).unwrap();
    let spec = place.spec(&["/bin/grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]);
    place.start(&spec).await.unwrap().ended().await;
    let none = ["SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000"];
    assert_eq!(place.lines(), none);

    std::fs::remove_file(&place.log).unwrap();
    let mut spec = place.shell("pwd; umask; cat");
    spec.working_dir = place.path().to_owned();
    let child = place.start(&spec).await.unwrap();
    assert_eq!(child.ended().await, Exit::Code(0));
    assert_eq!(place.lines(), [place.path().as_str(), "0022"]);
}

pub(crate) async fn refuses_to_start_what_runs_already() {
    let place = Place::new();
    let spec = place.spec(&["/bin/sleep", "infinity"]);
    let child = place.start(&spec).await.unwrap();
    let again = place.start(&spec).await;
    assert!(
        matches!(again, Err(StartProcessError::Running { .. })),
        "{again:?}"
    );
    assert!(child.is_running());
    assert_eq!(place.adopt().unwrap().identity(), child.identity());
}

pub(crate) async fn refuses_a_second_shim_even_without_its_state_file() {
    let place = Place::new();
    let spec = place.spec(&["/bin/sleep", "infinity"]);
    let child = place.start(&spec).await.unwrap();
    let (state, aside) = (place.dir.join("state.json"), place.dir.join("aside"));
    std::fs::rename(&state, &aside).unwrap();
    assert!(place.adopt().is_none());
    let again = place.start(&spec).await;
    assert!(
        matches!(again, Err(StartProcessError::Running { .. })),
        "{again:?}"
    );
    std::fs::rename(&aside, &state).unwrap();
    assert_eq!(place.adopt().unwrap().identity(), child.identity());
}

pub(crate) async fn starts_again_what_has_ended() {
    let place = Place::new();
    let first = place.start(&place.shell("exit 1")).await.unwrap();
    assert_eq!(first.ended().await, Exit::Code(1));
    let second = place
        .start(&place.spec(&["/bin/sleep", "infinity"]))
        .await
        .unwrap();
    assert_eq!(last_exit(&place.dir), None);
    assert_ne!(first.identity(), second.identity());
    // The record of the first run is gone, and is not taken from the second.
    second.stop(crate::place::DEADLINE).await.unwrap();
    assert_eq!(first.ended().await, Exit::Unknown);
    assert_eq!(second.ended().await, Exit::Signal(15));
}
