//! Sends the order of a job, so that its queue gets one copy. The queue drops a second copy for five minutes only. After
//! that, an order is sent again only if SQS refused every earlier try.

use freehold_domain::install::Install;
use freehold_domain::job::{Job, JobEvent, WindowEvent};
use freehold_domain::sealed_inputs;
use freehold_protocol::order::Order;
use freehold_protocol::{Envelope, KeyUse, Timestamp};

use super::change_windows::{self, Closed};
use super::{DispatchJob, queue_url};
use crate::AppError;
use crate::ports::{Committed, Expect, PortError};
use crate::table::evidence::{self, Evidence};
use crate::table::{self, Sending, Stored, load, put_until};
use crate::workflow::advance;

/// The time after the first try to send an order during which the order is sent again, in seconds. It is less than the
/// five minutes during which SQS drops duplicates of a message (Amazon SQS developer guide, "Using the message
/// deduplication ID"), so SQS drops the second copy if the queue has the first.
const RESEND_WORTH_SECS: u64 = 280;

/// The right of one delivery to send a copy of an order.
struct Claim {
    /// Whether no earlier try can have reached the queue.
    is_first: bool,
    /// The revision of the [`Sending`] row; `None` if there is none yet.
    rev: Option<u64>,
}

impl DispatchJob {
    /// The kinds of messages that the use case signs with a delegate key. It signs contracts for
    /// [`SignContract`](crate::contract::sign_contract).
    pub const SIGNS: [KeyUse; 6] =
        [KeyUse::Orders, KeyUse::Cancels, KeyUse::Notices, KeyUse::Contracts, KeyUse::Receipts, KeyUse::Licences];

    /// Sends the order of a job. Does not send it again when the first try is so old that SQS would no longer drop a
    /// duplicate. Returns whether the order was sent.
    ///
    /// # Errors
    /// Invalid for an order that can never be made, or the ports' errors.
    pub(super) async fn send_order(&self, job: &Job, dispatch: u32) -> Result<bool, AppError> {
        let Some(install) = self.install(&job.install).await? else { return Ok(false) };
        let url = queue_url(&install)?;
        let Some((mut envelope, claim)) = self.order_to_send(job, &install, dispatch).await? else {
            return Ok(false);
        };
        let named = envelope.peek::<Order>()?.sealed_inputs;
        // Only an order that was stored before can name an older value.
        let Some(attached) = sealed_inputs::attached(&named, &install.inputs) else {
            if claim.is_first {
                let reason = "a sensitive input got another value before the order was sent; start the action or the \
                              deploy again";
                self.end(job, dispatch, reason.to_owned()).await?;
            } else {
                // The job is not ended, because the copy of the order that was sent first may still be in the queue.
                tracing::warn!(
                    job.id = %job.id,
                    "Order of job `{}` names a former value of a sensitive input: it is not sent again",
                    job.id
                );
            }
            return Ok(false);
        };
        envelope.attached = attached;
        let dedup = format!("{}.{dispatch}", job.id);
        let sent = self.orders.send(url, job.group.message_group(), &dedup, &envelope.to_json()?).await;
        if let Err(error) = sent {
            if claim.is_first && matches!(error, PortError::Denied { .. } | PortError::Failed { .. }) {
                self.note_refused(job, dispatch, &claim).await?;
            }
            return Err(error.into());
        }
        tracing::info!(job.id = %job.id, install.id = %install.id, "Sent order {dispatch} of job `{}`", job.id);
        Ok(true)
    }

    /// Returns the order that was stored, or else a new one, with the claim to send it. `None` if no order is to be
    /// sent now.
    async fn order_to_send(
        &self,
        job: &Job,
        install: &Install,
        dispatch: u32,
    ) -> Result<Option<(Envelope, Claim)>, AppError> {
        let now = self.clock.now();
        // A stored order is sent without a change. It may be in the install's queue already, and the records that it
        // refers to may have changed since, so that the same order could not be made again.
        let key = evidence::order_key(&job.id, dispatch);
        let Some(first) = evidence::kept_row(&*self.store, &key).await? else {
            if self.keeps_back(job, dispatch, now).await? {
                return Ok(None);
            }
            let envelope = self.new_order(job, install, dispatch, now).await?;
            return Ok(Some((envelope, Claim { is_first: true, rev: None })));
        };
        let Some(claim) = self.claim(job, dispatch, (first.value.stored_at(), now)).await? else {
            tracing::warn!(job.id = %job.id, "Order of job `{}` is too old to be sent a second time", job.id);
            return Ok(None);
        };
        let envelope = if claim.is_first {
            self.signed_in_time(job, dispatch, &first).await?
        } else {
            first.value.signed().envelope()
        };
        Ok(Some((envelope, claim)))
    }

    /// Lets the job wait if the customer lets no change start now. The runner would only give the order back. Returns
    /// whether the job waits. `sweep` orders the job when the window opens.
    async fn keeps_back(&self, job: &Job, dispatch: u32, now: Timestamp) -> Result<bool, AppError> {
        let Some(Closed { until, reason }) = change_windows::closed(&*self.store, job, now).await? else {
            return Ok(false);
        };
        tracing::info!(job.id = %job.id, install.id = %job.install, "Job `{}` waits: {reason}", job.id);
        let event = JobEvent::Window(WindowEvent::Closed { dispatch, until, reason });
        let _ = advance::job_event(&*self.store, &job.id, &event, None, now).await?;
        Ok(true)
    }

