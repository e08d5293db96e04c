//! Finds the address of a tenant's API in the outputs of the tenant's stack.

use aws_config::SdkConfig;
use aws_sdk_cloudformation::Client;
use aws_sdk_cloudformation::error::ProvideErrorMetadata;
use freehold_aws_errors::chain;
use freehold_protocol::TenantName;
use url::Url;

use crate::error::Error;

/// The output of the tenant's stack with the address of the API.
pub const API_URL: &str = "ApiUrl";

/// Returns the name of a tenant's stack.
pub fn stack_name(tenant: &TenantName) -> String {
    format!("freehold-{tenant}")
}

/// Returns the address of the API of `tenant`, in the account and region of `config`.
///
/// # Errors
/// NoTenant, NoAddress, Lookup, or Address.
pub(crate) async fn api_url(config: &SdkConfig, tenant: &TenantName) -> Result<Url, Error> {
    let stack = stack_name(tenant);
    let found = match Client::new(config).describe_stacks().stack_name(&stack).send().await {
        Ok(found) => found,
        Err(error) if error.message().is_some_and(|message| message.contains("does not exist")) => {
            return Err(Error::NoTenant(stack));
        }
        Err(error) => return Err(Error::Lookup { stack, reason: chain(&error) }),
    };
    let mut outputs = found.stacks().iter().flat_map(|stack| stack.outputs());
    let output = outputs.find(|output| output.output_key() == Some(API_URL));
    let address = output.and_then(|output| output.output_value()).ok_or(Error::NoAddress(stack))?;
    address.parse().map_err(|_| Error::Address(address.to_owned()))
}
