//! The command line of the runner.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use freehold_runner::aws;
use freehold_runner::config::stack::StackSource;
use freehold_runner::config::{Config, ConfigError, Role};
use freehold_runner::operate::doctor;
use freehold_runner::operate::start::{self, Exit};
use tracing_subscriber::EnvFilter;

/// Does the jobs that a vendor's control plane asks for, inside your own AWS account.
///
/// It takes signed orders from one queue and answers to another; nothing can connect to it. Each job runs under the
/// role of its mode, which you switch on and off in the install stack.
#[derive(Debug, Parser)]
#[command(version, after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Exit codes:
  0  drained: running jobs ended and reports went out, after SIGTERM or SIGINT, or because the install stack of `--stack`
     changed and the runner has to be started again with what it says now (doctor: all is well)
  1  stopped at once by a second signal, or the state directory cannot be used (doctor: something is blocked)
  2  the command line, the config file or the install stack is wrong
  3  AWS refused it for too long: it cannot enrol, or cannot take orders

Environment: RUST_LOG (info), AWS_ENDPOINT_URL, and AWS credentials as every AWS tool reads them; on EC2 none is needed.

Try first:
  freehold-runner doctor --config /etc/freehold/runner.toml
  freehold-runner doctor --stack freehold-globex";

#[derive(Debug, Subcommand)]
enum Command {
    /// Take orders and do them, until SIGTERM.
    Run {
        /// Whose work to do: an install's, or the tenant's builds.
        #[arg(long, value_enum)]
        role: Role,
        #[command(flatten)]
        from: From,
    },
    /// Say what works and what is blocked, and how to unblock it; changes nothing.
    Doctor {
        #[command(flatten)]
        from: From,
        /// Whose work the runner does.
        #[arg(long, value_enum, default_value = "install")]
        role: Role,
    },
}

/// Where the runner reads what it has to know.
#[derive(Debug, Clone, clap::Args)]
struct From {
    /// A config file, as `freehold install runner-config` writes it.
    #[arg(long, value_name = "FILE", required_unless_present = "stack", conflicts_with = "stack")]
    config: Option<PathBuf>,
    /// The install stack of this account and region: its outputs are the config, read again every ten minutes.
    #[arg(long, value_name = "NAME")]
    stack: Option<String>,
    /// With `--stack`, where the runner keeps its key and journal; must survive restarts.
    #[arg(long, value_name = "DIR", default_value = "/var/lib/freehold", conflicts_with = "config")]
    state_dir: PathBuf,
}

fn main() -> ExitCode {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false).init();
    // Fails only when a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let command = Cli::parse().command;
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(1, &format!("cannot start: {error}")),
    };
    runtime.block_on(dispatch(&command))
}

fn fail(code: u8, message: &str) -> ExitCode {
    eprintln!("error: {message}");
    ExitCode::from(code)
}

async fn dispatch(command: &Command) -> ExitCode {
    let (Command::Run { role, from } | Command::Doctor { role, from }) = command;
    let (config, source) = match (&from.config, &from.stack) {
        (Some(path), _) => (Config::load(path, *role).map_err(explained), None),
        (None, Some(name)) => {
            let source = StackSource::of(name, *role, &from.state_dir).await;
            (source.read().await.map_err(|error| aws::explain(&error)), Some(source))
        }
        // INVARIANT: the command line has one of them.
        (None, None) => return fail(2, "give `--config FILE` or `--stack NAME`"),
    };
    let config = match config {
        Ok(config) => config,
        Err(message) => return fail(2, &message),
    };
    match command {
        Command::Run { .. } => match start::run(config, source).await {
            Ok(Exit::Drained) => ExitCode::SUCCESS,
            Ok(Exit::Stopped) => ExitCode::from(1),
            Ok(Exit::Denied) => ExitCode::from(3),
            Err(error) => fail(1, &aws::explain(&error)),
        },
        Command::Doctor { .. } => {
            let findings = doctor::examine(&config).await;
            print!("{}", doctor::text(&findings));
            if findings.iter().all(doctor::Finding::is_well) { ExitCode::SUCCESS } else { ExitCode::from(1) }
        }
    }
}

fn explained(error: ConfigError) -> String {
    match error {
        ConfigError::Malformed { .. } => error.to_string(),
        ConfigError::Unreadable { .. } | ConfigError::Value { .. } => aws::explain(&error),
    }
}
