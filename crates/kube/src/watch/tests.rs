#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use http_body_util::combinators::UnsyncBoxBody;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::client::Body;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};

/// What the server answers next.
enum Answer {
    /// These names, at this version, perhaps with more to come.
    List(&'static str, &'static [&'static str], &'static str),
    /// These lines; then the watch stays open.
    Open(Vec<Value>),
    /// These lines; then the watch ends.
    Ended(Vec<Value>),
    /// These lines; then the connection breaks.
    Torn(Vec<Value>),
    /// A refusal.
    Refuse(u16, &'static str),
    /// There is no connection.
    Unreachable,
}

/// A server that answers by script, and the paths that it was asked for.
#[derive(Clone, Default)]
struct Server {
    script: Arc<Mutex<VecDeque<Answer>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

type Line = Result<Vec<u8>, io::Error>;
type Bytes = <Body as http_body::Body>::Data;
type Pieces = UnsyncBoxBody<Bytes, io::Error>;

fn line(value: &Value) -> Line {
    Ok(format!("{value}\n").into_bytes())
}

fn respond(status: u16, lines: Vec<Line>, open: bool) -> Response<Pieces> {
    let lines = futures::stream::iter(lines);
    let stream = match open {
        true => lines.chain(futures::stream::pending()).boxed(),
        false => lines.boxed(),
    };
    let frames = stream.map(|line| line.map(|line| Frame::data(Bytes::from(line))));
    let body = UnsyncBoxBody::new(StreamBody::new(frames));
    Response::builder().status(status).body(body).unwrap()
}

impl Server {
    fn new(script: impl IntoIterator<Item = Answer>) -> Self {
        Self {
            script: Arc::new(Mutex::new(script.into_iter().collect())),
            ..Self::default()
        }
    }

    fn answer(&self, request: &Request<Body>) -> io::Result<Response<Pieces>> {
        self.asked.lock().unwrap().push(request.uri().to_string());
        match self.script.lock().unwrap().pop_front() {
            Some(Answer::List(version, names, next)) => {
                let items: Vec<_> = names.iter().map(|name| object(name, version)).collect();
                let list = json!({
                    "apiVersion": "v1", "kind": "ConfigMapList", "items": items,
                    "metadata": {"resourceVersion": version, "continue": next},
                });
                Ok(respond(200, vec![line(&list)], false))
            }
            Some(Answer::Open(lines)) => Ok(respond(200, lines.iter().map(line).collect(), true)),
            Some(Answer::Ended(lines)) => Ok(respond(200, lines.iter().map(line).collect(), false)),
            Some(Answer::Torn(lines)) => {
                let torn = Err(io::Error::other("the line was cut"));
                Ok(respond(
                    200,
                    lines.iter().map(line).chain([torn]).collect(),
                    false,
                ))
            }
            Some(Answer::Refuse(code, reason)) => {
                Ok(respond(code, vec![line(&status(code, reason))], false))
            }
            Some(Answer::Unreachable) | None => Err(io::Error::other("connection refused")),
        }
    }

    fn watch(&self) -> BoxStream<'static, Change<String>> {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let answer = server.answer(&request);
            async move { answer }
        });
        watch(
            Api::all(Client::new(service, "default")),
            |object: &ConfigMap| object.name_any(),
        )
    }

    /// The first `n` changes; the time that passes between them is not real.
    async fn changes(&self, n: usize) -> Vec<Change<String>> {
        self.watch().take(n).collect().await
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn object(name: &str, version: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "resourceVersion": version},
    })
}

fn event(kind: &str, name: &str, version: &str) -> Value {
    json!({"type": kind, "object": object(name, version)})
}

fn bookmark(version: &str) -> Value {
    json!({"type": "BOOKMARK", "object": {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"resourceVersion": version},
    }})
}

fn status(code: u16, reason: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "metadata": {},
        "code": code, "reason": reason, "message": format!("it is {reason}"),
    })
}

fn reset(names: &[&str]) -> Change<String> {
    Change::Reset(names.iter().map(ToString::to_string).collect())
}

fn apply(name: &str) -> Change<String> {
    Change::Apply(name.into())
}

/// The changes, with each break reduced to the words asked for.
fn check(changes: &[Change<String>], expected: &[Change<String>]) {
    assert_eq!(changes.len(), expected.len(), "{changes:?}");
    for (change, expected) in changes.iter().zip(expected) {
        match (change, expected) {
            (Change::Broken(why), Change::Broken(words)) => {
                assert!(
                    why.contains(words.as_str()),
                    "{why:?} does not say {words:?}"
                );
            }
            _ => assert_eq!(change, expected),
        }
    }
}

fn broken(words: &str) -> Change<String> {
    Change::Broken(words.into())
}

