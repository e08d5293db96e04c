//! Rows that say what is due in a minute: runs of actions by cron, and installs whose runs have to be looked up.

use freehold_protocol::{ActionName, InstallId, Timestamp, WorkflowId};
use serde::{Deserialize, Serialize};

use super::record::{Record, Stored, key, parse};
use crate::AppError;
use crate::ports::{Key, Store};

const MINUTE: u64 = 60_000;

/// Something that is due. The key begins with the minute, so that one query finds what is due and reads nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Due {
    /// Minutes since the epoch.
    pub minute: u64,
    pub install: InstallId,
    #[serde(flatten)]
    pub what: DueWhat,
}

/// What is due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "due", rename_all = "snake_case")]
pub enum DueWhat {
    /// To add the runs of the version that the install has, once this workflow has ended.
    Schedules { workflow: WorkflowId },
    /// A run of an action; `last` is the run before it.
    Run {
        action: ActionName,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last: Option<WorkflowId>,
    },
}

impl Due {
    /// Returns what is due at the minute of `at`.
    pub const fn at(at: Timestamp, install: InstallId, what: DueWhat) -> Self {
        Self { minute: minute_of(at), install, what }
    }

    /// Returns the start of its minute.
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
            DueWhat::Run { action, .. } => format!("run#{action}"),
        };
        key("due", format!("{:010}#{}#{what}", self.minute, self.install))
    }
}

/// Returns what is due by `now`, the earliest first, at most `limit`.
///
/// # Errors
/// The store's, or Internal for an unreadable row.
pub async fn due(store: &dyn Store, now: Timestamp, limit: usize) -> Result<Vec<Stored<Due>>, AppError> {
    /// How many rows are read in the minutes in which nothing is due: a read of a kilobyte or two.
    const FIRST: u32 = 10;
    let mut found: Vec<Stored<Due>> = Vec::new();
    let mut after: Option<String> = None;
    let mut page = FIRST;
    loop {
        let rows = store.query("due", "", after.as_deref(), page).await?;
        for row in &rows {
            let stored: Stored<Due> = parse(row)?;
            if stored.value.minute > minute_of(now) || found.len() == limit {
                return Ok(found);
            }
            found.push(stored);
        }
        match rows.last() {
            Some(last) if rows.len() == page as usize => after = Some(last.key.sk.clone()),
            Some(_) | None => return Ok(found),
        }
        page = super::PAGE;
    }
}
