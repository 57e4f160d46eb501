//! The decision in its loop, on a world that moves: work comes and ends, boots
//! fail, machines die. Whatever happens, in the end all work is done and the
//! nodes are gone, and nothing waits for ever.

use crate::properties::holds_work;
use crate::world::{World, at, bound, finished, node_name, node_of, pending, waiting};
use jiff::{SignedDuration, Timestamp};
use neap_core::ids::ObjectKey;
use neap_core::machine::{MachinePhase, ObservedMachine, Power};
use neap_core::scale::{Action, Decision};
use neap_core::supervision;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// How the boot of a machine ends.
#[derive(Clone, Copy, Debug)]
enum Boot {
    /// Ready after so many seconds.
    Joins(i64),
    /// It never says anything.
    Hangs,
    /// Error after so many seconds.
    Fails(i64),
    /// Ready after the one, dead after the other number of seconds.
    Dies(i64, i64),
}

#[derive(Clone, Debug)]
struct Work {
    arrives: Timestamp,
    runs: SignedDuration,
    ends: Option<Timestamp>,
    node: Option<u32>,
    finished: bool,
}

/// What happens to a machine by itself.
#[derive(Clone, Copy, Debug, Default)]
struct Fate {
    joins: Option<Timestamp>,
    dies: Option<Timestamp>,
    released: Option<Timestamp>,
    gone: Option<Timestamp>,
}

struct Simulation {
    world: World,
    work: Vec<Work>,
    boots: Vec<Boot>,
    fates: BTreeMap<u32, Fate>,
    failures: u32,
    most_records: usize,
}

fn seconds(number: i64) -> SignedDuration {
    SignedDuration::from_secs(number)
}

impl Simulation {
    fn new(world: World, work: Vec<(i64, i64)>, boots: Vec<Boot>) -> Self {
        let work = work.into_iter().map(|(arrives, runs)| Work {
            arrives: at(arrives),
            runs: seconds(runs),
            ends: None,
            node: None,
            finished: false,
        });
        Self {
            world: world.now(0),
            work: work.collect(),
            boots,
            fates: BTreeMap::new(),
            failures: 0,
            most_records: 0,
        }
    }

    /// Runs until nothing moves any more.
    fn run(&mut self) {
        for _ in 0..10_000 {
            self.happen();
            self.schedule();
            self.show();
            let decision = self.world.decide();
            self.check(&decision);
            let changed = self.act(&decision);
            if changed {
                continue;
            }
            let moves = self.events().chain(decision.next);
            match moves.filter(|at| *at > self.world.now).min() {
                Some(next) => self.world.now = next,
                None => return,
            }
        }
        panic!("it never comes to rest: {:#?}", self.world.decide());
    }

    /// Times at which something happens by itself.
    fn events(&self) -> impl Iterator<Item = Timestamp> {
        let fates = self.fates.values();
        let machines = fates.flat_map(|fate| [fate.joins, fate.dies, fate.released, fate.gone]);
        let work = self.work.iter().filter(|work| !work.finished);
        let pods = work.flat_map(|work| [Some(work.arrives), work.ends]);
        machines.chain(pods).flatten()
    }

    /// Lets happen what is due.
    fn happen(&mut self) {
        let now = self.world.now;
        let due = |time: Option<Timestamp>| time.is_some_and(|time| time <= now);
        for work in &mut self.work {
            work.finished |= due(work.ends);
        }
        let mut gone = Vec::new();
        for machine in &mut self.world.machines {
            let fate = self.fates.entry(machine.ordinal).or_default();
            if due(fate.dies.take_if(|time| *time <= now)) {
                machine.power = Power::Error;
                fate.joins = None;
            }
            if due(fate.joins.take_if(|time| *time <= now)) {
                machine.phase = MachinePhase::Running;
                machine.joined = Some(now);
                self.world.index.apply_node(node_of(machine));
                self.world.state.retry_at = None;
                self.failures = 0;
            }
            let is_releasing = machine.phase == MachinePhase::Releasing;
            if due(fate.released.take_if(|time| *time <= now)) && is_releasing {
                let node = Some(machine.ordinal);
                let busy = self
                    .work
                    .iter()
                    .any(|work| !work.finished && work.node == node);
                machine.phase = if busy {
                    MachinePhase::Running
                } else {
                    MachinePhase::Draining
                };
                fate.gone = (!busy).then(|| now + seconds(1));
            }
            if due(fate.gone) {
                gone.push(machine.ordinal);
            }
        }
        for ordinal in gone {
            self.fates.remove(&ordinal);
            self.world
                .machines
                .retain(|machine| machine.ordinal != ordinal);
            self.world.index.delete_node(&node_name(ordinal));
        }
    }

