//! One place that says which AWS errors may pass with time.

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::display::DisplayErrorContext;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use freehold_app::ports::PortError;

/// Codes of errors that a later try may not meet.
const TRANSIENT: [&str; 12] = [
    "InternalFailure",
    "InternalServerError",
    "KMSInternalException",
    "LimitExceededException",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "ServiceUnavailable",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
    "TransactionConflictException",
    "TransactionInProgressException",
];

/// Returns what the error of calling `what` means for us.
pub fn port_error<E>(what: &str, error: SdkError<E, HttpResponse>) -> PortError
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    let what = what.to_owned();
    let code = error.code().unwrap_or_default().to_owned();
    let status = error.raw_response().map(|response| response.status().as_u16());
    let answered = matches!(&error, SdkError::ServiceError(_));
    let reason = match (error.code(), error.message()) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code.to_owned(),
        _ => DisplayErrorContext(&error).to_string(),
    };
    if code.starts_with("AccessDenied") || code == "AccessDenied" || code == "UnauthorizedOperation" {
        return PortError::Denied { what, reason };
    }
    let passes = TRANSIENT.iter().any(|word| code.ends_with(word)) || status.is_some_and(|status| status >= 500);
    if !answered || passes {
        return PortError::Transient { what, reason };
    }
    PortError::Failed { what, reason }
}
