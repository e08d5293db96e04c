//! Asks a person before a command removes parts of an install, or writes what leaves the customer's account.

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
            answer(&format!("pass `--confirm {install}`"))?
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

/// Asks for consent to what `question` states, unless `is_given` is true.
///
/// # Errors
/// When the answer is not `yes`, or there is no terminal.
pub(crate) fn consent(question: &str, is_given: bool) -> Result<()> {
    const WAY_OUT: &str = "pass `--yes` to write the file, or `--list` only to see what would be in it";
    if is_given {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return Err(Error::invalid("this command asks before it writes, but stdin is not a terminal").or(WAY_OUT));
    }
    note(&format!("{question} Type `yes` to continue:"));
    match answer(WAY_OUT)?.as_str() {
        "yes" | "y" => Ok(()),
        _ => Err(Error::invalid("nothing was written, because the answer was not `yes`").or(WAY_OUT)),
    }
}

/// Reads a line from the terminal.
fn answer(way_out: &str) -> Result<String> {
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.map_err(|e| Error::invalid(format!("cannot read the answer from the terminal: {e}")).or(way_out))?;
    Ok(line.trim().to_owned())
}
