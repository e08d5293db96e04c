//! The command line of the build runner.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, Subcommand};
use freehold_builder::build::BuildKind;
use freehold_builder::{doctor, machine};
use freehold_runner::config::{Config, Role};
use freehold_runner::operate::program;
use freehold_runner::sandbox;

/// Builds the artifacts of a vendor's apps, inside the vendor's own account.
///
/// It takes signed orders from one queue and sends reports to another; nothing can connect to it. It pushes artifacts
/// to the tenant's registry, with a statement of their sources; `freehold-runner` deploys them in the customers'
/// accounts.
#[derive(Debug, Parser)]
#[command(version, after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Exit codes:
  0  drained: running builds ended and reports went out, after SIGTERM or SIGINT
     (doctor: all is well)
  1  stopped at once by a second signal, or the state directory cannot be used
     (doctor: something is blocked)
  2  the command line or the config file is wrong
  3  AWS refused the build runner for too long: it cannot enrol, or cannot take
     orders; or the machine of `scaling_group` has been unable to work for
     an hour
  4  there was nothing to build for `idle_secs`; the machine, which belongs to
     `scaling_group`, may end

Environment: RUST_LOG (info), AWS_ENDPOINT_URL, and AWS credentials as every AWS
tool reads them; on EC2 none is needed.

Try first:
  freehold tenant build-runner --name acme --out builder.toml
  freehold-builder doctor --config builder.toml";

#[derive(Debug, Subcommand)]
enum Command {
    /// Take orders and build until SIGTERM.
    Run(From),
    /// Check the builder's environment and print a fix for each problem; creates the runner's key if it is absent, and
    /// changes nothing else.
    Doctor {
        #[command(flatten)]
        from: From,
        /// Print the findings as JSON.
        #[arg(long)]
        json: bool,
    },
}

/// The source of the builder's config.
#[derive(Debug, Clone, clap::Args)]
struct From {
    /// A config file, as `freehold tenant build-runner` writes it.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

fn main() -> ExitCode {
    if let Some(code) = sandbox::init::run_if_asked() {
        return code;
    }
    let command = Cli::parse().command;
    program::block_on(dispatch(&command))
}

async fn dispatch(command: &Command) -> ExitCode {
    let (Command::Run(from) | Command::Doctor { from, .. }) = command;
    match (Config::load(&from.config, Role::Build), command) {
        (Err(error), _) => program::fail(2, &program::explain(&error)),
        (Ok(config), Command::Run(_)) => {
            let membership = machine::membership(&config).await;
            program::run(config, None, Arc::new(BuildKind), membership).await
        }
        (Ok(config), Command::Doctor { json, .. }) => program::examine(&config, doctor::programs(&config), *json).await,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_help_fits_a_terminal_of_80_columns_and_is_the_golden_text() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/help.txt");

        let help = Cli::command().term_width(80).render_long_help().to_string();

        for line in AFTER_HELP.lines() {
            assert!(line.len() <= 80, "a terminal breaks `{line}`");
        }
        if std::env::var_os("FREEHOLD_UPDATE").is_some() {
            std::fs::write(&path, &help).unwrap();
        }
        assert_eq!(help, std::fs::read_to_string(&path).unwrap());
    }
}
