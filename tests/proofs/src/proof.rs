//! One proof: an installation of its own, its steps, and the way back.

use crate::steady::is_ready;
use crate::work::{ready_nodes, running_pods};
use anyhow::{Context as _, Result, bail};
use camino::Utf8PathBuf;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use neap::installation::{Installation, Look, Options, Traces, until};
use neap_api::names::{ANNOTATION_REQUESTED_AT, LABEL_CLUSTER};
use neap_api::{Cluster, Machine};
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Duration;
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

/// How long any one step may take.
pub(crate) const STEP_DEADLINE: Duration = Duration::from_secs(60);

/// A running proof.
#[derive(Debug)]
pub struct Proof {
    /// The installation that it has made.
    pub installation: Installation,
    program: Utf8PathBuf,
    before: Traces,
}

/// Runs a proof: an installation is started, the steps are taken, everything
/// is removed, and nothing may be left. A signal ends it the same way.
pub fn prove(steps: impl AsyncFnOnce(&mut Proof) -> Result<()>) -> ExitCode {
    let outcome = neap::runtime().and_then(|runtime| runtime.block_on(run(steps)));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("failed: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

async fn run(steps: impl AsyncFnOnce(&mut Proof) -> Result<()>) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let program = std::env::var("NEAP_BIN")
        .context("NEAP_BIN names no neap; run this by `cargo xtask test`")?;
    let program = Utf8PathBuf::from(program);
    let distro = std::env::var("NEAP_DISTRO").ok().map(Utf8PathBuf::from);
    let options = Options {
        program: program.clone(),
        distro,
        data: None,
        keep: false,
    };
    let mut installation = Installation::prepare(options)?;
    let before = installation.traces();
    let mut proof = Proof {
        installation,
        program,
        before,
    };
    let outcome = tokio::select! {
        outcome = async { proof.installation.start_serve().await?; steps(&mut proof).await } => outcome,
        _ = terminate.recv() => Err(anyhow::anyhow!("ended by a signal")),
        _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("interrupted")),
    };
    if outcome.is_err() {
        say(&format!(
            "the last lines of serve:\n{}",
            proof.installation.log_tail(60)
        ));
    }
    let left = proof.finish().await;
    outcome.and(left)
}

#[expect(clippy::print_stderr, reason = "a proof tells how far it is")]
fn say(text: &str) {
    eprintln!("   {text}");
}

impl Proof {
    /// Tells how far the proof is.
    pub fn step(&self, text: &str) {
        say(text);
    }

    async fn finish(mut self) -> Result<()> {
        let scope = self.installation.scope();
        self.installation
            .purge()
            .await
            .context("failed to remove the installation")?;
        let left = Traces::take(&scope).difference(&self.before);
        if left.is_empty() {
            Ok(())
        } else {
            bail!("something is left: {}", left.summary())
        }
    }

    /// Runs `neap` as its user does and returns what it printed.
    ///
    /// # Errors
    /// When it does not succeed; with what it said.
    pub async fn neap(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.program);
        command
            .arg("--data-dir")
            .arg(self.installation.data_dir())
            .args(arguments);
        let output = command
            .output()
            .await
            .with_context(|| format!("failed to run {}", self.program))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            bail!(
                "neap {}: {}: {}",
                arguments.join(" "),
                output.status,
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Ok(text)
    }

