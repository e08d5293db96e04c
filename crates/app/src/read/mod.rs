//! The read-only operations of the API, and the views that they return. Each operation is a function with the
//! operation's name. Each noun has a file.

mod app;
mod build;
mod drift;
mod history;
mod install;
mod job;
pub(crate) mod last_report;
mod list;
mod release;
mod required_check;
mod run;
mod tenant;
mod workflow;

use freehold_protocol::api::Page;
use serde::de::DeserializeOwned;

pub(crate) use self::app::version_view;
pub use self::app::{list_apps, list_versions, show_app};
pub(crate) use self::build::build_view;
pub use self::build::list_builds;
pub use self::drift::list_drift;
pub use self::history::show_history;
pub use self::install::{list_installs, show_install};
pub use self::job::{job_view, list_logs, show_job};
pub use self::list::List;
pub(crate) use self::release::{channel_view, release_view};
pub use self::release::{list_channels, list_releases, show_release};
pub(crate) use self::required_check::check_view;
pub use self::run::{list_runbooks, list_runs, run_view, show_run};
pub use self::tenant::ShowTenant;
pub use self::workflow::{NOTHING_TO_DEPLOY, list_workflows, show_workflow, workflow_view};

use crate::AppError;
use crate::ports::Store;
use crate::table::parse;

/// The maximum number of items on one page of a list.
pub const PAGE_ITEMS: u32 = 50;

/// Returns one page of a list. The rows of the list are in the partition `pk`.
///
/// # Errors
/// The store's errors.
async fn page<T: DeserializeOwned>(
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

/// Returns the page with a view of each item.
fn map<T, U>(page: Page<T>, view: impl Fn(T) -> U) -> Page<U> {
    Page { items: page.items.into_iter().map(view).collect(), next: page.next }
}
