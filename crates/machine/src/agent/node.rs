//! Phase two: the programs of the node, from start to end.

use super::config::{AgentConfig, BIN_DIR, CNI_DIR, CONFIG_DIR, LOG_DIR};
use super::control::{Answer, Command, Request};
use super::launch::{Launcher, command_line};
use super::processes::{Processes, Program};
use super::{control, monotonic, say};
use crate::node_config::{CNI_FILE, CONTAINERD_SOCKET, KUBELET_FILE};
use camino::{Utf8Path, Utf8PathBuf};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process};
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

/// How often containerd's socket is looked for while it starts.
const LOOK: Duration = Duration::from_millis(5);
/// How long a kubelet may take to end before it is killed; it loses nothing.
const KUBELET_GRACE: Duration = Duration::from_secs(1);
/// How long each step of the orderly end may take.
const STEP: Duration = Duration::from_millis(500);
/// Where the kubelet says that it lives.
const KUBELET_HEALTH: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 10248);
/// How long after that the Node is registered, as a rule. kube-proxy looks for
/// it at its start and then once a second: it is not to come too early.
const REGISTRATION: Duration = Duration::from_millis(100);
/// kube-proxy does not wait longer than this for the kubelet.
const PROXY_WAITS: Duration = Duration::from_secs(2);
/// Wait before an image that could not be imported is tried again.
const IMPORT_RETRY: Duration = Duration::from_secs(1);

/// The node could not be kept.
#[derive(Debug, thiserror::Error)]
#[error("failed to {operation}")]
pub(crate) struct RunNodeError {
    operation: &'static str,
    #[source]
    source: io::Error,
}

fn failed(operation: &'static str) -> impl FnOnce(io::Error) -> RunNodeError {
    move |source| RunNodeError { operation, source }
}

/// Keeps the node until it is told to end.
pub(crate) async fn run(config: &AgentConfig) -> Result<(), RunNodeError> {
    let mut children = signal(SignalKind::child()).map_err(failed("listen for ended children"))?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed("listen for the end"))?;
    let listener = control::listen().map_err(failed("listen on the control socket"))?;
    let (sender, mut requests) = mpsc::channel::<Request>(16);
    let mut connections = JoinSet::new();
    let mut node = Node::new(config);
    node.processes.want(Program::Containerd);
    loop {
        node.advance();
        let wake = node.next_wake();
        tokio::select! {
            _ = children.recv() => node.reap(),
            _ = terminate.recv() => break,
            Some(request) = requests.recv() => node.handle(request),
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => { connections.spawn(control::serve(stream, sender.clone())); }
                Err(error) => say(format!("failed to accept a connection: {error}")),
            },
            Some(served) = connections.join_next(), if !connections.is_empty() => {
                if let Ok(Err(error)) = served {
                    say(format!("a connection broke: {error}"));
                }
            }
            () = node.launcher.output_ended() => {}
            () = tokio::time::sleep(wake) => {}
        }
    }
    node.shut_down(&mut children).await;
    Ok(())
}

/// How far the start has come.
#[derive(Debug, PartialEq, Eq)]
enum Stage {
    /// containerd does not answer yet.
    Containerd,
    /// Images are imported; without a network configuration the Node cannot
    /// become Ready before they are there.
    Images,
    /// Everything is started.
    Started,
}

struct Node<'a> {
    config: &'a AgentConfig,
    processes: Processes,
    launcher: Launcher,
    stage: Stage,
    /// Images that are to be imported, and not before when.
    images: Vec<(Duration, Utf8PathBuf)>,
    /// Imports that run.
    imports: BTreeMap<i32, Utf8PathBuf>,
    /// The kubelet may run as far as its user is concerned.
    kubelet_allowed: bool,
    /// The configuration that the kubelet was last started with.
    kubelet_config: Option<Vec<u8>>,
    /// Who waits for another kubelet.
    reloading: Vec<oneshot::Sender<Answer>>,
    /// Who waits for the kubelet's end, and when it is killed.
    stopping: Vec<oneshot::Sender<Answer>>,
    kill_kubelet_at: Option<Duration>,
    proxy: Proxy,
}

/// Whether kube-proxy may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proxy {
    /// Once the kubelet lives, and at the latest then.
    AfterKubelet(Duration),
    /// Then.
    At(Duration),
    /// It was.
    Wanted,
}

