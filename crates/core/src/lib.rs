//! Every rule of neap, as pure functions from values to decisions.
//!
//! What it does: reduces what was observed ([`observation`]) to a number
//! ([`demand`]) and a list of actions with reasons ([`scale`], [`release`]),
//! or to machines that hold the work ([`fit`]),
//! and says what a Cluster ([`lifecycle`]) and a failed process
//! ([`supervision`]) need next.
//!
//! What it must never do: input or output, read a clock or entropy, be async,
//! name a Kubernetes or HTTP type. Time is an argument, order is by `BTreeMap`.
//!
//! Who calls it: the loops in `neap-operator`; nothing else decides.

#![warn(clippy::indexing_slicing)]

pub mod addressing;
pub mod audit;
pub mod demand;
pub mod driver;
pub mod duration;
pub mod fence;
pub mod fit;
pub mod host;
pub mod ids;
pub mod lifecycle;
pub mod logs;
pub mod machine;
pub mod observation;
pub mod quantity;
pub mod reason;
pub mod release;
pub mod scale;
pub mod supervision;
