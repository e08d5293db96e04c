//! Why a call failed: the error of the API as a value, or what happened instead of an answer of the API.

use std::fmt;

use freehold_protocol::api::{ErrorBody, ErrorKind};
use reqwest::StatusCode;
use serde_json::Value;

use crate::token_kind::TokenKind;

/// The maximum number of characters of a text that another server sent.
const LONGEST_TEXT: usize = 400;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API refused the request, or could not perform it.
    #[error("{0}")]
    Api(ApiError),
    /// API Gateway, or another server on the way, answered instead of the API.
    #[error("{0}")]
    Gateway(GatewayError),
    /// No answer came. The request may have been performed.
    #[error("no server responds at {address} ({reason}); check the address and the network")]
    Unreachable { address: String, reason: String },
    /// The answer does not have the type that this version knows.
    #[error("the response to {method} {path} cannot be read; update this program")]
    Unreadable {
        method: &'static str,
        path: String,
        #[source]
        source: serde_json::Error,
    },
    /// The body of the request cannot be written as JSON.
    #[error("cannot write a request as JSON: {0}")]
    Unwritable(String),
    /// There are no usable AWS credentials.
    #[error("no usable AWS credentials ({0}); set AWS_PROFILE or sign in")]
    Credentials(String),
    /// There is no usable token.
    #[error("no usable token ({0}); sign in again, or give the pipeline another token")]
    Token(String),
    /// The gateway did not accept the token.
    #[error("the API refused the token of the {} ({}); {}", .kind.holder(), .answer.status, .kind.way_out())]
    TokenRefused { kind: TokenKind, answer: GatewayError },
    /// The request cannot be signed.
    #[error("cannot sign the request: {0}")]
    Signature(String),
    /// The address is not that of an API.
    #[error("`{0}` is not the address of an API; pass one such as `https://abc.execute-api.eu-west-1.amazonaws.com`")]
    Address(String),
    /// The idempotency key has another form.
    #[error("`{0}` is not an idempotency key; pass 1 to 128 visible ASCII characters")]
    Key(String),
    /// The id of the event has another form.
    #[error("`{0}` is not an id of a call; pass 1 to 128 letters, digits, dashes or underscores")]
    CallId(String),
    /// The tenant does not take calls of webhooks at this address.
    #[error("the tenant takes no calls of webhooks at {0}; check the address, and whether webhooks are on")]
    NoWebhooks(String),
    /// A page of a list has itself as the next page, so the list would never end.
    #[error("the API returned the same page of a list twice; try again, or update this program and the tenant")]
    RepeatedPage,
    /// The connection of an upload was lost.
    #[error("the upload was interrupted: {0}; try again")]
    UploadInterrupted(String),
    /// S3 could not store an upload.
    #[error("S3 returned {0} for the upload; try again")]
    UploadFailed(StatusCode),
    /// S3 did not permit an upload, for example because its address has expired.
    #[error("S3 refused the upload with {0}; ask for another address")]
    UploadRefused(StatusCode),
    /// The API returned an address for an upload that cannot be used.
    #[error("the API returned an upload address that is not valid: {0}")]
    UploadAddress(String),
    /// The tenant has no stack in this account and region.
    #[error("there is no stack `{0}`; check the tenant's name, the account and the region")]
    NoTenant(String),
    /// The stack of the tenant does not name the address of its API.
    #[error("stack `{0}` has no address of the API in its outputs; deploy the tenant again")]
    NoAddress(String),
    /// CloudFormation did not return the stack of the tenant.
    #[error("cannot look up stack `{stack}`: {reason}")]
    Lookup { stack: String, reason: String },
    /// The HTTP client cannot be made.
    #[error("cannot make an HTTP client: {0}")]
    Http(String),
    /// The machine gives no random bytes.
    #[error("cannot read random bytes from this machine: {0}")]
    Random(String),
}

/// The error that the API answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    pub kind: ErrorKind,
    /// A message for people that names the cause and the solution.
    pub message: String,
    /// Whether the cause is usually gone within about a minute.
    pub soon: bool,
    /// The HTTP status.
    pub status: u16,
    /// The id that API Gateway gave to the request, for questions to whoever runs the tenant.
    pub request_id: Option<String>,
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// The answer of a server on the way to the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayError {
    /// The HTTP status.
    pub status: u16,
    /// The field `message` of the answer, such as `Forbidden`.
    pub message: Option<String>,
    /// The id that API Gateway gave to the request.
    pub request_id: Option<String>,
}

impl GatewayError {
    /// Returns the kind of the error that the status stands for.
    pub const fn kind(&self) -> ErrorKind {
        match self.status {
            401 | 403 => ErrorKind::Unauthorized,
            404 => ErrorKind::NotFound,
            429 | 500..=599 => ErrorKind::Transient,
            400..=499 => ErrorKind::Invalid,
            _ => ErrorKind::Internal,
        }
    }
}

impl fmt::Display for GatewayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way_out = match self.status {
            401 | 403 => "use credentials of the tenant's account that may `execute-api:Invoke`",
            404 => "check the address of the API",
            429 => "try again later",
            // The gateway sends these while the function may still be running.
            500..=599 => "the request may have been performed, so try again with the same idempotency key",
            _ => "check the address of the API, and update this program",
        };
        write!(f, "a server on the way to the API answered with status {}", self.status)?;
        if let Some(message) = &self.message {
            write!(f, ", `{message}`")?;
        }
        write!(f, "; {way_out}")
    }
}