    /// A Cluster record as it is now.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn cluster(&self, account: &str, name: &str) -> Result<Cluster> {
        let hub = self.installation.hub().await?;
        Ok(Api::<Cluster>::namespaced(hub, account).get(name).await?)
    }

    /// The Machine records of a Cluster.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub async fn machines(&self, account: &str, cluster: &str) -> Result<Vec<Machine>> {
        let hub = self.installation.hub().await?;
        let of_cluster = ListParams::default().labels(&format!("{LABEL_CLUSTER}={cluster}"));
        Ok(Api::<Machine>::namespaced(hub, account)
            .list(&of_cluster)
            .await?
            .items)
    }

    /// Changes the record of a Cluster.
    ///
    /// # Errors
    /// When the hub refuses.
    pub async fn patch_cluster(
        &self,
        account: &str,
        name: &str,
        patch: serde_json::Value,
    ) -> Result<()> {
        let hub = self.installation.hub().await?;
        let api = Api::<Cluster>::namespaced(hub, account);
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        Ok(())
    }

    /// Asks for a pass and returns the Cluster as that pass has left it.
    ///
    /// # Errors
    /// When no pass answers within the deadline of a step.
    pub async fn pass(&self, account: &str, name: &str, word: &str) -> Result<Cluster> {
        let annotations =
            serde_json::json!({"metadata": {"annotations": {ANNOTATION_REQUESTED_AT: word}}});
        self.patch_cluster(account, name, annotations).await?;
        until(&format!("pass {word}"), STEP_DEADLINE, async || {
            let cluster = self.cluster(account, name).await?;
            let decision = cluster
                .status
                .as_ref()
                .and_then(|status| status.last_decision.as_ref());
            let seen = decision.and_then(|decision| decision.requested_at.clone());
            Ok(if seen.as_deref() == Some(word) {
                Look::Done(cluster)
            } else {
                Look::Not(format!("seen: {seen:?}"))
            })
        })
        .await
    }

    /// Gives pods to a tenant, in namespace `default`.
    ///
    /// # Errors
    /// When its API refuses them.
    pub async fn give(
        &self,
        tenant: &kube::Client,
        pods: &[k8s_openapi::api::core::v1::Pod],
    ) -> Result<()> {
        let api = Api::namespaced(tenant.clone(), "default");
        for pod in pods {
            api.create(&PostParams::default(), pod).await?;
        }
        Ok(())
    }

    /// Waits until exactly these pods run, each on a node of its own when
    /// `apart`; returns the nodes.
    ///
    /// # Errors
    /// At the deadline of a step.
    pub async fn until_running(
        &self,
        tenant: &kube::Client,
        names: &[&str],
    ) -> Result<BTreeSet<String>> {
        let wanted: BTreeSet<&str> = names.iter().copied().collect();
        until(
            &format!("pods {} Running", names.join(", ")),
            STEP_DEADLINE,
            async || {
                let running = running_pods(tenant).await?;
                let all = wanted.iter().all(|name| running.contains_key(*name));
                Ok(if all {
                    Look::Done(running.into_values().collect())
                } else {
                    Look::Not(format!("running: {running:?}"))
                })
            },
        )
        .await
    }

    /// Waits until a Cluster has neither Machine nor Node.
    ///
    /// # Errors
    /// At the deadline of a step.
    pub async fn until_zero(&self, account: &str, cluster: &str) -> Result<()> {
        let tenant = self.installation.tenant(account, cluster).await?;
        until(
            &format!("cluster {cluster} at zero"),
            STEP_DEADLINE,
            async || {
                let machines = self.machines(account, cluster).await?;
                let nodes = Api::<k8s_openapi::api::core::v1::Node>::all(tenant.clone())
                    .list(&ListParams::default())
                    .await?;
                Ok(if machines.is_empty() && nodes.items.is_empty() {
                    Look::Done(())
                } else {
                    let phases: Vec<_> = machines
                        .iter()
                        .map(|one| (one.metadata.name.clone(), one.status.clone()))
                        .collect();
                    Look::Not(format!("{} nodes, machines {phases:?}", nodes.items.len()))
                })
            },
        )
        .await
    }

    /// Processes of this installation whose command holds these words, as
    /// `pid command`.
    pub fn processes(&mut self, words: &str) -> BTreeSet<String> {
        let processes = self.installation.traces().processes;
        processes
            .into_iter()
            .filter(|process| process.contains(words))
            .collect()
    }

    /// Proves that a Cluster is Ready and has neither Machine nor Node now.
    ///
    /// # Errors
    /// When it is not so.
    pub async fn is_ready_at_zero(&self, account: &str, name: &str) -> Result<()> {
        let cluster = self.cluster(account, name).await?;
        if !is_ready(&cluster) {
            bail!("cluster {name} is not Ready: {:?}", cluster.status);
        }
        let machines = self.machines(account, name).await?;
        let nodes = ready_nodes(&self.installation.tenant(account, name).await?).await?;
        if !machines.is_empty() || !nodes.is_empty() {
            bail!(
                "cluster {name} has {} machines and nodes {nodes:?}",
                machines.len()
            );
        }
        Ok(())
    }
}
