//! Gives each AWS error code a meaning, and prints an error with its causes on one line.

use std::error::Error;

use aws_smithy_types::error::ErrorMetadata;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;

/// The meaning of an AWS error code. Services use different codes for the same meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// The credentials are valid, and a policy does not allow the call.
    Denied,
    /// The credentials are unknown, expired or signed wrongly.
    Credentials,
    /// The same call may succeed later: throttling, a race with another writer, a fault of the service.
    Transient,
    /// A quota of the account or of the resource is used up. Some services also report throttling in this way.
    Quota,
    NotFound,
    /// The resource exists already, or its state forbids the call.
    Conflict,
    /// The request itself is wrong.
    Invalid,
    /// The code matches no entry of `MEANINGS`.
    Unknown,
}

/// Parts of error codes, each with its meaning. The first part that a code contains decides.
const MEANINGS: [(&str, Meaning); 50] = [
    ("AccessDenied", Meaning::Denied),
    ("Unauthorized", Meaning::Denied),
    ("Forbidden", Meaning::Denied),
    ("NotAuthorized", Meaning::Denied),
    ("AuthorizationError", Meaning::Denied),
    ("ExpiredToken", Meaning::Credentials),
    ("InvalidClientTokenId", Meaning::Credentials),
    ("SignatureDoesNotMatch", Meaning::Credentials),
    ("UnrecognizedClient", Meaning::Credentials),
    ("IncompleteSignature", Meaning::Credentials),
    ("InvalidSignature", Meaning::Credentials),
    ("MissingAuthenticationToken", Meaning::Credentials),
    ("InvalidAccessKeyId", Meaning::Credentials),
    ("InvalidToken", Meaning::Credentials),
    ("AuthFailure", Meaning::Credentials),
    ("RequestExpired", Meaning::Credentials),
    ("RequestTimeTooSkewed", Meaning::Credentials),
    ("Throttl", Meaning::Transient),
    ("TooManyRequests", Meaning::Transient),
    ("RequestLimitExceeded", Meaning::Transient),
    ("ProvisionedThroughputExceeded", Meaning::Transient),
    ("SlowDown", Meaning::Transient),
    ("ServiceUnavailable", Meaning::Transient),
    ("InternalFailure", Meaning::Transient),
    ("InternalError", Meaning::Transient),
    ("InternalServerError", Meaning::Transient),
    ("InternalServiceError", Meaning::Transient),
    ("ServiceFailure", Meaning::Transient),
    ("ServerException", Meaning::Transient),
    ("OperationAborted", Meaning::Transient),
    ("RequestTimeout", Meaning::Transient),
    ("ConcurrentModification", Meaning::Transient),
    ("KMSInternalException", Meaning::Transient),
    ("TransactionConflict", Meaning::Transient),
    ("TransactionInProgress", Meaning::Transient),
    ("LimitExceeded", Meaning::Quota),
    ("NotFound", Meaning::NotFound),
    ("NoSuch", Meaning::NotFound),
    ("NonExistent", Meaning::NotFound),
    ("DoesNotExist", Meaning::NotFound),
    ("AlreadyExists", Meaning::Conflict),
    ("Conflict", Meaning::Conflict),
    ("InUse", Meaning::Conflict),
    ("InProgress", Meaning::Conflict),
    ("AlreadyOwned", Meaning::Conflict),
    ("ResourceExists", Meaning::Conflict),
    ("Validation", Meaning::Invalid),
    ("Invalid", Meaning::Invalid),
    ("Malformed", Meaning::Invalid),
    ("MissingParameter", Meaning::Invalid),
];

impl Meaning {
    /// Returns the meaning of `code`: [`Meaning::Unknown`] when the response has no code.
    #[must_use]
    pub fn of(code: Option<&str>) -> Self {
        let found = code.and_then(|code| MEANINGS.iter().find(|(part, _)| code.contains(part)));
        found.map_or(Self::Unknown, |(_, meaning)| *meaning)
    }
}

