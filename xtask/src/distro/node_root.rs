//! The root file system of a container node: a few of Debian's packages and
//! nothing of the host's. It is mounted read-only and shared by all nodes.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use anyhow::{Context, Result, bail};
use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use tar::{Archive, EntryType};

use super::packages::Package;
use crate::command;
use crate::terminal::Stage;

/// Of a package only what lies below these is kept.
const KEPT: [&str; 5] = ["usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "etc"];

/// And of that not these: character sets, services and settings of hosts.
const DROPPED: [&str; 11] = [
    "usr/lib/systemd",
    "usr/lib/tmpfiles.d",
    "usr/lib/mime",
    "usr/lib/init",
    "etc/init.d",
    "etc/default",
    "etc/cron.d",
    "etc/nftables.conf",
    "etc/busybox",
    "etc/apparmor.d",
    "etc/initramfs-tools",
];

/// Merged usr, as Debian has it.
const MERGED: [&str; 4] = ["bin", "sbin", "lib", "lib64"];

/// What a node mounts something onto, or writes below a mount.
const FOLDERS: [(&str, u32); 22] = [
    ("dev", 0o755),
    ("etc/cni/net.d", 0o755),
    ("etc/kubernetes", 0o755),
    ("home", 0o755),
    ("neap", 0o755),
    ("oldroot", 0o755),
    ("opt/cni/bin", 0o755),
    ("opt/containerd/bin", 0o755),
    ("opt/containerd/lib", 0o755),
    ("proc", 0o555),
    ("root", 0o700),
    ("run", 0o755),
    ("sys", 0o555),
    ("tmp", 0o1777),
    ("usr/lib64", 0o755),
    ("usr/local/bin", 0o755),
    ("var/cache", 0o755),
    ("var/lib/cni", 0o755),
    ("var/lib/containerd", 0o755),
    ("var/lib/kubelet", 0o700),
    ("var/log", 0o755),
    ("var/tmp", 0o1777),
];

/// Empty ones are there to be mounted over.
const FILES: [(&str, &str); 8] = [
    ("etc/group", "root:x:0:\ntty:x:5:\nnogroup:x:65534:\n"),
    ("etc/hostname", ""),
    ("etc/hosts", "127.0.0.1 localhost\n::1 localhost\n"),
    ("etc/machine-id", ""),
    (
        "etc/nsswitch.conf",
        "passwd: files\ngroup: files\nhosts: files dns\nprotocols: files\nservices: files\n",
    ),
    (
        "etc/os-release",
        "NAME=\"neap node\"\nID=neap\nID_LIKE=debian\nPRETTY_NAME=\"neap container node\"\n",
    ),
    (
        "etc/passwd",
        "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    ),
    ("etc/resolv.conf", ""),
];

const CERTIFICATES: &str = "etc/ssl/certs/ca-certificates.crt";

/// Builds the root in an empty place.
pub(super) fn build(root: &Utf8Path, packages: &[Package]) -> Result<()> {
    let stage = Stage::start("Unpack the node root");
    for (folder, mode) in FOLDERS {
        let path = root.join(folder);
        fs::create_dir_all(&path).with_context(|| format!("cannot make {path}"))?;
        set_mode(&path, mode)?;
    }
    for name in MERGED {
        let target = format!("usr/{name}");
        let folder = root.join(&target);
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {folder}"))?;
        link(&root.join(name), &target)?;
    }
    link(&root.join("var/run"), "/run")?;
    for package in packages {
        stage.note(&package.name);
        unpack(&package.file, root).with_context(|| format!("cannot unpack {}", package.name))?;
    }
    for (name, content) in FILES {
        write(&root.join(name), content.as_bytes())?;
    }
    let host = Utf8Path::new("/").join(CERTIFICATES);
    let certificates = fs::read(&host).with_context(|| format!("cannot read {host}"))?;
    write(&root.join(CERTIFICATES), &certificates)?;
    link_applets(root)?;
    stage.done();
    Ok(())
}

fn unpack(package: &Utf8Path, root: &Utf8Path) -> Result<()> {
    let content =
        command::read_bytes(Command::new("dpkg-deb").args(["--fsys-tarfile", package.as_str()]))?;
    for entry in Archive::new(content.as_slice()).entries()? {
        let mut entry = entry?;
        let name = entry.path()?.into_owned();
        let name = Utf8PathBuf::from_path_buf(name)
            .map_err(|name| anyhow::anyhow!("the name {} is no text", name.display()))?;
        let Some(place) = place(&name) else { continue };
        let path = root.join(&place);
        let header = entry.header().clone();
        let kind = header.entry_type();
        if kind == EntryType::Directory {
            fs::create_dir_all(&path).with_context(|| format!("cannot make {path}"))?;
            continue;
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(|| format!("cannot make {parent}"))?;
        }
        let target = entry.link_name()?.map(std::borrow::Cow::into_owned);
        let target = target.as_deref().and_then(Utf8Path::from_path);
        match (kind, target) {
            (EntryType::Regular, _) => {
                let mut file =
                    fs::File::create(&path).with_context(|| format!("cannot write {path}"))?;
                std::io::copy(&mut entry, &mut file)
                    .with_context(|| format!("cannot write {path}"))?;
                // Neither setuid nor setgid: nobody but root is in a node.
                set_mode(&path, header.mode()? & 0o755)?;
            }
            (EntryType::Symlink, Some(target)) => link(&path, target.as_str())?,
            (EntryType::Link, Some(target)) => {
                let target = root.join(normal(target));
                fs::hard_link(&target, &path)
                    .with_context(|| format!("cannot link {path} to {target}"))?;
            }
            _ => bail!("{name} is neither file, folder nor link"),
        }
    }
    Ok(())
}

/// Where a package's file goes, if it is kept.
fn place(name: &Utf8Path) -> Option<Utf8PathBuf> {
    let path = normal(name);
    let is_below = |folder: &str| path.starts_with(folder);
    let is_character_set = path.components().any(|part| part.as_str() == "gconv");
    let kept = KEPT.iter().any(|folder| is_below(folder))
        && !DROPPED.iter().any(|folder| is_below(folder))
        && !is_character_set;
    kept.then_some(path)
}

/// Relative to the root, without `.` and `..`, and with usr merged. Like a
/// root's own `..`, none leads out of it.
pub(super) fn normal(name: &Utf8Path) -> Utf8PathBuf {
    let mut path = Utf8PathBuf::new();
    for part in name.components() {
        match part {
            Utf8Component::Normal(part) => path.push(part),
            Utf8Component::ParentDir => {
                path.pop();
            }
            _ => {}
        }
    }
    if MERGED.iter().any(|merged| path.starts_with(merged)) {
        Utf8Path::new("usr").join(path)
    } else {
        path
    }
}

/// Every tool of busybox that no package brings is a link to it.
fn link_applets(root: &Utf8Path) -> Result<()> {
    for applet in applets(root)? {
        let present = ["usr/bin", "usr/sbin"]
            .iter()
            .any(|folder| root.join(folder).join(&applet).symlink_metadata().is_ok());
        if !present {
            link(&root.join("usr/bin").join(&applet), "busybox")?;
        }
    }
    Ok(())
}

/// The names under which the root's busybox does something.
pub(super) fn applets(root: &Utf8Path) -> Result<BTreeSet<String>> {
    let answer =
        command::read(Command::new("chroot").args([root.as_str(), "/usr/bin/busybox", "--list"]))?;
    Ok(answer
        .split_whitespace()
        .filter(|&name| name != "busybox")
        .map(str::to_owned)
        .collect())
}

fn write(path: &Utf8Path, content: &[u8]) -> Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).with_context(|| format!("cannot make {parent}"))?;
    }
    fs::write(path, content).with_context(|| format!("cannot write {path}"))
}

