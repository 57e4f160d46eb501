//! An installation of its own for the demo, the live proofs and the benches:
//! a data folder, a `neap serve` of it as a child, clients, and the way back
//! to a host without a trace of it.

mod contents;
mod format;
mod lock;
mod purge;
mod scope;
mod traces;
mod wait;

pub(crate) use contents::{check as check_contents, resolve};
pub(crate) use format::bring_up_to_date;
pub(crate) use lock::DataLock;
pub use purge::purge;
pub use scope::Scope;
use scope::neap_cgroups;
pub use traces::Traces;
pub use wait::{Look, until};

use crate::access::Access;
use crate::inotify::InotifyLimit;
use crate::preflight::check_data_dir;
use crate::problem::Problem;
use anyhow::{Context as _, bail};
use camino::{Utf8Path, Utf8PathBuf};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// How long `serve` may take until it answers.
const START_DEADLINE: Duration = Duration::from_secs(60);
/// How long `serve` may take to end.
const STOP_DEADLINE: Duration = Duration::from_secs(15);

/// What an installation is started from.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program `neap`.
    pub program: Utf8PathBuf,
    /// The distro, or the one that was built last.
    pub distro: Option<Utf8PathBuf>,
    /// The data folder, or a temporary one.
    pub data: Option<Utf8PathBuf>,
    /// Leave everything as it is when this ends.
    pub keep: bool,
}

/// A running installation. When it is dropped, all of it is removed, unless
/// it is to be kept.
#[derive(Debug)]
pub struct Installation {
    options: Options,
    data_dir: Utf8PathBuf,
    log: Utf8PathBuf,
    folder: Option<TempDir>,
    serve: Option<Child>,
    scope: Scope,
    inotify: Option<InotifyLimit>,
    purged: bool,
}

impl Installation {
    /// Starts `serve` and returns once it answers.
    ///
    /// # Errors
    /// When it cannot be started or ends before it answers; nothing is left.
    pub async fn start(options: Options) -> anyhow::Result<Self> {
        let mut installation = Self::prepare(options)?;
        installation.start_serve().await?;
        Ok(installation)
    }

