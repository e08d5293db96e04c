//! Converts errors of AWS calls to port errors: denied, transient or failed.

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use freehold_app::ports::PortError;
use freehold_aws_errors::{Meaning, chain, code_and_message};

/// Returns the port error for a failed call. `what` names the thing that was called, such as `table`.
pub fn port_error<E>(what: &str, error: SdkError<E, HttpResponse>) -> PortError
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    let what = what.to_owned();
    let status = error.raw_response().map(|response| response.status().as_u16());
    let answered = matches!(&error, SdkError::ServiceError(_));
    let reason = code_and_message(&error).unwrap_or_else(|| chain(&error));
    match Meaning::of(error.code()) {
        Meaning::Denied => PortError::Denied { what, reason },
        Meaning::Transient | Meaning::Quota => PortError::Transient { what, reason },
        _ if !answered || status.is_some_and(|status| status >= 500) => PortError::Transient { what, reason },
        Meaning::Credentials | Meaning::NotFound | Meaning::Conflict | Meaning::Invalid | Meaning::Unknown => {
            PortError::Failed { what, reason }
        }
    }
}
