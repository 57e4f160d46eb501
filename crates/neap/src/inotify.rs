//! The kernel's limit on inotify instances of one user. A control plane needs
//! about eleven and a node about nine, all of them root's; at the usual 128 a
//! dozen nodes is all that can start, and the next one fails with "too many
//! open files" deep in containerd.

use camino::{Utf8Path, Utf8PathBuf};
use neap_core::host::INOTIFY_INSTANCES;
use std::io;

/// An instance that is not in use costs nothing.
const WANTED: u64 = INOTIFY_INSTANCES;

/// The limit on this host, and what it was when this was made.
#[derive(Clone, Debug)]
pub(crate) struct InotifyLimit {
    path: Utf8PathBuf,
    before: u64,
}

impl InotifyLimit {
    /// Reads the limit.
    pub(crate) fn of_host() -> io::Result<Self> {
        Self::at(Utf8Path::new("/proc/sys/fs/inotify/max_user_instances"))
    }

    fn at(path: &Utf8Path) -> io::Result<Self> {
        let text = std::fs::read_to_string(path)?;
        let before = text.trim().parse().map_err(io::Error::other)?;
        Ok(Self {
            path: path.to_owned(),
            before,
        })
    }

    /// The limit as it was read.
    pub(crate) fn now(&self) -> u64 {
        self.before
    }

    /// Raises it if it is too low; returns the limit before and now if so.
    pub(crate) fn raise(&self) -> io::Result<Option<(u64, u64)>> {
        if self.before >= WANTED {
            return Ok(None);
        }
        std::fs::write(&self.path, WANTED.to_string())?;
        Ok(Some((self.before, WANTED)))
    }

    /// Makes it what it was, if it still is what [`Self::raise`] has made it.
    pub(crate) fn restore(&self) -> io::Result<()> {
        if Self::at(&self.path)?.before == WANTED && self.before < WANTED {
            std::fs::write(&self.path, self.before.to_string())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn check(before: &str, raised: &str) {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("limit");
        std::fs::write(&path, before).unwrap();
        let limit = InotifyLimit::at(&path).unwrap();
        limit.raise().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap().trim(), raised);
        limit.restore().unwrap();
        let restored = std::fs::read_to_string(&path).unwrap();
        assert_eq!(restored.trim(), before.trim());
    }

    #[test]
    fn a_low_limit_is_raised_and_put_back() {
        check("128\n", "8192");
    }

    #[test]
    fn a_high_limit_is_left_alone() {
        check("65536\n", "65536");
    }

    #[test]
    fn what_somebody_else_has_set_meanwhile_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("limit");
        std::fs::write(&path, "128\n").unwrap();
        let limit = InotifyLimit::at(&path).unwrap();
        limit.raise().unwrap();
        std::fs::write(&path, "20000").unwrap();
        limit.restore().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "20000");
    }
}
