//! S3: pre-signed PUTs of packed sources. Signs only; no S3 client is linked.

use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use aws_config::SdkConfig;
use aws_credential_types::provider::ProvideCredentials;
use aws_sigv4::http_request::{
    PercentEncodingMode, SignableBody, SignableRequest, SignatureLocation, SigningSettings, UriPathNormalizationMode,
    sign,
};
use aws_sigv4::sign::v4;
use freehold_app::ports::{Objects, PortError};
use freehold_protocol::Digest;

/// The tenant's bucket.
#[derive(Debug, Clone)]
pub struct S3Objects {
    config: SdkConfig,
    bucket: String,
}

impl S3Objects {
    /// Returns the bucket called `bucket`.
    pub fn new(config: &SdkConfig, bucket: impl Into<String>) -> Self {
        Self { config: config.clone(), bucket: bucket.into() }
    }
}

#[async_trait]
impl Objects for S3Objects {
    async fn presign_source(&self, digest: &Digest, size: u64, valid_secs: u64) -> Result<String, PortError> {
        let region = self.config.region().map(ToString::to_string).unwrap_or_default();
        let base = match self.config.endpoint_url() {
            Some(endpoint) => endpoint.trim_end_matches('/').to_owned(),
            None => format!("https://s3.{region}.amazonaws.com"),
        };
        let url = format!("{base}/{}/sources/{}.tar.gz", self.bucket, digest.hex());
        let provider = self.config.credentials_provider().ok_or_else(|| failed("there are no credentials"))?;
        let identity = provider.provide_credentials().await.map_err(failed)?.into();
        let mut settings = SigningSettings::default();
        settings.signature_location = SignatureLocation::QueryParams;
        settings.expires_in = Some(Duration::from_secs(valid_secs));
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        let params = v4::SigningParams::builder()
            .identity(&identity)
            .region(&region)
            .name("s3")
            .time(SystemTime::now())
            .settings(settings)
            .build()
            .map_err(failed)?
            .into();
        // The length is signed: nobody can put more than was announced.
        let length = size.to_string();
        let headers = [("content-length", length.as_str())];
        let request =
            SignableRequest::new("PUT", &url, headers.into_iter(), SignableBody::UnsignedPayload).map_err(failed)?;
        let (instructions, _) = sign(request, &params).map_err(failed)?.into_parts();
        let query: Vec<String> =
            instructions.params().iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
        Ok(format!("{url}?{}", query.join("&")))
    }
}

/// RFC 3986: everything but unreserved characters is percent-encoded.
fn encode(value: &str) -> String {
    use std::fmt::Write as _;
    value.bytes().fold(String::with_capacity(value.len() * 2), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
        out
    })
}

fn failed(reason: impl ToString) -> PortError {
    PortError::Failed { what: "tenant bucket".into(), reason: reason.to_string() }
}
