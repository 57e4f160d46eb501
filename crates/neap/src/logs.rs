//! `neap cluster logs` and `neap machine logs`. They read the files and ask an
//! API only whether a name that has none is known: a log is wanted when
//! something is broken.

mod reader;

use crate::access::Access;
use crate::cli::{
    ClusterComponent, ClusterLogsArgs, Global, MachineComponent, MachineLogsArgs, ReadingArgs,
};
use crate::output::{escape, note, print_bytes};
use crate::problem::Problem;
use crate::records::{find_cluster, find_machine};
use anyhow::Context as _;
use camino::Utf8PathBuf;
use clap::ValueEnum;
use neap_controlplane::logs::{ClusterLogs, FindLogsError, logs_of_account};
use neap_machine::find_machine_logs;
use reader::LogReader;
use std::io::{ErrorKind, IsTerminal as _};
use std::time::Duration;

/// How often a log that is followed is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// What is gathered before it is written.
const BATCH: usize = 64 * 1024;

pub(crate) async fn cluster(global: &Global, args: &ClusterLogsArgs) -> anyhow::Result<()> {
    let (account, name) = (&global.account, &args.name);
    let found = clusters(global)?
        .into_iter()
        .find(|logs| logs.name == *name);
    let Some(logs) = found else {
        return Err(unwritten_cluster(global, name).await)
            .with_context(|| format!("failed to read logs of cluster {account}/{name}"));
    };
    let path = match args.component {
        ClusterComponent::ControlPlane => logs.control_plane(),
        ClusterComponent::Audit => logs.audit(),
        ClusterComponent::Shim => logs.shim(),
    };
    if args.component == ClusterComponent::Audit && !path.exists() {
        return Err(Problem::NoAudit {
            account: account.clone(),
            name: name.clone(),
        }
        .into());
    }
    show(&[(String::new(), path)], args.reading).await
}

pub(crate) async fn machine(global: &Global, args: &MachineLogsArgs) -> anyhow::Result<()> {
    let (account, name) = (&global.account, &args.name);
    let doing = || format!("failed to read logs of machine {account}/{name}");
    let folder = global.data_dir.join("clusters");
    let mut found = None;
    for cluster in clusters(global)? {
        found = find_machine_logs(&folder, &cluster.uid, name).with_context(doing)?;
        if found.is_some() {
            break;
        }
    }
    let Some(logs) = found else {
        return Err(unwritten_machine(global, name).await).with_context(doing);
    };
    let components = match &args.component {
        Some(component) => std::slice::from_ref(component),
        None => MachineComponent::value_variants(),
    };
    let named = components.iter().map(|component| {
        let value = component.to_possible_value();
        let name = value.map_or_else(String::new, |value| value.get_name().to_owned());
        let path = match component {
            MachineComponent::Shim => logs.shim(),
            _ => logs.program(&name),
        };
        (name, path)
    });
    show(&named.collect::<Vec<_>>(), args.reading).await
}

/// All Clusters of the account that have a folder on this host.
fn clusters(global: &Global) -> anyhow::Result<Vec<ClusterLogs>> {
    match logs_of_account(&global.data_dir, &global.account) {
        Err(FindLogsError::Read { source, .. }) if source.kind() == ErrorKind::PermissionDenied => {
            Err(Problem::NotRoot {
                what: "reading logs",
            }
            .into())
        }
        found => Ok(found?),
    }
}

/// Why a Cluster has no logs: there is none, or it has none yet.
async fn unwritten_cluster(global: &Global, name: &str) -> anyhow::Error {
    let (account, name) = (global.account.clone(), name.to_owned());
    match hub(global).await {
        Ok(Some(hub)) => match find_cluster(&hub, &account, &name).await {
            Ok(Some(_)) => Problem::NoLogs {
                what: format!("cluster {name} in account {account}"),
                look: format!("neap why cluster {name} -n {account}"),
            }
            .into(),
            Ok(None) => Problem::NoCluster { account, name }.into(),
            Err(error) => error,
        },
        Ok(None) => Problem::NoCluster { account, name }.into(),
        Err(problem) => problem.into(),
    }
}

