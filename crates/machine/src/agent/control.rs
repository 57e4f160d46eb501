//! The control socket: one JSON object a line, each answered by one.

use super::config::RUN_DIR;
use camino::Utf8Path;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsRawFd as _;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};

/// Name of the socket in the machine's `run` folder.
pub(crate) const SOCKET: &str = "agent.sock";

/// Longest line that is read.
const LONGEST: u64 = 4096;

/// What the agent is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case")]
pub(crate) enum Command {
    /// End the kubelet and keep it ended; answered once it has.
    StopKubelet,
    /// Start the kubelet unless it runs.
    StartKubelet,
    /// Start the kubelet anew if it runs with another configuration than there
    /// is now; answered once the new one is started.
    ReloadKubelet,
    /// Say what runs.
    Status,
}

/// What the agent answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Answer {
    /// Done; what runs now, with pids as the node sees them.
    Ok(BTreeMap<String, String>),
    /// Not done, and why.
    Error(String),
}

/// A command and where its answer goes.
pub(crate) type Request = (Command, oneshot::Sender<Answer>);

/// Listens in the folder that the host reaches; only root may speak.
pub(crate) fn listen() -> io::Result<UnixListener> {
    let path = Utf8Path::new(RUN_DIR).join(SOCKET);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
    let listener = UnixListener::bind(&path);
    rustix::process::umask(before);
    listener
}

/// Reads commands from one connection until it ends.
pub(crate) async fn serve(stream: UnixStream, requests: mpsc::Sender<Request>) -> io::Result<()> {
    let (reading, mut writing) = stream.into_split();
    let mut reading = BufReader::new(reading);
    loop {
        let mut line = String::new();
        if (&mut reading).take(LONGEST).read_line(&mut line).await? == 0 {
            return Ok(());
        }
        let answer = match serde_json::from_str(&line) {
            Ok(command) => {
                let (sender, answered) = oneshot::channel();
                if requests.send((command, sender)).await.is_err() {
                    return Ok(());
                }
                answered
                    .await
                    .unwrap_or_else(|_| Answer::Error("the node ends".to_owned()))
            }
            Err(error) => Answer::Error(format!("not a command: {error}")),
        };
        let mut text = serde_json::to_string(&answer)?;
        text.push('\n');
        writing.write_all(text.as_bytes()).await?;
    }
}

/// An agent that could not be asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AskAgentError {
    /// Its socket does not answer.
    #[error("failed to speak to the node's agent")]
    Speak(#[source] io::Error),
    /// It said no.
    #[error("the node's agent refuses: {0}")]
    Refused(String),
    /// It takes too long.
    #[error("the node's agent did not answer within {} s", .0.as_secs())]
    Late(Duration),
}

impl AskAgentError {
    /// Whether nobody listens there: not yet, or no more.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Self::Speak(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused))
    }
}

/// Asks the agent whose `run` folder this is.
pub(crate) async fn ask(
    run: &Utf8Path,
    command: Command,
    deadline: Duration,
) -> Result<BTreeMap<String, String>, AskAgentError> {
    match tokio::time::timeout(deadline, exchange(run, command)).await {
        Err(_) => Err(AskAgentError::Late(deadline)),
        Ok(Err(error)) => Err(AskAgentError::Speak(error)),
        Ok(Ok(Answer::Error(reason))) => Err(AskAgentError::Refused(reason)),
        Ok(Ok(Answer::Ok(state))) => Ok(state),
    }
}

async fn exchange(run: &Utf8Path, command: Command) -> io::Result<Answer> {
    // A socket's path has at most 107 bytes, and the folder may be deep.
    let folder = std::fs::File::open(run)?;
    let path = format!("/proc/self/fd/{}/{SOCKET}", folder.as_raw_fd());
    let mut stream = UnixStream::connect(path).await?;
    let mut text = serde_json::to_string(&command)?;
    text.push('\n');
    stream.write_all(text.as_bytes()).await?;
    let mut line = String::new();
    BufReader::new(stream)
        .take(LONGEST)
        .read_line(&mut line)
        .await?;
    if line.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_str(&line)?)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use camino::Utf8PathBuf;

    #[test]
    fn the_written_form_of_commands_is_fixed() {
        let check = |command, text: &str| {
            assert_eq!(serde_json::to_string(&command).unwrap(), text);
            assert_eq!(serde_json::from_str::<Command>(text).unwrap(), command);
        };
        check(Command::StopKubelet, r#"{"command":"stop-kubelet"}"#);
        check(Command::StartKubelet, r#"{"command":"start-kubelet"}"#);
        check(Command::ReloadKubelet, r#"{"command":"reload-kubelet"}"#);
        check(Command::Status, r#"{"command":"status"}"#);
    }

    #[tokio::test]
    async fn a_question_is_answered_through_a_folder_with_a_long_path() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Utf8PathBuf::from_path_buf(dir.path().to_owned())
            .unwrap()
            .join("x".repeat(120));
        std::fs::create_dir(&dir).unwrap();
        let folder = std::fs::File::open(&dir).unwrap();
        let listener =
            UnixListener::bind(format!("/proc/self/fd/{}/{SOCKET}", folder.as_raw_fd())).unwrap();
        let (sender, mut requests) = mpsc::channel::<Request>(1);
        let agent = async {
            let (stream, _) = listener.accept().await.unwrap();
            let answering = async {
                let (command, answer) = requests.recv().await.unwrap();
                assert_eq!(command, Command::Status);
                answer
                    .send(Answer::Ok(BTreeMap::from([(
                        "kubelet".to_owned(),
                        "stopped".to_owned(),
                    )])))
                    .unwrap();
            };
            let (served, ()) = tokio::join!(serve(stream, sender), answering);
            served.unwrap();
        };
        let asked = ask(&dir, Command::Status, Duration::from_secs(5));
        let ((), state) = tokio::join!(agent, asked);
        assert_eq!(
            state.unwrap().get("kubelet").map(String::as_str),
            Some("stopped")
        );
    }

    #[tokio::test]
    async fn what_is_no_command_is_refused_and_the_connection_goes_on() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (sender, mut requests) = mpsc::channel::<Request>(1);
        let agent = async {
            let answering = async {
                let (_, answer) = requests.recv().await.unwrap();
                answer.send(Answer::Ok(BTreeMap::new())).unwrap();
            };
            let (served, ()) = tokio::join!(serve(theirs, sender), answering);
            served.unwrap();
        };
        let person = async {
            let (reading, mut writing) = ours.into_split();
            writing
                .write_all(b"reboot\n{\"command\":\"status\"}\n")
                .await
                .unwrap();
            drop(writing);
            let mut lines = BufReader::new(reading).lines();
            let refused: Answer =
                serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
            assert!(matches!(refused, Answer::Error(_)));
            let answered: Answer =
                serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
            assert_eq!(answered, Answer::Ok(BTreeMap::new()));
        };
        tokio::join!(agent, person);
    }

    #[tokio::test]
    async fn nobody_listening_is_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
        let error = ask(&dir, Command::Status, Duration::from_secs(5))
            .await
            .unwrap_err();
        assert!(error.is_absent());
    }
}
