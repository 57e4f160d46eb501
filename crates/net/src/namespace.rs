//! Named network namespaces, as `ip netns` has them.

#![expect(unsafe_code, reason = "a thread leaves the namespace of its process")]

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountPropagationFlags, UnmountFlags};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};
use std::io;

/// Where `ip netns` keeps them.
const FOLDER: &str = "/run/netns";

/// Type of the file system that namespaces are files of.
const NSFS_MAGIC: u64 = 0x6e73_6673;

/// A network namespace by name; it may or may not exist.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NetworkNamespace {
    name: String,
}

/// A namespace could not be made.
#[derive(Debug, thiserror::Error)]
#[error("failed to make network namespace {namespace}")]
pub struct EnsureNamespaceError {
    /// Name of the namespace.
    pub namespace: String,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// A namespace could not be entered.
#[derive(Debug, thiserror::Error)]
#[error("failed to enter network namespace {namespace}")]
pub struct EnterNamespaceError {
    /// Name of the namespace.
    pub namespace: String,
    /// Why; absent is [`io::ErrorKind::NotFound`].
    #[source]
    pub source: io::Error,
}

/// A namespace could not be removed, or is still there.
#[derive(Debug, thiserror::Error)]
#[error("failed to {operation} network namespace {namespace}")]
pub struct RemoveNamespaceError {
    /// A verb.
    pub operation: &'static str,
    /// Name of the namespace.
    pub namespace: String,
    /// Why.
    #[source]
    pub source: io::Error,
}

impl NetworkNamespace {
    /// The namespace of this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file by which it is entered.
    pub fn path(&self) -> Utf8PathBuf {
        Utf8Path::new(FOLDER).join(&self.name)
    }

    /// Makes it unless it exists.
    pub async fn ensure(&self) -> Result<(), EnsureNamespaceError> {
        let failed = |source| EnsureNamespaceError {
            namespace: self.name.clone(),
            source,
        };
        self.check_name().map_err(failed)?;
        if self.exists() {
            return Ok(());
        }
        let path = self.path();
        let made = on_thread(&self.name, move || make(&path)).await;
        made.and_then(|made| made).map_err(failed)
    }

    /// Whether it exists.
    pub fn exists(&self) -> bool {
        is_namespace(&self.path())
    }

    /// Takes its name away and proves that it is gone. The namespace itself
    /// ends with the last process in it.
    pub fn remove(&self) -> Result<(), RemoveNamespaceError> {
        let failed = |operation| {
            let namespace = self.name.clone();
            move |source| RemoveNamespaceError {
                operation,
                namespace,
                source,
            }
        };
        self.check_name().map_err(failed("remove"))?;
        let Some(_lock) = lock().map_err(failed("lock"))? else {
            return Ok(());
        };
        let path = self.path();
        unmount_all(&path).map_err(failed("unmount"))?;
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed("remove")(error));
            }
            _ => {}
        }
        match std::fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(failed("prove the absence of")(error)),
            Ok(_) => Err(failed("prove the absence of")(
                io::ErrorKind::AlreadyExists.into(),
            )),
        }
    }

    /// Runs a function on a thread of its own inside the namespace. It is
    /// run to its end even if this future is dropped.
    pub async fn run<T, F>(&self, work: F) -> Result<T, EnterNamespaceError>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let failed = |source| EnterNamespaceError {
            namespace: self.name.clone(),
            source,
        };
        let namespace = self.open().map_err(failed)?;
        let run = move || enter(&namespace).map(|()| work());
        on_thread(&self.name, run)
            .await
            .and_then(|done| done)
            .map_err(failed)
    }

    /// What the calling thread can enter it by.
    pub(crate) fn open(&self) -> io::Result<OwnedFd> {
        self.check_name()?;
        let path = self.path();
        if !is_namespace(&path) {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("{path} is absent"),
            ));
        }
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(path.as_std_path(), flags, Mode::empty())?)
    }

    /// Names become paths.
    fn check_name(&self) -> io::Result<()> {
        match self.name.as_str() {
            "" | "." | ".." => Err(io::ErrorKind::InvalidInput.into()),
            name if name.contains(['/', '\0']) => Err(io::ErrorKind::InvalidInput.into()),
            _ => Ok(()),
        }
    }
}