#[tokio::test(start_paused = true)]
async fn the_first_list_is_a_reset_and_changes_follow() {
    let server = Server::new([
        Answer::List("5", &["a", "b"], ""),
        Answer::Open(vec![
            event("ADDED", "c", "6"),
            bookmark("7"),
            event("MODIFIED", "a", "8"),
            event("DELETED", "b", "9"),
        ]),
    ]);
    check(
        &server.changes(4).await,
        &[
            reset(&["a", "b"]),
            apply("c"),
            apply("a"),
            Change::Delete("b".into()),
        ],
    );
    let asked = server.asked();
    assert!(!asked[0].contains("watch=true"), "{asked:?}");
    assert!(
        asked[1].contains("watch=true") && asked[1].contains("resourceVersion=5"),
        "{asked:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_empty_list_is_a_reset_too() {
    let server = Server::new([Answer::List("5", &[], ""), Answer::Open(vec![])]);
    check(&server.changes(1).await, &[reset(&[])]);
}

#[tokio::test(start_paused = true)]
async fn all_pages_make_one_reset() {
    let server = Server::new([
        Answer::List("5", &["a"], "more"),
        Answer::List("5", &["b"], ""),
        Answer::Open(vec![event("ADDED", "c", "6")]),
    ]);
    check(&server.changes(2).await, &[reset(&["a", "b"]), apply("c")]);
    assert!(
        server.asked()[1].contains("continue=more"),
        "{:?}",
        server.asked()
    );
}

#[tokio::test(start_paused = true)]
async fn a_page_that_fails_breaks_the_whole_list() {
    let server = Server::new([
        Answer::List("5", &["a"], "more"),
        Answer::Refuse(410, "Expired"),
        Answer::List("6", &["a", "b"], ""),
        Answer::Open(vec![]),
    ]);
    check(
        &server.changes(2).await,
        &[broken("Expired"), reset(&["a", "b"])],
    );
}

#[tokio::test(start_paused = true)]
async fn an_expired_version_breaks_and_then_resets() {
    let expired = json!({"type": "ERROR", "object": status(410, "Expired")});
    let server = Server::new([
        Answer::List("5", &["a"], ""),
        Answer::Open(vec![expired]),
        Answer::List("9", &["b"], ""),
        Answer::Open(vec![event("ADDED", "c", "10")]),
    ]);
    check(
        &server.changes(4).await,
        &[reset(&["a"]), broken("Expired"), reset(&["b"]), apply("c")],
    );
    assert!(
        server.asked()[3].contains("resourceVersion=9"),
        "{:?}",
        server.asked()
    );
}

#[tokio::test(start_paused = true)]
async fn a_torn_watch_breaks_and_then_resets_although_it_could_resume() {
    let server = Server::new([
        Answer::List("5", &["a"], ""),
        Answer::Torn(vec![event("ADDED", "b", "6")]),
        Answer::List("9", &["a", "b", "c"], ""),
        Answer::Open(vec![]),
    ]);
    check(
        &server.changes(4).await,
        &[
            reset(&["a"]),
            apply("b"),
            broken("the line was cut"),
            reset(&["a", "b", "c"]),
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn every_failure_is_told_until_the_list_succeeds() {
    let server = Server::new([
        Answer::Unreachable,
        Answer::Refuse(403, "Forbidden"),
        Answer::Unreachable,
        Answer::List("5", &["a"], ""),
        Answer::Open(vec![]),
    ]);
    check(
        &server.changes(4).await,
        &[
            broken("connection refused"),
            broken("Forbidden"),
            broken("connection refused"),
            reset(&["a"]),
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_cannot_be_opened_breaks() {
    let server = Server::new([
        Answer::List("5", &["a"], ""),
        Answer::Refuse(403, "Forbidden"),
        Answer::List("5", &["a"], ""),
        Answer::Open(vec![]),
    ]);
    check(
        &server.changes(3).await,
        &[reset(&["a"]), broken("Forbidden"), reset(&["a"])],
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_in_time_goes_on_unnoticed() {
    let server = Server::new([
        Answer::List("5", &["a"], ""),
        Answer::Ended(vec![bookmark("7")]),
        Answer::Open(vec![event("ADDED", "b", "8")]),
    ]);
    check(&server.changes(2).await, &[reset(&["a"]), apply("b")]);
    assert!(
        server.asked()[2].contains("resourceVersion=7"),
        "{:?}",
        server.asked()
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_without_a_word_is_no_watch() {
    let server = Server::new([
        Answer::List("5", &["a"], ""),
        Answer::Ended(vec![]),
        Answer::List("5", &["a"], ""),
        Answer::Open(vec![]),
    ]);
    check(
        &server.changes(3).await,
        &[reset(&["a"]), broken("ended before"), reset(&["a"])],
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_neither_speaks_nor_ends_breaks() {
    let server = Server::new([
        Answer::List("5", &["a"], ""),
        Answer::Open(vec![]),
        Answer::List("5", &["a"], ""),
        Answer::Open(vec![]),
    ]);
    check(
        &server.changes(3).await,
        &[reset(&["a"]), broken("silent"), reset(&["a"])],
    );
}

#[tokio::test(start_paused = true)]
#[expect(clippy::disallowed_methods, reason = "the paused clock of this test")]
async fn waits_double_to_five_seconds_and_begin_anew_after_success() {
    let failures = || std::iter::repeat_with(|| Answer::Unreachable);
    let server = Server::new(
        failures()
            .take(9)
            .chain([
                Answer::List("5", &[], ""),
                Answer::Torn(vec![bookmark("6")]),
            ])
            .chain(failures().take(2)),
    );
    let mut changes = server.watch();
    let mut waits = Vec::new();
    for _ in 0..13 {
        let before = tokio::time::Instant::now();
        changes.next().await.unwrap();
        waits.push(before.elapsed().as_millis());
    }
    // Reset and the tear come at once; the wait after them is short again.
    assert_eq!(
        waits,
        [
            0, 100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000, 0, 100, 200
        ]
    );
}
