//! The configuration of AWS clients: the default chain of credentials and settings, and timeouts for every call.

use std::net::SocketAddr;
use std::sync::OnceLock;
use std::time::Duration;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_smithy_http_client::proxy::ProxyConfig;
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use aws_smithy_http_client::{Builder, Connector};
use aws_smithy_runtime_api::client::dns::{DnsFuture, ResolveDns, ResolveDnsError};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use aws_types::sdk_config::SharedHttpClient;
use freehold_client::lookup_host;
use freehold_protocol::AccountId;
use url::Url;

use crate::error::{Error, Result, ResultExt};

const CONNECT: Duration = Duration::from_secs(10);
/// The maximum wait for a connection to an endpoint that is not AWS itself.
const ENDPOINT: Duration = Duration::from_secs(3);
/// The time limit of one try. It is long, because the code of a function is uploaded in one call.
const ATTEMPT: Duration = Duration::from_secs(120);

/// Returns the configuration of AWS clients. `region` takes precedence over the environment and the profile.
pub(crate) async fn config(region: Option<&str>) -> Result<SdkConfig> {
    let mut loader = aws_config::defaults(BehaviorVersion::latest())
        .http_client(http_client())
        .retry_config(RetryConfig::standard().with_max_attempts(5))
        .timeout_config(TimeoutConfig::builder().connect_timeout(CONNECT).operation_attempt_timeout(ATTEMPT).build());
    if let Some(region) = region {
        loader = loader.region(Region::new(region.to_owned()));
    }
    let config = loader.load().await;
    match config.region() {
        Some(found) => crate::region::check(found.as_ref(), region.is_some())?,
        None => {
            let wrong = Error::invalid("no AWS region is named");
            return Err(wrong.or("pass `--aws-region`, set AWS_REGION, or set a region in your AWS profile"));
        }
    }
    // The SDK ignores a variable that it cannot parse, and would then call AWS itself.
    let variable = std::env::var("AWS_ENDPOINT_URL").ok().filter(|url| !url.is_empty());
    if let Some(endpoint) = variable.as_deref().or(config.endpoint_url()) {
        check_endpoint(endpoint).await?;
    }
    Ok(config)
}

/// Checks that a server listens at the endpoint that the environment or the profile names. Without this check, each
/// call would be retried for seconds, and its error would not name the wrong address.
async fn check_endpoint(endpoint: &str) -> Result<()> {
    let broken = |why: String| {
        Error::invalid(format!("AWS_ENDPOINT_URL is `{endpoint}`: {why}; correct it, or unset it to use AWS itself"))
    };
    let no_address = || broken("this is not an address such as `http://127.0.0.1:4566`".to_owned());
    let url: Url = endpoint.parse().map_err(|_| no_address())?;
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return Err(no_address());
    };
    let lost = |why: &str| {
        Error::transient(format!(
            "no server responds at {endpoint}, which AWS_ENDPOINT_URL names ({why}); start the service there, or unset \
             AWS_ENDPOINT_URL to use AWS itself"
        ))
    };
    let connect = async {
        let addresses = lookup_host(host.trim_matches(['[', ']'])).await?;
        let addresses: Vec<SocketAddr> = addresses.into_iter().map(|ip| SocketAddr::new(ip, port)).collect();
        tokio::net::TcpStream::connect(addresses.as_slice()).await.map(drop)
    };
    match tokio::time::timeout(ENDPOINT, connect).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(lost(&error.to_string())),
        Err(_) => Err(lost(&format!("no connection within {} s", ENDPOINT.as_secs()))),
    }
}

/// Returns the region of `config`.
pub(crate) fn region(config: &SdkConfig) -> String {
    config.region().map(|region| region.as_ref().to_owned()).unwrap_or_default()
}

/// The AWS identity that makes the calls.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) account: AccountId,
    pub(crate) arn: String,
}

/// Returns the account and the ARN that the credentials belong to.
pub(crate) async fn caller(config: &SdkConfig) -> Result<Caller> {
    let identity = aws_sdk_sts::Client::new(config).get_caller_identity().send().await.doing("ask AWS who you are")?;
    let account = identity.account().unwrap_or_default().parse();
    let account = account.map_err(|e| {
        Error::internal(format!("AWS returned an account id that is not valid: {e}; check AWS_ENDPOINT_URL"))
    })?;
    Ok(Caller { account, arn: identity.arn().unwrap_or_default().to_owned() })
}

/// Returns the account that the credentials belong to.
pub(crate) async fn account(config: &SdkConfig) -> Result<AccountId> {
    caller(config).await.map(|caller| caller.account)
}

/// Returns the account and region that the credentials and settings select, for messages: `account 111111111111, region
/// eu-west-1`.
pub(crate) async fn place(config: &SdkConfig) -> Result<String> {
    Ok(format!("account {}, region {}", account(config).await?, region(config)))
}

/// Returns the client that all AWS calls of this process share.
fn http_client() -> SharedHttpClient {
    static CLIENT: OnceLock<SharedHttpClient> = OnceLock::new();
    CLIENT
        .get_or_init(|| {
            // Reads `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`, as the runner and the client of the tenant API do.
            let proxies = ProxyConfig::from_env();
            Builder::new().build_with_connector_fn(move |settings, components| {
                let mut connector = Connector::builder();
                connector.set_connector_settings(settings.cloned());
                connector.set_sleep_impl(components.and_then(RuntimeComponents::sleep_impl));
                connector.set_proxy_config(Some(proxies.clone()));
                connector.tls_provider(Provider::Rustls(CryptoMode::Ring)).build_with_resolver(Resolver)
            })
        })
        .clone()
}

/// Resolves the host names of endpoints as the client of the tenant API does.
#[derive(Debug, Clone, Copy)]
struct Resolver;

impl ResolveDns for Resolver {
    fn resolve_dns<'a>(&'a self, name: &'a str) -> DnsFuture<'a> {
        DnsFuture::new(async move { lookup_host(name).await.map_err(ResolveDnsError::new) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_endpoint_where_nothing_listens_is_named_at_once() {
        let free = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap().local_addr().unwrap();

        let dead = check_endpoint(&format!("http://{free}")).await.unwrap_err();
        let broken = check_endpoint("127.0.0.1:4566").await.unwrap_err();

        assert_eq!((dead.kind().exit_code(), broken.kind().exit_code()), (5, 2));
        assert!(dead.to_string().starts_with(&format!("no server responds at http://{free}, which ")), "{dead}");
        assert!(broken.to_string().starts_with("AWS_ENDPOINT_URL is `127.0.0.1:4566`: "), "{broken}");
    }

    #[tokio::test]
    async fn an_endpoint_that_listens_is_used() {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();

        assert_eq!(check_endpoint(&format!("http://cloud.localhost:{port}")).await, Ok(()));
    }
}
