//! The Go programs of the distro. Each module is a cached part of its own, so
//! that a change elsewhere does not compile Kubernetes again.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};
use camino::Utf8Path;

use super::cache::{Cache, Key};
use crate::terminal::Stage;
use crate::{command, setup};

/// Raised when the same module is built in another way that the flags do not
/// show.
const BUILDER: u32 = 1;

/// A Go module in `distro/` and what is built of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Module {
    /// Its folder.
    pub(super) name: &'static str,
    /// The requirement in its go.mod whose version is that of the programs.
    upstream: &'static str,
    /// `.`, or `tool` for programs that are tools of the module.
    packages: &'static str,
    /// How long it takes from nothing.
    takes: &'static str,
    /// Whether C is linked.
    cgo: &'static str,
    /// Variables that carry the version.
    stamps: fn(&str) -> Vec<(&'static str, String)>,
    programs: &'static [&'static str],
}

/// Kubernetes; its store is SQLite, which is C.
pub(super) const HYPERKUBE: Module = Module {
    name: "hyperkube",
    upstream: "k8s.io/kubernetes",
    packages: ".",
    takes: "some 8 minutes on 2 cores",
    cgo: "1",
    stamps: kubernetes_stamps,
    programs: &["hyperkube"],
};

/// containerd, its shim for runc, and ctr.
pub(super) const CONTAINERD: Module = Module {
    name: "containerd",
    upstream: "github.com/containerd/containerd/v2",
    packages: "tool",
    takes: "some 45 seconds on 2 cores",
    cgo: "0",
    stamps: |version| {
        vec![(
            "github.com/containerd/containerd/v2/version.Version",
            version.to_owned(),
        )]
    },
    programs: &["containerd", "containerd-shim-runc-v2", "ctr"],
};

/// The CNI plugins that pods' networks need.
pub(super) const CNI: Module = Module {
    name: "cni",
    upstream: "github.com/containernetworking/plugins",
    packages: "tool",
    takes: "a few seconds",
    cgo: "0",
    stamps: |version| {
        vec![(
            "github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion",
            version.to_owned(),
        )]
    },
    programs: &["host-local", "loopback", "portmap", "ptp"],
};

fn kubernetes_stamps(version: &str) -> Vec<(&'static str, String)> {
    let mut numbers = version.trim_start_matches('v').split('.');
    let mut number = || numbers.next().unwrap_or_default().to_owned();
    vec![
        (
            "k8s.io/component-base/version.gitVersion",
            version.to_owned(),
        ),
        ("k8s.io/component-base/version.gitMajor", number()),
        ("k8s.io/component-base/version.gitMinor", number()),
        (
            "k8s.io/client-go/pkg/version.gitVersion",
            version.to_owned(),
        ),
    ]
}

impl Module {
    /// Builds the module, or takes what was built of the same files before;
    /// its programs are then in `place`. Returns the upstream's version.
    pub(super) fn build(
        &self,
        sources: &Utf8Path,
        cache: &Cache,
        place: &Utf8Path,
    ) -> Result<String> {
        let folder = sources.join(self.name);
        let version = required_version(&folder.join("go.mod"), self.upstream)?;
        let flags = self.link_flags(&version);

        let mut key = Key::start(self.name, BUILDER);
        key.add_tree(&folder)?;
        key.add("go", &setup::go_version(&folder)?);
        key.add("architecture", std::env::consts::ARCH);
        key.add("flags", &flags);
        key.add("cgo", self.cgo);

        let part = cache.part(self.name, &key);
        if !part.exists() {
            let stage = Stage::start_long(
                format!("Compile {} {version}", self.name),
                &format!("{} when nothing of it was compiled before", self.takes),
            );
            let log = cache.log(self.name)?;
            cache.fill(&part, |unfinished| {
                // -v names each package as it is compiled.
                let mut go = Command::new("go");
                go.current_dir(&folder)
                    .env("CGO_ENABLED", self.cgo)
                    .args(["build", "-v", "-trimpath", "-buildvcs=false", "-ldflags"])
                    .args([&flags, "-o", &format!("{unfinished}/"), self.packages]);
                command::run_logged(&mut go, &log, &stage)?;
                self.check_programs(unfinished)
            })?;
            stage.done();
        }
        self.place_programs(&part, place)?;
        Ok(version)
    }

    fn link_flags(&self, version: &str) -> String {
        let mut flags = String::from("-s -w");
        for (variable, value) in (self.stamps)(version) {
            flags.push_str(&format!(" -X {variable}={value}"));
        }
        flags
    }

    fn check_programs(&self, folder: &Utf8Path) -> Result<()> {
        match self.programs.iter().find(|&p| !folder.join(p).is_file()) {
            Some(missing) => bail!("the module {} built no {missing}", self.name),
            None => Ok(()),
        }
    }

    fn place_programs(&self, part: &Utf8Path, place: &Utf8Path) -> Result<()> {
        fs::create_dir_all(place).with_context(|| format!("cannot make {place}"))?;
        for program in self.programs {
            // Hard links: distros that share a program hold it once.
            let (from, to) = (part.join(program), place.join(program));
            fs::hard_link(&from, &to).with_context(|| format!("cannot link {from} to {to}"))?;
        }
        Ok(())
    }
}

/// The version of a requirement in a go.mod.
fn required_version(path: &Utf8Path, module: &str) -> Result<String> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    text.lines()
        .filter(|line| !line.starts_with("replace"))
        .find_map(|line| {
            let mut words = line.trim_start_matches("require").split_whitespace();
            (words.next() == Some(module)).then(|| words.next().map(str::to_owned))?
        })
        .filter(|version| version.starts_with('v'))
        .with_context(|| format!("{path} requires no version of {module}"))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn the_version_comes_from_the_requirement_and_not_from_a_tool_or_a_replacement() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("go.mod");
        let text = "module x\n\ntool (\n\texample.org/a/cmd/a\n)\n\n\
                    replace example.org/a => example.org/a v0.9.0\n\n\
                    require (\n\texample.org/a v1.2.3 // indirect\n)\nrequire example.org/b v4.5.6\n";
        fs::write(&path, text).unwrap();
        assert_eq!(required_version(&path, "example.org/a").unwrap(), "v1.2.3");
        assert_eq!(required_version(&path, "example.org/b").unwrap(), "v4.5.6");
        let error = required_version(&path, "example.org/c").unwrap_err();
        assert!(error.to_string().contains("example.org/c"), "{error}");
    }

    #[test]
    fn kubernetes_is_stamped_with_its_numbers() {
        assert_eq!(
            HYPERKUBE.link_flags("v1.37.2"),
            "-s -w -X k8s.io/component-base/version.gitVersion=v1.37.2 \
             -X k8s.io/component-base/version.gitMajor=1 \
             -X k8s.io/component-base/version.gitMinor=37 \
             -X k8s.io/client-go/pkg/version.gitVersion=v1.37.2"
        );
    }
}
