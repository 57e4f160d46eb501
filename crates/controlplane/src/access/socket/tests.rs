#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::access::protocol::StatusReport;
use std::os::unix::fs::PermissionsExt;
use tokio::task::JoinHandle;

struct Fixed;

#[async_trait]
impl Answer for Fixed {
    async fn answer(&self, request: Request) -> Reply {
        match request {
            Request::Status => Reply::Status(StatusReport {
                version: "0.1.0".into(),
                pid: 7,
                installation: "i".into(),
                endpoint: "https://127.0.0.1:7443".into(),
                distro: "d".into(),
            }),
            _ => Reply::Error(Refusal {
                code: "ClusterNotFound".into(),
                message: "m".into(),
                next: "n".into(),
            }),
        }
    }
}

struct Open {
    folder: tempfile::TempDir,
    task: JoinHandle<()>,
}

impl Open {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = Socket::open(&path_in(&folder)).unwrap();
        let task = tokio::spawn(socket.serve(Arc::new(Fixed)));
        Self { folder, task }
    }

    fn path(&self) -> Utf8PathBuf {
        path_in(&self.folder)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn path_in(folder: &tempfile::TempDir) -> Utf8PathBuf {
    Utf8Path::from_path(folder.path())
        .unwrap()
        .join("neap.sock")
}

#[tokio::test]
async fn a_question_gets_its_answer_and_the_file_is_for_its_owner_alone() {
    let open = Open::start();
    let reply = ask(&open.path(), &Request::Status).await.unwrap();
    assert!(
        matches!(reply, Reply::Status(StatusReport { pid: 7, .. })),
        "{reply:?}"
    );
    let mode = std::fs::metadata(open.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn a_refusal_is_an_answer() {
    let open = Open::start();
    let reply = ask(&open.path(), &Request::HubCredential).await.unwrap();
    assert!(matches!(reply, Reply::Error(Refusal { code, .. }) if code == "ClusterNotFound"));
}

#[tokio::test]
async fn one_connection_takes_many_requests_and_survives_a_wrong_one() {
    let open = Open::start();
    let mut stream = UnixStream::connect(open.path()).await.unwrap();
    stream
        .write_all(b"{\"request\":\"destroy\"}\n{\"request\":\"status\"}\n")
        .await
        .unwrap();
    let mut lines = BufReader::new(&mut stream).lines();
    let first: Reply = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
    let second: Reply = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
    assert!(matches!(first, Reply::Error(Refusal { code, .. }) if code == "RequestNotUnderstood"));
    assert!(matches!(second, Reply::Status(_)));
}

#[tokio::test]
async fn an_endless_line_is_refused_and_cut() {
    let open = Open::start();
    let mut stream = UnixStream::connect(open.path()).await.unwrap();
    let line = vec![b'x'; usize::try_from(REQUEST_LIMIT).unwrap()];
    stream.write_all(&line).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    assert!(
        String::from_utf8(answer)
            .unwrap()
            .contains("RequestNotUnderstood")
    );
}

#[tokio::test]
async fn a_leftover_file_is_no_obstacle_and_the_own_one_goes_with_the_socket() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(path_in(&folder), b"").unwrap();
    let socket = Socket::open(&path_in(&folder)).unwrap();
    assert!(path_in(&folder).exists());
    drop(socket);
    assert!(!path_in(&folder).exists());
}

#[tokio::test]
async fn the_end_of_one_server_leaves_the_socket_of_the_next_alone() {
    let folder = tempfile::tempdir().unwrap();
    let first = Socket::open(&path_in(&folder)).unwrap();
    let second = Socket::open(&path_in(&folder)).unwrap();
    drop(first);
    assert!(path_in(&folder).exists());
    drop(second);
    assert!(!path_in(&folder).exists());
}

#[tokio::test]
async fn without_a_server_the_error_names_the_socket() {
    let folder = tempfile::tempdir().unwrap();
    let error = ask(&path_in(&folder), &Request::Status).await.unwrap_err();
    assert!(error.to_string().contains("neap.sock"), "{error}");
}

#[test]
fn only_root_and_the_owner_are_admitted() {
    let owner = Uid::from_raw(1000);
    assert!(admits(0, owner));
    assert!(admits(1000, owner));
    assert!(!admits(1001, owner));
    assert!(!admits(1000, Uid::ROOT));
}

#[test]
fn a_path_that_no_socket_can_have_is_refused_with_its_length() {
    let long = Utf8PathBuf::from(format!("/{}", "x".repeat(107)));
    let error = check_socket_path(&long).unwrap_err();
    assert!(error.to_string().contains("108 bytes"), "{error}");
    let longest = Utf8PathBuf::from(format!("/{}", "x".repeat(106)));
    assert!(check_socket_path(&longest).is_ok());
}
