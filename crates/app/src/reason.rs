//! The reason that a person gives: to disable, revoke or reject something, or to continue a workflow. Other people see
//! the reason.

use freehold_protocol::api::{REASON, ReasonRequest};

use crate::AppError;

/// Returns the reason without leading and trailing white space.
///
/// # Errors
/// Invalid for a reason that is empty, too long or has several lines.
pub(crate) fn reason(because: &ReasonRequest) -> Result<String, AppError> {
    line(&because.reason)
}

/// Returns the text of a reason that may be absent; an empty text for an absent reason.
///
/// # Errors
/// As [`reason`].
pub(crate) fn optional(text: Option<&str>) -> Result<String, AppError> {
    text.map_or_else(|| Ok(String::new()), line)
}

/// Returns the text of a reason without leading and trailing white space.
///
/// # Errors
/// As [`reason`].
pub(crate) fn line(text: &str) -> Result<String, AppError> {
    if REASON.accepts(text) {
        return Ok(text.trim_matches(' ').to_owned());
    }
    Err(AppError::invalid("a reason must be one line of 1 to 500 characters, because messages show it"))
}
