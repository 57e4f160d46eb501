//! What becomes of a child's output.

use crate::place::Place;
use neap_process::{Exit, older};

pub(crate) async fn a_log_is_turned_before_it_is_too_large_and_loses_no_line() {
    let place = Place::new();
    let mut spec = place.shell("i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done");
    spec.log_limit = 20_000;
    let child = place.start(&spec).await.unwrap();
    assert_eq!(child.ended().await, Exit::Code(0));
    let older = std::fs::read_to_string(older(&place.log)).unwrap();
    let newer = std::fs::read_to_string(&place.log).unwrap();
    assert!(older.len() <= 20_000 && newer.len() <= 20_000);
    let kept: Vec<String> = older
        .lines()
        .chain(newer.lines())
        .map(str::to_owned)
        .collect();
    let expected: Vec<String> = (3000 - kept.len()..3000)
        .map(|number| format!("line {number}"))
        .collect();
    assert!(kept.len() > 1000, "{}", kept.len());
    assert_eq!(kept, expected);
    let files = place.log.parent().unwrap().read_dir_utf8().unwrap().count();
    assert_eq!(files, 2);
}

pub(crate) async fn a_child_without_output_or_with_a_full_disk_lives_on() {
    let place = Place::new();
    let script = "exec >&- 2>&-; sleep 0.1; exit 5";
    let child = place.start(&place.shell(script)).await.unwrap();
    assert_eq!(child.ended().await, Exit::Code(5));

    std::fs::remove_file(&place.log).unwrap();
    std::os::unix::fs::symlink("/dev/full", &place.log).unwrap();
    let script = "head -c 1000000 /dev/zero; exit 6";
    let child = place.start(&place.shell(script)).await.unwrap();
    assert_eq!(child.ended().await, Exit::Code(6));
}
