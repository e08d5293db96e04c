//! Proves that this runner has the role of its install: signs a request to AWS STS with the credentials of the role, and
//! with the runner's key in a signed header. The runner does not send the request; the control plane does.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_config::SdkConfig;
use aws_credential_types::Credentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{ProvideCredentials as _, SharedCredentialsProvider};
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use freehold_protocol::Timestamp;
use freehold_protocol::envelope::PublicKey;
use freehold_protocol::report::{CallerRequest, RoleProof};

use crate::aws;
use crate::config::Config;

/// The time limit for reading the credentials.
const DEADLINE: Duration = Duration::from_secs(20);

/// Signs with the credentials of this runner.
#[derive(Debug, Clone)]
pub struct RoleProver {
    credentials: Option<SharedCredentialsProvider>,
    region: String,
    needed: String,
}

/// The reason why the runner cannot prove its role.
#[derive(Debug, thiserror::Error)]
pub enum ProveError {
    /// The runner has no credentials of a role.
    #[error("{0}; give this runner credentials of role `{1}` by an instance profile or AWS_PROFILE")]
    NoRole(String, String),
    /// The credentials cannot be read at the moment.
    #[error("cannot read the AWS credentials of this runner now: {0}")]
    Transient(String),
    /// The request cannot be signed.
    #[error("cannot sign a request to AWS STS: {0}")]
    Unsigned(String),
}

impl RoleProver {
    /// Returns the prover of the runner with `config`, which has the credentials of `sdk`.
    pub fn new(config: &Config, sdk: &SdkConfig) -> Self {
        Self { credentials: sdk.credentials_provider(), region: config.region.clone(), needed: config.needed_role() }
    }

    /// Returns the proof that the runner with `key` has the role of `config`, made at this time.
    ///
    /// # Errors
    /// A [`ProveError`].
    pub async fn prove(&self, config: &Config, key: &PublicKey) -> Result<RoleProof, ProveError> {
        let request = CallerRequest::new(&self.region, &config.tenant, &config.install, key);
        let request = request.map_err(|error| ProveError::Unsigned(error.to_string()))?;
        signed(&request, &self.credentials().await?, SystemTime::now()).map_err(ProveError::Unsigned)
    }

    async fn credentials(&self) -> Result<Credentials, ProveError> {
        let none = |reason: &str| ProveError::NoRole(reason.to_owned(), self.needed.clone());
        let Some(provider) = &self.credentials else { return Err(none("no AWS credentials were found")) };
        let read = tokio::time::timeout(DEADLINE, provider.provide_credentials()).await;
        let read = read.map_err(|_| ProveError::Transient(format!("no answer within {} s", DEADLINE.as_secs())))?;
        match read {
            Ok(credentials) if credentials.session_token().is_none_or(str::is_empty) => {
                Err(none("the AWS credentials have no session token, so they are not those of a role"))
            }
            Ok(credentials) => Ok(credentials),
            Err(error @ (CredentialsError::CredentialsNotLoaded(_) | CredentialsError::InvalidConfiguration(_))) => {
                Err(none(&aws::explain(&error)))
            }
            Err(error) => Err(ProveError::Transient(aws::explain(&error))),
        }
    }
}

