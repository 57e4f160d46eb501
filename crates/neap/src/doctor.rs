//! `neap doctor`: looks at what neap needs of this host, and says what to do
//! where it is not there. What is enough is decided in `neap-core`.

mod probe;

use crate::cli::{DoctorArgs, Global};
use crate::distro::Distro;
use crate::installation::{DataLock, resolve};
use crate::output::table::columns;
use crate::output::{Format, encode, print};
use crate::preflight::{CGROUPS, check_controllers, check_data_dir, check_listen, check_root};
use crate::problem::Problem;
use camino::Utf8Path;
use neap_core::host::{Finding, HostFact, Verdict};

pub(crate) async fn doctor(global: &Global, args: &DoctorArgs) -> anyhow::Result<()> {
    let findings = examine(global, args).await?;
    match global.output {
        Format::Json | Format::Yaml => print(&encode(&findings, global.output)?)?,
        Format::Table | Format::Wide | Format::Name => print(&shown(&findings))?,
    }
    let failed = findings
        .iter()
        .filter(|finding| finding.verdict == Verdict::Fail);
    match failed.count() {
        0 => Ok(()),
        failed => Err(Problem::Unwell { failed }.into()),
    }
}

async fn examine(global: &Global, args: &DoctorArgs) -> anyhow::Result<Vec<Finding>> {
    let data_dir = resolve(&global.data_dir)?;
    let place = data_dir
        .ancestors()
        .find(|folder| folder.is_dir())
        .unwrap_or(Utf8Path::new("/"));
    let root = check_root("neap serve");
    let is_root = root.is_ok();
    let distro = Distro::find(args.distro.as_deref());
    let mut findings = vec![
        told("root", "this is root", root),
        told("data folder", data_dir.as_str(), check_data_dir(&data_dir)),
        told(
            "cgroups",
            "all controllers that nodes need",
            check_controllers(Utf8Path::new(CGROUPS)),
        ),
    ];
    let software = distro.as_ref().ok().map(|distro| distro.path.clone());
    let kubernetes = distro.as_ref().map(|distro| distro.kubernetes.clone());
    let kubernetes = kubernetes.unwrap_or_default();
    findings.push(told("distro", &kubernetes, distro.map(drop)));
    // The port is its own while it serves.
    if !DataLock::is_held(&data_dir) {
        let found = format!("{} is free", args.listen);
        findings.push(told("port", &found, check_listen(args.listen)));
    }
    if is_root {
        findings.extend(probe::network(software.as_deref()).await);
    }
    findings.extend(probe::facts(place).into_iter().map(|fact| match fact {
        Ok(fact) => HostFact::judge(fact),
        Err(unknown) => unknown,
    }));
    Ok(findings)
}

/// What `serve` checks too, with the way out that it would name.
fn told(check: &'static str, found: &str, checked: Result<(), Problem>) -> Finding {
    match checked {
        Ok(()) => Finding {
            check,
            verdict: Verdict::Ok,
            found: found.to_owned(),
            remedy: None,
        },
        Err(problem) => Finding {
            check,
            verdict: Verdict::Fail,
            found: problem.to_string(),
            remedy: problem.hint(),
        },
    }
}

fn shown(findings: &[Finding]) -> String {
    let rows: Vec<Vec<String>> = findings
        .iter()
        .map(|finding| {
            let verdict = match finding.verdict {
                Verdict::Ok => "ok",
                Verdict::Warn => "warn",
                Verdict::Fail => "FAIL",
            };
            vec![
                verdict.to_owned(),
                finding.check.to_owned(),
                finding.found.clone(),
                finding.remedy.clone().unwrap_or_default(),
            ]
        })
        .collect();
    columns(&["", "CHECK", "FOUND", "WHAT TO DO"], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_serve_would_refuse_is_told_with_its_way_out() {
        let path = "/nowhere".into();
        let finding = told("distro", "", Err(Problem::NoDistro { path }));
        assert_eq!(finding.verdict, Verdict::Fail);
        assert_eq!(finding.found, "there is no distro at /nowhere");
        assert!(
            finding
                .remedy
                .is_some_and(|remedy| remedy.contains("cargo xtask distro"))
        );
    }

    #[test]
    fn a_failure_is_easy_to_find_in_the_table() {
        let finding = |verdict, found: &str| Finding {
            check: "port",
            verdict,
            found: found.into(),
            remedy: (verdict != Verdict::Ok).then(|| "do this".into()),
        };
        assert_eq!(
            shown(&[
                finding(Verdict::Ok, "fine"),
                finding(Verdict::Fail, "taken")
            ]),
            "      CHECK  FOUND  WHAT TO DO\n\
             ok    port   fine   -\n\
             FAIL  port   taken  do this\n"
        );
    }
}
