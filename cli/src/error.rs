//! The error of a command: its kind, one sentence, and the exit code that scripts read. The only place with exit codes.

use std::fmt;

use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use freehold_aws_errors::Meaning;
pub(crate) use freehold_aws_errors::chain;
use freehold_protocol::api::{ErrorBody, ErrorKind};

/// What `freehold --help` says of exit codes; [`Kind::exit_code`] decides them.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0   done
  1   the request failed (a workflow that ended failed, leftovers after `tenant destroy`, differences with
      `app diff --exit-code`, wider terms with `contract diff`, a lineage with a broken link, a contract with a
      broken signature)
  2   wrong usage, input or config
  3   not found
  4   conflict: the current state does not allow it
  5   network trouble or throttling; try again
  6   access denied
  70  a defect of freehold
  130 stopped by ctrl-c";

/// Why a command ended without doing what it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It ran, and the thing asked for failed.
    Failed,
    /// Usage, input or config.
    Invalid,
    NotFound,
    Conflict,
    /// Network, throttling, a service that is down.
    Transient,
    /// Missing or insufficient permission.
    Denied,
    /// A defect.
    Internal,
    /// Ctrl-c.
    Interrupted,
}

impl Kind {
    /// Returns the process's exit code.
    pub(crate) const fn exit_code(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::Invalid => 2,
            Self::NotFound => 3,
            Self::Conflict => 4,
            Self::Transient => 5,
            Self::Denied => 6,
            Self::Internal => 70,
            Self::Interrupted => 130,
        }
    }
}

/// The error of every command: a kind and a sentence that names the thing and the way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Error {
    kind: Kind,
    message: String,
    soon: bool,
}

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! constructors {
    ($($name:ident => $kind:ident),+) => {
        $(pub(crate) fn $name(message: impl Into<String>) -> Self {
            Self { kind: Kind::$kind, message: message.into(), soon: false }
        })+
    };
}

impl Error {
    constructors! {
        failed => Failed, invalid => Invalid, not_found => NotFound, conflict => Conflict,
        transient => Transient, denied => Denied, internal => Internal, interrupted => Interrupted
    }

    /// Returns the kind, which chooses the exit code.
    pub(crate) const fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns whether the API expects the error to disappear by itself within about a minute.
    pub(crate) const fn passes_soon(&self) -> bool {
        self.soon
    }

    /// Returns the error that an API answer with `status` and `body` stands for.
    pub(crate) fn from_api(status: u16, body: &[u8]) -> Self {
        if let Ok(ErrorBody { error }) = serde_json::from_slice::<ErrorBody>(body) {
            return Self { kind: kind_of_api(error.kind), message: error.message, soon: error.soon };
        }
        let detail = gateway_message(body);
        match status {
            401 | 403 => Self::denied(format!(
                "the tenant API refused the request ({status}{detail}); use credentials of the tenant's account that may `execute-api:Invoke`"
            )),
            404 => {
                Self::not_found(format!("the tenant API does not know this address ({status}{detail}); check `--api`"))
            }
            429 | 500..=599 => {
                Self::transient(format!("the tenant API could not answer ({status}{detail}); try again"))
            }
            400..=499 => Self::invalid(format!("the tenant API refused the request ({status}{detail})")),
            _ => Self::internal(format!(
                "the tenant API gave an answer that this version does not know ({status}{detail})"
            )),
        }
    }

    /// Returns this error with `context` in front of its sentence.
    pub(crate) fn within(self, context: impl fmt::Display) -> Self {
        Self { message: format!("{context}: {}", self.message), ..self }
    }
}

const fn kind_of_api(kind: ErrorKind) -> Kind {
    match kind {
        ErrorKind::Invalid => Kind::Invalid,
        ErrorKind::NotFound => Kind::NotFound,
        ErrorKind::Conflict => Kind::Conflict,
        ErrorKind::Transient => Kind::Transient,
        ErrorKind::Internal => Kind::Internal,
    }
}

