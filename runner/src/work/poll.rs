//! Polls the orders queue and handles each message. Polling continues while jobs run, so that cancels and grants do not
//! have to wait for a job.

use std::sync::Arc;
use std::time::Duration;

use freehold_protocol::report::{AwayReason, RefusalReason};
use tokio::time::Instant;
use tracing::{info, warn};

use crate::backoff::Backoff;
use crate::identity::denial::{DENIED_LIMIT, Refused};
use crate::job::StopReason;
use crate::process::drain::Phase;
use crate::process::watchdog::Beat;
use crate::repeat::Repeat;
use crate::wire::inbox::{Delivery, InboxError};
use crate::wire::message_group;
use crate::wire::verify::{self, Arrival, Message};
use crate::work::agent::Agent;
use crate::work::attempt;
use crate::work::control;
use crate::work::in_flight::Taken;
use crate::work::not_understood;
use crate::work::standby::{self, Standby};

/// The time that one poll waits for messages, in seconds. An idle runner makes one request in this time.
const WAIT_SECS: u64 = 20;
/// The time that one poll waits while the runner drains, in seconds.
const DRAINING_WAIT_SECS: u64 = 1;
/// The time limit of one poll, in all cases.
const DEADLINE: Duration = Duration::from_secs(35);

/// The longest pause between two signs of progress while the runner is not enrolled.
const NOT_ENROLLED: Duration = Duration::from_secs(30);

/// Receives messages until the runner drains and its jobs have ended, or its key was replaced. Receives none before the
/// reports queue has the hello of this runner's key. If the machine exists only while there is work, the runner drains
/// when no work is left.
pub async fn run(agent: Arc<Agent>, beat: Beat) {
    if !enrolled(&agent, &beat).await {
        return;
    }
    let mut poller = Poller::new(agent.clone());
    loop {
        beat.alive();
        let draining = agent.drain.phase() >= Phase::Draining;
        // A runner whose key was replaced gets no answer that a running job could wait for.
        if draining && (agent.is_retired() || !agent.in_flight.is_busy()) {
            return;
        }
        if !draining && poller.gives_up().await {
            continue;
        }
        match receive(&agent, draining).await {
            Ok(deliveries) => {
                poller.handle(deliveries);
                // The attempts for these orders run before the next request, because it takes long to prepare one.
                tokio::task::yield_now().await;
            }
            Err(error) => poller.back_off(&error, draining).await,
        }
    }
}

async fn receive(agent: &Agent, draining: bool) -> Result<Vec<Delivery>, InboxError> {
    let wait = if draining { DRAINING_WAIT_SECS } else { WAIT_SECS };
    let answer = tokio::time::timeout(DEADLINE, agent.inbox.receive(wait)).await;
    let late = || Err(InboxError::Transient(format!("no answer within {} s", DEADLINE.as_secs())));
    answer.unwrap_or_else(|_| late())
}

/// The state that the loop keeps from poll to poll.
struct Poller {
    agent: Arc<Agent>,
    backoff: Backoff,
    /// The time since which the queue has refused the runner; `None` while the queue accepts the runner.
    denied_since: Option<Instant>,
    warned: Repeat,
    /// `None` if the machine does not depend on whether there is work.
    standby: Option<Standby>,
}

impl Poller {
    fn new(agent: Arc<Agent>) -> Self {
        Self {
            backoff: Backoff::new(Duration::from_millis(200), Duration::from_secs(30)),
            denied_since: None,
            warned: Repeat::default(),
            standby: agent.membership.clone().map(Standby::new),
            agent,
        }
    }

    /// Prepares the next poll on a machine that exists only while there is work. Drains a runner that could not do its
    /// work for too long, and returns whether this happened.
    async fn gives_up(&mut self) -> bool {
        let Some(standby) = &mut self.standby else { return false };
        standby.before_look(self.agent.has_work()).await;
        let Some(why) = standby.useless().filter(|_| self.agent.in_flight.is_empty()) else { return false };
        self.agent.give_up(why);
        true
    }

    /// Starts to handle the messages of a poll. Ends the runner if its machine is not needed any more.
    fn handle(&mut self, deliveries: Vec<Delivery>) {
        self.backoff.succeeded();
        self.denied_since = None;
        self.agent.presence.come_back();
        if let Some(standby) = &mut self.standby {
            standby.looked();
        }
        if self.warned.is_over() {
            info!("The runner takes orders again");
        }
        for delivery in deliveries {
            take(&self.agent, delivery);
        }
        if self.standby.as_ref().is_some_and(|standby| standby.may_end(self.agent.has_work())) {
            info!("There is no work: this runner ends, and its machine with it");
            self.agent.end_unneeded();
        }
    }

    /// Acts on the reason why a poll failed, and waits before the next one.
    async fn back_off(&mut self, error: &InboxError, draining: bool) {
        let (text, cause) = explained(&self.agent, error).await;
        // `Agent::renew_session` reports a revoked session.
        if !matches!(cause, Cause::Revoked) && self.warned.is_due(&text, Instant::now()) {
            warn!("Cannot take orders: {text}");
        }
        self.respond(cause, &text);
        let next = if draining { Phase::Stopping } else { Phase::Draining };
        tokio::select! {
            () = tokio::time::sleep(self.backoff.failed()) => {}
            () = self.agent.drain.reached(next) => {}
        }
    }

