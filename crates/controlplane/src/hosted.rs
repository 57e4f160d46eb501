//! Control planes as programs on this host.

mod clients;
mod delete;
mod observe;
mod requests;
mod start;

pub use clients::ConnectIdentityError;
pub use delete::DeleteSiteError;
pub use start::{LoadSiteError, StartSiteError};

use crate::access::Directory;
use crate::bootstrap::{apply_bootstrap, bootstrap_objects};
use crate::certificates::{self, node_credentials};
use crate::config::Config;
use crate::record::{ReadRecordError, Record, Role};
use crate::site::{NameSiteError, Site};
use async_trait::async_trait;
use clients::{NamespaceDial, Source};
use neap_core::ids::{ClusterUid, MachineName};
use neap_core::lifecycle::ObservedControlPlane;
use neap_operator::traits::{
    Cause, Clock, ControlPlaneError, ControlPlanePlan, ControlPlanes, NodeCredentials,
    TenantIdentity,
};
use neap_pki::ClusterPki;
use neap_process::{Shims, Supervised};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

/// Ends that nobody has asked about yet; more are dropped, since the loops
/// look at everything from time to time.
const EXITS: usize = 256;

/// Starts, watches and ends control planes on this host, the hub among them.
///
/// A cheap handle; all clones are the same. One process may have one for each
/// data folder.
#[derive(Clone)]
pub struct HostedControlPlanes {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for HostedControlPlanes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostedControlPlanes")
            .field("config", &self.shared.config)
            .finish_non_exhaustive()
    }
}

struct Shared {
    config: Config,
    shims: Shims,
    clock: Arc<dyn Clock>,
    directory: Directory,
    entries: Mutex<BTreeMap<ClusterUid, Arc<Entry>>>,
    exits: mpsc::Sender<ClusterUid>,
    exits_taken: Mutex<Option<mpsc::Receiver<ClusterUid>>>,
}

/// One control plane; acts on it follow one another.
struct Entry {
    uid: ClusterUid,
    site: Site,
    state: tokio::sync::Mutex<State>,
}

/// What is known of it; all of it can be read again from the folder.
#[derive(Default)]
struct State {
    record: Option<Record>,
    pki: Option<Arc<ClusterPki>>,
    running: Option<Running>,
    client: Option<kube::Client>,
}

struct Running {
    process: Supervised,
    _exit: AbortOnDropHandle<()>,
}

impl HostedControlPlanes {
    /// Does nothing yet: what runs is adopted when it is asked for.
    pub fn new(config: Config, clock: Arc<dyn Clock>) -> Self {
        let (exits, receiver) = mpsc::channel(EXITS);
        let shims = Shims::new(config.program.clone());
        Self {
            shared: Arc::new(Shared {
                config,
                shims,
                clock,
                directory: Directory::default(),
                entries: Mutex::default(),
                exits,
                exits_taken: Mutex::new(Some(receiver)),
            }),
        }
    }

    /// The names of all control planes that are meant to exist.
    #[must_use]
    pub fn directory(&self) -> Directory {
        self.shared.directory.clone()
    }

