//! `neap plan`: what may be written.

use camino::Utf8PathBuf;
use clap::Args;

#[derive(Args, Debug)]
#[command(after_help = PLAN_EXAMPLE)]
pub(crate) struct PlanArgs {
    /// Manifests: YAML of any number of documents, or JSON; `-` is the standard input
    #[arg(
        short = 'f',
        long = "filename",
        value_name = "FILE",
        required = true,
        num_args = 1
    )]
    pub(crate) files: Vec<Utf8PathBuf>,

    /// Machine classes
    #[arg(long = "class", value_name = "FILE", required = true, num_args = 1)]
    pub(crate) classes: Vec<Utf8PathBuf>,
}

const PLAN_EXAMPLE: &str = "\
A class:
  apiVersion: neap.dev/v1alpha1
  kind: MachineClass
  metadata: {name: small}
  spec:
    capacity: {cpu: 4, memory: 16Gi, pods: 110, ephemeralStorage: 50Gi}
    reserve: {cpu: 200m, memory: 512Mi}   # not for pods
    labels: {topology.kubernetes.io/zone: a}
    taints: []
    price: 0.12                           # of one machine
    limit: 10                             # most machines
    priority: 0                           # among classes that fit as many pods

Examples:
  neap plan -f pods.yaml --class small.yaml --class big.yaml
  kubectl get deploy -A -o json | neap plan -f - --class small.yaml -o json";
