//! Decides whether a hello comes from a runner that has the role of its install. AWS says whose credentials signed the
//! request in the hello, and a signed header of that request names the runner's key. The vendor has no such credentials.

use freehold_domain::install::{Install, Serves};
use freehold_protocol::report::{CallerRequest, Hello, RoleProof};
use freehold_protocol::{Partition, TenantName, Timestamp, names};

use super::AcceptReport;
use crate::AppError;
use crate::ports::Caller;

/// The largest difference between the time in a proof and the time at which the queue took its hello, in seconds. STS
/// refuses requests that are older (AWS Signature Version 4, "Elements of a request").
const PROOF_SECS: u64 = 15 * 60;
/// The age in seconds up to which STS is asked about a proof. It is less than [`PROOF_SECS`], so that STS never refuses
/// a proof only because the request to STS took too long.
const ASKED_SECS: u64 = 14 * 60;

/// Whether a hello proves the runner's role.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The runner has the role of its install.
    Proven,
    /// The proof cannot be accepted now: it or its credentials are too old, or the runner's clock is ahead. The runner
    /// sends another proof.
    Unproven(String),
}

impl AcceptReport {
    /// Asks STS whether the runner that sent `hello` has the role of `install`. The queue took the hello at `taken_at`.
    ///
    /// # Errors
    /// Invalid for a hello that proves another role or nothing. Transient when STS does not answer.
    pub(super) async fn role_of(
        &self,
        install: &Install,
        hello: &Hello,
        taken_at: Timestamp,
    ) -> Result<Role, AppError> {
        let Some(proof) = &hello.proof else {
            return Err(AppError::invalid(format!(
                "the hello of a runner of install `{}` does not prove the runner's role; update the runner",
                install.id
            )));
        };
        if let Some(reason) = too_old(proof, taken_at, self.clock.now()) {
            return Ok(Role::Unproven(reason));
        }
        let request = CallerRequest::new(&install.region, &self.tenant, &install.id, &hello.public_key);
        let request = request.map_err(|error| AppError::invalid(error.to_string()))?;
        // A proof with a malformed part never reaches STS.
        request.headers(proof).map_err(|error| AppError::invalid(error.to_string()))?;
        match self.callers.caller(&request, proof).await? {
            Caller::Known { account, arn } => {
                check_role(install, &self.tenant, &account, &arn)?;
                Ok(Role::Proven)
            }
            Caller::Expired => Ok(Role::Unproven(
                "the credentials that prove the runner's role have expired; the runner sends a new proof automatically"
                    .to_owned(),
            )),
            Caller::Refused(reason) => Err(AppError::invalid(format!(
                "AWS STS does not confirm the role of a runner of install `{}`: {reason}",
                install.id
            ))),
        }
    }
}

fn too_old(proof: &RoleProof, taken_at: Timestamp, now: Timestamp) -> Option<String> {
    let (age, ahead) = (taken_at.since(proof.at), proof.at.since(taken_at));
    if age > PROOF_SECS * 1000 || now.since(proof.at) > ASKED_SECS * 1000 {
        return Some(
            "the proof of the runner's role is too old; the runner sends a new proof automatically".to_owned(),
        );
    }
    (ahead > PROOF_SECS * 1000)
        .then(|| format!("the clock of the runner is {} s ahead; set the clock of its machine", ahead / 1000))
}

/// Checks that the caller is a session of the runner's role in the account of the install.
fn check_role(install: &Install, tenant: &TenantName, account: &str, arn: &str) -> Result<(), AppError> {
    let role = runner_role(install, tenant);
    let wanted = format!(":sts::{}:assumed-role/{role}/", install.account);
    let (before, session) = arn.split_once(&wanted).unwrap_or_default();
    let is_role = before.strip_prefix("arn:").and_then(Partition::named).is_some()
        && !session.is_empty()
        && !session.contains('/');
    if is_role && account == install.account.as_str() {
        return Ok(());
    }
    let found: String = arn.chars().take(200).collect();
    Err(AppError::invalid(format!(
        "the hello of a runner of install `{}` proves that it is `{found}`; expected a session of role `{role}` in account \
         `{}`",
        install.id, install.account
    )))
}

