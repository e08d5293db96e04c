//! The reasons for refusals. The client gets each reason at once; the job's record gets them without repetition.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use hyper::StatusCode;

use crate::address::Forbidden;
use crate::host::Destination;

/// The maximum number of different refusals of one job. Further refusals are counted together.
const DISTINCT_MAX: usize = 200;
/// The host name that the record shows for the refusals that are counted together.
const OTHERS: &str = "further hosts";

/// The reason why a connection was refused or failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Reason {
    #[error(
        "`{0}` is not among the hosts of the accepted contract; name it in the app config and let the customer accept the \
         new contract"
    )]
    NotPermitted(Destination),
    #[error("the runner could not find out whether `{to}` is a host of this account: {detail}")]
    Account { to: Destination, detail: String },
    #[error(
        "`{to}` is at {address}, {why}; no job may reach such an address, so let the name resolve to another address"
    )]
    Address { to: Destination, address: IpAddr, why: Forbidden },
    #[error(
        "`{to}` is at {address}, an address of a private network, and the accepted contract does not mark this host as \
         inside; name it in `inside_hosts` of `runner.toml` and let the customer accept the new contract"
    )]
    Inside { to: Destination, address: IpAddr },
    #[error("the runner could not resolve `{to}`; check the name and the resolver of the runner's network")]
    Unresolved { to: Destination, source: io::Error },
    #[error("the runner could not connect to `{to}`: {source}; check routes and firewalls of the runner's network")]
    Unreachable { to: Destination, source: io::Error },
    #[error("the runner's proxy did not connect to `{to}`: {detail}; permit the host there, or name it in `NO_PROXY`")]
    Upstream { to: Destination, detail: String },
    #[error("the TLS hello to `{to}` names the server `{name}`; name the same host in `CONNECT` and in TLS")]
    OtherServerName { to: Destination, name: String },
    #[error(
        "no TLS hello came over the tunnel to `{0}`; port 443 is for TLS only, so name another port in the app config \
         and let the customer accept the new contract"
    )]
    NoHello(Destination),
    #[error("the `Host` header of a request to `{0}` is missing, repeated or names another host; send the URL's host")]
    HostHeader(Destination),
    #[error("a request to `{to}` has the method `{method}`; only GET, HEAD, POST, PUT, PATCH, DELETE and OPTIONS pass")]
    Method { to: Destination, method: String },
    #[error("the body of a request to `{to}` has more than {most} bytes; use HTTPS, which has no limit")]
    TooLarge { to: Destination, most: u64 },
    #[error("the proxy does not accept a request: {0}; send `CONNECT host:port` or `METHOD http://host/path`")]
    Malformed(&'static str),
    #[error("the job has {0} connections open, which is the maximum; close some of them")]
    TooMany(usize),
}

impl Reason {
    /// Returns the HTTP status of the proxy's response.
    pub(crate) const fn status(&self) -> StatusCode {
        match self {
            Self::NotPermitted(_)
            | Self::Address { .. }
            | Self::Inside { .. }
            | Self::OtherServerName { .. }
            | Self::NoHello(_) => StatusCode::FORBIDDEN,
            Self::Account { .. } | Self::Unresolved { .. } | Self::Unreachable { .. } | Self::Upstream { .. } => {
                StatusCode::BAD_GATEWAY
            }
            Self::HostHeader(_) | Self::Malformed(_) => StatusCode::BAD_REQUEST,
            Self::Method { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooMany(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Returns the reason as a stable word for programs.
    const fn as_str(&self) -> &'static str {
        match self {
            Self::NotPermitted(_) => "not_permitted",
            Self::Account { .. } => "account",
            Self::Address { .. } => "address",
            Self::Inside { .. } => "inside",
            Self::Unresolved { .. } => "unresolved",
            Self::Unreachable { .. } => "unreachable",
            Self::Upstream { .. } => "upstream",
            Self::OtherServerName { .. } => "other_server_name",
            Self::NoHello(_) => "no_hello",
            Self::HostHeader(_) => "host_header",
            Self::Method { .. } => "method",
            Self::TooLarge { .. } => "too_large",
            Self::Malformed(_) => "malformed",
            Self::TooMany(_) => "too_many",
        }
    }

    const fn destination(&self) -> Option<&Destination> {
        match self {
            Self::NotPermitted(to)
            | Self::Account { to, .. }
            | Self::Address { to, .. }
            | Self::Inside { to, .. }
            | Self::Unresolved { to, .. }
            | Self::Unreachable { to, .. }
            | Self::Upstream { to, .. }
            | Self::OtherServerName { to, .. }
            | Self::NoHello(to)
            | Self::HostHeader(to)
            | Self::Method { to, .. }
            | Self::TooLarge { to, .. } => Some(to),
            Self::Malformed(_) | Self::TooMany(_) => None,
        }
    }
}

/// One refusal, or the count of equal refusals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The requested host; empty when the request did not name one.
    pub host: String,
    /// The port; 0 when the request did not name one.
    pub port: u16,
    /// The reason as a stable word: `not_permitted`, `address`, `other_server_name`, ...
    pub word: &'static str,
    /// The reason as a sentence that also says how to fix the problem.
    pub reason: String,
    /// How often this host and port have been refused for this reason so far.
    pub times: u64,
}

/// Receives the refusals of a job. Equal refusals arrive at the 1st, 10th, 100th, ... occurrence. After `DISTINCT_MAX`
/// different refusals, further ones are counted together.
pub trait RefusalSink: Send + Sync + 'static {
    /// Receives one refusal. The connection's task makes the call, so it must not block.
    fn refused(&self, refusal: &Refusal);
}

impl<F: Fn(&Refusal) + Send + Sync + 'static> RefusalSink for F {
    fn refused(&self, refusal: &Refusal) {
        self(refusal);
    }
}

