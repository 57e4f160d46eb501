//! `neap cluster delete`: asks, deletes, waits until the record is gone.

use crate::access::Access;
use crate::cli::{DeleteArgs, Global};
use crate::clock::Stopwatch;
use crate::output::progress::{Progress, Shown};
use crate::output::{Format, elapsed, escape, note, print};
use crate::problem::Problem;
use crate::records::{delete_cluster, find_cluster, get_cluster, list_machines};
use anyhow::Context as _;
use kube::{Client, ResourceExt as _};
use neap_api::{Cluster, names};
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::time::Duration;

/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(100);

pub(crate) async fn delete(global: &Global, shown: Shown, args: &DeleteArgs) -> anyhow::Result<()> {
    let (account, name) = (&global.account, &args.name);
    let doing = || format!("failed to delete cluster {account}/{name}");
    let started = Stopwatch::start();
    let hub = Access::new(&global.data_dir)
        .hub()
        .await
        .with_context(doing)?;
    let cluster = get_cluster(&hub, account, name).await.with_context(doing)?;
    if cluster.spec.paused && args.wait.deadline().is_some() {
        return Err(Problem::Paused {
            account: account.clone(),
            name: name.clone(),
            what: "its deletion",
        })
        .with_context(doing);
    }
    if !args.yes {
        let machines = list_machines(&hub, Some(account), Some(name))
            .await
            .with_context(doing)?
            .len();
        confirm(&format!(
            "Delete cluster {account}/{name} and all that is in it, {machines} machines included?"
        ))
        .await
        .with_context(doing)?;
    }
    delete_cluster(&hub, &cluster).await.with_context(doing)?;
    let Some(deadline) = args.wait.deadline() else {
        return done(
            global,
            name,
            &format!("cluster {account}/{name} is being deleted\n"),
        );
    };
    wait_gone(&hub, &cluster, started, deadline, shown)
        .await
        .with_context(doing)?;
    done(
        global,
        name,
        &format!(
            "cluster {account}/{name} is gone after {}\n",
            elapsed(started.elapsed())
        ),
    )
}

fn done(global: &Global, name: &str, sentence: &str) -> anyhow::Result<()> {
    match global.output {
        Format::Name => print(&format!("cluster.{}/{name}\n", names::GROUP)),
        Format::Json | Format::Yaml => Ok(()),
        Format::Table | Format::Wide => print(sentence),
    }
}

async fn wait_gone(
    hub: &Client,
    cluster: &Cluster,
    started: Stopwatch,
    deadline: Duration,
    shown: Shown,
) -> anyhow::Result<()> {
    let (account, name) = (cluster.account(), cluster.name_any());
    let mut progress = Progress::start(shown, &format!("cluster {account}/{name}: Destroying"));
    let waited = async {
        // Another record of the same name is not the one that was deleted.
        while find_cluster(hub, &account, &name)
            .await?
            .is_some_and(|found| found.uid() == cluster.uid())
        {
            let machines = list_machines(hub, Some(&account), Some(&name)).await?.len();
            let left = match machines {
                0 => "its control plane is left".to_owned(),
                1 => "1 machine is left".to_owned(),
                machines => format!("{machines} machines are left"),
            };
            progress.update(
                &format!("cluster {account}/{name}: Destroying, {left}"),
                started.elapsed(),
            );
            tokio::time::sleep(PAUSE).await;
        }
        anyhow::Ok(())
    };
    match tokio::time::timeout(deadline, waited).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Problem::TimedOut {
            what: "the end of it".to_owned(),
            after: format!("{deadline:?}"),
            look: format!("it goes on being deleted: `neap why cluster {name} -n {account}` says where it stands"),
        }
        .into()),
    }
}

/// Asks on the terminal; without one the answer is no. The answer is read on a
/// thread of its own, which ends with the program: a Ctrl-C is heard meanwhile.
pub(crate) async fn confirm(question: &str) -> Result<(), Problem> {
    if !std::io::stdin().is_terminal() {
        return Err(Problem::NotConfirmed);
    }
    let mut stderr = std::io::stderr().lock();
    let _ = write!(stderr, "{} [y/N] ", escape(question));
    let _ = stderr.flush();
    drop(stderr);
    let (said, answer) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let mut answer = String::new();
        let read = std::io::stdin().lock().read_line(&mut answer);
        if read.unwrap_or(0) == 0 {
            note("");
        }
        // Nobody waits for it after a Ctrl-C.
        let _ = said.send(answer);
    });
    if is_yes(&answer.await.unwrap_or_default()) {
        Ok(())
    } else {
        Err(Problem::Declined)
    }
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_yes_is_a_yes() {
        for (answer, expected) in [
            ("y\n", true),
            ("Yes\n", true),
            ("", false),
            ("\n", false),
            ("n\n", false),
            ("yess\n", false),
        ] {
            assert_eq!(is_yes(answer), expected, "{answer:?}");
        }
    }
}
