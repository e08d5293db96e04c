//! The services of a box: addresses on its loopback that the runner serves from outside. A box has no other connection.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use tokio::net::TcpListener;

/// The first port at which a process without a capability may listen in a new network namespace
/// (`ip_unprivileged_port_start`, ip-sysctl).
const FIRST_UNPRIVILEGED_PORT: u16 = 1024;

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

    /// Returns whether a box that runs its program as `program_user` can have this service. If jobs run as the runner's own
    /// user, the first process has no capability, and the kernel refuses it ports below 1024.
    pub(super) fn fits(&self, program_user: Option<u32>) -> bool {
        program_user.is_some() || self.at.port() >= FIRST_UNPRIVILEGED_PORT
    }

    /// Returns the log line about a service that the box cannot have.
    pub(super) fn absence(&self) -> String {
        let host = self.name.clone().unwrap_or_else(|| self.at.ip().to_string());
        let port = self.at.port();
        format!(
            "[freehold: programs reach {host}:{port} only through the proxy, because jobs run as the runner's own user \
             and then cannot have ports below {FIRST_UNPRIVILEGED_PORT}; `freehold-runner doctor` says how they get \
             another user]"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Closed;

    #[async_trait]
    impl Serve for Closed {
        async fn serve(&self, _listener: TcpListener) {}
    }

    fn service(at: &str) -> Service {
        Service { at: at.parse().expect("an address"), name: Some("mail.example".to_owned()), serve: Arc::new(Closed) }
    }

    #[test]
    fn a_port_below_1024_needs_a_program_with_another_user() {
        let (low, high) = (service("127.1.0.1:1023"), service("127.1.0.1:1024"));

        assert!(low.fits(Some(1000)) && high.fits(Some(1000)));
        assert!(!low.fits(None) && high.fits(None));
        assert!(low.absence().contains(" mail.example:1023 only through the proxy"), "{}", low.absence());
    }
}