type Key = (String, u16, &'static str);

/// Counts refusals and limits how many reach the sink, so a job cannot flood its record.
pub(crate) struct Ledger {
    sink: Box<dyn RefusalSink>,
    times: Mutex<HashMap<Key, u64>>,
}

impl Ledger {
    pub(crate) fn new(sink: impl RefusalSink) -> Self {
        Self { sink: Box::new(sink), times: Mutex::default() }
    }

    /// Counts one refusal, and passes it to the sink when its count is a power of ten.
    pub(crate) fn note(&self, reason: &Reason) {
        let to = reason.destination();
        let mut refusal = Refusal {
            host: to.map_or_else(String::new, |to| to.host.to_string()),
            port: to.map_or(0, |to| to.port),
            word: reason.as_str(),
            reason: reason.to_string(),
            times: 0,
        };
        self.count(&mut refusal);
        if is_power_of_ten(refusal.times) {
            self.sink.refused(&refusal);
        }
    }

    fn count(&self, refusal: &mut Refusal) {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let mut key = (refusal.host.clone(), refusal.port, refusal.word);
        if times.len() >= DISTINCT_MAX && !times.contains_key(&key) {
            key = (OTHERS.to_owned(), 0, "further");
            refusal.clone_from(&Refusal {
                host: OTHERS.to_owned(),
                port: 0,
                word: "further",
                reason: format!(
                    "this job has more than {DISTINCT_MAX} different refusals (by host, port and reason); the others are \
                     only counted; the latest of them: {}",
                    refusal.reason
                ),
                times: 0,
            });
        }
        let count = times.entry(key).or_default();
        *count += 1;
        refusal.times = *count;
    }
}

const fn is_power_of_ten(mut number: u64) -> bool {
    while number != 0 && number.is_multiple_of(10) {
        number /= 10;
    }
    number == 1
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn reports_of(refused: impl IntoIterator<Item = String>) -> Vec<(String, u64)> {
        let reports = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&reports);
        let ledger =
            Ledger::new(move |refusal: &Refusal| into.lock().unwrap().push((refusal.host.clone(), refusal.times)));
        for host in refused {
            ledger.note(&Reason::NotPermitted(format!("{host}:443").parse().unwrap()));
        }
        drop(ledger);
        Arc::into_inner(reports).unwrap().into_inner().unwrap()
    }

    #[test]
    fn equal_refusals_are_told_at_powers_of_ten() {
        let all = reports_of(std::iter::repeat_n("a.example".to_owned(), 1234));

        assert_eq!(all, [1, 10, 100, 1000].map(|times| ("a.example".to_owned(), times)));
    }

    #[test]
    fn a_job_that_asks_for_ever_new_hosts_does_not_flood_its_record() {
        let all = reports_of((0..100_000).map(|number| format!("h{number}.example")));

        assert_eq!(all.len(), DISTINCT_MAX + 5);
        assert_eq!(all.last(), Some(&(OTHERS.to_owned(), 10_000)));
    }

    #[test]
    fn the_sentence_names_the_host_and_the_way_out() {
        let reason = Reason::NotPermitted("example.org:443".parse().unwrap());

        assert_eq!(
            reason.to_string(),
            "`example.org:443` is not among the hosts of the accepted contract; name it in the app config and let the \
             customer accept the new contract"
        );
    }
}
