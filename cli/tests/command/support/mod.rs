//! Runs the real binary on files of a directory.

pub(crate) mod loopback;
#[cfg(target_os = "linux")]
pub(crate) mod screen;
pub(crate) mod tenant_api;

use std::path::Path;
use std::process::{Command, Stdio};

/// Returns `freehold` with these arguments, in this directory, without environment variables and input.
pub(crate) fn freehold(place: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_freehold"));
    command.args(arguments).current_dir(place).env_clear().stdin(Stdio::null());
    command
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
