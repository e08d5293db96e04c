//! Lists the members of the tenant, and who is invited.

use freehold_protocol::api::{MemberView, Page};

use super::row::{self, Member};
use crate::AppError;
use crate::ports::Store;
use crate::read::{List, Rows, Space, fitting, rows};

/// Returns one page of the members, by name.
///
/// # Errors
/// The store's errors.
pub async fn list_members(store: &dyn Store, after: Option<&str>) -> Result<Page<MemberView>, AppError> {
    let Rows { items, next } = rows::<Member>(store, row::MEMBERS, List::Members, after).await?;
    let views = items.into_iter().map(|(place, member)| (place, row::view(member))).collect();
    fitting(views, next, Space::default())
}
