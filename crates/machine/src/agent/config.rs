//! What the provider tells the agent, as a file in the machine's folder.

use crate::node_config::NodeSoftware;
use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// Version of the stored form of [`AgentConfig`].
pub(crate) const AGENT_CONFIG_VERSION: u32 = 2;

/// Name of the file that holds it.
pub(crate) const AGENT_CONFIG: &str = "agent.json";

/// Folder of configuration and keys as the node sees it, read-only.
pub(crate) const CONFIG_DIR: &str = "/neap/config";
/// Folder of programs as the node sees it, read-only.
pub(crate) const BIN_DIR: &str = "/neap/bin";
/// Folder of neap's own program as the node sees it, read-only.
pub(crate) const RUNTIME_DIR: &str = "/neap/runtime";
/// Folder of image archives as the node sees it, read-only.
pub(crate) const IMAGES_DIR: &str = "/neap/images";
/// Folder of the control socket as the node sees it.
pub(crate) const RUN_DIR: &str = "/neap/run";
/// Folder of the programs' logs as the node sees it.
pub(crate) const LOG_DIR: &str = "/neap/log";
/// Where containerd looks for the network configuration.
pub(crate) const CNI_DIR: &str = "/etc/cni/net.d";

/// The agent's orders. No secrets: keys are files of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentConfig {
    /// Version of this form.
    pub(crate) version: u32,
    /// Host name and Node name.
    pub(crate) name: String,
    /// The node's address, for the kubelet.
    pub(crate) address: Ipv4Addr,
    /// Labels to register with, as the kubelet's flag takes them.
    pub(crate) labels: String,
    /// The machine's folder on the host.
    pub(crate) machine_dir: Utf8PathBuf,
    /// The machine's cgroup below the root of each hierarchy.
    pub(crate) cgroup: Utf8PathBuf,
    /// Programs, root and images on the host.
    pub(crate) software: NodeSoftware,
    /// The neap binary on the host.
    pub(crate) program: Utf8PathBuf,
}

/// The agent's configuration could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadAgentConfigError {
    /// The file is not there or not readable.
    #[error("failed to read the agent's configuration {path}")]
    Read {
        /// The file.
        path: Utf8PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It is not what this program wrote.
    #[error("the agent's configuration {path} makes no sense")]
    Parse {
        /// The file.
        path: Utf8PathBuf,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// Another version of neap wrote it.
    #[error(
        "the agent's configuration {path} has version {found}, this program knows {AGENT_CONFIG_VERSION}"
    )]
    Version {
        /// The file.
        path: Utf8PathBuf,
        /// The version in it.
        found: u32,
    },
}

impl AgentConfig {
    /// Reads the file that the provider wrote.
    pub(crate) fn read(path: &Utf8Path) -> Result<Self, ReadAgentConfigError> {
        let bytes = std::fs::read(path).map_err(|source| ReadAgentConfigError::Read {
            path: path.to_owned(),
            source,
        })?;
        let config: Self =
            serde_json::from_slice(&bytes).map_err(|source| ReadAgentConfigError::Parse {
                path: path.to_owned(),
                source,
            })?;
        if config.version != AGENT_CONFIG_VERSION {
            return Err(ReadAgentConfigError::Version {
                path: path.to_owned(),
                found: config.version,
            });
        }
        Ok(config)
    }

    /// Image archives by the names they have inside the node.
    pub(crate) fn images(&self) -> Vec<(Utf8PathBuf, Utf8PathBuf)> {
        let inside = Utf8Path::new(IMAGES_DIR);
        self.software
            .images
            .iter()
            .enumerate()
            .map(|(index, path)| (path.clone(), inside.join(format!("{index}.tar"))))
            .collect()
    }
}
