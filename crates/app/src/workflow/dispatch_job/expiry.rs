//! Chooses the event for a job whose order has expired.

use freehold_domain::job::{Job, JobEvent, JobState};
use freehold_protocol::{JobId, Timestamp};

use crate::AppError;
use crate::ports::Store;
use crate::table::{self, Contact, Sending, Stored, contact_key, evidence, load};

/// Returns the event for a job at the time `now`. The event depends on whether the job's order can have reached the
/// queue and, if it can, on whether the runner must have received the order.
pub(crate) async fn expiry(store: &dyn Store, job: &Job, now: Timestamp) -> Result<JobEvent, AppError> {
    if !job.is_outlived(now) || job.install == table::reserved_install()? {
        return Ok(JobEvent::Expire);
    }
    if let JobState::Queued { dispatch } | JobState::WaitingForRunner { dispatch, attempt: None, .. } = &job.state
        && is_unsent(store, &job.id, *dispatch).await?
    {
        return Ok(JobEvent::Unsent { dispatch: *dispatch });
    }
    let contact = load::<Contact>(store, &contact_key(&job.install)).await?;
    let is_there = contact.is_some_and(|found| found.value.contact.must_have_received(job.not_after));
    Ok(if is_there { JobEvent::Expire } else { JobEvent::Wait })
}

/// Returns whether no copy of the order can have reached its queue: the order is not stored, so it was never sent, or
/// the queue refused each try.
async fn is_unsent(store: &dyn Store, job: &JobId, dispatch: u32) -> Result<bool, AppError> {
    if store.get(&evidence::order_key(job, dispatch)).await?.is_none() {
        return Ok(true);
    }
    let sending: Option<Stored<Sending>> = load(store, &table::sending_key(job, dispatch)).await?;
    Ok(sending.is_some_and(|sending| sending.value.first_try.is_none()))
}
