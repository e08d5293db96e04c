//! The HTTP client of the API, and how it reads an answer.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{ClientBuilder, RequestBuilder};

use crate::error::Error;
use crate::resolver::Resolver;

/// The time limit of one try, except for an upload.
pub const ANSWER: Duration = Duration::from_secs(35);
const CONNECT: Duration = Duration::from_secs(10);
/// The header with the id that API Gateway gives to a request.
const REQUEST_ID: &str = "apigw-requestid";

/// Returns a builder of HTTP clients whose TLS is rustls with ring. Names below `.localhost` are loopback for them.
pub fn http_builder() -> ClientBuilder {
    // Another part of the program may have chosen a provider before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .connect_timeout(CONNECT)
        .user_agent(concat!("freehold-client/", env!("CARGO_PKG_VERSION")))
        .dns_resolver(Arc::new(Resolver))
}

/// Sends a request to the server at `address`, and returns the body of its answer.
///
/// # Errors
/// The error of the answer, or Unreachable.
pub(crate) async fn answer_to(request: RequestBuilder, address: &str) -> Result<Vec<u8>, Error> {
    let lost = |error: reqwest::Error| Error::Unreachable { address: address.to_owned(), reason: root(&error) };
    let answer = request.send().await.map_err(lost)?;
    let (status, id) = (answer.status(), request_id(answer.headers()));
    let bytes = answer.bytes().await.map_err(lost)?.to_vec();
    if status.is_success() { Ok(bytes) } else { Err(Error::of_answer(status.as_u16(), id, &bytes)) }
}

fn request_id(headers: &HeaderMap) -> Option<String> {
    Some(headers.get(REQUEST_ID)?.to_str().ok()?.to_owned())
}

/// Returns the text of the root cause. The other texts describe the library that made the request.
fn root(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.last().map(ToString::to_string).unwrap_or_default()
}