impl<'a> Node<'a> {
    fn new(config: &'a AgentConfig) -> Self {
        Self {
            config,
            processes: Processes::default(),
            launcher: Launcher::new(LOG_DIR.into()),
            stage: Stage::Containerd,
            images: config
                .images()
                .into_iter()
                .map(|(_, inside)| (Duration::ZERO, inside))
                .collect(),
            imports: BTreeMap::new(),
            kubelet_allowed: true,
            kubelet_config: None,
            reloading: Vec::new(),
            stopping: Vec::new(),
            kill_kubelet_at: None,
            proxy: Proxy::AfterKubelet(Duration::MAX),
        }
    }

    /// Does all that is due.
    fn advance(&mut self) {
        let now = monotonic();
        if self.stage == Stage::Containerd && self.containerd_answers() {
            say("containerd answers");
            self.stage = Stage::Images;
            if self.kubelet_allowed {
                self.processes.want(Program::Kubelet);
            }
            self.proxy = Proxy::AfterKubelet(now + PROXY_WAITS);
        }
        self.admit_proxy(now);
        if self.stage == Stage::Images {
            self.import(now);
            if self.images.is_empty() && self.imports.is_empty() {
                self.finish_start(now);
            }
        }
        for program in self.processes.due(now) {
            if program == Program::Kubelet {
                self.kubelet_config = kubelet_config();
            }
            let command = command_line(self.config, program);
            match self.launcher.start(&command, program.name()) {
                Ok(pid) => {
                    self.processes.started(program, pid, now);
                    if program == Program::Kubelet {
                        self.answer_reloading();
                    }
                }
                Err(error) => {
                    say(format!("failed to start {}: {error}", program.name()));
                    self.processes.start_failed(program, now);
                }
            }
        }
        if self.kill_kubelet_at.is_some_and(|at| at <= now) {
            self.kill_kubelet_at = None;
            send(self.processes.pid(Program::Kubelet), Signal::KILL);
        }
    }

    fn admit_proxy(&mut self, now: Duration) {
        if let Proxy::AfterKubelet(latest) = self.proxy {
            let lives = self.processes.pid(Program::Kubelet).is_some()
                && TcpStream::connect(KUBELET_HEALTH).is_ok();
            if lives {
                self.proxy = Proxy::At(now + REGISTRATION);
            } else if latest <= now {
                self.proxy = Proxy::At(now);
            }
        }
        if matches!(self.proxy, Proxy::At(at) if at <= now) {
            self.proxy = Proxy::Wanted;
            self.processes.want(Program::KubeProxy);
        }
    }

    fn next_wake(&self) -> Duration {
        let now = monotonic();
        let looking = match (&self.stage, self.proxy) {
            (Stage::Containerd, _) => Some(now + LOOK),
            (_, Proxy::AfterKubelet(_)) => Some(now + 4 * LOOK),
            (_, Proxy::At(at)) => Some(at),
            (_, Proxy::Wanted) => None,
        };
        let importing = self.images.iter().map(|(at, _)| *at).min();
        [
            looking,
            importing,
            self.processes.next_due(),
            self.kill_kubelet_at,
        ]
        .into_iter()
        .flatten()
        .min()
        .map_or(Duration::from_secs(3600), |at| at.saturating_sub(now))
    }

    fn containerd_answers(&self) -> bool {
        self.processes.pid(Program::Containerd).is_some()
            && UnixStream::connect(CONTAINERD_SOCKET).is_ok()
    }

    fn import(&mut self, now: Duration) {
        let (due, later) = std::mem::take(&mut self.images)
            .into_iter()
            .partition(|(at, _)| *at <= now);
        self.images = later;
        for (_, image) in due {
            let command = [
                format!("{BIN_DIR}/ctr"),
                format!("--address={CONTAINERD_SOCKET}"),
                "--namespace=k8s.io".to_owned(),
                "images".to_owned(),
                "import".to_owned(),
                image.to_string(),
            ];
            match self.launcher.start(&command, "import") {
                Ok(pid) => {
                    self.imports.insert(pid, image);
                }
                Err(error) => {
                    say(format!("failed to start the import of {image}: {error}"));
                    self.images.push((now + IMPORT_RETRY, image));
                }
            }
        }
    }

    fn finish_start(&mut self, now: Duration) {
        let target = Utf8Path::new(CNI_DIR).join(CNI_FILE);
        // containerd reads what appears in the folder: it must be whole.
        let unfinished = Utf8Path::new(CNI_DIR).join(".unfinished");
        let written = std::fs::copy(Utf8Path::new(CONFIG_DIR).join(CNI_FILE), &unfinished)
            .and_then(|_| std::fs::rename(&unfinished, &target));
        match written {
            Ok(()) => {
                say("the images are there");
                self.stage = Stage::Started;
            }
            Err(error) => {
                say(format!("failed to write {target}: {error}"));
                self.images.extend(
                    self.config
                        .images()
                        .into_iter()
                        .take(1)
                        .map(|(_, inside)| (now + IMPORT_RETRY, inside)),
                );
            }
        }
    }

