#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use serde_json::{Value, json};

fn shape(labels: Value, spec: Value) -> Result<PodShape, ObserveShapeError> {
    let mut spec = spec;
    if spec.get("containers").is_none() {
        spec["containers"] = json!([]);
    }
    observe_shape(
        "default",
        &serde_json::from_value(labels).unwrap(),
        &serde_json::from_value(spec).unwrap(),
        Claims::Unknown,
    )
}

#[test]
fn a_wrong_field_is_named_with_its_path() {
    for (spec, field) in [
        (
            json!({"containers": [{"name": "a", "resources": {"requests": {"cpu": "much"}}}]}),
            "containers[0].resources.requests[cpu]",
        ),
        (
            json!({"containers": [{"name": "a", "resources": {"requests": {"cpu": "-1"}}}]}),
            "containers[0].resources.requests[cpu]",
        ),
        (
            json!({"tolerations": [{"operator": "Like"}]}),
            "tolerations[0].operator",
        ),
        (
            json!({"topologySpreadConstraints": [
                {"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]}),
            "topologySpreadConstraints[0].maxSkew",
        ),
        (
            json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                {"nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "Gt", "values": ["x"]}]}]}}}}),
            "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values",
        ),
        (
            json!({"containers": [{"name": "a", "ports": [{"containerPort": 1, "hostPort": 70000}]}]}),
            "containers[0].ports[0].hostPort",
        ),
    ] {
        assert_eq!(shape(json!({}), spec).unwrap_err().field, field);
    }
}

#[test]
fn keys_of_labels_become_conditions_with_the_own_value() {
    let spec = json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{
        "topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}},
        "matchLabelKeys": ["rev", "absent"], "mismatchLabelKeys": ["team"]}]}}});
    let shape = shape(json!({"rev": "1", "team": "t"}), spec).unwrap();
    let term = shape.anti_affinity.first().unwrap();
    let selector = term.selector.as_ref().unwrap();
    let labels = |team: &str| {
        BTreeMap::from([("app", "a"), ("rev", "1"), ("team", team)])
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect()
    };
    assert!(selector.matches(&labels("u")));
    assert!(!selector.matches(&labels("t")));
    assert_eq!(term.namespaces, BTreeSet::from(["default".to_owned()]));
}

#[test]
fn what_no_node_helps_is_an_obstacle() {
    for (spec, code) in [
        (
            json!({"schedulingGates": [{"name": "g"}]}),
            "SchedulingGated",
        ),
        (json!({"nodeName": "n"}), "PinnedToNode"),
        (json!({"schedulerName": "volcano"}), "ForeignScheduler"),
        (
            json!({"resourceClaims": [{"name": "gpu"}]}),
            "ResourceClaims",
        ),
    ] {
        let obstacle = shape(json!({}), spec).unwrap().obstacle.unwrap();
        assert_eq!(obstacle.code(), code);
    }
    let own = json!({"schedulerName": "default-scheduler", "schedulingGates": []});
    assert_eq!(shape(json!({}), own).unwrap().obstacle, None);
}

#[test]
fn claims_restrict_nodes_or_wait() {
    let known = BTreeMap::from([
        ("free".to_owned(), ClaimFacts::On(None)),
        ("waits".to_owned(), ClaimFacts::Unbound),
    ]);
    for (claim, code) in [
        ("free", None),
        ("waits", Some("ClaimUnbound")),
        ("gone", Some("ClaimMissing")),
    ] {
        let spec = json!({"containers": [], "volumes": [
            {"name": "v", "persistentVolumeClaim": {"claimName": claim}}]});
        let spec = serde_json::from_value(spec).unwrap();
        let shape = observe_shape("default", &Labels::new(), &spec, Claims::Known(&known)).unwrap();
        assert_eq!(shape.obstacle.map(|obstacle| obstacle.code()), code);
    }
}

#[test]
fn preferences_are_not_part_of_a_shape() {
    let spec = json!({
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": {}}}]}},
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}]});
    let with = shape(json!({}), spec).unwrap();
    assert_eq!(with, shape(json!({}), json!({})).unwrap());
}

#[test]
fn what_the_scheduler_cannot_read_stands_in_nobodys_way() {
    let observe = |spec: Value| {
        let mut spec = spec;
        spec["containers"] = json!([]);
        let spec = serde_json::from_value(spec).unwrap();
        observe_waiting_shape("default", &Labels::new(), &spec, Claims::Unknown)
    };
    let terms = json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [
            {"matchExpressions": [{"key": "k", "operator": "Gt", "values": ["x"]}]},
            {"matchExpressions": [{"key": "k", "operator": "Exists"}]}]}}}});
    let shape = observe(terms);
    assert_eq!(shape.node_affinity.unwrap().terms.len(), 1);
    assert_eq!(shape.obstacle, None);
    let unreadable = observe(json!({"overhead": {"cpu": "much"}}));
    assert_eq!(unreadable.obstacle.unwrap().code(), "Malformed");
}
