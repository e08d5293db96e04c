//! The checks for every connection of a job: its rules, its limits, and the way to the destination.

use std::sync::Arc;

use bytes::Bytes;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use crate::account::AccountHosts;
use crate::address::Scope;
use crate::count::Counts;
use crate::host::{Destination, Host};
use crate::limits::Limits;
use crate::network::{Network, check, dial};
use crate::refusal::{Ledger, Reason};
use crate::rule::{Protocol, Rules};
use crate::server_name::{DENIED, check_hello};
use crate::upstream::{Hop, Upstream, connect_through};

/// The state that the listeners of one job share.
pub(crate) struct Gate {
    pub(crate) rules: Rules,
    pub(crate) account: Option<Arc<dyn AccountHosts>>,
    pub(crate) upstream: Upstream,
    pub(crate) network: Arc<dyn Network>,
    pub(crate) limits: Limits,
    pub(crate) refusals: Ledger,
    pub(crate) counts: Arc<Counts>,
    pub(crate) open: Arc<Semaphore>,
}

impl Gate {
    /// Counts a refusal and reports it.
    pub(crate) fn note(&self, reason: &Reason) {
        self.counts.refuse();
        self.refusals.note(reason);
    }

    /// Checks that a rule permits the destination `to`, or that `to` is a host of the account. Returns the networks in
    /// which `to` may be.
    pub(crate) async fn permit(&self, to: &Destination, protocol: Protocol) -> Result<Scope, Reason> {
        if self.rules.permit(to, protocol) {
            return Ok(self.scope(to, protocol));
        }
        let refused = || Reason::NotPermitted(to.clone());
        let (Some(account), Host::Name(name)) = (&self.account, &to.host) else { return Err(refused()) };
        if self.rules.excludes(to) || protocol != Protocol::Connect || to.port != protocol.default_port() {
            return Err(refused());
        }
        let found = account.find(name).await.map_err(|detail| Reason::Account { to: to.clone(), detail })?;
        found.ok_or_else(refused)
    }

    /// Reads the beginning of what `client` sends into `bytes`, if `to` is on the port of TLS, and returns whether the
    /// client may continue: a tunnel to one host must not lead to another host behind it. Sends an alert to a client
    /// that may not continue.
    pub(crate) async fn admits_hello(&self, client: &mut TcpStream, bytes: &mut Vec<u8>, to: &Destination) -> bool {
        if to.port != Protocol::Connect.default_port() {
            return true;
        }
        let Err(reason) = check_hello(client, bytes, to, self.limits.hello).await else { return true };
        // A client that sent nothing only tested whether the destination accepts connections.
        if !bytes.is_empty() {
            self.note(&reason);
        }
        // Errors are ignored: the client may have closed the connection.
        let _ = client.write_all(&DENIED).await;
        let _ = client.shutdown().await;
        false
    }

    /// Returns the runner's proxy for `to`, if there is one. An address is checked here, because the proxy itself
    /// connects to it.
    pub(crate) fn hop(&self, to: &Destination, protocol: Protocol, scope: Scope) -> Result<Option<Hop>, Reason> {
        let hop = self.upstream.hop(to, protocol)?;
        if let (Some(_), Host::Address(address)) = (&hop, &to.host) {
            check(&*self.network, to, *address, scope)?;
        }
        Ok(hop)
    }

    /// Returns whether `to` may have an address of a private network, or only a public one. A host name may have a
    /// private address only if the rules permit this; a rule that names an address permits it in any network.
    pub(crate) fn scope(&self, to: &Destination, protocol: Protocol) -> Scope {
        match to.host {
            Host::Name(_) if !self.rules.may_be_inside(to, protocol) => Scope::Public,
            Host::Name(_) | Host::Address(_) => Scope::Private,
        }
    }

    /// Connects to `to` if it is permitted.
    pub(crate) async fn reach_permitted(&self, to: &Destination) -> Result<(TcpStream, Bytes), Reason> {
        let scope = self.permit(to, Protocol::Connect).await?;
        self.reach(to, scope).await
    }

    /// Connects to `to`, which is permitted and may be in `scope`, directly or through the runner's proxy.
    pub(crate) async fn reach(&self, to: &Destination, scope: Scope) -> Result<(TcpStream, Bytes), Reason> {
        match self.hop(to, Protocol::Connect, scope)? {
            Some(hop) => connect_through(&*self.network, hop, to, &self.limits).await,
            None => Ok((dial(&*self.network, to, scope, &self.limits).await?, Bytes::new())),
        }
    }
}
