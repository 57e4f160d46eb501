//! `neap cluster …`.

mod create;
mod delete;
mod kubeconfig;
mod show;
mod switch;

pub(crate) use delete::confirm;
pub(crate) use kubeconfig::hub_kubeconfig;
pub(crate) use show::list_of;

use crate::cli::{ClusterCommand, Global};
use crate::logs;
use crate::output::progress::Shown;
use switch::Switch;

pub(crate) async fn execute(
    command: ClusterCommand,
    global: &Global,
    shown: Shown,
) -> anyhow::Result<()> {
    match command {
        ClusterCommand::Create(args) => create::create(global, shown, &args).await,
        ClusterCommand::List(args) => show::list(global, args).await,
        ClusterCommand::Get(args) => show::get(global, &args.name).await,
        ClusterCommand::Logs(args) => logs::cluster(global, &args).await,
        ClusterCommand::Stop(args) => switch::switch(global, shown, &args, Switch::Stop).await,
        ClusterCommand::Start(args) => switch::switch(global, shown, &args, Switch::Start).await,
        ClusterCommand::Pause(args) => switch::switch(global, shown, &args, Switch::Pause).await,
        ClusterCommand::Resume(args) => switch::switch(global, shown, &args, Switch::Resume).await,
        ClusterCommand::Delete(args) => delete::delete(global, shown, &args).await,
        ClusterCommand::Kubeconfig(args) => {
            kubeconfig::cluster_kubeconfig(global, &args.name).await
        }
    }
}
