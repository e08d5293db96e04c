//! Serves the listeners through which one job makes outgoing connections, until the caller drops them.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use crate::account::AccountHosts;
use crate::count::Totals;
use crate::gate::Gate;
use crate::host::Destination;
use crate::limits::Limits;
use crate::network::{Network, SystemNetwork, dial_configured};
use crate::proxy::converse;
use crate::refusal::{Ledger, Reason, RefusalSink};
use crate::rule::Rules;
use crate::tunnel::Tunnel;
use crate::upstream::Upstream;

/// The pause before the next accept, after an accept failed (for example because no file descriptor is free).
const PAUSE: Duration = Duration::from_millis(50);

/// The outgoing connections of one job: what they may reach, and their limits.
#[derive(Clone)]
pub struct Egress {
    gate: Arc<Gate>,
}

/// The destination of a listener's connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// Every host that the rules permit, through an HTTP proxy.
    Proxy,
    /// One host and port that the rules permit, at an address that a job may reach. On port 443, the connection must
    /// begin as TLS to this host.
    Pair(Destination),
    /// One host and port that the runner's own configuration names, at any address, even of this machine, and never
    /// through a proxy.
    Endpoint(Destination),
}

/// A listener that is being served. Dropping this value closes the listener and its connections.
#[derive(Debug)]
#[must_use = "the listener closes when this is dropped"]
pub struct Serving {
    _task: AbortOnDropHandle<()>,
}

impl Egress {
    /// Permits connections to the hosts that `rules` permit and, with `account`, to the hosts that it finds. Passes
    /// refusals to `refusals`.
    pub fn new(
        rules: Rules,
        account: Option<Arc<dyn AccountHosts>>,
        upstream: Upstream,
        refusals: impl RefusalSink,
    ) -> Self {
        Self::with(rules, account, upstream, refusals, Arc::new(SystemNetwork), Limits::default())
    }

    /// Permits the same connections as [`Egress::new`], with another network and other limits. The network cannot skip
    /// the checks of addresses: this crate checks them between the calls of the network.
    pub fn with(
        rules: Rules,
        account: Option<Arc<dyn AccountHosts>>,
        upstream: Upstream,
        refusals: impl RefusalSink,
        network: Arc<dyn Network>,
        limits: Limits,
    ) -> Self {
        let open = Arc::new(Semaphore::new(limits.connections));
        let (refusals, counts) = (Ledger::new(refusals), Arc::default());
        Self { gate: Arc::new(Gate { rules, account, upstream, network, limits, refusals, counts, open }) }
    }

    /// Serves a listener, which may be in another network namespace. Must be called inside a Tokio runtime.
    pub fn serve(&self, listener: TcpListener, way: Way) -> Serving {
        let task = tokio::spawn(accept(Arc::clone(&self.gate), listener, Arc::new(way)));
        Serving { _task: AbortOnDropHandle::new(task) }
    }

    /// Connects to `to` for the runner itself, as the rules permit. The connection exists when this returns.
    ///
    /// # Errors
    /// The reason as a text, when the rules do not permit `to` or it does not accept the connection.
    pub async fn connect(&self, to: &Destination) -> io::Result<TcpStream> {
        let reached = self.gate.reach_permitted(to).await;
        reached.map(|(stream, _)| stream).map_err(|reason| {
            self.gate.note(&reason);
            io::Error::other(reason)
        })
    }

    /// Returns the network usage of the job so far.
    pub fn totals(&self) -> Totals {
        self.gate.counts.totals()
    }
}

async fn accept(gate: Arc<Gate>, listener: TcpListener, way: Arc<Way>) {
    // Dropping the set ends all connections.
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let Ok(permit) = Arc::clone(&gate.open).try_acquire_owned() else {
            refuse(&gate, &stream, &way);
            continue;
        };
        let (gate, way) = (Arc::clone(&gate), Arc::clone(&way));
        connections.spawn(async move {
            serve_one(&gate, stream, &way).await;
            drop(permit);
        });
    }
}

async fn serve_one(gate: &Gate, mut stream: TcpStream, way: &Way) {
    let _ = stream.set_nodelay(true);
    let reached = match way {
        Way::Proxy => return converse(gate, stream).await,
        Way::Pair(to) => gate.reach_permitted(to).await.map(|(destination, early)| (destination, early.to_vec())),
        Way::Endpoint(to) => {
            dial_configured(&*gate.network, to, &gate.limits).await.map(|destination| (destination, Vec::new()))
        }
    };
    match reached {
        Ok((destination, from_destination)) => {
            let mut from_client = Vec::new();
            // The hello is checked after the connection, because some clients only test whether the destination accepts
            // connections, and send no hello.
            if let Way::Pair(to) = way
                && !gate.admits_hello(&mut stream, &mut from_client, to).await
            {
                return;
            }
            let tunnel = Tunnel { client: stream, destination, from_client, from_destination };
            tunnel.run(&gate.counts.meter(), gate.limits.idle).await;
        }
        // A client that sends raw bytes sees only that the connection closes. The job's record has the reason.
        Err(reason) => gate.note(&reason),
    }
}

/// Closes a connection that exceeds the limit, after one attempt to send the reason.
fn refuse(gate: &Gate, stream: &TcpStream, way: &Way) {
    let reason = Reason::TooMany(gate.limits.connections);
    if *way == Way::Proxy {
        let body = format!("{reason}\n");
        let head = "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\ncontent-length: ";
        let _ = stream.try_write(format!("{head}{}\r\n\r\n{body}", body.len()).as_bytes());
    }
    gate.note(&reason);
}
