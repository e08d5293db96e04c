//! `freehold app check`: reports all mistakes in a config, offline.

use std::path::{Path, PathBuf};

use clap::Args;
use freehold_appconfig::{Diagnostics, Severity};
use serde_json::json;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::output::plural;

/// Read an app config and show every mistake in it.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  freehold app check ./my-app\n\nNeeds no account and no network. Exit code 2 when there are errors."
)]
pub(crate) struct Check {
    /// The config's directory; its name is the app's.
    #[arg(value_name = "DIR")]
    pub(super) dir: PathBuf,
}

impl Check {
    pub(super) fn run(&self, context: &Context) -> Result<()> {
        let dir = checked_dir(&self.dir)?;
        let found = freehold_appconfig::check(dir);
        let (errors, warnings) = (found.count(Severity::Error), found.count(Severity::Warning));
        let value = json!({ "dir": dir, "errors": errors, "warnings": warnings, "found": found });
        // The lines of excerpts stand below each other. With errors, the command's error counts them.
        context.out.show_verbatim(&value, |_| match (found.is_empty(), errors) {
            (true, _) => format!("`{}`: {}", dir.display(), counted(errors, warnings)),
            (false, 0) => format!("{}\n\n{}", found.render(context.out.colours()), counted(errors, warnings)),
            (false, _) => found.render(context.out.colours()),
        })?;
        if errors == 0 { Ok(()) } else { Err(has_errors(dir, &found)) }
    }
}

/// Returns the error about a config that cannot be used.
pub(super) fn has_errors(dir: &Path, found: &Diagnostics) -> Error {
    let counts = counted(found.count(Severity::Error), found.count(Severity::Warning));
    Error::invalid(format!("the app config in `{}` cannot be used: {counts}", dir.display()))
}

/// Returns `dir` when it is a directory.
pub(super) fn checked_dir(dir: &Path) -> Result<&Path> {
    if dir.is_dir() {
        return Ok(dir);
    }
    Err(Error::invalid(format!("`{}` is not a directory; pass the directory with the app config", dir.display())))
}

fn counted(errors: usize, warnings: usize) -> String {
    let count = |count: usize, noun: &str| if count == 0 { format!("no {noun}s") } else { plural(count, noun) };
    format!("{}, {}", count(errors, "error"), count(warnings, "warning"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_read_as_a_sentence() {
        assert_eq!(counted(0, 0), "no errors, no warnings");
        assert_eq!(counted(1, 2), "1 error, 2 warnings");
    }
}
