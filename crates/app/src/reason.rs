//! The reason that a person gives to disable or revoke something. Users whose request is refused because of it see it.

use freehold_protocol::api::ReasonRequest;

use crate::AppError;

/// The longest reason, in characters.
const LONGEST_REASON: usize = 500;

/// Returns the reason without leading and trailing white space.
///
/// # Errors
/// Invalid for a reason that is empty, too long or has several lines.
pub(crate) fn reason(because: &ReasonRequest) -> Result<String, AppError> {
    let reason = because.reason.trim();
    let usable = (1..=LONGEST_REASON).contains(&reason.chars().count()) && !reason.chars().any(char::is_control);
    if usable {
        return Ok(reason.to_owned());
    }
    Err(AppError::invalid(format!("a reason is one line of 1 to {LONGEST_REASON} characters; it is shown to others")))
}
