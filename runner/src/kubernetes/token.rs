//! Makes tokens for EKS clusters. A token is a pre-signed `sts:GetCallerIdentity` request that names the cluster. The
//! cluster's authenticator sends the request to STS and learns the caller's role from the response.
//!
//! Sources: EKS user guide, "Grant IAM users access to Kubernetes"; aws-iam-authenticator, "API authorization from
//! outside a cluster". The URL always names the STS endpoint of the region, even when `AWS_ENDPOINT_URL` names another,
//! because the authenticator refuses every other host.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials as _, SharedCredentialsProvider};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tokio::sync::Mutex;
use tokio::time::Instant;
use url::Url;

use super::error::ClusterError;
use super::signature::{Scope, presigned};
use crate::record::log::JobLog;

/// The prefix of every token.
const PREFIX: &str = "k8s-aws-v1.";
/// The header of the signed request that names the cluster.
const CLUSTER_HEADER: &str = "x-k8s-aws-id";
/// The lifetime that the signature states. The authenticator has its own limit, 15 minutes from the time of signing.
const SIGNATURE: Duration = Duration::from_secs(60);
/// The time after which a token is replaced. A cluster accepts a token for 15 minutes, but not after the end of the
/// credentials that signed it.
pub(super) const RENEW: Duration = Duration::from_secs(240);
/// A token is replaced this long before the end of the credentials that signed it. Kubernetes clients read the file
/// with the token once a minute.
const BEFORE_END: Duration = Duration::from_secs(120);
/// The shortest time between two tokens, when the credentials are about to end and there are no new credentials yet.
const SHORTEST: Duration = Duration::from_secs(10);

/// The tokens of one job for one cluster.
#[derive(Debug, Clone)]
pub(super) struct Tokens {
    pub(super) cluster: String,
    pub(super) region: String,
    /// The host of STS in the region.
    pub(super) sts: String,
    pub(super) credentials: SharedCredentialsProvider,
    pub(super) log: JobLog,
    pub(super) held: Arc<Mutex<Option<Held>>>,
}

/// A token, and the time at which it is replaced.
#[derive(Debug, Clone)]
pub(super) struct Held {
    token: String,
    renew: Instant,
}

impl Tokens {
    /// Returns a token that the cluster still accepts: it is at most [`RENEW`] old, and its credentials do not end
    /// soon. The job's log redacts it.
    pub(super) async fn current(&self) -> Result<String, ClusterError> {
        let mut held = self.held.lock().await;
        if let Some(held) = held.as_ref()
            && Instant::now() < held.renew
        {
            return Ok(held.token.clone());
        }
        let none = |why: String| ClusterError::NoToken { cluster: self.cluster.clone(), why };
        let credentials = self.credentials.provide_credentials().await;
        let credentials = credentials.map_err(|error| none(crate::aws::explain(&error)))?;
        let token = token(&self.sts, &self.region, &self.cluster, &credentials, SystemTime::now()).map_err(none)?;
        self.log.add_credentials(&[&token]);
        let renew = Instant::now() + lifetime(&credentials, SystemTime::now());
        *held = Some(Held { token: token.clone(), renew });
        Ok(token)
    }

    /// Waits until the current token must be replaced.
    pub(super) async fn until_renewal(&self) {
        let renew = self.held.lock().await.as_ref().map(|held| held.renew);
        tokio::time::sleep_until(renew.unwrap_or_else(|| Instant::now() + SHORTEST)).await;
    }
}

/// Returns how long a token that `credentials` sign `now` is used.
fn lifetime(credentials: &Credentials, now: SystemTime) -> Duration {
    let Some(end) = credentials.expiry() else { return RENEW };
    let left = end.duration_since(now).unwrap_or_default().saturating_sub(BEFORE_END);
    left.clamp(SHORTEST, RENEW)
}

