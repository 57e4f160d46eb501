//! What neap has on this host: processes, network namespaces, mounts,
//! interfaces, cgroups, loop devices, files. Only reads.

mod disks;

use super::contents;
use super::scope::{NAMESPACE_PREFIX, NAMESPACES, Scope, folders};
use camino::{Utf8Path, Utf8PathBuf};
use disks::{is_disk, loops};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;

/// One look at the host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traces {
    /// Processes in a cgroup or a network namespace of neap, and its shims,
    /// as `pid command`.
    pub processes: BTreeSet<String>,
    /// Network namespaces by name.
    pub namespaces: BTreeSet<String>,
    /// Mount points.
    pub mounts: BTreeSet<String>,
    /// Interfaces of the host's own network namespace.
    pub interfaces: BTreeSet<String>,
    /// cgroups by path.
    pub cgroups: BTreeSet<String>,
    /// Loop devices of files in the data folder, as `device file`.
    pub loops: BTreeSet<String>,
    /// Files and folders of the data folder, without the hub's.
    pub files: BTreeSet<String>,
}

impl Traces {
    /// For a comparison of before and after: what one installation has, with
    /// the files inside its folder (the hub's left out, its store comes and
    /// goes), and all mounts and interfaces of the host but those of other
    /// installations.
    pub fn take(scope: &Scope) -> Self {
        let mut files = BTreeSet::new();
        walk(scope.data_dir(), &mut |path| {
            let inside = path.strip_prefix(scope.data_dir()).unwrap_or(path);
            if !inside.starts_with("hub") {
                files.insert(inside.to_string());
            }
        });
        let is_others = |mount: &String| {
            let name = Utf8Path::new(mount).strip_prefix(NAMESPACES);
            name.is_ok_and(|name| name != "" && !scope.owns_namespace(name.as_str()))
                || is_disk(mount) && !scope.owns_mount(mount)
        };
        Self {
            mounts: mount_points()
                .into_iter()
                .filter(|mount| !is_others(mount))
                .collect(),
            interfaces: interfaces().into_iter().collect(),
            files,
            ..Self::of_host(scope)
        }
    }

    /// What one installation has, its folder included.
    pub fn of(scope: &Scope) -> Self {
        let mut files = BTreeSet::new();
        // An empty folder may be anybody's, and may be a mount point.
        if !contents::is_empty(scope.data_dir()).unwrap_or(!scope.data_dir().exists()) {
            files.insert(scope.data_dir().to_string());
        }
        Self {
            files,
            ..Self::of_host(scope)
        }
    }

    /// What one installation has outside its folder.
    pub fn of_host(scope: &Scope) -> Self {
        Self {
            processes: owned_processes(scope).iter().map(Process::shown).collect(),
            namespaces: named_namespaces()
                .into_iter()
                .filter(|name| scope.owns_namespace(name))
                .collect(),
            mounts: owned_mounts(scope).into_iter().collect(),
            interfaces: interfaces()
                .into_iter()
                .filter(|name| scope.owns_interface(name))
                .collect(),
            cgroups: scope
                .cgroup_roots()
                .iter()
                .flat_map(|root| tree(root))
                .map(String::from)
                .collect(),
            loops: loops()
                .into_iter()
                .filter(|(_, file)| scope.owns_path(file))
                .map(|(device, file)| format!("{device} {file}"))
                .collect(),
            files: BTreeSet::new(),
        }
    }

    /// What is here and was not there before.
    pub fn difference(&self, before: &Self) -> Self {
        let more = |now: &BTreeSet<String>, then: &BTreeSet<String>| {
            now.difference(then).cloned().collect()
        };
        Self {
            processes: more(&self.processes, &before.processes),
            namespaces: more(&self.namespaces, &before.namespaces),
            mounts: more(&self.mounts, &before.mounts),
            interfaces: more(&self.interfaces, &before.interfaces),
            cgroups: more(&self.cgroups, &before.cgroups),
            loops: more(&self.loops, &before.loops),
            files: more(&self.files, &before.files),
        }
    }

    /// Nothing at all.
    pub fn is_empty(&self) -> bool {
        self.kinds().iter().all(|(_, things)| things.is_empty())
    }

    /// Each kind with its things.
    pub fn kinds(&self) -> [(&'static str, &BTreeSet<String>); 7] {
        [
            ("processes", &self.processes),
            ("network namespaces", &self.namespaces),
            ("mounts", &self.mounts),
            ("interfaces", &self.interfaces),
            ("cgroups", &self.cgroups),
            ("loop devices", &self.loops),
            ("files", &self.files),
        ]
    }

    /// How many of each kind, in one line.
    pub fn counts(&self) -> String {
        let counts: Vec<String> = self
            .kinds()
            .iter()
            .map(|(kind, things)| format!("{} {kind}", things.len()))
            .collect();
        counts.join(", ")
    }

    /// The things themselves in one line, at most five of each kind.
    pub fn summary(&self) -> String {
        const SHOWN: usize = 5;
        let mut parts = Vec::new();
        for (kind, things) in self.kinds() {
            if things.is_empty() {
                continue;
            }
            let shown: Vec<&str> = things.iter().take(SHOWN).map(String::as_str).collect();
            let more = if things.len() > SHOWN {
                format!(" and {} more", things.len() - SHOWN)
            } else {
                String::new()
            };
            parts.push(format!("{kind}: {}{more}", shown.join(", ")));
        }
        if parts.is_empty() {
            "nothing".to_owned()
        } else {
            parts.join("; ")
        }
    }
}

/// Characters of a command line that are shown.
const SHOWN: usize = 200;

/// A process, as /proc has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    arguments: Vec<String>,
    cgroups: Vec<String>,
    /// Name of its network namespace, if that has one of ours.
    namespace: Option<String>,
}

