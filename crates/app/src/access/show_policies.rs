//! Shows the policies that decide who may do what.

use freehold_protocol::Digest;
use freehold_protocol::api::PoliciesView;

use super::policies;
use super::row::PoliciesRecord;
use crate::AppError;
use crate::ports::Store;
use crate::table::Stored;

/// Returns the policies of the tenant.
///
/// # Errors
/// The store's errors.
pub async fn show_policies(store: &dyn Store) -> Result<PoliciesView, AppError> {
    Ok(view(policies::find(store).await?.as_ref()))
}

/// Returns the API's view of the policies.
pub(super) fn view(stored: Option<&Stored<PoliciesRecord>>) -> PoliciesView {
    let text = policies::text(stored);
    let changed = stored.map(|stored| &stored.value);
    PoliciesView {
        policies: text.to_owned(),
        digest: Digest::of(text.as_bytes()),
        number: changed.map_or(0, |changed| changed.number),
        changed_at: changed.map(|changed| changed.changed_at),
        changed_by: changed.map(|changed| changed.changed_by.clone()),
    }
}
