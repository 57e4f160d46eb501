//! The images that every node has: the pause of a pod, and a small tool set.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};
use camino::Utf8Path;

use super::image::{Image, Layer};
use super::libraries::Libraries;
use super::node_root::applets;
use crate::command;

/// Writes both archives. Programs and libraries come from the node root.
pub(super) fn write(place: &Utf8Path, sources: &Utf8Path, root: &Utf8Path) -> Result<()> {
    fs::create_dir_all(place).with_context(|| format!("cannot make {place}"))?;
    pause(sources, place)?.write(&place.join("pause.tar"))?;
    busybox(root)?.write(&place.join("busybox.tar"))
}

fn pause(sources: &Utf8Path, scratch: &Utf8Path) -> Result<Image> {
    let program = scratch.join("pause");
    command::read(
        Command::new("gcc")
            .current_dir(sources)
            .args(["-static", "-s", "-Os", "-Wall", "-Wextra", "-Werror"])
            .args(["-o", program.as_str(), "pause.c"]),
    )?;
    let content = fs::read(&program).with_context(|| format!("cannot read {program}"))?;
    fs::remove_file(&program).with_context(|| format!("cannot remove {program}"))?;
    let mut layer = Layer::default();
    layer.file("pause", 0o755, content);
    Ok(Image {
        name: "localhost/neap-pause:1",
        layer,
        entrypoint: &["/pause"],
        command: &[],
    })
}

/// The dynamic busybox: the static one crashes when it looks up a name.
fn busybox(root: &Utf8Path) -> Result<Image> {
    let program = root.join("usr/bin/busybox");
    let read = |path: &Utf8Path| fs::read(path).with_context(|| format!("cannot read {path}"));

    let mut layer = Layer::default();
    for (link, target) in [
        ("bin", "usr/bin"),
        ("sbin", "usr/bin"),
        ("usr/sbin", "bin"),
        ("lib", "usr/lib"),
        ("lib64", "usr/lib64"),
    ] {
        layer.link(link, target);
    }
    for folder in ["dev", "etc", "home", "proc", "root", "run", "sys", "var"] {
        layer.folder(folder, 0o755);
    }
    for folder in ["tmp", "var/tmp"] {
        layer.folder(folder, 0o1777);
    }
    for file in [
        "etc/passwd",
        "etc/group",
        "etc/nsswitch.conf",
        "etc/services",
    ] {
        layer.file(file, 0o644, read(&root.join(file))?);
    }
    layer.file("usr/bin/busybox", 0o755, read(&program)?);
    for applet in applets(root)? {
        layer.link(&format!("usr/bin/{applet}"), "busybox");
    }
    // The parts of libc that look names up are opened at run time, so no
    // header names them.
    let opened = ["libresolv.so.2", "libnss_files.so.2", "libnss_dns.so.2"];
    for (path, file) in Libraries::of(root)?.closure(&program, &opened)? {
        layer.file(path.as_str(), 0o755, read(&file)?);
    }
    Ok(Image {
        name: "localhost/neap-busybox:1",
        layer,
        entrypoint: &[],
        command: &["sh"],
    })
}
