//! The command line of the install runner.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, Subcommand};
use freehold_runner::aws;
use freehold_runner::config::stack::StackSource;
use freehold_runner::config::{Config, Role};
use freehold_runner::kinds::InstallKinds;
use freehold_runner::operate::{doctor, launcher, program};
use freehold_runner::sandbox;

/// Runs the jobs that a vendor's control plane orders, inside your own AWS account.
///
/// It takes signed orders from one queue and sends signed reports to another; nothing can connect to it. Each job runs
/// under the role of its mode, which you switch on and off in the install stack.
#[derive(Debug, Parser)]
#[command(version, after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Exit codes:
  0  drained: running jobs ended and reports went out, after SIGTERM or SIGINT,
     or because the install stack of `--stack` changed and the runner has to be
     started again with its new outputs (doctor: all is well)
  1  stopped at once by a second signal, or the state directory cannot be used,
     or another machine took the install over twice within a day
     (doctor: something is blocked)
  2  the command line, the config file or the install stack is wrong
  3  AWS refused the runner for too long: it cannot enrol, or take orders; or
     another machine has a copy of its key

Environment: RUST_LOG (info), AWS_ENDPOINT_URL, and AWS credentials as every AWS
tool reads them; on EC2 none is needed.

Try first:
  freehold-runner doctor --config /etc/freehold/runner.toml
  freehold-runner doctor --stack freehold-acme--globex";

#[derive(Debug, Subcommand)]
enum Command {
    /// Take orders and run their jobs until SIGTERM.
    Run(From),
    /// Check the runner's environment and print a fix for each problem; creates the runner's key if it is absent, and
    /// changes nothing else.
    Doctor {
        #[command(flatten)]
        from: From,
        /// Print the findings as JSON.
        #[arg(long)]
        json: bool,
    },
}

/// The source of the runner's config.
#[derive(Debug, Clone, clap::Args)]
#[command(group(clap::ArgGroup::new("source").args(["config", "stack"]).required(true)))]
struct From {
    /// A config file, as `freehold install runner-config` writes it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The install stack of this account and region. Its outputs are the config, which is read again every ten minutes.
    #[arg(long, value_name = "NAME")]
    stack: Option<String>,
    /// With `--stack`, the directory of the runner's key and journal; it must survive restarts.
    #[arg(long, value_name = "DIR", default_value = "/var/lib/freehold", conflicts_with = "config")]
    state_dir: PathBuf,
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
    let (config, source) = match (&from.config, &from.stack) {
        (Some(path), _) => (Config::load(path, Role::Install).map_err(|error| program::explain(&error)), None),
        (None, Some(name)) => {
            let source = StackSource::of(name, &from.state_dir).await;
            (source.read().await.map_err(|error| aws::explain(&error)), Some(source))
        }
        // INVARIANT: clap requires exactly one of the two options.
        (None, None) => return program::fail(2, "give `--config FILE` or `--stack NAME`"),
    };
    match (config, command) {
        (Err(message), _) => program::fail(2, &message),
        (Ok(config), Command::Run(_)) => launcher::run(config, source, Arc::new(InstallKinds)).await,
        (Ok(config), Command::Doctor { json, .. }) => {
            program::examine(&config, doctor::terraform(&config), *json).await
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn a_runner_without_a_config_is_told_both_sources_of_one() {
        let error = Cli::try_parse_from(["freehold-runner", "run"]).unwrap_err();

        let usage = "error: the following required arguments were not provided:\n  <--config <FILE>|--stack <NAME>>\n";
        assert!(error.to_string().starts_with(usage), "{error}");
        assert_eq!(error.exit_code(), 2);
    }

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
