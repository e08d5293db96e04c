//! A cloud to test on, its capabilities, and the message about a test that is skipped.

use std::fmt;
use std::io::Write as _;

use aws_credential_types::Credentials;

/// What a test may need of a cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// API Gateway v2 with IAM authorisation.
    HttpApi,
    /// ECR with its `/v2` data plane.
    Registry,
    /// Policies decide: identity, resource, boundary, session.
    IamEnforced,
    /// Any 12-digit number is an account of its own, with a root to act as.
    AnyAccount,
    /// Nobody else's things are in the accounts.
    EmptyAccounts,
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HttpApi => "HTTP APIs with IAM authorisation",
            Self::Registry => "a container registry",
            Self::IamEnforced => "enforced IAM policies",
            Self::AnyAccount => "accounts by number",
            Self::EmptyAccounts => "accounts of its own",
        })
    }
}

/// A running cloud. It ends, where it was started by us, when it is dropped or when this process ends.
pub trait Cloud: Send + Sync + fmt::Debug {
    /// Returns name and version, as results name it.
    fn name(&self) -> String;

    /// Returns where it answers; nothing for AWS itself.
    fn endpoint(&self) -> Option<&str>;

    /// Returns what it can do.
    fn capabilities(&self) -> &[Capability];

    /// Returns the tenant's account.
    fn tenant_account(&self) -> &str;

    /// Returns the `number`-th customer's account, from 0.
    ///
    /// # Errors
    /// When it has not so many.
    fn customer_account(&self, number: u32) -> anyhow::Result<String>;

    /// Returns credentials that may do everything in `account`.
    ///
    /// # Errors
    /// When the account is not one of this cloud's.
    fn administrator(&self, account: &str) -> anyhow::Result<Credentials>;
}

/// A cloud, or why there is none.
#[derive(Debug)]
pub enum Started {
    Cloud(Box<dyn Cloud>),
    Skip(String),
}

/// Says that `test` does not run, and why: on stderr and in the file that `FREEHOLD_SKIPS` names.
///
/// # Errors
/// When that file cannot be written.
pub fn skip(test: &str, reason: &str) -> anyhow::Result<()> {
    let line = format!("SKIPPED {test}: {reason}");
    eprintln!("{line}");
    if let Some(path) = std::env::var_os("FREEHOLD_SKIPS") {
        let mut file = std::fs::File::options().create(true).append(true).open(path)?;
        writeln!(file, "{line}")?;
    }
    Ok(())
}
