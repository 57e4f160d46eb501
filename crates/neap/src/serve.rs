//! `neap serve`: wires the parts together, says when it is ready, and leaves
//! everything running when it ends.

mod identity;
mod logging;

use crate::access::SOCKET;
use crate::asked_to_end;
use crate::cli::{Global, ServeArgs};
use crate::clock::{HostClock, Stopwatch};
use crate::distro::Distro;
use crate::inotify::InotifyLimit;
use crate::installation::{DataLock, bring_up_to_date, check_contents, resolve};
use crate::output::{elapsed, print};
use crate::preflight::{CGROUPS, check_controllers, check_data_dir, check_listen, check_root};
use anyhow::Context as _;
use camino::{Utf8Path, Utf8PathBuf};
use neap_controlplane::access::Listener;
use neap_controlplane::access::socket::Socket;
use neap_controlplane::{Config, Distros, HostedControlPlanes, Hub};
use neap_core::host::OPEN_FILES;
use neap_core::ids::InstallationId;
use neap_machine::{ContainerNodes, ContainerNodesConfig, NodeSoftware};
use neap_operator::traits::Clock;
use neap_operator::{Operator, OperatorConfig};
use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::os::unix::fs::DirBuilderExt as _;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};

/// How long the loops may take to end what they are at.
const END_DEADLINE: Duration = Duration::from_secs(10);

pub(crate) async fn serve(global: &Global, args: &ServeArgs) -> anyhow::Result<()> {
    // Modes on the host do not depend on who starts it; what is secret has its own.
    rustix::process::umask(Mode::WGRP | Mode::WOTH);
    allow_files();
    let shutdown = CancellationToken::new();
    let _signals = AbortOnDropHandle::new(tokio::spawn(cancel_at_signal(shutdown.clone())?));
    check_root("neap serve")?;
    let data_dir = resolve(&global.data_dir)?;
    check_data_dir(&data_dir)?;
    check_controllers(Utf8Path::new(CGROUPS))?;
    let distro = Distro::find(args.distro.as_deref())?;
    if data_dir.exists() {
        check_contents(&data_dir).context("failed to serve")?;
    }
    let _lock = DataLock::take(&data_dir).context("failed to serve")?;
    check_listen(args.listen)?;
    logging::start(args.log_format).context("failed to start the log")?;

    raise_inotify_limit();
    let started = Stopwatch::start();
    tokio::select! {
        outcome = run(&data_dir, args, &distro, started, shutdown.clone()) => outcome,
        () = gave_up(&shutdown) => {
            warn!("ended in the middle of something; the next start takes it up");
            Ok(())
        }
    }?;
    info!("neap ends; clusters and their machines run on, and the next start takes them over");
    Ok(())
}

/// Without room to watch files no node can start; where it cannot be made,
/// `serve` goes on with what there is.
fn raise_inotify_limit() {
    match InotifyLimit::of_host().and_then(|limit| limit.raise()) {
        Ok(None) => {}
        Ok(Some((before, now))) => {
            info!(
                before,
                now, "raised fs.inotify.max_user_instances, or few nodes could start"
            );
        }
        Err(error) => {
            warn!(%error, "failed to raise fs.inotify.max_user_instances; raise it by sysctl if nodes do not join");
        }
    }
}

