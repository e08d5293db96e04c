//! Calls of a webhook, which are signed by the key of the webhook and need no AWS credentials.

use std::any::type_name;
use std::time::{SystemTime, UNIX_EPOCH};

use ed25519_dalek::SigningKey;
use freehold_aws_errors::chain;
use freehold_protocol::Timestamp;
use freehold_protocol::api::{CallWebhookRequest, WebhookCalled};
use freehold_protocol::webhook::CallHeaders;
use url::Url;

use crate::call::Route;
use crate::error::Error;
use crate::http::{ANSWER, answer_to, http_builder};
use crate::retry::Tries;

/// The only operation that no method of [`Client`](crate::Client) sends.
pub(crate) const ROUTE: Route = Route {
    operation: "CallWebhook",
    method: "POST",
    path: "/v1/webhooks/{webhook}/calls",
    parameters: &["webhook"],
    request: Some(type_name::<CallWebhookRequest>),
    answer: type_name::<WebhookCalled>,
};

/// The address of a webhook, as `freehold webhook add` prints it.
#[derive(Debug)]
pub struct Webhook {
    url: Url,
    http: reqwest::Client,
}

impl Webhook {
    /// Returns the webhook at `url`. Redirects are not followed.
    ///
    /// # Errors
    /// Http.
    pub fn new(url: Url) -> Result<Self, Error> {
        let http = http_builder().timeout(ANSWER).redirect(reqwest::redirect::Policy::none()).build();
        Ok(Self::with_http(url, http.map_err(|error| Error::Http(chain(&error)))?))
    }

    /// Does the same as [`Webhook::new`], with an HTTP client of the caller.
    pub fn with_http(url: Url, http: reqwest::Client) -> Self {
        Self { url, http }
    }

    /// Starts what the webhook is for. `id` is the id of the event: a call with the id of an earlier one starts nothing
    /// again. Sends the call again after an error that may pass.
    ///
    /// # Errors
    /// CallId, NoWebhooks, and the errors of [`Client::send`](crate::Client::send).
    pub async fn call(&self, id: &str, body: &CallWebhookRequest, key: &SigningKey) -> Result<WebhookCalled, Error> {
        let body = serde_json::to_vec(body).map_err(|error| Error::Unwritable(error.to_string()))?;
        let mut tries = Tries::new();
        loop {
            // Each try has its own time, so that the call is not too old after many tries.
            match self.once(&headers(id, &body, key)?, &body).await {
                Ok(answer) => {
                    let path = self.url.path().to_owned();
                    return serde_json::from_slice(&answer).map_err(|source| Error::Unreadable {
                        method: "POST",
                        path,
                        source,
                    });
                }
                Err(error) => tries.pause_after(error, &mut || {}).await?,
            }
        }
    }

    async fn once(&self, headers: &CallHeaders, body: &[u8]) -> Result<Vec<u8>, Error> {
        let mut request = self.http.post(self.url.clone()).header("content-type", "application/json");
        for (name, value) in headers.named() {
            request = request.header(name, value);
        }
        match answer_to(request.body(body.to_vec()), self.url.as_str()).await {
            // If the route of webhooks is missing, API Gateway requires the signature of an IAM principal.
            Err(Error::Gateway(error)) if error.status == 403 => Err(Error::NoWebhooks(self.url.to_string())),
            answer => answer,
        }
    }
}

/// Returns the headers of a call that is signed now.
fn headers(id: &str, body: &[u8], key: &SigningKey) -> Result<CallHeaders, Error> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = Timestamp::from_millis(u64::try_from(now.as_millis()).unwrap_or_default());
    let headers = CallHeaders::sign(id, body, key, now);
    let [(_, of_call), (_, time), (_, signature)] = headers.named();
    CallHeaders::parse(Some(&of_call), Some(&time), Some(&signature)).map_err(|_| Error::CallId(id.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_signed_now_and_its_id_has_the_form_of_an_id() {
        let key = SigningKey::from_bytes(&[7; 32]);

        let signed = headers("build-812", b"{}", &key).unwrap();

        assert!(signed.are_signed_by(&freehold_protocol::envelope::PublicKey::from(key.verifying_key()), b"{}"));
        assert!(matches!(headers("build 812", b"{}", &key), Err(Error::CallId(id)) if id == "build 812"));
    }
}
