//! Converts errors of the client of the tenant API to errors of the command, whose ways out are options and commands.

use freehold_client::{Error as ClientError, GatewayError, TokenKind};
use freehold_protocol::api::ErrorKind;

use super::{Error, Kind, no_credentials};

/// The way out of a person whose token is not valid.
pub(super) const LOGIN: &str = "run `freehold login`, or pass `--as-aws` to use AWS credentials";

impl From<ClientError> for Error {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Api(answer) => {
                Self { soon: answer.soon, ..Self::of(kind_of_api(answer.kind), &answer.message) }
            }
            ClientError::Gateway(answer) => of_gateway(&answer),
            ClientError::Unreachable { address, reason } => {
                let message = format!("no server responds at {address}, the address of the tenant API ({reason})");
                Self::quoting(Kind::Transient, message)
            }
            ClientError::Unreadable { method, path, source } => Self::internal(format!(
                "the response to {method} {path} cannot be read: {source}; update `freehold`"
            )),
            ClientError::Credentials(reason) => no_credentials(&reason),
            ClientError::Token(reason) => Self::denied(format!("there is no usable token: {reason}")).or(LOGIN),
            ClientError::TokenRefused { kind, answer } => of_token(kind, &answer),
            ClientError::CallId(id) => Self::invalid(format!("`{id}` is not an id of a call"))
                .or("pass 1 to 128 letters, digits, dashes or underscores in `--id`"),
            ClientError::NoWebhooks(_) => Self::denied("the tenant takes no calls of webhooks at this address").or(
                "compare the address with `freehold webhook list`; `freehold tenant deploy --webhooks on` opens the route",
            ),
            ClientError::RepeatedPage => Self::internal(
                "the tenant API returned the same page of a list twice; try again, or update `freehold` and the tenant",
            ),
            ClientError::UploadInterrupted(reason) => {
                Self::quoting(Kind::Transient, format!("the upload was interrupted: {reason}"))
                    .or("check the network and run the command again")
            }
            ClientError::UploadFailed(status) => {
                Self::transient(format!("S3 returned {status} for the upload; run the command again"))
            }
            ClientError::UploadRefused(status) => {
                Self::denied(format!("S3 refused the upload with {status}; run the command again"))
            }
            other @ (ClientError::Unwritable(_)
            | ClientError::Signature(_)
            | ClientError::Address(_)
            | ClientError::Key(_)
            | ClientError::UploadAddress(_)
            | ClientError::NoTenant(_)
            | ClientError::NoAddress(_)
            | ClientError::Lookup { .. }
            | ClientError::Http(_)
            | ClientError::Random(_)) => Self::of(kind_of_api(other.kind()), &other.to_string()),
        }
    }
}

const fn kind_of_api(kind: ErrorKind) -> Kind {
    match kind {
        ErrorKind::Invalid => Kind::Invalid,
        ErrorKind::Unauthorized | ErrorKind::Forbidden => Kind::Denied,
        ErrorKind::NotFound => Kind::NotFound,
        ErrorKind::Conflict => Kind::Conflict,
        ErrorKind::Transient => Kind::Transient,
        ErrorKind::Internal => Kind::Internal,
    }
}

/// Returns the error for an answer of the gateway that refuses a token.
fn of_token(kind: TokenKind, answer: &GatewayError) -> Error {
    let status = answer.status;
    match kind {
        TokenKind::Person => {
            Error::denied(format!("the tenant API does not accept the token of your login ({status})")).or(LOGIN)
        }
        TokenKind::Pipeline => {
            Error::denied(format!("the tenant API does not accept the token of this pipeline ({status})"))
                .or("compare its issuer and audience with those of the tenant, and check that it has not expired")
        }
    }
}

/// Returns the error for an answer that does not come from the API itself.
fn of_gateway(answer: &GatewayError) -> Error {
    let status = answer.status;
    let detail = answer.message.as_ref().map(|message| format!(", `{message}`")).unwrap_or_default();
    match status {
        401 | 403 => Error::denied(format!(
            "the tenant API refused the request ({status}{detail}); use credentials of the tenant's account that may `execute-api:Invoke`"
        )),
        404 => Error::not_found(format!("the tenant API does not know this address ({status}{detail}); check `--api`")),
        429 => Error::transient(format!("the tenant API gets too many requests ({status}{detail}); try again later")),
        // The gateway sends a 504 while the function may still be running.
        500..=599 => Error::transient(format!(
            "the tenant API did not return the result of the request ({status}{detail}), which may have been carried \
             out; check whether it was before you try again"
        )),
        400..=499 => Error::invalid(format!(
            "the tenant API refused the request ({status}{detail}); check `--api`, and use the `freehold` command of the \
             tenant's release"
        )),
        _ => Error::internal(format!(
            "the tenant API returned a response that this version cannot read ({status}{detail}); update `freehold`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_answer(status: u16, body: &[u8]) -> Error {
        ClientError::of_answer(status, None, body).into()
    }

    #[test]
    fn an_error_body_of_the_api_is_one_sentence_with_its_kind() {
        let body = br#"{"error":{"kind":"conflict","message":"install `globex` is being deployed; wait for it or cancel it"}}"#;

        let error = of_answer(409, body);

        assert_eq!(error.kind().exit_code(), 4);
        assert_eq!(error.to_string(), "install `globex` is being deployed; wait for it or cancel it");
    }

    #[test]
    fn a_request_that_the_policies_do_not_permit_is_denied_with_the_message_of_the_api() {
        let body = br#"{"error":{"kind":"forbidden","message":"`ana` may not remove members; ask ben@example.com"}}"#;

        let error = of_answer(403, body);

        assert_eq!(error.kind().exit_code(), 6);
        assert_eq!(error.to_string(), "`ana` may not remove members; ask ben@example.com");
    }

    #[test]
    fn an_answer_of_the_gateway_is_reported_by_its_status() {
        assert_eq!(of_answer(403, br#"{"message":"Forbidden"}"#).kind(), Kind::Denied);
        assert_eq!(of_answer(503, b"").kind(), Kind::Transient);
        assert_eq!(of_answer(404, b"<html>").kind(), Kind::NotFound);
        assert_eq!(
            of_answer(504, br#"{"message":"Endpoint request timed out"}"#).to_string(),
            "the tenant API did not return the result of the request (504, `Endpoint request timed out`), which may have been \
             carried out; check whether it was before you try again"
        );
        assert_eq!(of_answer(429, b"").to_string(), "the tenant API gets too many requests (429); try again later");
        for status in [302, 401, 404, 405, 413, 429, 502] {
            assert!(of_answer(status, b"<html>").way_out().is_some(), "{status}");
        }
    }

    fn refused(kind: TokenKind) -> ClientError {
        ClientError::TokenRefused { kind, answer: GatewayError { status: 401, message: None, request_id: None } }
    }

    #[test]
    fn an_error_of_the_client_has_a_way_out_of_the_command() {
        let unreadable = serde_json::from_str::<u8>("x").unwrap_err();
        let errors = [
            ClientError::Credentials("nothing provides any".to_owned()),
            ClientError::Unreadable { method: "GET", path: "/v1/apps".to_owned(), source: unreadable },
            ClientError::Token("it has expired".to_owned()),
            refused(TokenKind::Person),
            refused(TokenKind::Pipeline),
            ClientError::CallId("a b".to_owned()),
            ClientError::NoWebhooks("https://example.com".to_owned()),
            ClientError::RepeatedPage,
            ClientError::UploadInterrupted("connection reset".to_owned()),
        ];

        for error in errors.map(Error::from) {
            assert!(error.way_out().is_some(), "{error}");
        }
    }
}
