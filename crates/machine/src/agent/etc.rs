//! The few files of `/etc` that a node has of its own.

use super::mounts::{At, BuildRootError, make_dir};
use camino::Utf8Path;
use std::fs;
use std::os::unix::fs::symlink;

/// Copies the distro's `/etc` and adds what makes this node another one than
/// its siblings.
pub(crate) fn write(
    distro: &Utf8Path,
    target: &Utf8Path,
    name: &str,
    address: &str,
) -> Result<(), BuildRootError> {
    make_dir(target)?;
    if distro.is_dir() {
        copy(distro, target)?;
    }
    let random = Utf8Path::new("/proc/sys/kernel/random/uuid");
    let uuid = fs::read_to_string(random).at("read", random)?;
    let machine_id: String = uuid
        .chars()
        .filter(char::is_ascii_hexdigit)
        .chain(['\n'])
        .collect();
    let files = [
        ("hostname", format!("{name}\n")),
        ("hosts", format!("127.0.0.1 localhost\n{address} {name}\n")),
        ("resolv.conf", String::new()),
        ("machine-id", machine_id),
    ];
    for (file, text) in files {
        let path = target.join(file);
        // What the distro has there may be a link to somewhere else.
        let _ = fs::remove_file(&path);
        fs::write(&path, text).at("write", &path)?;
    }
    Ok(())
}

fn copy(from: &Utf8Path, to: &Utf8Path) -> Result<(), BuildRootError> {
    for entry in from.read_dir_utf8().at("list", from)? {
        let entry = entry.at("list", from)?;
        let target = to.join(entry.file_name());
        let kind = entry.file_type().at("look at", entry.path())?;
        if kind.is_symlink() {
            let link = entry
                .path()
                .read_link_utf8()
                .at("read the link", entry.path())?;
            symlink(link, &target).at("make the link", &target)?;
        } else if kind.is_dir() {
            make_dir(&target)?;
            copy(entry.path(), &target)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), &target).at("copy", &target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use camino::Utf8PathBuf;

    #[test]
    fn every_node_has_a_machine_id_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
        let distro = dir.join("distro");
        make_dir(&distro.join("alternatives")).unwrap();
        fs::write(distro.join("passwd"), "root:x:0:0::/root:/bin/sh\n").unwrap();
        symlink("../run/resolv.conf", distro.join("resolv.conf")).unwrap();
        for node in ["a", "b"] {
            write(&distro, &dir.join(node), node, "10.250.0.11").unwrap();
        }
        let id = |node: &str| fs::read_to_string(dir.join(node).join("machine-id")).unwrap();
        assert_eq!(id("a").trim().len(), 32);
        assert_ne!(id("a"), id("b"));
        assert_eq!(fs::read_to_string(dir.join("a/resolv.conf")).unwrap(), "");
        assert!(dir.join("a/alternatives").is_dir());
        assert_eq!(
            fs::read_to_string(dir.join("a/passwd")).unwrap(),
            "root:x:0:0::/root:/bin/sh\n"
        );
    }
}
