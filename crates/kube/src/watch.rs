//! Watches that tell every change and every break.
//!
//! A cache that is fed by one knows at any time whether it may be trusted:
//! from a `Reset` on, until the next `Broken`. Objects are reduced to what is
//! asked of them one by one as they arrive; none is kept.

use crate::failure::describe;
use futures::StreamExt;
use futures::stream::BoxStream;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::time::Duration;

/// Objects of one page of a list. A page is the most that is held unreduced.
const PAGE: u32 = 250;
/// Seconds after which the server ends a watch, for it to begin again.
const WATCH_SECONDS: u32 = 290;
/// The server ends a watch in time, or it is dead.
const WATCH_TIMEOUT: Duration = Duration::from_secs(300);
/// The first wait after a failure; each further one doubles it.
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// The longest wait after a failure.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// One thing that a watch tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change<T> {
    /// All that there is, after a full list.
    Reset(Vec<T>),
    /// This one is new or has changed.
    Apply(T),
    /// This one is gone; as it last was.
    Delete(T),
    /// What was told before may be wrong from now on, and why. A `Reset`
    /// follows before any other change, perhaps after further failures.
    Broken(String),
}

/// Watches every object of this API, reduced by `project`. It never ends.
pub fn watch<K, T, P>(api: Api<K>, project: P) -> BoxStream<'static, Change<T>>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    T: Send + 'static,
    P: Fn(&K) -> T + Send + 'static,
{
    let watch = Watch {
        api,
        project,
        stage: Stage::List,
        wait: FIRST_WAIT,
    };
    futures::stream::unfold(watch, |mut watch| async move {
        let change = watch.next().await;
        Some((change, watch))
    })
    .boxed()
}

type Events<K> = BoxStream<'static, kube::Result<WatchEvent<K>>>;

enum Stage<K> {
    /// The next thing is a list.
    List,
    /// The next thing is a wait, then a list.
    Wait,
    /// Listed up to this version; the next thing is a watch.
    Listed { version: String },
    /// A watch is open. `told`: it has told something.
    Watching {
        version: String,
        events: Events<K>,
        told: bool,
    },
}

struct Watch<K, P> {
    api: Api<K>,
    project: P,
    stage: Stage<K>,
    wait: Duration,
}

impl<K, P> Watch<K, P>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    async fn next<T>(&mut self) -> Change<T>
    where
        P: Fn(&K) -> T,
    {
        loop {
            let step = match std::mem::replace(&mut self.stage, Stage::List) {
                Stage::Wait => {
                    tokio::time::sleep(self.wait).await;
                    self.wait = (self.wait * 2).min(LONGEST_WAIT);
                    Ok(None)
                }
                Stage::List => self.list().await.map(Some),
                Stage::Listed { version } => self.open(version).await.map(|()| None),
                Stage::Watching {
                    version,
                    events,
                    told,
                } => self.event(version, events, told).await,
            };
            match step {
                Ok(Some(change)) => return change,
                Ok(None) => {}
                Err(why) => {
                    self.stage = Stage::Wait;
                    return Change::Broken(why);
                }
            }
        }
    }

    async fn list<T>(&mut self) -> Result<Change<T>, String>
    where
        P: Fn(&K) -> T,
    {
        let mut params = ListParams {
            limit: Some(PAGE),
            ..ListParams::default()
        };
        let mut all = Vec::new();
        loop {
            let page = self
                .api
                .list(&params)
                .await
                .map_err(|error| describe(&error))?;
            all.extend(page.items.iter().map(&self.project));
            params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            if params.continue_token.is_none() {
                let version = page
                    .metadata
                    .resource_version
                    .filter(|version| !version.is_empty())
                    .ok_or("the list has no resourceVersion")?;
                self.stage = Stage::Listed { version };
                return Ok(Change::Reset(all));
            }
        }
    }

    async fn open(&mut self, version: String) -> Result<(), String> {
        let params = WatchParams {
            timeout: Some(WATCH_SECONDS),
            bookmarks: true,
            ..WatchParams::default()
        };
        let events = self
            .api
            .watch(&params, &version)
            .await
            .map_err(|error| describe(&error))?;
        self.stage = Stage::Watching {
            version,
            events: events.boxed(),
            told: false,
        };
        Ok(())
    }

    async fn event<T>(
        &mut self,
        version: String,
        mut events: Events<K>,
        told: bool,
    ) -> Result<Option<Change<T>>, String>
    where
        P: Fn(&K) -> T,
    {
        let Ok(event) = tokio::time::timeout(WATCH_TIMEOUT, events.next()).await else {
            return Err("the watch is silent and does not end".into());
        };
        let (version, change) = match event {
            // The server has ended it in time; the next one goes on from here.
            None if told => {
                self.stage = Stage::Listed { version };
                return Ok(None);
            }
            None => return Err("the watch ended before it told anything".into()),
            Some(Err(error)) => return Err(describe(&error)),
            Some(Ok(WatchEvent::Error(status))) => return Err(status.to_string()),
            Some(Ok(WatchEvent::Bookmark(bookmark))) => (bookmark.metadata.resource_version, None),
            Some(Ok(WatchEvent::Added(object) | WatchEvent::Modified(object))) => (
                version_of(&object)?,
                Some(Change::Apply((self.project)(&object))),
            ),
            Some(Ok(WatchEvent::Deleted(object))) => (
                version_of(&object)?,
                Some(Change::Delete((self.project)(&object))),
            ),
        };
        self.wait = FIRST_WAIT;
        self.stage = Stage::Watching {
            version,
            events,
            told: true,
        };
        Ok(change)
    }
}

fn version_of<K: Resource>(object: &K) -> Result<String, String> {
    object
        .meta()
        .resource_version
        .clone()
        .filter(|version| !version.is_empty())
        .ok_or_else(|| "an object has no resourceVersion".to_owned())
}

#[cfg(test)]
mod tests;