    fn respond(&mut self, cause: Cause, text: &str) {
        let agent = &self.agent;
        self.denied_since = match cause {
            Cause::SwitchedOff => {
                agent.presence.leave(&agent.reporter, AwayReason::SwitchedOff, text);
                agent.in_flight.stop_all(StopReason::SwitchedOff);
                None
            }
            Cause::StackGone => {
                agent.presence.leave(&agent.reporter, AwayReason::StackDeleted, text);
                still_denied(agent, text, self.denied_since)
            }
            Cause::Revoked => {
                agent.renew_session(text);
                None
            }
            Cause::Denied => still_denied(agent, text, self.denied_since),
            Cause::Passing => None,
        };
    }
}

/// Waits until the runner is enrolled. Returns false if it drains first. Drains a runner whose machine exists only
/// while there is work, if it cannot enrol for too long.
async fn enrolled(agent: &Agent, beat: &Beat) -> bool {
    let since = Instant::now();
    loop {
        beat.alive();
        tokio::select! {
            biased;
            () = agent.enrolled.reached() => return true,
            () = agent.drain.reached(Phase::Draining) => return false,
            () = tokio::time::sleep(NOT_ENROLLED) => {}
        }
        if agent.membership.is_some() && since.elapsed() >= standby::USELESS {
            agent.give_up(standby::useless("enrol"));
        }
    }
}

/// The reason why no orders arrive.
enum Cause {
    SwitchedOff,
    StackGone,
    /// The customer has revoked the runner's session, and a new session has permissions.
    Revoked,
    /// The queue denies access to the runner for another reason.
    Denied,
    /// A temporary error.
    Passing,
}

/// Returns the reason why no orders arrive, as a sentence and as its kind.
async fn explained(agent: &Agent, error: &InboxError) -> (String, Cause) {
    let InboxError::Denied(_) = error else {
        return (error.to_string(), Cause::Passing);
    };
    match agent.standing.refused(&error.to_string()).await {
        Refused::SwitchedOff(text) => (text, Cause::SwitchedOff),
        Refused::StackGone(text) => (text, Cause::StackGone),
        Refused::Revoked(text) => (text, Cause::Revoked),
        Refused::Otherwise(text) => (text, Cause::Denied),
    }
}

fn still_denied(agent: &Agent, text: &str, since: Option<Instant>) -> Option<Instant> {
    let since = since.unwrap_or_else(Instant::now);
    if since.elapsed() >= DENIED_LIMIT {
        if !agent.presence.is_away() {
            agent.presence.leave(&agent.reporter, AwayReason::NoOrders, text);
        }
        agent.give_up(format!(
            "the orders queue has refused this runner for {} minutes: {text}",
            DENIED_LIMIT.as_secs() / 60
        ));
    }
    Some(since)
}

/// Verifies one message and starts to handle it. Does not block.
pub(crate) fn take(agent: &Arc<Agent>, delivery: Delivery) {
    let now = agent.server_now(delivery.sent_at);
    // Without the time at which the queue took a message, the present time counts.
    let sent_at = delivery.known_sent_at().unwrap_or(now);
    let arrival = Arrival { receive: delivery.receive, sent_at, now };
    match agent.trust.verify(&delivery.body, arrival) {
        Ok(Message::Order(order)) => match message_group::refusal(&order, &delivery) {
            None => take_order(agent, *order, &delivery),
            Some(refusal) => control::refuse(agent, refusal, &delivery),
        },
        Ok(Message::Cancel(cancel)) => control::cancel(agent, &cancel, delivery),
        Ok(Message::Grant(grant)) => control::grant(agent, *grant, delivery),
        Ok(Message::Retired(notice)) => control::retired(agent, &notice, delivery),
        Err(refusal) if not_understood::is_about_order(&refusal) => {
            tokio::spawn(not_understood::settle(agent.clone(), refusal, delivery));
        }
        Err(refusal) => control::refuse(agent, refusal, &delivery),
    }
}

fn take_order(agent: &Arc<Agent>, order: freehold_protocol::order::Order, delivery: &Delivery) {
    let job = order.job.clone();
    let ticket = agent.admission.ticket(&order.group);
    match agent.in_flight.take(order, delivery) {
        Taken::New(held) => {
            tokio::spawn(attempt::run(agent.clone(), held, ticket));
        }
        Taken::Adopted => {
            info!(job.id = %job, "Job `{job}` was delivered again while it is in flight; the attempt continues under the new lease")
        }
        Taken::Undecided => {
            info!(job.id = %job, "The order of job `{job}` stays in the queue: this runner has it from another message, and may refuse that one")
        }
        Taken::Stopping => info!(job.id = %job, "Job `{job}` was delivered again while it is being stopped"),
        Taken::Copy(copy) => {
            let detail = "the order is a copy: this runner has the order from another message".to_owned();
            let refused = verify::Refused { reason: RefusalReason::Replayed, detail };
            control::refuse(agent, refused.of(copy.message.clone(), Some((job, copy.fence))), delivery);
        }
    }
}
