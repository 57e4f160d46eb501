//! The audit policy of a tenant's API server.

use neap_core::audit::{AuditLevel, AuditRule, audit_rules};
use serde_json::{Value, json};

/// The policy as the API server reads it: JSON is YAML. `None` where nothing
/// is kept.
pub(crate) fn audit_policy(level: AuditLevel) -> Option<String> {
    if level == AuditLevel::Off {
        return None;
    }
    let policy = json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        // The end of a request says all that its begin does.
        "omitStages": ["RequestReceived"],
        "omitManagedFields": true,
        "rules": audit_rules(level).iter().map(written).collect::<Vec<_>>(),
    });
    Some(format!("{policy:#}\n"))
}

fn written(rule: &AuditRule) -> Value {
    let resources: Vec<Value> = rule
        .resources
        .iter()
        .map(|(group, resource)| json!({"group": group, "resources": [resource]}))
        .collect();
    json!({
        "level": match rule.level {
            AuditLevel::Off => "None",
            AuditLevel::Metadata => "Metadata",
            AuditLevel::Request => "Request",
            AuditLevel::RequestResponse => "RequestResponse",
        },
        "users": rule.users,
        "userGroups": rule.groups,
        "verbs": rule.verbs,
        "resources": resources,
        "nonResourceURLs": rule.paths,
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn the_policy_says_each_rule_in_its_order() {
        assert_eq!(audit_policy(AuditLevel::Off), None);
        let text = audit_policy(AuditLevel::Request).unwrap();
        let policy: Value = serde_json::from_str(&text).unwrap();
        let rules = policy["rules"].as_array().unwrap();
        assert_eq!(rules.len(), audit_rules(AuditLevel::Request).len());
        assert_eq!(rules.first().unwrap()["level"], "None");
        assert_eq!(
            rules[rules.len() - 2]["resources"][0],
            json!({"group": "", "resources": ["secrets"]})
        );
        assert_eq!(rules.last().unwrap()["level"], "Request");
    }
}