    /// Returns a stored order that no earlier try can have brought into the queue. Signs the order again if a runner
    /// would refuse it because its signing key is no longer valid for sending.
    async fn signed_in_time(&self, job: &Job, dispatch: u32, first: &Stored<Evidence>) -> Result<Envelope, AppError> {
        let (envelope, now) = (first.value.signed().envelope(), self.clock.now());
        let until = envelope.claimed_send_until();
        if until.is_none_or(|until| until >= now.plus_secs(RESEND_WORTH_SECS)) {
            return Ok(envelope);
        }
        let order: Order = envelope.peek()?;
        let delegate = self.signer.delegate(order.not_after).await?;
        let envelope = Envelope::seal_delegated(&order, &delegate.key, &delegate.certificate)?;
        let at = first.value.stored_at();
        evidence::keep_signed_anew(&*self.store, (job, dispatch, at), &envelope, &order.work, first.rev).await?;
        Ok(envelope)
    }

    /// Claims the right to send a copy of an order that was stored before. Returns `None` if it must not be sent again.
    /// A delivery writes its claim before it sends, so that no other delivery marks the order as refused meanwhile.
    async fn claim(
        &self,
        job: &Job,
        dispatch: u32,
        (stored_at, now): (Timestamp, Timestamp),
    ) -> Result<Option<Claim>, AppError> {
        let known: Option<Stored<Sending>> = load(&*self.store, &table::sending_key(&job.id, dispatch)).await?;
        let first_try = known.as_ref().map_or(Some(stored_at), |known| known.value.first_try);
        if first_try.is_some_and(|first| now.since(first) > RESEND_WORTH_SECS * 1000) {
            return Ok(None);
        }
        let (first_try, is_first) = (first_try.or(Some(now)), first_try.is_none());
        let sending = Sending { job: job.id.clone(), dispatch, first_try, by: self.writer.clone() };
        let expect = known.as_ref().map_or(Expect::Absent, |known| Expect::Rev(known.rev));
        match self.store.commit(vec![put_until(&sending, expect, job.kept_until)?]).await? {
            Committed::Done => {
                let rev = known.map_or(1, |known| known.rev + 1);
                Ok(Some(Claim { is_first, rev: Some(rev) }))
            }
            Committed::Conflict(_) => {
                let message =
                    format!("order {dispatch} of job `{}` is being sent by another delivery; try again", job.id);
                Err(AppError::new(crate::Kind::Transient, message))
            }
        }
    }

    /// Notes that no try has reached the queue. Nothing is noted if another delivery has claimed the order meanwhile.
    async fn note_refused(&self, job: &Job, dispatch: u32, claim: &Claim) -> Result<(), AppError> {
        let refused = Sending { job: job.id.clone(), dispatch, first_try: None, by: self.writer.clone() };
        let expect = claim.rev.map_or(Expect::Absent, Expect::Rev);
        let (Committed::Done | Committed::Conflict(_)) =
            self.store.commit(vec![put_until(&refused, expect, job.kept_until)?]).await?;
        Ok(())
    }

    /// Ends a job whose order can never be made. An order that is stored may be in the install's queue, so its job
    /// continues.
    pub(super) async fn end_undeliverable(&self, job: &Job, dispatch: u32, error: AppError) -> Result<(), AppError> {
        if self.store.get(&evidence::order_key(&job.id, dispatch)).await?.is_some() {
            let message = format!("order {dispatch} of job `{}` was stored by another delivery; try again", job.id);
            return Err(AppError::new(crate::Kind::Transient, message));
        }
        self.end(job, dispatch, error.to_string()).await
    }

    /// Ends a job that was cancelled before its order was stored: its runner has nothing to refuse, and would never answer. An
    /// order that is stored may be in the install's queue, where the runner refuses it.
    pub(super) async fn end_unordered(&self, job: &Job, dispatch: u32) -> Result<(), AppError> {
        if self.store.get(&evidence::order_key(&job.id, dispatch)).await?.is_some() {
            tracing::info!(job.id = %job.id, "Job `{}` is cancelled: its order is not sent again", job.id);
            return Ok(());
        }
        self.end(job, dispatch, "it was cancelled before its order was sent".to_owned()).await
    }

    /// Ends a job whose order was not sent and never will be. `sweep` performs the effects: this function may neither
    /// resume a state machine nor write to the dispatch queue.
    async fn end(&self, job: &Job, dispatch: u32, reason: String) -> Result<(), AppError> {
        tracing::warn!(job.id = %job.id, install.id = %job.install, "Job `{}` gets no order: {reason}", job.id);
        let event = JobEvent::Undeliverable { dispatch, reason };
        let _ = advance::job_event(&*self.store, &job.id, &event, None, self.clock.now()).await?;
        Ok(())
    }
}
