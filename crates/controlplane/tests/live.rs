//! Proof on real processes: control planes start, are reached, adopted,
//! started again and removed without a trace. Needs root and the distro.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

use async_trait::async_trait;
use camino::{Utf8Path, Utf8PathBuf};
use futures::FutureExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::Api;
use kube::api::{ListParams, PostParams};
use neap_api::Cluster;
use neap_controlplane::access::socket::{Socket, ask};
use neap_controlplane::access::{Listener, MintedCredential, Reply, Request};
use neap_controlplane::{Config, Distro, Distros, HostedControlPlanes, Hub, await_ready};
use neap_core::ids::{ClusterUid, InstallationId};
use neap_core::lifecycle::ObservedControlPlane;
use neap_operator::traits::{Clock, ControlPlanePlan, ControlPlanes, TenantIdentity};
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::task::AbortOnDropHandle;

const DEADLINE: Duration = Duration::from_secs(90);
const UID: &str = "11fe57a7-0000-4000-8000-000000000001";
const INSTALLATION: &str = "11fe57a7-aaaa-4000-8000-000000000002";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some("shim") {
        return neap_process::run_shim(Utf8Path::new(&arguments.next().unwrap()));
    }
    if !rustix::process::geteuid().is_root() {
        println!("live: not run: it needs root, for network namespaces and control groups");
        return ExitCode::SUCCESS;
    }
    let Some(hyperkube) = find_hyperkube() else {
        println!("live: not run: it needs the distro; `cargo xtask distro` builds it");
        return ExitCode::SUCCESS;
    };
    let folder = tempfile::Builder::new()
        .prefix("neap-live-")
        .tempdir()
        .unwrap();
    let data = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let proof = runtime.block_on(async {
        let proof = tokio::time::timeout(DEADLINE, prove(data.clone(), hyperkube.clone()));
        let proof = AssertUnwindSafe(proof).catch_unwind().await;
        if !matches!(proof, Ok(Ok(()))) {
            show_logs(&data);
        }
        clean_up(&data, &hyperkube).await;
        proof
    });
    match proof {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(late)) => {
            println!("live: FAILED: not done within {DEADLINE:?}: {late}");
            ExitCode::FAILURE
        }
        // The panic has said why.
        Err(_) => ExitCode::FAILURE,
    }
}

fn find_hyperkube() -> Option<Utf8PathBuf> {
    let set = |name: &str| std::env::var(name).ok().map(Utf8PathBuf::from);
    let distro = set("NEAP_DISTRO")
        .or_else(|| set("NEAP_CACHE").map(|cache| cache.join("distro/current")))
        .or_else(|| set("HOME").map(|home| home.join(".cache/neap/distro/current")))?;
    let hyperkube = distro.join("bin/hyperkube");
    hyperkube.exists().then_some(hyperkube)
}

struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// What one `neap serve` is: the planes and both doors.
struct Serve {
    planes: HostedControlPlanes,
    socket: Utf8PathBuf,
    _doors: [AbortOnDropHandle<()>; 2],
}

fn planes(
    data: &Utf8Path,
    hyperkube: &Utf8Path,
    endpoint: std::net::SocketAddr,
) -> HostedControlPlanes {
    let program = Utf8PathBuf::from_path_buf(std::env::current_exe().unwrap()).unwrap();
    let distro = Distro {
        id: "test".into(),
        version: "v0".into(),
        hyperkube: hyperkube.to_owned(),
    };
    let config = Config {
        data: data.to_owned(),
        installation: InstallationId::new(INSTALLATION),
        distros: Distros::new(distro),
        program,
        endpoint,
    };
    HostedControlPlanes::new(config, Arc::new(SystemClock))
}

