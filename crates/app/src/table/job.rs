//! The rows of jobs and of their logs.

use freehold_domain::job::Job;
use freehold_protocol::report::Fence;
use freehold_protocol::{JobId, Timestamp};
use serde::{Deserialize, Serialize};

use super::record::{Record, Stored, WriterId, key, load, put_until};
use crate::AppError;
use crate::ports::{Expect, Key, Store, Write};
use crate::subject;

/// The time for which log lines are stored, in seconds.
const LOG_TTL_SECS: u64 = 30 * 24 * 3600;

/// The log text of one report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogRecord {
    pub job: JobId,
    pub fence: Fence,
    pub seq: u64,
    pub text: String,
}

impl LogRecord {
    /// Returns the write that keeps this part of a log for 30 days.
    ///
    /// # Errors
    /// The errors of [`put_until`].
    pub fn write(&self, now: Timestamp) -> Result<Write, AppError> {
        put_until(self, Expect::Any, now.plus_secs(LOG_TTL_SECS))
    }
}

/// The tries to send an order that was stored before. An order whose first try succeeds has no such row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sending {
    pub job: JobId,
    pub dispatch: u32,
    /// The time of the first try that the install's queue may have taken; absent if SQS refused every try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_try: Option<Timestamp>,
    /// The copy of the function that wrote the row last.
    #[serde(default, skip_serializing_if = "WriterId::is_absent")]
    pub by: WriterId,
}

/// Returns the key of the [`Sending`] row of an order.
pub fn sending_key(job: &JobId, dispatch: u32) -> Key {
    key(job_pk(job), format!("sending#{dispatch}"))
}

impl Record for Sending {
    fn key(&self) -> Key {
        sending_key(&self.job, self.dispatch)
    }
}

/// Returns the partition key of a job's rows.
pub fn job_pk(job: &JobId) -> String {
    format!("job#{job}")
}

/// Returns the key of a job's row.
pub fn job_key(job: &JobId) -> Key {
    key(job_pk(job), "state")
}

impl Record for Job {
    fn key(&self) -> Key {
        job_key(&self.id)
    }

    fn kept_until(&self) -> Option<Timestamp> {
        self.kept_until
    }
}

impl Record for LogRecord {
    fn key(&self) -> Key {
        let Fence { dispatch, receive } = self.fence;
        key(job_pk(&self.job), format!("log#{dispatch:04}.{receive:06}#{:08}", self.seq))
    }
}

/// Loads a job that must exist.
///
/// # Errors
/// NotFound, or the errors of [`load`].
pub async fn job(store: &dyn Store, id: &JobId) -> Result<Stored<Job>, AppError> {
    let found: Option<Stored<Job>> = load(store, &job_key(id)).await?;
    let found = found.ok_or_else(|| unknown_job(id))?;
    subject::note_job(&found.value);
    Ok(found)
}

/// Returns the error for a job that does not exist.
pub fn unknown_job(id: &JobId) -> AppError {
    AppError::not_found(format!(
        "job `{id}` does not exist; `freehold workflow list INSTALL` shows the workflows of an install, and `freehold \
         workflow show WORKFLOW` their jobs"
    ))
}
