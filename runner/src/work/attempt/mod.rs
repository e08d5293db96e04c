//! One attempt, from admission until the message is deleted: first the journal, then the job, then the durable report.

mod attempt_directory;
mod attempt_plans;
mod earlier_machine;
mod end;
mod exclusion;
mod given_back;
mod iam_audit;
mod job_audit;
mod newer_event;
mod no_start;
mod policy_audit;
mod refused_connections;
mod repeated_outcome;
mod start;
mod strangers;

use std::sync::Arc;
use std::time::Duration;

use aws_credential_types::provider::SharedCredentialsProvider;
use freehold_protocol::limits;
use freehold_protocol::order::{Order, Redelivery, Work};
use freehold_protocol::report::{Block, Outcome, RefusalReason};
use tokio_util::task::AbortOnDropHandle;
use tracing::{error, info, warn};

use crate::aws;
use crate::files;
use crate::identity::consent;
use crate::identity::mode::NoCredentials;
use crate::identity::order_claims;
use crate::job::first_box::FirstBox;
use crate::job::{Job, PolicyRecorder, StopReason};
use crate::kinds;
use crate::process::drain::Phase;
use crate::record::audit::Others;
use crate::record::log::JobLog;
use crate::sandbox;
use crate::wire::grants::AttemptGrants;
use crate::wire::report::AttemptReporter;
use crate::wire::verify;
use crate::work::admission::{Permit, Ticket};
use crate::work::agent::Agent;
use crate::work::hand_over::RunnerHandOver;
use crate::work::in_flight::HeldOrder;
use crate::work::journal::{Decision, Record};
use crate::work::supervise::{self, Ended, Limits};
use attempt_directory::Workspace;
use iam_audit::IamAudit;
use policy_audit::PolicyAudit;
use refused_connections::RefusedConnections;
use start::Start;

/// The handling of the message after the attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Message {
    /// The outcome is reported: delete the message.
    Done,
    /// Return the message to the queue at once, for the next runner.
    GiveBack,
    /// Leave the message in the queue until its lease ends.
    Leave,
}

/// Runs the attempt for the order `held` until it ends.
pub async fn run(agent: Arc<Agent>, held: Arc<HeldOrder>, ticket: Ticket) {
    let keeper = keep_lease(&agent, &held);
    let message = Attempt { agent: &agent, held: &held }.settle(&ticket).await;
    if message != Message::Done {
        ticket.went_back();
    }
    match message {
        Message::Done => agent.delete(&held.lease.handle()).await,
        Message::GiveBack => {
            if let Err(error) = agent.inbox.lease(&held.lease.handle(), 0).await {
                warn!("Cannot return an order to the queue before its lease ends: {error}");
            }
        }
        Message::Leave => {}
    }
    drop(keeper);
    agent.in_flight.release(&held);
    if message == Message::Done {
        agent.logs.store(&held.order.job, held.fence).await;
        if let Err(error) = agent.journal().compact_if_long() {
            warn!("{}", aws::explain(&error));
        }
    }
}

/// Renews the lease until the returned handle is dropped. Stops the attempt when the lease is lost.
fn keep_lease(agent: &Arc<Agent>, held: &Arc<HeldOrder>) -> AbortOnDropHandle<()> {
    let (agent, held) = (agent.clone(), held.clone());
    AbortOnDropHandle::new(tokio::spawn(async move {
        held.lease.keep(agent.inbox.as_ref()).await;
        held.stop(StopReason::LeaseLost);
    }))
}

struct Attempt<'a> {
    agent: &'a Arc<Agent>,
    held: &'a Arc<HeldOrder>,
}

