#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use http::{Request, Response};
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::client::Body;
use neap_api::Machine;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// One request as the server saw it.
#[derive(Clone, Debug)]
struct Asked {
    method: String,
    uri: String,
    content: String,
    body: Value,
}

/// A server that answers by script.
#[derive(Clone, Default)]
struct Server {
    script: Arc<Mutex<VecDeque<(u16, Value)>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    fn new(script: impl IntoIterator<Item = (u16, Value)>) -> Self {
        Self {
            script: Arc::new(Mutex::new(script.into_iter().collect())),
            ..Self::default()
        }
    }

    fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect_bytes().await?;
                server.asked.lock().unwrap().push(Asked {
                    method: parts.method.to_string(),
                    uri: parts.uri.to_string(),
                    content: parts
                        .headers
                        .get("content-type")
                        .map(|value| value.to_str().unwrap().to_owned())
                        .unwrap_or_default(),
                    body: serde_json::from_slice(&body).unwrap_or_default(),
                });
                let (code, answer) = server.script.lock().unwrap().pop_front().unwrap();
                let body = Body::from(answer.to_string().into_bytes());
                Ok::<_, kube::Error>(Response::builder().status(code).body(body).unwrap())
            }
        });
        Client::new(service, "default")
    }

    fn machines(&self) -> Api<Machine> {
        Api::namespaced(self.client(), "team")
    }

    fn nodes(&self) -> Api<Node> {
        Api::all(self.client())
    }

    fn asked(&self) -> Vec<Asked> {
        assert!(
            self.script.lock().unwrap().is_empty(),
            "the server was asked for all of it"
        );
        self.asked.lock().unwrap().clone()
    }
}

fn machine(uid: &str, finalizers: &[&str]) -> Value {
    json!({
        "apiVersion": "neap.dev/v1alpha1", "kind": "Machine",
        "metadata": {
            "name": "web-node1", "namespace": "team", "uid": uid, "resourceVersion": "7",
            "finalizers": finalizers,
        },
        "spec": {"cluster": "web", "clusterUid": "c", "ordinal": 1, "podsPerNode": 8},
    })
}

fn read(value: Value) -> Machine {
    serde_json::from_value(value).unwrap()
}

fn refusal(code: u16, reason: &str) -> (u16, Value) {
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "metadata": {},
        "code": code, "reason": reason, "message": reason,
    });
    (code, status)
}

#[tokio::test]
async fn a_status_is_applied_as_its_manager_and_rests_on_a_version() {
    let server = Server::new([(200, machine("m", &[])), (200, machine("m", &[]))]);
    let api = server.machines();
    let status = json!({"phase": "Running"});
    apply_status(&api, "web-node1", "neap-scaling", Some("7"), &status)
        .await
        .unwrap();
    apply_status(&api, "web-node1", "neap-scaling", None, &status)
        .await
        .unwrap();
    let asked = server.asked();
    let first = &asked[0];
    assert_eq!(
        (&*first.method, &*first.content),
        ("PATCH", "application/apply-patch+yaml")
    );
    assert!(
        first.uri.contains("/team/machines/web-node1/status?"),
        "{}",
        first.uri
    );
    assert!(
        first.uri.contains("force=true&fieldManager=neap-scaling"),
        "{}",
        first.uri
    );
    assert_eq!(
        first.body,
        json!({
            "apiVersion": "neap.dev/v1alpha1", "kind": "Machine",
            "metadata": {"name": "web-node1", "resourceVersion": "7"},
            "status": {"phase": "Running"},
        })
    );
    assert_eq!(asked[1].body["metadata"], json!({"name": "web-node1"}));
}

#[tokio::test]
async fn a_stale_status_is_a_conflict() {
    let server = Server::new([refusal(409, "Conflict")]);
    let api = server.machines();
    let error = apply_status(&api, "web-node1", "neap-scaling", Some("6"), &json!({}))
        .await
        .unwrap_err();
    assert!(failure::is_conflict(&error.source));
    assert_eq!(
        error.to_string(),
        "failed to write the status of Machine web-node1"
    );
    assert_eq!(
        crate::describe(&error),
        "failed to write the status of Machine web-node1: Conflict: Conflict"
    );
}

#[tokio::test]
async fn a_merge_says_what_it_rests_on() {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}});
    let server = Server::new([(200, node.clone()), (200, node)]);
    let api = server.nodes();
    let cordon = json!({"spec": {"unschedulable": true}});
    merge(&api, "n", "neap-scaling", Expected::uid("u"), cordon)
        .await
        .unwrap();
    let expected = Expected {
        uid: Some("u"),
        resource_version: Some("7"),
    };
    merge_status(&api, "n", "neap-scaling", expected, json!({"status": {}}))
        .await
        .unwrap();
    let asked = server.asked();
    assert_eq!(asked[0].content, "application/merge-patch+json");
    assert_eq!(
        asked[0].body,
        json!({"spec": {"unschedulable": true}, "metadata": {"uid": "u"}})
    );
    assert_eq!(asked[1].content, "application/strategic-merge-patch+json");
    assert!(asked[1].uri.contains("/nodes/n/status"), "{}", asked[1].uri);
    assert_eq!(
        asked[1].body["metadata"],
        json!({"uid": "u", "resourceVersion": "7"})
    );
}

