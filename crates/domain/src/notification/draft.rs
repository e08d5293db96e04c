//! The parts that every notification has: an id that is derived from its cause, its install or app, and its text.

use freehold_protocol::notification::{Notification, NotificationKind};
use freehold_protocol::time::rfc3339;
use freehold_protocol::{AppName, InstallId, NotificationId, Timestamp};

/// Returns a notification with this subject and text, but without a workflow, a job, a run and a command.
pub(super) fn draft(
    kind: NotificationKind,
    cause: &[&str],
    (install, app): (Option<&InstallId>, Option<&AppName>),
    (at, subject, text): (Timestamp, String, String),
) -> Notification {
    Notification {
        id: NotificationId::derive(kind.as_str(), cause),
        kind,
        at,
        install: install.cloned(),
        app: app.cloned(),
        workflow: None,
        job: None,
        run: None,
        subject,
        text,
        command: String::new(),
    }
}

/// Returns a time as text for a person.
pub(super) fn utc(time: Timestamp) -> String {
    rfc3339::text(time).unwrap_or_default()
}
