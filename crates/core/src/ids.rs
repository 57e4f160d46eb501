//! Names and identities. One type per kind, so that none is taken for another.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Wraps the written form as it is.
            pub fn new(value: impl Into<String>) -> Self {
                Self(value.into())
            }

            /// The written form.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id! {
    /// UID of a Cluster record.
    ClusterUid
}
id! {
    /// UID of a Machine record.
    MachineUid
}
id! {
    /// Name of a Machine record, which is also the name of its Node.
    MachineName
}
id! {
    /// Name of a Node.
    NodeName
}
id! {
    /// UID of an object in a tenant: a pod, its owner, a Node.
    ObjectUid
}
id! {
    /// Identity of this installation of neap, written on all that it makes.
    InstallationId
}

impl MachineName {
    /// Name of the machine with this ordinal: `<cluster>-node<ordinal>`.
    pub fn for_ordinal(cluster: &str, ordinal: u32) -> Self {
        Self(format!("{cluster}{ORDINAL_MARK}{ordinal}"))
    }

    /// The Node that joins for this Machine bears the same name.
    pub fn node(&self) -> NodeName {
        NodeName(self.0.clone())
    }
}

/// Between the name of a cluster and the ordinal of a machine.
const ORDINAL_MARK: &str = "-node";

impl NodeName {
    /// The ordinal that a name of the form `<cluster>-node<ordinal>` takes,
    /// whichever the cluster is.
    pub fn ordinal(&self) -> Option<u32> {
        let (cluster, digits) = self.0.rsplit_once(ORDINAL_MARK)?;
        let ordinal: u32 = digits.parse().ok()?;
        // Only the form that we write: no sign and no zero in front.
        let ours = !cluster.is_empty() && ordinal > 0 && ordinal.to_string() == digits;
        ours.then_some(ordinal)
    }
}

macro_rules! short {
    ($name:ident) => {
        impl $name {
            /// First eight characters that a host-side name may hold:
            /// interfaces have 15 bytes.
            pub fn short(&self) -> &str {
                self.0.get(..8).unwrap_or(&self.0)
            }
        }
    };
}
short!(ClusterUid);
short!(MachineUid);

/// Namespace and name of an object in a tenant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectKey {
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Name within the namespace.
    pub name: String,
}

impl ObjectKey {
    /// Key of a namespaced object.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_and_its_node_are_named_after_cluster_and_ordinal() {
        let name = MachineName::for_ordinal("web", 3);
        assert_eq!(name.as_str(), "web-node3");
        assert_eq!(name.node().ordinal(), Some(3));
    }

    #[test]
    fn the_ordinal_is_read_from_our_form_of_a_name_alone() {
        let table = [
            ("web-node12", Some(12)),
            ("a-node1-node2", Some(2)),
            ("web-node0", None),
            ("web-node01", None),
            ("web-node+1", None),
            ("web-node", None),
            ("web-node1x", None),
            ("-node1", None),
            ("node1", None),
            ("web-node4294967296", None),
        ];
        for (name, ordinal) in table {
            assert_eq!(NodeName::new(name).ordinal(), ordinal, "{name}");
        }
    }

    #[test]
    fn short_forms_fit_the_names_of_interfaces() {
        let uid = MachineUid::new("0d5f3c1e-1111-2222-3333-444455556666");
        assert_eq!(uid.short(), "0d5f3c1e");
        assert_eq!(MachineUid::new("abc").short(), "abc");
    }
}