impl Attempt<'_> {
    async fn settle(&self, ticket: &Ticket) -> Message {
        let order = &self.held.order;
        // An order that has expired starts nothing, so it does not wait for other orders.
        let _permit = match self.is_past(order.not_after) {
            true => None,
            false => tokio::select! {
                biased;
                reason = self.held.signal.stopped() => return self.end_unrecorded(reason).await,
                permit = self.admitted(ticket) => match permit {
                    Some(permit) => Some(permit),
                    None => return self.put_back(Message::GiveBack).await,
                },
            },
        };
        if self.agent.is_retired() {
            return self.hand_back().await;
        }
        self.learn().await;
        let decision = self.agent.journal().state().decide(order, self.held.fence.receive, self.held.sent_at);
        let others = self.agent.audit.others();
        if self.is_too_late(&decision) {
            return self.give_back_late().await;
        }
        if let Some(message) = self.outside_window(&decision).await {
            return message;
        }
        if let Some(message) = self.end_if_excluded(&decision, others).await {
            return message;
        }
        match decision {
            Decision::Start | Decision::Resume => self.start(decision == Decision::Resume, others).await,
            Decision::Interrupted => self.end_interrupted().await,
            Decision::Again(outcome) => self.report_again(outcome).await,
            Decision::Cancelled => self.refuse_cancelled(),
            Decision::Replayed { accepted } => self.refuse(RefusalReason::Replayed, &accepted.refusal(order)),
        }
    }

    /// Waits until the order is admitted. While the runner drains, this waits for ever if the order can be left to the
    /// next runner.
    async fn admitted(&self, ticket: &Ticket) -> Option<Permit> {
        if !self.held.can_be_left() {
            return ticket.admitted().await;
        }
        tokio::select! {
            biased;
            () = self.agent.drain.reached(Phase::Draining) => std::future::pending().await,
            permit = ticket.admitted() => permit,
        }
    }

    /// Ends an attempt that must stop before the start of its job is recorded. If another machine works on the order
    /// from another message, a cancelled job has not ended, and the control plane stops that machine.
    async fn end_unrecorded(&self, reason: StopReason) -> Message {
        if reason == StopReason::Cancelled
            && let Some(message) = self.end_if_others_have_it().await
        {
            return message;
        }
        self.end_early(reason).await
    }

    /// Ends an attempt that must stop before its job started.
    async fn end_early(&self, reason: StopReason) -> Message {
        match reason {
            StopReason::Cancelled => self.refuse_cancelled(),
            StopReason::Draining => self.put_back(Message::GiveBack).await,
            StopReason::LeaseLost | StopReason::TimedOut | StopReason::SwitchedOff => {
                self.put_back(Message::Leave).await
            }
        }
    }

    /// Returns the order to the queue, because reports under the replaced key of this runner are refused. A job that ended here is
    /// in the journal: if this machine receives the order again under its new key, it reports that outcome.
    async fn hand_back(&self) -> Message {
        let job = &self.held.order.job;
        info!(job.id = %job, "The order of job `{job}` goes back to the queue, because the key of this runner was replaced");
        self.put_back(Message::GiveBack).await
    }

    /// Records that no attempt of the job has started, so that the next delivery of the order may start one. Records nothing
    /// if an earlier attempt may have started. Writes the note for other machines last, because by then this attempt can
    /// no longer start. Returns `message`.
    async fn put_back(&self, message: Message) -> Message {
        self.learn().await;
        let HeldOrder { order, fence, sent_at, .. } = &**self.held;
        {
            let mut journal = self.agent.journal();
            let Some(record) = journal.state().put_back(order, fence.receive, *sent_at) else { return message };
            if let Err(error) = journal.append(&[record]) {
                warn!(
                    job.id = %order.job,
                    "Cannot record that a job has not started, so its next delivery may end as interrupted: {}",
                    aws::explain(&error)
                );
            }
        }
        if order.redelivery == Redelivery::Interrupted {
            self.agent.unstarted.note(&order.job, *fence, *sent_at).await;
        }
        message
    }

    /// Looks for the note of another machine that no attempt has started before this delivery, and records it in the
    /// journal.
    async fn learn(&self) {
        let HeldOrder { order, fence, sent_at, .. } = &**self.held;
        let Some(before) = self.agent.journal().state().unseen(order, fence.receive, *sent_at) else { return };
        if !self.agent.unstarted.is_noted(&order.job, before, *sent_at).await {
            return;
        }
        let mut journal = self.agent.journal();
        // A newer dispatch of the job may have started meanwhile.
        if journal.state().unseen(order, fence.receive, *sent_at).as_ref() != Some(&before) {
            return;
        }
        let record = Record::PutBack { job: order.job.clone(), fence: before, sent_at: *sent_at };
        if let Err(error) = journal.append(&[record]) {
            warn!(
                job.id = %order.job,
                "Cannot record the note that a job has not started, so the job may end as interrupted: {}",
                aws::explain(&error)
            );
        }
    }

    fn refuse_cancelled(&self) -> Message {
        self.refuse(RefusalReason::Cancelled, "the job was cancelled before it started")
    }

    fn refuse(&self, reason: RefusalReason, detail: &str) -> Message {
        let refusal = verify::Refused { reason, detail: detail.to_owned() };
        let job = Some((self.held.order.job.clone(), self.held.fence));
        let refused = self.agent.refuse(refusal.of(self.held.message.clone(), job), self.held.sent_at);
        if refused { Message::Done } else { Message::Leave }
    }

    async fn start(&self, resume: bool, others: Option<Others>) -> Message {
        let (agent, held) = (self.agent, self.held);
        let order = &held.order;
        held.begin();
        let reporter = Arc::new(self.reporter());
        let refused = consent::refusal(&agent.config, order).or_else(|| consent::unnamed_value(&agent.config, order));
        if let Some(outcome) = refused.or_else(|| order_claims::beyond_terms(order)) {
            warn!(job.id = %order.job, "Did not start job `{}`: the customer has not agreed to its order", order.job);
            return self.accept_and_finish(&reporter, outcome, Start::NotRecorded).await;
        }
        let credentials = match agent.roles.credentials(order).await {
            Ok(credentials) => credentials,
            Err(NoCredentials::RunnerOff(reason)) => {
                self.put_back(Message::Leave).await;
                return self.leave(&reason);
            }
            Err(NoCredentials::ModeOff(reason)) => {
                let outcome = Outcome::Blocked { block: Block::ModeDisabled, reason };
                return self.accept_and_finish(&reporter, outcome, Start::NotRecorded).await;
            }
            Err(NoCredentials::Failed(reason)) => {
                let outcome = Outcome::Failed { reason, partial: false };
                return self.accept_and_finish(&reporter, outcome, Start::NotRecorded).await;
            }
        };
        if let Some(reason) = held.signal.reason() {
            return self.end_unrecorded(reason).await;
        }
        if let Err(why) = self.announce(others).await {
            return self.end_unannounced(&reporter, why).await;
        }
        let started = Record::Started { job: order.job.clone(), fence: held.fence };
        if let Err(error) = agent.journal().append(&[Record::accepted(order), started]) {
            error!(job.id = %order.job, "Did not start job `{}`: {}", order.job, aws::explain(&error));
            return Message::Leave;
        }
        held.mark_started();
        info!(job.id = %order.job, fence = %held.fence, resume, "Started job `{}` ({})", order.job, order.work.kind());
        self.run_job(credentials, &reporter).await
    }

    /// Runs the job, whose start is recorded, and ends the attempt.
    async fn run_job(&self, credentials: SharedCredentialsProvider, reporter: &Arc<AttemptReporter>) -> Message {
        let (agent, held) = (self.agent, self.held);
        let log = self.log();
        let policies = Arc::new(PolicyAudit::new(agent, held));
        let ended = match self.prepare(&log).await {
            Ok((workspace, order, first_box)) => {
                let job = Job {
                    order,
                    fence: held.fence,
                    workspace: workspace.path().to_owned(),
                    log: log.clone(),
                    stop: held.signal.clone(),
                    config: agent.config.clone(),
                    credentials: credentials.clone(),
                    first_box,
                    image: Arc::default(),
                    connections: Arc::new(RefusedConnections { agent: agent.clone(), held: held.clone() }),
                    grants: Arc::new(AttemptGrants::new(agent.grants.clone(), reporter.clone())),
                    iam: Arc::new(IamAudit::new(agent, &held.order.job, held.fence)),
                    policies: policies.clone(),
                    plans: Arc::new(attempt_plans::AttemptPlans(agent.clone())),
                    sensitive_outputs: agent.sensitive_outputs.clone(),
                    roots: agent.trust.roots.now(),
                    hand_over: Arc::new(RunnerHandOver { agent: agent.clone(), held: held.clone() }),
                };
                let ended = supervise::run(agent.kinds.clone(), job, held, reporter, self.limits());
                let before = strangers::look_before(agent, held, &log, credentials.clone());
                let (ended, ()) = tokio::join!(ended, before);
                // A box needs an image that is unpacked, and this job may have unpacked it.
                if agent.boxes.is_empty() {
                    agent.boxes.refill();
                }
                ended
            }
            Err(reason) => Ended::Finished(Outcome::Failed { reason, partial: false }),
        };
        let (ended, trusting) = strangers::check(agent, held, &log, credentials, ended).await;
        self.end(reporter, &log, ended, (policies.results(), trusting)).await
    }

    fn reporter(&self) -> AttemptReporter {
        AttemptReporter::new(self.agent.reporter.clone(), self.held.order.job.clone(), self.held.fence)
    }

    fn log(&self) -> JobLog {
        let path = self.agent.logs.path(&self.held.order.job, self.held.fence);
        JobLog::to_file(&path).unwrap_or_else(|error| {
            warn!("Cannot store the full log: {error}");
            JobLog::default()
        })
    }

    /// Returns an empty workspace, and the order with the sensitive inputs, secrets and sensitive outputs of this
    /// account, and with the newest licence.
    async fn prepare(&self, log: &JobLog) -> Result<(Workspace, Arc<Order>, FirstBox), String> {
        let (workspace, first_box) =
            self.workspace().await.map_err(|error| format!("cannot make a workspace in `state_dir`: {error}"))?;
        let owner = kinds::owner(&self.held.order.work);
        let order = self.agent.sensitive_inputs.add_to(&self.held.order, &self.held.attached, log).await;
        let order = order.map_err(|error| format!("{owner}: {error}"))?;
        let order = self.agent.app_secrets.add_to(order, log).await;
        let order = order.map_err(|error| format!("{owner}: {error}"))?;
        let order = self.agent.sensitive_outputs.add_to(order, log).await;
        let order = order.map_err(|error| format!("{owner}: {error}"))?;
        let order = self.agent.licence.add_to(order).map_err(|error| format!("{owner}: {error}"))?;
        Ok((workspace, Arc::new(order), first_box))
    }

    async fn workspace(&self) -> std::io::Result<(Workspace, FirstBox)> {
        let name = format!("{}.{}", self.held.order.job, self.held.fence);
        let path = self.agent.config.state_dir.join("work").join(name);
        // An earlier try of the same attempt may have left its workspace, whose files may belong to the job's user.
        match sandbox::remove(&path, &self.agent.config).await {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let removed = Workspace::new(path.clone(), self.agent.config.clone());
        let image = self.held.order.tool_image.as_ref().map(|image| &image.artifact.digest);
        let first_box = match self.held.order.work.made_by() {
            // A template, which is rendered later, names the image, so a box made in advance may have another one.
            Work::Action(action) if !action.image.is_empty() => {
                files::make_private_dir(&path)?;
                FirstBox::default()
            }
            Work::Action(_)
            | Work::TerraformModule(_)
            | Work::Sandbox(_)
            | Work::Pulumi(_)
            | Work::PulumiSandbox(_) => {
                let first_box = self.agent.boxes.take(&path, image)?;
                self.agent.boxes.refill();
                first_box
            }
            // These kinds do not start with a program in a box, so a box that was made in advance would not help them.
            Work::ContainerImage(_)
            | Work::CloudformationStack(_)
            | Work::HelmChart(_)
            | Work::KubernetesManifest(_)
            | Work::KubernetesJob(_)
            | Work::CopySecrets(_)
            | Work::Remove(_)
            | Work::DetectDrift(_)
            | Work::Build(_)
            | Work::Preflight(_)
            | Work::Leftovers(_)
            | Work::Health(_)
            | Work::Upgrade(_) => {
                files::make_private_dir(&self.agent.config.state_dir.join("work"))?;
                files::make_new_private_dir(&path)?;
                FirstBox::default()
            }
        };
        Ok((removed, first_box))
    }

    fn limits(&self) -> Limits {
        let order = &self.held.order;
        let left = Duration::from_millis(order.not_after.since(self.agent.server_now(order.issued_at)));
        let timeout = Duration::from_secs(u64::from(order.timeout_secs.min(limits::MAX_JOB_SECS)));
        Limits { time: timeout.min(left), ends_by_expiry: left < timeout, redelivery: order.redelivery }
    }
}

#[cfg(test)]
mod tests;
