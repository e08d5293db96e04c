//! The last change of who may do what. Each such change writes this row, so that two changes are made one after the
//! other. Without it, two owners could remove each other at one moment, and nobody could change the policies any more.

use freehold_access::{Policies, Principal};
use freehold_protocol::Timestamp;
use freehold_protocol::order::AskedBy;

use super::principal;
use super::row::{self, LastChange, Member};
use crate::AppError;
use crate::ports::{Expect, Store, Write};
use crate::table::{load, put};

/// The place of a change after all earlier ones.
#[derive(Debug)]
pub(super) struct Place {
    number: u64,
    expect: Expect,
}

/// Loads the place of the next change. It is loaded before the rows by which the change is decided.
///
/// # Errors
/// The store's errors.
pub(super) async fn next(store: &dyn Store) -> Result<Place, AppError> {
    let last = load::<LastChange>(store, &row::last_change_key()).await?;
    Ok(match last {
        Some(last) => Place { number: last.value.number + 1, expect: Expect::Rev(last.rev) },
        None => Place { number: 1, expect: Expect::Absent },
    })
}

impl Place {
    /// Returns the write of the change, which fails when another change was made meanwhile.
    ///
    /// # Errors
    /// Internal when the row cannot be written as JSON.
    pub(super) fn write(&self, of: String, by: &AskedBy, at: Timestamp) -> Result<Write, AppError> {
        put(&LastChange { number: self.number, of, at, by: by.clone() }, self.expect)
    }
}

/// Refuses a change after which neither a member nor an IAM principal of the account may change the policies.
///
/// # Errors
/// Conflict, with the way out.
pub(super) fn check_administers<'a>(
    policies: &Policies,
    members: impl Iterator<Item = &'a Member>,
) -> Result<(), AppError> {
    let principals: Vec<Principal> =
        members.filter_map(Member::known_principal).map(principal::of_member).collect::<Result<_, _>>()?;
    if policies.somebody_administers(&principals) {
        return Ok(());
    }
    Err(AppError::conflict(
        "after this change nobody could change the policies; keep a member whom they permit `set_policies`, such as one \
         of the group `owner`, or let them permit it to the IAM principals of the account",
    ))
}
