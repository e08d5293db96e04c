//! An install in the customer's own account, which the customer's credentials and `--tenant` select.

use aws_config::SdkConfig;
use aws_sdk_s3::Client;
use freehold_protocol::envelope::PublicKey;
use freehold_protocol::succession::Roots;
use freehold_protocol::{AccountId, InstallId, TenantName, names};

use crate::cloudformation::{Stack, Stacks};
use crate::context::Context;
use crate::error::{Error, Kind, Result};

/// The output of the install stack with the vendor's root key.
const TENANT_KEY: &str = "TenantKey";
const TENANT_SECOND_KEY: &str = "TenantSecondKey";
/// The output of the install stack with the URL of a queue in the vendor's account.
const ORDERS_QUEUE_URL: &str = "OrdersQueueUrl";

/// An install in the customer's own account.
#[derive(Debug)]
pub(crate) struct OwnInstall {
    pub(crate) config: SdkConfig,
    pub(crate) tenant: TenantName,
    pub(crate) install: InstallId,
    pub(crate) account: AccountId,
}

impl OwnInstall {
    /// Looks up the account of the credentials. The vendor's name comes from `--tenant`.
    pub(crate) async fn find(context: &Context, install: &InstallId) -> Result<Self> {
        let tenant = context.named_tenant()?.ok_or_else(|| {
            Error::invalid("the vendor's name is missing")
                .or("pass `--tenant NAME` with the vendor's name, as the template gives it")
        })?;
        let config = context.config().await?;
        let account = crate::aws::account(&config).await?;
        Ok(Self { config, tenant, install: install.clone(), account })
    }

    pub(crate) fn stack_name(&self) -> String {
        names::install_stack(&self.tenant, &self.install)
    }

    pub(crate) fn bucket(&self) -> String {
        names::install_bucket(&self.tenant, &self.install, &self.account)
    }

    pub(crate) fn s3(&self) -> Client {
        let settings = aws_sdk_s3::config::Builder::from(&self.config).force_path_style(true).build();
        Client::from_conf(settings)
    }

    /// Returns the launched stack.
    pub(crate) async fn stack(&self) -> Result<Stack> {
        let name = self.stack_name();
        Stacks::new(&self.config).find(&name).await?.ok_or_else(|| {
            let (account, region) = (&self.account, crate::aws::region(&self.config));
            Error::not_found(format!("there is no stack `{name}` in account {account}, region {region}"))
                .or("check the name, `--tenant`, the region and the credentials")
        })
    }

    /// Returns the account of the queues that the launched stack names.
    pub(crate) async fn queue_account(&self) -> Result<Option<String>> {
        let stack = Stacks::new(&self.config).find(&self.stack_name()).await?;
        let url = stack.as_ref().and_then(|stack| stack.outputs.get(ORDERS_QUEUE_URL));
        Ok(url.and_then(|url| names::account_of_queue(url)).map(str::to_owned))
    }

    /// Returns the vendor's root key that the launched stack names, and the only key that may follow it.
    pub(crate) async fn roots(&self) -> Result<Option<Roots>> {
        let Some(stack) = Stacks::new(&self.config).find(&self.stack_name()).await? else { return Ok(None) };
        let key = |output: &str| -> Result<Option<PublicKey>> {
            let text = stack.outputs.get(output).filter(|text| *text != "none");
            text.map(|text| text.parse()).transpose().map_err(|error| {
                let message = format!("output `{output}` of stack `{}` is not a key: {error}", stack.name);
                Error::quoting(Kind::Failed, message).or("launch the vendor's template again")
            })
        };
        let second = key(TENANT_SECOND_KEY)?;
        Ok(key(TENANT_KEY)?.map(|root| Roots::given(self.tenant.clone(), root, second)))
    }
}
