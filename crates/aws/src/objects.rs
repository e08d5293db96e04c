//! The tenant's bucket in S3. Pre-signs the PUT of a packed source, and writes and reads app versions by digest. This
//! file signs the requests itself: so few requests do not justify a dependency on the S3 client.

use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use aws_config::SdkConfig;
use aws_credential_types::provider::ProvideCredentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SignatureLocation, SigningInstructions,
    SigningSettings, UriPathNormalizationMode, sign,
};
use aws_sigv4::sign::v4;
use aws_smithy_http_client::Connector;
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorSettings};
use aws_smithy_runtime_api::http::{Request, Response};
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::byte_stream::ByteStream;
use freehold_app::ports::{Objects, PortError};
use freehold_protocol::limits::MAX_APP_VERSION_BYTES;
use freehold_protocol::{Digest, Partition};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The longest time that connecting may take.
const CONNECT: Duration = Duration::from_secs(2);
/// The longest time until S3 begins its response. A function's own time limit is at least three times as long.
const READ: Duration = Duration::from_secs(5);

/// The characters to percent-encode: all except the unreserved characters (RFC 3986, section 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The tenant's bucket.
#[derive(Debug)]
pub struct S3Objects {
    config: SdkConfig,
    bucket: String,
    http: Connector,
}

impl S3Objects {
    /// Returns the bucket called `bucket`.
    pub fn new(config: &SdkConfig, bucket: impl Into<String>) -> Self {
        let mut http = Connector::builder()
            .connector_settings(HttpConnectorSettings::builder().connect_timeout(CONNECT).read_timeout(READ).build());
        http.set_sleep_impl(config.sleep_impl());
        let http = http.tls_provider(Provider::Rustls(CryptoMode::Ring)).build();
        Self { config: config.clone(), bucket: bucket.into(), http }
    }

    fn url(&self, key: &str) -> String {
        let base = match self.config.endpoint_url() {
            Some(endpoint) => endpoint.trim_end_matches('/').to_owned(),
            None => endpoint(&self.region()),
        };
        format!("{base}/{}/{key}", self.bucket)
    }

    fn region(&self) -> String {
        self.config.region().map(ToString::to_string).unwrap_or_default()
    }

    async fn sign_request(
        &self,
        request: SignableRequest<'_>,
        place: impl FnOnce(&mut SigningSettings),
    ) -> Result<SigningInstructions, PortError> {
        let provider =
            self.config.credentials_provider().ok_or_else(|| failed("this function has no AWS credentials"))?;
        let identity = provider.provide_credentials().await.map_err(failed)?.into();
        let mut settings = SigningSettings::default();
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        place(&mut settings);
        let region = self.region();
        let params = v4::SigningParams::builder()
            .identity(&identity)
            .region(&region)
            .name("s3")
            .time(SystemTime::now())
            .settings(settings)
            .build()
            .map_err(failed)?
            .into();
        Ok(sign(request, &params).map_err(failed)?.into_parts().0)
    }

    /// Returns the pre-signed URL of a packed source.
    async fn presign(
        &self,
        method: &str,
        digest: &Digest,
        headers: &[(&str, &str)],
        valid_secs: u64,
    ) -> Result<String, PortError> {
        let url = self.url(&format!("sources/{}.tar.gz", digest.hex()));
        let request = SignableRequest::new(method, &url, headers.iter().copied(), SignableBody::UnsignedPayload);
        let in_query = |settings: &mut SigningSettings| {
            settings.signature_location = SignatureLocation::QueryParams;
            settings.expires_in = Some(Duration::from_secs(valid_secs));
        };
        let signed = self.sign_request(request.map_err(failed)?, in_query).await?;
        let encode = |value| utf8_percent_encode(value, RESERVED);
        let query: Vec<String> =
            signed.params().iter().map(|(name, value)| format!("{name}={}", encode(value.as_ref()))).collect();
        Ok(format!("{url}?{}", query.join("&")))
    }

