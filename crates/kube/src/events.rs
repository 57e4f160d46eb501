//! Events: what users see of a decision in `kubectl describe`.

use crate::failure::describe;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The API server refuses longer notes.
const NOTE_BYTES: usize = 1024;

/// Whether an event is bad news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// No.
    Normal,
    /// Yes.
    Warning,
}

/// Tells users, as well as it can: what it says is in the status of an object
/// too, so a failure is logged once and then forgotten until it works again.
/// Equal events are counted on the first of them.
#[derive(Clone)]
pub struct Events {
    recorder: Recorder,
    failing: Arc<AtomicBool>,
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}

impl Events {
    /// Events of this reporter, through this client.
    pub fn new(client: Client, reporter: &str) -> Self {
        let reporter = Reporter {
            controller: reporter.to_owned(),
            instance: None,
        };
        Self {
            recorder: Recorder::new(client, reporter),
            failing: Arc::default(),
        }
    }

    /// Says that this was done to the object, and why.
    pub async fn publish(
        &self,
        object: &ObjectReference,
        kind: EventKind,
        reason: &str,
        action: &str,
        note: &str,
    ) {
        let event = Event {
            type_: match kind {
                EventKind::Normal => EventType::Normal,
                EventKind::Warning => EventType::Warning,
            },
            reason: reason.to_owned(),
            note: Some(shorten(note).to_owned()),
            action: action.to_owned(),
            secondary: None,
        };
        match self.recorder.publish(&event, object).await {
            Ok(()) => self.failing.store(false, Ordering::Relaxed),
            Err(error) if !self.failing.swap(true, Ordering::Relaxed) => tracing::warn!(
                object = object.name.as_deref().unwrap_or_default(),
                reason,
                error = describe(&error),
                "failed to publish an event; further failures are not logged"
            ),
            Err(_) => {}
        }
    }
}

fn shorten(note: &str) -> &str {
    let mut end = note.len().min(NOTE_BYTES);
    while !note.is_char_boundary(end) {
        end -= 1;
    }
    note.get(..end).unwrap_or(note)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::{Value, json};
    use std::sync::Mutex;

    type Asked = Arc<Mutex<Vec<(String, String, Value)>>>;

    fn events(status: u16) -> (Events, Asked) {
        let asked = Asked::default();
        let log = asked.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let log = log.clone();
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect_bytes().await?;
                let sent: Value = serde_json::from_slice(&body).unwrap();
                log.lock().unwrap().push((
                    parts.method.to_string(),
                    parts.uri.path().to_owned(),
                    sent.clone(),
                ));
                Ok::<_, kube::Error>(
                    Response::builder()
                        .status(status)
                        .body(Body::from(sent.to_string().into_bytes()))
                        .unwrap(),
                )
            }
        });
        (
            Events::new(Client::new(service, "default"), "neap-scaling"),
            asked,
        )
    }

    fn object() -> ObjectReference {
        ObjectReference {
            kind: Some("Cluster".into()),
            name: Some("web".into()),
            namespace: Some("team".into()),
            uid: Some("u".into()),
            ..ObjectReference::default()
        }
    }

    #[tokio::test]
    async fn an_event_names_the_object_and_the_reporter() {
        let (events, asked) = events(201);
        events
            .publish(
                &object(),
                EventKind::Warning,
                "BackingOff",
                "Provision",
                "why",
            )
            .await;
        let asked = asked.lock().unwrap();
        let (method, path, sent) = asked.first().unwrap();
        assert_eq!(method, "POST");
        assert_eq!(path, "/apis/events.k8s.io/v1/namespaces/team/events");
        assert_eq!(sent["regarding"]["uid"], "u");
        assert_eq!(sent["reportingController"], "neap-scaling");
        assert_eq!(sent["type"], "Warning");
        assert_eq!(
            (&sent["reason"], &sent["action"], &sent["note"]),
            (&json!("BackingOff"), &json!("Provision"), &json!("why"))
        );
    }

    #[tokio::test]
    async fn an_equal_event_is_counted_on_the_first() {
        let (events, asked) = events(200);
        for _ in 0..2 {
            events
                .publish(&object(), EventKind::Normal, "Released", "Release", "idle")
                .await;
        }
        let asked = asked.lock().unwrap();
        let methods: Vec<_> = asked.iter().map(|(method, ..)| method.as_str()).collect();
        assert_eq!(methods, ["POST", "PATCH"]);
        assert_eq!(asked.last().unwrap().2["series"]["count"], 2);
    }

    #[tokio::test]
    async fn a_failure_is_not_the_callers_business() {
        let (events, asked) = events(500);
        events
            .publish(&object(), EventKind::Normal, "Released", "Release", "idle")
            .await;
        assert!(events.failing.load(Ordering::Relaxed));
        assert_eq!(asked.lock().unwrap().len(), 1);
    }

    #[test]
    fn a_long_note_is_cut_between_characters() {
        let note = format!("{}ä", "a".repeat(NOTE_BYTES - 1));
        assert_eq!(shorten(&note).len(), NOTE_BYTES - 1);
        assert_eq!(shorten("short"), "short");
    }
}
