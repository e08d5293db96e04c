//! Asks a person for the name of an install before a command removes parts of the install.

use std::io::{BufRead as _, IsTerminal as _};

use freehold_protocol::InstallId;

use crate::error::{Error, Result};
use crate::output::note;

/// Compares `given`, the value of `--confirm`, with the install's name. Without `given`, prints `consequences`, a text
/// about the consequences, and asks for the name.
///
/// # Errors
/// When the name differs, or there is no terminal.
pub(crate) fn install(install: &InstallId, given: Option<&str>, consequences: &str) -> Result<()> {
    let given = match given {
        Some(given) => given.to_owned(),
        None if std::io::stdin().is_terminal() => {
            note(consequences);
            note("Type the install's name to continue:");
            let mut line = String::new();
            std::io::stdin().lock().read_line(&mut line).map_err(|e| {
                Error::invalid(format!("cannot read the answer from the terminal: {e}; pass `--confirm {install}`"))
            })?;
            line.trim().to_owned()
        }
        None => {
            return Err(Error::invalid(format!(
                "this command asks for a confirmation, but stdin is not a terminal; pass `--confirm {install}`"
            )));
        }
    };
    if given == install.as_str() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "nothing was removed, because `{given}` is not the install's name; run the command again and give the name \
         `{install}`"
    )))
}
