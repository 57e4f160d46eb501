#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinitionVersion;
use kube::core::cel::Validator;
use serde_json::{Value, json};

const UID: &str = "3854fa3e-176d-4eb8-8006-af3afb709e7b";

fn version(kind: &str) -> CustomResourceDefinitionVersion {
    let crd = crds()
        .into_iter()
        .find(|crd| crd.spec.names.kind == kind)
        .unwrap();
    assert_eq!(crd.spec.versions.len(), 1);
    crd.spec.versions.into_iter().next().unwrap()
}

fn schema(kind: &str) -> Value {
    serde_json::to_value(version(kind).schema.unwrap().open_api_v3_schema.unwrap()).unwrap()
}

fn at<'a>(schema: &'a Value, path: &str) -> &'a Value {
    path.split('.')
        .fold(schema, |schema, field| &schema["properties"][field])
}

fn cluster(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "neap.dev/v1alpha1", "kind": "Cluster",
        "metadata": {"name": name, "namespace": "default"}, "spec": spec,
    })
}

fn machine(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "neap.dev/v1alpha1", "kind": "Machine",
        "metadata": {"name": name, "namespace": "default"}, "spec": spec,
    })
}

fn machine_spec() -> Value {
    json!({"cluster": "web", "clusterUid": UID, "ordinal": 3, "podsPerNode": 8})
}

/// What the rules in the definition say of this object.
fn refusals(kind: &str, object: &Value, old: Option<&Value>) -> Vec<String> {
    match Validator::new().validate(&schema(kind), object, old) {
        Ok(()) => Vec::new(),
        Err(errors) => errors.iter().map(|error| error.message.clone()).collect(),
    }
}

fn check_cluster(spec: Value, expected: &[&str]) {
    let object = cluster("web", spec);
    assert_eq!(refusals("Cluster", &object, None), expected, "{object}");
}

#[test]
fn an_empty_spec_is_a_good_cluster() {
    check_cluster(json!({}), &[]);
    let cluster: Cluster = serde_json::from_value(cluster("web", json!({}))).unwrap();
    cluster.validate_cel().unwrap();
    assert_eq!(
        serde_json::to_value(&cluster.spec).unwrap(),
        json!({
            "running": true,
            "paused": false,
            "nodes": {"provider": "container", "class": {"cpu": "1", "memory": "1Gi", "disk": "10Gi"}},
            "scaling": {
                "policy": "Count", "minNodes": 0, "maxNodes": 1, "podsPerNode": 8,
                "hold": "2m", "daemonSets": "Ignore",
            },
            "controlPlane": {"allowPrivileged": false, "audit": "Off"},
        })
    );
}

#[test]
fn the_schema_fills_in_what_the_types_fill_in() {
    let schema = schema("Cluster");
    let absent = kube::core::cel::apply_defaults(&schema, &cluster("web", json!({})));
    let typed: Cluster = serde_json::from_value(cluster("web", json!({}))).unwrap();
    assert_eq!(absent["spec"], serde_json::to_value(typed.spec).unwrap());
    let partial = json!({"nodes": {"class": {"cpu": "2"}}, "scaling": {"maxNodes": 3}});
    let filled = kube::core::cel::apply_defaults(&schema, &cluster("web", partial));
    assert_eq!(
        filled["spec"]["nodes"]["class"],
        json!({"cpu": "2", "memory": "1Gi", "disk": "10Gi"})
    );
    assert_eq!(filled["spec"]["nodes"]["provider"], "container");
    assert_eq!(filled["spec"]["scaling"]["maxNodes"], 3);
    assert_eq!(filled["spec"]["scaling"]["podsPerNode"], 8);
}

