//! The distro: everything that a Cluster is made of beside neap itself, built
//! from pinned sources into a content-addressed cache.
//!
//! A distro is never changed once it is in its place: it is built beside it
//! and renamed. What it was built from is its key.

mod cache;
mod elf;
mod image;
mod images;
mod libraries;
mod node_root;
mod packages;
mod programs;

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use crate::terminal::{self, Stage};
use crate::{setup, workspace};
use cache::{Cache, Key};
use programs::{CNI, CONTAINERD, HYPERKUBE};

/// Raised when this builder makes something else of the same files.
const BUILDER: u32 = 1;

/// A distro in its place.
#[derive(Debug)]
pub(crate) struct Distro {
    pub(crate) folder: Utf8PathBuf,
}

/// `distro.json`, which neap reads.
#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    version: u32,
    id: String,
    kubernetes: String,
    containerd: String,
    cni: String,
    packages: BTreeMap<String, String>,
}

pub(crate) fn run() -> Result<()> {
    let distro = ensure()?;
    terminal::print(distro.folder.as_str());
    Ok(())
}

/// The distro of the files in `distro/`: at once when it was built before.
pub(crate) fn ensure() -> Result<Distro> {
    setup::require_debian()?;
    let sources = workspace::root().join("distro");
    let cache = Cache::locate()?;
    let key = key(&sources)?;
    let folder = cache.place(&key);
    if !is_complete(&folder) {
        setup::require_root("distro")?;
        setup::install_packages()?;
        let _lock = cache.lock()?;
        // Another builder may have had the lock for the same distro.
        if !is_complete(&folder) {
            build(&sources, &cache, &key, &folder)?;
        }
    }
    cache.set_current(&key)?;
    Ok(Distro { folder })
}

fn is_complete(folder: &Utf8Path) -> bool {
    folder.join("distro.json").exists()
}

fn key(sources: &Utf8Path) -> Result<Key> {
    let mut key = Key::start("distro", BUILDER);
    key.add_tree(sources)?;
    key.add("architecture", std::env::consts::ARCH);
    key.add("debian", &packages::release()?);
    for module in [HYPERKUBE, CONTAINERD, CNI] {
        key.add(module.name, &setup::go_version(&sources.join(module.name))?);
    }
    Ok(key)
}

fn build(sources: &Utf8Path, cache: &Cache, key: &Key, folder: &Utf8Path) -> Result<()> {
    terminal::say(&format!("Building the distro into {folder}, once:"));
    cache.remove_leftovers()?;
    // Who else reads these files, nodes among them, does not depend on the
    // habits of who built them.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    cache.fill(folder, |place| {
        let bin = place.join("bin");
        let kubernetes = HYPERKUBE.build(sources, cache, &bin)?;
        let containerd = CONTAINERD.build(sources, cache, &bin)?;
        let cni = CNI.build(sources, cache, &bin.join("cni"))?;

        let fetched = packages::fetch(&sources.join("node-root.packages"), cache)?;
        let root = place.join("root");
        node_root::build(&root, &fetched)?;
        libraries::check(&root, &bin)?;

        let stage = Stage::start("Write the images");
        images::write(&place.join("images"), &sources.join("images"), &root)?;
        stage.done();

        let manifest = Manifest {
            version: 1,
            id: key.short(),
            kubernetes,
            containerd,
            cni,
            packages: fetched
                .into_iter()
                .map(|package| (package.name, package.version))
                .collect(),
        };
        let path = place.join("distro.json");
        let text = serde_json::to_string_pretty(&manifest).context("cannot write JSON")?;
        std::fs::write(&path, text + "\n").with_context(|| format!("cannot write {path}"))
    })
}
