//! Reads regular files of a module. A link is refused.

use std::path::Path;

use freehold_runner::job::failure::Failure;

/// Returns the failure for a file `what` that could not be read.
pub(super) fn unreadable(what: &str, error: &dyn std::error::Error) -> Failure {
    Failure::because(&format!("could not read {what} of the module"), error)
}

/// Reads a file of the module that may be absent. Refuses a link, because it may point outside of the source.
pub(super) fn read_plain(path: &Path, what: &str) -> Result<Option<String>, Failure> {
    match path.symlink_metadata() {
        Ok(data) if data.is_file() => std::fs::read_to_string(path).map(Some).map_err(|error| unreadable(what, &error)),
        Ok(_) => Err(Failure::new(format!("{what} of the module is not a regular file"))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(what, &error)),
    }
}
