//! Running other programs, so that a failure names the command and shows the
//! end of what it said.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};
use camino::Utf8Path;

use crate::terminal::Stage;

/// So much of a log is shown when its command failed.
const SHOWN_LINES: usize = 30;

/// `program argument …`, for messages.
pub(crate) fn show(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}

/// Runs a command on this terminal.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot run `{}`", show(command)))?;
    check_status(command, status)
}

/// Runs a command and returns its standard output; what it said is part of
/// the error.
pub(crate) fn read(command: &mut Command) -> Result<String> {
    String::from_utf8(read_bytes(command)?)
        .with_context(|| format!("`{}` printed no text", show(command)))
}

/// Like `read`, for output that is no text.
pub(crate) fn read_bytes(command: &mut Command) -> Result<Vec<u8>> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run `{}`", show(command)))?;
    if !output.status.success() {
        let said = if output.stderr.trim_ascii().is_empty() {
            &output.stdout
        } else {
            &output.stderr
        };
        bail!(
            "`{}` failed ({}): {}",
            show(command),
            output.status,
            String::from_utf8_lossy(said).trim()
        );
    }
    Ok(output.stdout)
}

/// Runs a command with everything it says in a log file and its last line as
/// the stage's note.
pub(crate) fn run_logged(command: &mut Command, log: &Utf8Path, stage: &Stage) -> Result<()> {
    let mut file = File::create(log).with_context(|| format!("cannot write {log}"))?;
    let (said, voice) = io::pipe().context("cannot make a pipe")?;
    command
        .stdin(Stdio::null())
        .stdout(voice.try_clone().context("cannot duplicate a pipe")?)
        .stderr(voice);
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot run `{}`", show(command)))?;
    // The command keeps the writing ends until they are replaced; the reader
    // would wait for them.
    command.stdout(Stdio::null()).stderr(Stdio::null());

    let mut last: Vec<String> = Vec::new();
    for line in BufReader::new(said).split(b'\n') {
        let line = line.with_context(|| format!("cannot read from `{}`", show(command)))?;
        let line = String::from_utf8_lossy(&line).into_owned();
        writeln!(file, "{line}").with_context(|| format!("cannot write {log}"))?;
        stage.note(&line);
        if last.len() == SHOWN_LINES {
            last.remove(0);
        }
        last.push(line);
    }
    let status = child
        .wait()
        .with_context(|| format!("cannot wait for `{}`", show(command)))?;
    if status.success() {
        return Ok(());
    }
    bail!(
        "`{}` failed ({status}); its whole output is in {log}, which ends with:\n{}",
        show(command),
        last.join("\n")
    )
}

fn check_status(command: &Command, status: ExitStatus) -> Result<()> {
    if status.success() {
        Ok(())
    } else {
        bail!("`{}` failed ({status})", show(command))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn a_failure_carries_what_the_command_said() {
        let error = read(Command::new("sh").args(["-c", "echo no such key >&2; exit 3"]));
        let message = format!("{:#}", error.unwrap_err());
        assert!(message.contains("no such key"), "{message}");
        assert!(message.contains("exit status: 3"), "{message}");
    }

    #[test]
    fn a_logged_failure_shows_the_end_and_names_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let log = Utf8Path::from_path(folder.path()).unwrap().join("log");
        let stage = Stage::start("a test's command");
        let script = "seq 1 100; echo the reason >&2; exit 1";
        let outcome = run_logged(Command::new("sh").args(["-c", script]), &log, &stage);
        let message = format!("{:#}", outcome.unwrap_err());
        assert!(message.contains(log.as_str()), "{message}");
        assert!(message.ends_with("100\nthe reason"), "{message}");
        assert!(std::fs::read_to_string(&log).unwrap().starts_with("1\n2\n"));
    }
}
