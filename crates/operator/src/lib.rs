//! The loops that observe, decide and act.
//!
//! What it does: [`Operator`] watches the Clusters and Machines of the hub and
//! runs two loops for each Cluster. The loop `cluster` starts, watches and
//! ends its control plane; the loop `scaling` watches what wants pods in it
//! and makes and releases Machine records. Every rule is `neap-core`'s: the
//! loops read the world into its types and carry out what it answers, and any
//! act may be carried out twice.
//!
//! What it must never do: hold policy, name a provider or a kind of control
//! plane, read a clock other than [`traits::Clock`], keep what must survive a
//! restart anywhere but on the objects.
//!
//! Who calls it: the program's `serve`, which gives it the implementations of
//! [`traits`].

mod calls;
mod cluster_loop;
mod observe;
mod operator;
mod scaling;
pub mod traits;
mod view;

pub use observe::shape;
pub use operator::{Operator, OperatorConfig};