/// Moves the calling thread, which must be one made for this.
pub(crate) fn enter(namespace: &OwnedFd) -> io::Result<()> {
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
    Ok(())
}

/// Runs a function on a thread that ends with it.
pub(crate) async fn on_thread<T, F>(name: &str, work: F) -> io::Result<T>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    let (done, result) = tokio::sync::oneshot::channel();
    // Nobody listens any more if the future was dropped.
    let run = move || drop(done.send(work()));
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(run)?;
    result
        .await
        .map_err(|_| io::Error::other("the thread inside the namespace panicked"))
}

/// Names of all namespaces that begin with `prefix`, in order, with those of
/// which only the name is left.
pub fn list(prefix: &str) -> io::Result<Vec<NetworkNamespace>> {
    let entries = match Utf8Path::new(FOLDER).read_dir_utf8() {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_name().starts_with(prefix) {
            found.push(NetworkNamespace::new(entry.file_name()));
        }
    }
    found.sort();
    Ok(found)
}

/// Removes the folder of all named namespaces if none is left in it. The next
/// namespace, of neap or of `ip netns`, makes it again.
pub fn tidy() -> io::Result<()> {
    let Some(_lock) = lock()? else {
        return Ok(());
    };
    if !list("")?.is_empty() {
        return Ok(());
    }
    unmount_all(Utf8Path::new(FOLDER))?;
    match std::fs::remove_dir(FOLDER) {
        Ok(()) => Ok(()),
        // Something lay under the mount, or came in between.
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Held while names come and go, as `ip netns` does; `None` without a folder.
fn lock() -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = match rustix::fs::open(FOLDER, flags, Mode::empty()) {
        Ok(folder) => folder,
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    rustix::fs::flock(&folder, FlockOperation::LockExclusive)?;
    Ok(Some(folder))
}

fn is_namespace(path: &Utf8Path) -> bool {
    rustix::fs::statfs(path.as_std_path())
        .is_ok_and(|system| u64::try_from(system.f_type).is_ok_and(|kind| kind == NSFS_MAGIC))
}

/// Takes away every mount on a path; a crash may have left several.
fn unmount_all(path: &Utf8Path) -> io::Result<()> {
    loop {
        match rustix::mount::unmount(path.as_std_path(), UnmountFlags::DETACH) {
            Ok(()) => {}
            // Not mounted, or not there.
            Err(Errno::INVAL | Errno::NOENT) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Leaves the namespace of the calling thread for a new one, and gives that
/// one a name.
fn make(path: &Utf8Path) -> io::Result<()> {
    std::fs::create_dir_all(FOLDER)?;
    let _lock = lock()?;
    share_folder()?;
    if is_namespace(path) {
        return Ok(());
    }
    std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    let name = || {
        // SAFETY: The table of descriptors stays shared with all threads.
        unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
        rustix::mount::mount_bind("/proc/thread-self/ns/net", path.as_std_path())
    };
    name().map_err(|error| {
        // A name of nothing is worse than none.
        drop(std::fs::remove_file(path));
        error.into()
    })
}

/// Makes the folder a shared mount, as `ip netns` does: a namespace that is
/// unmounted here is to vanish from every other mount namespace as well.
fn share_folder() -> io::Result<()> {
    std::fs::create_dir_all(FOLDER)?;
    let shared = MountPropagationFlags::SHARED | MountPropagationFlags::REC;
    match rustix::mount::mount_change(FOLDER, shared) {
        // Not a mount yet.
        Err(Errno::INVAL) => {
            rustix::mount::mount_bind_recursive(FOLDER, FOLDER)?;
            Ok(rustix::mount::mount_change(FOLDER, shared)?)
        }
        result => Ok(result?),
    }
}