impl Process {
    fn shown(&self) -> String {
        let mut command = self.arguments.join(" ");
        if let Some((cut, _)) = command.char_indices().nth(SHOWN) {
            command.truncate(cut);
        }
        format!("{} {command}", self.pid)
    }

    /// The folder that a shim or a node agent works for, by its command line.
    fn folder(&self) -> Option<&str> {
        match self.arguments.as_slice() {
            [_, verb, folder] if verb == "shim" || verb == "node-agent" => Some(folder),
            _ => None,
        }
    }

    pub(crate) fn is_owned_by(&self, scope: &Scope) -> bool {
        self.namespace
            .as_deref()
            .is_some_and(|name| scope.owns_namespace(name))
            || self.cgroups.iter().any(|path| scope.owns_cgroup(path))
            || self.folder().is_some_and(|folder| scope.owns_path(folder))
    }
}

/// Processes of one installation; never the one that asks.
pub(crate) fn owned_processes(scope: &Scope) -> Vec<Process> {
    processes()
        .filter(|process| process.is_owned_by(scope))
        .collect()
}

/// One process, if it lives.
pub(crate) fn process(pid: i32) -> Option<Process> {
    read_process(pid, &namespace_inodes())
}

fn processes() -> impl Iterator<Item = Process> {
    let namespaces = namespace_inodes();
    let own = i32::try_from(std::process::id()).ok();
    folders(Utf8Path::new("/proc"))
        .into_iter()
        .filter_map(|name| name.parse::<i32>().ok())
        .filter(move |pid| Some(*pid) != own)
        .filter_map(move |pid| read_process(pid, &namespaces))
}

fn read_process(pid: i32, namespaces: &BTreeMap<String, String>) -> Option<Process> {
    let folder = Utf8PathBuf::from(format!("/proc/{pid}"));
    // One that has ended and waits for its parent holds nothing any more.
    let stat = std::fs::read_to_string(folder.join("stat")).ok()?;
    if matches!(state_of(&stat), Some('Z' | 'X') | None) {
        return None;
    }
    let arguments = std::fs::read(folder.join("cmdline")).ok()?;
    let cgroups = std::fs::read_to_string(folder.join("cgroup")).ok()?;
    let namespace = std::fs::read_link(folder.join("ns/net"))
        .ok()
        .and_then(|link| namespaces.get(link.to_string_lossy().as_ref()).cloned());
    Some(Process {
        pid,
        arguments: arguments
            .split(|byte| *byte == 0)
            .filter(|argument| !argument.is_empty())
            .map(|argument| String::from_utf8_lossy(argument).into_owned())
            .collect(),
        cgroups: cgroups
            .lines()
            .filter_map(|line| line.splitn(3, ':').nth(2))
            .map(str::to_owned)
            .collect(),
        namespace,
    })
}

/// The state letter: the field after the command's closing parenthesis.
fn state_of(stat: &str) -> Option<char> {
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Link text of each of our network namespaces, with its name.
fn namespace_inodes() -> BTreeMap<String, String> {
    let own = std::fs::metadata("/proc/self/ns/net")
        .map(|metadata| metadata.ino())
        .ok();
    named_namespaces()
        .into_iter()
        .filter(|name| name.starts_with(NAMESPACE_PREFIX))
        .filter_map(|name| {
            let inode = std::fs::metadata(Utf8Path::new(NAMESPACES).join(&name))
                .ok()?
                .ino();
            (Some(inode) != own).then(|| (format!("net:[{inode}]"), name))
        })
        .collect()
}

/// Names in /run/netns.
pub(crate) fn named_namespaces() -> Vec<String> {
    names_in(Utf8Path::new(NAMESPACES))
}

fn interfaces() -> Vec<String> {
    names_in(Utf8Path::new("/sys/class/net"))
}

fn names_in(folder: &Utf8Path) -> Vec<String> {
    let Ok(entries) = folder.read_dir_utf8() else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .filter_map(Result::ok)
        .map(|entry| entry.file_name().to_owned())
        .collect();
    names.sort();
    names
}

/// Mount points of one installation, the last mounted first.
pub(crate) fn owned_mounts(scope: &Scope) -> Vec<String> {
    let namespaces = Utf8Path::new(NAMESPACES);
    let mut mounts: Vec<String> = mount_points()
        .into_iter()
        .filter(|point| {
            let of_namespace = Utf8Path::new(point).strip_prefix(namespaces).ok();
            scope.owns_mount(point)
                || of_namespace.is_some_and(|name| scope.owns_namespace(name.as_str()))
        })
        .collect();
    mounts.reverse();
    mounts
}

fn mount_points() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    text.lines().filter_map(mount_point).collect()
}

