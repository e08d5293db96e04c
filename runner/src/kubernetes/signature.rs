//! Signs requests to AWS (AWS Signature Version 4) that the runner makes without a client of the SDK.

use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    SignableBody, SignableRequest, SignatureLocation, SigningInstructions, SigningSettings, sign,
};
use aws_sigv4::sign::v4;
use url::Url;

/// The service and region that a signature names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) service: &'a str,
    pub(super) region: &'a str,
}

/// Returns the headers that sign a `GET` of `url`.
pub(super) fn headers(
    scope: Scope<'_>,
    url: &Url,
    credentials: &Credentials,
    now: SystemTime,
) -> Result<Vec<(String, String)>, String> {
    let signed = instructions(scope, url, &[], credentials, now, SigningSettings::default())?;
    Ok(signed.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

/// Returns `url` with a signature in its query. The signature covers `headers` and states that it is valid for
/// `lifetime`.
pub(super) fn presigned(
    scope: Scope<'_>,
    mut url: Url,
    headers: &[(&str, &str)],
    credentials: &Credentials,
    now: SystemTime,
    lifetime: Duration,
) -> Result<Url, String> {
    let mut settings = SigningSettings::default();
    settings.signature_location = SignatureLocation::QueryParams;
    settings.expires_in = Some(lifetime);
    let signed = instructions(scope, &url, headers, credentials, now, settings)?;
    let (_, parameters) = signed.into_parts();
    url.query_pairs_mut().extend_pairs(parameters.iter().map(|(name, value)| (*name, value.as_ref())));
    Ok(url)
}

fn instructions(
    scope: Scope<'_>,
    url: &Url,
    headers: &[(&str, &str)],
    credentials: &Credentials,
    now: SystemTime,
    settings: SigningSettings,
) -> Result<SigningInstructions, String> {
    let identity = credentials.clone().into();
    let parameters = v4::SigningParams::builder()
        .identity(&identity)
        .region(scope.region)
        .name(scope.service)
        .time(now)
        .settings(settings)
        .build()
        .map_err(|error| error.to_string())?
        .into();
    let request = SignableRequest::new("GET", url.as_str(), headers.iter().copied(), SignableBody::Bytes(b""))
        .map_err(|error| error.to_string())?;
    Ok(sign(request, &parameters).map_err(|error| error.to_string())?.into_parts().0)
}
