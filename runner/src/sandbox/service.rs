//! What answers inside a box: an address on its loopback, served by the runner, and nothing else leads out.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use tokio::net::TcpListener;

/// Serves what connects to a listener of a box, from outside of it.
#[async_trait]
pub trait Serve: Send + Sync + std::fmt::Debug {
    /// Serves until it is dropped.
    async fn serve(&self, listener: TcpListener);
}

/// An address inside a box and what serves it.
#[derive(Debug, Clone)]
pub struct Service {
    /// The address, on the loopback of the box.
    pub at: SocketAddr,
    /// The name under which programs look the address up; it needs one only when they expect one.
    pub name: Option<String>,
    pub serve: Arc<dyn Serve>,
}

impl Service {
    /// Returns the line of `/etc/hosts` that it needs.
    pub(super) fn host_line(&self) -> Option<(IpAddr, String)> {
        Some((self.at.ip(), self.name.clone()?))
    }
}
