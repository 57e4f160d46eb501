//! Talking to the kernel from inside namespaces.

use crate::namespace::{enter, on_thread};
use crate::{ChangeNetworkError, Ipv4Range, NetworkNamespace};
use futures::TryStreamExt;
use rtnetlink::packet_route::link::{LinkAttribute, LinkMessage, State};
use rtnetlink::packet_route::route::{RouteAddress, RouteAttribute, RouteMessage};
use rtnetlink::{Handle, LinkUnspec, RouteMessageBuilder};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// Mostly one question is enough: the kernel makes up for what is due before
/// it answers.
const CARRIER_PAUSE: Duration = Duration::from_millis(1);
const CARRIER_DEADLINE: Duration = Duration::from_secs(5);

/// The network of one namespace. It stays on the thread that opened it.
pub(crate) struct Netlink {
    pub(crate) namespace: NetworkNamespace,
    descriptor: OwnedFd,
    handle: Handle,
}

/// Does some work inside namespaces, on a thread that ends with it. A socket
/// stays in the namespace that it was made in, so one thread serves several.
pub(crate) async fn inside<const N: usize, T, F, W>(
    namespaces: [&NetworkNamespace; N],
    work: F,
) -> Result<T, ChangeNetworkError>
where
    T: Send + 'static,
    F: FnOnce([Netlink; N]) -> W + Send + 'static,
    W: Future<Output = Result<T, ChangeNetworkError>>,
{
    let first = namespaces
        .first()
        .map_or("", |namespace| namespace.name())
        .to_owned();
    let namespaces = namespaces.map(Clone::clone);
    let name = first.clone();
    let failed = move |source| ChangeNetworkError {
        operation: "work",
        thing: "on a thread".to_owned(),
        namespace: name,
        source,
    };
    let run = {
        let failed = failed.clone();
        move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.map_err(failed)?.block_on(async {
                let mut opened = Vec::with_capacity(N);
                for namespace in namespaces {
                    opened.push(Netlink::open(namespace)?);
                }
                match <[Netlink; N]>::try_from(opened) {
                    Ok(opened) => work(opened).await,
                    Err(_) => unreachable!("as many were opened as were asked for"),
                }
            })
        }
    };
    on_thread(&first, run).await.map_err(failed)?
}

impl Netlink {
    fn open(namespace: NetworkNamespace) -> Result<Self, ChangeNetworkError> {
        let open = || {
            let descriptor = namespace.open()?;
            enter(&descriptor)?;
            let (connection, handle, _) = rtnetlink::new_connection()?;
            tokio::spawn(connection);
            Ok((descriptor, handle))
        };
        match open() {
            Ok((descriptor, handle)) => Ok(Self {
                namespace,
                descriptor,
                handle,
            }),
            Err(source) => Err(ChangeNetworkError {
                operation: "open",
                thing: "a socket".to_owned(),
                namespace: namespace.name().to_owned(),
                source,
            }),
        }
    }

    fn failed<E: IntoIo>(
        &self,
        operation: &'static str,
        thing: impl ToString,
    ) -> impl FnOnce(E) -> ChangeNetworkError {
        let (thing, namespace) = (thing.to_string(), self.namespace.name().to_owned());
        move |error| {
            let source = error.into_io();
            ChangeNetworkError {
                operation,
                thing,
                namespace,
                source,
            }
        }
    }

