//! Finds the address of the tenant API: from an option, or in the outputs of the tenant's stack.

use aws_config::SdkConfig;
use freehold_client::API_URL;
use freehold_protocol::TenantName;
use url::Url;

pub(crate) use freehold_client::stack_name;

use crate::cloudformation::{Stack, Stacks};
use crate::error::{Error, Result};

/// The output of the tenant's stack with the issuer of people's tokens.
pub(crate) const PEOPLE_ISSUER: &str = "PeopleIssuer";
/// The output of the tenant's stack with the id of the client that people sign in with.
pub(crate) const PEOPLE_CLIENT_ID: &str = "PeopleClientId";

/// The settings for the tenant API from the arguments and the environment.
#[derive(Debug, Clone)]
pub(crate) struct Profile {
    pub(crate) api: Option<Url>,
    pub(crate) tenant: Option<TenantName>,
    pub(crate) idempotency_key: Option<String>,
}

impl Profile {
    /// Returns the API's address. Reads it from the tenant's stack when only the tenant is known.
    pub(super) async fn api_url(&self, config: &SdkConfig) -> Result<Url> {
        if let Some(url) = &self.api {
            return Ok(url.clone());
        }
        let tenant = self.tenant()?;
        api_url_of(&tenant_stack(config, tenant).await?)
    }

    /// Returns the tenant's name. Returns an error if neither the options nor the environment name a tenant.
    pub(crate) fn tenant(&self) -> Result<&TenantName> {
        self.tenant.as_ref().ok_or_else(|| {
            Error::invalid("no tenant is given")
                .or("pass `--tenant NAME` or `--api URL`, or set FREEHOLD_TENANT or FREEHOLD_API")
        })
    }
}

/// Returns the address of the API in the outputs of a tenant's stack.
pub(crate) fn api_url_of(stack: &Stack) -> Result<Url> {
    let url = stack.output(API_URL)?;
    url.parse().map_err(|e| {
        Error::internal(format!(
            "output `{API_URL}` of stack `{}` is not a valid address: {e}; pass `--api URL`",
            stack.name
        ))
    })
}

/// Returns the stack of a tenant. The error about an absent stack names the account and the region.
pub(crate) async fn tenant_stack(config: &SdkConfig, tenant: &TenantName) -> Result<Stack> {
    let name = stack_name(tenant);
    if let Some(stack) = Stacks::new(config).find(&name).await? {
        return Ok(stack);
    }
    let place = crate::aws::place(config).await?;
    Err(Error::not_found(format!("there is no tenant `{tenant}` in {place} (no stack `{name}`)")).or(format!(
        "check the tenant's name, AWS_PROFILE, and the region (`--aws-region`, or else AWS_REGION), or run `freehold tenant deploy \
         --name {tenant}`"
    )))
}
