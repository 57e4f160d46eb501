//! The files of the OCI runtime specification, as far as the fence must know;
//! what it does not know is kept.

use super::RunContainerError;
use camino::{Utf8Path, Utf8PathBuf};
use neap_core::fence::{ObservedContainer, ObservedMount, Protection};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Annotations by which containerd says what a container belongs to.
const SANDBOX: &str = "io.kubernetes.cri.sandbox-id";
const POD: &str = "io.kubernetes.cri.sandbox-uid";

/// What must be read-only in `/proc` of a container.
const READ_ONLY: [&str; 2] = ["/proc/sys", "/proc/sysrq-trigger"];

#[derive(Clone, Debug, Deserialize)]
struct Spec {
    process: Process,
    #[serde(default)]
    mounts: Vec<Mount>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
    linux: Linux,
    #[serde(default)]
    hooks: Option<Value>,
}

#[derive(Clone, Debug, Deserialize)]
struct Process {
    #[serde(default)]
    capabilities: Option<BTreeMap<String, Option<Vec<String>>>>,
}

/// One thing that the container is to see.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Mount {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    source: String,
    #[serde(default)]
    options: Option<Vec<String>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Linux {
    #[serde(default)]
    seccomp: Option<Value>,
    #[serde(default)]
    readonly_paths: Option<Vec<String>>,
}

impl Mount {
    /// What of the node it shows, if it does.
    pub(super) fn bind_source(&self) -> Option<&Utf8Path> {
        let is_bind = self.kind == "bind"
            || self
                .options
                .iter()
                .flatten()
                .any(|option| option == "bind" || option == "rbind");
        is_bind.then(|| Utf8Path::new(&self.source))
    }

    /// The file system that it is otherwise.
    pub(super) fn kind(&self) -> &str {
        &self.kind
    }
}

impl Process {
    fn capabilities(&self) -> BTreeSet<String> {
        let name = |capability: &String| {
            let upper = capability.to_ascii_uppercase();
            upper.strip_prefix("CAP_").unwrap_or(&upper).to_owned()
        };
        self.capabilities
            .iter()
            .flat_map(BTreeMap::values)
            .flatten()
            .flatten()
            .map(name)
            .collect()
    }
}

/// The capabilities of a process that is to be started in a container.
pub(super) fn read_process(path: &Utf8Path) -> Result<BTreeSet<String>, RunContainerError> {
    let process: Process = parse(path, &read(path)?)?;
    Ok(process.capabilities())
}

/// A container that is to be made.
#[derive(Clone, Debug)]
pub(super) struct Bundle {
    folder: Utf8PathBuf,
    path: Utf8PathBuf,
    text: Value,
    spec: Spec,
}

impl Bundle {
    /// Reads the `config.json` of this folder.
    pub(super) fn read(folder: &Utf8Path) -> Result<Self, RunContainerError> {
        let path = folder.join("config.json");
        let bytes = read(&path)?;
        Ok(Self {
            text: parse(&path, &bytes)?,
            spec: parse(&path, &bytes)?,
            folder: folder.to_owned(),
            path,
        })
    }

    /// What the container is to see.
    pub(super) fn mounts(&self) -> &[Mount] {
        &self.spec.mounts
    }

    /// A source as an absolute path.
    pub(super) fn resolve(&self, source: &Utf8Path) -> Utf8PathBuf {
        self.folder.join(source)
    }

    /// The container as the fence looks at it.
    pub(super) fn observe(&self, id: &str, mounts: Vec<ObservedMount>) -> ObservedContainer {
        let spec = &self.spec;
        let annotation = |name: &str| spec.annotations.get(name).cloned().unwrap_or_default();
        let covered = spec.linux.readonly_paths.clone().unwrap_or_default();
        ObservedContainer {
            id: id.to_owned(),
            sandbox: annotation(SANDBOX),
            pod: annotation(POD),
            capabilities: spec.process.capabilities(),
            seccomp: present(
                spec.linux
                    .seccomp
                    .as_ref()
                    .is_some_and(|one| !one.is_null()),
            ),
            masks: present(
                READ_ONLY
                    .iter()
                    .all(|path| covered.iter().any(|one| one == path)),
            ),
            no_hooks: present(spec.hooks.as_ref().is_none_or(is_empty)),
            mounts,
        }
    }

    /// Has runc show this place in a mount.
    pub(super) fn show(&mut self, mount: usize, place: &Utf8Path) {
        if let Some(source) = self.text.pointer_mut(&format!("/mounts/{mount}/source")) {
            *source = place.as_str().into();
        }
    }

    /// Writes what was changed.
    pub(super) fn write(&self) -> Result<(), RunContainerError> {
        let failed = |source| RunContainerError::Write {
            path: self.path.clone(),
            source,
        };
        let bytes = serde_json::to_vec(&self.text).map_err(|error| failed(error.into()))?;
        std::fs::write(&self.path, bytes).map_err(failed)
    }
}

