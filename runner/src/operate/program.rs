//! The parts that `freehold-runner` and `freehold-builder` share around their command lines: logs, TLS, a runtime, exit
//! codes.

use std::process::ExitCode;
use std::sync::Arc;

use freehold_log_filter::LogFilter;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::aws;
use crate::config::stack::StackSource;
use crate::config::{Config, ConfigError};
use crate::core_dump;
use crate::job::Execute;
use crate::operate::doctor::{self, Finding};
use crate::operate::start::{self, Exit, StartError};
use crate::process::drain::Signals;
use crate::sandbox;
use crate::work::standby::Membership;

/// Returns the filter of log events if `RUST_LOG` is not set. The AWS SDK would report each look-up of credentials, and
/// print each failed one with all fields of its structs. The runner itself logs why it has no credentials.
fn logged() -> Targets {
    Targets::new().with_default(LevelFilter::INFO).with_target("aws_config", LevelFilter::ERROR)
}

/// Switches core dumps off, and sets up logs to stderr, TLS and a runtime. Then runs `work` and returns its exit code.
pub fn block_on(work: impl Future<Output = ExitCode>) -> ExitCode {
    // This comes before anything that reads a credential or starts a program.
    if let Err(error) = core_dump::forbid() {
        return fail(1, &format!("cannot switch core dumps off, which could hold credentials: {error}"));
    }
    let LogFilter { targets, unreadable } = LogFilter::read(&std::env::var("RUST_LOG").unwrap_or_default(), logged());
    let logs = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false).with_filter(targets);
    tracing_subscriber::registry().with(logs).init();
    LogFilter::report(&unreadable);
    // This call fails only when a provider is already installed, which does no harm.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(work),
        Err(error) => fail(1, &format!("cannot start: {error}")),
    }
}

/// Prints `message` on stderr and returns `code`.
pub fn fail(code: u8, message: &str) -> ExitCode {
    eprintln!("error: {message}");
    ExitCode::from(code)
}

/// The end of a runner that had started to work.
#[derive(Debug)]
pub enum Worked {
    /// The process ends with this code.
    Ended(ExitCode),
    /// Another program takes the place of this one.
    HandedOver,
}

/// Runs the runner of `config` and returns its exit code. With a `membership`, it ends when there is no work.
pub async fn run(
    config: Config,
    source: Option<StackSource>,
    kinds: Arc<dyn Execute>,
    membership: Option<Membership>,
) -> ExitCode {
    let mut signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(error) => return fail(1, &aws::explain(&StartError::Signals(error))),
    };
    match work(config, source, kinds, membership, &mut signals).await {
        Worked::Ended(code) => code,
        Worked::HandedOver => ExitCode::SUCCESS,
    }
}

/// Runs the runner of `config`, as [`run`], until it ends or hands over.
pub async fn work(
    config: Config,
    mut source: Option<StackSource>,
    kinds: Arc<dyn Execute>,
    membership: Option<Membership>,
    signals: &mut Signals,
) -> Worked {
    if let Err(reason) = sandbox::check_user(config.sandbox) {
        return Worked::Ended(fail(1, &reason));
    }
    loop {
        return Worked::Ended(
            match start::run(config.clone(), source.clone(), kinds.clone(), membership.clone(), signals).await {
                Ok(Exit::Replaced) => continue,
                Ok(Exit::Revoked) => {
                    if let Some(old) = source {
                        source = Some(old.by_a_new_session().await);
                    }
                    continue;
                }
                Ok(Exit::HandedOver) => return Worked::HandedOver,
                Ok(Exit::Drained) => ExitCode::SUCCESS,
                Ok(Exit::Stopped) => ExitCode::from(1),
                Ok(Exit::Denied) => ExitCode::from(3),
                Ok(Exit::Unneeded) => ExitCode::from(4),
                Err(error) => fail(1, &aws::explain(&error)),
            },
        );
    }
}

/// Prints the findings of the doctor, for people or as JSON. Returns the exit code of a success when all is well.
pub async fn examine(config: &Config, programs: impl Future<Output = Vec<Finding>>, json: bool) -> ExitCode {
    let findings = doctor::examine(config, programs).await;
    print!("{}", if json { doctor::json(&findings) } else { doctor::text(&findings) });
    if findings.iter().all(Finding::is_well) { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

/// Returns the message of a config error and its causes as one text for people.
pub fn explain(error: &ConfigError) -> String {
    match error {
        ConfigError::Malformed { .. } => error.to_string(),
        ConfigError::Unreadable { .. } | ConfigError::Value { .. } => aws::explain(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_ups_of_credentials_are_not_logged_and_neither_are_failed_ones() {
        let logs = tracing_subscriber::registry().with(logged());

        tracing::subscriber::with_default(logs, || {
            assert!(!tracing::enabled!(target: "aws_config::profile::credentials", tracing::Level::INFO));
            assert!(!tracing::enabled!(target: "aws_config::meta::credentials::chain", tracing::Level::WARN));
            assert!(tracing::enabled!(target: "aws_config::profile::credentials", tracing::Level::ERROR));
            assert!(tracing::enabled!(tracing::Level::INFO));
        });
    }
}
