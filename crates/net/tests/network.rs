//! Namespaces, bridges and links, for real. Needs root.

#![expect(clippy::unwrap_used, reason = "tests")]

use neap_net::{
    ClusterNetwork, Ipv4Range, NetworkNamespace, NodeLink, attach_node, detach_node, dial,
    ensure_cluster_network, list, observe_links, observe_routes,
};
use std::io::{ErrorKind, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::MetadataExt;
use std::time::Duration;
use tokio::io::AsyncReadExt;

/// Longer than anything here takes; shorter than a neighbour that has to be
/// given up takes.
const DEADLINE: Duration = Duration::from_secs(10);

const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 250, 0, 1);
const PORT: u16 = 6443;

/// Namespaces of a test, which go with it.
struct Place {
    prefix: String,
}

impl Place {
    fn new(test: &str) -> Self {
        Self {
            prefix: format!("neap-test-{}-{test}-", std::process::id()),
        }
    }

    fn namespace(&self, name: &str) -> NetworkNamespace {
        NetworkNamespace::new(format!("{}{name}", self.prefix))
    }

    async fn made(&self, name: &str) -> NetworkNamespace {
        let namespace = self.namespace(name);
        namespace.ensure().await.unwrap();
        namespace
    }

    /// A namespace with a bridge.
    async fn cluster(&self, name: &str) -> NetworkNamespace {
        let namespace = self.made(name).await;
        let network = ClusterNetwork {
            namespace: namespace.clone(),
            address: GATEWAY,
            prefix: 24,
        };
        ensure_cluster_network(&network).await.unwrap();
        namespace
    }

    /// A namespace that is attached to that bridge.
    async fn node(&self, cluster: &NetworkNamespace, name: &str, ordinal: u8) -> NodeLink {
        let link = NodeLink {
            cluster: cluster.clone(),
            node: self.made(name).await,
            link_name: format!("v{name}"),
            address: Ipv4Addr::new(10, 250, 0, 10 + ordinal),
            prefix: 24,
            gateway: GATEWAY,
            pod_range: Ipv4Range::new(Ipv4Addr::new(10, 251, ordinal, 0), 24).unwrap(),
        };
        attach_node(&link).await.unwrap();
        link
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for namespace in list(&self.prefix).unwrap() {
            namespace.remove().unwrap();
        }
    }
}

/// Answers every connection inside the namespace with its own name and the
/// address of the peer.
async fn answer(namespace: &NetworkNamespace, address: Ipv4Addr, port: u16) {
    let listener = namespace
        .run(move || TcpListener::bind((address, port)))
        .await
        .unwrap();
    let (listener, name) = (listener.unwrap(), namespace.name().to_owned());
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let peer = connection.peer_addr().unwrap().ip();
            connection
                .write_all(format!("{name} to {peer}").as_bytes())
                .unwrap();
        }
    });
}

async fn ask(from: &NetworkNamespace, address: Ipv4Addr, port: u16) -> std::io::Result<String> {
    let asking = async {
        let mut connection = dial(from, SocketAddr::from((address, port))).await?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await?;
        Ok(answer)
    };
    tokio::time::timeout(DEADLINE, asking)
        .await
        .expect("an answer in time")
}

/// Lets the namespace answer for one more address.
async fn add_address(namespace: &NetworkNamespace, address: Ipv4Addr) {
    let add = move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .unwrap();
        runtime.block_on(async {
            let (connection, handle, _) = rtnetlink::new_connection().unwrap();
            tokio::spawn(connection);
            // The loopback interface is the first in every namespace.
            handle
                .address()
                .add(1, address.into(), 32)
                .execute()
                .await
                .unwrap();
        });
    };
    namespace.run(add).await.unwrap();
}

#[tokio::test]
async fn a_namespace_comes_and_goes_by_name() {
    let place = Place::new("names");
    let namespace = place.namespace("a");
    assert!(!namespace.exists());
    namespace.ensure().await.unwrap();
    assert!(namespace.exists());
    let number = || namespace.path().metadata().unwrap().ino();
    let made = number();
    namespace.ensure().await.unwrap();
    assert_eq!(number(), made, "it was made twice");
    let own = std::fs::metadata("/proc/self/ns/net").unwrap().ino();
    assert_ne!(made, own);
    let inside = namespace
        .run(|| std::fs::metadata("/proc/thread-self/ns/net"))
        .await
        .unwrap();
    assert_eq!(inside.unwrap().ino(), made);
    let thread = std::fs::metadata("/proc/thread-self/ns/net").unwrap().ino();
    assert_eq!(thread, own, "a thread of the runtime has moved");
    assert_eq!(
        list(&place.prefix).unwrap(),
        std::slice::from_ref(&namespace)
    );

    namespace.remove().unwrap();
    namespace.remove().unwrap();
    assert!(!namespace.exists());
    assert_eq!(list(&place.prefix).unwrap(), []);
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(&place.prefix));
}

