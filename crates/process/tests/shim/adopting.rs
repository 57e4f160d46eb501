//! From a folder to what runs there.

use crate::place::{DEADLINE, Place, lives, stat, until};
use crate::program;
use neap_process::{Exit, last_exit};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

pub(crate) async fn outlives_its_starter_and_is_adopted() {
    let place = Place::new();
    let spec = place.shell("trap 'exit 5' TERM; echo ready; while :; do sleep 0.05; done");
    let beside = place.dir.with_extension("spec");
    std::fs::write(beside, serde_json::to_vec(&spec).unwrap()).unwrap();
    let mut starter = Command::new(program())
        .args(["starter", place.dir.as_str()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut started = String::new();
    BufReader::new(starter.stdout.take().unwrap())
        .read_line(&mut started)
        .unwrap();
    starter.kill().unwrap();
    starter.wait().unwrap();

    let child = place.adopt().unwrap();
    assert_eq!(child.pid().to_string(), started.trim());
    place.logged("ready").await;
    assert!(child.is_running());
    assert_eq!(last_exit(&place.dir), None);
    assert_eq!(child.stop(DEADLINE).await.unwrap(), Exit::Code(5));
    assert_eq!(last_exit(&place.dir).unwrap().exit, Exit::Code(5));
}

pub(crate) async fn does_not_remain_as_a_zombie_of_its_starter() {
    let place = Place::new();
    let child = place
        .start(&place.spec(&["/bin/sleep", "infinity"]))
        .await
        .unwrap();
    let shim = child.shim().pid;
    let own = format!("/proc/self/task/{}/children", std::process::id());
    assert_eq!(
        std::fs::read_to_string(own).unwrap(),
        "",
        "the starter has children"
    );
    assert_eq!(stat(child.pid(), 1), shim.to_string());
    let session = stat(shim, 3);
    assert_eq!(
        session,
        stat(shim, 2).as_str(),
        "the shim leads no session of its own"
    );
    assert_ne!(session, stat(std::process::id().try_into().unwrap(), 3));
    child.stop(DEADLINE).await.unwrap();
    assert!(!lives(shim));
    assert!(!lives(child.pid()));
}

pub(crate) async fn adopts_a_child_that_executed_another_program() {
    let place = Place::new();
    let child = place
        .start(&place.shell("exec sleep infinity"))
        .await
        .unwrap();
    let name = format!("/proc/{}/comm", child.pid());
    until("the other program", || {
        std::fs::read_to_string(&name).unwrap() == "sleep\n"
    })
    .await;
    assert_eq!(place.adopt().unwrap().identity(), child.identity());
}

pub(crate) async fn never_adopts_another_process_with_the_same_pid() {
    let place = Place::new();
    let child = place
        .start(&place.spec(&["/bin/sleep", "infinity"]))
        .await
        .unwrap();
    let path = place.dir.join("state.json");
    let genuine = std::fs::read(&path).unwrap();
    let forge = |change: &dyn Fn(&mut Value)| {
        let mut state: Value = serde_json::from_slice(&genuine).unwrap();
        change(&mut state);
        std::fs::write(&path, state.to_string()).unwrap();
    };
    let ticks = child.identity().start_ticks;

    forge(&|state| {
        state["shim"]["startTicks"] = json!(1);
        state["child"]["startTicks"] = json!(ticks + 1);
    });
    assert!(place.adopt().is_none(), "pids were used again");
    assert_eq!(last_exit(&place.dir).unwrap().exit, Exit::Unknown);

    forge(&|state| {
        state["shim"]["bootId"] = json!("b");
        state["child"]["bootId"] = json!("b");
    });
    assert!(place.adopt().is_none(), "the host was booted again");

    forge(&|state| {
        state["shim"]["commandLine"] = json!(["neap", "shim", "/elsewhere"]);
        state["child"]["pid"] = json!(std::process::id());
    });
    assert!(place.adopt().is_none(), "the command line is another's");

    // What is proven of one is not taken as a proof of the other.
    forge(&|state| state["child"]["pid"] = json!(std::process::id()));
    let half = place.adopt().unwrap();
    half.signal(neap_process::Signal::KILL).unwrap();
    assert!(half.is_running());

    std::fs::write(&path, &genuine).unwrap();
    assert_eq!(place.adopt().unwrap().identity(), child.identity());
    assert!(child.is_running());
}

pub(crate) async fn a_cut_off_state_file_proves_nothing() {
    let place = Place::new();
    let child = place
        .start(&place.spec(&["/bin/sleep", "infinity"]))
        .await
        .unwrap();
    let path = place.dir.join("state.json");
    let genuine = std::fs::read(&path).unwrap();
    std::fs::write(&path, &genuine[..genuine.len() / 2]).unwrap();
    assert!(place.adopt().is_none());
    assert_eq!(last_exit(&place.dir), None);
    std::fs::write(&path, &genuine).unwrap();
    assert_eq!(place.adopt().unwrap().identity(), child.identity());
}
