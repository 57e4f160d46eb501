//! What neap promises, proved on real processes: a real `serve`, real control
//! planes, kubelets and containers. Each proof is a program of its own in
//! `src/bin`; this library is what they share.
//!
//! It must never assert a figure: how fast something is belongs to the benches.

mod proof;
mod steady;
mod work;

pub use proof::{Proof, prove};
pub use steady::Steady;
pub use work::{IMAGE, pod, ready_nodes, running_pods};