    /// Sends a request whose signature covers `body`, so that S3 refuses any other bytes.
    async fn send(&self, method: &str, key: &str, body: &[u8]) -> Result<Response, PortError> {
        let url = self.url(key);
        let length = body.len().to_string();
        let headers = [("content-length", length.as_str()), ("content-type", "application/json")];
        let headers = if method == "PUT" { &headers[..] } else { &[] };
        let signable = SignableRequest::new(method, &url, headers.iter().copied(), SignableBody::Bytes(body));
        let hashed = |settings: &mut SigningSettings| settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        let signed = self.sign_request(signable.map_err(failed)?, hashed).await?;
        let mut request = Request::new(SdkBody::from(body));
        request.set_method(method).map_err(failed)?;
        request.set_uri(url).map_err(failed)?;
        for (name, value) in headers.iter().copied().chain(signed.headers()) {
            request.headers_mut().insert(name.to_owned(), value.to_owned());
        }
        self.http.call(request).await.map_err(|e| transient(freehold_aws_errors::chain(&e)))
    }
}

#[async_trait]
impl Objects for S3Objects {
    async fn presign_source(&self, digest: &Digest, size: u64, valid_secs: u64) -> Result<String, PortError> {
        // The signature covers the length, so the client cannot upload more bytes than it announced.
        let length = size.to_string();
        self.presign("PUT", digest, &[("content-length", length.as_str())], valid_secs).await
    }

    async fn source_url(&self, digest: &Digest, valid_secs: u64) -> Result<String, PortError> {
        self.presign("GET", digest, &[], valid_secs).await
    }

    async fn put_version(&self, digest: &Digest, bytes: &[u8]) -> Result<(), PortError> {
        let answer = self.send("PUT", &version_key(digest), bytes).await?;
        match answer.status().as_u16() {
            200..=299 => Ok(()),
            _ => Err(explain_refusal(answer).await),
        }
    }

    async fn get_version(&self, digest: &Digest) -> Result<Option<Vec<u8>>, PortError> {
        let answer = self.send("GET", &version_key(digest), b"").await?;
        match answer.status().as_u16() {
            200 => {}
            404 => return Ok(None),
            _ => return Err(explain_refusal(answer).await),
        }
        let announced = answer.headers().get("content-length").and_then(|length| length.parse::<usize>().ok());
        if announced.is_none_or(|length| length > MAX_APP_VERSION_BYTES) {
            return Err(failed("the app version's object is too large, or S3 did not announce its length"));
        }
        let body = ByteStream::new(answer.into_body()).collect().await.map_err(transient)?;
        Ok(Some(body.to_vec()))
    }
}

/// Returns the address of S3 in a region.
fn endpoint(region: &str) -> String {
    format!("https://s3.{region}.{}", Partition::of_region(region).dns_suffix)
}

fn version_key(digest: &Digest) -> String {
    format!("versions/{}.json", digest.hex())
}

/// Returns the error for a response that is not a success.
async fn explain_refusal(answer: Response) -> PortError {
    let status = answer.status().as_u16();
    let body = ByteStream::new(answer.into_body()).collect().await.map(|body| body.to_vec()).unwrap_or_default();
    let text: String = String::from_utf8_lossy(&body).chars().take(300).collect();
    let reason = format!("S3 answered {status}: {text}");
    match status {
        401 | 403 => PortError::Denied { what: WHAT.into(), reason },
        // `RequestTimeout` has status 400: the body did not arrive in time (Amazon S3 API reference, "Error
        // responses").
        400 if text.contains("RequestTimeout") => transient(reason),
        429 | 500..=599 => transient(reason),
        _ => failed(reason),
    }
}

const WHAT: &str = "tenant bucket";

fn failed(reason: impl ToString) -> PortError {
    PortError::Failed { what: WHAT.into(), reason: reason.to_string() }
}

fn transient(reason: impl ToString) -> PortError {
    PortError::Transient { what: WHAT.into(), reason: reason.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_s3_is_in_the_partition_of_the_region() {
        assert_eq!(endpoint("eu-west-1"), "https://s3.eu-west-1.amazonaws.com");
        assert_eq!(endpoint("cn-north-1"), "https://s3.cn-north-1.amazonaws.com.cn");
        assert_eq!(endpoint("us-gov-west-1"), "https://s3.us-gov-west-1.amazonaws.com");
    }
}