fn present(is: bool) -> Protection {
    if is {
        Protection::Present
    } else {
        Protection::Absent
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.values().all(is_empty),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

fn read(path: &Utf8Path) -> Result<Vec<u8>, RunContainerError> {
    std::fs::read(path).map_err(|source| RunContainerError::Read {
        path: path.to_owned(),
        source,
    })
}

fn parse<T: DeserializeOwned>(path: &Utf8Path, bytes: &[u8]) -> Result<T, RunContainerError> {
    serde_json::from_slice(bytes).map_err(|source| RunContainerError::Parse {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    fn bundle(change: impl FnOnce(&mut Value)) -> (tempfile::TempDir, Bundle) {
        let mut spec = json!({
            "ociVersion": "1.2.0",
            "process": {"capabilities": {"bounding": ["CAP_CHOWN"], "effective": ["CAP_KILL"], "inheritable": null}},
            "mounts": [
                {"destination": "/proc", "type": "proc", "source": "proc", "options": ["nosuid"]},
                {"destination": "/work", "type": "bind", "source": "/tmp/work", "options": ["rbind", "rw"]},
            ],
            "annotations": {"io.kubernetes.cri.sandbox-id": "s1", "io.kubernetes.cri.sandbox-uid": "p1"},
            "linux": {
                "namespaces": [{"type": "pid"}, {"type": "network", "path": "/proc/1/ns/net"}],
                "seccomp": {"defaultAction": "SCMP_ACT_ERRNO"},
                "readonlyPaths": ["/proc/bus", "/proc/sys", "/proc/sysrq-trigger"],
                "somethingNew": 1,
            },
        });
        change(&mut spec);
        let dir = tempfile::tempdir().unwrap();
        let folder = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
        std::fs::write(folder.join("config.json"), spec.to_string()).unwrap();
        let bundle = Bundle::read(&folder).unwrap();
        (dir, bundle)
    }

    fn observed(change: impl FnOnce(&mut Value)) -> ObservedContainer {
        bundle(change).1.observe("c1", Vec::new())
    }

    #[test]
    fn an_ordinary_container_is_seen_as_one() {
        let container = observed(|_| {});
        assert_eq!(
            (container.sandbox.as_str(), container.pod.as_str()),
            ("s1", "p1")
        );
        let names: Vec<&str> = container.capabilities.iter().map(String::as_str).collect();
        assert_eq!(names, ["CHOWN", "KILL"]);
        for protection in [container.seccomp, container.masks, container.no_hooks] {
            assert_eq!(protection, Protection::Present);
        }
    }

    #[test]
    fn a_capability_counts_in_whatever_set_it_is() {
        for set in [
            "bounding",
            "effective",
            "permitted",
            "inheritable",
            "ambient",
        ] {
            let container = observed(|spec| {
                spec["process"]["capabilities"] = json!({set: ["cap_sys_admin"]});
            });
            assert!(container.capabilities.contains("SYS_ADMIN"), "{set}");
        }
    }

    #[test]
    fn what_is_missing_is_missed() {
        let absent = Protection::Absent;
        for nothing in [Value::Null, json!(["/proc/sys"])] {
            let container = observed(|spec| spec["linux"]["readonlyPaths"] = nothing);
            assert_eq!(container.masks, absent);
        }
        let container = observed(|spec| spec["linux"]["seccomp"] = Value::Null);
        assert_eq!(container.seccomp, absent);
        let hook = json!({"prestart": [{"path": "/bin/true"}]});
        assert_eq!(observed(|spec| spec["hooks"] = hook).no_hooks, absent);
        let none = json!({"prestart": []});
        assert_eq!(
            observed(|spec| spec["hooks"] = none).no_hooks,
            Protection::Present
        );
    }

    #[test]
    fn a_bind_is_one_by_type_or_by_option() {
        let check = |mount: Value, source: Option<&str>| {
            let mount: Mount = serde_json::from_value(mount).unwrap();
            assert_eq!(mount.bind_source().map(Utf8Path::as_str), source);
        };
        check(json!({"type": "bind", "source": "/a"}), Some("/a"));
        check(
            json!({"type": "none", "source": "/a", "options": ["rbind"]}),
            Some("/a"),
        );
        check(json!({"source": "/a", "options": ["bind"]}), Some("/a"));
        check(json!({"type": "tmpfs", "source": "tmpfs"}), None);
    }

    #[test]
    fn what_is_not_known_is_kept_when_a_source_is_changed() {
        let (_guard, mut bundle) = bundle(|_| {});
        bundle.show(1, Utf8Path::new("/run/neap/pins/7-0"));
        bundle.write().unwrap();
        let written: Value = parse(&bundle.path, &read(&bundle.path).unwrap()).unwrap();
        assert_eq!(written["mounts"][1]["source"], "/run/neap/pins/7-0");
        assert_eq!(written["mounts"][1]["destination"], "/work");
        assert_eq!(written["linux"]["somethingNew"], 1);
        assert_eq!(written["mounts"][0]["source"], "proc");
    }
}
