//! AWS itself, as an opt-in: two accounts, each named by a profile with administrator rights.

use anyhow::{Context as _, ensure};
use aws_credential_types::Credentials;
use aws_credential_types::provider::ProvideCredentials as _;

use super::clients;
use super::cloud::{Capability, Cloud, Started};

const TENANT: &str = "FREEHOLD_AWS_TENANT_PROFILE";
const CUSTOMER: &str = "FREEHOLD_AWS_CUSTOMER_PROFILE";

/// Two accounts of AWS.
#[derive(Debug)]
struct Aws {
    tenant: Account,
    customer: Account,
}

#[derive(Debug)]
struct Account {
    id: String,
    credentials: Credentials,
}

/// Returns the accounts of the two profiles.
///
/// # Errors
/// When a profile is not usable.
pub(super) async fn start() -> anyhow::Result<Started> {
    let (Ok(tenant), Ok(customer)) = (std::env::var(TENANT), std::env::var(CUSTOMER)) else {
        return Ok(Started::Skip(format!("{TENANT} and {CUSTOMER} do not both name an AWS profile")));
    };
    let (tenant, customer) = (account(&tenant).await?, account(&customer).await?);
    ensure!(tenant.id != customer.id, "{TENANT} and {CUSTOMER} are the same account, {}", tenant.id);
    Ok(Started::Cloud(Box::new(Aws { tenant, customer })))
}

async fn account(profile: &str) -> anyhow::Result<Account> {
    let provider = aws_config::profile::ProfileFileCredentialsProvider::builder().profile_name(profile).build();
    let credentials = provider.provide_credentials().await.with_context(|| format!("profile `{profile}`"))?;
    let sts = aws_sdk_sts::Client::new(&clients::config(None, credentials.clone())?);
    let identity = sts.get_caller_identity().send().await.with_context(|| format!("profile `{profile}`"))?;
    let id = identity.account().context("an identity without an account")?.to_owned();
    Ok(Account { id, credentials })
}

impl Cloud for Aws {
    fn name(&self) -> String {
        format!("AWS, region {}", clients::REGION)
    }

    fn endpoint(&self) -> Option<&str> {
        None
    }

    fn capabilities(&self) -> &[Capability] {
        &[Capability::HttpApi, Capability::Registry, Capability::IamEnforced, Capability::Ed25519]
    }

    fn tenant_account(&self) -> &str {
        &self.tenant.id
    }

    fn customer_account(&self, number: u32) -> anyhow::Result<String> {
        ensure!(number == 0, "there is one customer's account only");
        Ok(self.customer.id.clone())
    }

    fn administrator(&self, account: &str) -> anyhow::Result<Credentials> {
        let all = [&self.tenant, &self.customer];
        let found = all.into_iter().find(|known| known.id == account);
        Ok(found.with_context(|| format!("account {account} is neither profile's"))?.credentials.clone())
    }
}
