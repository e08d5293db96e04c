//! Read-only queries for the API, a file for each noun.

pub mod app;
pub mod install;
pub mod job;
pub(crate) mod last_report;
mod list;
pub mod workflow;

use freehold_protocol::api::Page;
use serde::de::DeserializeOwned;

pub use self::list::List;

use crate::AppError;
use crate::ports::Store;
use crate::table::parse;

/// The maximum number of items on one page of a list.
pub const PAGE_ITEMS: u32 = 50;

/// Returns one page of a list. The rows of the list are in the partition `pk`.
///
/// # Errors
/// The store's errors.
pub async fn page<T: DeserializeOwned>(
    store: &dyn Store,
    pk: &str,
    list: List,
    after: Option<&str>,
) -> Result<Page<T>, AppError> {
    let rows = store.query(pk, list.prefix(), after, PAGE_ITEMS).await?;
    let next = (rows.len() == PAGE_ITEMS as usize).then(|| rows.last().map(|row| row.key.sk.clone())).flatten();
    let items = rows.iter().map(|row| Ok(parse(row)?.value)).collect::<Result<Vec<T>, AppError>>()?;
    Ok(Page { items, next })
}
