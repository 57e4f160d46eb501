//! The link of a node to the bridge of its cluster.

use crate::cluster::{BRIDGE, ROUTER};
use crate::netlink::{Netlink, hardware_address, inside};
use crate::{ChangeNetworkError, Ipv4Range, NetworkNamespace};
use rtnetlink::packet_route::link::{InfoData, InfoVeth};
use rtnetlink::{LinkMessageBuilder, LinkUnspec, LinkVeth};
use rustix::fd::AsRawFd;
use std::io;
use std::net::Ipv4Addr;

/// Name of a node's end.
const INTERFACE: &str = "eth0";

/// What a node is attached by. Both namespaces must exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeLink {
    /// Namespace with the bridge.
    pub cluster: NetworkNamespace,
    /// Namespace of the node.
    pub node: NetworkNamespace,
    /// Name of the end at the bridge; at most 15 bytes.
    pub link_name: String,
    /// Address of the node's end, `eth0`.
    pub address: Ipv4Addr,
    /// Length of the prefix of that address.
    pub prefix: u8,
    /// Address of the bridge, the node's default route.
    pub gateway: Ipv4Addr,
    /// The pods on this node, which the cluster routes to it.
    pub pod_range: Ipv4Range,
}

/// Connects the node with the bridge and routes its pods to it.
pub async fn attach_node(link: &NodeLink) -> Result<(), ChangeNetworkError> {
    let link = link.clone();
    let namespaces = [&link.cluster.clone(), &link.node.clone()];
    inside(namespaces, move |[cluster, node]| async move {
        node.set(&ROUTER)?;
        node.set_up("lo").await?;
        connect(&link, &cluster, &node).await?;
        let index = node.existing(INTERFACE).await?;
        node.add_address(index, link.address, link.prefix).await?;
        node.change_link(INTERFACE, LinkUnspec::new_with_index(index).up().build())
            .await?;
        node.add_route(Ipv4Range::ALL, link.gateway).await?;
        cluster.add_route(link.pod_range, link.address).await?;
        // In the order in which one waits for the other.
        node.wait_for_carrier(INTERFACE).await?;
        cluster.wait_for_carrier(&link.link_name).await?;
        cluster.wait_for_carrier(BRIDGE).await
    })
    .await
}

/// Makes the pair of interfaces unless both ends are where they belong.
async fn connect(
    link: &NodeLink,
    cluster: &Netlink,
    node: &Netlink,
) -> Result<(), ChangeNetworkError> {
    let bridge = cluster.existing(BRIDGE).await?;
    let ends = (
        cluster.index(&link.link_name).await?,
        node.index(INTERFACE).await?,
    );
    if let (Some(index), Some(_)) = ends {
        let end = LinkUnspec::new_with_index(index)
            .controller(bridge)
            .up()
            .build();
        return cluster.change_link(&link.link_name, end).await;
    }
    // One end alone is of another pair.
    cluster.remove_link(&link.link_name).await?;
    node.remove_link(INTERFACE).await?;

    let target = link.node.open().map_err(|source| ChangeNetworkError {
        operation: "open",
        thing: "the other end".to_owned(),
        namespace: link.node.name().to_owned(),
        source,
    })?;
    let peer = LinkMessageBuilder::<LinkUnspec>::new()
        .name(INTERFACE)
        .address(hardware_address(link.address))
        .setns_by_fd(target.as_raw_fd())
        .build();
    let pair = LinkVeth::new(&link.link_name, INTERFACE)
        .set_info_data(InfoData::Veth(InfoVeth::Peer(peer)))
        .controller(bridge)
        .up()
        .build();
    cluster.add_link(&link.link_name, pair).await
}

/// Removes link and route; what is absent already, namespaces included, is
/// well.
pub async fn detach_node(link: &NodeLink) -> Result<(), ChangeNetworkError> {
    let work = {
        let link = link.clone();
        move |[cluster]: [Netlink; 1]| async move {
            cluster.remove_route(link.pod_range, link.address).await?;
            cluster.remove_link(&link.link_name).await
        }
    };
    match inside([&link.cluster], work).await {
        Err(error) if error.source.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
