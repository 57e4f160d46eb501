//! The hub: the management API of this installation, itself a control plane.

use crate::bootstrap::{ApplyBootstrapError, apply_bootstrap, hub_objects};
use crate::hosted::{Build, Ensured, HostedControlPlanes};
use crate::ready::{AwaitReadyError, answers, await_ready};
use crate::record::Role;
use futures::future::try_join_all;
use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt};
use neap_api::names::MANAGER_CLUSTER;
use neap_core::ids::ClusterUid;
use neap_core::supervision::{backoff, failures_after_end, is_hung};
use neap_operator::traits::{Cause, Clock, ControlPlanes as _};
use neap_process::Supervised;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::task::AbortOnDropHandle;
use tracing::{error, info, warn};

/// How long a definition may take to be served.
const SERVED_DEADLINE: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Between two looks at a hub that runs.
const LOOK_RUNNING: Duration = Duration::from_secs(10);
/// A hub that is well answers in less.
const ANSWER_DEADLINE: Duration = Duration::from_secs(2);

/// The hub did not come up.
#[derive(Debug, thiserror::Error)]
pub enum StartHubError {
    /// Its control plane was not started.
    #[error("failed to start the control plane of the hub")]
    Start(#[source] Cause),
    /// It ran before without an answer, and could not be ended.
    #[error("failed to end the hub, which ran and did not answer")]
    End(#[source] Cause),
    /// It cannot be reached.
    #[error("failed to build a client of the hub")]
    Connect(#[source] Cause),
    /// It is not ready.
    #[error("the hub did not become ready")]
    Ready(#[from] AwaitReadyError),
    /// A definition was refused.
    #[error("failed to apply the definition {name}")]
    Define {
        /// Its name.
        name: String,
        /// Why.
        #[source]
        source: kube::Error,
    },
    /// What is defined cannot be listed.
    #[error("the objects of {name} cannot be listed after {SERVED_DEADLINE:?}")]
    Serve {
        /// Name of the definition.
        name: String,
        /// Why, at the last look.
        #[source]
        source: kube::Error,
    },
    /// A role was refused.
    #[error(transparent)]
    Roles(#[from] ApplyBootstrapError),
}

/// The running hub. While it lives, the hub is started again when it ends;
/// when it is dropped, the hub runs on.
pub struct Hub {
    client: Client,
    adopted: bool,
    _supervisor: AbortOnDropHandle<()>,
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub")
            .field("adopted", &self.adopted)
            .finish_non_exhaustive()
    }
}

impl Hub {
    /// Starts or adopts the hub, waits until it is ready, and brings its
    /// definitions and roles up to date.
    ///
    /// # Errors
    /// When it does not come up; what was started goes on running, and the
    /// call may be repeated.
    pub async fn start(
        planes: &HostedControlPlanes,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StartHubError> {
        let uid = planes.hub_uid();
        let mut ensured = ensure(planes, &uid).await?;
        let bootstrap = planes
            .bootstrap_client(&uid)
            .await
            .map_err(StartHubError::Connect)?;
        match await_hub(planes, &uid, &bootstrap).await {
            // One that was hung when neap started would hang for ever.
            Err(AwaitReadyError::Late(error)) if ensured.adopted => {
                warn!(
                    error = &error as &dyn std::error::Error,
                    "the hub runs and does not answer; starting it again"
                );
                let stopped = planes.stop(&uid).await;
                stopped.map_err(|error| StartHubError::End(error.into()))?;
                ensured = ensure(planes, &uid).await?;
                await_hub(planes, &uid, &bootstrap).await?;
            }
            awaited => awaited?,
        }
        let crds = neap_api::crds();
        tokio::try_join!(define(&bootstrap, &crds), async {
            Ok(apply_bootstrap(&bootstrap, &hub_objects()).await?)
        })?;
        let client = planes
            .operator_client(&uid)
            .await
            .map_err(StartHubError::Connect)?;
        await_served(&client, &crds).await?;
        let supervisor = tokio::spawn(supervise(planes.clone(), uid, client.clone(), clock));
        Ok(Self {
            client,
            adopted: ensured.adopted,
            _supervisor: AbortOnDropHandle::new(supervisor),
        })
    }

    /// A client for the loops, with their rights; it may be kept.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Whether it ran before.
    #[must_use]
    pub fn adopted(&self) -> bool {
        self.adopted
    }
}

async fn ensure(planes: &HostedControlPlanes, uid: &ClusterUid) -> Result<Ensured, StartHubError> {
    let ensured = planes.ensure_role(uid, Role::Hub, Build::default()).await;
    ensured.map_err(StartHubError::Start)
}

async fn await_hub(
    planes: &HostedControlPlanes,
    uid: &ClusterUid,
    client: &Client,
) -> Result<(), AwaitReadyError> {
    match planes.process(uid).await {
        Some(process) => await_ready(client, process.ended()).await,
        None => await_ready(client, std::future::pending()).await,
    }
}

/// Writes the definitions.
async fn define(client: &Client, crds: &[CustomResourceDefinition]) -> Result<(), StartHubError> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let params = PatchParams::apply(MANAGER_CLUSTER).force();
    try_join_all(crds.iter().map(async |crd| {
        let name = crd.name_any();
        let applied = definitions.patch(&name, &params, &Patch::Apply(crd)).await;
        applied.map_err(|source| StartHubError::Define { name, source })
    }))
    .await?;
    Ok(())
}

/// Waits until the loops can list what is defined. The condition Established
/// comes before the API server is really able to.
async fn await_served(
    client: &Client,
    crds: &[CustomResourceDefinition],
) -> Result<(), StartHubError> {
    try_join_all(crds.iter().map(async |crd| {
        let objects: Api<DynamicObject> = Api::all_with(client.clone(), &resource(crd));
        // Not by a limit: such a list is answered by the store while the cache,
        // which answers the loops, is still being filled.
        let all = ListParams::default();
        let mut last = None;
        let looking = async {
            while let Err(error) = objects.list_metadata(&all).await {
                last = Some(error);
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        let looked = tokio::time::timeout(SERVED_DEADLINE, looking).await;
        looked.map_err(|late| StartHubError::Serve {
            name: crd.name_any(),
            source: last.unwrap_or_else(|| kube::Error::Service(late.into())),
        })
    }))
    .await?;
    Ok(())
}

/// How the objects of a definition are asked for.
fn resource(crd: &CustomResourceDefinition) -> ApiResource {
    let stored = crd.spec.versions.iter().find(|version| version.storage);
    let version = stored.map_or("", |version| &version.name);
    let kind = GroupVersionKind::gvk(&crd.spec.group, version, &crd.spec.names.kind);
    ApiResource::from_gvk_with_plural(&kind, &crd.spec.names.plural)
}

/// Starts the hub again whenever it ends, and ends it when it hangs.
async fn supervise(
    planes: HostedControlPlanes,
    uid: ClusterUid,
    client: Client,
    clock: Arc<dyn Clock>,
) {
    let mut failures = 0_u32;
    loop {
        if let Some(process) = planes.process(&uid).await {
            let since = clock.now();
            tokio::select! {
                () = hung(&process, &client, &*clock) => {
                    if let Err(error) = planes.stop(&uid).await {
                        error!(error = &error as &dyn std::error::Error, "failed to end the hub, which hangs");
                    }
                }
                _ = process.ended() => {}
            }
            failures = failures_after_end(failures, since, clock.now());
            warn!(failures, "the hub ended");
        } else {
            failures = failures.saturating_add(1);
        }
        clock.sleep(backoff(failures).unsigned_abs()).await;
        match planes.ensure_role(&uid, Role::Hub, Build::default()).await {
            Ok(_) => info!("started the hub again"),
            Err(error) => error!(error = &*error, failures, "failed to start the hub again"),
        }
    }
}

/// Returns when the hub hangs.
async fn hung(process: &Supervised, client: &Client, clock: &dyn Clock) {
    let since = Timestamp::try_from(process.since()).unwrap_or(Timestamp::UNIX_EPOCH);
    let mut silent_since = None;
    while !is_hung(since, silent_since, clock.now()) {
        clock.sleep(LOOK_RUNNING).await;
        if answers(client, ANSWER_DEADLINE).await {
            silent_since = None;
        } else {
            silent_since.get_or_insert(clock.now());
        }
    }
    warn!(silent_since = ?silent_since, "the hub hangs; ending it");
}
