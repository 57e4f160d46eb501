//! Starting a control plane, or adopting the one that runs.

use super::{Build, Ensured, Entry, HostedControlPlanes, State};
use crate::access::socket::{OpenSocketError, check_socket_path};
use crate::audit::audit_policy;
use crate::certificates::{self, WriteCertificatesError, write_components};
use crate::config::FindDistroError;
use crate::files::{WriteFileError, make_folder, write_private};
use crate::flags::{HyperkubeConfig, Parts, scheduler_config};
use crate::record::{ReadRecordError, Record, Role};
use crate::site::Site;
use jiff::Timestamp;
use neap_core::addressing::{BRIDGE_ADDRESS, NODE_NETWORK};
use neap_core::ids::{ClusterUid, InstallationId};
use neap_core::logs::CONTROL_PLANE;
use neap_net::{ChangeNetworkError, ClusterNetwork, EnsureNamespaceError, ensure_cluster_network};
use neap_pki::{ClusterPki, FileKeyStore, LoadPkiError};
use neap_process::cgroup::{
    Cgroup, CgroupPath, EnsureCgroupError, KillCgroupError, Limits, ParseCgroupPathError,
};
use neap_process::{AdoptProcessError, ProcessSpec, StartProcessError, Supervised};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::task::JoinError;
use tracing::info;

