//! What a pod asks for, and the arithmetic that makes one sum of its
//! containers.

use crate::quantity::Quantity;
use std::collections::BTreeMap;

/// Amounts by resource, as they are written in an object.
pub type Amounts = BTreeMap<String, Quantity>;

/// Name of the resource.
pub const CPU: &str = "cpu";
/// Name of the resource.
pub const MEMORY: &str = "memory";
/// Name of the resource.
pub const EPHEMERAL_STORAGE: &str = "ephemeral-storage";
/// Name of the resource: the places for pods on a node.
pub const PODS: &str = "pods";

/// Resources in the units that the scheduler counts in: CPU in thousandths,
/// everything else whole, both rounded up.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resources {
    /// Thousandths of a CPU.
    pub cpu_milli: u64,
    /// Bytes.
    pub memory: u64,
    /// Bytes.
    pub ephemeral_storage: u64,
    /// Extended resources, huge pages and their like.
    pub scalars: BTreeMap<String, u64>,
}

impl Resources {
    /// Rounds amounts; what the scheduler does not count is left out.
    pub fn of(amounts: &Amounts) -> Self {
        let mut resources = Self::default();
        for (name, quantity) in amounts {
            match name.as_str() {
                CPU => resources.cpu_milli = quantity.cpu_milli(),
                MEMORY => resources.memory = quantity.bytes(),
                EPHEMERAL_STORAGE => resources.ephemeral_storage = quantity.bytes(),
                other if is_scalar(other) => {
                    resources.scalars.insert(other.to_owned(), quantity.bytes());
                }
                _ => {}
            }
        }
        resources
    }
}

/// Names with a domain, and huge pages.
fn is_scalar(name: &str) -> bool {
    let quota = name.starts_with("requests.");
    name.starts_with("hugepages-")
        || name.starts_with("attachable-volumes-")
        || name.contains("kubernetes.io/")
        || (name.contains('/') && !quota)
}

/// An init container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InitContainer {
    /// It ends before the next one starts.
    Ordinary(Amounts),
    /// It runs on beside the containers.
    Sidecar(Amounts),
}

/// What a pod is made of, as far as its request goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodRequest {
    /// Its containers.
    pub containers: Vec<Amounts>,
    /// Its init containers, in their order.
    pub init_containers: Vec<InitContainer>,
    /// Requests of the pod as a whole.
    pub pod_level: Amounts,
    /// What its runtime class adds.
    pub overhead: Amounts,
}

impl PodRequest {
    /// The request that a node must have room for.
    ///
    /// Containers run together and sidecars with them; an ordinary init
    /// container runs with the sidecars before it. Of both sums the larger
    /// counts, for each resource by itself. What the pod asks for as a whole
    /// takes the place of that sum.
    pub fn effective(&self) -> Amounts {
        let mut running = Amounts::new();
        for container in &self.containers {
            add(&mut running, container);
        }
        let mut sidecars = Amounts::new();
        let mut starting = Amounts::new();
        for container in &self.init_containers {
            match container {
                InitContainer::Sidecar(amounts) => {
                    add(&mut running, amounts);
                    add(&mut sidecars, amounts);
                    raise(&mut starting, &sidecars);
                }
                InitContainer::Ordinary(amounts) => {
                    let mut together = sidecars.clone();
                    add(&mut together, amounts);
                    raise(&mut starting, &together);
                }
            }
        }
        raise(&mut running, &starting);
        for (name, amount) in &self.pod_level {
            if name == CPU || name == MEMORY || name.starts_with("hugepages-") {
                running.insert(name.clone(), *amount);
            }
        }
        add(&mut running, &self.overhead);
        running
    }
}

fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let total = sum.entry(name.clone()).or_default();
        *total = Quantity::from_nano(total.nano().saturating_add(amount.nano()));
    }
}

fn raise(largest: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        let entry = largest.entry(name.clone()).or_default();
        *entry = (*entry).max(*amount);
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn cpu(amount: &str) -> Amounts {
        Amounts::from([(CPU.to_owned(), Quantity::parse(amount).unwrap())])
    }

    #[test]
    fn an_init_container_runs_beside_the_sidecars_before_it() {
        use InitContainer::{Ordinary, Sidecar};
        let request = PodRequest {
            containers: vec![cpu("1")],
            init_containers: vec![
                Ordinary(cpu("5")),
                Sidecar(cpu("1")),
                Sidecar(cpu("2")),
                Ordinary(cpu("5")),
                Sidecar(cpu("3")),
            ],
            ..PodRequest::default()
        };
        assert_eq!(Resources::of(&request.effective()).cpu_milli, 8_000);
    }

    #[test]
    fn fractions_are_summed_before_they_are_rounded() {
        let request = PodRequest {
            containers: vec![cpu("500u"), cpu("500u")],
            overhead: cpu("250u"),
            ..PodRequest::default()
        };
        assert_eq!(Resources::of(&request.effective()).cpu_milli, 2);
    }

    #[test]
    fn a_name_without_a_domain_is_not_counted() {
        for (name, counted) in [
            ("storage", false),
            ("pods", false),
            ("requests.example.com/x", false),
            ("example.com/x", true),
            ("kubernetes.io/x", true),
            ("hugepages-2Mi", true),
        ] {
            assert_eq!(is_scalar(name), counted, "{name}");
        }
    }
}
