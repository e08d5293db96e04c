//! Calls the real IAM and EKS of the account with the credentials of the job's mode.

use std::time::{Duration, SystemTime};

use aws_credential_types::provider::{ProvideCredentials as _, SharedCredentialsProvider};
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use freehold_aws_errors::chain;
use reqwest::{Method, Response};
use url::Url;

use crate::answer::Answer;
use crate::home::{dns_suffix, dual_stack_suffix};
use crate::query::Query;
use crate::refusal::Refusal;

/// The maximum time for one call.
const CALL: Duration = Duration::from_secs(45);
/// The maximum size of a response, in bytes. IAM's largest responses describe a whole account, page by page.
const LARGEST: usize = 16 * 1024 * 1024;
const FORM: &str = "application/x-www-form-urlencoded; charset=utf-8";

/// The URL of a service, and the region in the signature of its requests.
#[derive(Debug, Clone)]
pub struct Endpoint {
    pub url: Url,
    pub region: String,
}

impl Endpoint {
    /// Returns the endpoint of IAM for a region. Each partition has one IAM for all its regions.
    ///
    /// # Errors
    /// When the region cannot be part of a host name.
    pub fn iam(region: &str) -> Result<Self, url::ParseError> {
        let starts = |prefix: &str| region.starts_with(prefix);
        let (host, signed) = match () {
            () if starts("cn-") => ("iam.cn-north-1", "cn-north-1"),
            () if starts("us-gov-") => ("iam.us-gov", "us-gov-west-1"),
            () if starts("us-isob-") => ("iam.us-isob-east-1", "us-isob-east-1"),
            () if starts("us-iso-") => ("iam.us-iso-east-1", "us-iso-east-1"),
            () if starts("us-isof-") => ("iam.us-isof-south-1", "us-isof-south-1"),
            () if starts("eu-isoe-") => ("iam.eu-isoe-west-1", "eu-isoe-west-1"),
            () if starts("eusc-") => ("iam.eusc-de-east-1", "eusc-de-east-1"),
            () => ("iam", "us-east-1"),
        };
        let url = format!("https://{host}.{}/", dns_suffix(region)).parse()?;
        Ok(Self { url, region: signed.to_owned() })
    }

    /// Returns the names of all endpoints of IAM in the partition of a region, as the AWS SDKs know them. No job may
    /// reach any of them, because the runner itself handles its jobs' IAM calls.
    pub fn names_of_iam(region: &str) -> Vec<String> {
        let signed = Self::iam(region).map(|iam| iam.region).unwrap_or_default();
        let places =
            [String::new(), "global.".to_owned(), "us-gov.".to_owned(), format!("{signed}."), format!("{region}.")];
        let suffixes = [dns_suffix(region), dual_stack_suffix(region)];
        let of_suffix = |suffix: &'static str| {
            let names = places.iter().flat_map(|place| ["iam", "iam-fips"].map(|name| format!("{name}.{place}")));
            names.map(move |name| format!("{name}{suffix}")).collect::<Vec<_>>()
        };
        suffixes.into_iter().flat_map(of_suffix).collect()
    }

    /// Returns the endpoint of EKS in a region.
    ///
    /// # Errors
    /// When the region cannot be part of a host name.
    pub fn eks(region: &str) -> Result<Self, url::ParseError> {
        Ok(Self { url: format!("https://eks.{region}.{}/", dns_suffix(region)).parse()?, region: region.to_owned() })
    }
}

/// The connection to AWS for a job.
#[derive(Debug)]
pub struct Upstream {
    /// The HTTP client, which the caller configures: it must not follow redirects, and must use the proxy of the
    /// machine.
    pub http: reqwest::Client,
    pub iam: Endpoint,
    pub eks: Endpoint,
    /// The credentials of the job's mode, never the runner's own credentials.
    pub credentials: SharedCredentialsProvider,
}

impl Upstream {
    /// Sends a request to IAM, without retries: the client decides whether a write is repeated.
    pub(crate) async fn iam(&self, query: &Query) -> Result<Answer, Refusal> {
        self.call(Method::POST, &self.iam.url, "iam", &self.iam.region, query.body()).await
    }

    /// Reads a document from EKS.
    pub(crate) async fn eks(&self, path: &str) -> Result<Answer, Refusal> {
        let url = self.eks.url.join(path).map_err(|error| failed("EKS", &error))?;
        self.call(Method::GET, &url, "eks", &self.eks.region, String::new()).await
    }

    async fn call(
        &self,
        method: Method,
        url: &Url,
        service: &str,
        region: &str,
        body: String,
    ) -> Result<Answer, Refusal> {
        let headers = self.signature(&method, url, service, region, body.as_bytes()).await?;
        let mut request = self.http.request(method, url.clone()).header("content-type", FORM);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let sent =
            async { answer(request.body(body).send().await.map_err(|error| failed(service, &error))?, service).await };
        let late = |_| Refusal::Unavailable(format!("{service} did not respond within {} s", CALL.as_secs()));
        tokio::time::timeout(CALL, sent).await.map_err(late)?
    }

    async fn signature(
        &self,
        method: &Method,
        url: &Url,
        service: &str,
        region: &str,
        body: &[u8],
    ) -> Result<Vec<(String, String)>, Refusal> {
        let credentials = self.credentials.provide_credentials().await;
        let identity =
            credentials.map_err(|error| failed("there are no credentials of the mode's role", &error))?.into();
        let params = v4::SigningParams::builder()
            .identity(&identity)
            .region(region)
            .name(service)
            .time(SystemTime::now())
            .settings(SigningSettings::default())
            .build()
            .map_err(|error| failed("signing", &error))?
            .into();
        let headers = [("content-type", FORM)];
        let request =
            SignableRequest::new(method.as_str(), url.as_str(), headers.into_iter(), SignableBody::Bytes(body))
                .map_err(|error| failed("signing", &error))?;
        let (instructions, _) = sign(request, &params).map_err(|error| failed("signing", &error))?.into_parts();
        Ok(instructions.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }
}

async fn answer(mut response: Response, service: &str) -> Result<Answer, Refusal> {
    let status = response.status().as_u16();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| failed(service, &error))? {
        if body.len() + chunk.len() > LARGEST {
            return Err(Refusal::Unavailable(format!("the response of {service} has more than {LARGEST} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Answer { status, body: body.into() })
}

/// Returns the refusal for a failed call. The runner's log gets the whole chain of causes; the job gets only a short
/// text.
fn failed(what: &str, error: &dyn std::error::Error) -> Refusal {
    tracing::warn!("A job's call of AWS failed ({what}): {}", chain(error));
    Refusal::Unavailable(format!("the runner cannot reach AWS for this job ({what}); try again"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_partition_has_its_iam() {
        let iam = |region: &str| {
            let endpoint = Endpoint::iam(region).unwrap();
            (endpoint.url.to_string(), endpoint.region)
        };

        assert_eq!(iam("eu-west-1"), ("https://iam.amazonaws.com/".into(), "us-east-1".into()));
        assert_eq!(iam("cn-northwest-1"), ("https://iam.cn-north-1.amazonaws.com.cn/".into(), "cn-north-1".into()));
        assert_eq!(iam("us-gov-east-1"), ("https://iam.us-gov.amazonaws.com/".into(), "us-gov-west-1".into()));
        for (region, host) in [
            ("eu-isoe-west-1", "iam.eu-isoe-west-1.cloud.adc-e.uk"),
            ("us-isof-south-1", "iam.us-isof-south-1.csp.hci.ic.gov"),
        ] {
            assert_eq!(iam(region), (format!("https://{host}/"), region.to_owned()));
        }
    }
}