/// Returns the proof with which these credentials sign `request` at `now`.
///
/// # Errors
/// The reason why the request cannot be signed.
pub fn signed(request: &CallerRequest, credentials: &Credentials, now: SystemTime) -> Result<RoleProof, String> {
    let secs = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let identity = credentials.clone().into();
    let parameters = v4::SigningParams::builder()
        .identity(&identity)
        .region(request.region())
        .name("sts")
        .time(UNIX_EPOCH + Duration::from_secs(secs))
        .settings(SigningSettings::default())
        .build()
        .map_err(|error| error.to_string())?
        .into();
    let url = format!("https://{}/", request.host());
    let headers = [("content-type", CallerRequest::CONTENT_TYPE), (CallerRequest::BINDING_HEADER, request.binding())];
    let body = SignableBody::Bytes(CallerRequest::BODY.as_bytes());
    let signable = SignableRequest::new("POST", url, headers.into_iter(), body).map_err(|error| error.to_string())?;
    let signature = sign(signable, &parameters).map_err(|error| error.to_string())?.signature().to_owned();
    Ok(RoleProof {
        at: Timestamp::from_millis(secs.saturating_mul(1000)),
        access_key_id: credentials.access_key_id().to_owned(),
        session_token: credentials.session_token().unwrap_or_default().to_owned(),
        signature,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Role;
    use crate::testing::config;

    fn credentials(token: Option<&str>) -> Credentials {
        Credentials::new("ASIA0123456789ABCDEF", "wJalrXUtnFEMI/K7MDENG", token.map(str::to_owned), None, "test")
    }

    fn request() -> CallerRequest {
        let key = ed25519_dalek::SigningKey::from_bytes(&[7; 32]).verifying_key().into();
        CallerRequest::new("eu-west-1", &"acme".parse().unwrap(), &"globex".parse().unwrap(), &key).unwrap()
    }

    /// The control plane makes the header `authorization` from the proof. It has to be the header that signing made, or
    /// the signature covers other headers than STS is told.
    #[test]
    fn the_control_planes_headers_are_those_that_were_signed() {
        let now = UNIX_EPOCH + Duration::from_secs(1_795_420_134);
        let (request, credentials) = (request(), credentials(Some("FwoGZXIvYXdz+/=")));

        let proof = signed(&request, &credentials, now).unwrap();
        let headers = request.headers(&proof).unwrap();

        let identity = credentials.into();
        let parameters = v4::SigningParams::builder().identity(&identity).region("eu-west-1").name("sts").time(now);
        let parameters = parameters.settings(SigningSettings::default()).build().unwrap().into();
        let own = headers.iter().filter(|(name, _)| *name == "content-type" || *name == CallerRequest::BINDING_HEADER);
        let own = own.map(|(name, value)| (*name, value.as_str()));
        let body = SignableBody::Bytes(CallerRequest::BODY.as_bytes());
        let url = "https://sts.eu-west-1.amazonaws.com/";
        let (instructions, _) =
            sign(SignableRequest::new("POST", url, own, body).unwrap(), &parameters).unwrap().into_parts();
        for (name, value) in instructions.headers() {
            assert!(headers.contains(&(leaked(name), value.to_owned())), "{name}: {value}\n{headers:?}");
        }
        assert_eq!(instructions.headers().count(), 3, "date, token and authorization");
    }

    fn leaked(name: &str) -> &'static str {
        name.to_owned().leak()
    }

    #[test]
    fn each_bound_fact_changes_the_signature() {
        let now = UNIX_EPOCH + Duration::from_secs(1_795_420_134);
        let at = |request: &CallerRequest, now| signed(request, &credentials(Some("token")), now).unwrap().signature;
        let key = ed25519_dalek::SigningKey::from_bytes(&[8; 32]).verifying_key().into();
        let other =
            CallerRequest::new("eu-west-1", &"acme".parse().unwrap(), &"globex".parse().unwrap(), &key).unwrap();

        assert_eq!(at(&request(), now), at(&request(), now + Duration::from_millis(900)));
        assert_ne!(at(&request(), now), at(&request(), now + Duration::from_secs(1)));
        assert_ne!(at(&request(), now), at(&other, now));
    }

    #[tokio::test]
    async fn credentials_without_a_session_prove_no_role() {
        let config = config("/state", Role::Install);
        let prover = |token| {
            let provider = SharedCredentialsProvider::new(credentials(token));
            RoleProver { credentials: Some(provider), region: "eu-west-1".into(), needed: config.needed_role() }
        };
        let key = ed25519_dalek::SigningKey::from_bytes(&[7; 32]).verifying_key().into();

        let refused = prover(None).prove(&config, &key).await.unwrap_err().to_string();

        assert_eq!(
            refused,
            "the AWS credentials have no session token, so they are not those of a role; give this runner credentials of \
             role `fh-acme--globex-prod--runner` by an instance profile or AWS_PROFILE"
        );
        assert!(prover(Some("token")).prove(&config, &key).await.is_ok());
    }
}
