//! Dialling and TLS as the connector that hyper takes.

use super::{CONNECT_TIMEOUT, Dial};
use futures::future::BoxFuture;
use http::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// A connection to an API server could not be opened.
#[derive(Debug, thiserror::Error)]
pub(super) enum OpenConnectionError {
    #[error("failed to reach the API server")]
    Dial(#[source] io::Error),
    #[error("failed to agree on TLS with the API server")]
    Handshake(#[source] io::Error),
    #[error("the API server did not take the connection within {} s", CONNECT_TIMEOUT.as_secs())]
    Timeout,
}

/// Opens TLS connections to one server, whatever the URL says.
#[derive(Clone)]
pub(super) struct TlsConnector {
    dial: Arc<dyn Dial>,
    tls: tokio_rustls::TlsConnector,
    server_name: ServerName<'static>,
}

impl TlsConnector {
    pub(super) fn new(
        dial: Arc<dyn Dial>,
        config: Arc<ClientConfig>,
        server_name: ServerName<'static>,
    ) -> Self {
        Self {
            dial,
            tls: config.into(),
            server_name,
        }
    }

    async fn open(self) -> Result<TokioIo<TlsConnection>, OpenConnectionError> {
        let stream = self.dial.dial().await.map_err(OpenConnectionError::Dial)?;
        // Requests are small and each waits for its answer.
        stream
            .set_nodelay(true)
            .map_err(OpenConnectionError::Dial)?;
        let stream = self
            .tls
            .connect(self.server_name, stream)
            .await
            .map_err(OpenConnectionError::Handshake)?;
        Ok(TokioIo::new(TlsConnection(stream)))
    }
}

impl tower::Service<Uri> for TlsConnector {
    type Response = TokioIo<TlsConnection>;
    type Error = OpenConnectionError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let open = self.clone().open();
        Box::pin(async move {
            tokio::time::timeout(CONNECT_TIMEOUT, open)
                .await
                .unwrap_or(Err(OpenConnectionError::Timeout))
        })
    }
}

/// A TLS stream that tells hyper which HTTP was agreed on.
pub(super) struct TlsConnection(TlsStream<TcpStream>);

impl Connection for TlsConnection {
    fn connected(&self) -> Connected {
        let connected = Connected::new();
        match self.0.get_ref().1.alpn_protocol() {
            Some(b"h2") => connected.negotiated_h2(),
            _ => connected,
        }
    }
}

impl AsyncRead for TlsConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for TlsConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }
}
