#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::problem::{Exit, report as problem_report};

const SMALL: &str = "\
apiVersion: neap.dev/v1alpha1
kind: MachineClass
metadata: {name: small}
spec:
  capacity: {cpu: 4, memory: 8Gi, pods: 20}
  reserve: {cpu: 500m}
  price: 0.12
";

const WORK: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 5
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: web
        resources: {requests: {cpu: 1, memory: 1Gi}}
---
# nothing here
---
apiVersion: v1
kind: List
items:
- apiVersion: batch/v1
  kind: Job
  metadata: {name: huge, namespace: ci}
  spec:
    parallelism: 3
    completions: 2
    template:
      spec:
        restartPolicy: Never
        containers:
        - {name: a, image: a, resources: {limits: {cpu: '4'}}}
- {apiVersion: v1, kind: Service, metadata: {name: web}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: kube-system}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      containers:
      - {name: agent, image: agent, resources: {requests: {cpu: 250m}}}
";

fn run(work: &str, class: &str) -> anyhow::Result<report::Report> {
    let manifests = documents_of("pods.yaml", work)?;
    report_of(&manifests, &documents_of("class.yaml", class)?)
}

#[test]
fn a_plan_names_machines_price_and_what_does_not_fit() {
    let report = run(WORK, SMALL).unwrap();
    let text = report.text();
    for line in [
        "5 of 7 pods fit on 2 machines, price 0.24.",
        "small  2         -      1              0.24",
        "small-1  small  3 × Deployment default/web",
        "small-2  small  2 × Deployment default/web",
        "Job ci/huge   2     small  it asks for 4 cpu, 3250m of 3500m is free, the baseline takes 250m",
        "Wants no pods: 1 Service.",
    ] {
        assert!(text.contains(line), "{line:?} is not in\n{text}");
    }
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(
        json["unplaced"][0]["why"][0]["code"],
        "InsufficientResource"
    );
    assert_eq!(json["machines"][0]["pods"][0]["count"], 3);
}

#[test]
fn the_class_that_fits_the_most_is_chosen_and_the_loser_is_named() {
    let both = format!(
        "{SMALL}---\n{}",
        SMALL.replace("small", "big").replace("cpu: 4,", "cpu: 16,")
    );
    let text = run(WORK, &both).unwrap().text();
    assert!(
        text.contains("big was chosen: 7 pods on 1 machines"),
        "{text}"
    );
    assert!(
        text.contains("small fits fewer pods (5 pods on 2 machines"),
        "{text}"
    );
}

#[test]
fn bad_input_names_file_document_and_field() {
    let deployment = |old: &str, new: &str| (WORK.replace(old, new), SMALL.to_owned());
    let class = |old: &str, new: &str| (WORK.to_owned(), SMALL.replace(old, new));
    for ((work, class), said) in [
        (
            deployment("replicas: 5", "replicas: many"),
            "pods.yaml, document 1 (Deployment web): spec.replicas: invalid type: string \"many\"",
        ),
        (
            deployment("cpu: 1,", "cpu: 1x,"),
            "pods.yaml, document 1 (Deployment web): spec.template.spec.containers[0].resources.requests[cpu]: \"1x\" is no quantity",
        ),
        (
            deployment("restartPolicy: Never", "nodeSelector: 1"),
            "pods.yaml, document 2, item 1 (Job huge): spec.template.spec.nodeSelector: invalid type",
        ),
        (
            deployment("kind: Job", "sort: Job"),
            "pods.yaml, document 2, item 1: kind: there is none",
        ),
        (
            class("capacity", "size"),
            "class.yaml, document 1 (MachineClass small): spec.size: unknown field `size`",
        ),
        (
            class("8Gi", "8GB"),
            "class.yaml, document 1 (MachineClass small): spec.capacity[memory]: \"8GB\" is no quantity",
        ),
        (
            class("500m", "5"),
            "class.yaml, document 1 (MachineClass small): spec.reserve.cpu: 5 is kept back, and there is 4",
        ),
        (
            class("v1alpha1", "v9"),
            "class.yaml, document 1 (MachineClass small): apiVersion: \"neap.dev/v9\" is not known",
        ),
        (
            class("0.12", "cheap"),
            "class.yaml, document 1 (MachineClass small): spec.price: cheap is no price",
        ),
        (
            class("MachineClass", "Node"),
            "class.yaml, document 1 (Node small): kind: \"Node\" is no MachineClass",
        ),
        (class("metadata: {", "metadata: ["), "class.yaml is no YAML"),
    ] {
        let error = run(&work, &class).unwrap_err();
        let report = problem_report(&error);
        assert_eq!(report.exit, Exit::Usage);
        assert!(
            report.text.contains(said),
            "{said:?} is not in {}",
            report.text
        );
    }
}

#[test]
fn pods_that_have_ended_want_nothing() {
    let pod = "{kind: Pod, apiVersion: v1, metadata: {name: a}, status: {phase: Succeeded}, spec: {containers: [{name: a}]}}";
    let text = run(pod, SMALL).unwrap().text();
    assert!(text.starts_with("0 of 0 pods fit on 0 machines"), "{text}");
}

#[test]
fn pods_of_a_workload_that_is_there_too_are_not_counted_twice() {
    let pod = |owner: &str| {
        format!(
            "{{kind: Pod, apiVersion: v1, metadata: {{name: a, ownerReferences: [{{kind: Deployment, \
             name: {owner}, controller: true}}]}}, spec: {{containers: [{{name: a}}]}}}}"
        )
    };
    for (owner, pods) in [("web", 7), ("other", 8)] {
        let text = run(&format!("{WORK}---\n{}\n", pod(owner)), SMALL)
            .unwrap()
            .text();
        assert!(text.contains(&format!("of {pods} pods fit")), "{text}");
    }
}
