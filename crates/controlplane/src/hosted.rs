//! Control planes as programs on this host.

mod clients;
mod delete;
mod observe;
mod requests;
mod start;
mod stop;

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
use tracing::warn;

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
    running: Option<Supervised>,
    client: Option<kube::Client>,
}

impl HostedControlPlanes {
    /// Does nothing yet: what runs is adopted when it is asked for.
    pub fn new(config: Config, clock: Arc<dyn Clock>) -> Self {
        let shims = Shims::new(config.program.clone());
        Self {
            shared: Arc::new(Shared {
                config,
                shims,
                clock,
                directory: Directory::default(),
                entries: Mutex::default(),
            }),
        }
    }

    /// The names of all control planes that are meant to exist.
    #[must_use]
    pub fn directory(&self) -> Directory {
        self.shared.directory.clone()
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
        let mut records = Vec::new();
        for record in self.read_records()? {
            records.extend(record?);
        }
        records.sort_by(|a, b| a.uid.cmp(&b.uid));
        Ok(records)
    }

    /// What each folder holds.
    fn read_records(
        &self,
    ) -> Result<Vec<Result<Option<Record>, ReadRecordError>>, ReadRecordError> {
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
            records.push(Record::read(entry.map_err(failed)?.path()));
        }
        Ok(records)
    }

    /// Makes the names of all Clusters beside the data known, so that after a
    /// restart they are reached before the loops have come to them. One whose
    /// record is damaged is said and left to its loop: it holds up no other.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn make_recorded_known(&self) -> Result<(), ReadRecordError> {
        for record in self.read_records()? {
            match record {
                Ok(Some(record)) => {
                    if let Role::Tenant { account, name, .. } = &record.role {
                        self.shared.directory.set(account, name, record.uid);
                    }
                }
                Ok(None) => {}
                Err(error) => warn!(
                    error = &error as &dyn std::error::Error,
                    "a cluster of an earlier run is not known"
                ),
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
        build: Build<'_>,
    ) -> Result<Ensured, Cause> {
        let entry = self.entry(uid)?;
        let mut state = entry.state.lock().await;
        let ensured = self
            .start_or_adopt(&entry, &mut state, &role, build)
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
        state.running.clone()
    }
}

/// Which programs a control plane is started with.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Build<'a> {
    /// The distro that it was started with.
    pub(crate) distro: Option<&'a str>,
    /// Else the newest of this minor version.
    pub(crate) version: Option<&'a str>,
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
        let build = Build {
            distro: plan.distro.as_deref(),
            version: plan.version.as_deref(),
        };
        let ensured = self
            .ensure_role(&plan.cluster, Role::from(plan), build)
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

    async fn ended(&self, cluster: &ClusterUid) {
        match self.process(cluster).await {
            Some(process) => {
                process.ended().await;
            }
            None => std::future::pending().await,
        }
    }

    async fn stop(&self, cluster: &ClusterUid) -> Result<(), ControlPlaneError> {
        self.stop_site(cluster)
            .await
            .map_err(failed("stop", cluster))
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
            let (record, pki) = self.load(&entry, &mut state)?;
            let credentials = node_credentials(&pki, node, address, now)?;
            Ok::<_, Cause>(NodeCredentials {
                distro: record.distro,
                ..credentials
            })
        };
        issue()
            .await
            .map_err(failed("issue certificates from", cluster))
    }

    fn versions(&self) -> Vec<String> {
        self.shared.config.distros.versions()
    }

    fn endpoint(&self, _plan: &ControlPlanePlan) -> String {
        self.shared.config.server()
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::config::{Distro, Distros};
    use crate::names::cluster_server_name;
    use camino::Utf8Path;
    use jiff::Timestamp;
    use neap_core::ids::InstallationId;

    struct NoTime;

    #[async_trait]
    impl Clock for NoTime {
        fn now(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH
        }

        async fn sleep(&self, _duration: std::time::Duration) {}
    }

    fn planes(data: &Utf8Path) -> HostedControlPlanes {
        let config = Config {
            data: data.to_owned(),
            installation: InstallationId::new("i"),
            distros: Distros::new(Distro {
                id: "d".into(),
                version: "v1".into(),
                hyperkube: "/bin/hyperkube".into(),
            }),
            program: "/bin/neap".into(),
            endpoint: "127.0.0.1:1".parse().unwrap(),
        };
        HostedControlPlanes::new(config, Arc::new(NoTime))
    }

    #[tokio::test]
    async fn a_damaged_record_hides_no_other_cluster_and_proves_no_absence() {
        let folder = tempfile::tempdir().unwrap();
        let data = Utf8Path::from_path(folder.path()).unwrap();
        let planes = planes(data);
        planes.make_recorded_known().unwrap();
        for name in ["damaged", "whole"] {
            let site = data.join("clusters").join(name);
            std::fs::create_dir_all(&site).unwrap();
            let role = Role::Tenant {
                account: "team".into(),
                name: name.into(),
                allow_privileged: false,
                audit: neap_core::audit::AuditLevel::Off,
            };
            let installation = InstallationId::new("i");
            let uid = ClusterUid::new(name);
            Record::new(uid, installation, role, "d".into(), Timestamp::UNIX_EPOCH)
                .write(&site)
                .unwrap();
        }
        std::fs::write(data.join("clusters/damaged/record.json"), "").unwrap();
        planes.make_recorded_known().unwrap();
        let known = |name: &str| planes.directory().find(&cluster_server_name("team", name));
        assert_eq!(known("whole"), Some(ClusterUid::new("whole")));
        assert_eq!(known("damaged"), None);
        planes.recorded().unwrap_err();
        planes
            .observe(&ClusterUid::new("damaged"))
            .await
            .unwrap_err();
    }

    #[tokio::test]
    async fn nothing_is_kept_of_a_control_plane_that_is_absent() {
        let folder = tempfile::tempdir().unwrap();
        let planes = planes(Utf8Path::from_path(folder.path()).unwrap());
        let gone = ClusterUid::new("00000000-gone");
        let observed = planes.observe(&gone).await.unwrap();
        assert_eq!(observed, ObservedControlPlane::Absent);
        assert!(planes.shared.entries.lock().unwrap().is_empty());
    }
}
