//! Sends the signed order for a queued job, or a signed cancel, to the install's orders queue.

pub(crate) mod change_windows;
pub(crate) mod expiry;
mod licence;
mod sending;
mod size;
mod task;
mod unread_values;

use std::collections::BTreeSet;
use std::sync::Arc;

use freehold_domain::install::{BUILD_INSTALL, Install};
use freehold_domain::job::{Job, JobState};
use freehold_protocol::app_version::Reference;
use freehold_protocol::approval::{self, ApprovalRule};
use freehold_protocol::limits::CLAIM_WINDOW_SECS;
use freehold_protocol::order::{AskedBy, Cancel, Demands, Order, Retired};
use freehold_protocol::{Envelope, InstallId, JobId, KeyId, TenantName, Timestamp};

use crate::AppError;
use crate::app_version::versions::Versions;
use crate::contract::sign_contract::SignContract;
use crate::messages::DispatchMessage;
use crate::part::attempted_part;
use crate::ports::{BuildMachine, Clock, DelegateKey, OrdersQueue, Signer, Store, Write};
use crate::subject;
use crate::table::evidence;
use crate::table::{self, Contact, NOTICE_SECS, Stored, WriterId, load};

/// The use case that dispatches jobs, with its ports and the settings of the tenant.
#[derive(Clone)]
pub struct DispatchJob {
    pub tenant: TenantName,
    /// The repository of the tenant registry to which builds push.
    pub repository: String,
    pub store: Arc<dyn Store>,
    pub versions: Versions,
    pub orders: Arc<dyn OrdersQueue>,
    pub signer: Arc<dyn Signer>,
    /// The machine of the build runner; `None` when the build runner has a machine of its own.
    pub build_machine: Option<Arc<dyn BuildMachine>>,
    pub clock: Arc<dyn Clock>,
    /// The copy of the function that dispatches the jobs.
    pub writer: WriterId,
}

/// An order that is not signed yet.
struct Unsigned {
    order: Order,
    /// The write of the record of a part that the job may be the first to make.
    part: Option<Write>,
    /// The values that the templates of a removal read; `None` for all other work.
    reads_in_removal: Option<BTreeSet<Reference>>,
}

impl DispatchJob {
    /// Handles one message of the dispatch queue. A redelivery sends the same message with the same deduplication id. A
    /// job whose order can never be sent ends as failed with the reason. Returns whether the build runner got an order:
    /// after all messages of a batch, [`Self::wake_builder`] asks for its machine.
    ///
    /// # Errors
    /// Transient when a service does not answer or the install's queue does not exist yet; Internal for broken records.
    pub async fn perform(&self, message: &DispatchMessage) -> Result<bool, AppError> {
        match message {
            DispatchMessage::Order { job, dispatch } => {
                let Some(job) = self.job(job).await? else { return Ok(false) };
                // A message may be older than the order that the job waits for now.
                let current = match &job.state {
                    JobState::Queued { dispatch: current } if current >= dispatch => Some(*current),
                    _ => None,
                };
                let Some(dispatch) = current else {
                    tracing::info!(job.id = %job.id, "Job `{}` is {}: no order was sent", job.id, job.state.as_str());
                    return Ok(false);
                };
                if job.cancel_requested.is_some() {
                    return self.end_unordered(&job, dispatch).await.map(|()| false);
                }
                match self.send_order(&job, dispatch).await {
                    Err(error) if error.kind == crate::Kind::Invalid => {
                        self.end_undeliverable(&job, dispatch, error).await.map(|()| false)
                    }
                    Err(error) => Err(error),
                    Ok(sent) => Ok(sent && job.install.as_str() == BUILD_INSTALL),
                }
            }
            DispatchMessage::Cancel { job, dispatch, receive, runner } => {
                let Some(job) = self.job(job).await? else { return Ok(false) };
                // The cancel of a single stale attempt has no requester.
                let asked = job.cancel_asked.filter(|_| receive.is_none()).unwrap_or_default();
                let (asked_by, asker) = AskedBy::in_fields(asked.by);
                let cancel = Cancel {
                    tenant: self.tenant.clone(),
                    install: job.install.clone(),
                    job: job.id.clone(),
                    dispatch: *dispatch,
                    receive: *receive,
                    runner: runner.clone(),
                    asked_by,
                    asker,
                    asked_why: Some(asked.reason).filter(|reason| !reason.is_empty()),
                    issued_at: self.clock.now(),
                    not_after: self.clock.now().plus_secs(CLAIM_WINDOW_SECS),
                };
                self.send_cancel(&cancel).await.map(|()| false)
            }
            DispatchMessage::Retired { install, runner, at } => {
                self.send_retired(install, runner, *at).await.map(|()| false)
            }
            DispatchMessage::Contract { app, version } => self.signing().sign(app, version).await.map(|()| false),
        }
    }

