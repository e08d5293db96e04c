//! The shared parts of the function binaries: settings from the environment, logs, and errors that state machines
//! recognize.

pub mod api;
pub mod batch;
pub mod settings;

use freehold_app::AppError;
use freehold_aws_errors::chain;
use freehold_protocol::api::ErrorKind;
use lambda_runtime::Diagnostic;

/// Starts structured logs on standard output; `RUST_LOG` sets the level.
pub fn init_logs() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    tracing_subscriber::fmt().json().with_env_filter(filter).without_time().with_target(false).init();
}

/// Returns the error for Lambda. Its type is the word that state machines compare: `Invalid`, `NotFound`, `Conflict`,
/// `Transient` or `Internal`.
pub fn diagnostic(error: &AppError) -> Diagnostic {
    Diagnostic { error_type: error_type(error.kind).to_owned(), error_message: error.message.clone() }
}

const fn error_type(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Invalid => "Invalid",
        ErrorKind::NotFound => "NotFound",
        ErrorKind::Conflict => "Conflict",
        ErrorKind::Transient => "Transient",
        ErrorKind::Internal => "Internal",
    }
}

/// Logs an error with all of its causes. The kind of the error decides the log level.
pub fn log_failure(what: &str, error: &AppError) {
    let chain = chain(error);
    match error.kind {
        ErrorKind::Invalid | ErrorKind::NotFound | ErrorKind::Conflict => tracing::info!("{what}: {chain}"),
        ErrorKind::Transient => tracing::warn!("{what}: {chain}"),
        ErrorKind::Internal => tracing::error!("{what}: {chain}"),
    }
}
