//! The plan, put into words and into JSON.

use super::class::PRICE_PARTS;
use super::manifest::Workload;
use crate::output::escape;
use crate::output::table::columns;
use neap_core::fit::shape::Observed;
use neap_core::fit::{Candidate, Misfit, Plan};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

/// The plan; `-o json` writes it as it is.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    /// Of this document.
    api_version: &'static str,
    kind: &'static str,
    /// Machines by class.
    classes: Vec<Needed>,
    /// What all of them cost.
    price: String,
    machines: Vec<Machine>,
    unplaced: Vec<Left>,
    choices: Vec<Chosen>,
    /// Objects that want no pods, by kind.
    ignored: BTreeMap<String, u32>,
    pods: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Needed {
    class: String,
    machines: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u32>,
    price: String,
    /// Pods of DaemonSets on each.
    baseline: u32,
}

/// A machine that is to be made, and the pods on it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Machine {
    name: String,
    class: String,
    pods: Vec<Pods>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Pods {
    workload: String,
    count: u32,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Left {
    workload: String,
    count: u32,
    why: Vec<Why>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Why {
    /// Absent when no node at all would help.
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    code: &'static str,
    message: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Chosen {
    class: String,
    placed: u64,
    machines: u32,
    waste_percent: f64,
    price: String,
    /// The classes that lost, the best first.
    lost: Vec<Lost>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Lost {
    class: String,
    placed: u64,
    machines: u32,
    waste_percent: f64,
    price: String,
    why: &'static str,
}

pub(super) fn report(
    observed: &Observed,
    workloads: &[Workload],
    ignored: BTreeMap<String, u32>,
    plan: &Plan,
) -> Report {
    let classes = observed.classes.iter().enumerate();
    let needed: Vec<Needed> = classes
        .map(|(at, class)| {
            let machines = plan.machines_of(at);
            Needed {
                class: class.name.clone(),
                machines,
                limit: class.limit,
                price: price(
                    class
                        .price
                        .saturating_mul(u64::try_from(machines).unwrap_or(u64::MAX)),
                ),
                baseline: class.baseline.iter().map(|daemon| daemon.count).sum(),
            }
        })
        .collect();
    let all = plan.machines.iter().map(|class| price_of(observed, *class));
    Report {
        api_version: "neap.dev/v1alpha1",
        kind: "Plan",
        classes: needed,
        price: price(all.fold(0, u64::saturating_add)),
        machines: machines(observed, workloads, plan),
        unplaced: unplaced(observed, workloads, plan),
        choices: choices(observed, plan),
        ignored,
        pods: workloads
            .iter()
            .map(|workload| u64::from(workload.count))
            .sum(),
    }
}

fn price_of(observed: &Observed, class: usize) -> u64 {
    observed.classes.get(class).map_or(0, |class| class.price)
}

fn class_name(observed: &Observed, class: usize) -> String {
    let class = observed.classes.get(class);
    class.map_or_else(String::new, |class| class.name.clone())
}

/// Equal pods of several workloads are one group: its places are given out in
/// the order of the manifests.
fn machines(observed: &Observed, workloads: &[Workload], plan: &Plan) -> Vec<Machine> {
    let mut numbers: BTreeMap<usize, u32> = BTreeMap::new();
    let mut machines: Vec<Machine> = plan
        .machines
        .iter()
        .map(|class| {
            let number = numbers.entry(*class).or_default();
            *number += 1;
            let class = class_name(observed, *class);
            Machine {
                name: format!("{class}-{number}"),
                class,
                pods: Vec::new(),
            }
        })
        .collect();
    let mut waiting: BTreeMap<usize, VecDeque<(usize, u32)>> = BTreeMap::new();
    for (at, (group, workload)) in plan.inputs.iter().zip(workloads).enumerate() {
        waiting
            .entry(*group)
            .or_default()
            .push_back((at, workload.count));
    }
    for placement in &plan.placements {
        let Some(machine) = machines.get_mut(placement.node) else {
            continue;
        };
        let Some(queue) = waiting.get_mut(&placement.group) else {
            continue;
        };
        let mut left = placement.count;
        while left > 0
            && let Some((at, count)) = queue.front_mut()
        {
            let taken = left.min(*count);
            if let Some(workload) = workloads.get(*at).filter(|_| taken > 0) {
                machine.add(&workload.name, taken);
            }
            left -= taken;
            *count -= taken;
            if *count == 0 {
                queue.pop_front();
            }
        }
    }
    for machine in &mut machines {
        machine
            .pods
            .sort_by(|one, other| one.workload.cmp(&other.workload));
    }
    machines
}

impl Machine {
    fn add(&mut self, workload: &str, count: u32) {
        match self.pods.iter_mut().find(|pods| pods.workload == workload) {
            Some(pods) => pods.count += count,
            None => self.pods.push(Pods {
                workload: workload.to_owned(),
                count,
            }),
        }
    }
}

fn unplaced(observed: &Observed, workloads: &[Workload], plan: &Plan) -> Vec<Left> {
    let inputs: Vec<_> = workloads
        .iter()
        .map(|workload| neap_core::fit::shape::PodGroup {
            shape: workload.shape.clone(),
            count: workload.count,
        })
        .collect();
    let left = plan.unplaced_by_input(&inputs);
    let rows = workloads.iter().zip(left).zip(&plan.inputs);
    rows.filter(|((_, left), _)| *left > 0)
        .map(|((workload, left), group)| {
            let reasons = plan
                .unplaced
                .iter()
                .find(|unplaced| unplaced.group == *group);
            let of_class = reasons.into_iter().flat_map(|unplaced| &unplaced.classes);
            let mut why: Vec<Why> = of_class
                .map(|refusal| Why {
                    class: match &refusal.misfit {
                        Misfit::Obstacle(_) => None,
                        _ => Some(class_name(observed, refusal.class)),
                    },
                    code: refusal.misfit.code(),
                    message: refusal.misfit.to_string(),
                })
                .collect();
            why.dedup();
            Left {
                workload: workload.name.clone(),
                count: left,
                why,
            }
        })
        .collect()
}

fn choices(observed: &Observed, plan: &Plan) -> Vec<Chosen> {
    let chosen = plan.choices.iter().filter_map(|choice| {
        let (best, others) = choice.candidates.split_first()?;
        Some(Chosen {
            class: class_name(observed, best.class),
            placed: best.placed,
            machines: best.machines,
            waste_percent: percent(best),
            price: price(best.price),
            lost: others
                .iter()
                .map(|other| Lost {
                    class: class_name(observed, other.class),
                    placed: other.placed,
                    machines: other.machines,
                    waste_percent: percent(other),
                    price: price(other.price),
                    why: why_lost(best, other),
                })
                .collect(),
        })
    });
    chosen.collect()
}

fn why_lost(best: &Candidate, other: &Candidate) -> &'static str {
    if other.placed < best.placed {
        "fits fewer pods"
    } else if other.priority < best.priority {
        "has a lower priority"
    } else if other.waste_millionths > best.waste_millionths {
        "wastes more"
    } else if other.price > best.price {
        "costs more"
    } else {
        "has a later name"
    }
}

/// Tenths of a percent.
fn percent(candidate: &Candidate) -> f64 {
    let tenths = u32::try_from(candidate.waste_millionths / 1_000).unwrap_or(u32::MAX);
    f64::from(tenths) / 10.0
}

/// Millionths as a decimal number.
fn price(millionths: u64) -> String {
    let (whole, rest) = (millionths / PRICE_PARTS, millionths % PRICE_PARTS);
    if rest == 0 {
        return whole.to_string();
    }
    format!("{whole}.{rest:06}")
        .trim_end_matches('0')
        .to_owned()
}

impl Report {
    /// For people.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        let left = self.unplaced.iter().map(|left| u64::from(left.count));
        let left: u64 = left.sum();
        let machines = self.machines.len();
        let _ = writeln!(
            text,
            "{} of {} pods fit on {machines} machine{}, price {}.\n",
            self.pods - left,
            self.pods,
            if machines == 1 { "" } else { "s" },
            self.price
        );
        let rows: Vec<_> = self.classes.iter().map(Needed::cells).collect();
        text += &columns(
            &["CLASS", "MACHINES", "LIMIT", "BASELINE PODS", "PRICE"],
            &rows,
        );
        if !self.machines.is_empty() {
            text.push('\n');
            text += &columns(&["MACHINE", "CLASS", "PODS"], &self.machine_rows());
        }
        if !self.unplaced.is_empty() {
            text.push('\n');
            let rows: Vec<_> = self.unplaced.iter().flat_map(Left::cells).collect();
            text += &columns(&["DOES NOT FIT", "PODS", "CLASS", "WHY"], &rows);
        }
        for chosen in self.choices.iter().filter(|chosen| !chosen.lost.is_empty()) {
            let lost: Vec<String> = chosen
                .lost
                .iter()
                .map(|lost| {
                    format!(
                        "{} {} ({} pods on {} machines, waste {} %, price {})",
                        lost.class,
                        lost.why,
                        lost.placed,
                        lost.machines,
                        lost.waste_percent,
                        lost.price
                    )
                })
                .collect();
            let _ = writeln!(
                text,
                "\n{} was chosen: {} pods on {} machines, waste {} %, price {}; {}.",
                escape(&chosen.class),
                chosen.placed,
                chosen.machines,
                chosen.waste_percent,
                chosen.price,
                escape(&lost.join("; "))
            );
        }
        if !self.ignored.is_empty() {
            let kinds: Vec<String> = self
                .ignored
                .iter()
                .map(|(kind, count)| format!("{count} {kind}"))
                .collect();
            let _ = writeln!(text, "\nWants no pods: {}.", escape(&kinds.join(", ")));
        }
        text
    }

    /// Machines one after the other that hold the same are one row.
    fn machine_rows(&self) -> Vec<Vec<String>> {
        let mut rows = Vec::new();
        let mut rest = self.machines.as_slice();
        while let Some(first) = rest.first() {
            let alike = rest
                .iter()
                .take_while(|other| other.class == first.class && other.pods == first.pods)
                .count();
            let (own, others) = rest.split_at(alike);
            rest = others;
            let last = own.last().map_or("", |machine| machine.name.as_str());
            let name = if alike == 1 {
                first.name.clone()
            } else {
                format!("{} … {last} ({alike})", first.name)
            };
            let pods: Vec<String> = first
                .pods
                .iter()
                .map(|pods| match pods.count {
                    1 => pods.workload.clone(),
                    count => format!("{count} × {}", pods.workload),
                })
                .collect();
            rows.push(vec![name, first.class.clone(), pods.join(", ")]);
        }
        rows
    }
}

impl Needed {
    fn cells(&self) -> Vec<String> {
        vec![
            self.class.clone(),
            self.machines.to_string(),
            self.limit
                .map_or_else(String::new, |limit| limit.to_string()),
            self.baseline.to_string(),
            self.price.clone(),
        ]
    }
}

impl Left {
    fn cells(&self) -> Vec<Vec<String>> {
        let row = |why: &Why| {
            vec![
                self.workload.clone(),
                self.count.to_string(),
                why.class.clone().unwrap_or_default(),
                why.message.clone(),
            ]
        };
        self.why.iter().map(row).collect()
    }
}
