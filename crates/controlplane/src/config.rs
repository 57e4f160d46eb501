//! What an implementation of control planes is made from.

use camino::Utf8PathBuf;
use neap_core::ids::InstallationId;
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

/// A Cluster was started with programs that are not here any more.
#[derive(Debug, thiserror::Error)]
#[error("distro {id} is not on this machine: bring it back, or upgrade the cluster to {newest}")]
pub struct FindDistroError {
    /// The distro that is missing.
    pub id: String,
    /// The one that new Clusters get.
    pub newest: String,
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

    /// The one of this id, or the newest where none is asked for.
    ///
    /// # Errors
    /// When it is not on this machine.
    pub fn find(&self, id: Option<&str>) -> Result<&Distro, FindDistroError> {
        let Some(id) = id else {
            return Ok(&self.newest);
        };
        std::iter::once(&self.newest)
            .chain(&self.others)
            .find(|distro| distro.id == id)
            .ok_or_else(|| FindDistroError {
                id: id.to_owned(),
                newest: self.newest.id.clone(),
            })
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
        Distro {
            id: id.into(),
            version: "v1.37.2".into(),
            hyperkube: "/d/hyperkube".into(),
        }
    }

    #[test]
    fn a_cluster_keeps_its_distro_and_a_new_one_gets_the_newest() {
        let distros = Distros::new(distro("b")).with(distro("a"));
        assert_eq!(distros.find(None).unwrap().id, "b");
        assert_eq!(distros.find(Some("a")).unwrap().id, "a");
        let error = distros.find(Some("c")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "distro c is not on this machine: bring it back, or upgrade the cluster to b"
        );
    }
}
