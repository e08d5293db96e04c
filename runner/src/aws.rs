//! The settings of AWS clients: one HTTP client, a deadline for each call, and the standard chain of credentials and
//! endpoints.

use std::sync::OnceLock;
use std::time::Duration;

use aws_config::stalled_stream_protection::StalledStreamProtectionConfig;
use aws_config::{BehaviorVersion, ConfigLoader, Region, SdkConfig};
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_http_client::proxy::ProxyConfig;
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use aws_smithy_http_client::{Builder, Connector};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::byte_stream::ByteStream;
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use aws_types::sdk_config::SharedHttpClient;
use bytes::Bytes;
use freehold_aws_errors::Meaning;
pub use freehold_aws_errors::chain as explain;
use freehold_oci::RegistryError;

/// The time limit of one attempt at an ordinary call.
const ATTEMPT: Duration = Duration::from_secs(10);
/// The time limit of an ordinary call, retries included.
const OPERATION: Duration = Duration::from_secs(30);
const CONNECT: Duration = Duration::from_secs(5);
/// The time limit for the next bytes of a streamed response.
const STALLED: Duration = Duration::from_secs(20);

/// Returns the settings of AWS clients. Without `credentials`, the default chain provides them (environment, profile,
/// container, instance metadata).
pub async fn sdk_config(region: &str, credentials: Option<SharedCredentialsProvider>) -> SdkConfig {
    let mut loader = loader().region(Region::new(region.to_owned()));
    if let Some(credentials) = credentials {
        loader = loader.credentials_provider(credentials);
    }
    loader.load().await
}

/// Returns the settings of AWS clients. The region comes from the environment or the profile, as for AWS tools.
pub async fn default_config() -> SdkConfig {
    loader().load().await
}

fn loader() -> ConfigLoader {
    aws_config::defaults(BehaviorVersion::latest())
        .http_client(http_client())
        .retry_config(RetryConfig::standard().with_max_attempts(3))
        .timeout_config(timeouts(ATTEMPT, OPERATION))
        // The SDK's own protection is not needed: each attempt has a time limit, and `next_bytes` has one for streamed
        // responses. That protection would also check ten times a second whether a long poll makes progress.
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
}

/// Returns timeouts: `attempt` for one attempt at a call, `operation` for all attempts together.
pub fn timeouts(attempt: Duration, operation: Duration) -> TimeoutConfig {
    TimeoutConfig::builder()
        .connect_timeout(CONNECT)
        .operation_attempt_timeout(attempt)
        .operation_timeout(operation)
        .build()
}

/// The reason why a response cannot be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    #[error(transparent)]
    Broken(#[from] aws_smithy_types::byte_stream::error::Error),
    #[error("the response stopped before its end: no bytes came for {} s", STALLED.as_secs())]
    Stalled,
}

/// Returns the next bytes of a streamed response, or `None` at its end. The time limits of a call cover only the head
/// of such a response.
///
/// # Errors
/// When the response is cut off, or no byte comes for twenty seconds.
pub async fn next_bytes(body: &mut ByteStream) -> Result<Option<Bytes>, StreamError> {
    let next = tokio::time::timeout(STALLED, body.try_next()).await;
    Ok(next.map_err(|_| StreamError::Stalled)??)
}

/// Returns the client that all AWS calls of this process share: connections are reused across services.
fn http_client() -> SharedHttpClient {
    static CLIENT: OnceLock<SharedHttpClient> = OnceLock::new();
    CLIENT
        .get_or_init(|| {
            // Reads `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`, like other tools.
            let proxies = ProxyConfig::from_env();
            Builder::new().build_with_connector_fn(move |settings, components| {
                let mut connector = Connector::builder();
                connector.set_connector_settings(settings.cloned());
                connector.set_sleep_impl(components.and_then(RuntimeComponents::sleep_impl));
                connector.set_proxy_config(Some(proxies.clone()));
                connector.tls_provider(Provider::Rustls(CryptoMode::Ring)).build()
            })
        })
        .clone()
}

/// Returns the client for calls to IAM and EKS on behalf of a job, which the runner makes without an SDK. It follows no
/// redirect, because the signature is for one host. All jobs share the client, because reading and parsing the system's
/// root certificates takes milliseconds.
///
/// # Errors
/// When no root certificate can be loaded.
pub fn request_client() -> Result<reqwest::Client, RegistryError> {
    static CLIENT: OnceLock<reqwest::Client> = OnceLock::new();
    if let Some(client) = CLIENT.get() {
        return Ok(client.clone());
    }
    let client = freehold_oci::client_builder().redirect(reqwest::redirect::Policy::none()).build();
    let client = client.map_err(|error| RegistryError::Client(error.to_string()))?;
    Ok(CLIENT.get_or_init(|| client).clone())
}

/// Returns whether an error code means that a policy does not allow the call.
pub fn is_denied(code: Option<&str>) -> bool {
    Meaning::of(code) == Meaning::Denied
}

#[cfg(test)]
mod tests {
    use aws_credential_types::Credentials;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn a_signed_request_follows_no_redirect() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await.unwrap();
            let head = b"HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n";
            stream.write_all(head).await.unwrap();
            stream
        });

        let answer = request_client().unwrap().get(&url).send().await.unwrap();
        let _open = server.await.unwrap();

        assert_eq!((answer.status().as_u16(), answer.url().as_str()), (307, url.as_str()));
    }

    #[tokio::test]
    async fn an_answer_that_stops_in_the_middle_is_given_up() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nthe beginning").await.unwrap();
            stream
        });
        let own = SharedCredentialsProvider::new(Credentials::for_tests());
        let sdk = sdk_config("eu-west-1", Some(own)).await.into_builder().endpoint_url(endpoint).build();
        let s3 = aws_sdk_s3::config::Builder::from(&sdk).force_path_style(true).build();
        let answer = aws_sdk_s3::Client::from_conf(s3).get_object().bucket("b").key("k").send().await.unwrap();
        let _open = server.await.unwrap();

        // From here on, the clock advances as soon as everything waits.
        tokio::time::pause();
        let mut body = answer.body;
        let end = loop {
            match next_bytes(&mut body).await {
                Ok(Some(_)) => {}
                end => break end,
            }
        };

        assert!(matches!(end, Err(StreamError::Stalled)), "{end:?}");
    }
}
