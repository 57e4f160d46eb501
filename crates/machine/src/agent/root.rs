//! The root that a node sees: read-only, built from the distro, holding
//! nothing of the host's but what is named here.

use super::cgroups::Hierarchy;
use super::config::{AgentConfig, BIN_DIR, CNI_DIR, CONFIG_DIR, LOG_DIR, RUN_DIR, RUNTIME_DIR};
use super::mounts::{
    At, BuildRootError, DATA_ONLY, bind, bind_read_only, make_dir, mount_kernel,
    mount_unchangeable, remount, spread,
};
use super::{devices, etc};
use crate::runtime::RUNTIME_NAME;
use camino::{Utf8Path, Utf8PathBuf};
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;

/// Folders of the distro's root that the node gets in another way.
const OWN: [&str; 9] = [
    "dev", "etc", "neap", "oldroot", "proc", "run", "sys", "tmp", "var",
];

/// Name of neap's own program in its folder.
pub(crate) const PROGRAM_NAME: &str = "neap";

/// Kernel settings that the kubelet insists on. It reads them here, is
/// content, and writes nothing: they belong to the host.
const SETTINGS: [(&str, &str); 6] = [
    ("kernel/keys/root_maxbytes", "25000000"),
    ("kernel/keys/root_maxkeys", "1000000"),
    ("kernel/panic", "10"),
    ("kernel/panic_on_oops", "1"),
    ("vm/overcommit_memory", "1"),
    ("vm/panic_on_oom", "0"),
];

/// Files of /proc that reach the host whatever the capabilities are.
const MASKED: [&str; 4] = ["sysrq-trigger", "kcore", "kallsyms", "timer_list"];

/// Builds the root, pivots into it and lets go of the host's. The calling
/// process must be in mount, PID, UTS and cgroup namespaces of its own.
pub(crate) fn enter(config: &AgentConfig, hierarchies: &[Hierarchy]) -> Result<(), BuildRootError> {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    // A shared mount on the way would make the pivot fail, and would let the
    // host see ours.
    spread(Utf8Path::new("/"), MountPropagationFlags::PRIVATE)?;
    let root = config.machine_dir.join("root");
    mount_kernel("tmpfs", &root, MountFlags::NODEV, "mode=755,size=16m")?;
    let host = HostFiles {
        empty: config.machine_dir.join("empty"),
        stage: config.machine_dir.join("stage"),
    };
    host.show(&config.software.root, |distro| show_distro(distro, &root))?;
    etc::write(
        &config.software.root.join("etc"),
        &root.join("etc"),
        &config.name,
        &config.address.to_string(),
    )?;
    mount_kernel(
        "tmpfs",
        &inside(&root, CNI_DIR),
        DATA_ONLY,
        "mode=755,size=1m",
    )?;
    // Results of the network plugins last as long as the node.
    mount_kernel(
        "tmpfs",
        &root.join("var/lib/cni"),
        DATA_ONLY,
        "mode=700,size=16m",
    )?;
    show_machine(config, &root)?;
    show_software(config, &host, &root)?;
    mount_kernel("proc", &root.join("proc"), DATA_ONLY, "")?;
    mount_kernel(
        "sysfs",
        &root.join("sys"),
        DATA_ONLY | MountFlags::RDONLY,
        "",
    )?;
    mount_cgroups(hierarchies, &root.join("sys/fs/cgroup"))?;
    old_umask(|| devices::mount(&root.join("dev")))?;
    mount_kernel(
        "tmpfs",
        &root.join("run"),
        MountFlags::NOSUID | MountFlags::NODEV,
        "mode=755",
    )?;
    mount_kernel(
        "tmpfs",
        &root.join("tmp"),
        MountFlags::NOSUID | MountFlags::NODEV,
        "mode=1777",
    )?;
    mask_proc(&root)?;
    rustix::system::sethostname(config.name.as_bytes()).at("set the host name", &root)?;
    pivot(&root)
}

fn inside(root: &Utf8Path, path: &str) -> camino::Utf8PathBuf {
    root.join(path.trim_start_matches('/'))
}

/// Device files get exactly the mode that is asked for.
fn old_umask(make: impl FnOnce() -> Result<(), BuildRootError>) -> Result<(), BuildRootError> {
    let before = rustix::process::umask(rustix::fs::Mode::empty());
    let made = make();
    rustix::process::umask(before);
    made
}

fn show_distro(distro: &Utf8Path, root: &Utf8Path) -> Result<(), BuildRootError> {
    for entry in distro.read_dir_utf8().at("list", distro)? {
        let entry = entry.at("list", distro)?;
        if OWN.contains(&entry.file_name()) {
            continue;
        }
        let target = root.join(entry.file_name());
        let kind = entry.file_type().at("look at", entry.path())?;
        if kind.is_symlink() {
            let link = entry
                .path()
                .read_link_utf8()
                .at("read the link", entry.path())?;
            symlink(link, &target).at("make the link", &target)?;
        } else if kind.is_dir() {
            bind_read_only(entry.path(), &target)?;
        }
    }
    for folder in ["root", "var/tmp", "var/cache", "opt", "home", "mnt"] {
        let path = root.join(folder);
        if !path.exists() {
            make_dir(&path)?;
        }
    }
    let run = root.join("var/run");
    symlink("/run", &run).at("make the link", &run)
}

