//! One need makes one machine, in whatever order and however late its parts
//! are seen.

use crate::world::{World, at, node_of, owned, pending, replica_set, waiting, workload};
use jiff::SignedDuration;
use neap_core::ids::ObjectKey;
use neap_core::machine::{MachinePhase, ObservedMachine};
use neap_core::observation::{PodFacts, WorkloadFacts, WorkloadKind};
use neap_core::scale::Action;
use proptest::prelude::*;
use proptest::sample::select;

/// Something that a watch tells.
#[derive(Clone, Debug)]
enum Seen {
    Pod(PodFacts),
    Workload(WorkloadFacts),
    /// The next machine that has not joined becomes Ready.
    Join,
    /// Nothing new, but a pass.
    Nothing,
}

/// All that there is to see of one owner with its pods.
fn need(number: usize, kind: &str, pods: u32) -> Vec<Seen> {
    let owner = format!("{kind}-{number}");
    let (mut seen, pod) = match kind {
        "Job" => {
            let job = workload(WorkloadKind::Job, &owner, pods);
            (vec![Seen::Workload(job)], owned(&owner, waiting()))
        }
        "StatefulSet" => {
            let set = workload(WorkloadKind::StatefulSet, &owner, pods);
            (vec![Seen::Workload(set)], owned(&owner, waiting()))
        }
        "Deployment" => {
            let deployment = workload(WorkloadKind::Deployment, &owner, pods);
            let replicas = format!("{owner}-rs");
            let set = replica_set(&replicas, &owner);
            (
                vec![Seen::Workload(deployment), Seen::Workload(set)],
                owned(&replicas, waiting()),
            )
        }
        "Custom" => (Vec::new(), owned(&owner, waiting())),
        _ => (Vec::new(), waiting()),
    };
    seen.extend((0..pods).map(|_| Seen::Pod(pod.clone())));
    seen
}

fn needs() -> impl Strategy<Value = (u32, Vec<Seen>)> {
    let kinds = vec!["Job", "StatefulSet", "Deployment", "Custom", "none"];
    proptest::collection::vec((select(kinds), 0..4_u32), 0..5).prop_flat_map(|needs| {
        let total = needs.iter().map(|(_, pods)| pods).sum();
        let mut seen: Vec<Seen> = Vec::new();
        for (number, (kind, pods)) in needs.into_iter().enumerate() {
            seen.extend(need(number, kind, pods));
        }
        seen.extend([
            Seen::Join,
            Seen::Join,
            Seen::Join,
            Seen::Nothing,
            Seen::Nothing,
        ]);
        (Just(total), Just(seen).prop_shuffle())
    })
}

/// The loop on a world: sees, decides, makes records.
struct Growth {
    world: World,
    pods: u32,
}

impl Growth {
    fn see(&mut self, seen: Seen) {
        let index = &mut self.world.index;
        match seen {
            Seen::Nothing => {}
            Seen::Pod(pod) => {
                self.pods += 1;
                index.apply_pod(ObjectKey::new("ci", format!("p{}", self.pods)), pod);
            }
            Seen::Workload(facts) => {
                index.apply_workload(ObjectKey::new("ci", facts.uid.as_str()), facts);
            }
            Seen::Join => {
                let mut machines = self.world.machines.iter_mut();
                let joins = machines.find(|machine| machine.phase == MachinePhase::Pending);
                if let Some(machine) = joins {
                    machine.phase = MachinePhase::Running;
                    machine.joined = Some(self.world.now);
                    index.apply_node(node_of(machine));
                }
            }
        }
    }

    /// Does as decided, and says how many records were made.
    fn pass(&mut self) {
        self.world.now += SignedDuration::from_millis(100);
        for action in self.world.decide().actions {
            let Action::Provision { ordinals } = action else {
                panic!("growing work made the pass {action:?}");
            };
            let created = self.world.now;
            let machines = ordinals.into_iter().map(|ordinal| ObservedMachine {
                created,
                ..pending(ordinal)
            });
            self.world.machines.extend(machines);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn passes_on_a_growing_observation_make_one_machine_for_one_need(
        (pods, seen) in needs(),
        pods_per_node in 1..4_u32,
    ) {
        let world = World::new().pods_per_node(pods_per_node).max_nodes(50).now(0);
        let mut growth = Growth { world, pods: 0 };
        let most = usize::try_from(pods.div_ceil(pods_per_node)).unwrap();
        for seen in seen {
            growth.see(seen);
            growth.pass();
            prop_assert!(growth.world.machines.len() <= most);
        }
        growth.pass();
        prop_assert_eq!(growth.world.machines.len(), most);
    }
}

#[test]
fn a_record_that_is_not_seen_yet_is_made_under_the_same_name_again() {
    let world = World::new().pods(1, waiting()).now(0);
    assert_eq!(world.actions(), ["provision 1"]);
    // The cache lags behind: the second create is refused by the name.
    assert_eq!(world.clone().now(1).actions(), ["provision 1"]);
    let seen = world.machine(ObservedMachine {
        created: at(0),
        ..pending(1)
    });
    assert!(seen.now(1).actions().is_empty());
}
