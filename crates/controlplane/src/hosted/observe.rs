//! What is true of a control plane now.

use super::HostedControlPlanes;
use crate::files::last_line;
use jiff::Timestamp;
use neap_core::ids::ClusterUid;
use neap_core::lifecycle::ObservedControlPlane;
use neap_operator::traits::Cause;
use neap_process::cgroup::Cgroup;
use neap_process::{Exit, last_exit};

impl HostedControlPlanes {
    pub(super) async fn observe_site(
        &self,
        uid: &ClusterUid,
    ) -> Result<ObservedControlPlane, Cause> {
        let entry = self.entry(uid)?;
        let mut state = entry.state.lock().await;
        let site = &entry.site;
        let Some(record) = self.read_record(site)? else {
            let left = site.folder().exists()
                || site.namespace().exists()
                || Cgroup::at(site.cluster_group()).exists();
            if left {
                return Ok(ObservedControlPlane::Exited {
                    at: None,
                    how: "it was never started completely".to_owned(),
                });
            }
            drop(state);
            self.forget(&entry);
            return Ok(ObservedControlPlane::Absent);
        };
        if let Some(process) = self.find_running(&entry, &mut state)? {
            let since = Timestamp::try_from(process.since()).unwrap_or(Timestamp::UNIX_EPOCH);
            return Ok(ObservedControlPlane::Running {
                since,
                distro: record.distro,
            });
        }
        let last = last_exit(&site.shim());
        let at = last.and_then(|last| Timestamp::try_from(last.at).ok());
        let how = describe(last.map(|last| last.exit), last_line(&site.log()));
        Ok(ObservedControlPlane::Exited { at, how })
    }
}

/// How it ended, for people; with what it said last.
fn describe(exit: Option<Exit>, last_words: Option<String>) -> String {
    let how = match exit {
        Some(Exit::Code(code)) => format!("it ended with code {code}"),
        Some(Exit::Signal(signal)) => format!("it was ended by signal {signal}"),
        Some(Exit::Unknown) => "it ended while nobody watched".to_owned(),
        None => "it was never started completely".to_owned(),
    };
    match last_words {
        Some(words) if exit.is_some() => format!("{how}, its log with: {words}"),
        _ => how,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_told_with_its_last_words() {
        assert_eq!(
            describe(
                Some(Exit::Code(1)),
                Some("control-plane: store broke".to_owned())
            ),
            "it ended with code 1, its log with: control-plane: store broke"
        );
        assert_eq!(
            describe(Some(Exit::Signal(9)), None),
            "it was ended by signal 9"
        );
        assert_eq!(
            describe(None, Some("older".to_owned())),
            "it was never started completely"
        );
    }
}