fn link(path: &Utf8Path, target: &str) -> Result<()> {
    symlink(target, path).with_context(|| format!("cannot make the link {path}"))
}

fn set_mode(path: &Utf8Path, mode: u32) -> Result<()> {
    fs::set_permissions(path, Permissions::from_mode(mode))
        .with_context(|| format!("cannot set the permissions of {path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(name: &str) -> Option<String> {
        place(Utf8Path::new(name)).map(Utf8PathBuf::into_string)
    }

    #[test]
    fn packages_are_merged_into_usr_and_stripped() {
        assert_eq!(placed("./bin/mount").as_deref(), Some("usr/bin/mount"));
        assert_eq!(placed("./usr/sbin/nft").as_deref(), Some("usr/sbin/nft"));
        assert_eq!(placed("./lib64/ld.so").as_deref(), Some("usr/lib64/ld.so"));
        assert_eq!(placed("./etc/protocols").as_deref(), Some("etc/protocols"));
        assert_eq!(placed("./usr/share/doc/runc/copyright"), None);
        assert_eq!(placed("./lib/systemd/system/nftables.service"), None);
        assert_eq!(placed("./usr/lib/x86_64-linux-gnu/gconv/UTF-7.so"), None);
        assert_eq!(placed("./usr/libexec/x"), None);
    }

    #[test]
    fn no_name_leads_out_of_the_root() {
        assert_eq!(placed("../../etc/shadow").as_deref(), Some("etc/shadow"));
        assert_eq!(placed("/etc/../../etc/x").as_deref(), Some("etc/x"));
        assert_eq!(placed("etc/../var/x"), None);
    }
}
