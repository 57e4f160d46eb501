//! Where a path of the node leads: links followed, binds traced to what they
//! show. A kubelet binds what a pod asks for below the pod's own folder
//! (`subPath`, local volumes), so the path alone says nothing.

use super::RunContainerError;
use super::pins::PINS;
use camino::{Utf8Path, Utf8PathBuf};
use neap_core::fence::POD_FOLDERS;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags, openat, statx};
use std::collections::BTreeSet;
use std::io;

/// The mounts of this process, as the kernel tells them.
const MOUNTS: &str = "/proc/self/mountinfo";

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    id: u64,
    /// The file system, by its device.
    device: String,
    /// What of the file system it shows.
    root: Utf8PathBuf,
    /// Where.
    target: Utf8PathBuf,
}

/// All mounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table(Vec<Entry>);

/// What was found at a path.
#[derive(Debug)]
pub(super) struct Found {
    /// It, held open.
    pub(super) file: OwnedFd,
    /// Its path without links.
    pub(super) path: Utf8PathBuf,
    /// Every path of the node at which it, or what is mounted below it, is
    /// found; an empty one for what is found nowhere.
    pub(super) places: BTreeSet<String>,
}

impl Table {
    /// Reads the mounts as they are now.
    pub(super) fn read() -> Result<Self, RunContainerError> {
        let text = std::fs::read_to_string(MOUNTS).map_err(|source| RunContainerError::Read {
            path: MOUNTS.into(),
            source,
        })?;
        Ok(Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        Self(text.lines().filter_map(Entry::parse).collect())
    }

    /// Opens a path and says where it leads.
    pub(super) fn observe(&self, source: &Utf8Path) -> Result<Found, RunContainerError> {
        let failed = |error: io::Error| RunContainerError::Look {
            path: source.to_owned(),
            source: error,
        };
        let open = || -> io::Result<_> {
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let file = openat(CWD, source.as_std_path(), flags, Mode::empty())?;
            let facts = statx(&file, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?;
            let link = format!("/proc/self/fd/{}", rustix::fd::AsRawFd::as_raw_fd(&file));
            Ok((file, facts.stx_mnt_id, std::fs::read_link(link)?))
        };
        let (file, mount, path) = open().map_err(failed)?;
        let path = Utf8PathBuf::from_path_buf(path)
            .map_err(|_| failed(io::ErrorKind::InvalidFilename.into()))?;
        let places = self.places(mount, &path);
        Ok(Found { file, path, places })
    }

    fn places(&self, mount: u64, path: &Utf8Path) -> BTreeSet<String> {
        let itself = self
            .0
            .iter()
            .find(|entry| entry.id == mount)
            .and_then(|entry| {
                let rest = path.strip_prefix(&entry.target).ok()?;
                Some((entry.device.as_str(), entry.root.join(rest)))
            });
        let Some(itself) = itself else {
            return BTreeSet::from([String::new()]);
        };
        let below = self
            .0
            .iter()
            .filter(|entry| entry.target != path && entry.target.starts_with(path))
            .map(|entry| (entry.device.as_str(), entry.root.clone()));
        let mut places = BTreeSet::from([path.to_string()]);
        for (device, inside) in below.chain([itself]) {
            places.extend(self.found_at(device, &inside));
        }
        places
    }

    /// Where this part of a file system belongs: every path at which it is
    /// shown. What the kubelet has bound for pods is a copy, unless it is shown
    /// nowhere else.
    fn found_at(&self, device: &str, inside: &Utf8Path) -> Vec<String> {
        let (copies, origins): (Vec<_>, Vec<_>) = self
            .0
            .iter()
            .filter(|entry| entry.device == device && !entry.target.starts_with(PINS))
            .filter_map(|entry| {
                let rest = inside.strip_prefix(&entry.root).ok()?;
                Some((entry, entry.target.join(rest)))
            })
            .partition(|(entry, _)| entry.target.starts_with(POD_FOLDERS));
        let shown = if origins.is_empty() { copies } else { origins };
        // Joining nothing leaves a slash at the end.
        shown
            .into_iter()
            .map(|(_, place)| match place.as_str() {
                "/" => "/".to_owned(),
                text => text.trim_end_matches('/').to_owned(),
            })
            .collect()
    }
}

impl Entry {
    /// `36 35 98:0 /root /target options … - type source options`
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split(' ');
        let id = fields.next()?.parse().ok()?;
        let _parent = fields.next()?;
        Some(Self {
            id,
            device: fields.next()?.to_owned(),
            root: plain(fields.next()?).into(),
            target: plain(fields.next()?).into(),
        })
    }
}

/// The kernel writes blanks and backslashes of a path as `\040`.
fn plain(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part
            .get(..3)
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) => {
                plain.push(code.into());
                plain.push_str(part.get(3..).unwrap_or_default());
            }
            None => {
                plain.push('\\');
                plain.push_str(part);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    const NODE: &str = "\
20 19 0:40 / / ro shared:1 - tmpfs tmpfs rw
21 20 0:41 / /run rw - tmpfs tmpfs rw
22 20 254:0 /data/m1/data/kubelet /var/lib/kubelet rw - ext4 /dev/vda rw
23 20 254:0 /data/m1/data/log /var/log rw - ext4 /dev/vda rw
24 20 0:42 / /tmp rw - tmpfs tmpfs rw
25 22 0:41 /containerd /var/lib/kubelet/pods/p1/volume-subpaths/all/main/0 rw - tmpfs tmpfs rw
26 22 0:42 /a\\040b /var/lib/kubelet/pods/p1/volume-subpaths/tmp/main/0 rw - tmpfs tmpfs rw
27 22 254:0 /data/m1/data/kubelet/pods/p1/volumes/k/work /var/lib/kubelet/pods/p1/volume-subpaths/work/main/0 rw - ext4 /dev/vda rw
28 21 0:43 / /run/inner rw - tmpfs tmpfs rw
29 22 0:44 / /var/lib/kubelet/pods/p2/volumes/secret/token rw - tmpfs tmpfs rw
30 22 0:44 / /var/lib/kubelet/pods/p1/volume-subpaths/stolen/main/0 rw - tmpfs tmpfs rw
31 21 0:42 / /run/neap/pins/7-0 rw - tmpfs tmpfs rw
";

    fn places(mount: u64, path: &str) -> Vec<String> {
        Table::parse(NODE)
            .places(mount, path.into())
            .into_iter()
            .collect()
    }

    #[test]
    fn a_plain_path_leads_to_itself() {
        assert_eq!(places(24, "/tmp/x"), ["/tmp/x"]);
        assert_eq!(places(24, "/tmp"), ["/tmp"]);
        assert_eq!(places(23, "/var/log/pods"), ["/var/log/pods"]);
    }

    #[test]
    fn a_bind_leads_to_what_it_shows() {
        let subpath =
            |volume: &str| format!("/var/lib/kubelet/pods/p1/volume-subpaths/{volume}/main/0");
        assert_eq!(
            places(25, &subpath("all")),
            ["/run/containerd".to_owned(), subpath("all")]
        );
        assert_eq!(
            places(26, &subpath("tmp")),
            ["/tmp/a b".to_owned(), subpath("tmp")]
        );
        assert_eq!(
            places(27, &subpath("work")),
            [
                subpath("work"),
                "/var/lib/kubelet/pods/p1/volumes/k/work".to_owned()
            ]
        );
    }

    #[test]
    fn what_other_pods_are_shown_does_not_make_it_theirs() {
        // As p1 has a part of it at its volume-subpaths, and somebody's pin
        // has all of it.
        assert_eq!(places(24, "/tmp/a b"), ["/tmp/a b"]);
    }

    #[test]
    fn what_is_another_pods_stays_so() {
        let stolen = "/var/lib/kubelet/pods/p1/volume-subpaths/stolen/main/0";
        assert_eq!(
            places(30, stolen),
            [stolen, "/var/lib/kubelet/pods/p2/volumes/secret/token"]
        );
    }

    #[test]
    fn what_is_mounted_below_counts() {
        let below = places(20, "/");
        for place in ["/", "/run", "/run/inner", "/var/lib/kubelet"] {
            assert!(below.contains(&place.to_owned()), "{place}: {below:?}");
        }
    }

    #[test]
    fn what_is_mounted_nowhere_is_found_nowhere() {
        assert_eq!(places(99, "/tmp"), [""]);
        // Another mount lies over it.
        assert_eq!(places(24, "/run/x"), [""]);
    }

    #[test]
    fn a_link_is_followed_before_it_is_judged() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Utf8PathBuf::from_path_buf(dir.path().canonicalize().unwrap()).unwrap();
        std::fs::create_dir(folder.join("there")).unwrap();
        let link = folder.join("link");
        std::os::unix::fs::symlink(folder.join("there"), &link).unwrap();
        let found = Table::read().unwrap().observe(&link).unwrap();
        assert_eq!(found.path, folder.join("there"));
        assert!(found.places.contains(folder.join("there").as_str()));
        assert!(!found.places.contains(link.as_str()));
    }
}
