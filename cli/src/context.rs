//! The context of every command: global options, output, and clients made on demand.

use std::fmt::Display;
use std::str::FromStr;

use aws_config::SdkConfig;
use clap::{Arg, Args, Command};
use freehold_protocol::TenantName;
use url::Url;

use crate::api::{Api, Profile};
use crate::bearer::Bearer;
use crate::error::{Error, Result};
use crate::output::Output;

/// Options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Address of the tenant API [env: FREEHOLD_API].
    #[arg(long, value_name = "URL", global = true)]
    api: Option<Address>,
    /// Name of the tenant; without `--api`, the command reads the API's address from the tenant's stack [env:
    /// FREEHOLD_TENANT].
    #[arg(long, value_name = "NAME", global = true)]
    tenant: Option<TenantName>,
    /// AWS region; by default, the region of the environment or the profile.
    #[arg(long, value_name = "REGION", global = true)]
    aws_region: Option<String>,
    /// Sign requests with AWS credentials, also when you are signed in.
    #[arg(long, global = true)]
    as_aws: bool,
    /// Key that makes a repeated request safe: a request with a key that was already used starts nothing new. It stores
    /// secret inputs again, except those of a deploy or an action that has started.
    #[arg(long, value_name = "KEY", global = true)]
    idempotency_key: Option<String>,
    /// Print JSON; errors too, as one line on stderr.
    #[arg(long, global = true)]
    json: bool,
}

impl Global {
    /// Returns the global options that differ for the commands of a customer, who does not call the API of a tenant.
    pub(crate) fn of_customer() -> Vec<Arg> {
        let all = Self::augment_args(Command::new("customer"));
        let other = |arg: &Arg| {
            match arg.get_id().as_str() {
            "api" | "as_aws" | "idempotency_key" => Some(arg.clone().hide(true)),
            "tenant" => Some(arg.clone().help(
                "Name of the vendor, as the template gives it; it is part of the names of your stack and bucket [env: FREEHOLD_TENANT].",
            )),
            _ => None,
        }
        };
        all.get_arguments().filter_map(other).collect()
    }
}

/// The address of a tenant API.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Address(Url);

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse::<Url>() {
            Ok(url) if matches!(url.scheme(), "https" | "http") && url.has_host() => Ok(Self(url)),
            Ok(_) | Err(_) => Err(format!(
                "`{text}` is not the address of a tenant API, which begins with `https://`; `freehold tenant deploy` prints it"
            )),
        }
    }
}

/// The global options, and the output that they choose.
#[derive(Debug)]
pub(crate) struct Context {
    global: Global,
    pub(crate) out: Output,
}

impl Context {
    pub(crate) fn new(global: Global) -> Self {
        let out = Output::of_process(global.json);
        Self { global, out }
    }

    /// Returns this context with another region, if `region` is given.
    pub(crate) fn in_region(self, region: Option<String>) -> Result<Self> {
        let aws_region = crate::region::one_of(region, self.global.aws_region)?;
        Ok(Self { global: Global { aws_region, ..self.global }, ..self })
    }

    /// Returns the configuration of AWS clients.
    pub(crate) async fn config(&self) -> Result<SdkConfig> {
        crate::aws::config(self.global.aws_region.as_deref()).await
    }

    /// Returns the tenant from the options or the environment, if they name one.
    pub(crate) fn named_tenant(&self) -> Result<Option<TenantName>> {
        Ok(self.profile()?.tenant)
    }

    /// Returns the client of the tenant API: with the token of a pipeline or a login, if there is one for this API, or
    /// else with AWS credentials.
    pub(crate) async fn api(&self) -> Result<Api> {
        let profile = self.profile()?;
        if let Some(Bearer { api, kind, source, .. }) = self.bearer()? {
            return Api::with_token(&profile, api, kind, source);
        }
        if profile.api.is_none() {
            profile.tenant()?;
        }
        Api::connect(&profile, &self.config().await?).await
    }

    /// Returns the token that requests carry instead of the signature of AWS credentials, if there is one.
    pub(crate) fn bearer(&self) -> Result<Option<Bearer>> {
        if self.global.as_aws { Ok(None) } else { Bearer::find(&self.profile()?) }
    }

    /// Returns the client of the API of `tenant`.
    pub(crate) async fn api_of(&self, tenant: &TenantName, config: &SdkConfig) -> Result<Api> {
        let profile = Profile { tenant: Some(tenant.clone()), ..self.profile()? };
        Api::connect(&profile, config).await
    }

    /// Returns `name`, or else the tenant from the options or the environment.
    pub(crate) fn tenant(&self, name: Option<&TenantName>) -> Result<TenantName> {
        match name.cloned().or(self.profile()?.tenant) {
            Some(name) => Ok(name),
            None => Err(Error::invalid("no tenant is given").or("pass `--name NAME`, or set FREEHOLD_TENANT")),
        }
    }

    /// Reads the tenant and its API from options and environment. The environment is read here and not by the parser:
    /// the parser would name `--tenant` in the usage of every command, and refuse commands that need no tenant.
    pub(crate) fn profile(&self) -> Result<Profile> {
        let Global { api, tenant, idempotency_key, .. } = &self.global;
        Ok(Profile {
            api: given("FREEHOLD_API", api.as_ref(), |name| std::env::var(name).ok())?.map(|Address(url)| url),
            tenant: given("FREEHOLD_TENANT", tenant.as_ref(), |name| std::env::var(name).ok())?,
            idempotency_key: idempotency_key.clone(),
        })
    }
}

/// Returns the option's value, or else the value of the environment variable `variable`. An empty variable counts as
/// absent.
fn given<T: Clone + FromStr<Err: Display>>(
    variable: &str,
    option: Option<&T>,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Option<T>> {
    match (option, environment(variable).filter(|text| !text.is_empty())) {
        (Some(value), _) => Ok(Some(value.clone())),
        (None, None) => Ok(None),
        (None, Some(text)) => match text.parse() {
            Ok(value) => Ok(Some(value)),
            Err(wrong) => Err(Error::invalid(format!("{variable} is `{text}`: {wrong}"))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(option: Option<&str>, variable: &str) -> Result<Option<TenantName>> {
        let option: Option<TenantName> = option.map(|name| name.parse().unwrap());
        given("FREEHOLD_TENANT", option.as_ref(), |_| Some(variable.to_owned()))
    }

    #[test]
    fn an_option_wins_over_the_environment() {
        assert_eq!(tenant(Some("acme"), "other").unwrap().unwrap().as_str(), "acme");
        assert_eq!(tenant(None, "other").unwrap().unwrap().as_str(), "other");
        assert_eq!(tenant(None, "").unwrap(), None);
    }

    #[test]
    fn what_is_not_the_address_of_an_api_is_refused_in_plain_words() {
        for text in ["foo", "ftp://foo", "localhost:4566", ""] {
            let wrong = text.parse::<Address>().unwrap_err();
            assert!(
                wrong.starts_with(&format!("`{text}` is not the address of a tenant API, which begins")),
                "{wrong}"
            );
        }
        assert!("http://127.0.0.1:1".parse::<Address>().is_ok());
    }

    #[test]
    fn a_broken_variable_is_named() {
        let error = tenant(None, "ACME Corp").unwrap_err();

        assert_eq!(error.kind().exit_code(), 2);
        assert!(error.to_string().starts_with("FREEHOLD_TENANT is `ACME Corp`: "), "{error}");
    }
}