fn token(sts: &str, region: &str, cluster: &str, credentials: &Credentials, now: SystemTime) -> Result<String, String> {
    let url = format!("https://{sts}/?Action=GetCallerIdentity&Version=2011-06-15");
    let url: Url = url.parse().map_err(|error: url::ParseError| error.to_string())?;
    let scope = Scope { service: "sts", region };
    let signed = presigned(scope, url, &[(CLUSTER_HEADER, cluster)], credentials, now, SIGNATURE)?;
    Ok(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(signed.as_str())))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn a_token_is_a_signed_url_of_sts_that_names_the_cluster() {
        let credentials = Credentials::new("AKID", "SECRET", Some("SESSION/+".into()), None, "test");
        let now = UNIX_EPOCH + Duration::from_secs(1_800_000_000);

        let token = token("sts.eu-west-1.amazonaws.com", "eu-west-1", "one", &credentials, now).unwrap();

        let encoded = token.strip_prefix("k8s-aws-v1.").unwrap();
        assert!(!encoded.contains(['=', '+', '/']), "{encoded}");
        let url: Url = String::from_utf8(URL_SAFE_NO_PAD.decode(encoded).unwrap()).unwrap().parse().unwrap();
        let query: BTreeMap<String, String> = url.query_pairs().into_owned().collect();
        let query: BTreeMap<&str, &str> = query.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!((url.scheme(), url.host_str(), url.path()), ("https", Some("sts.eu-west-1.amazonaws.com"), "/"));
        // aws-iam-authenticator refuses every other parameter.
        assert_eq!(
            query.keys().copied().collect::<Vec<_>>(),
            [
                "Action",
                "Version",
                "X-Amz-Algorithm",
                "X-Amz-Credential",
                "X-Amz-Date",
                "X-Amz-Expires",
                "X-Amz-Security-Token",
                "X-Amz-Signature",
                "X-Amz-SignedHeaders"
            ]
        );
        assert_eq!(query["X-Amz-SignedHeaders"], "host;x-k8s-aws-id");
        assert_eq!((query["X-Amz-Date"], query["X-Amz-Expires"]), ("20270115T080000Z", "60"));
        assert_eq!(query["X-Amz-Credential"], "AKID/20270115/eu-west-1/sts/aws4_request");
        assert_eq!(query["X-Amz-Security-Token"], "SESSION/+");
    }

    #[test]
    fn a_token_is_replaced_before_the_credentials_end_that_signed_it() {
        let now = UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let seconds = |left: Option<u64>| {
            let end = left.map(|left| now + Duration::from_secs(left));
            lifetime(&Credentials::new("AKID", "SECRET", None, end, "test"), now).as_secs()
        };

        assert_eq!(seconds(None), 240);
        assert_eq!(seconds(Some(3600)), 240);
        assert_eq!(seconds(Some(300)), 180, "a token would end a minute after its next use");
        assert_eq!(seconds(Some(130)), 10);
        assert_eq!(seconds(Some(0)), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_of_credentials_that_end_soon_is_renewed_in_time() {
        let end = SystemTime::now() + Duration::from_secs(300);
        let tokens = tokens(Credentials::new("AKID", "SECRET", None, Some(end), "test"));
        tokens.current().await.unwrap();
        let started = Instant::now();

        tokens.until_renewal().await;

        let waited = started.elapsed();
        assert!(waited > Duration::from_secs(170) && waited <= Duration::from_secs(181), "{waited:?}");
        assert!(tokens.held.lock().await.as_ref().is_some_and(|held| held.renew <= Instant::now()));
    }

    fn tokens(credentials: Credentials) -> Tokens {
        Tokens {
            cluster: "one".into(),
            region: "eu-west-1".into(),
            sts: "sts.eu-west-1.amazonaws.com".into(),
            credentials: SharedCredentialsProvider::new(credentials),
            log: JobLog::default(),
            held: Arc::default(),
        }
    }

    #[tokio::test]
    async fn a_token_is_made_once_for_a_while_and_the_log_redacts_it() {
        let credentials = Credentials::new("AKID", "SECRET", None, None, "test");
        let tokens = tokens(credentials);

        let token = tokens.current().await.unwrap();
        tokens.log.line(&format!("Authorization: Bearer {token}"));

        assert_eq!(tokens.current().await.unwrap(), token);
        assert_eq!(tokens.log.take_chunk(), "Authorization: Bearer [redacted]\n");
    }
}
