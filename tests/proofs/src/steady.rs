//! A watch over a Cluster that must stay Ready from now on.

use anyhow::{Context as _, Result, bail};
use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{Api, WatchEvent, WatchParams};
use neap_api::Cluster;
use neap_api::names::CONDITION_READY;
use tokio::task::JoinHandle;

/// Whether the conditions of a Cluster say Ready.
pub(crate) fn is_ready(cluster: &Cluster) -> bool {
    let conditions = cluster
        .status
        .as_ref()
        .map(|status| status.conditions.as_slice())
        .unwrap_or_default();
    conditions
        .iter()
        .any(|one| one.type_ == CONDITION_READY && one.status == "True")
}

/// Watches a Cluster; that it was Ready all along is asked at the end.
#[derive(Debug)]
pub struct Steady {
    watch: JoinHandle<Result<()>>,
}

impl Steady {
    /// Begins to watch a Cluster that is Ready.
    ///
    /// # Errors
    /// When it is not Ready now.
    pub async fn begin(hub: &kube::Client, account: &str, name: &str) -> Result<Self> {
        let api = Api::<Cluster>::namespaced(hub.clone(), account);
        let now = api.get(name).await?;
        if !is_ready(&now) {
            bail!("cluster {name} is not Ready to begin with");
        }
        let since = now
            .metadata
            .resource_version
            .context("an object read has a resource version")?;
        let name = name.to_owned();
        let fields = WatchParams::default()
            .fields(&format!("metadata.name={name}"))
            .timeout(290);
        let events = api.watch(&fields, &since).await?.boxed();
        let watch = tokio::spawn(async move {
            let mut events = events;
            while let Some(event) = events.try_next().await? {
                match event {
                    WatchEvent::Modified(cluster) if !is_ready(&cluster) => {
                        bail!(
                            "cluster {name} was not Ready at some time: {:?}",
                            cluster.status
                        );
                    }
                    WatchEvent::Deleted(_) => bail!("cluster {name} was deleted"),
                    WatchEvent::Error(error) => {
                        bail!("the watch of cluster {name} failed: {error}")
                    }
                    _ => {}
                }
            }
            Ok(())
        });
        Ok(Self { watch })
    }

    /// Proves that it was Ready at every change until now.
    ///
    /// # Errors
    /// When it was not.
    pub async fn end(self) -> Result<()> {
        if self.watch.is_finished() {
            return self
                .watch
                .await?
                .and_then(|()| bail!("the watch ended early"));
        }
        self.watch.abort();
        Ok(())
    }
}
