//! The state that the loops of one runner share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use freehold_protocol::audit::AuditEvent;
use freehold_protocol::report::Refusal;
use freehold_protocol::{KeyId, Timestamp};
use tokio::time::Instant;
use tracing::{error, warn};

use crate::approvals::plan_store::PlanStore;
use crate::aws;
use crate::config::Config;
use crate::identity::denial::Standing;
use crate::identity::licence::NewestLicence;
use crate::identity::mode::Roles;
use crate::identity::trusts::AppRoles;
use crate::job::{Execute, StopReason};
use crate::keys::enrolment_marker::Enrolled;
use crate::process::clock::ServerClock;
use crate::process::drain::{Drain, Phase};
use crate::record::audit::Audit;
use crate::record::log_store::LogStore;
use crate::record::unstarted_notes::Unstarted;
use crate::sandbox::WarmBoxes;
use crate::secrets::app_secrets::AppSecrets;
use crate::secrets::sensitive_inputs::SensitiveInputs;
use crate::secrets::sensitive_outputs::SensitiveOutputs;
use crate::wire::grants::PendingGrants;
use crate::wire::inbox::{Inbox, InboxError};
use crate::wire::report::Reporter;
use crate::wire::verify::Trust;
use crate::work::admission::Admission;
use crate::work::change_rules::ChangeRules;
use crate::work::in_flight::InFlight;
use crate::work::journal::Journal;
use crate::work::presence::Presence;
use crate::work::standby::Membership;

/// The shared state of one runner.
#[derive(Debug)]
pub struct Agent {
    pub config: Arc<Config>,
    pub trust: Trust,
    pub clock: Arc<ServerClock>,
    pub inbox: Arc<dyn Inbox>,
    pub reporter: Arc<Reporter>,
    /// Whether the reports queue has the hello of this runner's key. The runner takes no order before that.
    pub enrolled: Enrolled,
    pub journal: Mutex<Journal>,
    pub audit: Arc<Audit>,
    pub roles: Roles,
    pub standing: Standing,
    pub sensitive_inputs: SensitiveInputs,
    pub app_secrets: AppSecrets,
    pub sensitive_outputs: SensitiveOutputs,
    /// The newest licence that orders have brought.
    pub licence: NewestLicence,
    /// The plans that wait for an approval.
    pub plans: PlanStore,
    /// Lists the roles that the app created; `None` for a build runner.
    pub app_roles: Option<Arc<dyn AppRoles>>,
    pub grants: Arc<PendingGrants>,
    pub in_flight: InFlight,
    pub admission: Admission,
    pub drain: Drain,
    pub kinds: Arc<dyn Execute>,
    pub logs: LogStore,
    /// The notes, for other machines of the install, about orders that went back to the queue before their job started.
    pub unstarted: Unstarted,
    pub boxes: WarmBoxes,
    /// The group of a machine that exists only while there is work; `None` for any other machine.
    pub membership: Option<Membership>,
    /// Whether the runner ends because there is no work.
    pub unneeded: AtomicBool,
    /// Whether the customer has revoked the session of the runner.
    pub revoked: AtomicBool,
    /// Whether the runner ends so that another program takes its place.
    pub handing_over: AtomicBool,
    /// The reason why the runner gave up. Empty while it has not given up.
    pub fatal: OnceLock<String>,
    /// The absence of the runner, as the control plane knows it.
    pub presence: Presence,
    /// The customer's rules about when changes may start.
    pub changes: ChangeRules,
    /// The key that has replaced this runner's key. Empty while the key is in use.
    pub replaced_by: OnceLock<KeyId>,
}

impl Agent {
    /// Returns the journal.
    pub fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the estimate of the control plane's time, or `known` if that is later.
    pub fn server_now(&self, known: Timestamp) -> Timestamp {
        self.clock.now(Instant::now()).unwrap_or(known).max(known)
    }

    /// Drains the runner because it cannot work. `why` gives the reason and the fix.
    pub fn give_up(&self, why: String) {
        error!("{why}");
        let _ = self.fatal.set(why);
        self.drain.advance(Phase::Draining);
    }

    /// Drains the runner because `by` has replaced its key. Orders that the next runner can resume go back to the
    /// queue.
    pub fn retire(&self, by: KeyId) {
        let _ = self.replaced_by.set(by);
        self.drain.advance(Phase::Draining);
        self.in_flight.stop_resumable(StopReason::Draining);
    }

    /// Ends the loops, so that the runner begins again with a new session. `why` states that the customer has revoked
    /// the present session. That session can renew no lease, and the sessions of the jobs were revoked too.
    pub fn renew_session(&self, why: &str) {
        if !self.revoked.swap(true, Ordering::Relaxed) {
            warn!("{why}; this runner ends its jobs and continues with a new session");
        }
        self.drain.advance(Phase::Draining);
        self.in_flight.stop_all(StopReason::LeaseLost);
    }

    /// Returns whether the customer has revoked the session of the runner.
    pub fn is_revoked(&self) -> bool {
        self.revoked.load(Ordering::Relaxed)
    }

    /// Returns whether an order is in flight, or a report has not been sent yet.
    pub fn has_work(&self) -> bool {
        !self.in_flight.is_empty() || !self.reporter.is_done()
    }

    /// Ends the runner because there is no work.
    pub fn end_unneeded(&self) {
        self.unneeded.store(true, Ordering::Relaxed);
        self.drain.advance(Phase::Draining);
    }

    /// Notes that another program takes the place of this one when the runner has drained.
    pub fn hand_over(&self) {
        self.handing_over.store(true, Ordering::Relaxed);
    }

    /// Returns whether another key has replaced this runner's key, so that its reports are refused.
    pub fn is_retired(&self) -> bool {
        self.replaced_by.get().is_some()
    }

    /// Records and reports a refused message, which the queue took at `sent_at`. Returns whether the message may be
    /// deleted.
    pub fn refuse(&self, refusal: Refusal, sent_at: Option<Timestamp>) -> bool {
        if let Err(error) = self.audit.record(AuditEvent::Refused { refusal: refusal.clone(), sent_at }) {
            error!("{}", aws::explain(&error));
            return false;
        }
        self.report_refusal(refusal)
    }

    /// Reports a refused message, whose refusal is recorded. Returns whether the message may be deleted.
    pub fn report_refusal(&self, refusal: Refusal) -> bool {
        warn!(
            reason = refusal.reason.as_str(),
            message.digest = %refusal.message,
            "Refused a message: {}",
            refusal.detail
        );
        match self.reporter.refused(refusal) {
            Ok(()) => true,
            Err(error) => {
                error!("Cannot report a refusal; the message will be delivered again: {}", aws::explain(&error));
                false
            }
        }
    }

    /// Deletes a message that is settled. If deleting fails, the message is delivered again and recognized.
    pub async fn delete(&self, handle: &str) {
        match self.inbox.delete(handle).await {
            Ok(()) => {}
            Err(InboxError::Gone(_)) => {}
            Err(error) => warn!("A message that was handled could not be deleted and will be delivered again: {error}"),
        }
    }
}
