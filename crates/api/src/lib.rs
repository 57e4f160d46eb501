//! The custom resources of neap and the names it writes on objects.
//!
//! What it does: defines [`Cluster`] and [`Machine`] with their schemas, so
//! that the API server refuses what it can refuse; translates them to the
//! types of `neap-core` ([`convert`]); holds every label, annotation,
//! finalizer, condition and reason name ([`names`]).
//!
//! What it must never do: hold logic beyond conversion, talk to an API.
//!
//! Who calls it: every crate that reads or writes a record, and `xtask`, which
//! writes the definitions to `deploy/crds`.

pub mod cluster;
pub mod convert;
pub mod crd;
pub mod machine;
pub mod names;

pub use cluster::{Cluster, ClusterSpec, ClusterStatus};
pub use crd::crds;
pub use machine::{Machine, MachineSpec, MachineStatus};

/// A wire enum with the variants of one in `neap-core`, and the way between.
macro_rules! wire_enum {
    ($(#[$doc:meta])* $name:ident = $core:path { $($(#[$variant_doc:meta])* $variant:ident,)+ }) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord,
            serde::Serialize, serde::Deserialize, schemars::JsonSchema,
        )]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $name {
            /// As it is written in the resource.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => stringify!($variant),)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl From<$core> for $name {
            fn from(value: $core) -> Self {
                match value {
                    $(<$core>::$variant => Self::$variant,)+
                }
            }
        }

        impl From<$name> for $core {
            fn from(value: $name) -> Self {
                match value {
                    $($name::$variant => Self::$variant,)+
                }
            }
        }
    };
}
pub(crate) use wire_enum;
