//! Burns a grant and answers with manifests and short-lived URLs: one artifact, for one attempt, once.

use std::sync::Arc;

use base64::Engine as _;
use freehold_domain::build::{Build, BuildState};
use freehold_domain::job::JobState;
use freehold_domain::workflow::Target;
use freehold_protocol::grant::{ArtifactGrant, BlobUrl, GrantAnswer, ManifestBytes};
use freehold_protocol::order::Artifact;
use freehold_protocol::report::Fence;
use freehold_protocol::{Digest, Envelope, GrantId, TenantName};

use crate::AppError;
use crate::messages::GrantMessage;
use crate::ports::{Clock, Committed, Expect, OrdersQueue, Registry, Signer, Store};
use crate::records::{self, BurntGrant, Refused, Stored, TRACE_TTL_SECS, build_key, grant_key, load, put_until};

/// How long a grant's answer is worth something, in seconds; its URLs last no longer than the registry lets them.
pub const GRANT_SECS: u64 = 600;

/// What granting needs.
#[derive(Clone)]
pub struct GrantArtifact {
    pub tenant: TenantName,
    pub store: Arc<dyn Store>,
    pub registry: Arc<dyn Registry>,
    pub orders: Arc<dyn OrdersQueue>,
    pub signer: Arc<dyn Signer>,
    pub clock: Arc<dyn Clock>,
}

impl GrantArtifact {
    /// Answers one request on the install's orders queue. A redelivery of the same request is answered again with the
    /// same deduplication id; any other second request for the grant is refused.
    ///
    /// # Errors
    /// Transient when a service did not answer; the request stays in its queue.
    pub async fn answer(&self, request: &GrantMessage) -> Result<(), AppError> {
        let install = records::install(&*self.store, &request.install).await?.value;
        let url = install
            .orders_queue_url
            .ok_or_else(|| AppError::internal(format!("install `{}` has no orders queue", install.id)))?;
        let (answer, dedup) = match self.allowed(request).await? {
            Ok(artifact) => (self.granted(&artifact, request).await?, request.grant.to_string()),
            Err(reason) => {
                self.record_refusal(request, &reason).await?;
                (GrantAnswer::Refused { reason }, format!("{}.refused.{}", request.grant, request.seq))
            }
        };
        let now = self.clock.now();
        let grant = ArtifactGrant {
            tenant: self.tenant.clone(),
            install: install.id,
            grant: request.grant.clone(),
            job: request.job.clone(),
            fence: request.fence,
            artifact: request.artifact.clone(),
            issued_at: now,
            not_after: now.plus_secs(GRANT_SECS),
            answer,
        };
        let delegate = self.signer.delegate(grant.not_after).await?;
        let envelope = Envelope::seal_delegated(&grant, &delegate.key, &delegate.certificate)?;
        self.orders.send(&url, "grants", &dedup, &envelope.to_json()?).await?;
        Ok(())
    }

    /// Checks a request against the job as it is now, then burns the grant.
    async fn allowed(&self, request: &GrantMessage) -> Result<Result<Artifact, String>, AppError> {
        let job = records::job(&*self.store, &request.job).await?.value;
        let holds = matches!(&job.state, JobState::Running { fence, .. } if *fence == request.fence);
        if !holds {
            return Ok(Err(format!("attempt {} does not hold job `{}`", request.fence, job.id)));
        }
        let Fence { dispatch, receive } = request.fence;
        if request.grant != GrantId::derive(&job.id, dispatch, receive, &request.artifact) {
            return Ok(Err(format!("grant `{}` is not of this attempt", request.grant)));
        }
        let Some(artifact) = self.artifact_of(&job).await? else {
            return Ok(Err(format!("job `{}` needs no artifact", job.id)));
        };
        if artifact.digest != request.artifact {
            return Ok(Err(format!("artifact `{}` is not the one of job `{}`", request.artifact, job.id)));
        }
        if let Some(foreign) = request.missing.iter().find(|digest| !has_blob(&artifact, digest)) {
            return Ok(Err(format!("blob `{foreign}` is not part of artifact `{}`", artifact.digest)));
        }
        Ok(if self.burn(request).await? { Ok(artifact) } else { Err("grant was used before".into()) })
    }

    /// Writes the grant down as used; true when this request used it, now or before.
    async fn burn(&self, request: &GrantMessage) -> Result<bool, AppError> {
        let now = self.clock.now();
        let burnt = BurntGrant {
            grant: request.grant.clone(),
            job: request.job.clone(),
            fence: request.fence,
            seq: request.seq,
            artifact: request.artifact.clone(),
            at: now,
        };
        let write = put_until(&burnt, Expect::Absent, now.plus_secs(TRACE_TTL_SECS))?;
        match self.store.commit(vec![write]).await? {
            Committed::Done => Ok(true),
            Committed::Conflict(_) => {
                let earlier: Option<Stored<BurntGrant>> = load(&*self.store, &grant_key(&request.grant)).await?;
                Ok(earlier.is_some_and(|earlier| earlier.value.seq == request.seq))
            }
        }
    }

    async fn artifact_of(&self, job: &freehold_domain::Job) -> Result<Option<Artifact>, AppError> {
        let workflow = records::workflow(&*self.store, &job.workflow).await?.value;
        let node = workflow.nodes.iter().find(|node| node.name == job.node);
        let Some(Target::Component { build, .. }) = node.map(|node| &node.target) else { return Ok(None) };
        let install = records::install(&*self.store, &job.install).await?.value;
        let Some(app) = install.app() else { return Ok(None) };
        let record: Option<Stored<Build>> = load(&*self.store, &build_key(app, build)).await?;
        Ok(record.and_then(|record| match record.value.state {
            BuildState::Built { artifact, .. } => Some(artifact),
            BuildState::Building { .. } | BuildState::Failed { .. } => None,
        }))
    }

    async fn granted(&self, artifact: &Artifact, request: &GrantMessage) -> Result<GrantAnswer, AppError> {
        let mut manifests = Vec::new();
        for manifest in &artifact.manifests {
            let bytes = self.registry.manifest(manifest).await?;
            if Digest::of(&bytes) != manifest.digest {
                return Err(AppError::internal(format!("tenant registry holds other bytes for `{}`", manifest.digest)));
            }
            manifests.push(ManifestBytes {
                media_type: manifest.media_type.clone(),
                digest: manifest.digest.clone(),
                bytes: base64::engine::general_purpose::STANDARD.encode(&bytes),
            });
        }
        let mut blobs = Vec::new();
        for blob in artifact.blobs.iter().filter(|blob| request.missing.contains(&blob.digest)) {
            let url = self.registry.blob_url(blob).await?;
            blobs.push(BlobUrl { digest: blob.digest.clone(), size: blob.size, url });
        }
        tracing::info!(job.id = %request.job, "Granted `{}` to attempt {}", artifact.digest, request.fence);
        Ok(GrantAnswer::Granted { manifests, blobs })
    }

    async fn record_refusal(&self, request: &GrantMessage, reason: &str) -> Result<(), AppError> {
        tracing::warn!(job.id = %request.job, "Refused grant `{}`: {reason}", request.grant);
        let refused = Refused {
            // The grant's own partition: this function may write nowhere else.
            pk: grant_key(&request.grant).pk,
            message: Digest::of(format!("{}#{}", request.grant, request.seq).as_bytes()),
            at: self.clock.now(),
            runner: None,
            reason: reason.to_owned(),
        };
        records::store_refusal(&*self.store, &refused).await
    }
}

fn has_blob(artifact: &Artifact, digest: &Digest) -> bool {
    artifact.blobs.iter().any(|blob| blob.digest == *digest)
}