#[test]
fn numbers_out_of_range_are_refused() {
    let nodes = "maxNodes must be from 1 to 240: the node network of a cluster holds 240 nodes";
    let pods = "podsPerNode must be from 1 to 250: the pod range of a node holds 250 pods";
    for (scaling, expected) in [
        (json!({"maxNodes": 1}), &[][..]),
        (json!({"maxNodes": 240}), &[]),
        (json!({"maxNodes": 0}), &[nodes]),
        (json!({"maxNodes": 241}), &[nodes]),
        (json!({"podsPerNode": 1}), &[]),
        (json!({"podsPerNode": 250}), &[]),
        (json!({"podsPerNode": 0}), &[pods]),
        (json!({"podsPerNode": 251}), &[pods]),
        (json!({"minNodes": 2, "maxNodes": 2}), &[]),
        (
            json!({"minNodes": 2}),
            &["minNodes must not be more than maxNodes"],
        ),
    ] {
        check_cluster(json!({ "scaling": scaling }), expected);
    }
    assert_eq!(
        at(&schema("Cluster"), "spec.scaling.minNodes")["minimum"],
        0.0
    );
}

#[test]
fn the_ranges_are_those_of_the_address_plan() {
    let rule =
        at(&schema("Cluster"), "spec.scaling.maxNodes")["x-kubernetes-validations"][0]["rule"]
            .to_string();
    assert!(
        rule.contains(&format!("<= {}", neap_core::addressing::MAX_ORDINAL)),
        "{rule}"
    );
}

#[test]
fn a_hold_is_a_duration_of_at_most_a_day() {
    let refusal = "hold must be a duration from 0s to 24h, such as \"2m\" or \"1h30m\"";
    for (hold, good) in [
        ("0s", true),
        ("20s", true),
        ("1h30m", true),
        ("500ms", true),
        ("24h", true),
        ("24h1s", false),
        ("-2m", false),
        ("2", false),
        ("", false),
        ("2m1h", false),
        ("two minutes", false),
    ] {
        let expected = if good { &[][..] } else { &[refusal] };
        check_cluster(json!({"scaling": {"hold": hold}}), expected);
        let parsed = neap_core::duration::parse_duration(hold);
        assert!(
            parsed.is_ok() || !good,
            "what the API takes can be read: {hold}"
        );
    }
}

#[test]
fn a_class_is_made_of_quantities_within_limits() {
    let cpu = "class.cpu is a quantity of at least 100m";
    let memory = "class.memory is a quantity of at least 128Mi";
    let disk = "class.disk is a quantity from 256Mi to 16Ti";
    for (class, expected) in [
        (
            json!({"cpu": "100m", "memory": "128Mi", "disk": "256Mi"}),
            &[][..],
        ),
        (json!({"disk": "16Ti"}), &[]),
        (json!({"disk": "255Mi"}), &[disk]),
        (json!({"disk": "17Ti"}), &[disk]),
        (json!({"disk": "all"}), &[disk]),
        (json!({"cpu": 2}), &[]),
        (json!({"cpu": "0.5"}), &[]),
        (json!({"cpu": "99m"}), &[cpu]),
        (json!({"cpu": "one"}), &[cpu]),
        (json!({"cpu": "-1"}), &[cpu]),
        (json!({"memory": "127Mi"}), &[memory]),
        (json!({"memory": "1GiB"}), &[memory]),
        (json!({"cpu": "1m", "memory": "1"}), &[cpu, memory]),
    ] {
        check_cluster(json!({"nodes": {"class": class}}), expected);
    }
}

#[test]
fn a_name_is_a_label_that_leaves_room_for_the_node() {
    let long = "the name of a Cluster has at most 40 characters, because its Nodes are named <cluster>-node<ordinal>";
    let label =
        "the name of a Cluster is a DNS label: lower case letters, digits and '-', without dots";
    for (name, expected) in [
        ("w", &[][..]),
        ("team-1", &[]),
        (&"a".repeat(40), &[]),
        (&"a".repeat(41), &[long]),
        ("web.team", &[label]),
        ("Web", &[label]),
        ("-web", &[label]),
    ] {
        assert_eq!(
            refusals("Cluster", &cluster(name, json!({})), None),
            expected,
            "{name}"
        );
    }
    assert!(long.contains(&crate::names::CLUSTER_NAME_MAX.to_string()));
    let node = crate::names::machine_name(&"a".repeat(40), neap_core::addressing::MAX_ORDINAL);
    assert!(node.as_str().len() <= 63);
}

