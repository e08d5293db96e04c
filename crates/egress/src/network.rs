//! Resolves a name once, checks each of its addresses, and connects only to a checked address.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use async_trait::async_trait;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::address::{Forbidden, Scope, check_address};
use crate::host::{Destination, Host};
use crate::limits::Limits;
use crate::refusal::Reason;

/// The maximum number of addresses per name that are tried.
const ADDRESSES_MAX: usize = 8;

/// The network of the machine. An implementation does not check addresses: the caller does, between the two calls.
#[async_trait]
pub trait Network: Send + Sync + 'static {
    /// Returns the addresses of a name.
    ///
    /// # Errors
    /// When the name does not resolve.
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;

    /// Connects to an address.
    ///
    /// # Errors
    /// When the address does not accept the connection.
    async fn connect(&self, address: SocketAddr) -> io::Result<TcpStream>;

    /// Returns whether this machine has the address.
    fn is_own(&self, address: IpAddr) -> bool;
}

/// The runner's network: its resolver and its routes.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemNetwork;

#[async_trait]
impl Network for SystemNetwork {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
    }

    async fn connect(&self, address: SocketAddr) -> io::Result<TcpStream> {
        TcpStream::connect(address).await
    }

    /// Binds a socket and sends nothing. Binding works only for an address of this machine. If the system permits
    /// foreign addresses too (`net.ipv4.ip_nonlocal_bind`), each address counts as the machine's own and is refused.
    fn is_own(&self, address: IpAddr) -> bool {
        !is_foreign(&UdpSocket::bind((address, 0)))
    }
}

/// Returns whether binding failed because another machine has the address. Every other error, such as too many open
/// files, does not show which machine has the address, so the address counts as the machine's own.
fn is_foreign<T>(bound: &io::Result<T>) -> bool {
    bound.as_ref().is_err_and(|error| {
        // `EAFNOSUPPORT`: a machine without IPv6 has no IPv6 address.
        let no_family = error.raw_os_error() == Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error());
        error.kind() == io::ErrorKind::AddrNotAvailable || no_family
    })
}

/// Connects to a destination that a rule permitted, after checking that all its addresses are within `scope`.
pub(crate) async fn dial(
    network: &dyn Network,
    to: &Destination,
    scope: Scope,
    limits: &Limits,
) -> Result<TcpStream, Reason> {
    let addresses = addresses(network, to, limits).await?;
    for address in &addresses {
        check(network, to, *address, scope)?;
    }
    connect(network, to, &addresses, limits).await
}

/// Connects to a destination that the runner's own configuration names. Its address is not checked.
pub(crate) async fn dial_configured(
    network: &dyn Network,
    to: &Destination,
    limits: &Limits,
) -> Result<TcpStream, Reason> {
    let addresses = addresses(network, to, limits).await?;
    connect(network, to, &addresses, limits).await
}

/// Refuses an address of `to` that no job may reach, and a private address when `scope` is public.
pub(crate) fn check(network: &dyn Network, to: &Destination, address: IpAddr, scope: Scope) -> Result<(), Reason> {
    let forbidden = |why| Reason::Address { to: to.clone(), address, why };
    let found = check_address(address).map_err(forbidden)?;
    if network.is_own(address) {
        return Err(forbidden(Forbidden::OwnMachine));
    }
    if found > scope { Err(Reason::Inside { to: to.clone(), address }) } else { Ok(()) }
}

async fn addresses(network: &dyn Network, to: &Destination, limits: &Limits) -> Result<Vec<IpAddr>, Reason> {
    let name = match &to.host {
        Host::Address(address) => return Ok(vec![*address]),
        Host::Name(name) => name,
    };
    let answer = match timeout(limits.resolve, network.resolve(name)).await {
        Ok(Ok(addresses)) if addresses.is_empty() => Err(io::ErrorKind::NotFound.into()),
        Ok(answer) => answer,
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    };
    answer.map_err(|source| Reason::Unresolved { to: to.clone(), source })
}

async fn connect(
    network: &dyn Network,
    to: &Destination,
    addresses: &[IpAddr],
    limits: &Limits,
) -> Result<TcpStream, Reason> {
    let mut last = io::ErrorKind::AddrNotAvailable.into();
    for address in addresses.iter().take(ADDRESSES_MAX) {
        match timeout(limits.connect, network.connect(SocketAddr::new(*address, to.port))).await {
            Ok(Ok(stream)) => {
                // Without Nagle's algorithm, small requests are sent at once. If the option fails, the socket still
                // works.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) => last = error,
            Err(_) => last = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(Reason::Unreachable { to: to.clone(), source: last })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_own_addresses_are_known_whatever_their_range() {
        assert!(SystemNetwork.is_own("127.0.0.1".parse().unwrap()));
        // TEST-NET-1 (RFC 5737): no machine has it.
        assert!(!SystemNetwork.is_own("192.0.2.1".parse().unwrap()));
    }

    #[test]
    fn an_address_is_foreign_only_when_the_system_says_so() {
        let failed = |errno: rustix::io::Errno| Err::<(), _>(io::Error::from(errno));

        assert!(is_foreign(&failed(rustix::io::Errno::ADDRNOTAVAIL)));
        assert!(is_foreign(&failed(rustix::io::Errno::AFNOSUPPORT)));
        for unrelated in [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE, rustix::io::Errno::ACCESS] {
            assert!(!is_foreign(&failed(unrelated)), "{unrelated}");
        }
        assert!(!is_foreign(&Ok(())));
    }

    #[tokio::test]
    async fn the_systems_resolver_leads_nobody_to_the_loopback() {
        let localhost = "localhost:443".parse().unwrap();

        let refused = dial(&SystemNetwork, &localhost, Scope::Private, &Limits::default()).await;

        assert!(matches!(refused, Err(Reason::Address { why: Forbidden::Loopback, .. })), "{refused:?}");
    }
}
