//! Counts connections and bytes, and detects when no byte moves.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The network usage of one job so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Connections and requests for which the destination was reached.
    pub connections: u64,
    /// Connections and requests that were refused or failed.
    pub refused: u64,
    /// Bytes sent to destinations. The HTTP heads that set up tunnels do not count.
    pub sent_bytes: u64,
    /// Bytes received from destinations.
    pub received_bytes: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counts {
    connections: AtomicU64,
    refused: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
}

impl Counts {
    pub(crate) fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn totals(&self) -> Totals {
        Totals {
            connections: self.connections.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            sent_bytes: self.sent.load(Ordering::Relaxed),
            received_bytes: self.received.load(Ordering::Relaxed),
        }
    }

    /// Counts a connection, and returns the meter for its bytes.
    pub(crate) fn meter(self: &Arc<Self>) -> Arc<Meter> {
        self.connections.fetch_add(1, Ordering::Relaxed);
        Arc::new(Meter { counts: Arc::clone(self), moved: AtomicU64::new(0) })
    }
}

/// Counts the bytes of one connection.
#[derive(Debug)]
pub(crate) struct Meter {
    counts: Arc<Counts>,
    moved: AtomicU64,
}

impl Meter {
    pub(crate) fn sent(&self, bytes: usize) {
        self.count(&self.counts.sent, bytes);
    }

    pub(crate) fn received(&self, bytes: usize) {
        self.count(&self.counts.received, bytes);
    }

    fn count(&self, total: &AtomicU64, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        total.fetch_add(bytes, Ordering::Relaxed);
        self.moved.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Runs `work` until it ends. When no byte moves for `idle`, drops `work` and returns `None`.
    pub(crate) async fn unless_idle<F: Future>(&self, idle: Duration, work: F) -> Option<F::Output> {
        let still = async {
            let mut seen = None;
            loop {
                let moved = self.moved.load(Ordering::Relaxed);
                if seen.replace(moved) == Some(moved) {
                    return;
                }
                tokio::time::sleep(idle).await;
            }
        };
        tokio::select! {
            done = work => Some(done),
            () = still => None,
        }
    }
}

/// A stream to a destination that counts its bytes.
#[derive(Debug)]
pub(crate) struct Counted<S> {
    stream: S,
    meter: Arc<Meter>,
}

impl<S> Counted<S> {
    pub(crate) const fn new(stream: S, meter: Arc<Meter>) -> Self {
        Self { stream, meter }
    }

    pub(crate) const fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        self.meter.received(buf.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes))?;
        self.meter.sent(written);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, bytes))?;
        self.meter.sent(written);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
