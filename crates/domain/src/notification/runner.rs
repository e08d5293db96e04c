//! Notifications about the connection of a runner.

use freehold_protocol::notification::{Notification, NotificationKind};
use freehold_protocol::{AppName, InstallId, Timestamp};

use super::draft::{draft, utc};
use crate::install::connection::{Connection, ConnectionState};

/// Returns the notification about a runner that takes no orders; `None` for one that is connected.
pub fn runner_away(install: &InstallId, app: Option<&AppName>, connection: &Connection) -> Option<Notification> {
    let (word, why) = match connection.state {
        ConnectionState::Connected => return None,
        ConnectionState::Silent => (
            "is silent",
            "Its machine, its network or its install stack is gone, or the customer has stopped it. Jobs wait for it.",
        ),
        ConnectionState::Paused => (
            "is paused",
            "The customer has switched the runner off or stopped it. Jobs wait until it announces itself again.",
        ),
        ConnectionState::CutOff => (
            "is cut off",
            "The runner has lost its access, or its install stack was deleted. Jobs wait until it announces itself again.",
        ),
    };
    let kind = NotificationKind::RunnerAway;
    let cause = [install.as_str(), connection.state.as_str(), &connection.since.as_millis().to_string()];
    let text = format!("The runner of install {install} {word} since {}. {why}", utc(connection.since));
    let subject = format!("Freehold: runner of {install} {word}");
    let notification = draft(kind, &cause, (Some(install), app), (connection.since, subject, text));
    Some(Notification { command: format!("freehold install show {install}"), ..notification }.limited())
}

/// Returns the notification that the runner takes orders again from `at`. `away_since` is the time that the
/// notification of its absence named.
pub fn runner_back(install: &InstallId, app: Option<&AppName>, away_since: Timestamp, at: Timestamp) -> Notification {
    let kind = NotificationKind::RunnerBack;
    let cause = [install.as_str(), &away_since.as_millis().to_string(), &at.as_millis().to_string()];
    let text = format!("The runner of install {install} takes orders again. It was away since {}.", utc(away_since));
    let subject = format!("Freehold: runner of {install} is back");
    let notification = draft(kind, &cause, (Some(install), app), (at, subject, text));
    Notification { command: format!("freehold install show {install}"), ..notification }.limited()
}
