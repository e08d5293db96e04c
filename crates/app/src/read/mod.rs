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
mod page;
mod release;
mod required_check;
mod run;
mod tenant;
mod workflow;

pub(crate) use self::app::version_view;
pub use self::app::{list_apps, list_versions, show_app};
pub(crate) use self::build::build_view;
pub use self::build::list_builds;
pub use self::drift::list_drift;
pub use self::history::show_history;
pub use self::install::{list_installs, show_install, show_install_after};
pub use self::job::{job_view, list_logs, show_job};
pub use self::list::List;
pub use self::page::PAGE_ITEMS;
pub(crate) use self::page::{Rows, Space, fitting, rows, rows_at_most};
pub(crate) use self::release::{channel_view, release_view};
pub use self::release::{list_channels, list_releases, show_release};
pub(crate) use self::required_check::check_view;
pub use self::run::{list_runbooks, list_runs, run_view, show_run};
pub use self::tenant::ShowTenant;
pub use self::workflow::{NOTHING_TO_DEPLOY, list_workflows, show_workflow, workflow_view};
