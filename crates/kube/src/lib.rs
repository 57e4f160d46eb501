//! Kubernetes clients over any connector, watches that keep only what is asked
//! of them, the single way to write, events.
//!
//! What it does: [`connect`] makes a client whose connections a [`Dial`]
//! opens, wherever that is; [`watch`] tells every change and every break;
//! [`write`] says on what a change rests, so that a stale writer is harmless;
//! [`Events`] tells users; [`conditions`] keeps transition times.
//!
//! What it must never do: decide anything, or take a list that failed for an
//! empty one.
//!
//! Who calls it: `neap-controlplane` makes the clients, the loops in
//! `neap-operator` watch and write through them, the program reads.

pub mod conditions;
mod connect;
mod events;
mod failure;
mod watch;
pub mod write;

pub use connect::{ApiAddress, BuildClientError, Dial, connect};
pub use events::{EventKind, Events};
pub use failure::{describe, is_already_exists, is_conflict, is_not_found};
pub use watch::{Change, watch};
pub use write::WriteObjectError;
