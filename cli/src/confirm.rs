//! Asks a person before a command removes something, changes who may do what, or writes what leaves the customer's
//! account.

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
    removal("install", install.as_str(), given, consequences)
}

/// Compares `given`, the value of `--confirm`, with `name`, the name of the `noun` that is removed. Asks as [`install`]
/// does.
///
/// # Errors
/// When the name differs, or there is no terminal.
pub(crate) fn removal(noun: &str, name: &str, given: Option<&str>, consequences: &str) -> Result<()> {
    let given = match given {
        Some(given) => given.to_owned(),
        None if std::io::stdin().is_terminal() => {
            note(consequences);
            note(&format!("Type the {noun}'s name to continue:"));
            answer(&format!("pass `--confirm {name}`"))?
        }
        None => {
            return Err(Error::invalid(format!(
                "this command asks for a confirmation, but stdin is not a terminal; pass `--confirm {name}`"
            )));
        }
    };
    if given == name {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "nothing was removed, because `{given}` is not the {noun}'s name; run the command again and give the name \
         `{name}`"
    )))
}

/// What a command does only with the consent of a person, in the words of its errors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effect {
    /// What the command does, such as `writes`.
    pub(crate) verb: &'static str,
    /// What did not happen without the consent, such as `nothing was written`.
    pub(crate) refused: &'static str,
    pub(crate) way_out: &'static str,
}

/// Asks for consent to what `question` states, unless `is_given` is true.
///
/// # Errors
/// When the answer is not `yes`, or there is no terminal.
pub(crate) fn consent(question: &str, is_given: bool, effect: Effect) -> Result<()> {
    let Effect { verb, refused, way_out } = effect;
    if is_given {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        let message = format!("this command asks before it {verb}, but stdin is not a terminal");
        return Err(Error::invalid(message).or(way_out));
    }
    note(&format!("{question} Type `yes` to continue:"));
    match answer(way_out)?.as_str() {
        "yes" | "y" => Ok(()),
        _ => Err(Error::invalid(format!("{refused}, because the answer was not `yes`")).or(way_out)),
    }
}

/// Reads a line from the terminal.
fn answer(way_out: &str) -> Result<String> {
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.map_err(|e| Error::invalid(format!("cannot read the answer from the terminal: {e}")).or(way_out))?;
    Ok(line.trim().to_owned())
}
