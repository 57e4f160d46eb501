//! A minimal `/dev`, and the device numbers that a node may use at all.

use super::mounts::{At, BuildRootError, DATA_ONLY, make_dir, mount_kernel};
use camino::Utf8Path;
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use rustix::mount::MountFlags;
use std::os::unix::fs::symlink;

/// Character devices of every node: name, major, minor.
const NODES: [(&str, u32, u32); 6] = [
    ("null", 1, 3),
    ("zero", 1, 5),
    ("full", 1, 7),
    ("random", 1, 8),
    ("urandom", 1, 9),
    ("tty", 5, 0),
];

/// Links of every node. There is no kernel log to read: it is the host's.
const LINKS: [(&str, &str); 6] = [
    ("ptmx", "pts/ptmx"),
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("kmsg", "null"),
];

/// What the devices cgroup of a node allows. Device files may be made of any
/// number (container runtimes ask for that), but only these can be opened.
pub(crate) fn allowed() -> Vec<String> {
    let mut rules = vec!["c *:* m".to_owned(), "b *:* m".to_owned()];
    rules.extend(
        NODES
            .iter()
            .map(|(_, major, minor)| format!("c {major}:{minor} rwm")),
    );
    // Pseudo terminals: the console, the multiplexer, the slaves.
    // runc insists on tunnels (10:200), which belong to a network namespace.
    rules.extend(["c 5:1 rwm", "c 5:2 rwm", "c 136:* rwm", "c 10:200 rwm"].map(str::to_owned));
    rules
}

/// Makes `/dev` at the target.
pub(crate) fn mount(target: &Utf8Path) -> Result<(), BuildRootError> {
    mount_kernel(
        "tmpfs",
        target,
        MountFlags::NOSUID | MountFlags::NOEXEC,
        "mode=755,size=64k",
    )?;
    let everyone = Mode::from_raw_mode(0o666);
    for (name, major, minor) in NODES {
        let path = target.join(name);
        mknodat(
            CWD,
            path.as_std_path(),
            FileType::CharacterDevice,
            everyone,
            makedev(major, minor),
        )
        .at("make the device", &path)?;
    }
    for (name, to) in LINKS {
        let path = target.join(name);
        symlink(to, &path).at("make the link", &path)?;
    }
    let quiet = MountFlags::NOSUID | MountFlags::NOEXEC;
    mount_kernel(
        "devpts",
        &target.join("pts"),
        quiet,
        "newinstance,ptmxmode=0666,mode=620,gid=5",
    )?;
    mount_kernel(
        "tmpfs",
        &target.join("shm"),
        DATA_ONLY,
        "mode=1777,size=64m",
    )?;
    make_dir(&target.join("mqueue"))?;
    mount_kernel("mqueue", &target.join("mqueue"), DATA_ONLY, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_block_device_and_no_memory_can_be_opened() {
        let rules = allowed();
        assert!(
            rules
                .iter()
                .filter(|rule| rule.starts_with("b "))
                .all(|rule| rule == "b *:* m")
        );
        assert!(
            !rules
                .iter()
                .any(|rule| rule.contains("1:1 ") || rule.contains("1:4 "))
        );
        assert!(rules.contains(&"c 1:3 rwm".to_owned()));
    }
}