impl Serve {
    async fn start(data: &Utf8Path, hyperkube: &Utf8Path) -> Self {
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap())
            .await
            .unwrap();
        let planes = planes(data, hyperkube, listener.address());
        let socket = data.join("neap.sock");
        let door = Socket::open(&socket).unwrap();
        let listening = tokio::spawn(listener.serve(planes.directory(), Arc::new(planes.clone())));
        let minting = tokio::spawn(door.serve(Arc::new(planes.clone())));
        Self {
            planes,
            socket,
            _doors: [
                AbortOnDropHandle::new(listening),
                AbortOnDropHandle::new(minting),
            ],
        }
    }

    async fn mint(&self, request: Request) -> Result<MintedCredential, String> {
        match ask(&self.socket, &request).await.unwrap() {
            Reply::Credential(credential) => Ok(credential),
            other => Err(format!("{other:?}")),
        }
    }
}

fn uid() -> ClusterUid {
    ClusterUid::new(UID)
}

fn plan() -> ControlPlanePlan {
    ControlPlanePlan {
        cluster: uid(),
        account: "team".into(),
        name: "ci".into(),
        allow_privileged: false,
        audit: neap_core::audit::AuditLevel::Metadata,
        distro: None,
        version: None,
    }
}

async fn clean_up(data: &Utf8Path, hyperkube: &Utf8Path) {
    let planes = planes(data, hyperkube, "127.0.0.1:1".parse().unwrap());
    for uid in [uid(), planes.hub_uid()] {
        if let Err(error) = planes.delete(&uid).await {
            println!(
                "live: left behind: {error}: {:?}",
                std::error::Error::source(&error)
            );
        }
    }
}

/// What the control planes said last, for a proof that failed.
fn show_logs(data: &Utf8Path) {
    for folder in [data.join("clusters").join(UID), data.join("hub")] {
        let Ok(log) = std::fs::read_to_string(folder.join("control-plane/log")) else {
            continue;
        };
        let lines: Vec<_> = log.lines().collect();
        println!(
            "live: {folder} said last:\n{}",
            lines
                .get(lines.len().saturating_sub(40)..)
                .unwrap()
                .join("\n")
        );
    }
}

async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let looking = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let found = tokio::time::timeout(Duration::from_secs(10), looking).await;
    found.unwrap_or_else(|_| panic!("not so within 10 s: {what}"))
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long the steps take is shown"
)]
fn moment() -> Instant {
    Instant::now()
}

/// Says how long each step took.
struct Steps {
    begun: Instant,
    last: Instant,
}

impl Steps {
    fn start() -> Self {
        Self {
            begun: moment(),
            last: moment(),
        }
    }

    fn done(&mut self, step: &str) {
        let (step_time, all) = (
            self.last.elapsed().as_secs_f64(),
            self.begun.elapsed().as_secs_f64(),
        );
        println!("live: {step:<42} {step_time:>7.3} s  {all:>7.3} s");
        self.last = moment();
    }
}

async fn prove(data: Utf8PathBuf, hyperkube: Utf8PathBuf) {
    let mut steps = Steps::start();
    let serve = Serve::start(&data, &hyperkube).await;
    let refused = serve
        .mint(Request::Credential {
            account: "team".into(),
            cluster: "ci".into(),
        })
        .await;
    assert!(refused.unwrap_err().contains("ClusterNotFound"));
    assert_eq!(
        serve.planes.observe(&uid()).await.unwrap(),
        ObservedControlPlane::Absent
    );

    up(&serve.planes, &mut steps).await;
    reached_from_outside(&serve, &hyperkube, &data, &mut steps).await;
    secrets_are_encrypted(&serve.planes, &data).await;
    steps.done("a secret is not in the store's files");

    let pid = running_pid(&data);
    drop(serve);
    let serve = Serve::start(&data, &hyperkube).await;
    assert_eq!(serve.planes.ensure(&plan()).await.unwrap(), "test");
    assert_eq!(running_pid(&data), pid, "adopted, not started again");
    steps.done("adopted by the next neap");

    started_again(&serve.planes, &data, pid, &mut steps).await;
    serve.planes.delete(&uid()).await.unwrap();
    steps.done("removed");
    nothing_is_left(&serve.planes, &data).await;
    serve.planes.delete(&uid()).await.unwrap();
    let gone = serve
        .mint(Request::Credential {
            account: "team".into(),
            cluster: "ci".into(),
        })
        .await;
    assert!(gone.unwrap_err().contains("ClusterNotFound"));
    steps.done("nothing is left");
    hub(&serve.planes, &mut steps).await;
}

