//! The first RBAC objects: who may do what, beyond what Kubernetes itself
//! brings. Written as `system:masters`, which nothing else uses.

use crate::names::{ADMINS_GROUP, HUB_OPERATORS_GROUP, KUBELET_CLIENT_NAME, OPERATORS_GROUP};
use futures::future::try_join_all;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject};
use kube::api::{Api, ObjectMeta, Patch, PatchParams};
use kube::{Client, ResourceExt};
use neap_api::names::{GROUP, MANAGER_CLUSTER};

const RBAC: &str = "rbac.authorization.k8s.io";

/// RBAC objects that belong together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BootstrapObjects {
    /// Rights.
    pub roles: Vec<ClusterRole>,
    /// Who has them.
    pub bindings: Vec<ClusterRoleBinding>,
}

/// An RBAC object could not be written.
#[derive(Debug, thiserror::Error)]
#[error("failed to write {kind} {name}")]
pub struct ApplyBootstrapError {
    /// Kind of the object.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Why.
    #[source]
    pub source: kube::Error,
}

/// What every tenant gets: the loops exactly the rights that they use, users
/// all of their cluster, the API server the kubelets.
#[must_use]
pub fn bootstrap_objects() -> BootstrapObjects {
    BootstrapObjects {
        roles: vec![role(
            OPERATORS_GROUP,
            vec![
                rule("", &["pods"], &["get", "list", "watch", "delete"]),
                rule("", &["pods/status"], &["get", "patch", "update"]),
                rule("", &["nodes"], &["get", "list", "watch", "patch", "delete"]),
                rule("", &["serviceaccounts"], &["get"]),
                rule(
                    "apps",
                    &["daemonsets", "deployments", "replicasets", "statefulsets"],
                    &["get", "list", "watch"],
                ),
                rule("batch", &["jobs"], &["get", "list", "watch"]),
                rule("", &["events"], &["create", "patch"]),
                rule("events.k8s.io", &["events"], &["create", "patch"]),
            ],
        )],
        bindings: vec![
            binding(OPERATORS_GROUP, OPERATORS_GROUP, group(OPERATORS_GROUP)),
            binding(ADMINS_GROUP, "cluster-admin", group(ADMINS_GROUP)),
            binding(
                "neap:kubelet-api-admin",
                "system:kubelet-api-admin",
                user(KUBELET_CLIENT_NAME),
            ),
        ],
    }
}

/// What the hub gets: the loops their records, users of this machine's root
/// all.
#[must_use]
pub fn hub_objects() -> BootstrapObjects {
    BootstrapObjects {
        roles: vec![role(
            HUB_OPERATORS_GROUP,
            vec![
                rule(GROUP, &["*"], &["*"]),
                rule("", &["namespaces"], &["get", "list", "watch", "create"]),
                rule("", &["events"], &["create", "patch"]),
                rule("events.k8s.io", &["events"], &["create", "patch"]),
            ],
        )],
        bindings: vec![
            binding(
                HUB_OPERATORS_GROUP,
                HUB_OPERATORS_GROUP,
                group(HUB_OPERATORS_GROUP),
            ),
            binding(ADMINS_GROUP, "cluster-admin", group(ADMINS_GROUP)),
        ],
    }
}

/// Writes the objects; repeated, it changes nothing.
///
/// # Errors
/// With the first object that could not be written.
pub async fn apply_bootstrap(
    client: &Client,
    objects: &BootstrapObjects,
) -> Result<(), ApplyBootstrapError> {
    let roles: Api<ClusterRole> = Api::all(client.clone());
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    let params = PatchParams::apply(MANAGER_CLUSTER).force();
    let failed = |kind, name: String| move |source| ApplyBootstrapError { kind, name, source };
    tokio::try_join!(
        try_join_all(objects.roles.iter().map(async |role| {
            let name = role.name_any();
            roles
                .patch(&name, &params, &Patch::Apply(role))
                .await
                .map_err(failed("ClusterRole", name))
        })),
        try_join_all(objects.bindings.iter().map(async |binding| {
            let name = binding.name_any();
            bindings
                .patch(&name, &params, &Patch::Apply(binding))
                .await
                .map_err(failed("ClusterRoleBinding", name))
        })),
    )?;
    Ok(())
}

fn metadata(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    }
}

fn role(name: &str, rules: Vec<PolicyRule>) -> ClusterRole {
    ClusterRole {
        metadata: metadata(name),
        rules: Some(rules),
        aggregation_rule: None,
    }
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> PolicyRule {
    let owned = |texts: &[&str]| {
        texts
            .iter()
            .map(|&text| text.to_owned())
            .collect::<Vec<_>>()
    };
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(owned(resources)),
        verbs: owned(verbs),
        ..PolicyRule::default()
    }
}

fn binding(name: &str, role: &str, subject: Subject) -> ClusterRoleBinding {
    ClusterRoleBinding {
        metadata: metadata(name),
        role_ref: RoleRef {
            api_group: RBAC.to_owned(),
            kind: "ClusterRole".to_owned(),
            name: role.to_owned(),
        },
        subjects: Some(vec![subject]),
    }
}

fn group(name: &str) -> Subject {
    Subject {
        api_group: Some(RBAC.to_owned()),
        kind: "Group".to_owned(),
        name: name.to_owned(),
        namespace: None,
    }
}

fn user(name: &str) -> Subject {
    Subject {
        kind: "User".to_owned(),
        ..group(name)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn may(
        objects: &BootstrapObjects,
        role: &str,
        group: &str,
        resource: &str,
        verb: &str,
    ) -> bool {
        let role = objects
            .roles
            .iter()
            .find(|found| found.name_any() == role)
            .unwrap();
        role.rules.iter().flatten().any(|rule| {
            rule.api_groups.iter().flatten().any(|found| found == group)
                && rule
                    .resources
                    .iter()
                    .flatten()
                    .any(|found| found == resource)
                && rule.verbs.iter().any(|found| found == verb)
        })
    }

    #[test]
    fn the_loops_may_end_pods_but_never_make_or_change_them() {
        let objects = bootstrap_objects();
        let may = |resource, verb| may(&objects, OPERATORS_GROUP, "", resource, verb);
        assert!(may("pods", "delete") && may("pods/status", "patch") && may("nodes", "patch"));
        for verb in ["create", "update", "patch"] {
            assert!(!may("pods", verb), "{verb}");
        }
        assert!(!may("pods/exec", "create"));
    }

    #[test]
    fn the_loops_never_see_a_tenants_secrets() {
        let objects = bootstrap_objects();
        let rules = objects
            .roles
            .iter()
            .flat_map(|role| role.rules.iter().flatten());
        for resource in rules.flat_map(|rule| rule.resources.iter().flatten()) {
            assert!(resource != "*" && resource != "secrets", "{resource}");
        }
    }

    #[test]
    fn every_binding_names_a_role_that_exists() {
        for objects in [bootstrap_objects(), hub_objects()] {
            for binding in &objects.bindings {
                let role = &binding.role_ref.name;
                let ours = objects.roles.iter().any(|found| found.name_any() == *role);
                assert!(
                    ours || role == "cluster-admin" || role.starts_with("system:"),
                    "{role}"
                );
            }
        }
    }
}