/// The fifth field of a line of mountinfo, its octal escapes undone.
fn mount_point(line: &str) -> Option<String> {
    let mut rest = line.split(' ').nth(4)?;
    let mut bytes = Vec::with_capacity(rest.len());
    while let Some((plain, escaped)) = rest.split_once('\\') {
        bytes.extend_from_slice(plain.as_bytes());
        let (digits, after) = escaped.split_at_checked(3)?;
        bytes.push(u8::from_str_radix(digits, 8).ok()?);
        rest = after;
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes).ok()
}

/// A folder and all folders below it, the deepest last.
pub(crate) fn tree(root: &Utf8Path) -> Vec<Utf8PathBuf> {
    let mut found = vec![root.to_owned()];
    let mut next = 0;
    while let Some(folder) = found.get(next).cloned() {
        found.extend(folders(&folder).into_iter().map(|name| folder.join(name)));
        next += 1;
    }
    found
}

/// Visits all below a folder, without following links or entering mounts.
fn walk(root: &Utf8Path, visit: &mut dyn FnMut(&Utf8Path)) {
    let device = std::fs::symlink_metadata(root)
        .map(|metadata| metadata.dev())
        .ok();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        let Ok(entries) = folder.read_dir_utf8() else {
            continue;
        };
        for entry in entries.filter_map(Result::ok) {
            let path = entry.path();
            visit(path);
            let Ok(metadata) = std::fs::symlink_metadata(path) else {
                continue;
            };
            if metadata.is_dir() && Some(metadata.dev()) == device {
                open.push(path.to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn with_processes(names: &[&str]) -> Traces {
        Traces {
            processes: names.iter().map(|name| (*name).to_owned()).collect(),
            ..Traces::default()
        }
    }

    #[test]
    fn the_difference_is_what_came_and_stayed() {
        let before = with_processes(&["1 a", "2 b"]);
        let after = with_processes(&["2 b", "3 c"]);
        assert_eq!(after.difference(&before), with_processes(&["3 c"]));
        assert!(before.difference(&before).is_empty());
        assert!(!after.difference(&before).is_empty());
    }

    #[test]
    fn a_summary_names_five_of_a_kind_and_counts_the_rest() {
        assert_eq!(Traces::default().summary(), "nothing");
        let text = with_processes(&["1", "2", "3", "4", "5", "6", "7"]).summary();
        assert_eq!(text, "processes: 1, 2, 3, 4, 5 and 2 more");
    }

    #[test]
    fn escapes_of_mountinfo_are_undone() {
        let line =
            r"36 35 98:0 /mnt1 /tmp/with\040space\134 rw,noatime master:1 - ext3 /dev/root rw";
        assert_eq!(mount_point(line).unwrap(), "/tmp/with space\\");
        assert_eq!(mount_point("short line"), None);
        assert_eq!(mount_point(r"1 2 3 4 \9"), None);
    }

    #[test]
    fn the_state_is_read_behind_any_command_name() {
        assert_eq!(state_of("12 (a) b (c)) Z 1 2"), Some('Z'));
        assert_eq!(state_of("12 (sleep) S 1 2"), Some('S'));
        assert_eq!(state_of("nonsense"), None);
    }

    #[test]
    fn shims_are_known_by_their_exact_command_line() {
        let of = |arguments: &[&str]| Process {
            pid: 7,
            arguments: arguments
                .iter()
                .map(|argument| (*argument).to_owned())
                .collect(),
            cgroups: Vec::new(),
            namespace: None,
        };
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap();
        let scope = Scope::read(path);
        let inside = path.join("hub/process");
        assert!(of(&["/usr/bin/neap", "shim", inside.as_str()]).is_owned_by(&scope));
        assert!(!of(&["/usr/bin/neap", "shim", "/var/lib/neap/hub"]).is_owned_by(&scope));
        assert!(!of(&["vi", inside.as_str()]).is_owned_by(&scope));
        assert!(!of(&["neap", "shim", inside.as_str(), "more"]).is_owned_by(&scope));
    }

    #[test]
    fn a_tree_lists_parents_before_children() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::create_dir(root.join("c")).unwrap();
        let found = tree(root);
        assert_eq!(
            found,
            [
                root.to_owned(),
                root.join("a"),
                root.join("c"),
                root.join("a/b")
            ]
        );
    }

    #[test]
    fn files_of_the_data_folder_are_listed_without_the_hubs() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        std::fs::create_dir_all(root.join("hub/store")).unwrap();
        std::fs::create_dir_all(root.join("clusters/x")).unwrap();
        std::fs::write(root.join("clusters/x/record.json"), "{}").unwrap();
        let files: Vec<String> = Traces::take(&Scope::read(root)).files.into_iter().collect();
        assert_eq!(files, ["clusters", "clusters/x", "clusters/x/record.json"]);
    }
}