/// As for a Cluster.
async fn unwritten_machine(global: &Global, name: &str) -> anyhow::Error {
    let (account, name) = (global.account.clone(), name.to_owned());
    match hub(global).await {
        Ok(Some(hub)) => match find_machine(&hub, &account, &name).await {
            Ok(Some(machine)) => Problem::NoLogs {
                what: format!("machine {name} in account {account}"),
                look: format!("neap why cluster {} -n {account}", machine.spec.cluster),
            }
            .into(),
            Ok(None) => Problem::NoMachine { account, name }.into(),
            Err(error) => error,
        },
        Ok(None) => Problem::NoMachine { account, name }.into(),
        Err(problem) => problem.into(),
    }
}

/// Who knows the names that have no folder here; without `neap serve` nobody
/// does, and what has none is as good as absent.
async fn hub(global: &Global) -> Result<Option<kube::Client>, Problem> {
    if !global.data_dir.join("installation").exists() {
        return Err(Problem::NotAnInstallation {
            path: global.data_dir.clone(),
        });
    }
    Ok(Access::new(&global.data_dir).hub().await.ok())
}

/// Writes the logs one after another, and then what comes.
async fn show(logs: &[(String, Utf8PathBuf)], reading: ReadingArgs) -> anyhow::Result<()> {
    let style = Style {
        names: logs.len() > 1,
        width: logs.iter().map(|(name, _)| name.len()).max().unwrap_or(0),
        escaped: std::io::stdout().is_terminal(),
    };
    let mut readers = Vec::new();
    for (name, path) in logs {
        let reader = LogReader::open(path, reading.tail);
        readers.push((
            name,
            reader.with_context(|| format!("failed to read {path}"))?,
        ));
    }
    loop {
        let mut out = Vec::new();
        for (name, reader) in &mut readers {
            while let Some(line) = reader.next_line().context("failed to read a log")? {
                style.write(&mut out, name, &line);
                if out.len() >= BATCH {
                    print_bytes(&out)?;
                    out.clear();
                }
            }
            let rest = match reading.follow {
                true => Vec::new(),
                false => reader.rest(),
            };
            if !rest.is_empty() {
                style.write(&mut out, name, &rest);
            }
        }
        print_bytes(&out)?;
        if !reading.follow {
            break;
        }
        if readers.iter().all(|(_, reader)| reader.is_gone()) {
            note("the logs are gone with what wrote them");
            break;
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

/// How lines are written.
#[derive(Clone, Copy, Debug)]
struct Style {
    /// After the name of their component.
    names: bool,
    width: usize,
    /// For a terminal, which what a pod made a kubelet say must not steer.
    escaped: bool,
}

impl Style {
    fn write(self, out: &mut Vec<u8>, name: &str, line: &[u8]) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        if self.names {
            out.extend(format!("{name:width$} | ", width = self.width).bytes());
        }
        if self.escaped {
            out.extend(escape(&String::from_utf8_lossy(line)).bytes());
        } else {
            out.extend(line);
        }
        out.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn written(names: bool, escaped: bool, line: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        Style {
            names,
            width: 8,
            escaped,
        }
        .write(&mut out, "kubelet", line);
        out
    }

    #[test]
    fn a_line_to_a_terminal_does_not_steer_it() {
        let line = b"\x1b[2Jpod\tsaid \xff\n";
        let shown = String::from_utf8(written(false, true, line)).unwrap();
        assert_eq!(shown, "\\u{1b}[2Jpod\\tsaid \u{fffd}\n");
    }

    #[test]
    fn a_line_to_a_pipe_is_as_it_was_written() {
        assert_eq!(written(false, false, b"\x1b[2J\xff\n"), b"\x1b[2J\xff\n");
    }

    #[test]
    fn lines_of_several_components_bear_their_names() {
        assert_eq!(written(true, false, b"said"), b"kubelet  | said\n");
    }
}