    fn handle(&mut self, (command, answer): Request) {
        match command {
            Command::Status => {}
            Command::StartKubelet => {
                self.kubelet_allowed = true;
                if self.stage != Stage::Containerd {
                    self.processes.want(Program::Kubelet);
                    self.advance();
                }
            }
            Command::ReloadKubelet => {
                // One that does not run reads what there is when it starts.
                if self.kubelet_config != kubelet_config()
                    && let Some(pid) = self.processes.restart(Program::Kubelet)
                {
                    say("the kubelet is started anew: its configuration has changed");
                    self.end_kubelet(pid);
                    self.reloading.push(answer);
                    return;
                }
            }
            Command::StopKubelet => {
                self.kubelet_allowed = false;
                self.answer_reloading();
                self.processes.unwant(Program::Kubelet);
                if let Some(pid) = self.processes.pid(Program::Kubelet) {
                    self.end_kubelet(pid);
                    self.stopping.push(answer);
                    return;
                }
            }
        }
        // Whoever asked may be gone by now.
        let _ = answer.send(Answer::Ok(self.processes.report()));
    }

    fn end_kubelet(&mut self, pid: i32) {
        send(Some(pid), Signal::TERM);
        self.kill_kubelet_at = Some(monotonic() + KUBELET_GRACE);
    }

    fn answer_reloading(&mut self) {
        for answer in self.reloading.drain(..) {
            let _ = answer.send(Answer::Ok(self.processes.report()));
        }
    }

    /// Takes every child that has ended, orphans included.
    fn reap(&mut self) {
        // Err is "no children"; none of both is "none has ended".
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            self.ended(pid.as_raw_pid(), status);
        }
    }

    fn ended(&mut self, pid: i32, status: WaitStatus) {
        let now = monotonic();
        if let Some(image) = self.imports.remove(&pid) {
            if status.exit_status() != Some(0) {
                say(format!("the import of {image} {}", describe(status)));
                self.images.push((now + IMPORT_RETRY, image));
            }
            return;
        }
        let Some(program) = self.processes.ended(pid, now) else {
            return;
        };
        say(format!("{} {}", program.name(), describe(status)));
        if program == Program::Kubelet {
            self.kill_kubelet_at = None;
            for answer in self.stopping.drain(..) {
                let _ = answer.send(Answer::Ok(self.processes.report()));
            }
        }
    }

    /// Ends everything in order, each step bounded: whatever is left ends
    /// with the agent.
    async fn shut_down(&mut self, children: &mut Signals) {
        say("asked to end");
        for program in Program::ALL {
            self.processes.unwant(program);
        }
        for program in [Program::Kubelet, Program::KubeProxy] {
            send(self.processes.pid(program), Signal::TERM);
        }
        self.wait_until(children, |node| {
            node.processes.pid(Program::Kubelet).is_none()
                && node.processes.pid(Program::KubeProxy).is_none()
        })
        .await;
        for signal in [Signal::TERM, Signal::KILL] {
            let containerd = self.processes.pid(Program::Containerd);
            for pid in others(containerd) {
                send(Some(pid), signal);
            }
            self.wait_until(children, |_| others(containerd).is_empty())
                .await;
        }
        send(self.processes.pid(Program::Containerd), Signal::TERM);
        self.wait_until(children, |node| {
            node.processes.pid(Program::Containerd).is_none()
        })
        .await;
    }

    async fn wait_until(&mut self, children: &mut Signals, done: impl Fn(&Self) -> bool) {
        let waiting = async {
            loop {
                self.reap();
                if done(self) {
                    break;
                }
                children.recv().await;
            }
        };
        if tokio::time::timeout(STEP, waiting).await.is_err() {
            say("something does not end in time");
        }
    }
}

/// What the kubelet would be started with now.
fn kubelet_config() -> Option<Vec<u8>> {
    std::fs::read(Utf8Path::new(CONFIG_DIR).join(KUBELET_FILE)).ok()
}

/// Every process of the node but the agent and this one.
fn others(but: Option<i32>) -> Vec<i32> {
    let Ok(entries) = Utf8Path::new("/proc").read_dir_utf8() else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().parse().ok())
        .filter(|pid| *pid != 1 && Some(*pid) != but)
        .collect()
}

fn send(pid: Option<i32>, signal: Signal) {
    // One that has ended meanwhile needs no signal.
    if let Some(pid) = pid.and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

fn describe(status: WaitStatus) -> String {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => format!("ended with code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}