impl Error {
    /// Returns the error for an answer with `status` and `body`, which is not a success.
    pub fn of_answer(status: u16, request_id: Option<String>, body: &[u8]) -> Self {
        if let Ok(ErrorBody { error }) = serde_json::from_slice::<ErrorBody>(body) {
            let (kind, message, soon) = (error.kind, error.message, error.soon);
            return Self::Api(ApiError { kind, message, soon, status, request_id });
        }
        Self::Gateway(GatewayError { status, message: gateway_message(body), request_id })
    }

    /// Returns the error of a request with a token: if the gateway refuses the request, the error is about the token.
    pub(crate) fn with_token(self, kind: TokenKind) -> Self {
        match self {
            Self::Gateway(answer) if matches!(answer.status, 401 | 403) => Self::TokenRefused { kind, answer },
            other => other,
        }
    }

    /// Returns the kind of the error, in the words of the API.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Api(error) => error.kind,
            Self::Gateway(error) => error.kind(),
            Self::Unreachable { .. } | Self::UploadInterrupted(_) | Self::UploadFailed(_) => ErrorKind::Transient,
            Self::Credentials(_)
            | Self::Token(_)
            | Self::TokenRefused { .. }
            | Self::NoWebhooks(_)
            | Self::UploadRefused(_) => ErrorKind::Unauthorized,
            Self::NoTenant(_) => ErrorKind::NotFound,
            Self::NoAddress(_) => ErrorKind::Conflict,
            Self::Address(_) | Self::Key(_) | Self::CallId(_) => ErrorKind::Invalid,
            Self::Unreadable { .. }
            | Self::Unwritable(_)
            | Self::Signature(_)
            | Self::RepeatedPage
            | Self::UploadAddress(_)
            | Self::Lookup { .. }
            | Self::Http(_)
            | Self::Random(_) => ErrorKind::Internal,
        }
    }

    /// Returns the id that API Gateway gave to the request, if an answer named one.
    pub fn request_id(&self) -> Option<&str> {
        match self {
            Self::Api(error) => error.request_id.as_deref(),
            Self::Gateway(error) | Self::TokenRefused { answer: error, .. } => error.request_id.as_deref(),
            Self::Unreachable { .. }
            | Self::Unreadable { .. }
            | Self::Unwritable(_)
            | Self::Credentials(_)
            | Self::Token(_)
            | Self::Signature(_)
            | Self::Address(_)
            | Self::Key(_)
            | Self::CallId(_)
            | Self::NoWebhooks(_)
            | Self::RepeatedPage
            | Self::UploadInterrupted(_)
            | Self::UploadFailed(_)
            | Self::UploadRefused(_)
            | Self::UploadAddress(_)
            | Self::NoTenant(_)
            | Self::NoAddress(_)
            | Self::Lookup { .. }
            | Self::Http(_)
            | Self::Random(_) => None,
        }
    }

    /// Returns whether the same request may succeed later. A `500` of the API itself is a defect, and does not pass. A
    /// `500` of the gateway means that the function was stopped before it answered.
    pub fn may_succeed_later(&self) -> bool {
        self.kind() == ErrorKind::Transient
    }

    /// Returns whether the API refused a request because it performs an earlier try of the same request.
    pub fn is_being_performed(&self) -> bool {
        matches!(self, Self::Api(error) if error.soon && error.kind == ErrorKind::Transient)
    }
}

/// Returns the message of an answer that the gateway sends without calling the API's function, such as `{"message":
/// "Forbidden"}`.
fn gateway_message(body: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let message = value.get("message").or_else(|| value.get("Message"))?.as_str()?;
    Some(message.lines().next().unwrap_or_default().chars().take(LONGEST_TEXT).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_api_has_its_kind_message_and_request_id() {
        let body = br#"{"error":{"kind":"conflict","message":"install `globex` is busy; wait for `wf_1`"}}"#;

        let error = Error::of_answer(409, Some("JKJaXmPLvHcESHA=".to_owned()), body);

        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert_eq!(error.to_string(), "install `globex` is busy; wait for `wf_1`");
        assert_eq!(error.request_id(), Some("JKJaXmPLvHcESHA="));
        assert!(!error.may_succeed_later());
    }

    #[test]
    fn an_answer_of_the_gateway_has_the_kind_of_its_status() {
        let of = |status: u16, body: &[u8]| Error::of_answer(status, None, body);

        for (status, kind) in [
            (302, ErrorKind::Internal),
            (401, ErrorKind::Unauthorized),
            (403, ErrorKind::Unauthorized),
            (404, ErrorKind::NotFound),
            (413, ErrorKind::Invalid),
            (429, ErrorKind::Transient),
            (502, ErrorKind::Transient),
        ] {
            assert_eq!(of(status, b"<html>").kind(), kind, "{status}");
        }
        assert_eq!(
            of(403, br#"{"message":"Forbidden"}"#).to_string(),
            "a server on the way to the API answered with status 403, `Forbidden`; use credentials of the tenant's \
             account that may `execute-api:Invoke`"
        );
    }

    #[test]
    fn a_defect_of_the_function_does_not_pass_and_a_function_that_was_stopped_does() {
        let own = br#"{"error":{"kind":"internal","message":"a defect"}}"#;
        let busy = br#"{"error":{"kind":"transient","message":"busy; try again"}}"#;
        let performed = br#"{"error":{"kind":"transient","message":"being performed; try again","soon":true}}"#;

        assert!(!Error::of_answer(500, None, own).may_succeed_later());
        assert!(Error::of_answer(500, None, br#"{"message":"Internal Server Error"}"#).may_succeed_later());
        assert!(Error::of_answer(503, None, busy).may_succeed_later());
        assert!(!Error::of_answer(503, None, busy).is_being_performed());
        assert!(Error::of_answer(503, None, performed).is_being_performed());
    }
}
