//! The workloads, as the measurements of the rivals describe them.

use anyhow::{Context, Result, bail};
use neap_core::fit::amount::Resources;
use neap_core::fit::selector::{LabelSelector, Labels, Requirement};
use neap_core::fit::shape::{
    Allocatable, ClassShape, HOSTNAME, Inclusion, NodeShape, Observed, PodGroup, PodShape, PodTerm,
    Spread,
};

use super::Workload;

const ZONE: &str = "topology.kubernetes.io/zone";
const NAMESPACE: &str = "universe";
const MI: u64 = 1 << 20;

/// Drawn pods of Karpenter's own benchmark.
const KARPENTER: [(&str, &str, f64); 2] = [
    (
        "Karpenter's mix, 1 000 pods",
        include_str!("../../../../../tests/cases/peers/karpenter-1000.csv"),
        5.0,
    ),
    (
        "Karpenter's mix, 5 000 pods",
        include_str!("../../../../../tests/cases/peers/karpenter-5000.csv"),
        25.0,
    ),
];

pub(super) fn all() -> Result<Vec<Workload>> {
    let workload = |name, milliseconds, machines, observed| Workload {
        name,
        observed,
        milliseconds,
        machines,
    };
    let upstream = || [(50_000, pod(50, 100)), (1_000, pod(95, 190))];
    let small = || class(1_000, 5_000 * MI, 100);
    let large = || class(16_000, 64 * 1_024 * MI, 110);
    let grouped = upstream().map(|(count, shape)| PodGroup::new(shape, count));
    let single = upstream().map(|(count, shape)| singles(&shape, count));
    let mut all = vec![
        workload(
            "51 000 pods in two groups",
            1.0,
            Some(2_595.0),
            observed(grouped.to_vec(), small(), vec![context()]),
        ),
        workload(
            "51 000 single pods",
            20.0,
            Some(2_595.0),
            observed(single.concat(), small(), vec![context()]),
        ),
        workload(
            "5 000 mixed pods",
            3.0,
            Some(214.0),
            observed(mixed(5_000)?, large(), vec![context()]),
        ),
        workload(
            "1 000 pods, host anti-affinity",
            1.0,
            Some(1_000.0),
            observed(vec![apart(1_000)], large(), vec![context()]),
        ),
        workload(
            "1 000 pods, host spread",
            2.0,
            Some(1_000.0),
            observed(vec![even(1_000)], large(), vec![context()]),
        ),
        workload(
            "50 000 pods without owner",
            60.0,
            Some(1_000.0),
            observed(
                singles(&pod(200, 200), 50_000),
                class(10_000, 10_000, 100),
                Vec::new(),
            ),
        ),
        workload("12 000 pods that fit nowhere", 10.0, None, full()),
    ];
    for (name, csv, milliseconds) in KARPENTER {
        let pods = karpenter(csv).context(name)?;
        let large = class(63_900, 128 * 1_024 * MI, 640);
        all.push(workload(
            name,
            milliseconds,
            None,
            observed(pods, large, Vec::new()),
        ));
    }
    Ok(all)
}

