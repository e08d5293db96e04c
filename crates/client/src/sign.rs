//! Signs requests to the tenant API with AWS Signature Version 4 (service `execute-api`).

use std::time::{Duration, SystemTime};

use aws_config::SdkConfig;
use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use freehold_aws_errors::chain;
use tokio::sync::Mutex;
use url::Url;

use crate::error::Error;

/// Credentials are refreshed this long before they expire.
const MARGIN: Duration = Duration::from_secs(300);

/// Signs requests. It caches the credentials, so that not every request runs the credential chain.
#[derive(Debug)]
pub(crate) struct Signer {
    provider: SharedCredentialsProvider,
    region: String,
    known: Mutex<Option<Credentials>>,
}

impl Signer {
    /// Returns the signer for the API at `base`. The region is that of the address, or else that of `config`.
    ///
    /// # Errors
    /// Credentials, when `config` has no provider of credentials.
    pub(crate) fn new(config: &SdkConfig, base: &Url) -> Result<Self, Error> {
        let provider = config.credentials_provider();
        let provider = provider.ok_or_else(|| Error::Credentials("nothing provides any".to_owned()))?;
        let configured = || config.region().map(|region| region.as_ref().to_owned()).unwrap_or_default();
        let region = region_of(base).unwrap_or_else(configured);
        Ok(Self { provider, region, known: Mutex::new(None) })
    }

    /// Returns the headers to add to the request, which contain its signature.
    ///
    /// # Errors
    /// Credentials or Signature.
    pub(crate) async fn sign(
        &self,
        method: &str,
        url: &Url,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Vec<(String, String)>, Error> {
        let identity = self.credentials().await?.into();
        let params = v4::SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name("execute-api")
            .time(SystemTime::now())
            .settings(SigningSettings::default())
            .build()
            .map_err(|e| Error::Signature(e.to_string()))?
            .into();
        let request = SignableRequest::new(method, url.as_str(), headers.iter().copied(), SignableBody::Bytes(body))
            .map_err(|e| Error::Signature(chain(&e)))?;
        let (instructions, _) = sign(request, &params).map_err(|e| Error::Signature(chain(&e)))?.into_parts();
        Ok(instructions.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    async fn credentials(&self) -> Result<Credentials, Error> {
        let mut known = self.known.lock().await;
        let usable = |c: &&Credentials| c.expiry().is_none_or(|end| SystemTime::now() + MARGIN < end);
        if let Some(credentials) = known.as_ref().filter(usable) {
            return Ok(credentials.clone());
        }
        let fresh = self.provider.provide_credentials().await;
        let fresh = fresh.map_err(|e| Error::Credentials(chain(&e)))?;
        *known = Some(fresh.clone());
        Ok(fresh)
    }
}

/// Returns the region in an API's own address: `<id>.execute-api.<region>.amazonaws.com`.
fn region_of(base: &Url) -> Option<String> {
    let mut labels = base.host_str()?.split('.').skip_while(|label| *label != "execute-api").skip(1);
    let region = labels.next()?;
    (labels.next() == Some("amazonaws")).then(|| region.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_region_of_an_api_is_read_from_its_address() {
        let region = |text: &str| region_of(&text.parse().unwrap());

        assert_eq!(region("https://a1.execute-api.eu-west-1.amazonaws.com").as_deref(), Some("eu-west-1"));
        assert_eq!(region("https://api.example.com"), None);
        assert_eq!(region("http://a1.execute-api.localhost:4566"), None);
    }
}
