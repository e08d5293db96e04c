//! The checks for every connection of a job: its rules, its limits, and the way to the destination.

use std::sync::Arc;

use bytes::Bytes;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use crate::address::Scope;
use crate::count::Counts;
use crate::host::{Destination, Host};
use crate::limits::Limits;
use crate::network::{Network, check, dial};
use crate::refusal::{Ledger, Reason};
use crate::rule::{Protocol, Rules};
use crate::upstream::{Hop, Upstream, connect_through};

/// The state that the listeners of one job share.
pub(crate) struct Gate {
    pub(crate) rules: Rules,
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

    /// Checks that a rule permits `to`.
    pub(crate) fn permit(&self, to: &Destination, protocol: Protocol) -> Result<(), Reason> {
        if self.rules.permit(to, protocol) { Ok(()) } else { Err(Reason::NotPermitted(to.clone())) }
    }

    /// Returns the runner's proxy for `to`, if there is one. An address is checked here, because the proxy itself
    /// connects to it.
    pub(crate) fn hop(&self, to: &Destination, protocol: Protocol) -> Result<Option<Hop>, Reason> {
        let hop = self.upstream.hop(to, protocol)?;
        if let (Some(_), Host::Address(address)) = (&hop, &to.host) {
            check(&*self.network, to, *address, self.scope(to, protocol))?;
        }
        Ok(hop)
    }

    /// Returns where `to` may be. A rule or a pair that names an address has named its network.
    pub(crate) fn scope(&self, to: &Destination, protocol: Protocol) -> Scope {
        match to.host {
            Host::Name(_) if !self.rules.may_be_inside(to, protocol) => Scope::Public,
            Host::Name(_) | Host::Address(_) => Scope::Private,
        }
    }

    /// Connects to `to`, which a rule permitted, directly or through the runner's proxy.
    pub(crate) async fn reach(&self, to: &Destination) -> Result<(TcpStream, Bytes), Reason> {
        match self.hop(to, Protocol::Connect)? {
            Some(hop) => connect_through(&*self.network, hop, to, &self.limits).await,
            None => {
                let scope = self.scope(to, Protocol::Connect);
                Ok((dial(&*self.network, to, scope, &self.limits).await?, Bytes::new()))
            }
        }
    }
}
