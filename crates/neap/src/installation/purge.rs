//! Removes all that one installation has on this host, and proves that it is
//! gone. It needs no API and no record: it goes by what is there.

use super::contents;
use super::lock::DataLock;
use super::scope::{NAMESPACES, Scope, neap_cgroups};
use super::traces::{Traces, named_namespaces, owned_mounts, owned_processes, process, tree};
use crate::clock::Stopwatch;
use crate::problem::Problem;
use anyhow::{Context as _, bail};
use camino::Utf8Path;
use jiff::SignedDuration;
use neap_process::cgroup::{Cgroup, CgroupPath};
use rustix::mount::UnmountFlags;
use rustix::process::{Pid, PidfdFlags, Signal};
use std::time::Duration;

/// How long all of it may take.
const DEADLINE: SignedDuration = SignedDuration::from_secs(30);
/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// Removes the installation of this folder: processes, cgroups, mounts,
/// network namespaces, interfaces, and the folder. Returns what was there.
///
/// # Errors
/// When a `serve` holds the folder, when it is no data folder of neap, or
/// when something is left.
pub async fn purge(scope: &mut Scope) -> anyhow::Result<Traces> {
    let data_dir = scope.data_dir().to_owned();
    scope.refresh();
    if !data_dir.exists() || contents::is_empty(&data_dir)? {
        // Nothing in it says whose an empty folder is: it stays.
        return remove_all(scope)
            .await
            .with_context(|| format!("failed to remove what {data_dir} has on this host"));
    }
    contents::check(&data_dir)?;
    let lock = DataLock::take_existing(&data_dir)?;
    let found = remove_all(scope)
        .await
        .with_context(|| format!("failed to remove the installation {data_dir}"))?;
    remove_files(&data_dir)?;
    drop(lock);
    let left = Traces::of(scope);
    if left.is_empty() {
        Ok(found)
    } else {
        Err(Problem::Leftovers {
            what: left.summary(),
        }
        .into())
    }
}

async fn remove_all(scope: &mut Scope) -> anyhow::Result<Traces> {
    let started = Stopwatch::start();
    let found = Traces::of(scope);
    end_processes(scope, started).await?;
    remove_cgroups(scope, started).await?;
    for point in owned_mounts(scope) {
        unmount(Utf8Path::new(&point))?;
    }
    for name in named_namespaces()
        .iter()
        .filter(|name| scope.owns_namespace(name))
    {
        let path = Utf8Path::new(NAMESPACES).join(name);
        unmount(&path)?;
        remove_file(&path)?;
    }
    neap_net::tidy().context("failed to remove the empty folder of network namespaces")?;
    // Namespaces take their interfaces with them, a moment later.
    loop {
        let left = Traces::of_host(scope);
        if left.is_empty() {
            return Ok(found);
        }
        if started.elapsed() > DEADLINE {
            return Err(Problem::Leftovers {
                what: left.summary(),
            }
            .into());
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Kills until none is left: what is killed may have forked before.
async fn end_processes(scope: &mut Scope, started: Stopwatch) -> anyhow::Result<()> {
    if let Some(group) = scope.group() {
        let path = CgroupPath::new(group).context("failed to name the cgroup")?;
        let cgroup = Cgroup::at(&path);
        if cgroup.exists() {
            cgroup.kill_all().await?;
        }
    }
    loop {
        let found = owned_processes(scope);
        if found.is_empty() {
            return Ok(());
        }
        for process in &found {
            kill(process.pid, scope)?;
        }
        if started.elapsed() > DEADLINE {
            let pids: Vec<String> = found
                .iter()
                .map(|process| process.pid.to_string())
                .collect();
            bail!("processes {} do not end", pids.join(", "));
        }
        tokio::time::sleep(PAUSE).await;
        scope.refresh();
    }
}

/// Kills one process, proven ours after its pid can no longer be reused.
fn kill(pid: i32, scope: &Scope) -> anyhow::Result<()> {
    let Some(raw) = Pid::from_raw(pid) else {
        return Ok(());
    };
    let fd = match rustix::process::pidfd_open(raw, PidfdFlags::empty()) {
        Ok(fd) => fd,
        Err(rustix::io::Errno::SRCH) => return Ok(()),
        Err(error) => return Err(error).with_context(|| format!("failed to open process {pid}")),
    };
    if !process(pid).is_some_and(|process| process.is_owned_by(scope)) {
        return Ok(());
    }
    match rustix::process::pidfd_send_signal(&fd, Signal::KILL) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error).with_context(|| format!("failed to kill process {pid}")),
    }
}

/// In every hierarchy, also in those without a controller: a node has its own
/// root in each of them.
async fn remove_cgroups(scope: &Scope, started: Stopwatch) -> anyhow::Result<()> {
    loop {
        let mut held = None;
        for root in scope.cgroup_roots() {
            for folder in tree(&root).into_iter().rev() {
                match std::fs::remove_dir(&folder) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        held = Some((folder, error));
                    }
                    _ => {}
                }
            }
        }
        let Some((folder, error)) = held else { break };
        // One whose last process has just ended is busy for a moment.
        if started.elapsed() > DEADLINE {
            return Err(error).with_context(|| format!("failed to remove the cgroup {folder}"));
        }
        tokio::time::sleep(PAUSE).await;
    }
    // The parent goes with the last installation: it refuses while it is used.
    for root in neap_cgroups() {
        let _ = std::fs::remove_dir(root);
    }
    Ok(())
}

