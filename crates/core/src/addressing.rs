//! Addresses inside a Cluster's own network namespace. Each Cluster has its
//! own, so all Clusters look alike, and an ordinal is enough to address a node.

use std::fmt;
use std::net::Ipv4Addr;

/// Name of the bridge in a Cluster's network namespace.
pub const BRIDGE_NAME: &str = "br0";
/// Address of that bridge: the gateway of each node, and where the API listens.
pub const BRIDGE_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 250, 0, 1);
/// Port of the API on the bridge.
pub const API_PORT: u16 = 6443;
/// URL of the API as nodes of the Cluster reach it.
pub const API_SERVER_URL: &str = "https://10.250.0.1:6443";
/// Network of the bridge and the nodes on it.
pub const NODE_NETWORK: AddressRange = AddressRange {
    address: Ipv4Addr::new(10, 250, 0, 0),
    prefix: 24,
};
/// All pods of a Cluster.
pub const POD_NETWORK: AddressRange = AddressRange {
    address: Ipv4Addr::new(10, 251, 0, 0),
    prefix: 16,
};
/// All services of a Cluster.
pub const SERVICE_NETWORK: AddressRange = AddressRange {
    address: Ipv4Addr::new(10, 96, 0, 0),
    prefix: 16,
};
/// The service `kubernetes`.
pub const KUBERNETES_SERVICE: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 1);
/// The cluster DNS service.
pub const DNS_SERVICE: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 10);
/// Highest ordinal that has an address, and so the most that MaxNodes may be.
pub const MAX_ORDINAL: u32 = 240;

/// Host number of ordinal 0 on the node network; the numbers below are kept
/// for the bridge and services of neap.
const FIRST_HOST: u8 = 10;

/// A range of addresses, written as CIDR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AddressRange {
    /// Its first address.
    pub address: Ipv4Addr,
    /// Length of the prefix.
    pub prefix: u8,
}

impl AddressRange {
    /// Whether it holds this address.
    pub fn contains(&self, address: Ipv4Addr) -> bool {
        let mask = u32::MAX
            .checked_shl(32 - u32::from(self.prefix.min(32)))
            .unwrap_or(0);
        self.address.to_bits() & mask == address.to_bits() & mask
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

/// An ordinal has no place in the Cluster's network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("ordinal {ordinal} has no address: a cluster's network holds ordinals 1 to {MAX_ORDINAL}")]
pub struct AddressOrdinalError {
    /// The ordinal asked for.
    pub ordinal: u32,
}

/// Address of node `ordinal` on the bridge's network.
pub fn node_address(ordinal: u32) -> Result<Ipv4Addr, AddressOrdinalError> {
    let host = octet(ordinal)?
        .checked_add(FIRST_HOST)
        .ok_or(AddressOrdinalError { ordinal })?;
    let [a, b, c, _] = NODE_NETWORK.address.octets();
    Ok(Ipv4Addr::new(a, b, c, host))
}

/// Range of the pods on node `ordinal`.
pub fn pod_range(ordinal: u32) -> Result<AddressRange, AddressOrdinalError> {
    let third = octet(ordinal)?;
    let [a, b, _, _] = POD_NETWORK.address.octets();
    Ok(AddressRange {
        address: Ipv4Addr::new(a, b, third, 0),
        prefix: 24,
    })
}

fn octet(ordinal: u32) -> Result<u8, AddressOrdinalError> {
    match u8::try_from(ordinal) {
        Ok(octet) if (1..=MAX_ORDINAL).contains(&ordinal) => Ok(octet),
        _ => Err(AddressOrdinalError { ordinal }),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn first_and_last_ordinal_have_the_agreed_addresses() {
        assert_eq!(node_address(1).unwrap(), Ipv4Addr::new(10, 250, 0, 11));
        assert_eq!(node_address(240).unwrap(), Ipv4Addr::new(10, 250, 0, 250));
        assert_eq!(pod_range(1).unwrap().to_string(), "10.251.1.0/24");
        assert_eq!(pod_range(240).unwrap().to_string(), "10.251.240.0/24");
    }

    #[test]
    fn ordinals_outside_the_network_are_refused() {
        for ordinal in [0, 241, 255, 256, 257, u32::MAX] {
            assert_eq!(node_address(ordinal), Err(AddressOrdinalError { ordinal }));
            assert_eq!(pod_range(ordinal), Err(AddressOrdinalError { ordinal }));
        }
    }

    #[test]
    fn every_ordinal_has_an_address_of_its_own_inside_its_network() {
        let mut seen = BTreeSet::from([BRIDGE_ADDRESS]);
        for ordinal in 1..=MAX_ORDINAL {
            let address = node_address(ordinal).unwrap();
            assert!(NODE_NETWORK.contains(address), "{address}");
            assert!(POD_NETWORK.contains(pod_range(ordinal).unwrap().address));
            assert!(seen.insert(address), "{address} is given twice");
        }
    }

    #[test]
    fn networks_do_not_overlap_and_hold_their_services() {
        assert!(NODE_NETWORK.contains(BRIDGE_ADDRESS));
        assert!(SERVICE_NETWORK.contains(KUBERNETES_SERVICE));
        assert!(SERVICE_NETWORK.contains(DNS_SERVICE));
        assert!(!POD_NETWORK.contains(NODE_NETWORK.address));
        assert!(!SERVICE_NETWORK.contains(POD_NETWORK.address));
        assert_eq!(
            API_SERVER_URL,
            format!("https://{BRIDGE_ADDRESS}:{API_PORT}")
        );
    }
}
