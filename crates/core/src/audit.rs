//! What is kept of the requests to the API of a Cluster.

use serde::{Deserialize, Serialize};

/// How much is kept of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AuditLevel {
    /// Nothing, and there is no log.
    #[default]
    Off,
    /// Who, what, when and with which outcome.
    Metadata,
    /// And what was sent.
    Request,
    /// And what was answered.
    RequestResponse,
}

/// Whose requests, of what, are kept how: the first rule that holds is
/// followed. What is empty holds of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditRule {
    /// How much.
    pub level: AuditLevel,
    /// By these users.
    pub users: &'static [&'static str],
    /// By users of these groups.
    pub groups: &'static [&'static str],
    /// With these verbs.
    pub verbs: &'static [&'static str],
    /// Of these resources, each with the group of its API.
    pub resources: &'static [(&'static str, &'static str)],
    /// Of what is no resource, by path.
    pub paths: &'static [&'static str],
}

/// The rules of a Cluster, for a level that is not off. What its own programs
/// do without end, read, renew and report, is not kept: it would push out what
/// somebody did. No rule lets the content of a secret or a token into a log.
#[must_use]
pub fn audit_rules(level: AuditLevel) -> Vec<AuditRule> {
    const READS: &[&str] = &["get", "list", "watch"];
    vec![
        AuditRule {
            paths: &[
                "/healthz*",
                "/livez*",
                "/readyz*",
                "/version",
                "/api",
                "/api/*",
                "/apis",
                "/apis/*",
                "/openapi/*",
            ],
            ..AuditRule::default()
        },
        AuditRule {
            resources: &[
                ("", "events"),
                ("events.k8s.io", "events"),
                ("coordination.k8s.io", "leases"),
            ],
            ..AuditRule::default()
        },
        AuditRule {
            groups: &["system:nodes", "neap:operators"],
            verbs: READS,
            ..AuditRule::default()
        },
        AuditRule {
            groups: &["system:nodes"],
            resources: &[("", "nodes/status"), ("", "pods/status")],
            ..AuditRule::default()
        },
        AuditRule {
            users: &[
                "system:apiserver",
                "system:kube-controller-manager",
                "system:kube-scheduler",
                "system:kube-proxy",
            ],
            verbs: READS,
            ..AuditRule::default()
        },
        AuditRule {
            groups: &["system:serviceaccounts:kube-system"],
            verbs: READS,
            ..AuditRule::default()
        },
        AuditRule {
            level: AuditLevel::Metadata,
            resources: &[
                ("", "secrets"),
                ("", "serviceaccounts/token"),
                ("authentication.k8s.io", "tokenreviews"),
                ("certificates.k8s.io", "certificatesigningrequests"),
            ],
            ..AuditRule::default()
        },
        AuditRule {
            level,
            ..AuditRule::default()
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_level_keeps_the_content_of_a_secret() {
        for level in [AuditLevel::Request, AuditLevel::RequestResponse] {
            let rules = audit_rules(level);
            let secrets = rules.iter().find(|rule| {
                rule.resources.is_empty() && rule.level > AuditLevel::Metadata
                    || rule.resources.contains(&("", "secrets"))
            });
            assert_eq!(secrets.map(|rule| rule.level), Some(AuditLevel::Metadata));
        }
    }

    #[test]
    fn whatever_no_rule_names_is_kept_at_the_level_asked_for() {
        let rules = audit_rules(AuditLevel::Request);
        assert_eq!(
            rules.last(),
            Some(&AuditRule {
                level: AuditLevel::Request,
                ..AuditRule::default()
            })
        );
        let all = |rule: &AuditRule| {
            let AuditRule {
                level: _,
                users,
                groups,
                verbs,
                resources,
                paths,
            } = rule;
            [users, groups, verbs, paths]
                .iter()
                .all(|part| part.is_empty())
                && resources.is_empty()
        };
        assert_eq!(rules.iter().filter(|rule| all(rule)).count(), 1);
    }

    #[test]
    fn what_a_person_does_is_never_dropped() {
        for rule in audit_rules(AuditLevel::Metadata) {
            if rule.level == AuditLevel::Off && rule.users.is_empty() && rule.groups.is_empty() {
                let noise = |(_, resource): &(&str, &str)| ["events", "leases"].contains(resource);
                assert!(!rule.paths.is_empty() || rule.resources.iter().all(noise));
            }
        }
    }
}
