//! Long-lived children that outlive the program which started them.
//!
//! Each child hangs under a *shim*: a small process in a session of its own,
//! which forks the child, reaps it and records how it ended. A restarted neap
//! finds the shim by the files in its folder and adopts it by identity: boot,
//! pid, start time and command line together, so that a reused pid is never
//! mistaken for one of ours. Control groups bound a child and all that it
//! makes, and are how what remains of it is ended.
//!
//! It must never know what it runs, never kill what it cannot prove its own,
//! and never inherit anything into a child: environment and descriptors are
//! exactly what the spec says.
//!
//! `neap-controlplane` and `neap-machine` call it; the program calls
//! [`run_shim`] for its hidden subcommand.

pub mod cgroup;
mod identity;
mod log;
mod shim;
mod shims;
mod spec;
mod state;
mod supervised;
pub mod usage;

pub use identity::{Identity, ObserveIdentityError};
pub use log::{LogFile, older};
pub use rustix::process::Signal;
pub use shim::run_shim;
pub use shims::{AdoptProcessError, Shims, StartProcessError};
pub use spec::{Namespace, ProcessSpec};
pub use state::{Exit, LastExit, last_exit};
pub use supervised::{SignalProcessError, StopProcessError, Supervised};
