//! The HTTP API: parses a request, decides whether it is permitted, performs its operation and writes the response. The
//! use cases are in the crate `app`.

mod authorize;
mod caller;
mod entrance;
mod idempotency;
#[cfg(feature = "openapi")]
pub mod openapi;
#[cfg(feature = "openapi")]
mod openapi_description;
pub mod operations;
mod placeholders;
mod router;
pub mod routes;
mod use_cases;

use aws_lambda_events::encodings::Body;
use aws_lambda_events::event::apigw::{ApiGatewayV2httpRequest, ApiGatewayV2httpResponse};
use freehold_app::access::Access;
use freehold_app::{AppError, Kind};
use freehold_protocol::api::{ErrorBody, ErrorDetail, IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_SHAPE};
use freehold_protocol::limits::{MAX_REQUEST_BYTES, MAX_VERSION_REQUEST_BYTES};
use freehold_protocol::webhook::CallHeaders;
use freehold_protocol::{InstallId, webhook};
use http::{HeaderMap, HeaderValue};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::log_failure;
use entrance::Entrance;
use routes::Operation;

pub use entrance::{Caller, Issuers};
pub use use_cases::{Api, Ports};

/// One parsed request.
#[derive(Debug, Default)]
pub struct Call {
    /// The values of the route's placeholders.
    pub path: Vec<(String, String)>,
    /// The cursor after which a page of a list begins; `None` for the first page.
    pub after: Option<String>,
    /// The only install that the response is about; `None` for all installs.
    pub only_install: Option<InstallId>,
    pub body: String,
    /// The idempotency key of the request; empty for a GET request, and for a call of a webhook, which has an id.
    /// Before the request is performed, it is replaced by the cause from which the ids of what it starts are derived.
    pub cause: String,
    /// The caller as the authorizer of the route has authenticated it; `None` when no authorizer has.
    pub caller: Option<Caller>,
    /// What the caller may do; `None` until the request is permitted, and for operations that need no permission.
    pub access: Option<Access>,
    /// The headers by which a call of a webhook is signed, in the order of their names in `freehold_protocol::webhook`.
    pub webhook: [Option<String>; 3],
}

impl Call {
    /// Returns the headers by which a call of a webhook is signed.
    ///
    /// # Errors
    /// Unauthorized, with the header that is missing or has another form.
    pub fn webhook_headers(&self) -> Result<CallHeaders, AppError> {
        let [id, timestamp, signature] = self.webhook.each_ref().map(Option::as_deref);
        CallHeaders::parse(id, timestamp, signature)
            .map_err(|error| AppError::new(Kind::Unauthorized, error.to_string()))
    }

    /// Returns the body as `T`.
    ///
    /// # Errors
    /// Invalid, with the position of the mistake in the body.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, AppError> {
        // The parser also reads the values of an array as the fields of an object, in their order.
        if self.body.trim_start().starts_with('[') {
            return Err(AppError::invalid(
                "request body is an array, and this route needs an object; see docs/openapi.json",
            ));
        }
        serde_json::from_str(&self.body)
            .map_err(|e| AppError::invalid(format!("request body does not fit this route: {e}; see docs/openapi.json")))
    }
}

impl Api {
    /// Returns the response to one request. The body of every error response is an [`ErrorBody`].
    pub async fn answer(&self, request: ApiGatewayV2httpRequest) -> ApiGatewayV2httpResponse {
        match self.perform(request).await {
            Ok(body) => response(200, body),
            Err(error) => {
                log_failure("request refused", &error);
                let detail = ErrorDetail { kind: error.kind, message: error.message, soon: error.soon };
                response(error.kind.status(), serde_json::to_string(&ErrorBody { error: detail }).unwrap_or_default())
            }
        }
    }

