//! Every bench there is. Another one is a module here and a line in `ALL`.

mod command_line;
mod distro;
mod fit;
mod startup;

use crate::Bench;

pub(crate) const ALL: &[Bench] = &[
    Bench {
        name: "command-line",
        about: "starting neap for a command",
        measure: command_line::measure,
    },
    Bench {
        name: "distro",
        about: "finding the distro when it was built before",
        measure: distro::measure,
    },
    Bench {
        name: "fit",
        about: "which machines pods need, on the workloads of the rivals",
        measure: fit::measure,
    },
    Bench {
        name: "startup",
        about: "from a Cluster to nodes, pods and zero again; what idles costs",
        measure: startup::measure,
    },
];