fn unmount(path: &Utf8Path) -> anyhow::Result<()> {
    loop {
        match rustix::mount::unmount(
            path.as_std_path(),
            UnmountFlags::DETACH | UnmountFlags::NOFOLLOW,
        ) {
            // Mounts may lie on top of one another.
            Ok(()) => {}
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOENT) => return Ok(()),
            Err(error) => return Err(error).with_context(|| format!("failed to unmount {path}")),
        }
    }
}

fn remove_file(path: &Utf8Path) -> anyhow::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("failed to remove {path}"))
        }
        _ => Ok(()),
    }
}

/// Removes the folder, its identity last: a purge that was interrupted can be
/// repeated.
fn remove_files(data_dir: &Utf8Path) -> anyhow::Result<()> {
    let entries = data_dir
        .read_dir_utf8()
        .with_context(|| format!("failed to read {data_dir}"))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("failed to read {data_dir}"))?;
        if matches!(entry.file_name(), "installation" | "lock") || !contents::is_of_neap(&entry) {
            continue;
        }
        let is_folder = entry
            .file_type()
            .with_context(|| format!("failed to read {}", entry.path()))?
            .is_dir();
        if is_folder {
            std::fs::remove_dir_all(entry.path())
                .with_context(|| format!("failed to remove the folder {}", entry.path()))?;
        } else {
            remove_file(entry.path())?;
        }
    }
    for last in ["installation", "lock"] {
        remove_file(&data_dir.join(last))?;
    }
    match std::fs::remove_dir(data_dir) {
        // A file system of its own is mounted there, and that is not ours.
        Err(error)
            if matches!(
                error.kind(),
                std::io::ErrorKind::ResourceBusy | std::io::ErrorKind::DirectoryNotEmpty
            ) && contents::is_empty(data_dir)? =>
        {
            Ok(())
        }
        removed => removed.with_context(|| format!("failed to remove the folder {data_dir}")),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use camino::Utf8PathBuf;

    fn folder_with(files: &[&str]) -> (tempfile::TempDir, Utf8PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("data");
        std::fs::create_dir(&path).unwrap();
        for file in files {
            let file = path.join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, "00000000-0000-4000-8000-0000000000ff\n").unwrap();
        }
        (folder, path)
    }

    #[tokio::test]
    async fn a_folder_of_something_else_is_left_alone() {
        let (_keep, path) = folder_with(&["precious.txt"]);
        let error = purge(&mut Scope::read(&path)).await.unwrap_err();
        assert!(
            matches!(
                error.downcast_ref(),
                Some(Problem::NotAnInstallation { .. })
            ),
            "{error:#}"
        );
        assert!(path.join("precious.txt").exists());
    }

    #[tokio::test]
    async fn what_somebody_else_put_into_the_folder_is_not_removed_with_it() {
        let (_keep, path) = folder_with(&["installation", "hub/db", "backup.tar"]);
        let error = purge(&mut Scope::read(&path)).await.unwrap_err();
        match error.downcast_ref() {
            Some(Problem::ForeignFiles { what, .. }) => assert_eq!(what, "backup.tar"),
            other => panic!("{other:?}"),
        }
        assert!(path.join("backup.tar").exists());
        assert!(path.join("hub/db").exists());
    }

    #[tokio::test]
    async fn an_empty_folder_is_nobodys_and_stays() {
        let (_keep, path) = folder_with(&[]);
        assert!(purge(&mut Scope::read(&path)).await.unwrap().is_empty());
        assert!(path.exists());
    }

    #[tokio::test]
    async fn a_folder_that_is_served_is_left_alone() {
        let (_keep, path) = folder_with(&["installation", "clusters/x/record.json"]);
        let _serve = DataLock::take(&path).unwrap();
        let error = purge(&mut Scope::read(&path)).await.unwrap_err();
        assert!(
            matches!(error.downcast_ref(), Some(Problem::Locked { .. })),
            "{error:#}"
        );
        assert!(path.join("clusters/x/record.json").exists());
    }

    #[tokio::test]
    async fn the_folder_goes_and_what_a_link_in_it_names_stays() {
        let (keep, path) = folder_with(&["installation", "hub/db", "clusters/x/record.json"]);
        let outside = Utf8Path::from_path(keep.path()).unwrap().join("outside");
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("file"), "").unwrap();
        std::os::unix::fs::symlink(&outside, path.join("clusters/link")).unwrap();
        remove_files(&path).unwrap();
        assert!(!path.exists());
        assert!(outside.join("file").exists());
    }

    #[tokio::test]
    async fn nothing_there_is_nothing_to_do() {
        let (_keep, path) = folder_with(&[]);
        std::fs::remove_dir(&path).unwrap();
        assert!(purge(&mut Scope::read(&path)).await.unwrap().is_empty());
    }
}
