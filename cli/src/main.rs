//! `freehold`: the command of a vendor, and of a customer who launches an install. Wires arguments to commands.

mod action;
mod api;
mod app;
mod args;
mod artifact;
mod aws;
mod build;
mod cloudformation;
mod context;
mod contract;
mod deploy;
mod doctor;
mod error;
mod inputs;
mod install;
mod job;
mod lineage;
mod output;
mod progress;
mod release;
mod runner_config;
mod secret;
mod tenant;
mod workflow;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;

use args::Cli;
use error::{Error, Result};

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let label = if std::io::stderr().is_terminal() { "\u{1b}[1;31merror:\u{1b}[0m" } else { "error:" };
            output::note(&format!("{label} {error}"));
            ExitCode::from(error.kind().exit_code())
        }
    }
}

fn run(cli: Cli) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| Error::internal(format!("cannot start: {e}")))?;
    runtime.block_on(cli.run())
}
