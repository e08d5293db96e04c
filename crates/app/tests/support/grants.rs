//! Requests for the blobs of artifacts, and the grants that answer them.

use freehold_app::messages::{GrantMessage, Wants};
use freehold_protocol::grant::{ArtifactGrant, GrantAnswer};
use freehold_protocol::order::Artifact;
use freehold_protocol::report::Fence;
use freehold_protocol::{Digest, Envelope, GrantId, JobId};

use super::{World, globex};

/// Returns the request of the first attempt at a job of `globex` for these blobs of an artifact.
pub(crate) fn grant_request(job: &JobId, artifact: &Digest, missing: Vec<Digest>, seq: u64) -> GrantMessage {
    GrantMessage {
        install: globex(),
        grant: GrantId::derive(job, 1, 1, artifact),
        job: job.clone(),
        fence: Fence { dispatch: 1, receive: 1 },
        seq,
        artifact: artifact.clone(),
        wants: Wants::Blobs { missing, round: 0 },
    }
}

impl World {
    /// Requests all blobs of `artifact` for a job of `globex`, then those of another artifact; returns both answers.
    pub(crate) async fn request_blobs(&mut self, job: &JobId, artifact: &Artifact) -> Vec<GrantAnswer> {
        self.forget_orders();
        let missing: Vec<Digest> = artifact.blobs.iter().map(|blob| blob.digest.clone()).collect();
        for (seq, digest) in [(2, &artifact.digest), (3, &Digest::of(b"other"))] {
            let request = grant_request(job, digest, missing.clone(), seq);
            self.grant_artifact().answer(&request).await.unwrap();
        }
        self.grants().into_iter().map(|(_, grant)| grant.answer).collect()
    }

    /// Returns the grants in the orders queues, with their deduplication ids.
    pub(crate) fn grants(&self) -> Vec<(String, ArtifactGrant)> {
        let orders = self.memory.orders.lock().unwrap().clone();
        let open = |body: &str| {
            let envelope = Envelope::parse(body.as_bytes()).unwrap();
            envelope.open_delegated(&self.keys.public(), &self.tenant, self.now()).unwrap()
        };
        let grants = orders.into_iter().filter(|(_, group, ..)| group == "grants");
        grants.map(|(_, _, dedup, body)| (dedup, open(&body))).collect()
    }
}