    /// Yields each Cluster whose control plane has ended unasked. `None` when
    /// it was taken before.
    #[must_use]
    pub fn exits(&self) -> Option<mpsc::Receiver<ClusterUid>> {
        self.shared
            .exits_taken
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// By this uid the hub is one of the control planes.
    #[must_use]
    pub fn hub_uid(&self) -> ClusterUid {
        ClusterUid::new(self.shared.config.installation.as_str())
    }

    /// The records beside the data of all Clusters, also of those that no API
    /// knows.
    ///
    /// # Errors
    /// When the folder or a record cannot be read: an absent record is no
    /// proof then.
    pub fn recorded(&self) -> Result<Vec<Record>, ReadRecordError> {
        let folder = self.shared.config.data.join("clusters");
        let failed = |source| ReadRecordError::Read {
            path: folder.clone(),
            source,
        };
        let entries = match folder.read_dir_utf8() {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(failed(source)),
        };
        let mut records = Vec::new();
        for entry in entries {
            records.extend(Record::read(entry.map_err(failed)?.path())?);
        }
        records.sort_by(|a, b| a.uid.cmp(&b.uid));
        Ok(records)
    }

    /// Makes the names of all Clusters beside the data known, so that after a
    /// restart they are reached before the loops have come to them.
    ///
    /// # Errors
    /// As [`Self::recorded`].
    pub fn make_recorded_known(&self) -> Result<(), ReadRecordError> {
        for record in self.recorded()? {
            if let Role::Tenant { account, name, .. } = &record.role {
                self.shared.directory.set(account, name, record.uid.clone());
            }
        }
        Ok(())
    }

    fn entry(&self, uid: &ClusterUid) -> Result<Arc<Entry>, NameSiteError> {
        let mut entries = self
            .shared
            .entries
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = entries.get(uid) {
            return Ok(Arc::clone(entry));
        }
        let config = &self.shared.config;
        let site = if *uid == self.hub_uid() {
            Site::of_hub(&config.data, &config.installation)?
        } else {
            Site::of_cluster(&config.data, &config.installation, uid)?
        };
        let entry = Arc::new(Entry {
            uid: uid.clone(),
            site,
            state: tokio::sync::Mutex::default(),
        });
        entries.insert(uid.clone(), Arc::clone(&entry));
        Ok(entry)
    }

    /// Unless another act on it waits: its turn must come on the same entry.
    fn forget(&self, entry: &Arc<Entry>) {
        let mut entries = self
            .shared
            .entries
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // The map's and the caller's.
        if Arc::strong_count(entry) <= 2 {
            entries.remove(&entry.uid);
        }
    }

    /// Starts or adopts, and makes the name known.
    pub(crate) async fn ensure_role(
        &self,
        uid: &ClusterUid,
        role: Role,
        distro: Option<&str>,
    ) -> Result<Ensured, Cause> {
        let entry = self.entry(uid)?;
        let mut state = entry.state.lock().await;
        let ensured = self
            .start_or_adopt(&entry, &mut state, &role, distro)
            .await?;
        match &role {
            Role::Hub => self.shared.directory.set_hub(uid.clone()),
            Role::Tenant { account, name, .. } => {
                self.shared.directory.set(account, name, uid.clone())
            }
        }
        Ok(ensured)
    }

    /// A client as the loops, to be kept as long as one likes.
    pub(crate) async fn operator_client(&self, uid: &ClusterUid) -> Result<kube::Client, Cause> {
        let entry = self.entry(uid)?;
        let mut state = entry.state.lock().await;
        if let Some(client) = &state.client {
            return Ok(client.clone());
        }
        let (record, pki) = self.load(&entry, &mut state)?;
        let request = certificates::operator(&record.role);
        let client = clients::lasting(self.source(&entry.site, &record.role, pki, request))?;
        state.client = Some(client.clone());
        Ok(client)
    }

    /// A client as `system:masters`, for minutes.
    pub(crate) async fn bootstrap_client(&self, uid: &ClusterUid) -> Result<kube::Client, Cause> {
        let entry = self.entry(uid)?;
        let mut state = entry.state.lock().await;
        let (record, pki) = self.load(&entry, &mut state)?;
        let source = self.source(&entry.site, &record.role, pki, certificates::bootstrap());
        Ok(source.build()?.0)
    }

    fn source(
        &self,
        site: &Site,
        role: &Role,
        pki: Arc<ClusterPki>,
        request: neap_pki::CertificateRequest,
    ) -> Source {
        Source {
            pki,
            dial: Arc::new(NamespaceDial(site.namespace().clone())),
            server_name: certificates::server_name(role),
            request,
            clock: Arc::clone(&self.shared.clock),
        }
    }

    /// The process of a control plane that runs, as far as this neap started
    /// or adopted it.
    pub(crate) async fn process(&self, uid: &ClusterUid) -> Option<Supervised> {
        let entry = self.entry(uid).ok()?;
        let state = entry.state.lock().await;
        state
            .running
            .as_ref()
            .map(|running| running.process.clone())
    }
}

/// How a control plane came to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ensured {
    pub(crate) distro: String,
    pub(crate) adopted: bool,
}

fn failed<E: Into<Cause>>(
    operation: &'static str,
    cluster: &ClusterUid,
) -> impl FnOnce(E) -> ControlPlaneError {
    move |error| ControlPlaneError {
        operation,
        cluster: cluster.clone(),
        source: error.into(),
    }
}

#[async_trait]
impl ControlPlanes for HostedControlPlanes {
    async fn ensure(&self, plan: &ControlPlanePlan) -> Result<String, ControlPlaneError> {
        let ensured = self
            .ensure_role(&plan.cluster, Role::from(plan), plan.distro.as_deref())
            .await;
        Ok(ensured.map_err(failed("start", &plan.cluster))?.distro)
    }

    async fn observe(
        &self,
        cluster: &ClusterUid,
    ) -> Result<ObservedControlPlane, ControlPlaneError> {
        self.observe_site(cluster)
            .await
            .map_err(failed("observe", cluster))
    }

    async fn delete(&self, cluster: &ClusterUid) -> Result<(), ControlPlaneError> {
        self.delete_site(cluster)
            .await
            .map_err(failed("delete", cluster))
    }

    async fn client(
        &self,
        cluster: &ClusterUid,
        identity: TenantIdentity,
    ) -> Result<kube::Client, ControlPlaneError> {
        match identity {
            TenantIdentity::Operator => self.operator_client(cluster).await,
            TenantIdentity::Bootstrap => self.bootstrap_client(cluster).await,
        }
        .map_err(failed("reach", cluster))
    }

    async fn bootstrap(&self, cluster: &ClusterUid) -> Result<(), ControlPlaneError> {
        let client = self.client(cluster, TenantIdentity::Bootstrap).await?;
        apply_bootstrap(&client, &bootstrap_objects())
            .await
            .map_err(failed("write the roles of", cluster))
    }

    async fn node_credentials(
        &self,
        cluster: &ClusterUid,
        node: &MachineName,
        address: Ipv4Addr,
    ) -> Result<NodeCredentials, ControlPlaneError> {
        let now = self.shared.clock.now();
        let issue = async || {
            let entry = self.entry(cluster)?;
            let mut state = entry.state.lock().await;
            let (_, pki) = self.load(&entry, &mut state)?;
            Ok::<_, Cause>(node_credentials(&pki, node, address, now)?)
        };
        issue()
            .await
            .map_err(failed("issue certificates from", cluster))
    }

    fn endpoint(&self, _plan: &ControlPlanePlan) -> String {
        self.shared.config.server()
    }
}
