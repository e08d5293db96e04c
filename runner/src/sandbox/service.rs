//! What answers inside a box: an address on its loopback, served by the runner, and nothing else leads out.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use tokio::net::{TcpListener, TcpStream};

/// Serves what connects to a listener of a box, from outside of it.
#[async_trait]
pub trait Serve: Send + Sync + std::fmt::Debug {
    /// Serves until it is dropped.
    async fn serve(&self, listener: TcpListener);
}

/// An address inside a box and what serves it.
#[derive(Debug, Clone)]
pub struct Service {
    /// On the loopback of the box.
    pub at: SocketAddr,
    /// The name under which programs look the address up; it needs one only when they expect one.
    pub name: Option<String>,
    pub serve: Arc<dyn Serve>,
}

/// Carries every connection to one address of the machine that the runner itself uses.
#[derive(Debug)]
pub(super) struct Forward {
    pub(super) to: SocketAddr,
}

#[async_trait]
impl Serve for Forward {
    async fn serve(&self, listener: TcpListener) {
        let mut connections = tokio::task::JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            match listener.accept().await {
                Ok((inside, _)) => drop(connections.spawn(carry(inside, self.to))),
                // For example, no file descriptor is left.
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(100)).await,
            }
        }
    }
}

async fn carry(mut inside: TcpStream, to: SocketAddr) {
    if let Ok(mut outside) = TcpStream::connect(to).await {
        // Either side may end a connection at any time.
        let _ = tokio::io::copy_bidirectional(&mut inside, &mut outside).await;
    }
}

impl Service {
    /// Returns the line of `/etc/hosts` that it needs.
    pub(super) fn host_line(&self) -> Option<(IpAddr, String)> {
        Some((self.at.ip(), self.name.clone()?))
    }
}