/// From nothing to the default ServiceAccount.
async fn up(planes: &HostedControlPlanes, steps: &mut Steps) {
    assert_eq!(planes.ensure(&plan()).await.unwrap(), "test");
    steps.done("started");
    ready(planes, steps).await;
    let observed = planes.observe(&uid()).await.unwrap();
    assert!(
        matches!(observed, ObservedControlPlane::Running { .. }),
        "{observed:?}"
    );
}

async fn ready(planes: &HostedControlPlanes, steps: &mut Steps) {
    let bootstrap = planes
        .client(&uid(), TenantIdentity::Bootstrap)
        .await
        .unwrap();
    await_ready(&bootstrap, std::future::pending())
        .await
        .unwrap();
    steps.done("readyz");
    planes.bootstrap(&uid()).await.unwrap();
    steps.done("roles written");
    let operator = planes
        .client(&uid(), TenantIdentity::Operator)
        .await
        .unwrap();
    let accounts: Api<ServiceAccount> = Api::namespaced(operator.clone(), "default");
    until("the default ServiceAccount is there", async || {
        accounts.get("default").await.ok()
    })
    .await;
    steps.done("default ServiceAccount");
    // Exactly the rights of the loops.
    let secrets: Api<Secret> = Api::namespaced(operator, "default");
    let refused = secrets.list(&ListParams::default()).await.unwrap_err();
    assert!(
        matches!(&refused, kube::Error::Api(status) if status.code == 403),
        "{refused}"
    );
}

/// kubectl, through the listener, with a minted credential.
async fn reached_from_outside(
    serve: &Serve,
    hyperkube: &Utf8Path,
    data: &Utf8Path,
    steps: &mut Steps,
) {
    let credential = serve
        .mint(Request::Credential {
            account: "team".into(),
            cluster: "ci".into(),
        })
        .await
        .unwrap();
    assert_eq!(credential.tls_server_name, "ci.team.clusters.neap.internal");
    let kubeconfig = data.join("user.kubeconfig");
    for (file, text) in [
        ("ca", &credential.ca),
        ("crt", &credential.certificate),
        ("key", &credential.key),
    ] {
        std::fs::write(data.join(file), text).unwrap();
    }
    let config = serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {
            "server": credential.server,
            "tls-server-name": credential.tls_server_name,
            "certificate-authority": data.join("ca"),
        }}],
        "users": [{"name": "u", "user": {"client-certificate": data.join("crt"), "client-key": data.join("key")}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    });
    std::fs::write(&kubeconfig, config.to_string()).unwrap();
    let output = tokio::process::Command::new(hyperkube)
        .args(["kubectl", "auth", "whoami", "-o", "json"])
        .env_clear()
        .env("KUBECONFIG", &kubeconfig)
        .env("HOME", data)
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        said.contains("neap:admin") && said.contains("neap:cluster-admins"),
        "{said}"
    );
    steps.done("kubectl through the listener");
}