/// Returns the name of the role that the runner of an install has. Only the account of the install decides who gets
/// this role.
fn runner_role(install: &Install, tenant: &TenantName) -> String {
    match &install.serves {
        Serves::App { .. } => names::install_part(tenant, &install.id, "runner"),
        Serves::Builds => names::tenant_part(tenant, "build-runner"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn install(serves: Serves) -> Install {
        let (id, account) = ("globex".parse().unwrap(), "222222222222".parse().unwrap());
        Install::new(id, serves, account, "eu-west-1".to_owned(), Timestamp::default())
    }

    fn is_runner(account: &str, arn: &str) -> bool {
        let install = install(Serves::App { app: "demo".parse().unwrap(), version: None });
        check_role(&install, &"acme".parse().unwrap(), account, arn).is_ok()
    }

    #[test]
    fn only_a_session_of_this_installs_runner_role_in_its_account_is_the_runner() {
        const ACCOUNT: &str = "222222222222";

        assert!(is_runner(ACCOUNT, "arn:aws:sts::222222222222:assumed-role/fh-acme--globex--runner/i-1"));
        for partition in Partition::ALL {
            let arn = format!("arn:{}:sts::222222222222:assumed-role/fh-acme--globex--runner/i-1", partition.name);
            assert!(is_runner(ACCOUNT, &arn), "{arn}");
        }
        for (account, arn) in [
            // Another account, in each of the two fields.
            ("111111111111", "arn:aws:sts::111111111111:assumed-role/fh-acme--globex--runner/i-1"),
            ("111111111111", "arn:aws:sts::222222222222:assumed-role/fh-acme--globex--runner/i-1"),
            (ACCOUNT, "arn:aws:sts::111111111111:assumed-role/fh-acme--globex--runner/i-1"),
            // Another role, another install's role, and names that begin or end alike.
            (ACCOUNT, "arn:aws:sts::222222222222:assumed-role/fh-acme--globex--provision/i-1"),
            (ACCOUNT, "arn:aws:sts::222222222222:assumed-role/fh-acme--other--runner/i-1"),
            (ACCOUNT, "arn:aws:sts::222222222222:assumed-role/fh-initech--globex--runner/i-1"),
            (ACCOUNT, "arn:aws:sts::222222222222:assumed-role/fh-acme--globex--runner2/i-1"),
            (ACCOUNT, "arn:aws:sts::222222222222:assumed-role/x-fh-acme--globex--runner/i-1"),
            // The account's root, a user, the role itself, and a session named after the role.
            (ACCOUNT, "arn:aws:iam::222222222222:root"),
            (ACCOUNT, "arn:aws:iam::222222222222:user/fh-acme--globex--runner"),
            (ACCOUNT, "arn:aws:iam::222222222222:role/fh-acme--globex--runner"),
            (ACCOUNT, "arn:aws:sts::222222222222:assumed-role/fh-acme--globex--runner"),
            (ACCOUNT, "arn:aws:sts::222222222222:assumed-role/fh-acme--globex--runner/"),
            (
                ACCOUNT,
                "arn:aws:sts::222222222222:assumed-role/admin/:sts::222222222222:assumed-role/fh-acme--globex--runner/i-1",
            ),
            (ACCOUNT, "arn:aws:sts::222222222222:federated-user/fh-acme--globex--runner/i-1"),
            (ACCOUNT, "x:sts::222222222222:assumed-role/fh-acme--globex--runner/i-1"),
            (ACCOUNT, ""),
        ] {
            assert!(!is_runner(account, arn), "{account} {arn}");
        }
    }

    #[test]
    fn the_build_runner_has_the_role_of_the_tenant() {
        let tenant = "acme".parse().unwrap();
        let arn = |role: &str| format!("arn:aws:sts::222222222222:assumed-role/{role}/ci");

        let check = |role: &str| check_role(&install(Serves::Builds), &tenant, "222222222222", &arn(role));

        assert!(check("fh-acme--build-runner").is_ok() && check("fh-acme--globex--runner").is_err());
    }

    #[test]
    fn a_proof_counts_for_less_than_a_quarter_of_an_hour() {
        let at = |secs| Timestamp::from_millis(secs * 1000);
        let proof = RoleProof {
            at: at(10_000),
            access_key_id: String::new(),
            session_token: String::new(),
            signature: String::new(),
        };
        let too_old = |taken: u64, now: u64| too_old(&proof, at(taken), at(now)).is_some();

        assert!(!too_old(10_000, 10_000) && !too_old(10_840, 10_840) && !too_old(9_200, 9_200));
        // Stood in the queue, came late to the queue, and was made by a clock that is ahead.
        assert!(too_old(10_000, 10_841) && too_old(10_901, 10_901) && too_old(9_099, 9_099));
    }
}
