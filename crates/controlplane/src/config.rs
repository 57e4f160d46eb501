//! What an implementation of control planes is made from.

use camino::Utf8PathBuf;
use neap_core::ids::InstallationId;
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// The programs that a control plane runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distro {
    /// Identity of its content; a Cluster keeps the one it was started with.
    pub id: String,
    /// Version of Kubernetes, for people.
    pub version: String,
    /// The multi-call program.
    pub hyperkube: Utf8PathBuf,
}

/// The distros on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distros {
    newest: Distro,
    others: Vec<Distro>,
}

/// There are no programs for a Cluster.
#[derive(Debug, thiserror::Error)]
pub enum FindDistroError {
    /// Those that it was started with are not here any more.
    #[error(
        "distro {id} is not on this machine: bring it back, or upgrade the cluster to {newest}"
    )]
    Gone {
        /// The distro that is missing.
        id: String,
        /// The one that new Clusters get.
        newest: String,
    },
    /// It asks for a version that there is not.
    #[error("Kubernetes {version} is not built on this machine, where there is {}", .built.join(" and "))]
    Version {
        /// The minor version.
        version: String,
        /// Those that there are.
        built: Vec<String>,
    },
}

impl Distro {
    /// Minor and patch version, such as 1.37 and 2 of `v1.37.2`.
    fn parts(&self) -> Option<(u64, u64, u64)> {
        let mut parts = self.version.strip_prefix('v')?.splitn(3, '.');
        let mut next = || {
            let part = parts.next()?;
            let digits = part.bytes().take_while(u8::is_ascii_digit).count();
            part.get(..digits)?.parse::<u64>().ok()
        };
        Some((next()?, next()?, next()?))
    }

    /// Minor version, such as 1.37.
    fn minor(&self) -> Option<String> {
        let (major, minor, _) = self.parts()?;
        Some(format!("{major}.{minor}"))
    }
}

impl Distros {
    /// With the one that new Clusters get.
    #[must_use]
    pub fn new(newest: Distro) -> Self {
        Self {
            newest,
            others: Vec::new(),
        }
    }

    /// With another one, for the Clusters that were started with it.
    #[must_use]
    pub fn with(mut self, other: Distro) -> Self {
        self.others.push(other);
        self
    }

    /// The one that new Clusters get.
    #[must_use]
    pub fn newest(&self) -> &Distro {
        &self.newest
    }

    /// The one of this id for a Cluster that was started before; else the
    /// newest of this minor version, or of all where none is asked for.
    ///
    /// # Errors
    /// When it is not on this machine.
    pub fn find(
        &self,
        id: Option<&str>,
        version: Option<&str>,
    ) -> Result<&Distro, FindDistroError> {
        match (id, version) {
            (Some(id), _) => {
                self.all()
                    .find(|distro| distro.id == id)
                    .ok_or_else(|| FindDistroError::Gone {
                        id: id.to_owned(),
                        newest: self.newest.id.clone(),
                    })
            }
            (None, None) => Ok(&self.newest),
            (None, Some(version)) => self
                .all()
                .filter(|distro| distro.minor().as_deref() == Some(version))
                // Of equal ones the last: the one that new Clusters get.
                .max_by_key(|distro| distro.parts())
                .ok_or_else(|| FindDistroError::Version {
                    version: version.to_owned(),
                    built: self.versions(),
                }),
        }
    }

    /// Minor versions that there are, oldest first.
    #[must_use]
    pub fn versions(&self) -> Vec<String> {
        let minor = |distro: &Distro| distro.parts().map(|(major, minor, _)| (major, minor));
        let minors: BTreeSet<_> = self.all().filter_map(minor).collect();
        minors
            .into_iter()
            .map(|(major, minor)| format!("{major}.{minor}"))
            .collect()
    }

    fn all(&self) -> impl Iterator<Item = &Distro> {
        self.others.iter().chain(std::iter::once(&self.newest))
    }
}

/// Where control planes live on this machine, and what they are made from.
#[derive(Clone, Debug)]
pub struct Config {
    /// The data folder of neap.
    pub data: Utf8PathBuf,
    /// Identity of the installation, written on all that is made.
    pub installation: InstallationId,
    /// The programs.
    pub distros: Distros,
    /// The program whose `shim` subcommand holds long-lived children.
    pub program: Utf8PathBuf,
    /// Where users reach all API servers: the address of the [`Listener`].
    ///
    /// [`Listener`]: crate::access::Listener
    pub endpoint: SocketAddr,
}

impl Config {
    /// The URL of all API servers from this machine; TLS server names tell
    /// them apart.
    pub(crate) fn server(&self) -> String {
        format!("https://{}", self.endpoint)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn distro(id: &str) -> Distro {
        of("v1.37.2", id)
    }

    fn of(version: &str, id: &str) -> Distro {
        Distro {
            id: id.into(),
            version: version.into(),
            hyperkube: "/d/hyperkube".into(),
        }
    }

    #[test]
    fn a_cluster_keeps_its_distro_and_a_new_one_gets_the_newest() {
        let distros = Distros::new(distro("b")).with(distro("a"));
        assert_eq!(distros.find(None, None).unwrap().id, "b");
        assert_eq!(distros.find(Some("a"), Some("1.30")).unwrap().id, "a");
        let error = distros.find(Some("c"), None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "distro c is not on this machine: bring it back, or upgrade the cluster to b"
        );
    }
    #[test]
    fn a_version_gets_its_newest_build_and_one_that_is_not_built_is_told_so() {
        let distros = Distros::new(of("v1.37.2", "built last"))
            .with(of("v1.36.9", "old"))
            .with(of("v1.36.10-rc.1+x", "less old"))
            .with(of("v1.37.2", "built before"))
            .with(of("v1.9.0", "ancient"))
            .with(of("main", "unclear"));
        assert_eq!(distros.versions(), ["1.9", "1.36", "1.37"]);
        for (version, id) in [
            ("1.36", "less old"),
            ("1.37", "built last"),
            ("1.9", "ancient"),
        ] {
            assert_eq!(distros.find(None, Some(version)).unwrap().id, id);
        }
        let error = distros.find(None, Some("1.3")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Kubernetes 1.3 is not built on this machine, where there is 1.9 and 1.36 and 1.37"
        );
    }
}
