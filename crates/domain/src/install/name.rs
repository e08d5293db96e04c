//! The names that a new install may have.

use freehold_protocol::InstallId;

use super::{BUILD_INSTALL, InstallError};

/// Names that an install may not have, because they would collide with the tenant's own queues or roles.
pub const RESERVED_INSTALLS: [&str; 5] = [BUILD_INSTALL, "dead", "dispatch", "grants", "reports"];

/// Checks a new install's name against the existing ones.
///
/// # Errors
/// [`InstallError::Reserved`] or [`InstallError::Prefix`].
pub fn check_name<'a>(
    wanted: &InstallId,
    existing: impl IntoIterator<Item = &'a InstallId>,
) -> Result<(), InstallError> {
    // Names of an app's resources begin with `<install>-`, and names of a stack's resources with `fh-`.
    let of_stacks = wanted.as_str() == "fh" || wanted.as_str().starts_with("fh-");
    if of_stacks || RESERVED_INSTALLS.contains(&wanted.as_str()) {
        return Err(InstallError::Reserved(wanted.clone()));
    }
    for other in existing {
        let alike = other.as_str().starts_with(wanted.as_str()) || wanted.as_str().starts_with(other.as_str());
        if alike && other != wanted {
            return Err(InstallError::Prefix { wanted: wanted.clone(), existing: other.clone() });
        }
    }
    Ok(())
}