    async fn perform(&self, request: ApiGatewayV2httpRequest) -> Result<String, AppError> {
        let method = request.request_context.http.method.as_str().to_owned();
        let Entrance { caller, path } = self.issuers.entrance(&request)?;
        let (operation, parameters) = self.routes.find(&method, &path)?;
        let after = match operation.list() {
            Some(list) => list.place(request.query_string_parameters.first("after"))?.map(str::to_owned),
            None => None,
        };
        let only_install = match request.query_string_parameters.first("install") {
            Some(install) if operation.is_by_install() => {
                Some(install.parse().map_err(|e| AppError::invalid(format!("query parameter `install`: {e}")))?)
            }
            Some(_) | None => None,
        };
        operation.check_caller(caller.as_ref())?;
        let id = request.request_context.request_id.clone().unwrap_or_default();
        let mut call = Call {
            path: parameters,
            after,
            only_install,
            cause: if operation.is_open() { String::new() } else { idempotency_key(&method, &request.headers)? },
            caller,
            access: None,
            webhook: [webhook::ID, webhook::TIMESTAMP, webhook::SIGNATURE].map(|name| header(&request.headers, name)),
            body: body_of(request, longest_body(operation))?,
        };
        call.check_placeholders()?;
        call.access = self.access(operation, &call).await?;
        self.perform_once(operation, call, (&path, &id)).await
    }
}

/// Returns `answer` as JSON.
fn to_json<T: Serialize>(answer: &T) -> Result<String, AppError> {
    Ok(serde_json::to_string(answer)?)
}

/// Returns the maximum size of a request's body, in bytes.
const fn longest_body(operation: Operation) -> usize {
    if matches!(operation, Operation::SyncApp) {
        MAX_VERSION_REQUEST_BYTES
    } else if matches!(operation, Operation::CallWebhook) {
        webhook::MAX_BODY_BYTES
    } else {
        MAX_REQUEST_BYTES
    }
}

/// Returns the only value of a header; `None` when it is missing, repeated or not text.
fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    let mut values = headers.get_all(name).iter();
    let only = values.next().filter(|_| values.next().is_none());
    only.and_then(|value| value.to_str().ok()).map(str::to_owned)
}

fn body_of(request: ApiGatewayV2httpRequest, most: usize) -> Result<String, AppError> {
    let body = request.body.unwrap_or_default();
    if body.len() > most {
        return Err(AppError::invalid(format!(
            "request body has {} bytes, more than the maximum of {most}; send less",
            body.len()
        )));
    }
    if !request.is_base64_encoded {
        return Ok(body);
    }
    let bytes = freehold_protocol::envelope::decode_base64(&body)
        .map_err(|_| AppError::invalid("request body is marked as base64 but is not base64"))?;
    String::from_utf8(bytes).map_err(|_| AppError::invalid("request body is not UTF-8 text"))
}

fn idempotency_key(method: &str, headers: &HeaderMap) -> Result<String, AppError> {
    if method != "POST" {
        return Ok(String::new());
    }
    let key = headers.get(IDEMPOTENCY_KEY).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if IDEMPOTENCY_KEY_SHAPE.accepts(key) {
        return Ok(key.to_owned());
    }
    Err(AppError::invalid(format!(
        "every POST needs the header `{IDEMPOTENCY_KEY}` with 1 to 128 visible ASCII characters; send the same value \
         again only to repeat the same request"
    )))
}

fn response(status: u16, body: String) -> ApiGatewayV2httpResponse {
    let mut response = ApiGatewayV2httpResponse::default();
    response.status_code = i64::from(status);
    response.headers.insert("content-type", HeaderValue::from_static("application/json"));
    response.body = Some(Body::Text(body));
    response
}

#[cfg(test)]
mod tests {
    use freehold_protocol::api::TestSubscriptionsRequest;

    use super::Call;

    #[test]
    fn an_array_is_not_read_as_an_object() {
        let read = |body: &str| Call { body: body.to_owned(), ..Call::default() }.json::<TestSubscriptionsRequest>();

        assert!(read("{}").is_ok());
        assert!(read(" [null, null]").unwrap_err().to_string().contains("request body is an array"));
    }
}
