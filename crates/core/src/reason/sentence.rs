//! The sentence that a reason is told in.

use super::{PausedWork, Reason};
use crate::duration::format_duration;
use std::cmp::Ordering;
use std::fmt;

/// A number with its noun.
struct Many(u32, &'static str);

impl fmt::Display for Many {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(number, noun) = self;
        let plural = if *number == 1 { "" } else { "s" };
        write!(f, "{number} {noun}{plural}")
    }
}

fn pods(number: u32) -> Many {
    Many(number, "pod")
}

fn nodes(number: u32) -> Many {
    Many(number, "node")
}

/// The verb that goes with a number of things.
fn verb(number: u32, one: &'static str, many: &'static str) -> &'static str {
    if number == 1 { one } else { many }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoWork { counted: 0 } => write!(f, "There is no work and no node."),
            Self::NoWork { counted } => write!(
                f,
                "There is no work; {} {} as the minimum.",
                nodes(*counted),
                verb(*counted, "stays", "stay")
            ),
            Self::Served { demand, counted } => write!(
                f,
                "{} {} enough for {}.",
                nodes(*counted),
                verb(*counted, "is", "are"),
                pods(*demand)
            ),
            Self::MaxNodesReached {
                demand,
                wanted,
                max_nodes,
            } => write!(
                f,
                "{} would fill {}, but MaxNodes is {max_nodes}.",
                pods(*demand),
                nodes(*wanted)
            ),
            Self::PlacesTaken {
                missing,
                records,
                max_nodes,
            } => write!(
                f,
                "{} {} missing, but {} {} the {max_nodes} of MaxNodes until those that leave are gone.",
                nodes(*missing),
                verb(*missing, "is", "are"),
                Many(*records, "machine"),
                verb(*records, "takes up", "take up")
            ),
            Self::OrdinalsTaken { missing, highest } => write!(
                f,
                "{} {} missing, but no name from node1 to node{highest} is free.",
                nodes(*missing),
                verb(*missing, "is", "are")
            ),
            Self::BackingOff { missing, retry_at } => write!(
                f,
                "{} {} missing, but making machines failed; the next try is at {retry_at:.0}.",
                nodes(*missing),
                verb(*missing, "is", "are")
            ),
            Self::AwaitingHold {
                since,
                until,
                leaving,
            } => write!(
                f,
                "There has been no work since {since:.0}; {} {} at {until:.0}, when the hold is over.",
                nodes(*leaving),
                verb(*leaving, "leaves", "leave")
            ),
            Self::AwaitingIdleHold {
                machine,
                until,
                counted,
                target,
            } => write!(
                f,
                "{} {} there and {target} wanted; {machine} is idle and leaves at {until:.0}, when its hold is over.",
                nodes(*counted),
                verb(*counted, "is", "are")
            ),
            Self::AwaitingReleaseHold {
                last_release,
                until,
                counted,
                target,
            } => write!(
                f,
                "{} {} there and {target} wanted; one leaves in a hold, the last at {last_release:.0}, the next at {until:.0}.",
                nodes(*counted),
                verb(*counted, "is", "are")
            ),
            Self::NoIdleNode { counted, target } => write!(
                f,
                "{} {} there and {target} wanted, but none is idle.",
                nodes(*counted),
                verb(*counted, "is", "are")
            ),
            Self::NodesComing { coming, counted } => write!(
                f,
                "{coming} of {} {} on the way.",
                nodes(*counted),
                verb(*coming, "is", "are")
            ),
            Self::AwaitingJoin {
                joined,
                counted,
                target,
            } => write!(
                f,
                "{} {} there and {target} wanted, but only {joined} {} joined; none leaves before more have.",
                nodes(*counted),
                verb(*counted, "is", "are"),
                verb(*joined, "has", "have")
            ),
            Self::ForeignRecord { node, machine } => write!(
                f,
                "Node {node} says that it is machine {machine}, which has no record; nothing is made or removed. A machine that is still there is kept: the way out is to delete the cluster, which ends it too."
            ),
            Self::ScaleUp {
                demand,
                pods_per_node,
                wanted,
                target,
                counted,
                new,
            } => {
                write!(
                    f,
                    "{} at {pods_per_node} a node {} {}",
                    pods(*demand),
                    verb(*demand, "fills", "fill"),
                    nodes(*wanted)
                )?;
                match target.cmp(wanted) {
                    Ordering::Less => write!(f, ", MaxNodes allows {target}")?,
                    Ordering::Greater => write!(f, ", MinNodes keeps {target}")?,
                    Ordering::Equal => {}
                }
                write!(
                    f,
                    "; {counted} {} there, so {new} {} made.",
                    verb(*counted, "is", "are"),
                    verb(*new, "is", "are")
                )
            }
            Self::WorkCameBack {
                target,
                counted,
                undone,
            } => write!(
                f,
                "{} {} wanted and {counted} {} there, so {undone} that {} leaving {} taken back.",
                nodes(*target),
                verb(*target, "is", "are"),
                verb(*counted, "is", "are"),
                verb(*undone, "was", "were"),
                verb(*undone, "is", "are")
            ),
            Self::NodeIdle {
                machine,
                since,
                counted,
                target,
            } => write!(
                f,
                "{machine} has held no work since {since:.0}, and {} {} there where {target} {} wanted.",
                nodes(*counted),
                verb(*counted, "is", "are"),
                verb(*target, "is", "are")
            ),
            Self::WorkEnded {
                since,
                hold,
                leaving,
                staying,
            } => write!(
                f,
                "There has been no work since {since:.0}, longer than the hold of {}: {} {}, {staying} {}.",
                format_duration(*hold),
                nodes(*leaving),
                verb(*leaving, "leaves", "leave"),
                verb(*staying, "stays", "stay")
            ),
            Self::MachineLost { machine, power } => {
                write!(f, "{machine} is in state {power:?} and does not come back.")
            }
            Self::LostBeforeJoin { machine, power } => {
                write!(
                    f,
                    "{machine} went into state {power:?} before its node was ready."
                )
            }
            Self::JoinDeadlinePassed {
                machine,
                created,
                deadline,
            } => write!(
                f,
                "The node of {machine}, made at {created}, was not ready within {}.",
                format_duration(*deadline)
            ),
            Self::NodeVanished { machine } => write!(f, "The node of {machine} was deleted."),
            Self::StoppedWithoutWork {
                machine,
                power,
                since,
            } => write!(
                f,
                "{machine} is in state {power:?}, and there has been no work since {since:.0}, longer than the hold."
            ),
            Self::PlaceNeeded {
                machine,
                power,
                max_nodes,
            } => write!(
                f,
                "{machine} is in state {power:?}, and work needs its place: MaxNodes is {max_nodes}."
            ),
            Self::StoppedWhileLeaving { machine, power } => write!(
                f,
                "{machine} went into state {power:?} while it was leaving."
            ),
            Self::PodArrived { machine, pod } => {
                write!(
                    f,
                    "{machine} stays: pod {pod} came to it while it was leaving."
                )
            }
            Self::PodLateBound { machine, pod } => write!(
                f,
                "Pod {pod} was bound to {machine} after that had left, and never started."
            ),
            Self::PodLost { machine, pod } => write!(f, "Pod {pod} is lost with {machine}."),
            Self::RoomGrown {
                machine,
                pods_per_node,
            } => write!(f, "{machine} has room for {} now.", pods(*pods_per_node)),
            Self::DeletedByUser { machine } => write!(f, "{machine} was deleted by its user."),
            Self::VersionNotBuilt { version, built } => write!(
                f,
                "Kubernetes {version} is not built on this machine, where there is {}; nothing is started. Make a cluster of a version that there is.",
                built.join(" and ")
            ),
            Self::ControlPlaneStarting { since } => {
                write!(
                    f,
                    "The control plane was started at {since:.0} and does not answer yet."
                )
            }
            Self::ApiNotReady => write!(f, "The API answers and is not ready yet."),
            Self::ServiceAccountMissing => {
                write!(
                    f,
                    "The API is ready; the default ServiceAccount is not there yet."
                )
            }
            Self::ControlPlaneFailed {
                how,
                failures,
                retry_at,
            } => write!(
                f,
                "The control plane failed {}, last with: {how}; the next try is at {retry_at:.0}.",
                Many(*failures, "time")
            ),
            Self::ControlPlaneReady => write!(f, "The API answers and takes pods."),
            Self::ControlPlaneHung { since } => write!(
                f,
                "The control plane has not answered since {since:.0}, and is ended and started again."
            ),
            Self::ClusterPaused { waiting } => write!(
                f,
                "The cluster is paused: {} until it is resumed.",
                match waiting {
                    PausedWork::Scaling => "no machine comes or goes",
                    PausedWork::Stop => "its stop waits",
                    PausedWork::Deletion => "its deletion waits",
                }
            ),
            Self::ClusterStopping { machines: 0 } => {
                write!(f, "No machine is left; the control plane stops.")
            }
            Self::ClusterStopping { machines } => write!(
                f,
                "The cluster stops: {} {} to go before the control plane.",
                Many(*machines, "machine"),
                verb(*machines, "has", "have")
            ),
            Self::ClusterStopped => {
                write!(
                    f,
                    "The cluster is stopped: nothing of it runs, and its data is kept."
                )
            }
            Self::StoppedWithCluster { machine } => {
                write!(f, "{machine} goes because its cluster stops.")
            }
            Self::MachinesLeft { machines: 0 } => {
                write!(f, "No machine is left; the control plane goes.")
            }
            Self::MachinesLeft { machines } => write!(
                f,
                "{} {} to go before the control plane.",
                Many(*machines, "machine"),
                verb(*machines, "has", "have")
            ),
            Self::NothingLeft => write!(f, "Nothing of the cluster is left."),
        }
    }
}
