//! Logs in to private registries.

use freehold_oci::{Login, Reference};
use freehold_protocol::source::{SourceAddress, SourceCredential};
use freehold_runner::job::Job;
use freehold_runner::job::failure::Failure;
use zeroize::Zeroizing;

use super::{Stored, load_stored};

/// Returns the login that is stored for the repository of `reference`, or an anonymous login when none is stored.
pub(crate) async fn login(job: &Job, reference: &Reference) -> Result<Login, Failure> {
    let Some(address) = SourceAddress::of_repository(&reference.host, &reference.repository) else {
        return Ok(Login::Anonymous);
    };
    match load_stored(job, &address).await? {
        Some(Stored { address, credential: SourceCredential::RegistryLogin { user, password, token_hosts } }) => {
            job.log
                .line(&format!("reading `{}/{}` with the login of `{address}`", reference.host, reference.repository));
            Ok(Login::Basic { user, password: Zeroizing::new(password.reveal().to_owned()), token_hosts })
        }
        // INVARIANT: `load_stored` refuses a credential that does not fit the scheme of the address, so a credential of
        // Git never arrives here. `None` means that no login is stored.
        Some(Stored { credential: SourceCredential::GitToken { .. } | SourceCredential::SshKey { .. }, .. }) | None => {
            Ok(Login::Anonymous)
        }
    }
}