#[test]
fn a_version_is_set_once() {
    let with = |version: &str| cluster("web", json!({ "version": version }));
    let without = cluster("web", json!({}));
    let fixed = ["version cannot change once it is set"];
    for (old, new, expected) in [
        (&without, &with("1.37"), &[][..]),
        (&with("1.37"), &with("1.37"), &[]),
        (&with("1.37"), &with("1.36"), &fixed),
        (&with("1.37"), &without, &fixed),
    ] {
        assert_eq!(refusals("Cluster", new, Some(old)), expected);
    }
    for version in ["1.37.2", "latest", "v1.37"] {
        check_cluster(
            json!({ "version": version }),
            &["version is a minor version of Kubernetes such as \"1.37\""],
        );
    }
}

#[test]
fn a_provider_stays() {
    let with = |provider: &str| cluster("web", json!({"nodes": {"provider": provider}}));
    assert_eq!(
        refusals("Cluster", &with("microvm"), Some(&with("container"))),
        ["nodes.provider cannot change"]
    );
    assert!(
        refusals(
            "Cluster",
            &cluster("web", json!({})),
            Some(&with("container"))
        )
        .is_empty()
    );
}

#[test]
fn whether_privileged_pods_are_allowed_stays() {
    let with =
        |allowed: bool| cluster("web", json!({"controlPlane": {"allowPrivileged": allowed}}));
    let fixed = "controlPlane.allowPrivileged cannot change: make a new cluster";
    for (old, new, expected) in [
        (false, true, &[fixed][..]),
        (true, false, &[fixed]),
        (true, true, &[]),
    ] {
        assert_eq!(refusals("Cluster", &with(new), Some(&with(old))), expected);
    }
}

#[test]
fn a_machine_names_its_cluster_by_a_uid() {
    for (uid, good) in [
        (UID, true),
        ("u", false),
        ("", false),
        ("../../../../../../../../../../etc/x", false),
        ("3854FA3E-176D-4EB8-8006-AF3AFB709E7B", false),
        ("3854fa3e-176d-4eb8-8006-af3afb709e7b0", false),
    ] {
        let mut spec = machine_spec();
        spec["clusterUid"] = json!(uid);
        let refused = refusals("Machine", &machine("web-node3", spec), None);
        let expected = if good {
            &[][..]
        } else {
            &["clusterUid is the UID of the Cluster"]
        };
        assert_eq!(refused, expected, "{uid}");
    }
}

#[test]
fn unknown_words_are_refused() {
    let schema = schema("Cluster");
    for (path, words) in [
        ("spec.nodes.provider", json!(["container"])),
        ("spec.scaling.policy", json!(["Count"])),
        ("spec.scaling.daemonSets", json!(["Ignore", "Count"])),
    ] {
        assert_eq!(at(&schema, path)["enum"], words, "{path}");
    }
    for spec in [
        json!({"nodes": {"provider": "microvm"}}),
        json!({"scaling": {"policy": "Fit"}}),
        json!({"scaling": {"daemonSets": "ignore"}}),
    ] {
        assert!(serde_json::from_value::<Cluster>(cluster("web", spec)).is_err());
    }
}

#[test]
fn a_machine_never_changes_but_in_its_room() {
    let mut spec = machine_spec();
    spec["provider"] = json!("container");
    spec["class"] = json!({"cpu": "1", "memory": "1Gi"});
    let old = machine("web-node3", spec.clone());
    assert!(refusals("Machine", &old, Some(&old)).is_empty());
    for (field, value) in [
        ("ordinal", json!(4)),
        ("cluster", json!("we")),
        ("clusterUid", json!("cd5131ab-f6d8-4f07-842a-d4392aad077d")),
        ("provider", json!("microvm")),
        ("class", json!({"cpu": "2", "memory": "1Gi"})),
    ] {
        let mut spec = spec.clone();
        spec[field] = value;
        let refused = refusals("Machine", &machine("web-node3", spec), Some(&old));
        assert!(
            refused
                .contains(&"the spec of a Machine cannot change, but for podsPerNode".to_owned()),
            "{refused:?}"
        );
    }
    let shrinks =
        "podsPerNode of a Machine may grow and not shrink: its node would refuse pods that run";
    for (number, expected) in [(9, &[][..]), (250, &[]), (7, &[shrinks])] {
        spec["podsPerNode"] = json!(number);
        let changed = machine("web-node3", spec.clone());
        assert_eq!(refusals("Machine", &changed, Some(&old)), expected);
    }
}

