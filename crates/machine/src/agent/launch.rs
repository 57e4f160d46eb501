//! Programs of the node: what they are told, and what becomes of what they say.

use super::config::{AgentConfig, BIN_DIR, CONFIG_DIR};
use super::processes::Program;
use crate::node_config::KUBELET_FILE;
use camino::Utf8PathBuf;
use neap_core::logs::NODE_PROGRAM;
use neap_process::LogFile;
use rustix::pipe::PipeFlags;
use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::task::JoinSet;

/// What is read of a program's output at once.
const CHUNK: usize = 8 * 1024;

/// Starts programs and writes what they say into a log each.
#[derive(Debug)]
pub(crate) struct Launcher {
    folder: Utf8PathBuf,
    logs: BTreeMap<String, Arc<Mutex<LogFile>>>,
    /// One for each program that still has its output open.
    readers: JoinSet<()>,
}

impl Launcher {
    /// Logs are written into this folder.
    pub(crate) fn new(folder: Utf8PathBuf) -> Self {
        Self {
            folder,
            logs: BTreeMap::new(),
            readers: JoinSet::new(),
        }
    }

    /// Starts a program with an environment of the node's own; it is reaped
    /// with all other children.
    pub(crate) fn start(&mut self, command: &[String], log: &str) -> io::Result<i32> {
        let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let log = self.log(log)?;
        let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let output = Receiver::from_owned_fd(read)?;
        let child = Command::new(program)
            .args(arguments)
            .env_clear()
            .env(
                "PATH",
                format!("{BIN_DIR}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
            )
            .env("HOME", "/root")
            // Half of Go's usual head room: a node's programs are idle mostly.
            .env("GOGC", "50")
            .stdin(Stdio::null())
            .stdout(write.try_clone()?)
            .stderr(write)
            .process_group(0)
            .spawn()?;
        self.readers.spawn(keep(output, log));
        i32::try_from(child.id()).map_err(io::Error::other)
    }

    /// Returns when one more program has let go of its output.
    pub(crate) async fn output_ended(&mut self) {
        if self.readers.join_next().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    fn log(&mut self, name: &str) -> io::Result<Arc<Mutex<LogFile>>> {
        if let Some(log) = self.logs.get(name) {
            return Ok(Arc::clone(log));
        }
        let path = self.folder.join(format!("{name}.log"));
        let log = Arc::new(Mutex::new(LogFile::open(&path, NODE_PROGRAM)?));
        self.logs.insert(name.to_owned(), Arc::clone(&log));
        Ok(log)
    }
}

/// Reads to the end, whatever becomes of the log: nothing in the node may wait
/// for a full disk.
async fn keep(mut output: Receiver, log: Arc<Mutex<LogFile>>) {
    let mut chunk = vec![0; CHUNK];
    while let Ok(length @ 1..) = output.read(&mut chunk).await {
        let said = chunk.get(..length).unwrap_or_default();
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        let _: io::Result<()> = log.append(said);
    }
}

/// How a program is started.
pub(crate) fn command_line(config: &AgentConfig, program: Program) -> Vec<String> {
    let hyperkube = format!("{BIN_DIR}/hyperkube");
    match program {
        Program::Containerd => {
            vec![
                format!("{BIN_DIR}/containerd"),
                format!("--config={CONFIG_DIR}/containerd.toml"),
            ]
        }
        Program::Kubelet => vec![
            hyperkube,
            "kubelet".to_owned(),
            format!("--config={CONFIG_DIR}/{KUBELET_FILE}"),
            format!("--kubeconfig={CONFIG_DIR}/kubelet.kubeconfig"),
            format!("--hostname-override={}", config.name),
            format!("--node-ip={}", config.address),
            format!("--node-labels={}", config.labels),
            "--root-dir=/var/lib/kubelet".to_owned(),
            "--v=0".to_owned(),
        ],
        Program::KubeProxy => {
            vec![
                hyperkube,
                "kube-proxy".to_owned(),
                format!("--config={CONFIG_DIR}/kube-proxy.json"),
                "--v=0".to_owned(),
            ]
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use camino::Utf8Path;

    #[tokio::test]
    async fn output_of_several_runs_is_in_one_bounded_log() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        let mut launcher = Launcher::new(folder.to_owned());
        let script = "echo said; head -c 5000000 /dev/zero | tr '\\0' '\\n'; echo last >&2";
        for _ in 0..2 {
            let command = ["/bin/sh", "-c", script].map(str::to_owned);
            launcher.start(&command, "kubelet").unwrap();
            launcher.output_ended().await;
        }
        let log = folder.join("kubelet.log");
        assert!(std::fs::read_to_string(&log).unwrap().ends_with("\nlast\n"));
        let files = folder.read_dir_utf8().unwrap().map(Result::unwrap);
        let sizes: Vec<u64> = files.map(|file| file.metadata().unwrap().len()).collect();
        assert_eq!(sizes.len(), 2);
        assert!(sizes.iter().all(|size| *size <= NODE_PROGRAM), "{sizes:?}");
    }
}