/// The parts, from the first to the last.
async fn run(
    data_dir: &Utf8Path,
    args: &ServeArgs,
    distro: &Distro,
    started: Stopwatch,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let installation =
        identity::load_or_make(data_dir).context("failed to identify the installation")?;
    bring_up_to_date(data_dir).context("failed to serve")?;
    let program =
        Utf8PathBuf::try_from(std::env::current_exe().context("failed to find this program")?)?;
    let clock: Arc<dyn Clock> = Arc::new(HostClock);
    info!(%installation, %data_dir, distro = %distro.id, kubernetes = %distro.kubernetes, "neap starts");

    let listener = Listener::bind(args.listen).await?;
    let address = listener.address();
    let planes = HostedControlPlanes::new(
        Config {
            data: data_dir.to_owned(),
            installation: installation.clone(),
            distros: distros(distro),
            program: program.clone(),
            endpoint: address,
        },
        Arc::clone(&clock),
    );
    let nodes = adopt_machines(data_dir, &installation, distro, program).await?;
    let hub = tokio::select! {
        hub = Hub::start(&planes, Arc::clone(&clock)) => hub.context("failed to start the management API")?,
        () = shutdown.cancelled() => return Ok(()),
    };
    info!(adopted = hub.adopted(), "the management API answers");

    let operator = Operator::new(OperatorConfig {
        installation,
        hub: hub.client(),
        control_planes: Arc::new(planes.clone()),
        providers: nodes,
        clock,
    });
    planes
        .make_recorded_known()
        .context("failed to read the clusters of an earlier run")?;
    let socket = Socket::open(&data_dir.join(SOCKET))?;
    let doors = async {
        tokio::join!(
            socket.serve(Arc::new(planes.clone())),
            listener.serve(planes.directory(), Arc::new(planes.clone()))
        );
    };
    info!(%address, took = %elapsed(started.elapsed()), "neap is ready");
    let ready = format!("neap is ready on https://{address}, data in {data_dir}\n");
    if let Err(error) = print(&ready) {
        // Whoever started it reads the log, or nothing.
        warn!("failed to say on standard output that neap is ready: {error:#}");
    }
    tokio::select! {
        () = operator.run(shutdown) => {}
        () = doors => {}
    }
    Ok(())
}

/// Every build on this machine: a Cluster keeps the one it was started with.
fn distros(newest: &Distro) -> Distros {
    let of = |distro: &Distro| neap_controlplane::Distro {
        id: distro.id.clone(),
        version: distro.kubernetes.clone(),
        hyperkube: distro.path.join("bin/hyperkube"),
    };
    newest
        .siblings()
        .iter()
        .fold(Distros::new(of(newest)), |all, sibling| {
            all.with(of(sibling))
        })
}

async fn adopt_machines(
    data_dir: &Utf8Path,
    installation: &InstallationId,
    distro: &Distro,
    program: Utf8PathBuf,
) -> anyhow::Result<Arc<ContainerNodes>> {
    let clusters = data_dir.join("clusters");
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&clusters)
        .with_context(|| format!("failed to make {clusters}"))?;
    let nodes = ContainerNodes::new(ContainerNodesConfig {
        data: clusters,
        installation: installation.clone(),
        software: std::iter::once(distro)
            .chain(&distro.siblings())
            .map(|distro| (distro.id.clone(), NodeSoftware::of_distro(&distro.path)))
            .collect(),
        program,
    });
    let adopted = nodes
        .adopt_all()
        .await
        .context("failed to take over the machines of an earlier run")?;
    for machine in &adopted {
        info!(machine = %machine.machine, cluster = %machine.cluster, power = ?machine.power, "found a machine");
    }
    Ok(Arc::new(nodes))
}

/// The usual soft limit is for programs that wait with `select`; each stream of
/// a client takes two descriptors. What cannot be raised stays as it is: the
/// listener takes no more clients than it allows.
fn allow_files() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit
        .maximum
        .map_or(OPEN_FILES, |maximum| maximum.min(OPEN_FILES));
    if limit.current.is_some_and(|current| current < wanted) {
        let raised = Rlimit {
            current: Some(wanted),
            maximum: limit.maximum,
        };
        // Not said: there is no log yet, and nothing is lost.
        let _ = setrlimit(Resource::Nofile, raised);
    }
}

/// A first signal asks for the end.
fn cancel_at_signal(shutdown: CancellationToken) -> anyhow::Result<impl Future<Output = ()>> {
    let asked_to_end = asked_to_end()?;
    Ok(async move {
        asked_to_end.await;
        info!("asked to end");
        shutdown.cancel();
    })
}

/// The loops have had their time.
async fn gave_up(shutdown: &CancellationToken) {
    shutdown.cancelled().await;
    tokio::time::sleep(END_DEADLINE).await;
}