    /// Binds what waits to nodes that have room.
    fn schedule(&mut self) {
        let now = self.world.now;
        let room = usize::try_from(self.world.policy.pods_per_node).unwrap();
        for number in 0..self.work.len() {
            let load = |ordinal| {
                let on_it = |work: &&Work| !work.finished && work.node == Some(ordinal);
                self.work.iter().filter(on_it).count()
            };
            let mut machines = self.world.machines.iter();
            let takes = machines.find(|machine| {
                machine.phase == MachinePhase::Running
                    && !machine.power.is_down()
                    && load(machine.ordinal) < room
            });
            let node = takes.map(|machine| machine.ordinal);
            let work = self.work.get_mut(number).unwrap();
            if work.arrives <= now && !work.finished && work.node.is_none() && node.is_some() {
                work.node = node;
                work.ends = Some(now + work.runs);
            }
        }
    }

    /// Tells the index what pods there are.
    fn show(&mut self) {
        let now = self.world.now;
        let there = self
            .work
            .iter()
            .enumerate()
            .filter(|(_, work)| work.arrives <= now);
        let pods = there.map(|(number, work)| {
            let pod = work.node.map_or_else(waiting, bound);
            let pod = if work.finished { finished(pod) } else { pod };
            (ObjectKey::new("ci", format!("p{number}")), pod)
        });
        self.world.index.reset_pods(pods);
    }

    /// What no pass may do.
    fn check(&mut self, decision: &Decision) {
        for action in &decision.actions {
            let leaving = match action {
                Action::Release { machine } => vec![machine],
                Action::Teardown { machines } => machines.iter().collect(),
                _ => Vec::new(),
            };
            for machine in leaving {
                let observation = self.world.index.observe(Vec::new());
                assert!(
                    !holds_work(&observation, machine),
                    "{machine} holds work and is let go"
                );
            }
        }
        self.most_records = self.most_records.max(self.world.machines.len());
    }

    fn machine(&mut self, name: &neap_core::ids::MachineName) -> &mut ObservedMachine {
        let mut machines = self.world.machines.iter_mut();
        machines.find(|machine| machine.name == *name).unwrap()
    }

    fn act(&mut self, decision: &Decision) -> bool {
        let now = self.world.now;
        self.world.state.idle_since = decision.remember.idle_since;
        for (name, idle_since) in &decision.remember.machines {
            self.machine(name).idle_since = *idle_since;
        }
        for action in &decision.actions {
            match action {
                Action::Provision { ordinals } => {
                    for ordinal in ordinals {
                        self.provision(*ordinal);
                    }
                }
                Action::Remove { machine, reason } => {
                    if reason.is_provisioning_failure() {
                        self.failures += 1;
                        let retry_at = supervision::retry_at(self.failures, now);
                        self.world.state.retry_at = Some(retry_at);
                    }
                    let ordinal = machine.node().ordinal().unwrap();
                    self.machine(machine).phase = MachinePhase::Draining;
                    let gone = Some(now + seconds(1));
                    self.fates.insert(
                        ordinal,
                        Fate {
                            gone,
                            ..Fate::default()
                        },
                    );
                    // Its pods are failed, and their owners do not come back.
                    for work in &mut self.work {
                        work.finished |= work.node == Some(ordinal);
                    }
                }
                Action::Release { machine } => {
                    self.world.state.last_release = Some(now);
                    self.release(machine);
                }
                Action::Teardown { machines } => {
                    for machine in machines {
                        self.release(machine);
                    }
                }
                Action::Undo { machine } => {
                    let machine = self.machine(machine);
                    machine.phase = match machine.joined {
                        Some(_) => MachinePhase::Running,
                        None => MachinePhase::Pending,
                    };
                }
            }
        }
        !decision.actions.is_empty()
    }

