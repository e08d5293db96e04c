//! LocalStack that runs already, such as the one that `localstack/cloud test --engine localstack` starts without Docker.

use anyhow::Context as _;

use super::cloud::Capability;
use super::emulator::Emulator;

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

impl Emulator for RunningLocalStack {
    fn name(&self) -> String {
        format!("LocalStack at {}", self.endpoint)
    }

    fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// SQS, SNS, Step Functions, S3, IAM, KMS and STS; neither ECR nor HTTP APIs nor enforced policies.
    fn capabilities(&self) -> &[Capability] {
        &[Capability::AnyAccount, Capability::EmptyAccounts]
    }
}
