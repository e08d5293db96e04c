//! `freehold`: the command of a vendor, and of a customer who launches an install. Parses the arguments and runs a
//! command.

mod access;
mod action;
mod api;
mod app;
mod args;
mod artifact;
mod aws;
mod bearer;
mod build;
mod channel;
mod check;
mod clock;
mod cloudformation;
mod confirm;
mod context;
mod contract;
mod cost;
mod customer;
mod deploy;
mod doctor;
mod drift;
mod error;
mod file;
mod health;
mod history;
mod inputs;
mod install;
mod job;
mod lineage;
mod login;
mod member;
mod output;
mod policy;
mod progress;
mod random;
mod region;
mod release;
mod runbook;
mod runner_config_file;
mod subscription;
mod support;
mod teardown;
mod tenant;
mod tools;
mod webhook;
mod workflow;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser};

use args::Cli;
use error::{Error, Result};

fn main() -> ExitCode {
    if let Some(code) = freehold_policy::run_if_asked() {
        return code;
    }
    let words: Vec<OsString> = std::env::args_os().collect();
    // To wrap the help of all commands takes longer than the rest of the start, and most commands show no help.
    match Cli::try_parse_from(&words).or_else(|_| parse_with_help(words)) {
        Ok(cli) => run(cli).map_or_else(|error| ended(&error), |()| ExitCode::SUCCESS),
        // The parser returns help and the version as errors, but they are not errors of the command.
        Err(other) if !other.use_stderr() => other.exit(),
        Err(wrong) if !args::wants_json(std::env::args_os()) => {
            let text = wrong.render();
            let text = if output::stderr_has_colours() { text.ansi().to_string() } else { text.to_string() };
            output::note(text.trim_end());
            ExitCode::from(error::usage(&wrong).kind().exit_code())
        }
        Err(wrong) => {
            output::json_to_stderr();
            ended(&error::usage(&wrong))
        }
    }
}

/// Parses words that ask for help or contain a mistake: the error is the text to print, wrapped for the terminal.
fn parse_with_help(words: Vec<OsString>) -> Result<Cli, clap::Error> {
    let (width, command) = (output::help_width(), Cli::command());
    let words = args::without_options_of_help(words, &command);
    let asked = output::fitted(command.clone().term_width(width), width).try_get_matches_from(words);
    let asked = asked.and_then(|matches| Cli::from_arg_matches(&matches));
    asked.map_err(|error| error::with_tip(error, &command))
}

/// Prints the error that ended the command.
fn ended(error: &Error) -> ExitCode {
    if output::stderr_is_json() {
        output::write_json(&error.to_json().to_string());
    } else {
        let label = output::styled("error:", console::Style::new().red().bold(), output::stderr_has_colours());
        output::note(&format!("{label} {error}"));
    }
    ExitCode::from(error.kind().exit_code())
}

fn run(cli: Cli) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| Error::internal(format!("cannot start: {e}")))?;
    runtime.block_on(cli.run())
}
