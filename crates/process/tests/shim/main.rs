//! Children under shims, for real. Needs root.
//!
//! This program is also its own shim and its own starter, which is why it has
//! no harness: a shim needs a process with a single thread.

#![expect(clippy::unwrap_used, reason = "tests")]

mod adopting;
mod isolating;
mod logging;
mod place;
mod starting;
mod stopping;

use camino::{Utf8Path, Utf8PathBuf};
use neap_process::{ProcessSpec, Shims, run_shim};
use std::io::{Read, Write};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::process::ExitCode;

type Test = (&'static str, fn() -> Pin<Box<dyn Future<Output = ()>>>);

/// Lists test functions with their names.
macro_rules! tests {
    ($($module:ident :: $name:ident),* $(,)?) => {
        [$((stringify!($name), || Box::pin($module::$name()))),*]
    };
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["shim", dir] => run_shim(Utf8Path::new(dir)),
        ["starter", dir] => starter(Utf8Path::new(dir)),
        [] => run_tests(None),
        _ => run_tests(arguments.iter().find(|word| !word.starts_with('-'))),
    }
}

fn program() -> Utf8PathBuf {
    std::env::current_exe().unwrap().try_into().unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// Starts what the spec beside the folder says, says so, and waits to die.
fn starter(dir: &Utf8Path) -> ExitCode {
    let spec = std::fs::read(dir.with_extension("spec")).unwrap();
    let spec: ProcessSpec = serde_json::from_slice(&spec).unwrap();
    let started = runtime().block_on(async { Shims::new(program()).start(dir, &spec).await });
    let mut out = std::io::stdout();
    writeln!(out, "{}", started.unwrap().pid()).unwrap();
    out.flush().unwrap();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    ExitCode::FAILURE
}

fn run_tests(filter: Option<&String>) -> ExitCode {
    let tests: [Test; 22] = tests![
        starting::records_the_exit_code,
        starting::names_the_step_and_the_reason_of_a_failure,
        starting::gives_the_child_exactly_its_environment_and_descriptors,
        starting::refuses_to_start_what_runs_already,
        starting::refuses_a_second_shim_even_without_its_state_file,
        starting::starts_again_what_has_ended,
        adopting::outlives_its_starter_and_is_adopted,
        adopting::does_not_remain_as_a_zombie_of_its_starter,
        adopting::adopts_a_child_that_executed_another_program,
        adopting::never_adopts_another_process_with_the_same_pid,
        adopting::a_cut_off_state_file_proves_nothing,
        stopping::stop_asks_first,
        stopping::stop_kills_what_does_not_heed_and_all_it_started,
        stopping::a_child_dies_with_its_shim,
        stopping::a_shim_that_hangs_is_no_way_to_live_on,
        stopping::a_signal_to_the_shim_reaches_the_child,
        isolating::the_first_process_of_a_namespace_takes_its_tree_along,
        isolating::has_the_namespaces_it_was_given,
        isolating::joins_its_control_group,
        isolating::mounts_do_not_reach_the_host,
        logging::a_log_is_turned_before_it_is_too_large_and_loses_no_line,
        logging::a_child_without_output_or_with_a_full_disk_lives_on,
    ];
    let mut failed = Vec::new();
    let mut out = std::io::stdout();
    for (name, test) in tests {
        if filter.is_some_and(|filter| !name.contains(filter.as_str())) {
            continue;
        }
        let run = AssertUnwindSafe(|| runtime().block_on(test()));
        let passed = std::panic::catch_unwind(run).is_ok();
        writeln!(
            out,
            "test {name} ... {}",
            if passed { "ok" } else { "FAILED" }
        )
        .unwrap();
        if !passed {
            failed.push(name);
        }
    }
    if failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    writeln!(out, "failed: {}", failed.join(", ")).unwrap();
    ExitCode::FAILURE
}
