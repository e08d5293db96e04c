//! What `freehold-runner` and `freehold-builder` do around their command lines: logs, TLS, a runtime and exit codes.

use std::process::ExitCode;
use std::sync::Arc;

use tracing_subscriber::EnvFilter;

use crate::aws;
use crate::config::stack::StackSource;
use crate::config::{Config, ConfigError};
use crate::operate::doctor::{self, Finding};
use crate::operate::start::{self, Exit};
use crate::work::agent::Execute;

/// Sets up logs to stderr, TLS and a runtime, and returns how `work` ended in it.
pub fn block_on(work: impl Future<Output = ExitCode>) -> ExitCode {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false).init();
    // Fails only when a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(work),
        Err(error) => fail(1, &format!("cannot start: {error}")),
    }
}

/// Says `message` on stderr and returns `code`.
pub fn fail(code: u8, message: &str) -> ExitCode {
    eprintln!("error: {message}");
    ExitCode::from(code)
}

/// Runs the runner of `config` and returns its exit code.
pub async fn run(config: Config, source: Option<StackSource>, kinds: Arc<dyn Execute>) -> ExitCode {
    match start::run(config, source, kinds).await {
        Ok(Exit::Drained) => ExitCode::SUCCESS,
        Ok(Exit::Stopped) => ExitCode::from(1),
        Ok(Exit::Denied) => ExitCode::from(3),
        Err(error) => fail(1, &aws::explain(&error)),
    }
}

/// Prints what the doctor found, for people or as JSON, and returns whether all is well.
pub async fn examine(config: &Config, program: impl Future<Output = Finding>, json: bool) -> ExitCode {
    let findings = doctor::examine(config, program).await;
    print!("{}", if json { doctor::json(&findings) } else { doctor::text(&findings) });
    if findings.iter().all(Finding::is_well) { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

/// Returns the message and the causes of a mistake in a config file as one text for people.
pub fn explain(error: &ConfigError) -> String {
    match error {
        ConfigError::Malformed { .. } => error.to_string(),
        ConfigError::Unreadable { .. } | ConfigError::Value { .. } => aws::explain(error),
    }
}
