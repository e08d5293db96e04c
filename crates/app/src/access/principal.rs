//! The principals of members: what their rows say about them.

use std::collections::BTreeSet;

use freehold_access::{Group, Principal, Who};

use super::row::{Assignment, KnownPrincipal};
use crate::AppError;

/// Returns the principal that is the member of this row.
///
/// # Errors
/// Internal when the principal of the row cannot be read, and the errors of [`assigned`].
pub(super) fn of_member(known: KnownPrincipal) -> Result<Principal, AppError> {
    let KnownPrincipal { who, member, assignment } = known;
    let who: Who = who.parse().map_err(|_| {
        // INVARIANT: the row was written from a value of the same type.
        AppError::internal(format!("the principal of member `{member}` cannot be read"))
    })?;
    assigned(who, member.to_string(), assignment)
}

/// Returns a principal with the groups, apps and installs of `assignment`.
///
/// # Errors
/// Invalid for a text that is not the name of a group.
pub(super) fn assigned(who: Who, name: String, assignment: Assignment) -> Result<Principal, AppError> {
    let Assignment { groups, apps, installs } = assignment;
    Ok(Principal { who, name, groups: groups_of(&groups)?, apps, installs })
}

/// Returns the groups with these names.
///
/// # Errors
/// Invalid for a text that is not the name of a group.
pub(super) fn groups_of(names: &BTreeSet<String>) -> Result<BTreeSet<Group>, AppError> {
    names.iter().map(|name| name.parse::<Group>().map_err(|error| AppError::invalid(error.to_string()))).collect()
}
