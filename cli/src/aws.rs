//! AWS clients of the command: the default chain of credentials and settings, deadlines on every call.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::OnceLock;
use std::time::Duration;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use aws_smithy_runtime_api::client::dns::{DnsFuture, ResolveDns, ResolveDnsError};
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use aws_types::sdk_config::SharedHttpClient;
use freehold_protocol::AccountId;

use crate::error::{Error, Result, ResultExt};

const CONNECT: Duration = Duration::from_secs(10);
/// The longest that one try may take; function code is uploaded in one call.
const ATTEMPT: Duration = Duration::from_secs(120);

/// Returns what AWS clients are made from; `region` wins over the environment and the profile.
pub(crate) async fn config(region: Option<&str>) -> Result<SdkConfig> {
    let mut loader = aws_config::defaults(BehaviorVersion::latest())
        .http_client(http_client())
        .retry_config(RetryConfig::standard().with_max_attempts(5))
        .timeout_config(TimeoutConfig::builder().connect_timeout(CONNECT).operation_attempt_timeout(ATTEMPT).build());
    if let Some(region) = region {
        loader = loader.region(Region::new(region.to_owned()));
    }
    let config = loader.load().await;
    if config.region().is_none() {
        return Err(Error::invalid("no AWS region; pass `--region`, or set AWS_REGION or a region in your profile"));
    }
    Ok(config)
}

/// Returns the region of `config`.
pub(crate) fn region(config: &SdkConfig) -> String {
    config.region().map(|region| region.as_ref().to_owned()).unwrap_or_default()
}

/// Returns the account that the credentials belong to.
pub(crate) async fn account(config: &SdkConfig) -> Result<AccountId> {
    let identity = aws_sdk_sts::Client::new(config).get_caller_identity().send().await.doing("ask AWS who you are")?;
    let account = identity.account().unwrap_or_default();
    account.parse().map_err(|e| Error::internal(format!("AWS answered with an account id that is not valid: {e}")))
}

/// Returns the client that all AWS calls of this process share.
fn http_client() -> SharedHttpClient {
    static CLIENT: OnceLock<SharedHttpClient> = OnceLock::new();
    CLIENT
        .get_or_init(|| {
            aws_smithy_http_client::Builder::new()
                .tls_provider(Provider::Rustls(CryptoMode::Ring))
                .build_with_resolver(Resolver)
        })
        .clone()
}

/// Resolves names as the system does, and names below `localhost` to loopback whatever the system knows of them
/// (RFC 6761, section 6.3).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resolver;

impl Resolver {
    pub(crate) async fn lookup(name: &str) -> std::io::Result<Vec<IpAddr>> {
        if is_loopback_name(name) {
            return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
        }
        Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
    }
}

impl ResolveDns for Resolver {
    fn resolve_dns<'a>(&'a self, name: &'a str) -> DnsFuture<'a> {
        DnsFuture::new(async move { Self::lookup(name).await.map_err(ResolveDnsError::new) })
    }
}

impl reqwest::dns::Resolve for Resolver {
    fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        Box::pin(async move {
            let found = Self::lookup(name.as_str()).await?;
            let addresses: reqwest::dns::Addrs = Box::new(found.into_iter().map(|ip| (ip, 0).into()));
            Ok(addresses)
        })
    }
}

fn is_loopback_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || name.to_ascii_lowercase().ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_below_localhost_are_loopback_and_no_others() {
        for name in ["localhost", "api.execute-api.localhost", "A.LOCALHOST", "x.localhost."] {
            assert!(is_loopback_name(name), "{name}");
        }
        for name in ["localhost.example.com", "notlocalhost", "amazonaws.com"] {
            assert!(!is_loopback_name(name), "{name}");
        }
    }
}
