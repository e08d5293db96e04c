//! Notifications about workflows, jobs, runs, components, runners and roles that trust strangers. Only states decide
//! whether a notification is sent. A notification contains names, counts and times: no value, no reason that a program
//! wrote, and no text of a log.

mod checks;
mod draft;
mod health;
mod runner;
mod strangers;
mod work;

use freehold_protocol::notification::{Notification, NotificationKind};
use freehold_protocol::{AppName, InstallId, Timestamp};

use draft::draft;

pub use checks::of_checks;
pub use health::{ChangedBy, KnownHealth, of_health};
pub use runner::{runner_away, runner_back};
pub use strangers::of_strangers;
pub use work::{DriftSeen, of_job, of_run, of_workflow};

/// Returns a test of whether notifications arrive. The same `cause` leads to the same id.
pub fn test(install: Option<InstallId>, app: Option<AppName>, cause: &str, at: Timestamp) -> Notification {
    let kind = NotificationKind::Test;
    let about = match (&install, &app) {
        (Some(install), _) => format!(" about install {install}"),
        (None, Some(app)) => format!(" about app {app}"),
        (None, None) => String::new(),
    };
    let text = format!("This is a test. Notifications{about} arrive here.");
    let notification = draft(kind, &[cause], (install.as_ref(), app.as_ref()), (at, "Freehold: test".to_owned(), text));
    Notification { command: "freehold subscription list".to_owned(), ..notification }.limited()
}

#[cfg(test)]
mod tests;