#[tokio::test]
async fn a_name_that_a_crash_left_is_filled_and_removed() {
    let place = Place::new("crash");
    let other = place.made("other").await;
    let namespace = place.namespace("a");
    std::fs::write(namespace.path(), "").unwrap();
    assert!(!namespace.exists());
    assert_eq!(list(&place.prefix).unwrap(), [namespace.clone(), other]);
    namespace.ensure().await.unwrap();
    assert!(namespace.exists());

    let bare = place.namespace("b");
    std::fs::write(bare.path(), "").unwrap();
    bare.remove().unwrap();
    assert!(!bare.path().exists());
}

#[tokio::test]
async fn names_that_are_paths_are_refused() {
    for name in ["", ".", "..", "a/b", "../run"] {
        let namespace = NetworkNamespace::new(name);
        let refused = [
            namespace.ensure().await.unwrap_err().source.kind(),
            namespace.remove().unwrap_err().source.kind(),
            namespace.run(|| ()).await.unwrap_err().source.kind(),
        ];
        assert_eq!(refused, [ErrorKind::InvalidInput; 3], "{name}");
    }
}

#[tokio::test]
async fn many_are_made_at_once() {
    let place = Place::new("many");
    let same = place.namespace("same");
    let names: Vec<_> = (0..8)
        .map(|number| place.namespace(&number.to_string()))
        .collect();
    let all = names.iter().chain(std::iter::repeat_n(&same, 4));
    futures::future::join_all(all.map(|namespace| async {
        namespace.ensure().await.unwrap();
        assert!(namespace.exists());
    }))
    .await;
    assert_eq!(list(&place.prefix).unwrap().len(), names.len() + 1);
}

#[tokio::test]
async fn two_clusters_with_the_same_addresses_do_not_see_each_other() {
    let place = Place::new("two");
    let (a, b) = (place.cluster("a").await, place.cluster("b").await);
    answer(&a, GATEWAY, PORT).await;
    answer(&b, GATEWAY, PORT).await;
    answer(&b, GATEWAY, PORT + 1).await;
    let said = |namespace: &NetworkNamespace| format!("{} to {GATEWAY}", namespace.name());
    assert_eq!(ask(&a, GATEWAY, PORT).await.unwrap(), said(&a));
    assert_eq!(ask(&b, GATEWAY, PORT).await.unwrap(), said(&b));
    let refused = ask(&a, GATEWAY, PORT + 1).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);

    // Nodes with the same name and address, too.
    let (in_a, in_b) = (place.node(&a, "na", 1).await, place.node(&b, "nb", 1).await);
    assert_eq!(in_a.address, in_b.address);
    let peer = |namespace: &NetworkNamespace| format!("{} to {}", namespace.name(), in_a.address);
    assert_eq!(ask(&in_a.node, GATEWAY, PORT).await.unwrap(), peer(&a));
    assert_eq!(ask(&in_b.node, GATEWAY, PORT).await.unwrap(), peer(&b));
}

#[tokio::test]
async fn dialling_from_an_absent_namespace_says_so() {
    let place = Place::new("absent");
    let error = ask(&place.namespace("a"), GATEWAY, PORT).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains(&place.prefix), "{error}");
    assert_eq!(observe_links(&place.namespace("a")).await.unwrap(), [""; 0]);
    assert_eq!(observe_routes(&place.namespace("a")).await.unwrap(), []);
}

#[tokio::test]
async fn attaching_twice_is_attaching_once() {
    let place = Place::new("twice");
    let cluster = place.cluster("c").await;
    let link = place.node(&cluster, "n", 3).await;
    let observe = async || {
        (
            observe_links(&cluster).await.unwrap(),
            observe_routes(&cluster).await.unwrap(),
            observe_links(&link.node).await.unwrap(),
            observe_routes(&link.node).await.unwrap(),
        )
    };
    let once = observe().await;
    assert_eq!(once.0, ["br0", "lo", "vn"]);
    assert_eq!(once.1, [(link.pod_range, link.address)]);
    assert_eq!(once.2, ["eth0", "lo"]);
    assert_eq!(once.3, [(Ipv4Range::ALL, GATEWAY)]);
    place.cluster("c").await;
    attach_node(&link).await.unwrap();
    assert_eq!(observe().await, once);
}