    fn release(&mut self, name: &neap_core::ids::MachineName) {
        let released = Some(self.world.now + seconds(1));
        let machine = self.machine(name);
        machine.phase = MachinePhase::Releasing;
        let ordinal = machine.ordinal;
        let fate = self.fates.entry(ordinal).or_default();
        fate.released = released;
        fate.joins = None;
    }

    fn provision(&mut self, ordinal: u32) {
        let now = self.world.now;
        let taken = self
            .world
            .machines
            .iter()
            .any(|machine| machine.ordinal == ordinal);
        assert!(!taken, "node{ordinal} is made twice");
        // Bad boots are used up, so that the world gets well in the end.
        let boot = self.boots.pop().unwrap_or(Boot::Joins(1));
        let (joins, dies) = match boot {
            Boot::Joins(after) => (Some(after), None),
            Boot::Hangs => (None, None),
            Boot::Fails(after) => (None, Some(after)),
            Boot::Dies(joins, dies) => (Some(joins), Some(joins + dies)),
        };
        let fate = Fate {
            joins: joins.map(|after| now + seconds(after)),
            dies: dies.map(|after| now + seconds(after)),
            ..Fate::default()
        };
        self.fates.insert(ordinal, fate);
        self.world.machines.push(ObservedMachine {
            created: now,
            ..pending(ordinal)
        });
    }
}

fn any_boot() -> impl Strategy<Value = Boot> {
    prop_oneof![
        4 => (0..70_i64).prop_map(Boot::Joins),
        1 => Just(Boot::Hangs),
        1 => (0..70_i64).prop_map(Boot::Fails),
        1 => (0..30_i64, 0..200_i64).prop_map(|(joins, dies)| Boot::Dies(joins, dies)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn work_is_served_and_the_nodes_go_whatever_happens(
        work in proptest::collection::vec((0..600_i64, 1..300_i64), 0..12),
        boots in proptest::collection::vec(any_boot(), 0..8),
        pods_per_node in 1..4_u32,
        (min_nodes, max_nodes) in (0..3_u32, 1..5_u32).prop_map(|(least, most)| (least.min(most), most)),
        hold in proptest::sample::select(vec![0, 5, 120]),
    ) {
        let world = World::new()
            .pods_per_node(pods_per_node)
            .min_nodes(min_nodes)
            .max_nodes(max_nodes)
            .hold(hold);
        let mut simulation = Simulation::new(world, work, boots);
        simulation.run();
        prop_assert!(simulation.work.iter().all(|work| work.finished), "work is left");
        let left = simulation.world.machines.len();
        prop_assert_eq!(left, usize::try_from(min_nodes).unwrap());
        let most = usize::try_from(max_nodes).unwrap();
        prop_assert!(simulation.most_records <= most, "more records than MaxNodes");
    }
}

#[test]
fn three_pods_bring_three_nodes_and_leave_none() {
    let world = World::new().max_nodes(3).hold(120);
    let work = vec![(10, 30), (10, 30), (10, 30)];
    let mut simulation = Simulation::new(world, work, Vec::new());
    simulation.run();
    assert_eq!(simulation.most_records, 3);
    assert!(simulation.world.machines.is_empty());
    // A second to boot, the work, the hold, a second each to settle and to go.
    assert_eq!(simulation.world.now, at(10 + 1 + 30 + 120 + 1 + 1));
}
