//! The shared parts of the function binaries: settings from the environment, logs, and errors that state machines
//! recognize.

pub mod api;
pub mod batch;
pub mod console;
mod embedded_metrics;
mod log_line;
pub mod settings;

use freehold_app::{AppError, metrics};
use freehold_aws_errors::chain;
use freehold_log_filter::LogFilter;
use freehold_protocol::api::ErrorKind;
use lambda_runtime::Diagnostic;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::JsonFields;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use embedded_metrics::EmbeddedMetrics;
use log_line::LogLine;

/// Starts structured logs on standard output. `RUST_LOG` sets the level, also of a crate, such as `info,aws_config=warn`.
/// The values of metrics are written there too, whatever the level is.
pub fn init_logs() {
    // `EnvFilter` would also filter by spans and fields, and adds a regex engine to every zip.
    let text = std::env::var("RUST_LOG").unwrap_or_default();
    let LogFilter { targets, unreadable } = LogFilter::read(&text, Targets::new().with_default(LevelFilter::INFO));
    // When the variable is missing, `Settings::read` fails, and its error is logged without the tenant.
    let tenant = std::env::var("FREEHOLD_TENANT").unwrap_or_default();
    let by_install = std::env::var("FREEHOLD_INSTALL_METRICS").is_ok_and(|set| set == "on");
    let logs = tracing_subscriber::fmt::layer()
        .fmt_fields(JsonFields::new())
        .event_format(LogLine::of(tenant.clone()))
        .with_filter(targets.with_target(metrics::TARGET, LevelFilter::OFF));
    let values = EmbeddedMetrics::of(tenant, by_install).with_filter(EmbeddedMetrics::filter());
    tracing_subscriber::registry().with(logs).with(values).init();
    LogFilter::report(&unreadable);
}

/// Returns the error for Lambda. Its type is the word that state machines compare: `Invalid`, `Unauthorized`,
/// `Forbidden`, `NotFound`, `Conflict`, `Transient` or `Internal`.
pub fn diagnostic(error: &AppError) -> Diagnostic {
    Diagnostic { error_type: error_type(error.kind).to_owned(), error_message: error.message.clone() }
}

const fn error_type(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Invalid => "Invalid",
        ErrorKind::Unauthorized => "Unauthorized",
        ErrorKind::Forbidden => "Forbidden",
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
        ErrorKind::Invalid
        | ErrorKind::Unauthorized
        | ErrorKind::Forbidden
        | ErrorKind::NotFound
        | ErrorKind::Conflict => {
            tracing::info!("{what}: {chain}")
        }
        ErrorKind::Transient => tracing::warn!("{what}: {chain}"),
        ErrorKind::Internal => tracing::error!("{what}: {chain}"),
    }
}
