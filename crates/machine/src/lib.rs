//! Machines that are containers of this host: a real kubelet and containerd
//! in namespaces of their own.
//!
//! What it does: [`ContainerNodes`] implements the `NodeProvider` that the
//! loops act through; it makes, watches, adopts and ends machines. The node
//! agent ([`agent::run_node_agent`]) is PID 1 inside such a machine: it
//! builds the root that the node sees and keeps the node's programs running.
//! [`run_oci_runtime`] stands in front of runc and holds each container to
//! what `neap-core` decides.
//!
//! What it must never do: know why a machine is wanted, speak to a Kubernetes
//! API, or touch anything that its own record does not name.
//!
//! Who calls it: `neap serve` hands [`ContainerNodes`] to the scaling loop;
//! the hidden `neap node-agent CONFIG` calls the agent, and only the shim
//! starts that; under the name `neap-runc` the program is the runtime, and
//! only the containerd of a node starts that.
//!
//! A container node is a fence and not a wall: it shares the kernel of the
//! host, so it is for trusted tenants.

pub mod agent;
pub mod container;
mod node_config;
mod runtime;

pub use container::{
    AdoptMachinesError, ContainerNodes, ContainerNodesConfig, MachineLogs, find_machine_logs,
};
pub use node_config::NodeSoftware;
pub use runtime::{RUNTIME_NAME, run_oci_runtime};
