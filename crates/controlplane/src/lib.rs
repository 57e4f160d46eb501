//! Nodeless control planes, one program per Cluster, and the ways to them.
//!
//! What it does: implements [`ControlPlanes`] with one `hyperkube
//! control-plane` per Cluster, each with a network namespace, a control group,
//! authorities and a folder of its own; runs the hub ([`Hub`]) as one more of them; and opens the two doors
//! of this machine ([`access`]): the root-only socket that mints short
//! credentials, and the listener that passes TLS through by server name.
//!
//! What it must never do: know nodes beyond the certificates that they are
//! born with; keep a secret on a command line, in a log or readable by others;
//! decrypt what it passes through; end a process or remove a folder that this
//! installation has not made.
//!
//! Who calls it: the cluster loop through [`ControlPlanes`], and the program,
//! which opens the doors and starts the hub.
//!
//! [`ControlPlanes`]: neap_operator::traits::ControlPlanes

pub mod access;
mod audit;
mod bootstrap;
mod certificates;
mod config;
mod files;
mod flags;
mod hosted;
mod hub;
pub mod logs;
pub mod names;
mod ready;
mod record;
mod site;

pub use bootstrap::{
    ApplyBootstrapError, BootstrapObjects, apply_bootstrap, bootstrap_objects, hub_objects,
};
pub use certificates::WriteCertificatesError;
pub use config::{Config, Distro, Distros, FindDistroError};
pub use files::WriteFileError;
pub use hosted::{
    ConnectIdentityError, DeleteSiteError, HostedControlPlanes, LoadSiteError, StartSiteError,
};
pub use hub::{Hub, StartHubError};
pub use ready::{AwaitReadyError, await_ready};
pub use record::{ReadRecordError, Record, Role};
pub use site::NameSiteError;
