//! `neap cluster …`.

mod create;
mod delete;
mod kubeconfig;
mod show;

pub(crate) use create::create;
pub(crate) use delete::{confirm, delete};
pub(crate) use kubeconfig::{cluster_kubeconfig, hub_kubeconfig};
pub(crate) use show::{get, list, list_of};