#[tokio::test]
async fn detaching_leaves_no_link_and_no_route() {
    let place = Place::new("detach");
    let cluster = place.cluster("c").await;
    let (first, second) = (
        place.node(&cluster, "n1", 1).await,
        place.node(&cluster, "n2", 2).await,
    );
    detach_node(&first).await.unwrap();
    detach_node(&first).await.unwrap();
    assert_eq!(observe_links(&cluster).await.unwrap(), ["br0", "lo", "vn2"]);
    assert_eq!(
        observe_routes(&cluster).await.unwrap(),
        [(second.pod_range, second.address)]
    );
    assert_eq!(observe_links(&first.node).await.unwrap(), ["lo"]);
    // Attached again after that, it is as before.
    attach_node(&first).await.unwrap();
    assert_eq!(observe_routes(&cluster).await.unwrap().len(), 2);

    cluster.remove().unwrap();
    detach_node(&first).await.unwrap();
}

#[tokio::test]
async fn half_a_link_is_made_anew() {
    let place = Place::new("half");
    let cluster = place.cluster("c").await;
    let link = place.node(&cluster, "n", 1).await;
    answer(&cluster, GATEWAY, PORT).await;
    // The other end goes with its namespace, or belongs to an earlier one.
    let moved = NodeLink {
        node: place.made("m").await,
        ..link.clone()
    };
    attach_node(&moved).await.unwrap();
    assert_eq!(observe_links(&link.node).await.unwrap(), ["lo"]);
    let peer = format!("{} to {}", cluster.name(), link.address);
    assert_eq!(ask(&moved.node, GATEWAY, PORT).await.unwrap(), peer);
}

#[tokio::test]
async fn pods_reach_each_other_through_the_cluster_alone() {
    let place = Place::new("pods");
    let cluster = place.cluster("c").await;
    let (first, second) = (
        place.node(&cluster, "n1", 1).await,
        place.node(&cluster, "n2", 2).await,
    );
    let pod = Ipv4Addr::new(10, 251, 2, 7);
    add_address(&second.node, pod).await;
    answer(&second.node, pod, 80).await;
    let from_node = format!("{} to {}", second.node.name(), first.address);
    assert_eq!(ask(&first.node, pod, 80).await.unwrap(), from_node);
    let from_cluster = format!("{} to {GATEWAY}", second.node.name());
    assert_eq!(ask(&cluster, pod, 80).await.unwrap(), from_cluster);

    detach_node(&second).await.unwrap();
    let error = dial(&cluster, SocketAddr::from((pod, 80)))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NetworkUnreachable);
}

#[tokio::test]
async fn the_next_node_with_an_address_is_reached_at_once() {
    let place = Place::new("next");
    let cluster = place.cluster("c").await;
    let other = place.node(&cluster, "o", 9).await;
    for name in ["n1", "n2", "n3"] {
        let link = place.node(&cluster, name, 1).await;
        answer(&link.node, link.address, PORT).await;
        for from in [&cluster, &other.node] {
            // A neighbour that is remembered wrongly costs seconds.
            let at_once = Duration::from_secs(1);
            let answer = tokio::time::timeout(at_once, ask(from, link.address, PORT)).await;
            let answer = answer.expect("an answer at once").unwrap();
            assert!(answer.starts_with(link.node.name()), "{answer}");
        }
        detach_node(&link).await.unwrap();
        link.node.remove().unwrap();
    }
}

#[tokio::test]
async fn the_host_keeps_its_own_network() {
    let interfaces = || {
        let entries = std::fs::read_dir("/sys/class/net").unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let forwards = || std::fs::read_to_string("/proc/sys/net/ipv4/ip_forward").unwrap();
    let before = (interfaces(), forwards());
    let place = Place::new("host");
    let cluster = place.cluster("c").await;
    place.node(&cluster, "n", 1).await;
    assert_eq!((interfaces(), forwards()), before);
    let inside = cluster.run(forwards).await.unwrap();
    assert_eq!(inside.trim(), "1");
}