    /// Asks for the machine of the build runner. This comes after the orders were sent, because a machine that is about
    /// to end first leaves its group and then looks at the queue once more: it sees the orders, or the group starts
    /// another machine. A failure is not returned, because the orders would be sent again. `sweep` asks for the machine
    /// once a minute while a build waits.
    pub async fn wake_builder(&self) {
        if let Some(machine) = &self.build_machine
            && let Err(error) = machine.wake().await
        {
            tracing::error!("Could not start the machine of the build runner: {error}");
        }
    }

    /// Returns a job; `None` if its install was forgotten before this message arrived.
    async fn job(&self, id: &JobId) -> Result<Option<Job>, AppError> {
        let job: Option<Stored<Job>> = load(&*self.store, &table::job_key(id)).await?;
        if job.is_none() {
            tracing::info!(job.id = %id, "Job `{id}` is gone: nothing was sent");
        }
        Ok(job.map(|job| job.value).inspect(subject::note_job))
    }

    /// Returns an install; `None` if it is being forgotten.
    async fn install(&self, id: &InstallId) -> Result<Option<Install>, AppError> {
        let found: Option<Stored<Install>> = load(&*self.store, &table::install_key(id)).await?;
        let kept = found.map(|found| found.value).filter(|install| install.forgetting.is_none());
        if kept.is_none() {
            tracing::info!(install.id = %id, "Install `{id}` is gone: nothing was sent");
        }
        Ok(kept.inspect(subject::note_install))
    }

    fn signing(&self) -> SignContract {
        SignContract {
            tenant: self.tenant.clone(),
            store: Arc::clone(&self.store),
            versions: self.versions.clone(),
            signer: Arc::clone(&self.signer),
            clock: Arc::clone(&self.clock),
        }
    }

    /// Makes the order of a job, and stores it. The order is stored before it is sent: it is then a proof, and a
    /// redelivery sends the same bytes.
    async fn new_order(
        &self,
        job: &Job,
        install: &Install,
        dispatch: u32,
        now: Timestamp,
    ) -> Result<Envelope, AppError> {
        let Unsigned { mut order, part, reads_in_removal } = self.order(job, install, dispatch).await?;
        let delegate = self.signer.delegate(order.not_after).await?;
        order.receipt = self.receipt(install, &delegate, now).await?;
        self.add_licence(&mut order.context, install, &delegate, now).await?;
        let mut envelope = Envelope::seal_delegated(&order, &delegate.key, &delegate.certificate)?;
        // The order can be sent without the documents of its terms: a runner that needs them reports that. The order
        // cannot be sent without its work.
        if size::check(&envelope).is_err() && order.terms.as_mut().is_some_and(|terms| terms.drop_documents()) {
            if let Some(reads) = &reads_in_removal {
                unread_values::leave_out_unread(&mut order.secrets, &mut order.sensitive_inputs, reads);
            }
            envelope = Envelope::seal_delegated(&order, &delegate.key, &delegate.certificate)?;
        }
        size::check(&envelope).map_err(|error| AppError::invalid(format!("order of job `{}` {error}", job.id)))?;
        evidence::keep_order(&*self.store, (job, dispatch, now), &envelope, &order.work, part).await?;
        Ok(envelope)
    }

    /// Returns the receipt for the newest audit record that the install's runners reported.
    async fn receipt(
        &self,
        install: &Install,
        delegate: &DelegateKey,
        now: Timestamp,
    ) -> Result<Option<Box<Envelope>>, AppError> {
        let contact: Option<Stored<Contact>> = load(&*self.store, &table::contact_key(&install.id)).await?;
        let Some(head) = contact.and_then(|contact| contact.value.head) else { return Ok(None) };
        let receipt = head.receipt(self.tenant.clone(), install.id.clone(), now);
        Ok(Some(Box::new(Envelope::seal_delegated(&receipt, &delegate.key, &delegate.certificate)?)))
    }