/// The codes with which services refuse valid credentials in a region that is not switched on for the account (AWS
/// Account Management reference guide, "Enable or disable AWS Regions").
const REGION_OFF: [&str; 5] =
    ["InvalidClientTokenId", "UnrecognizedClientException", "OptInRequired", "AuthFailure", "RegionDisabledException"];

/// Returns whether `code` may mean that the region is not switched on for the account. A service gives some of these
/// codes for unknown credentials too.
#[must_use]
pub fn is_region_off(code: &str) -> bool {
    REGION_OFF.contains(&code)
}

/// Returns whether `code` means that temporary credentials are not valid any more.
#[must_use]
pub fn is_expired(code: &str) -> bool {
    code.contains("ExpiredToken")
}

/// Returns whether a change set failed only because it has no changes. CloudFormation has no code for this reason and uses
/// two texts.
#[must_use]
pub fn means_no_changes(reason: &str) -> bool {
    reason.contains("didn't contain changes") || reason.contains("No updates are to be performed")
}

/// Returns the code and the message of a service's response, or only the code when the response has no message. `None`
/// when there is no code, for example because no response came.
pub fn code_and_message<E: ProvideErrorMetadata>(error: &E) -> Option<String> {
    let code = error.code()?;
    Some(error.message().map_or_else(|| code.to_owned(), |message| format!("{code}: {message}")))
}

/// Returns the messages of `error` and its causes on one line. It leaves out a message that the line already contains,
/// and a message of an AWS SDK that only announces its cause.
#[must_use]
pub fn chain(error: &dyn Error) -> String {
    let mut messages = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(error) = cause {
        messages.push(error.downcast_ref().map_or_else(|| error.to_string(), answer));
        cause = error.source();
    }
    let last = messages.pop().unwrap_or_default();
    messages.retain(|message| !announces_its_cause(message));
    let mut text = String::new();
    for message in messages.into_iter().chain([last]).filter(|message| !message.is_empty()) {
        if text.is_empty() {
            text = message;
        } else if !text.contains(&message) {
            text.push_str(": ");
            text.push_str(&message);
        }
    }
    text.replace('\n', " ")
}

/// Returns the service's response as text. The SDK itself would print the fields of a structure.
fn answer(answer: &ErrorMetadata) -> String {
    match (answer.message(), answer.code()) {
        (Some(message), Some(code)) if !message.contains(code) => format!("{message} ({code})"),
        (Some(text), _) | (None, Some(text)) => text.to_owned(),
        (None, None) => "the service gave no reason".to_owned(),
    }
}

