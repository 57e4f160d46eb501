//! The Kubernetes build that clusters are made of: where it lies, and whether
//! it is whole.

use crate::problem::Problem;
use camino::{Utf8Path, Utf8PathBuf};
use serde::Deserialize;

/// What must be in it before anything is started.
const NEEDED: [&str; 7] = [
    "bin/hyperkube",
    "bin/containerd",
    "bin/containerd-shim-runc-v2",
    "bin/ctr",
    "bin/cni",
    "images/pause.tar",
    "root",
];

/// A build that was found whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Distro {
    /// Its folder, links resolved: the name `current` may move on later.
    pub(crate) path: Utf8PathBuf,
    /// Its identity, which a Cluster keeps.
    pub(crate) id: String,
    /// Version of Kubernetes.
    pub(crate) kubernetes: String,
}

/// Parts of `distro.json` that are read here.
#[derive(Debug, Deserialize)]
struct Manifest {
    version: u32,
    id: String,
    kubernetes: String,
}

/// The form of `distro.json` that is understood.
const MANIFEST_VERSION: u32 = 1;

impl Distro {
    /// The named one, or the one that was built last.
    pub(crate) fn find(named: Option<&Utf8Path>) -> Result<Self, Problem> {
        let path = named.map_or_else(
            || cache(|name| std::env::var(name).ok()),
            Utf8Path::to_owned,
        );
        Self::open(&path)
    }

    /// Reads the one in this folder.
    pub(crate) fn open(folder: &Utf8Path) -> Result<Self, Problem> {
        let absent = || Problem::NoDistro {
            path: folder.to_owned(),
        };
        let path = folder.canonicalize_utf8().map_err(|_| absent())?;
        let bad = |why: String| Problem::BadDistro {
            path: path.clone(),
            why,
        };
        let text = std::fs::read_to_string(path.join("distro.json"))
            .map_err(|error| bad(format!("distro.json cannot be read ({error})")))?;
        let manifest: Manifest = serde_json::from_str(&text)
            .map_err(|error| bad(format!("distro.json is not understood ({error})")))?;
        if manifest.version != MANIFEST_VERSION {
            return Err(bad(format!(
                "distro.json has version {} and not {MANIFEST_VERSION}",
                manifest.version
            )));
        }
        if let Some(missing) = NEEDED.iter().find(|name| !path.join(name).exists()) {
            return Err(bad(format!("{missing} is missing")));
        }
        Ok(Self {
            path,
            id: manifest.id,
            kubernetes: manifest.kubernetes,
        })
    }

    /// Other builds that lie beside it and are whole: Clusters may have been
    /// started with them.
    pub(crate) fn siblings(&self) -> Vec<Self> {
        let Some(Ok(entries)) = self.path.parent().map(Utf8Path::read_dir_utf8) else {
            return Vec::new();
        };
        let mut found: Vec<Self> = entries
            .filter_map(Result::ok)
            .filter(|entry| {
                entry.file_type().is_ok_and(|kind| kind.is_dir()) && entry.path() != self.path
            })
            .filter_map(|entry| Self::open(entry.path()).ok())
            .collect();
        found.sort_by(|a, b| a.id.cmp(&b.id));
        found
    }
}

/// The link to the newest build in the cache.
fn cache(variable: impl Fn(&str) -> Option<String>) -> Utf8PathBuf {
    let set = |name| {
        variable(name)
            .filter(|value| !value.is_empty())
            .map(Utf8PathBuf::from)
    };
    set("NEAP_CACHE")
        .or_else(|| set("XDG_CACHE_HOME"))
        .or_else(|| set("HOME").map(|home| home.join(".cache")))
        .unwrap_or_else(|| "/root/.cache".into())
        .join("neap/distro/current")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn build(folder: &Utf8Path) {
        for name in NEEDED {
            std::fs::create_dir_all(folder.join(name)).unwrap();
        }
        std::fs::write(
            folder.join("distro.json"),
            r#"{"version": 1, "id": "abc123", "kubernetes": "v1.37.2", "more": [1]}"#,
        )
        .unwrap();
    }

    #[test]
    fn the_link_is_resolved_so_that_a_later_build_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path())
            .unwrap()
            .canonicalize_utf8()
            .unwrap();
        build(&root.join("abc123"));
        std::os::unix::fs::symlink("abc123", root.join("current")).unwrap();
        let distro = Distro::open(&root.join("current")).unwrap();
        assert_eq!(distro.path, root.join("abc123"));
        assert_eq!(distro.id, "abc123");
        assert_eq!(distro.kubernetes, "v1.37.2");
    }

    #[test]
    fn an_absent_and_an_incomplete_one_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        assert!(matches!(
            Distro::open(&root.join("none")),
            Err(Problem::NoDistro { .. })
        ));
        build(&root.join("half"));
        std::fs::remove_dir(root.join("half/bin/ctr")).unwrap();
        match Distro::open(&root.join("half")) {
            Err(Problem::BadDistro { why, .. }) => assert_eq!(why, "bin/ctr is missing"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn older_builds_beside_it_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path())
            .unwrap()
            .canonicalize_utf8()
            .unwrap();
        build(&root.join("new"));
        build(&root.join("old"));
        std::fs::create_dir(root.join("unfinished")).unwrap();
        std::os::unix::fs::symlink("new", root.join("current")).unwrap();
        let siblings = Distro::open(&root.join("current")).unwrap().siblings();
        assert_eq!(
            siblings
                .iter()
                .map(|distro| &distro.path)
                .collect::<Vec<_>>(),
            [&root.join("old")]
        );
    }

    #[test]
    fn the_cache_follows_the_environment() {
        let of = |set: &[(&str, &str)]| {
            cache(|name| {
                set.iter()
                    .find(|(key, _)| *key == name)
                    .map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(
            of(&[("HOME", "/home/me")]),
            "/home/me/.cache/neap/distro/current"
        );
        assert_eq!(
            of(&[("HOME", "/home/me"), ("XDG_CACHE_HOME", "/x")]),
            "/x/neap/distro/current"
        );
        assert_eq!(
            of(&[("XDG_CACHE_HOME", "/x"), ("NEAP_CACHE", "/y")]),
            "/y/neap/distro/current"
        );
        assert_eq!(
            of(&[("XDG_CACHE_HOME", ""), ("HOME", "/h")]),
            "/h/.cache/neap/distro/current"
        );
    }
}
