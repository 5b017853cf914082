//! Accepted connections as the HTTP server uses them: every frame leaves at once, in one plain write. Knows nothing of
//! what is written.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

/// Listens for connections that send small frames.
#[derive(Debug)]
pub struct FrameListener(TcpListener);

/// A connection that says it has no vectored writes. The server then puts a chunk's head, its frame and its line end
/// into one buffer, which is cheaper than three parts for frames of some hundred bytes.
#[derive(Debug)]
pub struct FrameStream(TcpStream);

// === impl FrameListener ===

impl FrameListener {
    /// Accepts from a bound listener.
    pub fn new(listener: TcpListener) -> Self {
        Self(listener)
    }
}

impl Listener for FrameListener {
    type Io = FrameStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (FrameStream, SocketAddr) {
        // Waits and tries again where the system is short of file descriptors.
        let (stream, address) = Listener::accept(&mut self.0).await;
        // A token is sent when it is there: no frame waits for the client's acknowledgement of the one before.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::warn!(%error, "tokens of this connection may arrive late");
        }
        (FrameStream(stream), address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

// === impl FrameStream ===

impl AsyncRead for FrameStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for FrameStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        false
    }
}
