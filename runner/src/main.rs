//! The command line of the runner.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use freehold_runner::aws;
use freehold_runner::config::{Config, ConfigError, Role};
use freehold_runner::doctor;
use freehold_runner::start::{self, Exit};
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
  0  drained after SIGTERM or SIGINT: running jobs ended and reports went out (doctor: all is well)
  1  stopped at once by a second signal, or the state directory cannot be used (doctor: something is blocked)
  2  the command line or the config file is wrong
  3  AWS refused it for too long: it cannot enrol, or cannot take orders

Environment: RUST_LOG (info), AWS_ENDPOINT_URL, and AWS credentials as every AWS tool reads them; on EC2 none is needed.

Try first:
  freehold-runner doctor --config /etc/freehold/runner.toml";

#[derive(Debug, Subcommand)]
enum Command {
    /// Take orders and do them, until SIGTERM.
    Run {
        /// Whose work to do: an install's, or the tenant's builds.
        #[arg(long, value_enum)]
        role: Role,
        /// The config file that the install stack writes.
        #[arg(long)]
        config: PathBuf,
    },
    /// Say what works and what is blocked, and how to unblock it; changes nothing.
    Doctor {
        /// The config file that the install stack writes.
        #[arg(long)]
        config: PathBuf,
        /// Whose work the runner does.
        #[arg(long, value_enum, default_value = "install")]
        role: Role,
    },
}

fn main() -> ExitCode {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false).init();
    // Fails only when a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let command = Cli::parse().command;
    let (Command::Run { role, config } | Command::Doctor { role, config }) = &command;
    let config = match Config::load(config, *role) {
        Ok(config) => config,
        Err(error @ ConfigError::Malformed { .. }) => return fail(2, &error.to_string()),
        Err(error) => return fail(2, &aws::explain(&error)),
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(1, &format!("cannot start: {error}")),
    };
    runtime.block_on(dispatch(&command, config))
}

fn fail(code: u8, message: &str) -> ExitCode {
    eprintln!("error: {message}");
    ExitCode::from(code)
}

async fn dispatch(command: &Command, config: Config) -> ExitCode {
    match command {
        Command::Run { .. } => match start::run(config).await {
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
