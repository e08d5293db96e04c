//! Opens an address in the browser of this machine.

use std::process::Stdio;

use tokio::process::Command;

use crate::error::{Error, Result};

/// The program that opens an address.
const OPENER: &str = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };

/// Opens an address, and does not wait for the browser.
pub(super) fn open(address: &str) -> Result<()> {
    let mut opener = Command::new(OPENER);
    opener.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match opener.spawn() {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::failed(format!("cannot start `{OPENER}`: {error}"))
            .or("leave out `--open`, and open the printed address yourself")),
    }
}