#[test]
fn a_machine_is_named_by_cluster_and_ordinal() {
    assert_eq!(
        refusals("Machine", &machine("web-node4", machine_spec()), None),
        ["a Machine is named <cluster>-node<ordinal>"]
    );
    let mut spec = machine_spec();
    spec["ordinal"] = json!(241);
    assert_eq!(
        refusals("Machine", &machine("web-node241", spec), None),
        ["ordinal must be from 1 to 240: the node network of a cluster holds 240 nodes"]
    );
    let mut spec = machine_spec();
    spec["podsPerNode"] = json!(0);
    assert_eq!(
        refusals("Machine", &machine("web-node3", spec), None),
        ["podsPerNode must be from 1 to 250: the pod range of a node holds 250 pods"]
    );
}

#[test]
fn conditions_are_a_map_by_type() {
    for kind in ["Cluster", "Machine"] {
        let schema = schema(kind);
        let conditions = at(&schema, "status.conditions");
        assert_eq!(conditions["x-kubernetes-list-type"], "map", "{kind}");
        assert_eq!(
            conditions["x-kubernetes-list-map-keys"],
            json!(["type"]),
            "{kind}"
        );
        assert_eq!(
            conditions["items"]["properties"]["lastTransitionTime"]["format"],
            "date-time"
        );
    }
}

#[test]
fn names_and_columns_are_as_users_know_them() {
    let named = |kind: &str| {
        let crd = crds()
            .into_iter()
            .find(|crd| crd.spec.names.kind == kind)
            .unwrap();
        (
            crd.metadata.name.unwrap(),
            crd.spec.names.short_names.unwrap(),
            crd.spec.scope,
        )
    };
    let (name, short, scope) = named("Cluster");
    assert_eq!(
        (&*name, &*short, &*scope),
        ("clusters.neap.dev", &["nc".into()][..], "Namespaced")
    );
    let (name, short, scope) = named("Machine");
    assert_eq!(
        (&*name, &*short, &*scope),
        ("machines.neap.dev", &["nm".into()][..], "Namespaced")
    );
    let columns = |kind: &str, wide: bool| -> Vec<String> {
        version(kind)
            .additional_printer_columns
            .unwrap()
            .into_iter()
            .filter(|column| (column.priority.unwrap_or(0) > 0) == wide)
            .map(|column| column.name)
            .collect()
    };
    assert_eq!(
        columns("Cluster", false),
        ["Phase", "Demand", "Target", "Nodes", "Age"]
    );
    assert_eq!(
        columns("Cluster", true),
        ["Max", "Reason", "Distro", "Endpoint"]
    );
    assert_eq!(
        columns("Machine", false),
        ["Cluster", "Phase", "Power", "Node", "Age"]
    );
    assert_eq!(
        columns("Machine", true),
        ["CPU", "Memory", "Disk", "Address", "Provider-ID"]
    );
    for kind in ["Cluster", "Machine"] {
        assert!(version(kind).subresources.unwrap().status.is_some());
    }
}

#[test]
fn every_column_leads_somewhere() {
    for kind in ["Cluster", "Machine"] {
        let schema = schema(kind);
        for column in version(kind).additional_printer_columns.unwrap() {
            let path = column.json_path.trim_start_matches('.');
            if path.starts_with("metadata.") {
                continue;
            }
            let found =
                path.split('.')
                    .fold(&schema, |schema, field| match field.strip_suffix("[0]") {
                        Some(list) => &schema["properties"][list]["items"],
                        None => &schema["properties"][field],
                    });
            assert!(found.is_object(), "{kind}: {path}");
        }
    }
}

#[test]
fn formats_are_those_that_kubernetes_knows() {
    fn walk(schema: &Value, path: &str) {
        if let Some(format) = schema.get("format").and_then(Value::as_str) {
            let known = ["int32", "int64", "date-time"];
            assert!(known.contains(&format), "{path}: {format}");
        }
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            walk(property, &format!("{path}.{name}"));
        }
        if schema["items"].is_object() {
            walk(&schema["items"], path);
        }
    }
    walk(&schema("Cluster"), "Cluster");
    walk(&schema("Machine"), "Machine");
}
