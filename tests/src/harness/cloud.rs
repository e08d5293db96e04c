//! A cloud to test on, and its capabilities.

use std::fmt;

use aws_credential_types::Credentials;

/// What a test may need of a cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// API Gateway v2 with IAM authorisation.
    HttpApi,
    /// ECR with its `/v2` data plane.
    Registry,
    /// Enforced IAM policies: identity, resource, boundary, session.
    IamEnforced,
    /// Any 12-digit number is an account of its own, with a root to act as.
    AnyAccount,
    /// Kubernetes clusters with IAM authentication.
    Clusters,
    /// Ed25519 keys in KMS.
    Ed25519,
    /// Accounts without resources of others.
    EmptyAccounts,
    /// DynamoDB tables.
    Tables,
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HttpApi => "HTTP APIs with IAM authorisation",
            Self::Registry => "a container registry",
            Self::IamEnforced => "enforced IAM policies",
            Self::AnyAccount => "accounts by number",
            Self::Clusters => {
                "Kubernetes clusters; `localstack/kubernetes/build` builds their programs or says why not"
            }
            Self::Ed25519 => "Ed25519 keys in KMS",
            Self::EmptyAccounts => "accounts of its own",
            Self::Tables => "DynamoDB tables",
        })
    }
}

/// A running cloud. A cloud that we started ends when it is dropped or when this process ends.
pub trait Cloud: Send + Sync + fmt::Debug {
    /// Returns the name and version for results.
    fn name(&self) -> String;

    /// Returns its endpoint; nothing for AWS itself.
    fn endpoint(&self) -> Option<&str>;

    /// Returns its capabilities.
    fn capabilities(&self) -> &[Capability];

    /// Returns the tenant's account.
    fn tenant_account(&self) -> &str;

    /// Returns the `number`-th customer's account, from 0.
    ///
    /// # Errors
    /// When it has fewer accounts.
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