fn observed(pods: Vec<PodGroup>, class: ClassShape, nodes: Vec<NodeShape>) -> Observed {
    Observed {
        pods,
        nodes,
        classes: vec![class],
        ..Observed::default()
    }
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    let pairs = pairs.iter();
    pairs
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

fn allocatable(cpu_milli: u64, memory: u64, pods: u64) -> Allocatable {
    Allocatable {
        resources: Resources {
            cpu_milli,
            memory,
            ..Resources::default()
        },
        pods,
    }
}

fn class(cpu_milli: u64, memory: u64, pods: u64) -> ClassShape {
    ClassShape {
        name: "template".to_owned(),
        labels: labels(&[(ZONE, "zone-b")]),
        allocatable: allocatable(cpu_milli, memory, pods),
        ..ClassShape::default()
    }
}

/// The one node that is there: in another zone, and too small.
fn context() -> NodeShape {
    NodeShape {
        name: "context".to_owned(),
        labels: labels(&[(HOSTNAME, "context"), (ZONE, "zone-a")]),
        allocatable: allocatable(100, 100 * MI, 10),
        ..NodeShape::default()
    }
}

fn pod(cpu_milli: u64, memory: u64) -> PodShape {
    PodShape {
        requests: Resources {
            cpu_milli,
            memory,
            ..Resources::default()
        },
        namespace: NAMESPACE.to_owned(),
        labels: labels(&[("app", "estimatee")]),
        ..PodShape::default()
    }
}

/// Pods that know nothing of each other, as they are read one by one.
fn singles(shape: &PodShape, count: u32) -> Vec<PodGroup> {
    (0..count)
        .map(|_| PodGroup::new(shape.clone(), 1))
        .collect()
}

fn mixed(count: usize) -> Result<Vec<PodGroup>> {
    const CPU: [u64; 5] = [100, 250, 500, 1_000, 1_500];
    const MEMORY: [u64; 6] = [100, 256, 512, 1_024, 2_048, 4_096];
    let mut pods = Vec::new();
    for at in 0..count {
        let cpu = CPU.get(at % 5).context("five amounts of CPU")?;
        let memory = MEMORY.get(at / 5 % 6).context("six amounts of memory")?;
        pods.push(PodGroup::new(pod(*cpu, memory * MI), 1));
    }
    Ok(pods)
}

fn selector(key: &str, value: &str) -> LabelSelector {
    let requirement = Requirement::In {
        key: key.to_owned(),
        values: [value.to_owned()].into(),
    };
    LabelSelector {
        requirements: [requirement].into(),
    }
}

fn term(key: &str, value: &str, topology_key: &str) -> PodTerm {
    PodTerm {
        topology_key: topology_key.to_owned(),
        selector: Some(selector(key, value)),
        namespaces: [NAMESPACE.to_owned()].into(),
        namespace_selector: None,
    }
}

fn spread(key: &str, value: &str, topology_key: &str) -> Spread {
    Spread {
        topology_key: topology_key.to_owned(),
        selector: Some(selector(key, value)),
        max_skew: 1,
        min_domains: 1,
        node_affinity: Inclusion::Honor,
        node_taints: Inclusion::Ignore,
    }
}

fn apart(count: u32) -> PodGroup {
    let shape = PodShape {
        anti_affinity: vec![term("app", "estimatee", HOSTNAME)],
        ..pod(1_000, 2_048 * MI)
    };
    PodGroup::new(shape, count)
}

fn even(count: u32) -> PodGroup {
    let shape = PodShape {
        spread: vec![spread("app", "estimatee", HOSTNAME)],
        ..pod(1_000, 2_048 * MI)
    };
    PodGroup::new(shape, count)
}

/// A thousand nodes that have no memory left.
fn full() -> Observed {
    let node = |at: u32| NodeShape {
        name: format!("node-{at}"),
        labels: labels(&[(HOSTNAME, &format!("node-{at}"))]),
        allocatable: allocatable(2_000, 200_000, 110),
        pods: vec![PodGroup::new(pod(1_000, 200_000), 1)],
        ..NodeShape::default()
    };
    Observed {
        pods: singles(&pod(1_000, 2_000_000), 12_000),
        nodes: (0..1_000).map(node).collect(),
        ..Observed::default()
    }
}

fn karpenter(csv: &str) -> Result<Vec<PodGroup>> {
    let mut pods = Vec::new();
    for line in csv.lines().filter(|line| !line.is_empty()) {
        let fields: Vec<&str> = line.split(',').collect();
        let [kind, label, selected, cpu, memory, count] = fields.as_slice() else {
            bail!("{line:?} has not six fields");
        };
        if *kind == "kind" {
            continue;
        }
        let mut shape = pod(cpu.parse()?, memory.parse::<u64>()? * MI);
        shape.labels = labels(&[("my-label", *label)]);
        match *kind {
            "generic" => {}
            "zone-spread" => shape.spread = vec![spread("my-label", selected, ZONE)],
            "host-spread" => shape.spread = vec![spread("my-label", selected, HOSTNAME)],
            "zone-affinity" => {
                shape.labels = labels(&[("my-affininity", *label)]);
                shape.affinity = vec![term("my-affininity", label, ZONE)];
            }
            "host-anti" => {
                shape.labels = labels(&[("app", "nginx")]);
                shape.anti_affinity = vec![term("app", "nginx", HOSTNAME)];
            }
            other => bail!("{other} is no kind of pod"),
        }
        pods.extend(singles(&shape, count.parse()?));
    }
    Ok(pods)
}
