//! What the API shows of jobs and their logs.

use std::collections::BTreeMap;

use freehold_domain::job::{Job, JobState};
use freehold_protocol::JobId;
use freehold_protocol::api::{HistoryView, JobView, LogChunk, LogPage};

use super::PAGE_ITEMS;
use crate::AppError;
use crate::ports::Store;
use crate::table::{self, LogRecord, job_pk, parse};

/// Returns a job with its history.
///
/// # Errors
/// NotFound, or the store's errors.
pub async fn show(store: &dyn Store, id: &JobId) -> Result<JobView, AppError> {
    Ok(view(table::job(store, id).await?.value))
}

/// Returns the API's view of a job.
pub fn view(job: Job) -> JobView {
    let outputs = match &job.state {
        JobState::Succeeded { outputs, .. } => outputs.clone(),
        _ => BTreeMap::new(),
    };
    let ended_at = job.state.is_terminal().then(|| job.history.last().map(|record| record.at)).flatten();
    JobView {
        state: job.state.as_str().to_owned(),
        reason: job.state.reason().unwrap_or_default(),
        fence: job.state.fence(),
        outputs,
        ended_at,
        job: job.id,
        install: job.install,
        workflow: job.workflow,
        node: job.node,
        mode: job.mode,
        role: job.role,
        created_at: job.created_at,
        history: job
            .history
            .into_iter()
            .map(|record| HistoryView {
                at: record.at,
                what: record.what,
                from: record.from,
                to: record.to,
                reason: record.reason,
            })
            .collect(),
    }
}

/// Returns log text after the cursor. The page is marked as the last one only when it includes every remaining chunk.
///
/// # Errors
/// NotFound, or the store's errors.
pub async fn logs(store: &dyn Store, id: &JobId, after: Option<&str>) -> Result<LogPage, AppError> {
    // The job is read first, so that the query below finds everything that was logged before the job ended.
    let job = table::job(store, id).await?.value;
    let rows = store.query(&job_pk(id), "log#", after, PAGE_ITEMS).await?;
    let cursor = rows.last().map(|row| row.key.sk.clone()).or(after.map(str::to_owned)).unwrap_or_default();
    let full = rows.len() == PAGE_ITEMS as usize;
    let chunks = rows
        .iter()
        .map(|row| {
            let LogRecord { fence, seq, text, .. } = parse(row)?.value;
            Ok(LogChunk { fence, seq, text })
        })
        .collect::<Result<Vec<_>, AppError>>()?;
    Ok(LogPage { chunks, cursor, ended: job.state.is_terminal() && !full })
}
