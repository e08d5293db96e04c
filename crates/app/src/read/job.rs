//! Shows jobs, and lists their logs.

use std::collections::BTreeMap;

use freehold_domain::job::{Job, JobState};
use freehold_protocol::api::{HistoryView, JobView, LogChunk, LogPage, PlanView};
use freehold_protocol::limits::MAX_LOG_BYTES_PER_REPORT;
use freehold_protocol::report::{AttemptEvent, AttemptReport, Report, ReportBody};
use freehold_protocol::{JobId, Timestamp};

use super::{List, PAGE_ITEMS};
use crate::AppError;
use crate::ports::Store;
use crate::table::{self, LogRecord, Record as _, evidence, job_pk, parse};
use crate::text_limit::cut;

/// Returns a job with its history.
///
/// # Errors
/// NotFound, or the store's errors.
pub async fn show_job(store: &dyn Store, id: &JobId, now: Timestamp) -> Result<JobView, AppError> {
    Ok(job_view(table::job(store, id).await?.value, now))
}

/// Returns the API's view of a job at the time `now`.
pub fn job_view(job: Job, now: Timestamp) -> JobView {
    let outputs = if let JobState::Succeeded { outputs, .. } = &job.state { outputs.clone() } else { BTreeMap::new() };
    let ended_at = job.state.is_terminal().then(|| job.history.last().map(|record| record.at)).flatten();
    let waits_since = job.waits_since(now);
    JobView {
        state: state_word(&job, now).to_owned(),
        waits_since,
        waits_until: (!job.state.is_terminal()).then(|| job.waits_until()),
        opens_at: job.opens_at(),
        ends_by: job.ends_by(),
        plan: plan_view(&job),
        reason: job.reason().unwrap_or_default(),
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
        policies: job.policies,
        approval: job.approval,
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

/// Returns the plan for whose approval the job waits.
pub(super) fn plan_view(job: &Job) -> Option<PlanView> {
    let JobState::WaitingForApproval { since, plan, vendor, customer, .. } = &job.state else { return None };
    Some(PlanView {
        proposed: (**plan).clone(),
        waits_for: job.waits_for(),
        approved_by_vendor: vendor.as_ref().map(|(by, _)| by.to_string()),
        approved_by_customer: customer.as_ref().map(|(by, _)| by.clone()),
        since: *since,
    })
}

/// Returns the word for a job's state at the time `now`.
pub(super) fn state_word(job: &Job, now: Timestamp) -> &'static str {
    let is_unclaimed = matches!(job.state, JobState::Queued { .. }) && job.waits_since(now).is_some();
    if is_unclaimed { "waiting_for_runner" } else { job.state.as_str() }
}

/// Returns the log chunks after the cursor. A page is marked as the last page only if the job has ended and the page
/// contains every remaining chunk.
///
/// # Errors
/// NotFound, or the store's errors.
pub async fn list_logs(store: &dyn Store, id: &JobId, after: Option<&str>) -> Result<LogPage, AppError> {
    // The job is read before its log: if the job has ended by then, the query below finds the last part.
    let job = table::job(store, id).await?.value;
    let rows = store.query(&job_pk(id), List::Logs.prefix(), after, PAGE_ITEMS).await?;
    let full = rows.len() == PAGE_ITEMS as usize;
    let mut records = rows.iter().map(|row| Ok(parse(row)?.value)).collect::<Result<Vec<LogRecord>, AppError>>()?;
    if !full {
        let last = proven_log(store, &job).await?;
        records
            .extend(last.filter(|last| !records.contains(last) && after.is_none_or(|after| after < &*last.key().sk)));
    }
    let cursor = records.last().map(|last| last.key().sk).or(after.map(str::to_owned)).unwrap_or_default();
    let chunks = records.into_iter().map(|LogRecord { fence, seq, text, .. }| LogChunk { fence, seq, text }).collect();
    Ok(LogPage { chunks, cursor, ended: job.state.is_terminal() && !full })
}

/// Returns the log in the report that proves a deploy. That report is stored as evidence, so its log has no row of its
/// own. The evidence has the report as the runner signed it, so its log may be longer than that of a row. It is cut
/// here, because a page of logs has to fit into the response of a Lambda function (6 MB), where a control character has
/// seven bytes.
async fn proven_log(store: &dyn Store, job: &Job) -> Result<Option<LogRecord>, AppError> {
    let Some(used) = evidence::use_by(store, job).await? else { return Ok(None) };
    let report: Report = used.proof.report.envelope().peek()?;
    let ReportBody::Attempt(AttemptReport { fence, seq, event: AttemptEvent::Finished { log, .. }, .. }) = report.body
    else {
        return Ok(None);
    };
    let record = || LogRecord { job: job.id.clone(), fence, seq, text: cut(&log, MAX_LOG_BYTES_PER_REPORT) };
    Ok((!log.is_empty()).then(record))
}
