//! Requests to the issuer. Redirects are not followed, because they would carry codes and tokens to another server.

use std::time::Duration;

use freehold_aws_errors::chain;
use reqwest::{ClientBuilder, RequestBuilder, StatusCode};
use serde::de::DeserializeOwned;
use url::Url;
use zeroize::Zeroizing;

use crate::error::{Error, Refusal};

/// The time limit of one request.
const ANSWER: Duration = Duration::from_secs(20);
/// The maximum size of an answer, in bytes.
const LONGEST: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Http {
    client: reqwest::Client,
}

impl Http {
    /// # Errors
    /// Http.
    pub(crate) fn new(builder: ClientBuilder) -> Result<Self, Error> {
        let builder = builder.redirect(reqwest::redirect::Policy::none()).timeout(ANSWER);
        Ok(Self { client: builder.build().map_err(|error| Error::Http(chain(&error)))? })
    }

    /// Returns the JSON document at `url`.
    ///
    /// # Errors
    /// Unreachable, Status or Unreadable.
    pub(crate) async fn get<T: DeserializeOwned>(&self, url: &Url) -> Result<T, Error> {
        answer(self.client.get(url.clone()), url).await?.read()
    }

    /// Sends a form.
    ///
    /// # Errors
    /// Unreachable or Unreadable.
    pub(crate) async fn post(&self, url: &Url, form: &[(&str, &str)]) -> Result<Answer, Error> {
        answer(self.client.post(url.clone()).form(form), url).await
    }
}

/// The answer of the issuer, which may contain tokens.
pub(crate) struct Answer {
    address: String,
    status: StatusCode,
    body: Zeroizing<Vec<u8>>,
}

impl Answer {
    /// Returns the error that the issuer answered with, if it did.
    pub(crate) fn refusal(&self) -> Option<Error> {
        if self.status.is_success() {
            return None;
        }
        Some(match serde_json::from_slice::<Refusal>(&self.body) {
            Ok(refusal) => Error::Refused(refusal),
            Err(_) => Error::Status { address: self.address.clone(), status: self.status.as_u16() },
        })
    }

    /// Returns the body of a success.
    ///
    /// # Errors
    /// Refused, Status or Unreadable.
    pub(crate) fn read<T: DeserializeOwned>(self) -> Result<T, Error> {
        if let Some(refusal) = self.refusal() {
            return Err(refusal);
        }
        // The text of the error may contain a part of the body, so only its place is named.
        serde_json::from_slice(&self.body).map_err(|error| Error::Unreadable {
            address: self.address,
            reason: format!("line {}, column {}", error.line(), error.column()),
        })
    }
}

async fn answer(request: RequestBuilder, url: &Url) -> Result<Answer, Error> {
    let address = url.to_string();
    let lost =
        |error: reqwest::Error| Error::Unreachable { address: url.to_string(), reason: chain(&error.without_url()) };
    let mut response = request.header("accept", "application/json").send().await.map_err(lost)?;
    let (status, mut body) = (response.status(), Zeroizing::new(Vec::<u8>::new()));
    while let Some(part) = response.chunk().await.map_err(lost)? {
        if body.len() + part.len() > LONGEST {
            return Err(Error::Unreadable { address, reason: format!("it has more than {LONGEST} bytes") });
        }
        body.extend_from_slice(&part);
    }
    Ok(Answer { address, status, body })
}
