//! Converts errors of AWS calls to errors of the command.

use std::fmt;

use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use freehold_aws_errors::Meaning;

use super::{Error, Kind, Result, ResultExt, chain, first_line};

impl<T, E, R> ResultExt<T> for std::result::Result<T, SdkError<E, R>>
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
    R: fmt::Debug + 'static,
{
    fn doing(self, what: impl fmt::Display) -> Result<T> {
        self.map_err(|error| from_sdk(&error).within(format!("cannot {what}")))
    }
}

fn from_sdk<E, R>(error: &SdkError<E, R>) -> Error
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
    R: fmt::Debug + 'static,
{
    match error {
        SdkError::ServiceError(service) => {
            let message = service.err().message().unwrap_or_default();
            service.err().code().map_or_else(|| without_code(message), |code| service_error(code, message))
        }
        SdkError::ConstructionFailure(_) => {
            Error::internal(format!("cannot make the request to AWS: {}", chain(error)))
        }
        SdkError::TimeoutError(_) => Error::transient("AWS did not respond in time; try again"),
        SdkError::DispatchFailure(failure) => {
            let chain = failure.as_connector_error().map(|error| chain(error)).unwrap_or_default();
            if chain.contains("credential") || chain.contains("profile") {
                return no_credentials(&chain);
            }
            Error::transient(format!(
                "AWS could not be reached ({chain}); check the network, and the region in `--aws-region` or AWS_REGION"
            ))
        }
        other => Error::transient(format!(
            "AWS returned a response that cannot be read ({}); try again",
            first_line(&chain(other))
        )),
    }
}

/// Returns the error for a response without an error code. AWS services always send an error code, so the response
/// comes from another server, such as a proxy.
fn without_code(message: &str) -> Error {
    let quote = if message.is_empty() { String::new() } else { format!(" ({})", first_line(message)) };
    Error::failed(format!("the response does not come from AWS{quote}"))
        .or("check the network, the proxy and AWS_ENDPOINT_URL")
}

/// Returns the error for an AWS service's response with the error code `code`.
fn service_error(code: &str, message: &str) -> Error {
    let kind = kind_of_code(code);
    let error = Error::quoting(kind, format!("{code}: {}", first_line(message)));
    match Meaning::of(Some(code)) {
        Meaning::Credentials if code.contains("RequestTimeTooSkewed") => error.or("correct the clock of this machine"),
        Meaning::Credentials => Error {
            message: format!("AWS does not accept these credentials ({code}: {})", first_line(message)),
            ..error.or("sign in again (`aws sso login`), or check AWS_PROFILE and the AWS_... variables")
        },
        Meaning::Denied => error.or("allow the action, or use other credentials"),
        Meaning::Transient => error.or("try again"),
        Meaning::Quota | Meaning::NotFound | Meaning::Conflict | Meaning::Invalid | Meaning::Unknown => error,
    }
}

/// Returns the error about missing credentials. `chain` is the SDK's text; its long list of tried providers is left
/// out.
pub(crate) fn no_credentials(chain: &str) -> Error {
    let reason = chain.split(". Attempted").next().unwrap_or_default();
    // When a profile may not take its role, AWS's sentence has colons of its own.
    let last = || reason.rsplit(": ").next().unwrap_or_default();
    let reason = reason.split_once("User: ").map_or_else(last, |(_, denied)| denied);
    let profile = std::env::var("AWS_PROFILE").ok().filter(|name| !name.is_empty());
    Error::denied(match profile {
        Some(profile) => format!(
            "no usable AWS credentials of profile `{profile}`, which AWS_PROFILE names ({reason}); sign in, or correct \
             AWS_PROFILE"
        ),
        None => format!("no usable AWS credentials ({reason}); set AWS_PROFILE or sign in"),
    })
}

/// Returns the kind of error for an AWS error code.
fn kind_of_code(code: &str) -> Kind {
    match Meaning::of(Some(code)) {
        Meaning::Denied | Meaning::Credentials => Kind::Denied,
        Meaning::Transient => Kind::Transient,
        Meaning::NotFound => Kind::NotFound,
        Meaning::Conflict => Kind::Conflict,
        Meaning::Invalid => Kind::Invalid,
        Meaning::Quota | Meaning::Unknown => Kind::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aws_codes_map_to_kinds() {
        for (code, kind) in [
            ("AccessDeniedException", Kind::Denied),
            ("ThrottlingException", Kind::Transient),
            ("AWS.SimpleQueueService.NonExistentQueue", Kind::NotFound),
            ("NoSuchBucket", Kind::NotFound),
            ("ValidationError", Kind::Invalid),
            ("OperationInProgressException", Kind::Conflict),
            ("LimitExceededException", Kind::Failed),
        ] {
            assert_eq!(kind_of_code(code), kind, "{code}");
        }
    }

    #[test]
    fn an_answer_that_has_no_error_code_is_said_to_be_foreign() {
        insta::assert_snapshot!(without_code(""), @"the response does not come from AWS; check the network, the proxy and AWS_ENDPOINT_URL");
        insta::assert_snapshot!(without_code("<html>Blocked</html>\nx"), @"the response does not come from AWS (<html>Blocked</html>); check the network, the proxy and AWS_ENDPOINT_URL");
    }

    #[test]
    fn a_wrong_clock_is_corrected_and_nobody_signs_in_again() {
        let error = service_error(
            "RequestTimeTooSkewed",
            "The difference between the request time and the current time is too large.",
        );

        assert_eq!(error.way_out(), Some("correct the clock of this machine"));
    }

    #[test]
    fn a_profile_that_may_not_take_its_role_is_told_who_may_not_and_which_role() {
        let denied = "arn:aws:iam::111111111111:user/me is not authorized to perform: sts:AssumeRole on resource: \
                      arn:aws:iam::111111111111:role/builders (AccessDenied)";

        let error = no_credentials(&format!("an error occurred while loading credentials: User: {denied}"));

        assert!(error.to_string().contains(&format!("({denied})")), "{error}");
    }

    #[test]
    fn credentials_that_aws_refuses_are_renewed_by_signing_in() {
        let error = service_error("ExpiredToken", "The security token included in the request is expired");

        assert_eq!(error.kind(), Kind::Denied);
        insta::assert_snapshot!(error, @"AWS does not accept these credentials (ExpiredToken: The security token included in the request is expired); sign in again (`aws sso login`), or check AWS_PROFILE and the AWS_... variables");
    }
}
