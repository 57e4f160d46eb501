//! The network of a cluster: one bridge in one namespace, which is the only
//! router between its nodes.

use crate::netlink::{hardware_address, inside};
use crate::{ChangeNetworkError, NetworkNamespace};
use rtnetlink::packet_route::link::BridgeStpState;
use rtnetlink::{LinkBridge, LinkUnspec};
use std::net::Ipv4Addr;

/// Name of the bridge.
pub(crate) const BRIDGE: &str = "br0";

/// What a namespace that routes is set to. Interfaces made later take over
/// `default`. There is no second family, and with it no solicitations and no
/// waiting for duplicates.
pub(crate) const ROUTER: [(&str, &str); 6] = [
    ("net/ipv4/ip_forward", "1"),
    ("net/ipv4/conf/all/rp_filter", "0"),
    ("net/ipv4/conf/default/rp_filter", "0"),
    ("net/ipv4/conf/all/send_redirects", "0"),
    ("net/ipv4/conf/default/send_redirects", "0"),
    ("net/ipv6/conf/default/disable_ipv6", "1"),
];

/// What the network of a cluster is made from. The namespace must exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterNetwork {
    /// Where the bridge is.
    pub namespace: NetworkNamespace,
    /// Address of the bridge.
    pub address: Ipv4Addr,
    /// Length of the prefix of that address.
    pub prefix: u8,
}

/// Makes the bridge `br0` with its address, and lets the namespace route.
pub async fn ensure_cluster_network(network: &ClusterNetwork) -> Result<(), ChangeNetworkError> {
    let ClusterNetwork {
        address, prefix, ..
    } = *network;
    inside([&network.namespace], move |[cluster]| async move {
        cluster.set(&ROUTER)?;
        cluster.set_up("lo").await?;
        let index = match cluster.index(BRIDGE).await? {
            Some(index) => index,
            None => {
                // Its own hardware address, for otherwise it takes over that
                // of a port and changes as nodes come and go.
                let bridge = LinkBridge::new(BRIDGE)
                    .stp_state(BridgeStpState::Disabled)
                    .forward_delay(0)
                    .mcast_snooping(false)
                    .address(hardware_address(address))
                    .build();
                cluster.add_link(BRIDGE, bridge).await?;
                cluster.existing(BRIDGE).await?
            }
        };
        cluster.add_address(index, address, prefix).await?;
        cluster
            .change_link(BRIDGE, LinkUnspec::new_with_index(index).up().build())
            .await
    })
    .await
}
