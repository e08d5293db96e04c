//! A function's connection to AWS. Credentials and region come from the environment, which Lambda sets. Each call has a
//! deadline.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use aws_config::SdkConfig;
use aws_config::environment::credentials::EnvironmentVariableCredentialsProvider;
use aws_config::{BehaviorVersion, Region};
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use freehold_app::ports::Clock;
use freehold_protocol::Timestamp;

/// The longest time that one attempt of a call may take.
const ATTEMPT: Duration = Duration::from_secs(3);
/// The longest time that a call may take, retries included. It is shorter than a function's own time limit.
const OPERATION: Duration = Duration::from_secs(10);

/// Returns the connection settings of this process.
pub fn sdk_config() -> SdkConfig {
    let http = aws_smithy_http_client::Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https();
    let mut config = SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .http_client(http)
        .sleep_impl(aws_smithy_async::rt::sleep::SharedAsyncSleep::new(aws_smithy_async::rt::sleep::TokioSleep::new()))
        .time_source(aws_smithy_async::time::SystemTimeSource::new())
        .credentials_provider(SharedCredentialsProvider::new(EnvironmentVariableCredentialsProvider::new()))
        .retry_config(RetryConfig::standard().with_max_attempts(5))
        .timeout_config(
            TimeoutConfig::builder()
                .connect_timeout(Duration::from_secs(2))
                .operation_attempt_timeout(ATTEMPT)
                .operation_timeout(OPERATION)
                .build(),
        );
    if let Ok(region) = std::env::var("AWS_REGION") {
        config = config.region(Region::new(region));
    }
    if let Ok(endpoint) = std::env::var("AWS_ENDPOINT_URL") {
        config = config.endpoint_url(endpoint);
    }
    config.build()
}

/// The system clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}
