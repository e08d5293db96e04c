//! The connections of the services to Git servers: their destinations, and the message about a refused connection.

use freehold_egress::{Destination, Refusal};
use freehold_protocol::source::SourceAddress;
use freehold_runner::job::Job;
use freehold_runner::job::failure::Failure;

use super::obstacle::Obstacle;

/// Returns the host and port of `address`.
pub(super) fn destination(address: &SourceAddress) -> Result<Destination, Failure> {
    let to = format!("{}:{}", address.host(), address.port()).parse();
    to.map_err(|error| Failure::because(&format!("`{address}` has a host that cannot be used"), &error))
}

/// Returns a function that writes a refused connection into the job's log, and records the reason.
pub(super) fn refused(
    job: &Job,
    address: &SourceAddress,
    obstacle: &Obstacle,
) -> impl Fn(&Refusal) + Send + Sync + 'static {
    let (log, address, obstacle) = (job.log.clone(), address.clone(), obstacle.clone());
    move |refusal| {
        let reason = if refusal.word == "inside" {
            format!(
                "`{}` is in a private network; if it should be, store the credential with `freehold tenant source add \
                 {address} --inside`, or name the host in `inside_hosts` of this runner's config",
                refusal.host
            )
        } else {
            refusal.reason.clone()
        };
        log.line(&format!("[freehold: refused a connection to {}:{}: {reason}]", refusal.host, refusal.port));
        obstacle.note(&reason);
    }
}
