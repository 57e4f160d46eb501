//! `neap purge`: removes all that an installation has on this host.

use crate::cli::{Global, PurgeArgs};
use crate::cluster::confirm;
use crate::installation::{Scope, Traces, check_contents, purge as purge_installation, resolve};
use crate::output::{Format, encode, escape, print};
use crate::preflight::check_root;

pub(crate) async fn purge(global: &Global, args: PurgeArgs) -> anyhow::Result<()> {
    check_root("neap purge")?;
    let data_dir = resolve(&global.data_dir)?;
    if data_dir.exists() {
        check_contents(&data_dir)?;
    }
    let mut scope = Scope::read(&data_dir);
    if args.dry_run {
        return say(global, &Traces::of(&scope));
    }
    if !args.yes {
        confirm(&format!(
            "Remove the installation {data_dir} with all of its clusters and their data?"
        ))
        .await?;
    }
    let found = purge_installation(&mut scope).await?;
    say(global, &found)
}

fn say(global: &Global, traces: &Traces) -> anyhow::Result<()> {
    match global.output {
        Format::Json | Format::Yaml => print(&encode(traces, global.output)?),
        Format::Table | Format::Wide | Format::Name => {
            if global.quiet {
                return Ok(());
            }
            let lines = traces.kinds().into_iter().flat_map(|(kind, things)| {
                things
                    .iter()
                    .map(move |thing| format!("{kind}: {}\n", escape(thing)))
            });
            print(&lines.collect::<String>())
        }
    }
}