    /// Makes the folder and starts nothing yet.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn prepare(options: Options) -> anyhow::Result<Self> {
        let (folder, data_dir) = match &options.data {
            Some(data) => (None, data.clone()),
            None => {
                let folder = tempfile::Builder::new()
                    .prefix("neap-")
                    .tempdir_in(temporary_folder(std::env::temp_dir()))
                    .context("failed to make a temporary folder")?;
                let data = resolve(&Utf8PathBuf::try_from(folder.path().join("data"))?)?;
                (Some(folder), data)
            }
        };
        let log = data_dir.with_file_name("serve.log");
        let scope = Scope::read(&data_dir);
        Ok(Self {
            options,
            data_dir,
            log,
            folder,
            serve: None,
            scope,
            inotify: InotifyLimit::of_host().ok(),
            purged: false,
        })
    }

    /// The data folder.
    pub fn data_dir(&self) -> &Utf8Path {
        &self.data_dir
    }

    /// The log of its `serve`.
    pub fn log(&self) -> &Utf8Path {
        &self.log
    }

    /// The last lines of that log.
    pub fn log_tail(&self, lines: usize) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let all: Vec<&str> = text.lines().collect();
        all.get(all.len().saturating_sub(lines)..)
            .unwrap_or_default()
            .join("\n")
    }

    /// Pid of its `serve`, while it runs.
    pub fn serve_pid(&self) -> Option<u32> {
        self.serve.as_ref().and_then(Child::id)
    }

    /// A client of its hub; its credential is short, ask again for a new one.
    ///
    /// # Errors
    /// When `serve` does not answer.
    pub async fn hub(&self) -> anyhow::Result<kube::Client> {
        Access::new(&self.data_dir).hub().await
    }

    /// A client of one of its Clusters.
    ///
    /// # Errors
    /// When `serve` does not answer or does not know it.
    pub async fn tenant(&self, account: &str, cluster: &str) -> anyhow::Result<kube::Client> {
        Access::new(&self.data_dir).tenant(account, cluster).await
    }

    /// Starts `serve` and returns once it answers.
    ///
    /// # Errors
    /// When it runs already, cannot be started, or ends before it answers.
    pub async fn start_serve(&mut self) -> anyhow::Result<()> {
        if self.serve.is_some() {
            bail!("failed to start serve: it runs already");
        }
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&self.log)
            .with_context(|| format!("failed to open {}", self.log))?;
        let mut command = Command::new(&self.options.program);
        command
            .args([
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--data-dir",
                self.data_dir.as_str(),
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            // A Ctrl-C on the terminal is for the parent, which ends this one in its turn.
            .process_group(0);
        if let Some(distro) = &self.options.distro {
            command.args(["--distro", distro.as_str()]);
        }
        let child = command
            .spawn()
            .with_context(|| format!("failed to start {}", self.options.program))?;
        self.serve = Some(child);
        self.wait_answer().await.context("failed to start serve")
    }

    async fn wait_answer(&mut self) -> anyhow::Result<()> {
        let access = Access::new(&self.data_dir);
        let pid = self.serve_pid();
        let serve = &mut self.serve;
        let ended = until("an answer of serve", START_DEADLINE, async || {
            if let Some(child) = serve.as_mut()
                && let Some(status) = child.try_wait().context("failed to look at serve")?
            {
                return Ok(Look::Done(Some(status)));
            }
            match access.status().await {
                Ok(report) if Some(report.pid) == pid => Ok(Look::Done(None)),
                Ok(report) => Ok(Look::Not(format!("pid {} answers", report.pid))),
                Err(error) => Ok(Look::Not(format!("{error:#}"))),
            }
        })
        .await?;
        self.scope = Scope::read(&self.data_dir);
        if let Some(status) = ended {
            self.serve = None;
            let said = self.log_tail(3);
            bail!("it ended at once ({status}): {said}");
        }
        Ok(())
    }

    /// Kills `serve` as a crash would, and returns when it is gone.
    ///
    /// # Errors
    /// When it does not run.
    pub async fn kill_serve(&mut self) -> anyhow::Result<()> {
        self.scope.refresh();
        let Some(child) = &mut self.serve else {
            bail!("failed to kill serve: it does not run")
        };
        child.kill().await.context("failed to kill serve")?;
        self.serve = None;
        Ok(())
    }

    /// Asks `serve` to end and returns when it has; kills it when it does not.
    ///
    /// # Errors
    /// When it had to be killed.
    pub async fn stop_serve(&mut self) -> anyhow::Result<()> {
        self.scope.refresh();
        let Some(child) = &mut self.serve else {
            return Ok(());
        };
        let pid = child
            .id()
            .and_then(|pid| i32::try_from(pid).ok())
            .and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // The child is not waited for yet, so that the pid is its own.
            let _ = kill_process(pid, Signal::TERM);
        }
        if let Ok(ended) = tokio::time::timeout(STOP_DEADLINE, child.wait()).await {
            ended.context("failed to wait for the end of serve")?;
            self.serve = None;
            return Ok(());
        }
        child.kill().await.context("failed to kill serve")?;
        self.serve = None;
        Err(Problem::TimedOut {
            what: "the end of serve".into(),
            after: format!("{STOP_DEADLINE:?}"),
            look: format!("it was killed; look at {}", self.log),
        }
        .into())
    }

    /// Ends `serve`, if it runs, and starts it again.
    ///
    /// # Errors
    /// As stopping and starting.
    pub async fn restart_serve(&mut self) -> anyhow::Result<()> {
        self.stop_serve().await?;
        self.start_serve().await
    }

    /// Which names on the host are this installation's, as far as is known by
    /// now.
    pub fn scope(&mut self) -> Scope {
        self.scope.refresh();
        self.scope.clone()
    }

    /// What it has on the host, for a comparison.
    pub fn traces(&mut self) -> Traces {
        Traces::take(&self.scope())
    }

    /// What there is of one Cluster and its machines, by their UIDs, though
    /// their records may be gone.
    pub fn traces_of<'a>(
        &self,
        cluster: &str,
        machines: impl IntoIterator<Item = &'a str>,
    ) -> Traces {
        Traces::of(&self.scope.of_cluster(cluster, machines))
    }

    /// Remembers the name that a record's UID has on the host.
    pub fn remember(&mut self, uid: &str) {
        self.scope.remember(uid);
    }

    /// Ends `serve`, removes all of the installation and proves its absence.
    /// Returns what there was.
    ///
    /// # Errors
    /// When something is left.
    pub async fn purge(mut self) -> anyhow::Result<Traces> {
        let stopped = self.stop_serve().await;
        let found = purge(&mut self.scope).await?;
        self.purged = true;
        if let Some(limit) = self.inotify.take().filter(|_| neap_cgroups().is_empty()) {
            // No other installation is here that would need it.
            limit
                .restore()
                .context("failed to put fs.inotify.max_user_instances back")?;
        }
        if let Some(folder) = self.folder.take() {
            folder
                .close()
                .context("failed to remove the temporary folder")?;
        }
        stopped?;
        Ok(found)
    }

    /// Leaves it running and returns its data folder.
    pub fn keep(mut self) -> Utf8PathBuf {
        self.options.keep = true;
        self.data_dir.clone()
    }
}

/// The user's choice, unless sockets below it would have too long a name.
fn temporary_folder(chosen: PathBuf) -> PathBuf {
    let data = chosen.join("neap-XXXXXX/data");
    let fits = Utf8Path::from_path(&data).is_some_and(|data| check_data_dir(data).is_ok());
    if fits { chosen } else { PathBuf::from("/tmp") }
}

impl Drop for Installation {
    fn drop(&mut self) {
        if self.options.keep {
            if let Some(folder) = self.folder.take() {
                let _path = folder.keep();
            }
            return;
        }
        if self.purged {
            return;
        }
        // Only on a panic or an early return: no future can be awaited here,
        // so the program itself does it.
        if let Some(mut serve) = self.serve.take() {
            let _ = serve.start_kill();
            while matches!(serve.try_wait(), Ok(None)) {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        let purged = std::process::Command::new(&self.options.program)
            .args([
                "uninstall",
                "--yes",
                "--quiet",
                "--data-dir",
                self.data_dir.as_str(),
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status();
        if !purged.is_ok_and(|status| status.success())
            && let Some(folder) = self.folder.take()
        {
            // What could not be removed must not lose its identity.
            let _path = folder.keep();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_of_the_temporary_folder_is_not_used() {
        assert_eq!(
            temporary_folder("/var/tmp".into()),
            PathBuf::from("/var/tmp")
        );
        let long = format!("/home/{}", "x".repeat(40));
        assert_eq!(temporary_folder(long.into()), PathBuf::from("/tmp"));
    }
}
