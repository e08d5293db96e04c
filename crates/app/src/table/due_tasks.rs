//! Rows for the tasks that are due at a minute: to run an action by cron, to check for drift or health, to look up the
//! schedules of an install, to advance a run of a runbook, to start the runbooks of a deploy that succeeded, to roll a
//! deploy back, to check whether a runner is away, to send a notification, to bring an install to the release of its
//! channel, or to start the actions of roles that the customer has switched.

use freehold_domain::role_switches::RoleChange;
use freehold_domain::runbook::AfterDeploy;
use freehold_protocol::notification::Notification;
use freehold_protocol::order::AskedBy;
use freehold_protocol::{ActionName, AppName, ChannelName, InstallId, RunId, Timestamp, WorkflowId};
use serde::{Deserialize, Serialize};

use super::install::install_pk;
use super::record::{Record, Stored, key, parse};
use crate::AppError;
use crate::ports::{Key, Store};

const MINUTE: u64 = 60_000;

/// A task that is due. Its sort key begins with the minute, so that one query reads only the tasks that are due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Due {
    /// The minute at which the task is due, in minutes since the epoch.
    pub minute: u64,
    /// The install; [`reserved_install`](super::reserved_install) for a task of several installs.
    pub install: InstallId,
    #[serde(flatten)]
    pub what: DueWhat,
    /// The minute before which the task is not tried again, after a failure that is not temporary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_until: Option<u64>,
}

/// The kind of a task that is due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "due", rename_all = "snake_case")]
pub enum DueWhat {
    /// A task to add the tasks for the cron runs and the checks of the install's version, once this workflow has ended.
    Schedules { workflow: WorkflowId },
    /// A task to check deployed parts for drift.
    Drift,
    /// A task to check whether deployed components are healthy.
    Health,
    /// A task to advance a run of a runbook, whose step has begun or ended.
    Runbook { run: RunId },
    /// A task to start a runbook that runs after a deploy.
    AfterDeploy(AfterDeploy),
    /// A task to roll back a verified deploy that failed.
    RollBack { workflow: WorkflowId },
    /// A task to store tasks for the installs that follow a channel, beginning after the install `after`. The task does
    /// nothing after a later move.
    Channel {
        app: AppName,
        channel: ChannelName,
        moves: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<InstallId>,
    },
    /// A task to bring the install to the release of its channel; `by` moved the channel, or made the install follow
    /// it. `moves` is the number of the channel's moves when the task was stored.
    Follow { by: AskedBy, moves: u64, tries: u32 },
    /// A task to start the actions of the roles that the customer has switched on or off. The reports queue took the
    /// hello that announced this at the time `at`.
    Roles { at: Timestamp, changes: Vec<RoleChange> },
    /// A task to check whether the install's runner is away.
    RunnerAway,
    /// A task to send a notification.
    Notify { notification: Box<Notification> },
    /// A task to run an action; `last` is the workflow of the preceding run.
    Run {
        action: ActionName,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last: Option<WorkflowId>,
    },
}

impl DueWhat {
    /// Returns whether a person waits for the task, because the person requested it or expects a notification.
    pub const fn is_waited_for(&self) -> bool {
        match self {
            Self::Runbook { .. }
            | Self::AfterDeploy(_)
            | Self::RollBack { .. }
            | Self::Channel { .. }
            | Self::Notify { .. } => true,
            Self::Schedules { .. }
            | Self::Drift
            | Self::Health
            | Self::Follow { .. }
            | Self::Roles { .. }
            | Self::RunnerAway
            | Self::Run { .. } => false,
        }
    }
}

impl Due {
    /// Returns a task that is due at the minute of `at`.
    pub const fn at(at: Timestamp, install: InstallId, what: DueWhat) -> Self {
        Self { minute: minute_of(at), install, what, held_until: None }
    }

    /// Returns the task, which is not tried again before the minute of `at`.
    pub fn held_until(self, at: Timestamp) -> Self {
        Self { held_until: Some(minute_of(at)), ..self }
    }

    /// Returns the start of the minute at which the task is due.
    pub const fn time(&self) -> Timestamp {
        Timestamp::from_millis(self.minute * MINUTE)
    }
}

const fn minute_of(at: Timestamp) -> u64 {
    at.as_millis() / MINUTE
}

impl Record for Due {
    fn key(&self) -> Key {
        let what = match &self.what {
            DueWhat::Schedules { .. } => "schedules".to_owned(),
            DueWhat::Drift => "drift".to_owned(),
            DueWhat::Health => "health".to_owned(),
            DueWhat::Run { action, .. } => format!("run#{action}"),
            DueWhat::Runbook { run } => format!("runbook#{run}"),
            DueWhat::AfterDeploy(AfterDeploy { workflow, at, .. }) => format!("after-deploy#{workflow}#{at}"),
            DueWhat::RollBack { workflow } => format!("roll-back#{workflow}"),
            DueWhat::Channel { app, channel, .. } => format!("channel#{app}#{channel}"),
            DueWhat::Follow { .. } => "follow".to_owned(),
            DueWhat::Roles { at, .. } => format!("roles#{}", at.as_millis()),
            DueWhat::RunnerAway => "runner-away".to_owned(),
            DueWhat::Notify { notification } => format!("notify#{}", notification.id),
        };
        key("due", format!("{:010}#{}#{what}", self.minute, self.install))
    }
}

/// The newest run of an action by its schedule or by the switch of a role that the install refused. A later such run
/// that starts removes this row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedRun {
    pub install: InstallId,
    pub action: ActionName,
    /// The minute at which the run was due, or the time at which the switch was announced.
    pub due: Timestamp,
    pub reason: String,
}

/// The beginning of the sort keys of an install's skipped runs.
pub const SKIPPED_PREFIX: &str = "skipped#";

/// Returns the key of the row of an action's newest skipped run.
pub fn skipped_key(install: &InstallId, action: &ActionName) -> Key {
    key(install_pk(install), format!("{SKIPPED_PREFIX}{action}"))
}

impl Record for SkippedRun {
    fn key(&self) -> Key {
        skipped_key(&self.install, &self.action)
    }
}

/// Returns at most `limit` tasks that are due by `now`, the earliest first, without those that are not tried again yet.
///
/// # Errors
/// The store's errors.
pub async fn due(store: &dyn Store, now: Timestamp, limit: usize) -> Result<Vec<Stored<Due>>, AppError> {
    /// The number of rows in the first read. It is small because usually no task is due: the read then costs one or two
    /// kilobytes.
    const FIRST: u32 = 10;
    let mut found: Vec<Stored<Due>> = Vec::new();
    let mut after: Option<String> = None;
    let mut page = FIRST;
    loop {
        let rows = store.query("due", "", after.as_deref(), page).await?;
        for row in &rows {
            // A later release may have written a task of another kind. Such a task must not block the other tasks.
            let stored: Stored<Due> = match parse(row) {
                Ok(stored) => stored,
                Err(error) => {
                    tracing::error!("Could not read the task that is due at `{}`: {error}", row.key.sk);
                    continue;
                }
            };
            if stored.value.minute > minute_of(now) || found.len() == limit {
                return Ok(found);
            }
            if stored.value.held_until.is_none_or(|until| until <= minute_of(now)) {
                found.push(stored);
            }
        }
        match rows.last() {
            Some(last) if rows.len() == page as usize => after = Some(last.key.sk.clone()),
            Some(_) | None => return Ok(found),
        }
        page = super::PAGE;
    }
}