    async fn send_cancel(&self, cancel: &Cancel) -> Result<(), AppError> {
        let Some(install) = self.install(&cancel.install).await? else { return Ok(()) };
        let url = queue_url(&install)?;
        let delegate = self.signer.delegate(cancel.not_after).await?;
        let envelope = Envelope::seal_delegated(cancel, &delegate.key, &delegate.certificate)?;
        let receive = cancel.receive.map(|receive| format!(".{receive}")).unwrap_or_default();
        let runner = cancel.runner.as_ref().map(|runner| format!(".{runner}")).unwrap_or_default();
        let dedup = format!("cancel.{}.{}{receive}{runner}", cancel.job, cancel.dispatch);
        self.orders.send(url, "control", &dedup, &envelope.to_json()?).await?;
        Ok(())
    }

    /// Tells a runner that its key was replaced. The notice has a message group of its own: the runner with the current
    /// key leaves it in the queue, and there it must not delay other messages.
    async fn send_retired(&self, install: &InstallId, runner: &KeyId, at: Timestamp) -> Result<(), AppError> {
        let Some(install) = self.install(install).await? else { return Ok(()) };
        let Some(current) = install.runner.as_ref().filter(|_| install.retired.contains(runner)) else { return Ok(()) };
        let notice = Retired {
            tenant: self.tenant.clone(),
            install: install.id.clone(),
            runner: runner.clone(),
            replaced_by: current.public_key.key_id(),
            replaced_at: current.announced_at,
            issued_at: at,
            not_after: at.plus_secs(NOTICE_SECS),
        };
        let delegate = self.signer.delegate(notice.not_after).await?;
        let envelope = Envelope::seal_delegated(&notice, &delegate.key, &delegate.certificate)?;
        let dedup = format!("retired.{runner}.{}", at.as_millis());
        self.orders.send(queue_url(&install)?, Retired::MESSAGE_GROUP, &dedup, &envelope.to_json()?).await?;
        Ok(())
    }

    /// Returns the order for a job. The same job and dispatch give the same order unless the records that the order
    /// refers to change.
    async fn order(&self, job: &Job, install: &Install, dispatch: u32) -> Result<Unsigned, AppError> {
        let workflow = table::workflow(&*self.store, &job.workflow).await?.value;
        let node = workflow.nodes.iter().find(|node| node.name == job.node).ok_or_else(|| {
            // INVARIANT: every job is created for a node of its workflow, and nodes are never removed.
            AppError::internal(format!("workflow `{}` has no node `{}`", workflow.id, job.node))
        })?;
        let task = self.task(&workflow, node, install).await?;
        let tool_image = self.tool_image(&workflow, task.tools.as_ref(), install).await?;
        let part = attempted_part::record_write(&*self.store, job, &workflow, &node.target, self.clock.now()).await?;
        let (asked_by, asker) = AskedBy::in_fields(workflow.asker().cloned());
        let order = Order {
            tenant: self.tenant.clone(),
            install: install.id.clone(),
            workflow: workflow.id.clone(),
            job: job.id.clone(),
            dispatch,
            group: job.group.clone(),
            serial: job.serial,
            issued_at: job.created_at,
            start_by: Some(job.start_by()),
            not_after: job.not_after,
            timeout_secs: job.timeout_secs,
            mode: job.mode,
            role: job.role.clone(),
            asked_by,
            asker,
            asked_why: workflow.why(),
            now: workflow.now,
            runner: install.runner.as_ref().map(|runner| runner.public_key.key_id()),
            redelivery: task.work.redelivery(),
            skip_noops: task.skip_noops,
            work: task.work,
            context: task.context,
            sensitive_inputs: task.hidden.inputs,
            sealed_inputs: task.hidden.sealed,
            secrets: task.hidden.secrets,
            kept_outputs: task.hidden.outputs,
            tool_image,
            policies: task.policies,
            must_understand: demands(task.approval, job),
            approval: task.approval,
            approved: job.approval.clone().map(Box::new),
            terms: task.terms,
            receipt: None,
        };
        Ok(Unsigned { order, part, reads_in_removal: task.reads_in_removal })
    }
}

/// Returns the features that a runner must know to accept the order. A runner of an earlier version would apply a plan
/// that nobody approved.
fn demands(approval: Option<ApprovalRule>, job: &Job) -> Demands {
    if approval.is_some() || job.approval.is_some() { Demands::feature(approval::FEATURE) } else { Demands::default() }
}

fn queue_url(install: &Install) -> Result<&str, AppError> {
    install.orders_queue_url.as_deref().ok_or_else(|| {
        let message = format!("orders queue of install `{}` does not exist yet; try again", install.id);
        AppError::new(crate::Kind::Transient, message)
    })
}
