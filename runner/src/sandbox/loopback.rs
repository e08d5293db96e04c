//! The services of a box: addresses on its loopback that the runner serves from outside. A box has no other connection.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use tokio::net::TcpListener;

/// A server for the connections to one listener of a box. It runs outside of the box.
#[async_trait]
pub trait Serve: Send + Sync + std::fmt::Debug {
    /// Serves connections until the returned future is dropped.
    async fn serve(&self, listener: TcpListener);
}

/// An address inside a box, and the server for it.
#[derive(Debug, Clone)]
pub struct Service {
    /// The address, on the loopback of the box.
    pub at: SocketAddr,
    /// The host name of the address in the box's `/etc/hosts`, for programs that connect by name.
    pub name: Option<String>,
    pub serve: Arc<dyn Serve>,
}

impl Service {
    /// Returns the line of `/etc/hosts` for a service with a name.
    pub(super) fn host_line(&self) -> Option<(IpAddr, String)> {
        Some((self.at.ip(), self.name.clone()?))
    }
}
