//! `neap uninstall`: shows all that an installation has on this host, asks,
//! and removes it.

use crate::cli::{Global, UninstallArgs};
use crate::cluster::confirm;
use crate::installation::{Scope, Traces, check_contents, purge as purge_installation, resolve};
use crate::output::{Format, encode, escape, note, print};
use crate::preflight::check_root;

pub(crate) async fn uninstall(global: &Global, args: UninstallArgs) -> anyhow::Result<()> {
    check_root("neap uninstall")?;
    let data_dir = resolve(&global.data_dir)?;
    if data_dir.exists() {
        check_contents(&data_dir)?;
    }
    let mut scope = Scope::read(&data_dir);
    if args.dry_run {
        return say(global, &Traces::of(&scope));
    }
    if !args.yes {
        note(lines(&Traces::of(&scope)).trim_end());
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
            print(&lines(traces))
        }
    }
}

/// One line a thing.
fn lines(traces: &Traces) -> String {
    let kinds = traces.kinds().into_iter();
    kinds
        .flat_map(|(kind, things)| {
            let line = move |thing: &String| format!("{kind}: {}\n", escape(thing));
            things.iter().map(line)
        })
        .collect()
}