    /// Writes settings, `net/ipv4/ip_forward` and the like. One that the
    /// kernel does not have is left out.
    pub(crate) fn set(&self, settings: &[(&str, &str)]) -> Result<(), ChangeNetworkError> {
        enter(&self.descriptor).map_err(self.failed("enter", "it"))?;
        for (setting, value) in settings {
            match std::fs::write(format!("/proc/sys/{setting}"), value) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(self.failed("set", setting)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Number of an interface, if there is one of this name.
    pub(crate) async fn index(&self, name: &str) -> Result<Option<u32>, ChangeNetworkError> {
        Ok(self.link(name).await?.map(|link| link.header.index))
    }

    async fn link(&self, name: &str) -> Result<Option<LinkMessage>, ChangeNetworkError> {
        let links = self.handle.link().get().match_name(name).execute();
        let found: Result<Vec<LinkMessage>, _> = links.try_collect().await;
        match found.map_err(IntoIo::into_io) {
            Ok(links) => Ok(links.into_iter().next()),
            Err(error) if is(&error, &[Errno::NODEV]) => Ok(None),
            Err(error) => Err(self.failed("find", name)(error)),
        }
    }

    /// Waits until an interface that was set up carries packets. The kernel
    /// sees to that afterwards, and drops what is sent before.
    pub(crate) async fn wait_for_carrier(&self, name: &str) -> Result<(), ChangeNetworkError> {
        let waiting = async {
            while !self
                .link(name)
                .await?
                .is_some_and(|link| is_operational(&link))
            {
                tokio::time::sleep(CARRIER_PAUSE).await;
            }
            Ok(())
        };
        match tokio::time::timeout(CARRIER_DEADLINE, waiting).await {
            Ok(result) => result,
            Err(_) => Err(self.failed("wait for", name)(io::Error::from(
                Errno::TIMEDOUT,
            ))),
        }
    }

    /// Number of an interface that must be there.
    pub(crate) async fn existing(&self, name: &str) -> Result<u32, ChangeNetworkError> {
        let found = self.index(name).await?;
        found.ok_or_else(|| self.failed("find", name)(io::Error::from(Errno::NODEV)))
    }

    pub(crate) async fn links(&self) -> Result<Vec<String>, ChangeNetworkError> {
        let links = self.handle.link().get().execute();
        let links: Vec<LinkMessage> = links
            .try_collect()
            .await
            .map_err(self.failed("list", "interfaces"))?;
        let mut names: Vec<String> = links.into_iter().filter_map(name_of).collect();
        names.sort();
        Ok(names)
    }

    pub(crate) async fn add_link(
        &self,
        name: &str,
        link: LinkMessage,
    ) -> Result<(), ChangeNetworkError> {
        let added = self.handle.link().add(link).execute().await;
        added.map_err(self.failed("make", name))
    }

    pub(crate) async fn change_link(
        &self,
        name: &str,
        link: LinkMessage,
    ) -> Result<(), ChangeNetworkError> {
        let changed = self.handle.link().set(link).execute().await;
        changed.map_err(self.failed("change", name))
    }

    /// Removes an interface, which may be absent.
    pub(crate) async fn remove_link(&self, name: &str) -> Result<(), ChangeNetworkError> {
        let Some(index) = self.index(name).await? else {
            return Ok(());
        };
        match self
            .handle
            .link()
            .del(index)
            .execute()
            .await
            .map_err(IntoIo::into_io)
        {
            Err(error) if !is(&error, &[Errno::NODEV]) => Err(self.failed("remove", name)(error)),
            _ => Ok(()),
        }
    }

    pub(crate) async fn set_up(&self, name: &str) -> Result<(), ChangeNetworkError> {
        let index = self.existing(name).await?;
        self.change_link(name, LinkUnspec::new_with_index(index).up().build())
            .await
    }

    pub(crate) async fn add_address(
        &self,
        index: u32,
        address: Ipv4Addr,
        prefix: u8,
    ) -> Result<(), ChangeNetworkError> {
        let adding = self
            .handle
            .address()
            .add(index, IpAddr::V4(address), prefix)
            .replace();
        adding
            .execute()
            .await
            .map_err(self.failed("add", format!("address {address}/{prefix}")))
    }

    pub(crate) async fn add_route(
        &self,
        range: Ipv4Range,
        gateway: Ipv4Addr,
    ) -> Result<(), ChangeNetworkError> {
        let adding = self
            .handle
            .route()
            .add(route(range).gateway(gateway).build())
            .replace();
        adding
            .execute()
            .await
            .map_err(self.failed("add", format!("the route to {range}")))
    }

    /// Removes the route to a range through a gateway, which may be absent.
    pub(crate) async fn remove_route(
        &self,
        range: Ipv4Range,
        gateway: Ipv4Addr,
    ) -> Result<(), ChangeNetworkError> {
        let removing = self
            .handle
            .route()
            .del(route(range).gateway(gateway).build());
        match removing.execute().await.map_err(IntoIo::into_io) {
            Err(error) if !is(&error, &[Errno::SRCH, Errno::NETUNREACH]) => Err(self
                .failed("remove", format!("the route to {range}"))(
                error
            )),
            _ => Ok(()),
        }
    }

    /// Routes through a gateway.
    pub(crate) async fn routes(&self) -> Result<Vec<(Ipv4Range, Ipv4Addr)>, ChangeNetworkError> {
        let all = RouteMessageBuilder::<Ipv4Addr>::new().build();
        let routes: Vec<RouteMessage> = self
            .handle
            .route()
            .get(all)
            .execute()
            .try_collect()
            .await
            .map_err(self.failed("list", "routes"))?;
        let mut found: Vec<_> = routes.iter().filter_map(through_gateway).collect();
        found.sort();
        Ok(found)
    }
}

fn route(range: Ipv4Range) -> RouteMessageBuilder<Ipv4Addr> {
    RouteMessageBuilder::<Ipv4Addr>::new().destination_prefix(range.address(), range.prefix())
}

fn is_operational(link: &LinkMessage) -> bool {
    link.attributes
        .contains(&LinkAttribute::OperState(State::Up))
}

fn name_of(link: LinkMessage) -> Option<String> {
    link.attributes
        .into_iter()
        .find_map(|attribute| match attribute {
            LinkAttribute::IfName(name) => Some(name),
            _ => None,
        })
}

fn through_gateway(route: &RouteMessage) -> Option<(Ipv4Range, Ipv4Addr)> {
    let mut destination = Ipv4Addr::UNSPECIFIED;
    let mut gateway = None;
    for attribute in &route.attributes {
        match attribute {
            RouteAttribute::Destination(RouteAddress::Inet(address)) => destination = *address,
            RouteAttribute::Gateway(RouteAddress::Inet(address)) => gateway = Some(*address),
            _ => {}
        }
    }
    Some((
        Ipv4Range::new(destination, route.header.destination_prefix_length)?,
        gateway?,
    ))
}

/// Errors of netlink carry the kernel's number.
trait IntoIo {
    fn into_io(self) -> io::Error;
}

impl IntoIo for io::Error {
    fn into_io(self) -> io::Error {
        self
    }
}

impl IntoIo for rtnetlink::Error {
    fn into_io(self) -> io::Error {
        match self {
            Self::NetlinkError(message) => message.to_io(),
            other => io::Error::other(other),
        }
    }
}

fn is(error: &io::Error, any: &[Errno]) -> bool {
    any.iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Every address has one hardware address for ever: whoever bears it next is
/// reached at once, whatever neighbours remember.
pub(crate) fn hardware_address(address: Ipv4Addr) -> Vec<u8> {
    let [a, b, c, d] = address.octets();
    // The second bit says that the address is locally administered.
    vec![0x0a, 0x58, a, b, c, d]
}
