//! Lets the runner itself connect to one host for a job, outside of the job's box. The checks are those for the
//! programs in a box.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use freehold_egress::{Destination, Egress, Host, Refusal, Rule, Rules, Serving, Upstream, Way};
use tokio::net::{TcpListener, TcpStream};

use super::egress::{line, of_url, own_endpoint, rules_of};
use crate::job::Job;

/// The form in which the runner sends its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Through {
    /// Through an HTTP proxy.
    Proxy,
    /// As raw bytes.
    Pair,
}

/// A listener on this machine's loopback that leads to one host. Dropping this value closes it.
#[derive(Debug)]
pub struct Outside {
    at: Option<SocketAddr>,
    _serving: Option<Serving>,
}

impl Outside {
    /// Returns a listener that leads to `to`. `is_inside` marks `to` as a host that may be in a private network, like
    /// `inside_hosts` of the runner's config. Passes refusals to `refused`.
    ///
    /// # Errors
    /// When there is no free loopback port.
    pub async fn to(
        job: &Job,
        to: &Destination,
        is_inside: bool,
        through: Through,
        refused: impl Fn(&Refusal) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let rules = rules(&job.config.inside_hosts, to, is_inside);
        Self::by(rules, to, through, refused).await
    }

    /// Returns an HTTP proxy that leads to `to`, if the programs of the job may reach it too. Refusals are in the log and in
    /// the record of the job, and are passed to `noted`.
    ///
    /// # Errors
    /// When there is no free loopback port.
    pub async fn permitted(
        job: &Job,
        to: &Destination,
        noted: impl Fn(&Refusal) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        Self::by(rules_of(job), to, Through::Proxy, refused(job, noted)).await
    }

    async fn by(
        rules: Rules,
        to: &Destination,
        through: Through,
        refused: impl Fn(&Refusal) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let here = is_here(to);
        if here && through == Through::Proxy {
            return Ok(Self { at: None, _serving: None });
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let at = listener.local_addr()?;
        let egress = Egress::new(rules, None, Upstream::from_env(), refused);
        let way = match through {
            Through::Proxy => Way::Proxy,
            Through::Pair if here => Way::Endpoint(to.clone()),
            Through::Pair => Way::Pair(to.clone()),
        };
        Ok(Self { at: Some(at), _serving: Some(egress.serve(listener, way)) })
    }

    /// Returns the address of the listener; `None` when the host is on this machine's loopback and is reached directly.
    pub const fn at(&self) -> Option<SocketAddr> {
        self.at
    }
}

/// Connects to `to`, if the programs of the job may reach it too. A refusal is in the log and in the record of the job.
///
/// # Errors
/// The reason why there is no connection.
pub async fn connect_permitted(job: &Job, to: &Destination) -> io::Result<TcpStream> {
    if is_here(to) {
        return TcpStream::connect(to.to_string()).await;
    }
    let egress = Egress::new(rules_of(job), None, Upstream::from_env(), refused(job, |_| {}));
    egress.connect(to).await
}

/// Writes refusals into the log and the record of the job, and passes them to `noted`.
fn refused(job: &Job, noted: impl Fn(&Refusal) + Send + Sync + 'static) -> impl Fn(&Refusal) + Send + Sync + 'static {
    let (log, connections) = (job.log.clone(), Arc::clone(&job.connections));
    move |refusal| {
        log.line(&line(refusal));
        connections.refused(refusal);
        noted(refusal);
    }
}

/// Returns whether `to` is on the loopback of this machine and is permitted there, because the runner's AWS endpoint is
/// there too, as with the local cloud.
fn is_here(to: &Destination) -> bool {
    own_endpoint().is_some() && matches!(to.host, Host::Address(address) if address.is_loopback())
}

/// Returns rules that permit `to` and no other host. `marked` are hosts that may be in a private network.
fn rules(marked: &[String], to: &Destination, is_inside: bool) -> Rules {
    let own: Option<Rule> = to.to_string().parse().ok();
    let marked = marked.iter().filter_map(|host| of_url(host).parse().ok());
    own.iter().cloned().collect::<Rules>().inside(marked).inside(own.filter(|_| is_inside))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_host_is_permitted_and_private_only_when_it_is_marked() {
        let to: Destination = "git.corp.example:443".parse().unwrap();
        let rule: Rule = "git.corp.example:443".parse().unwrap();
        let permitted: Rules = [rule.clone()].into_iter().collect();

        assert_eq!(rules(&[], &to, false), permitted);
        assert_eq!(rules(&[], &to, true), permitted.clone().inside([rule.clone()]));
        assert_eq!(rules(&["https://git.corp.example:443/x".into()], &to, false), permitted.inside([rule]));
    }

    #[test]
    fn a_loopback_address_is_reached_only_beside_the_local_cloud() {
        assert!(!is_here(&"git.corp.example:443".parse().unwrap()));
        assert_eq!(is_here(&"127.0.0.1:443".parse().unwrap()), own_endpoint().is_some());
    }
}
