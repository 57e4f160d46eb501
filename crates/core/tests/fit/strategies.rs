//! Small worlds in which rules meet often: few keys, few values.

use neap_core::fit::amount::Resources;
use neap_core::fit::selector::{LabelSelector, Labels, NodeSelector, NodeTerm, Requirement};
use neap_core::fit::shape::{
    Allocatable, ClassShape, HOSTNAME, HostPort, Inclusion, NodeShape, Observed, PodGroup,
    PodShape, PodTerm, Protocol, Spread,
};
use neap_core::fit::{Effect, Obstacle, Taint, Toleration, TolerationOperator};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option::{of, weighted};
use proptest::prelude::*;
use proptest::sample::select;

fn text(choices: &'static [&'static str]) -> impl Strategy<Value = String> {
    select(choices).prop_map(str::to_owned)
}

fn key() -> impl Strategy<Value = String> {
    text(&["zone", "rack", HOSTNAME])
}

fn pod_labels() -> impl Strategy<Value = Labels> {
    btree_map(text(&["app", "rev"]), text(&["a", "b"]), 0..=2)
}

fn namespace() -> impl Strategy<Value = String> {
    text(&["default", "team", "unknown"])
}

fn requirement(
    keys: &'static [&'static str],
    values: &'static [&'static str],
) -> impl Strategy<Value = Requirement> {
    let key = text(keys);
    (key, btree_set(text(values), 1..=2), 0..4).prop_map(|(key, values, kind)| match kind {
        0 => Requirement::In { key, values },
        1 => Requirement::NotIn { key, values },
        2 => Requirement::Exists { key },
        _ => Requirement::DoesNotExist { key },
    })
}

fn selector() -> impl Strategy<Value = LabelSelector> {
    btree_set(requirement(&["app", "rev"], &["a", "b"]), 0..=1)
        .prop_map(|requirements| LabelSelector { requirements })
}

fn term() -> impl Strategy<Value = PodTerm> {
    let namespaces = btree_set(namespace(), 0..=2);
    let by_label = btree_set(requirement(&["tier"], &["x", "y"]), 0..=1)
        .prop_map(|requirements| LabelSelector { requirements });
    (
        key(),
        weighted(0.9, selector()),
        namespaces,
        weighted(0.3, by_label),
    )
        .prop_map(
            |(topology_key, selector, namespaces, namespace_selector)| PodTerm {
                topology_key,
                selector,
                namespaces,
                namespace_selector,
            },
        )
}

fn inclusion() -> impl Strategy<Value = Inclusion> {
    select(&[Inclusion::Honor, Inclusion::Ignore][..])
}

fn spread() -> impl Strategy<Value = Spread> {
    let selector = weighted(0.9, selector());
    (
        key(),
        selector,
        1..3_u32,
        1..4_u32,
        inclusion(),
        inclusion(),
    )
        .prop_map(
            |(topology_key, selector, max_skew, min_domains, node_affinity, node_taints)| Spread {
                topology_key,
                selector,
                max_skew,
                min_domains,
                node_affinity,
                node_taints,
            },
        )
}

fn effect() -> impl Strategy<Value = Effect> {
    select(
        &[
            Effect::NoSchedule,
            Effect::PreferNoSchedule,
            Effect::NoExecute,
        ][..],
    )
}

fn taint() -> impl Strategy<Value = Taint> {
    (text(&["t", "u"]), text(&["", "1"]), effect()).prop_map(|(key, value, effect)| Taint {
        key,
        value,
        effect,
    })
}

fn toleration() -> impl Strategy<Value = Toleration> {
    let operator = select(&[TolerationOperator::Equal, TolerationOperator::Exists][..]);
    (
        text(&["", "t", "u"]),
        operator,
        text(&["", "1"]),
        of(effect()),
    )
        .prop_map(|(key, operator, value, effect)| Toleration {
            key,
            operator,
            value,
            effect,
        })
}

fn port() -> impl Strategy<Value = HostPort> {
    let protocol = select(&[Protocol::Tcp, Protocol::Udp][..]);
    let address = of(text(&["127.0.0.1", "10.0.0.1"]));
    (80..82_u16, protocol, address).prop_map(|(port, protocol, address)| HostPort {
        port,
        protocol,
        address,
    })
}

fn node_affinity() -> impl Strategy<Value = NodeSelector> {
    let labels = vec(
        requirement(&["zone", "rack", HOSTNAME], &["a", "b", "n0"]),
        0..=2,
    );
    let term = labels.prop_map(|labels| NodeTerm {
        labels,
        fields: Vec::new(),
    });
    vec(term, 0..=2).prop_map(|terms| NodeSelector { terms })
}