/// Shows the machine's own folders, its configuration and its programs.
fn show_machine(config: &AgentConfig, root: &Utf8Path) -> Result<(), BuildRootError> {
    let machine = &config.machine_dir;
    for (folder, target) in [
        ("data/containerd", "/var/lib/containerd"),
        ("data/kubelet", "/var/lib/kubelet"),
        ("data/log", "/var/log"),
        ("log", LOG_DIR),
        ("run", RUN_DIR),
    ] {
        let source = machine.join(folder);
        make_dir(&source)?;
        bind(&source, &inside(root, target))?;
    }
    bind_read_only(&machine.join("config"), &inside(root, CONFIG_DIR))?;
    Ok(())
}

/// Shows the distro's programs and images and neap's own program.
fn show_software(
    config: &AgentConfig,
    host: &HostFiles,
    root: &Utf8Path,
) -> Result<(), BuildRootError> {
    host.show(&config.software.bin, |bin| {
        bind_read_only(bin, &inside(root, BIN_DIR))
    })?;
    let runtime = inside(root, RUNTIME_DIR);
    let mut files = vec![(config.program.clone(), runtime.join(PROGRAM_NAME))];
    for (archive, target) in config.images() {
        files.push((archive, inside(root, target.as_str())));
    }
    let mut folders: BTreeMap<&Utf8Path, Vec<(&str, &Utf8Path)>> = BTreeMap::new();
    for (source, target) in &files {
        if let (Some(folder), Some(name)) = (source.parent(), source.file_name()) {
            folders.entry(folder).or_default().push((name, target));
        }
    }
    for (folder, files) in folders {
        host.show(folder, |shown| {
            for (name, target) in &files {
                if let Some(parent) = target.parent() {
                    make_dir(parent)?;
                }
                bind_read_only(&shown.join(name), target)?;
            }
            Ok(())
        })?;
    }
    let link = runtime.join(RUNTIME_NAME);
    symlink(PROGRAM_NAME, &link).at("make the link", &link)
}

/// Files that the host shares with its nodes. They are shown by way of a file
/// system that cannot be written: a bind that is read-only is so until
/// somebody with the powers of the node says otherwise, and the file system
/// below it is the host's.
struct HostFiles {
    /// A folder with nothing in it that the node does not see.
    empty: Utf8PathBuf,
    /// Where the whole folders are, one over the other, until the host's root
    /// is let go of with all that is mounted below it: the kernel waits at each
    /// unmount.
    stage: Utf8PathBuf,
}

impl HostFiles {
    fn show(
        &self,
        folder: &Utf8Path,
        bind: impl FnOnce(&Utf8Path) -> Result<(), BuildRootError>,
    ) -> Result<(), BuildRootError> {
        mount_unchangeable(folder, &self.empty, &self.stage)?;
        bind(&self.stage)
    }
}

fn mount_cgroups(hierarchies: &[Hierarchy], target: &Utf8Path) -> Result<(), BuildRootError> {
    if let [only] = hierarchies
        && only.is_unified()
    {
        return mount_kernel("cgroup2", target, DATA_ONLY, "");
    }
    mount_kernel("tmpfs", target, DATA_ONLY, "mode=755,size=64k")?;
    for hierarchy in hierarchies
        .iter()
        .filter(|hierarchy| hierarchy.has_controllers())
    {
        let path = target.join(hierarchy.name());
        mount_kernel("cgroup", &path, DATA_ONLY, hierarchy.options())?;
        for controller in hierarchy.options().split(',') {
            let link = target.join(controller);
            if !link.exists() {
                symlink(hierarchy.name(), &link).at("make the link", &link)?;
            }
        }
    }
    Ok(())
}

/// Makes the host's kernel settings read-only, except those of the network
/// namespace, which is the node's own.
fn mask_proc(root: &Utf8Path) -> Result<(), BuildRootError> {
    let settings = root.join("proc/sys");
    bind_read_only(&settings, &settings)?;
    let network = settings.join("net");
    bind(&network, &network)?;
    remount(&network, DATA_ONLY)?;
    let held = root.join("run/neap/settings");
    make_dir(&held)?;
    for (name, value) in SETTINGS {
        let target = settings.join(name);
        if !target.exists() {
            continue;
        }
        let file = held.join(name.replace('/', "."));
        fs::write(&file, format!("{value}\n")).at("write", &file)?;
        bind_read_only(&file, &target)?;
    }
    let nothing = root.join("dev/null");
    for name in MASKED {
        let target = root.join("proc").join(name);
        if target.exists() {
            rustix::mount::mount_bind(nothing.as_std_path(), target.as_std_path())
                .at("mask", &target)?;
        }
    }
    Ok(())
}

fn pivot(root: &Utf8Path) -> Result<(), BuildRootError> {
    let old = root.join("oldroot");
    make_dir(&old)?;
    rustix::process::pivot_root(root.as_std_path(), old.as_std_path()).at("pivot into", root)?;
    let top = Utf8Path::new("/");
    rustix::process::chdir(top.as_std_path()).at("enter", top)?;
    let old = Utf8Path::new("/oldroot");
    rustix::mount::unmount(old.as_std_path(), UnmountFlags::DETACH).at("let go of", old)?;
    fs::remove_dir(old).at("remove", old)?;
    remount(top, MountFlags::RDONLY | MountFlags::NODEV)?;
    // The kubelet's mounts must reach the containers.
    spread(top, MountPropagationFlags::SHARED)
}
