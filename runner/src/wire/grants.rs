//! Requests for artifacts. They are sent as reports, and the answers come on the orders queue.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use freehold_protocol::grant::{ArtifactGrant, GrantAnswer, GrantRefusal};
use freehold_protocol::order::{Artifact, Order};
use freehold_protocol::provenance::BuildFacts;
use freehold_protocol::report::{AttemptEvent, Fence};
use freehold_protocol::{Digest, GrantId};
use tokio::sync::oneshot;

use crate::job::{GrantError, Grants, Job};
use crate::wire::report::AttemptReporter;

/// The time limit for the answer to a request.
pub const ANSWER_DEADLINE: Duration = Duration::from_secs(300);

/// The requests that wait for an answer.
#[derive(Debug, Default)]
pub struct PendingGrants {
    waiting: Mutex<HashMap<GrantId, oneshot::Sender<ArtifactGrant>>>,
}

impl PendingGrants {
    /// Delivers `grant` to the attempt that requested it. Returns false when no attempt waits for it.
    pub fn deliver(&self, grant: ArtifactGrant) -> bool {
        let waiting = self.lock().remove(&grant.grant);
        waiting.is_some_and(|sender| sender.send(grant).is_ok())
    }

    fn wait_for(&self, id: &GrantId) -> oneshot::Receiver<ArtifactGrant> {
        let (sender, receiver) = oneshot::channel();
        self.lock().insert(id.clone(), sender);
        receiver
    }

    fn forget(&self, id: &GrantId) {
        self.lock().remove(id);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<GrantId, oneshot::Sender<ArtifactGrant>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Requests grants for one attempt.
#[derive(Debug)]
pub struct AttemptGrants {
    pending: Arc<PendingGrants>,
    reporter: Arc<AttemptReporter>,
}

impl AttemptGrants {
    /// Returns the grants of the attempt that reports to `reporter`.
    pub fn new(pending: Arc<PendingGrants>, reporter: Arc<AttemptReporter>) -> Self {
        Self { pending, reporter }
    }
}

#[async_trait]
impl Grants for AttemptGrants {
    async fn request(
        &self,
        job: &Job,
        artifact: &Digest,
        missing: Vec<Digest>,
        round: u32,
    ) -> Result<GrantAnswer, GrantError> {
        let grant = GrantId::of_round(&job.order.job, job.fence, artifact, round);
        let event = AttemptEvent::GrantRequest { grant: grant.clone(), artifact: artifact.clone(), missing, round };
        self.ask(job, artifact, grant, event).await
    }

    async fn attest(&self, job: &Job, artifact: &Artifact, facts: BuildFacts) -> Result<GrantAnswer, GrantError> {
        let grant = GrantId::of_statement(&job.order.job, job.fence, &artifact.digest);
        let event = AttemptEvent::AttestRequest { grant: grant.clone(), artifact: artifact.clone(), facts };
        self.ask(job, &artifact.digest, grant, event).await
    }
}

impl AttemptGrants {
    async fn ask(
        &self,
        job: &Job,
        artifact: &Digest,
        grant: GrantId,
        event: AttemptEvent,
    ) -> Result<GrantAnswer, GrantError> {
        let answer = self.pending.wait_for(&grant);
        // The start of the job may not have been reported yet. The control plane must get it before this request.
        self.reporter
            .start()
            .and_then(|()| self.reporter.event(event))
            .map_err(|error| GrantError::Unsent { artifact: artifact.clone(), reason: error.to_string() })?;
        let result = tokio::select! {
            answer = tokio::time::timeout(ANSWER_DEADLINE, answer) => match answer {
                Ok(Ok(answer)) => Ok(check(&job.order, job.fence, artifact, answer)),
                Ok(Err(_)) | Err(_) => Err(GrantError::TimedOut {
                    artifact: artifact.clone(),
                    waited_secs: ANSWER_DEADLINE.as_secs(),
                }),
            },
            _ = job.stop.stopped() => Err(GrantError::Stopped(artifact.clone())),
        };
        self.pending.forget(&grant);
        result
    }
}

/// Returns the answer if it is for this artifact and for the attempt `fence` at `order`. Otherwise returns a refusal
/// that names the difference.
pub fn check(order: &Order, fence: Fence, artifact: &Digest, grant: ArtifactGrant) -> GrantAnswer {
    let wrong = [
        (grant.tenant != order.tenant || grant.install != order.install, "install"),
        (grant.job != order.job, "job"),
        (grant.fence != fence, "attempt"),
        (grant.artifact != *artifact, "artifact"),
    ];
    match wrong.iter().find(|(wrong, _)| *wrong) {
        Some((_, what)) => {
            let reason = format!("the answer is for another {what}");
            GrantAnswer::Refused { refusal: GrantRefusal::OtherAttempt, reason }
        }
        None => grant.answer,
    }
}
