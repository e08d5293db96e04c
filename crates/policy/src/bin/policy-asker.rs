//! The process that evaluates policies, as a separate program for tests of its limits.

use std::process::ExitCode;

fn main() -> ExitCode {
    freehold_policy::run_if_asked().unwrap_or(ExitCode::FAILURE)
}
