//! STS: asks whose credentials signed a request that a runner made.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use aws_config::{Region, SdkConfig};
use aws_sdk_sts::Client;
use aws_sdk_sts::config::interceptors::BeforeTransmitInterceptorContextMut;
use aws_sdk_sts::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use freehold_app::ports::{Caller, CallerIdentity, PortError};
use freehold_aws_errors::{Meaning, code_and_message, is_expired};
use freehold_protocol::report::{CallerRequest, RoleProof};

use crate::error::port_error;

const STS: &str = "AWS STS";
/// The longest time that one attempt of a call may take.
const ATTEMPT: Duration = Duration::from_millis(1500);
/// The longest time that a call may take, retries included. The messages of a batch are handled one after another.
const CALL: Duration = Duration::from_secs(3);
const ATTEMPTS: u32 = 2;
/// The time for which STS is not called in a region after it did not respond there, so that several hellos of one batch
/// do not wait for the same region one after another. This time is longer than the time limit of
/// `accept-report`, so a batch waits once for each region.
const REST: Duration = Duration::from_secs(20);

/// Sends requests to STS in the region that they are signed for. With `AWS_ENDPOINT_URL`, all go to that address.
#[derive(Debug, Clone)]
pub struct StsCallerIdentity {
    config: SdkConfig,
    /// The regions in which STS did not respond, with the time of the last call.
    silent: Arc<Mutex<HashMap<String, Instant>>>,
}

impl StsCallerIdentity {
    /// Returns STS with the connection settings of `config`.
    pub fn new(config: &SdkConfig) -> Self {
        Self { config: config.clone(), silent: Arc::default() }
    }

    fn silent(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn client(&self, request: &CallerRequest) -> Client {
        let limits = TimeoutConfig::builder().operation_attempt_timeout(ATTEMPT).operation_timeout(CALL).build();
        let config = aws_sdk_sts::config::Builder::from(&self.config)
            .region(Region::new(request.region().to_owned()))
            .timeout_config(limits)
            .retry_config(RetryConfig::standard().with_max_attempts(ATTEMPTS));
        let config = match self.config.endpoint_url() {
            Some(_) => config,
            None => config.endpoint_url(format!("https://{}", request.host())),
        };
        Client::from_conf(config.build())
    }
}

#[async_trait]
impl CallerIdentity for StsCallerIdentity {
    async fn caller(&self, request: &CallerRequest, proof: &RoleProof) -> Result<Caller, PortError> {
        let headers = request.headers(proof);
        let headers = headers.map_err(|error| PortError::Failed { what: STS.to_owned(), reason: error.to_string() })?;
        let region = request.region();
        if self.silent().get(region).is_some_and(|last| last.elapsed() < REST) {
            return Err(no_answer(format!(
                "STS in region `{region}` did not respond a moment ago, so it was not called again"
            )));
        }
        let call = self.client(request).get_caller_identity().customize().interceptor(SignedElsewhere { headers });
        match call.send().await {
            Ok(found) => match (found.account, found.arn) {
                (Some(account), Some(arn)) => Ok(Caller::Known { account, arn }),
                _ => Err(no_answer("the response of STS lacks the account or the ARN".to_owned())),
            },
            Err(error) => {
                if matches!(error, SdkError::TimeoutError(_) | SdkError::DispatchFailure(_)) {
                    self.silent().insert(region.to_owned(), Instant::now());
                }
                refused(error)
            }
        }
    }
}

/// Returns what the response to a failed request shows about the request's signature. With a code that does not mean
/// wrong credentials, or without a code, the response does not show whose credentials signed the request, and the
/// result is an error.
fn refused<E>(error: SdkError<E, HttpResponse>) -> Result<Caller, PortError>
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    let is_client_error = error.raw_response().is_some_and(|response| response.status().is_client_error());
    let reason = code_and_message(&error).unwrap_or_default();
    match error.code() {
        Some(code) if is_client_error && is_expired(code) => Ok(Caller::Expired),
        code if is_client_error && Meaning::of(code) == Meaning::Credentials => Ok(Caller::Refused(reason)),
        _ => match port_error(STS, error) {
            // The runner signed the request, so the response does not mean that this function's role lacks a
            // permission.
            PortError::Denied { reason, .. } | PortError::Failed { reason, .. } => Err(no_answer(reason)),
            transient @ PortError::Transient { .. } => Err(transient),
        },
    }
}

fn no_answer(reason: String) -> PortError {
    PortError::Transient { what: STS.to_owned(), reason }
}

/// Sends the request of the SDK with the headers that the runner signed instead of those that the SDK signed. The
/// credentials of this function do not leave it.
#[derive(Debug)]
struct SignedElsewhere {
    headers: Vec<(&'static str, String)>,
}

impl Intercept for SignedElsewhere {
    fn name(&self) -> &'static str {
        "SignedElsewhere"
    }

    fn modify_before_transmit(
        &self,
        context: &mut BeforeTransmitInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let request = context.request_mut();
        if request.body().bytes() != Some(CallerRequest::BODY.as_bytes()) {
            return Err("the request to STS does not have the body that the runner signed".into());
        }
        let own: Vec<String> = request.headers().iter().map(|(name, _)| name.to_owned()).collect();
        for name in own.iter().filter(|name| name.as_str() != "content-length") {
            request.headers_mut().remove(name.as_str());
        }
        for (name, value) in &self.headers {
            request.headers_mut().try_insert(*name, value.clone())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use freehold_protocol::Timestamp;

    use crate::silence::Silence;

    use super::*;

    fn request(region: &str) -> CallerRequest {
        let key = ed25519_dalek::SigningKey::from_bytes(&[1; 32]).verifying_key().into();
        CallerRequest::new(region, &"acme".parse().unwrap(), &"globex".parse().unwrap(), &key).unwrap()
    }

    #[tokio::test]
    async fn a_region_that_does_not_answer_holds_a_batch_once_and_no_other_region() {
        let silence = Silence::new();
        let sts = StsCallerIdentity::new(&silence.config());
        let proof = RoleProof {
            at: Timestamp::from_millis(1_700_000_000_000),
            access_key_id: "ASIAEXAMPLEEXAMPLE00".into(),
            session_token: "token".into(),
            signature: "0".repeat(64),
        };
        let begin = Instant::now();
        let mut errors = Vec::new();

        for _ in 0..10 {
            errors.push(sts.caller(&request("eu-west-1"), &proof).await.unwrap_err().to_string());
        }
        let one_region = begin.elapsed();
        let other = sts.caller(&request("us-east-2"), &proof).await.unwrap_err().to_string();

        // Ten calls that wait take ten times as long.
        assert!(one_region < CALL * 8, "{one_region:?}");
        let [first, later @ ..] = errors.as_slice() else { panic!("{errors:?}") };
        assert!(
            !first.contains("did not respond a moment ago") && !other.contains("did not respond a moment ago"),
            "{first} {other}"
        );
        assert!(later.iter().all(|error| error.contains("`eu-west-1` did not respond a moment ago")), "{later:?}");
    }
}