#[tokio::test]
async fn a_finalizer_is_added_to_what_was_read() {
    let server = Server::new([(200, machine("m", &["other", "neap.dev/machine"]))]);
    let api = server.machines();
    let object = read(machine("m", &["other"]));
    add_finalizer(&api, &object, "neap-scaling", "neap.dev/machine")
        .await
        .unwrap();
    assert_eq!(
        server.asked()[0].body,
        json!({"metadata": {
            "uid": "m", "resourceVersion": "7", "finalizers": ["other", "neap.dev/machine"],
        }})
    );
    let there = read(machine("m", &["neap.dev/machine"]));
    add_finalizer(&api, &there, "neap-scaling", "neap.dev/machine")
        .await
        .unwrap();
    assert_eq!(server.asked().len(), 1, "nothing is written twice");
}

#[tokio::test]
async fn a_finalizer_is_removed_although_others_write() {
    let server = Server::new([
        refusal(422, "Invalid"),
        (200, machine("m", &["new", "neap.dev/machine"])),
        (200, machine("m", &["new"])),
    ]);
    let api = server.machines();
    let object = read(machine("m", &["neap.dev/machine"]));
    remove_finalizer(&api, &object, "neap-scaling", "neap.dev/machine")
        .await
        .unwrap();
    let asked = server.asked();
    assert_eq!(asked[0].content, "application/json-patch+json");
    assert_eq!(
        asked[0].body[0],
        json!({"op": "test", "path": "/metadata/uid", "value": "m"})
    );
    assert_eq!(
        asked[2].body[2],
        json!({"op": "remove", "path": "/metadata/finalizers/1"}),
        "it has moved"
    );
}

#[tokio::test]
async fn a_finalizer_of_what_is_gone_is_removed() {
    let object = read(machine("m", &["neap.dev/machine"]));
    for script in [
        vec![refusal(404, "NotFound")],
        vec![refusal(422, "Invalid"), refusal(404, "NotFound")],
        vec![
            refusal(422, "Invalid"),
            (200, machine("another", &["neap.dev/machine"])),
        ],
        vec![refusal(422, "Invalid"), (200, machine("m", &[]))],
    ] {
        let server = Server::new(script);
        let api = server.machines();
        remove_finalizer(&api, &object, "neap-scaling", "neap.dev/machine")
            .await
            .unwrap();
        server.asked();
    }
}

#[tokio::test]
async fn a_finalizer_that_cannot_be_removed_is_an_error() {
    let object = read(machine("m", &["neap.dev/machine"]));
    let mut script = Vec::new();
    for _ in 1..ATTEMPTS {
        script.push(refusal(422, "Invalid"));
        script.push((200, machine("m", &["neap.dev/machine"])));
    }
    script.push(refusal(422, "Invalid"));
    for script in [script, vec![refusal(403, "Forbidden")]] {
        let server = Server::new(script);
        let api = server.machines();
        let removed = remove_finalizer(&api, &object, "neap-scaling", "neap.dev/machine").await;
        assert!(removed.is_err());
        server.asked();
    }
}

#[tokio::test]
async fn only_the_object_of_this_uid_is_deleted() {
    let server = Server::new([(200, machine("m", &["neap.dev/machine"]))]);
    let api = server.machines();
    let done = delete_with_uid(&api, "web-node1", "m").await.unwrap();
    assert_eq!(done, Deletion::Requested);
    let asked = server.asked();
    assert_eq!(asked[0].method, "DELETE");
    assert_eq!(asked[0].body["preconditions"], json!({"uid": "m"}));
    assert!(asked[0].body.get("gracePeriodSeconds").is_none());
}

#[tokio::test]
async fn absence_is_proven() {
    for script in [
        vec![refusal(404, "NotFound")],
        vec![refusal(409, "Conflict"), (200, machine("another", &[]))],
        vec![refusal(409, "Conflict"), refusal(404, "NotFound")],
    ] {
        let server = Server::new(script);
        let api = server.machines();
        let done = delete_now_with_uid(&api, "web-node1", "m").await.unwrap();
        assert_eq!(done, Deletion::Absent);
        assert_eq!(server.asked()[0].body["gracePeriodSeconds"], 0);
    }
}

#[tokio::test]
async fn what_is_not_proven_is_an_error() {
    for script in [
        vec![refusal(409, "Conflict"), (200, machine("m", &[]))],
        vec![refusal(409, "Conflict"), refusal(500, "InternalError")],
        vec![refusal(403, "Forbidden")],
    ] {
        let server = Server::new(script);
        let api = server.machines();
        assert!(delete_with_uid(&api, "web-node1", "m").await.is_err());
        server.asked();
    }
}