fn shape() -> impl Strategy<Value = PodShape> {
    let size = (
        select(&[0_u64, 100, 300, 500, 1200][..]),
        select(&[0_u64, 10, 40, 90][..]),
    );
    let node_selector = btree_map(text(&["zone", "rack"]), text(&["a", "b"]), 1..=1);
    let own = (
        namespace(),
        pod_labels(),
        weighted(0.1, node_selector),
        weighted(0.15, node_affinity()),
    );
    let ties = (
        weighted(0.25, vec(term(), 1..=2)),
        weighted(0.25, vec(term(), 1..=2)),
        weighted(0.35, btree_set(spread(), 1..=2)),
    );
    let rest = (
        weighted(0.3, vec(toleration(), 1..=2)),
        weighted(0.1, vec(port(), 1..=2)),
        weighted(0.03, Just(Obstacle::Gated)),
    );
    (size, own, ties, rest).prop_map(|(size, own, ties, rest)| PodShape {
        requests: resources(size.0, size.1),
        namespace: own.0,
        labels: own.1,
        node_selector: own.2.unwrap_or_default(),
        node_affinity: own.3,
        affinity: ties.0.unwrap_or_default(),
        anti_affinity: ties.1.unwrap_or_default(),
        spread: ties.2.unwrap_or_default().into_iter().collect(),
        tolerations: rest.0.unwrap_or_default(),
        host_ports: rest.1.unwrap_or_default(),
        obstacle: rest.2,
        ..PodShape::default()
    })
}

fn resources(cpu_milli: u64, memory: u64) -> Resources {
    Resources {
        cpu_milli,
        memory,
        ..Resources::default()
    }
}

pub(crate) fn group() -> impl Strategy<Value = PodGroup> {
    (shape(), 1..12_u32).prop_map(|(shape, count)| PodGroup::new(shape, count))
}

/// A pod that is there: it may be leaving.
fn resident() -> impl Strategy<Value = PodGroup> {
    (shape(), 1..3_u32, any::<bool>()).prop_map(|(mut shape, count, terminating)| {
        shape.terminating = terminating;
        shape.obstacle = None;
        PodGroup::new(shape, count)
    })
}

fn node_labels() -> impl Strategy<Value = Labels> {
    btree_map(text(&["zone", "rack"]), text(&["a", "b"]), 0..=2)
}

fn allocatable() -> impl Strategy<Value = Allocatable> {
    let cpu = select(&[1000_u64, 2000, 4000][..]);
    let memory = select(&[100_u64, 200, 1000][..]);
    (cpu, memory, select(&[3_u64, 8, 110][..])).prop_map(|(cpu, memory, pods)| Allocatable {
        resources: resources(cpu, memory),
        pods,
    })
}

fn taints() -> impl Strategy<Value = Vec<Taint>> {
    weighted(0.25, vec(taint(), 1..=2)).prop_map(Option::unwrap_or_default)
}

pub(crate) fn class() -> impl Strategy<Value = ClassShape> {
    let baseline = weighted(0.3, vec(resident(), 1..=1));
    let limit = weighted(0.8, 0..6_u32);
    (
        node_labels(),
        taints(),
        allocatable(),
        baseline,
        limit,
        0..3_u64,
    )
        .prop_map(
            |(labels, taints, allocatable, baseline, limit, price)| ClassShape {
                name: "class".to_owned(),
                labels,
                taints,
                allocatable,
                baseline: baseline.unwrap_or_default(),
                // Without a limit runaway plans would be slow to check.
                limit: limit.or(Some(8)),
                price,
                ..ClassShape::default()
            },
        )
}

fn node() -> impl Strategy<Value = NodeShape> {
    let pods = vec(resident(), 0..=2);
    (
        node_labels(),
        taints(),
        allocatable(),
        pods,
        weighted(0.1, Just(true)),
    )
        .prop_map(|(labels, taints, allocatable, pods, cordoned)| NodeShape {
            labels,
            taints,
            allocatable,
            pods,
            unschedulable: cordoned.unwrap_or_default(),
            ..NodeShape::default()
        })
}

pub(crate) fn observed() -> impl Strategy<Value = Observed> {
    let nodes = vec((node(), weighted(0.9, Just(()))), 0..=3);
    (vec(group(), 1..=6), nodes, vec(class(), 0..=2)).prop_map(|(pods, nodes, classes)| {
        let tier = |value: &str| Labels::from([("tier".to_owned(), value.to_owned())]);
        Observed {
            pods,
            nodes: nodes.into_iter().enumerate().map(named_node).collect(),
            classes: classes.into_iter().enumerate().map(named_class).collect(),
            namespaces: [("default", tier("x")), ("team", tier("y"))]
                .map(|(name, labels)| (name.to_owned(), labels))
                .into(),
            ..Observed::default()
        }
    })
}

fn named_node((at, (mut node, hosted)): (usize, (NodeShape, Option<()>))) -> NodeShape {
    node.name = format!("n{at}");
    if hosted.is_some() {
        node.labels.insert(HOSTNAME.to_owned(), node.name.clone());
    }
    node
}

fn named_class((at, mut class): (usize, ClassShape)) -> ClassShape {
    class.name = format!("class-{at}");
    class
}