/// Returns whether an SDK's message only repeats the message of its cause.
fn announces_its_cause(message: &str) -> bool {
    const ANNOUNCEMENTS: [&str; 3] = ["service error", "dispatch failure", "other"];
    ANNOUNCEMENTS.contains(&message) || message.starts_with("unhandled error")
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    #[test]
    fn every_code_has_its_meaning() {
        let cases: [(Meaning, &[&str]); 8] = [
            (
                Meaning::Denied,
                &[
                    "AccessDenied",
                    "AccessDeniedException",
                    "AWS.SimpleQueueService.AccessDenied",
                    "UnauthorizedOperation",
                    "Forbidden",
                    "NotAuthorizedException",
                    "AuthorizationError",
                ],
            ),
            (
                Meaning::Credentials,
                &[
                    "AuthFailure",
                    "ExpiredToken",
                    "ExpiredTokenException",
                    "IncompleteSignature",
                    "InvalidAccessKeyId",
                    "InvalidClientTokenId",
                    "InvalidSignatureException",
                    "InvalidToken",
                    "MissingAuthenticationToken",
                    "RequestExpired",
                    "RequestTimeTooSkewed",
                    "SignatureDoesNotMatch",
                    "UnrecognizedClientException",
                ],
            ),
            (
                Meaning::Transient,
                &[
                    "InternalError",
                    "InternalFailure",
                    "ConcurrentModificationException",
                    "InternalServerError",
                    "InternalServiceError",
                    "KMSInternalException",
                    "OperationAborted",
                    "ProvisionedThroughputExceededException",
                    "RequestLimitExceeded",
                    "RequestThrottled",
                    "RequestTimeout",
                    "ServerException",
                    "ServiceFailure",
                    "ServiceUnavailable",
                    "SlowDown",
                    "Throttling",
                    "ThrottlingException",
                    "TooManyRequestsException",
                    "TransactionConflictException",
                    "TransactionInProgressException",
                ],
            ),
            (Meaning::Quota, &["LimitExceeded", "LimitExceededException"]),
            (
                Meaning::NotFound,
                &[
                    "AWS.SimpleQueueService.NonExistentQueue",
                    "NoSuchBucket",
                    "QueueDoesNotExist",
                    "ResourceNotFoundException",
                ],
            ),
            (
                Meaning::Conflict,
                &[
                    "AlreadyExistsException",
                    "BucketAlreadyOwnedByYou",
                    "OperationInProgressException",
                    "ResourceConflictException",
                    "ResourceExistsException",
                    "ResourceInUseException",
                ],
            ),
            (
                Meaning::Invalid,
                &["InvalidParameterValue", "MalformedPolicyDocument", "MissingParameter", "ValidationError"],
            ),
            (Meaning::Unknown, &["ConditionalCheckFailedException", "KMS.DisabledException", "unknown error"]),
        ];

        for (meaning, codes) in cases {
            for code in codes {
                assert_eq!(Meaning::of(Some(code)), meaning, "{code}");
            }
        }
        assert_eq!(Meaning::of(None), Meaning::Unknown);
    }

    #[test]
    fn no_entry_hides_a_later_one() {
        for (at, (part, _)) in MEANINGS.iter().enumerate() {
            let hidden = MEANINGS[..at].iter().find(|(earlier, _)| part.contains(earlier));

            assert_eq!(hidden, None, "`{part}` is never reached");
        }
    }

    #[derive(Debug)]
    struct Layer(&'static str, Option<Box<Layer>>);

    impl fmt::Display for Layer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Layer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|cause| cause as _)
        }
    }

    #[derive(Debug)]
    struct Announcement(&'static str, Box<dyn Error>);

    impl fmt::Display for Announcement {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Announcement {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(self.1.as_ref())
        }
    }

    #[test]
    fn an_answer_of_a_service_is_a_sentence_and_not_the_fields_of_a_structure() {
        let sdk = |answer: ErrorMetadata| {
            let unhandled = Announcement("unhandled error (AccessDenied)", Box::new(answer));
            chain(&Announcement("service error", Box::new(unhandled)))
        };
        let denied = || ErrorMetadata::builder().code("AccessDenied");

        assert_eq!(sdk(denied().message("not for you").build()), "not for you (AccessDenied)");
        assert_eq!(sdk(denied().build()), "AccessDenied");
        assert_eq!(sdk(ErrorMetadata::builder().build()), "the service gave no reason");
        let other = Announcement("other", Box::new(Layer("the connection was refused", None)));
        assert_eq!(chain(&Announcement("dispatch failure", Box::new(other))), "the connection was refused");
    }

    #[test]
    fn causes_stand_on_one_line_and_nothing_is_repeated() {
        let cause = Layer("refused\nby the host", None);
        let empty = Layer("", Some(Box::new(cause)));
        let again = Layer("cannot connect", Some(Box::new(empty)));
        let error = Layer("cannot connect to `sqs`", Some(Box::new(again)));

        assert_eq!(chain(&error), "cannot connect to `sqs`: refused by the host");
    }

    #[test]
    fn both_sentences_for_no_changes_are_recognized() {
        assert!(means_no_changes("The submitted information didn't contain changes. Submit different information"));
        assert!(means_no_changes("No updates are to be performed."));
        assert!(!means_no_changes("Template error: unresolved reference"));
    }
}
