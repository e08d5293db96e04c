//! Finds the address of the tenant API: as an option gives it, or in the outputs of the tenant's stack.

use aws_config::SdkConfig;
use freehold_protocol::TenantName;
use url::Url;

use crate::cloudformation::Stacks;
use crate::error::{Error, Result};

/// What the arguments and the environment say of the tenant API.
#[derive(Debug, Clone)]
pub(crate) struct Profile {
    pub(crate) api: Option<Url>,
    pub(crate) tenant: Option<TenantName>,
    pub(crate) idempotency_key: Option<String>,
}

impl Profile {
    /// Returns the API's address; asks CloudFormation when only the tenant is known.
    pub(super) async fn api_url(&self, config: &SdkConfig) -> Result<Url> {
        if let Some(url) = &self.api {
            return Ok(url.clone());
        }
        let tenant = self.tenant()?;
        let name = stack_name(tenant);
        let stack = Stacks::new(config).find(&name).await?.ok_or_else(|| {
            Error::not_found(format!(
                "there is no tenant `{tenant}` in this account and region (no stack `{name}`); check `--tenant`, AWS_PROFILE and AWS_REGION, or run `freehold tenant deploy --name {tenant}`"
            ))
        })?;
        let url = stack.output("ApiUrl")?;
        url.parse().map_err(|e| Error::internal(format!("output ApiUrl of stack `{name}` is not an address: {e}")))
    }

    /// Returns the tenant's name, which commands on its resources need.
    pub(crate) fn tenant(&self) -> Result<&TenantName> {
        self.tenant.as_ref().ok_or_else(|| {
            Error::invalid("which tenant? Pass `--tenant NAME` or `--api URL`, or set FREEHOLD_TENANT or FREEHOLD_API")
        })
    }
}

/// Returns the name of a tenant's stack.
pub(crate) fn stack_name(tenant: &TenantName) -> String {
    format!("freehold-{tenant}")
}
