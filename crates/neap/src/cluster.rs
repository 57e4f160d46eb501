//! `neap cluster …`.

mod create;
mod delete;
mod kubeconfig;
mod show;

pub(crate) use delete::confirm;
pub(crate) use kubeconfig::hub_kubeconfig;
pub(crate) use show::list_of;

use crate::cli::{ClusterCommand, Global};
use crate::output::progress::Shown;

pub(crate) async fn execute(
    command: ClusterCommand,
    global: &Global,
    shown: Shown,
) -> anyhow::Result<()> {
    match command {
        ClusterCommand::Create(args) => create::create(global, shown, &args).await,
        ClusterCommand::List(args) => show::list(global, args).await,
        ClusterCommand::Get(args) => show::get(global, &args.name).await,
        ClusterCommand::Delete(args) => delete::delete(global, shown, &args).await,
        ClusterCommand::Kubeconfig(args) => {
            kubeconfig::cluster_kubeconfig(global, &args.name).await
        }
    }
}