/// The gateway answers `{"message": "Forbidden"}` before our function is asked.
fn gateway_message(body: &[u8]) -> String {
    let value: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let message = value.as_ref().and_then(|v| v.get("message").or_else(|| v.get("Message"))).and_then(|m| m.as_str());
    message.map(|m| format!(", `{}`", first_line(m))).unwrap_or_default()
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(200).collect()
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// Adds to an error what the command was doing.
pub(crate) trait ResultExt<T> {
    /// Turns the error into a command's error that begins with "cannot `what`".
    fn doing(self, what: impl fmt::Display) -> Result<T>;
}

impl<T, E, R> ResultExt<T> for std::result::Result<T, SdkError<E, R>>
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
    R: fmt::Debug + 'static,
{
    fn doing(self, what: impl fmt::Display) -> Result<T> {
        self.map_err(|error| from_sdk(&error).within(format!("cannot {what}")))
    }
}

impl<T> ResultExt<T> for std::io::Result<T> {
    fn doing(self, what: impl fmt::Display) -> Result<T> {
        self.map_err(|error| Error::invalid(format!("cannot {what}: {error}")))
    }
}

fn from_sdk<E, R>(error: &SdkError<E, R>) -> Error
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
    R: fmt::Debug + 'static,
{
    match error {
        SdkError::ServiceError(service) => {
            let code = service.err().code().unwrap_or("unknown error");
            let message = service.err().message().unwrap_or_default();
            Error { kind: kind_of_code(code), message: format!("{code}: {}", first_line(message)), soon: false }
        }
        SdkError::ConstructionFailure(_) => {
            Error::internal(format!("cannot make the request to AWS: {}", chain(error)))
        }
        SdkError::TimeoutError(_) => Error::transient("AWS did not answer in time; try again"),
        SdkError::DispatchFailure(failure) => {
            let chain = failure.as_connector_error().map(|error| chain(error)).unwrap_or_default();
            if chain.contains("credential") || chain.contains("profile") {
                return no_credentials(&chain);
            }
            Error::transient(format!("AWS could not be reached ({chain}); check the network and the region"))
        }
        other => Error::transient(format!(
            "AWS gave an answer that cannot be read ({}); try again",
            first_line(&chain(other))
        )),
    }
}

/// Returns the error about credentials; the list of all providers that were asked helps nobody.
pub(crate) fn no_credentials(chain: &str) -> Error {
    let reason = chain.split(". Attempted").next().unwrap_or_default();
    let reason = reason.rsplit(": ").next().unwrap_or_default();
    Error::denied(format!("no usable AWS credentials ({reason}); set AWS_PROFILE or sign in"))
}

/// Returns the kind of an AWS error code.
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
    fn every_kind_has_its_documented_exit_code() {
        let kinds = [
            Kind::Failed,
            Kind::Invalid,
            Kind::NotFound,
            Kind::Conflict,
            Kind::Transient,
            Kind::Denied,
            Kind::Internal,
            Kind::Interrupted,
        ];

        for kind in kinds {
            let line = format!("  {:<3} ", kind.exit_code());
            assert!(EXIT_CODES.contains(&line), "{kind:?}");
        }
    }

    #[test]
    fn an_error_body_of_the_api_is_one_sentence_with_its_kind() {
        let body = br#"{"error":{"kind":"conflict","message":"install `globex` is being deployed; wait for it or cancel it"}}"#;

        let error = Error::from_api(409, body);

        assert_eq!(error.kind().exit_code(), 4);
        assert_eq!(error.to_string(), "install `globex` is being deployed; wait for it or cancel it");
    }

    #[test]
    fn an_answer_of_the_gateway_is_reported_by_its_status() {
        assert_eq!(Error::from_api(403, br#"{"message":"Forbidden"}"#).kind(), Kind::Denied);
        assert_eq!(Error::from_api(503, b"").kind(), Kind::Transient);
        assert_eq!(Error::from_api(404, b"<html>").kind(), Kind::NotFound);
    }

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
}