async fn secrets_are_encrypted(planes: &HostedControlPlanes, data: &Utf8Path) {
    let client = planes
        .client(&uid(), TenantIdentity::Bootstrap)
        .await
        .unwrap();
    let secrets: Api<Secret> = Api::namespaced(client, "default");
    let secret = serde_json::from_value(serde_json::json!({
        "metadata": {"name": "needle"}, "stringData": {"word": "plain-needle-in-the-store"},
    }));
    secrets
        .create(&PostParams::default(), &secret.unwrap())
        .await
        .unwrap();
    let folder = data.join("clusters").join(UID).join("control-plane");
    let mut bytes = Vec::new();
    for file in ["state.db", "state.db-wal"] {
        bytes.extend(std::fs::read(folder.join(file)).unwrap_or_default());
    }
    let holds = |text: &str| {
        bytes
            .windows(text.len())
            .any(|window| window == text.as_bytes())
    };
    assert!(
        holds("/registry/secrets/default/needle"),
        "the secret is in the store"
    );
    assert!(!holds("plain-needle-in-the-store"));
    // What the API writes as base64 in JSON or raw in protobuf, neither.
    assert!(!holds("cGxhaW4tbmVlZGxlLWluLXRoZS1zdG9yZQ=="));
}

fn group(name: &str) -> Vec<Utf8PathBuf> {
    let path = format!("neap/11fe57a7/{name}");
    let cgroup = neap_process::cgroup::CgroupPath::new(path.trim_end_matches('/')).unwrap();
    neap_process::cgroup::Cgroup::at(&cgroup).folders()
}

fn running_pid(_data: &Utf8Path) -> i32 {
    let cgroup =
        neap_process::cgroup::CgroupPath::new("neap/11fe57a7/11fe57a7/control-plane").unwrap();
    let pids = neap_process::cgroup::Cgroup::at(&cgroup).pids().unwrap();
    assert_eq!(
        pids.len(),
        1,
        "one process is a whole control plane: {pids:?}"
    );
    *pids.first().unwrap()
}

/// Its end is noticed and it comes back with all its data.
async fn started_again(planes: &HostedControlPlanes, data: &Utf8Path, pid: i32, steps: &mut Steps) {
    let process = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
    planes.ended(&uid()).await;
    steps.done("its end is noticed");
    let observed = planes.observe(&uid()).await.unwrap();
    assert!(
        matches!(&observed, ObservedControlPlane::Exited { at: Some(_), how } if how.contains("signal 9")),
        "{observed:?}"
    );
    planes.ensure(&plan()).await.unwrap();
    steps.done("started again");
    ready(planes, steps).await;
    assert_ne!(running_pid(data), pid);
    let client = planes
        .client(&uid(), TenantIdentity::Bootstrap)
        .await
        .unwrap();
    Api::<Secret>::namespaced(client, "default")
        .get("needle")
        .await
        .unwrap();
}

async fn hub(planes: &HostedControlPlanes, steps: &mut Steps) {
    let hub = Hub::start(planes, Arc::new(SystemClock)).await.unwrap();
    assert!(!hub.adopted());
    steps.done("the hub is ready, with its definitions");
    let clusters: Api<Cluster> = Api::namespaced(hub.client(), "default");
    assert!(
        clusters
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
    drop(hub);
    let hub = Hub::start(planes, Arc::new(SystemClock)).await.unwrap();
    assert!(hub.adopted());
    steps.done("the hub is adopted");
    drop(hub);
    planes.delete(&planes.hub_uid()).await.unwrap();
    assert_eq!(
        planes.observe(&planes.hub_uid()).await.unwrap(),
        ObservedControlPlane::Absent
    );
    assert_eq!(group(""), Vec::<Utf8PathBuf>::new());
    steps.done("the hub is removed");
}

async fn nothing_is_left(planes: &HostedControlPlanes, data: &Utf8Path) {
    assert_eq!(
        planes.observe(&uid()).await.unwrap(),
        ObservedControlPlane::Absent
    );
    assert!(!data.join("clusters").join(UID).exists());
    assert!(!neap_net::NetworkNamespace::new("neap-11fe57a7").exists());
    assert_eq!(group("11fe57a7"), Vec::<Utf8PathBuf>::new());
    assert!(planes.recorded().unwrap().is_empty());
}
