//! LocalStack that runs already, such as the one that `localstack/cloud test --engine localstack` starts without Docker.

use anyhow::Context as _;
use aws_credential_types::Credentials;

use super::cloud::{Capability, Cloud};

/// The variable that names its endpoint.
pub(super) const ENDPOINT: &str = "FREEHOLD_LOCALSTACK_ENDPOINT";

#[derive(Debug)]
pub(super) struct RunningLocalStack {
    endpoint: String,
}

/// Returns the LocalStack whose endpoint is in the environment.
///
/// # Errors
/// When the variable is not a text.
pub(super) fn find() -> anyhow::Result<RunningLocalStack> {
    let endpoint = std::env::var(ENDPOINT).with_context(|| format!("`{ENDPOINT}` is not a URL"))?;
    Ok(RunningLocalStack { endpoint })
}

impl Cloud for RunningLocalStack {
    fn name(&self) -> String {
        format!("LocalStack at {}", self.endpoint)
    }

    fn endpoint(&self) -> Option<&str> {
        Some(&self.endpoint)
    }

    /// SQS, Step Functions, S3, IAM, KMS and STS; neither ECR nor HTTP APIs nor enforced policies.
    fn capabilities(&self) -> &[Capability] {
        &[Capability::AnyAccount, Capability::EmptyAccounts]
    }

    fn tenant_account(&self) -> &str {
        "111111111111"
    }

    fn customer_account(&self, number: u32) -> anyhow::Result<String> {
        Ok(format!("{:012}", 222_222_222_222_u64 + u64::from(number)))
    }

    fn administrator(&self, account: &str) -> anyhow::Result<Credentials> {
        Ok(Credentials::new(account, "local", None, None, "administrator"))
    }
}
