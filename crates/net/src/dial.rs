//! Connections that begin inside a namespace.

use crate::NetworkNamespace;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::io;
use std::net::SocketAddr;
use tokio::net::{TcpSocket, TcpStream};

/// Connects to an address as one inside the namespace would. The socket is
/// made there; waiting for the connection happens on the caller's runtime and
/// has no deadline of its own.
pub async fn dial(namespace: &NetworkNamespace, address: SocketAddr) -> io::Result<TcpStream> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = namespace
        .run(move || socket_with(family, SocketType::STREAM, flags, None))
        .await
        .map_err(|error| io::Error::new(error.source.kind(), error))??;
    let socket = TcpSocket::from_std_stream(std::net::TcpStream::from(socket));
    socket.set_nodelay(true)?;
    socket.connect(address).await
}
