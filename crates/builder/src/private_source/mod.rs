//! Private sources: finds the credential of a source in Secrets Manager, and reads the source with it.
//!
//! A credential never enters a job's box. Programs in the box connect to a service of the runner ([`git::GitAccess`]),
//! which runs outside of the box and connects to the Git server with the credential.

mod accept;
mod connection;
pub(crate) mod git;
mod https;
mod obstacle;
pub(crate) mod registry;
mod route;
pub(crate) mod ssh;

use aws_sdk_secretsmanager::error::ProvideErrorMetadata as _;
use freehold_protocol::source::{SourceAddress, SourceCredential};
use freehold_runner::aws;
use freehold_runner::job::failure::Failure;
use freehold_runner::job::{Job, sdk_config};

/// A credential, and the address that it is for.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) address: SourceAddress,
    pub(crate) credential: SourceCredential,
}

/// Returns the credential that is stored for `address` or for the nearest address above it. The job's log redacts it.
///
/// Returns `None` also when the runner's role may not read such secrets, because the tenant's stack may be older than
/// this program and then does not allow it yet.
pub(crate) async fn load_stored(job: &Job, address: &SourceAddress) -> Result<Option<Stored>, Failure> {
    let secrets = aws_sdk_secretsmanager::Client::new(&sdk_config(job).await);
    for address in address.covering() {
        let name = address.secret_name(&job.config.tenant);
        let found = match secrets.get_secret_value().secret_id(&name).send().await {
            Ok(found) => found,
            Err(error) if error.code() == Some("ResourceNotFoundException") => continue,
            // Secrets Manager returns this error for a secret that is being deleted.
            Err(error) if error.code() == Some("InvalidRequestException") => continue,
            Err(error) if aws::is_denied(error.code()) => {
                job.log.line(&format!(
                    "this runner's role may not read the secret `{name}`; if the source is private, update the tenant's \
                     stack with `freehold tenant deploy`"
                ));
                return Ok(None);
            }
            Err(error) => {
                let why = aws::explain(&error);
                return Err(Failure::new(format!("could not look for the credential of `{address}`: {why}")));
            }
        };
        let text = found.secret_string().unwrap_or_default();
        let credential = SourceCredential::parse(text, address.scheme())
            .map_err(|error| Failure::because(&format!("the secret `{name}` cannot be used"), &error))?;
        job.log.add_secrets(&credential.hidden());
        return Ok(Some(Stored { address, credential }));
    }
    Ok(None)
}
