//! The reason that a person gives to disable, revoke or reject something. It is shown to users whose request is refused for
//! this reason.

use freehold_protocol::api::{REASON, ReasonRequest};

use crate::AppError;

/// Returns the reason without leading and trailing white space.
///
/// # Errors
/// Invalid for a reason that is empty, too long or has several lines.
pub(crate) fn reason(because: &ReasonRequest) -> Result<String, AppError> {
    one_line(&because.reason)
}

/// Returns a reason as [`reason`] does.
///
/// # Errors
/// As [`reason`].
pub(crate) fn one_line(reason: &str) -> Result<String, AppError> {
    if REASON.accepts(reason) {
        return Ok(reason.trim_matches(' ').to_owned());
    }
    Err(AppError::invalid("a reason must be one line of 1 to 500 characters, because messages show it"))
}