/// What is in the folder of a control plane cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum LoadSiteError {
    /// There is no record in it.
    #[error("the cluster has no control plane on this machine yet")]
    Absent,
    /// The record cannot be read.
    #[error(transparent)]
    Record(#[from] ReadRecordError),
    /// Another neap made it.
    #[error("the folder belongs to installation {owner} of neap, and this is {installation}")]
    Foreign {
        /// Whose it is.
        owner: InstallationId,
        /// Who asks.
        installation: InstallationId,
    },
    /// The keys cannot be had.
    #[error("failed to load its keys")]
    Keys(#[from] LoadPkiError),
}

/// A control plane could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartSiteError {
    /// Its folder is not to be used.
    #[error(transparent)]
    Load(#[from] LoadSiteError),
    /// Its programs are not here.
    #[error(transparent)]
    Distro(#[from] FindDistroError),
    /// The data folder's path is too long.
    #[error(transparent)]
    Socket(#[from] OpenSocketError),
    /// It is not known whether it runs.
    #[error("failed to find out whether it runs")]
    Adopt(#[from] AdoptProcessError),
    /// Its namespace.
    #[error(transparent)]
    Namespace(#[from] EnsureNamespaceError),
    /// Its bridge.
    #[error(transparent)]
    Network(#[from] ChangeNetworkError),
    /// Its certificates.
    #[error(transparent)]
    Certificates(#[from] WriteCertificatesError),
    /// Its files.
    #[error(transparent)]
    Files(#[from] WriteFileError),
    /// The name of its group.
    #[error(transparent)]
    GroupName(#[from] ParseCgroupPathError),
    /// Its group.
    #[error("failed to make its control group")]
    Group(#[from] EnsureCgroupError),
    /// What was left of the last run.
    #[error("failed to end what was left of its last run")]
    Leftover(#[from] KillCgroupError),
    /// The task that writes its files.
    #[error("the task that prepares its files failed")]
    Prepare(#[from] JoinError),
    /// Its process.
    #[error("failed to start its process")]
    Process(#[from] StartProcessError),
}

impl HostedControlPlanes {
    /// Record and keys, from memory or from the folder.
    pub(super) fn load(
        &self,
        entry: &Entry,
        state: &mut State,
    ) -> Result<(Record, Arc<ClusterPki>), LoadSiteError> {
        let record = match &state.record {
            Some(record) => record.clone(),
            None => self
                .read_record(&entry.site)?
                .ok_or(LoadSiteError::Absent)?,
        };
        let pki = match &state.pki {
            Some(pki) => Arc::clone(pki),
            None => Arc::new(keys(&entry.site, self.shared.clock.now())?),
        };
        state.record = Some(record.clone());
        state.pki = Some(Arc::clone(&pki));
        Ok((record, pki))
    }

    /// The record, if it is one of this installation.
    pub(super) fn read_record(&self, site: &Site) -> Result<Option<Record>, LoadSiteError> {
        let installation = &self.shared.config.installation;
        match Record::read(site.folder())? {
            Some(record) if record.installation != *installation => Err(LoadSiteError::Foreign {
                owner: record.installation,
                installation: installation.clone(),
            }),
            record => Ok(record),
        }
    }

    pub(super) async fn start_or_adopt(
        &self,
        entry: &Entry,
        state: &mut State,
        role: &Role,
        build: Build<'_>,
    ) -> Result<Ensured, StartSiteError> {
        let recorded = self.read_record(&entry.site)?;
        let adopted = match self.find_running(entry, state)? {
            Some(_) => recorded,
            None => None,
        };
        if let Some(mut record) = adopted {
            self.renew(entry, state, &mut record)?;
            let distro = record.distro.clone();
            state.record = Some(record);
            return Ok(Ensured {
                distro,
                adopted: true,
            });
        }
        self.start(entry, state, role, build).await
    }

    /// The process that runs, taken over if it was not before.
    pub(super) fn find_running(
        &self,
        entry: &Entry,
        state: &mut State,
    ) -> Result<Option<Supervised>, AdoptProcessError> {
        if let Some(running) = &state.running {
            if running.is_running() {
                return Ok(Some(running.clone()));
            }
            state.running = None;
        }
        let Some(process) = self.shared.shims.adopt(&entry.site.shim())? else {
            return Ok(None);
        };
        info!(cluster = %entry.uid, pid = process.pid(), "adopted a control plane");
        state.running = Some(process.clone());
        Ok(Some(process))
    }

    /// Certificates of a control plane that runs for very long.
    fn renew(
        &self,
        entry: &Entry,
        state: &mut State,
        record: &mut Record,
    ) -> Result<(), StartSiteError> {
        let now = self.shared.clock.now();
        if certificates::due(record.certificates_until, now) {
            let (_, pki) = self.load(entry, state)?;
            record.certificates_until = write_components(&entry.site, &record.role, &pki, now)?;
            record.write(entry.site.folder())?;
            info!(cluster = %entry.uid, until = %record.certificates_until, "renewed certificates");
        }
        Ok(())
    }

    async fn start(
        &self,
        entry: &Entry,
        state: &mut State,
        role: &Role,
        build: Build<'_>,
    ) -> Result<Ensured, StartSiteError> {
        let site = &entry.site;
        let config = &self.shared.config;
        let kept = self.read_record(site)?.map(|record| record.distro);
        let kept = build.distro.or(kept.as_deref());
        let distro = config.distros.find(kept, build.version)?;
        check_socket_path(&site.store_socket())?;
        let group = site.control_plane_group()?;
        // A run whose shim was killed may have left something behind; the
        // group is proof that it is ours.
        Cgroup::at(&group).kill_all().await?;

        let network = async {
            site.namespace().ensure().await?;
            let network = ClusterNetwork {
                namespace: site.namespace().clone(),
                address: BRIDGE_ADDRESS,
                prefix: NODE_NETWORK.prefix,
            };
            ensure_cluster_network(&network)
                .await
                .map_err(StartSiteError::from)
        };
        let prepare = Prepare {
            uid: entry.uid.clone(),
            installation: config.installation.clone(),
            site: site.clone(),
            role: role.clone(),
            distro: distro.id.clone(),
            group: group.clone(),
            now: self.shared.clock.now(),
        };
        let files = async {
            tokio::task::spawn_blocking(move || prepare.apply())
                .await
                .map_err(StartSiteError::from)?
        };
        let ((), (record, pki)) = tokio::try_join!(network, files)?;

        let mut spec = ProcessSpec::new(
            [
                distro.hyperkube.as_str(),
                "control-plane",
                site.config().as_str(),
            ],
            site.control_plane(),
            site.log(),
        );
        spec.log_limit = CONTROL_PLANE;
        spec.env = environment();
        spec.network_namespace = Some(site.namespace().path());
        spec.cgroup = Some(group);
        let process = self.shared.shims.start(&site.shim(), &spec).await?;
        info!(cluster = %entry.uid, pid = process.pid(), "started a control plane");
        *state = State {
            record: Some(record),
            pki: Some(Arc::new(pki)),
            running: Some(process),
            // What it was connected to is gone; the keys are the same.
            client: state.client.take(),
        };
        Ok(Ensured {
            distro: distro.id.clone(),
            adopted: false,
        })
    }
}

/// The start is bound by CPU, so garbage is collected later than afterwards,
/// when hyperkube sets a value of its own; but not as late as Go has it: among
/// the garbage of a start lies what stays, and Go never moves it together.
fn environment() -> BTreeMap<String, String> {
    BTreeMap::from([("GOGC".to_owned(), "50".to_owned())])
}

fn keys(site: &Site, now: Timestamp) -> Result<ClusterPki, LoadPkiError> {
    ClusterPki::load_or_generate(&FileKeyStore::new(site.pki()), now)
}

/// All that is written before a start.
struct Prepare {
    uid: ClusterUid,
    installation: InstallationId,
    site: Site,
    role: Role,
    distro: String,
    group: CgroupPath,
    now: Timestamp,
}

impl Prepare {
    fn apply(self) -> Result<(Record, ClusterPki), StartSiteError> {
        let site = &self.site;
        make_folder(&site.control_plane())?;
        // The record is first: a folder without one is nobody's.
        let mut record = Record::new(
            self.uid,
            self.installation,
            self.role,
            self.distro,
            self.now,
        );
        record.write(site.folder())?;
        let pki = keys(site, self.now).map_err(LoadSiteError::from)?;
        record.certificates_until = write_components(site, &record.role, &pki, self.now)?;
        let parts = match record.role {
            Role::Hub => Parts::Hub,
            Role::Tenant {
                allow_privileged,
                audit,
                ..
            } => Parts::Tenant {
                allow_privileged,
                audit,
            },
        };
        let config =
            serde_json::to_vec_pretty(&HyperkubeConfig::plan(site, parts)).map_err(|error| {
                WriteFileError {
                    path: site.config(),
                    source: error.into(),
                }
            })?;
        write_private(&site.config(), &config)?;
        write_private(&site.scheduler(), scheduler_config(site).as_bytes())?;
        if let Parts::Tenant { audit, .. } = parts
            && let Some(policy) = audit_policy(audit)
        {
            write_private(&site.audit_policy(), policy.as_bytes())?;
            if let Some(folder) = site.audit_log().parent() {
                make_folder(folder)?;
            }
        }
        record.write(site.folder())?;
        Cgroup::ensure(&self.group, &Limits::default())?;
        Ok((record, pki))
    }
}
