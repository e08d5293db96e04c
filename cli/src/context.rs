//! The context of every command: global options, output, and clients made on demand.

use aws_config::SdkConfig;
use clap::Args;
use freehold_protocol::TenantName;
use url::Url;

use crate::api::{Api, Profile};
use crate::error::{Error, Result};
use crate::output::Output;

/// Options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Address of the tenant API.
    #[arg(long, env = "FREEHOLD_API", value_name = "URL", global = true)]
    api: Option<Url>,
    /// The tenant; its API is found by its stack when `--api` is absent.
    #[arg(long, env = "FREEHOLD_TENANT", value_name = "NAME", global = true)]
    tenant: Option<TenantName>,
    /// AWS region; otherwise that of the environment or the profile.
    #[arg(long, value_name = "REGION", global = true)]
    aws_region: Option<String>,
    /// Key of a request that is sent again: the same key never starts a second thing.
    #[arg(long, value_name = "KEY", global = true)]
    idempotency_key: Option<String>,
    /// Print JSON.
    #[arg(long, global = true)]
    json: bool,
}

/// The global options, understood.
#[derive(Debug)]
pub(crate) struct Context {
    profile: Profile,
    region: Option<String>,
    pub(crate) out: Output,
}

impl Context {
    pub(crate) fn new(global: Global) -> Self {
        let profile = Profile { api: global.api, tenant: global.tenant, idempotency_key: global.idempotency_key };
        Self { profile, region: global.aws_region, out: Output::of_process(global.json) }
    }

    /// Returns this context in `region`, when there is one.
    pub(crate) fn in_region(self, region: Option<String>) -> Self {
        Self { region: region.or(self.region), ..self }
    }

    /// Returns the settings of AWS clients.
    pub(crate) async fn config(&self) -> Result<SdkConfig> {
        crate::aws::config(self.region.as_deref()).await
    }

    /// Returns the client of the tenant API.
    pub(crate) async fn api(&self) -> Result<Api> {
        Api::connect(&self.profile, &self.config().await?).await
    }

    /// Returns the client of the API of a tenant that is known by name.
    pub(crate) async fn api_of(&self, tenant: &TenantName, config: &SdkConfig) -> Result<Api> {
        let profile = Profile { tenant: Some(tenant.clone()), ..self.profile.clone() };
        Api::connect(&profile, config).await
    }

    /// Returns the tenant that `name`, or else `--tenant`, says.
    pub(crate) fn tenant(&self, name: Option<&TenantName>) -> Result<TenantName> {
        match name.or(self.profile.tenant.as_ref()) {
            Some(name) => Ok(name.clone()),
            None => Err(Error::invalid("which tenant? Pass `--name NAME`, or set FREEHOLD_TENANT")),
        }
    }
}
