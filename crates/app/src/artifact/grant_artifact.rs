//! Answers a runner's request for one artifact with manifests and short-lived URLs. A grant is used once, by one
//! attempt. Also signs the statement about an artifact that a build pushed, because this is the only function that
//! reads the registry.

use std::sync::Arc;

use base64::Engine as _;
use freehold_domain::Job;
use freehold_domain::build::{Build, BuildState};
use freehold_domain::install::Install;
use freehold_domain::job::JobState;
use freehold_domain::workflow::{Request, Target, Workflow};
use freehold_protocol::grant::{ArtifactGrant, BlobUrl, GrantAnswer, GrantRefusal, ManifestBytes, max_rounds};
use freehold_protocol::order::{Artifact, Descriptor};
use freehold_protocol::provenance::{BuildFacts, ExternalParameters, InternalParameters, Statement};
use freehold_protocol::{BuildId, Digest, Envelope, GrantId, KeyUse, TenantName};

use crate::AppError;
use crate::artifact::denial::{Denied, deny};
use crate::artifact::runner_program;
use crate::messages::{GrantMessage, Wants};
use crate::ports::{Clock, Committed, Expect, Objects, OrdersQueue, PortError, Registry, Signer, Store};
use crate::subject;
use crate::table::{
    self, BurntGrant, Contact, Record as _, Refused, Stored, TRACE_TTL_SECS, build_key, grant_key, grants_pk, load,
    put_until,
};

/// The time for which a signed grant is valid, in seconds. The registry sets a separate limit for the URLs in the
/// grant.
pub const GRANT_SECS: u64 = 600;

/// The time in seconds within which a redelivered request is answered again. It is longer than the visibility timeout
/// of the grants queue, after which SQS delivers the request of a failed function again. It ends within the five
/// minutes in which SQS drops a second message with the same deduplication id, so the runner gets one answer.
pub const REDELIVERED_SECS: u64 = 240;
/// The maximum time from the mark of a grant as used to the failure of the same delivery, in seconds. An older mark is
/// from another delivery.
const FUNCTION_SECS: u64 = 60;

/// The use case that grants an artifact, with its ports.
#[derive(Clone)]
pub struct GrantArtifact {
    pub tenant: TenantName,
    pub store: Arc<dyn Store>,
    pub registry: Arc<dyn Registry>,
    pub objects: Arc<dyn Objects>,
    pub orders: Arc<dyn OrdersQueue>,
    pub signer: Arc<dyn Signer>,
    pub clock: Arc<dyn Clock>,
}

impl GrantArtifact {
    /// The kinds of messages that the use case signs with a delegate key. The root key signs the statements about
    /// artifacts.
    pub const SIGNS: [KeyUse; 1] = [KeyUse::Grants];

    /// Answers one request through the install's orders queue. If the same request is redelivered within
    /// [`REDELIVERED_SECS`], the second answer has the same deduplication id. Any other second request for the same
    /// grant is refused.
    ///
    /// # Errors
    /// Transient when a service did not answer; the request then stays in its queue.
    pub async fn answer(&self, request: &GrantMessage) -> Result<(), AppError> {
        let answered = self.answer_once(request).await;
        if answered.is_err()
            && let Err(error) = self.leave_unanswered(request).await
        {
            tracing::warn!(
                job.id = %request.job,
                "Could not record that the request for grant `{}` failed; the grant stays marked as used: {error}",
                request.grant
            );
        }
        answered
    }

    async fn answer_once(&self, request: &GrantMessage) -> Result<(), AppError> {
        let install: Option<Stored<Install>> = load(&*self.store, &table::install_key(&request.install)).await?;
        let Some(install) = install.map(|found| found.value).filter(|install| install.forgetting.is_none()) else {
            tracing::info!(
                job.id = %request.job,
                "Did not answer a grant request of install `{}`, which does not exist or is being forgotten",
                request.install
            );
            return Ok(());
        };
        subject::note_install(&install);
        if self.store.get(&table::job_key(&request.job)).await?.is_none() {
            tracing::info!(
                job.id = %request.job,
                "Did not answer a grant request for job `{}`, which does not exist any more",
                request.job
            );
            return Ok(());
        }
        let url = install
            .orders_queue_url
            .clone()
            .ok_or_else(|| AppError::internal(format!("install `{}` has no orders queue", install.id)))?;
        let (answer, dedup) = match self.decide(&install, request).await? {
            Ok(answer) => (answer, request.grant.to_string()),
            Err(Denied { refusal, reason }) => {
                self.record_refusal(request, refusal, &reason).await?;
                (GrantAnswer::Refused { refusal, reason }, format!("{}.refused.{}", request.grant, request.seq))
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

    async fn decide(&self, install: &Install, request: &GrantMessage) -> Result<Result<GrantAnswer, Denied>, AppError> {
        let job = table::job(&*self.store, &request.job).await?.value;
        let contact = load::<Contact>(&*self.store, &table::contact_key(&install.id)).await?;
        if contact.is_some_and(|found| found.value.contact.is_cut_off()) {
            let reason = format!(
                "the runner of install `{}` has lost its access, and has not announced itself since",
                install.id
            );
            return Ok(Err(deny(GrantRefusal::CutOff, reason)));
        }
        if let Err(no) = self.may_ask(install, &job, request) {
            return Ok(Err(no));
        }
        match &request.wants {
            Wants::Blobs { .. } if runner_program::is_upgraded_by(&job) => self.grant_program(&job, request).await,
            Wants::Blobs { missing, round } => match self.check_and_burn(&job, request, missing, *round).await? {
                Ok(artifact) => Ok(Ok(self.grant(&artifact, missing, request).await?)),
                Err(no) => Ok(Err(no)),
            },
            Wants::Statement { artifact, facts } => self.attest(&job, request, artifact, facts).await,
        }
    }

    /// Grants the archive of a runner's program, once for each attempt.
    async fn grant_program(&self, job: &Job, request: &GrantMessage) -> Result<Result<GrantAnswer, Denied>, AppError> {
        let program = match runner_program::asked_for(&*self.store, job, request).await? {
            Ok(program) => program,
            Err(no) => return Ok(Err(no)),
        };
        if !self.burn(request).await? {
            return Ok(Err(deny(GrantRefusal::UsedBefore, "grant was used before")));
        }
        Ok(Ok(runner_program::grant(&*self.objects, job, request, &program).await?))
    }

    /// Checks that the sender may use a grant: its attempt is the job's current attempt, the order has not expired, and
    /// the install is not disabled.
    fn may_ask(&self, install: &Install, job: &Job, request: &GrantMessage) -> Result<(), Denied> {
        let holds = matches!(&job.state, JobState::Running { fence, .. } if *fence == request.fence);
        if !holds || job.install != request.install {
            let reason = format!("attempt {} is not the current attempt of job `{}`", request.fence, job.id);
            return Err(deny(GrantRefusal::OtherAttempt, reason));
        }
        if let Some(why) = &install.disabled {
            return Err(deny(GrantRefusal::InstallDisabled, format!("install `{}` is disabled: {why}", install.id)));
        }
        if self.clock.now() > job.not_after {
            return Err(deny(GrantRefusal::Expired, format!("order of job `{}` has expired", job.id)));
        }
        Ok(())
    }

    /// Checks a request for blobs against the current state of the job, then marks the grant as used.
    async fn check_and_burn(
        &self,
        job: &Job,
        request: &GrantMessage,
        missing: &[Digest],
        round: u32,
    ) -> Result<Result<Artifact, Denied>, AppError> {
        let id = |round| GrantId::of_round(&job.id, request.fence, &request.artifact, round);
        if request.grant != id(round) {
            let reason = format!("grant `{}` does not belong to this attempt and artifact", request.grant);
            return Ok(Err(deny(GrantRefusal::OtherAttempt, reason)));
        }
        let Some(build) = self.build_of(job, &request.artifact).await? else {
            return Ok(Err(deny(GrantRefusal::NoArtifact, format!("job `{}` needs no artifact", job.id))));
        };
        let BuildState::Built { artifact, .. } = build.state else {
            return Ok(Err(deny(GrantRefusal::NoArtifact, format!("build `{}` made no artifact", build.id))));
        };
        if artifact.digest != request.artifact {
            let reason = format!("artifact `{}` is not the artifact of job `{}`", request.artifact, job.id);
            return Ok(Err(deny(GrantRefusal::OtherDigest, reason)));
        }
        let most = max_rounds(artifact.blobs.len());
        if round >= most {
            let reason = format!(
                "attempt {} has already received {most} grants for its artifact, which is the maximum",
                request.fence
            );
            return Ok(Err(deny(GrantRefusal::TooMany, reason)));
        }
        if let Some(why) = &build.revoked {
            return Ok(Err(deny(GrantRefusal::Revoked, format!("artifact `{}` was revoked: {why}", artifact.digest))));
        }
        if let Some(foreign) = missing.iter().find(|digest| !has_blob(&artifact, digest)) {
            let reason = format!("blob `{foreign}` is not part of artifact `{}`", artifact.digest);
            return Ok(Err(deny(GrantRefusal::OtherBlob, reason)));
        }
        if round > 0 {
            let earlier: Option<Stored<BurntGrant>> = load(&*self.store, &grant_key(&job.id, &id(round - 1))).await?;
            if earlier.is_none() {
                return Ok(Err(deny(
                    GrantRefusal::TooMany,
                    format!("grant {round} was requested, but the grant before it was not"),
                )));
            }
        }
        Ok(if self.burn(request).await? {
            Ok(artifact)
        } else {
            Err(deny(GrantRefusal::UsedBefore, "grant was used before"))
        })
    }

    /// Signs a statement about the artifact that the build runner pushed. The source and the package in the statement
    /// come from the control plane's own record of the build. A repeated request gets the same bytes.
    async fn attest(
        &self,
        job: &Job,
        request: &GrantMessage,
        artifact: &Artifact,
        facts: &BuildFacts,
    ) -> Result<Result<GrantAnswer, Denied>, AppError> {
        if request.grant != GrantId::of_statement(&job.id, request.fence, &request.artifact) {
            let reason = format!("request `{}` does not belong to this attempt and artifact", request.grant);
            return Ok(Err(deny(GrantRefusal::OtherAttempt, reason)));
        }
        let workflow = table::workflow(&*self.store, &job.workflow).await?.value;
        let (Some(Target::Build { component, build }), Request::Build { app, .. }) =
            (target(&workflow, job), &workflow.request)
        else {
            return Ok(Err(deny(GrantRefusal::NoArtifact, format!("job `{}` is not a build", job.id))));
        };
        let build: Option<Stored<Build>> = load(&*self.store, &build_key(app, build)).await?;
        let Some(build) = build.map(|build| build.value) else {
            return Ok(Err(deny(GrantRefusal::NoArtifact, format!("the build of job `{}` does not exist", job.id))));
        };
        let top = artifact.manifests.last().filter(|top| top.digest == artifact.digest);
        let Some(top) = top.filter(|_| artifact.digest == request.artifact) else {
            let reason =
                format!("the last manifest in the request is not the manifest of artifact `{}`", request.artifact);
            return Ok(Err(deny(GrantRefusal::OtherDigest, reason)));
        };
        if let Some(why) = self.lacking_in_registry(top).await? {
            let reason = format!("tenant registry does not hold artifact `{}`: {why}", artifact.digest);
            return Ok(Err(deny(GrantRefusal::NotInRegistry, reason)));
        }
        let external = ExternalParameters {
            app: app.clone(),
            component: component.clone(),
            package: build.package,
            source: build.source,
        };
        let internal = InternalParameters {
            tenant: self.tenant.clone(),
            build: build.id,
            job: job.id.clone(),
            source_digest: build.source_digest,
        };
        let statement = Statement::new(&artifact.digest, external, internal, facts.clone());
        let statement = self.signer.attest(&statement).await?;
        tracing::info!(job.id = %job.id, "Signed the statement about artifact `{}`", artifact.digest);
        Ok(Ok(GrantAnswer::Attested { statement }))
    }

    /// Returns why the tenant registry does not hold the artifact with this manifest; `None` if it does.
    async fn lacking_in_registry(&self, manifest: &Descriptor) -> Result<Option<String>, AppError> {
        match self.registry.manifest(manifest).await {
            Ok(bytes) if Digest::of(&bytes) == manifest.digest => Ok(None),
            Ok(_) => Ok(Some("the manifest in the registry has another digest".to_owned())),
            Err(PortError::Failed { reason, .. }) => Ok(Some(reason)),
            Err(error @ (PortError::Transient { .. } | PortError::Denied { .. })) => Err(error.into()),
        }
    }

    /// Marks the grant as used. Returns false when another request used it before. For a redelivery of the request that
    /// used it, returns true if that request got no answer, or if it marked the grant at most [`REDELIVERED_SECS`] ago.
    async fn burn(&self, request: &GrantMessage) -> Result<bool, AppError> {
        let now = self.clock.now();
        let burnt = BurntGrant {
            grant: request.grant.clone(),
            job: request.job.clone(),
            fence: request.fence,
            seq: request.seq,
            artifact: request.artifact.clone(),
            at: now,
            wants: Some(wants_digest(request)?),
            unanswered: false,
        };
        let write = put_until(&burnt, Expect::Absent, now.plus_secs(TRACE_TTL_SECS))?;
        if self.store.commit(vec![write]).await? == Committed::Done {
            return Ok(true);
        }
        let Some(earlier) = load::<BurntGrant>(&*self.store, &burnt.key()).await? else {
            return Ok(false);
        };
        if !is_same(&earlier.value, &burnt) {
            return Ok(false);
        }
        if !earlier.value.unanswered {
            return Ok(now.since(earlier.value.at) <= REDELIVERED_SECS * 1000);
        }
        let write = put_until(&burnt, Expect::Rev(earlier.rev), now.plus_secs(TRACE_TTL_SECS))?;
        Ok(self.store.commit(vec![write]).await? == Committed::Done)
    }

    /// Records that the request got no answer, if it has marked the grant as used. A later redelivery is then answered.
    async fn leave_unanswered(&self, request: &GrantMessage) -> Result<(), AppError> {
        let Some(burnt) = load::<BurntGrant>(&*self.store, &grant_key(&request.job, &request.grant)).await? else {
            return Ok(());
        };
        let is_old = self.clock.now().since(burnt.value.at) > FUNCTION_SECS * 1000;
        if burnt.value.unanswered || is_old || burnt.value.seq != request.seq {
            return Ok(());
        }
        let ttl = burnt.value.at.plus_secs(TRACE_TTL_SECS);
        let write = put_until(&BurntGrant { unanswered: true, ..burnt.value }, Expect::Rev(burnt.rev), ttl)?;
        let _ = self.store.commit(vec![write]).await?;
        Ok(())
    }

    /// Returns the build that made `artifact`. It searches the builds that the job uses: those of the part that the job
    /// deploys or removes, of the directories of its steps, and of its tool image. If none of these builds made the
    /// artifact, it returns one of them, and the caller refuses the request.
    async fn build_of(&self, job: &Job, artifact: &Digest) -> Result<Option<Build>, AppError> {
        let workflow = table::workflow(&*self.store, &job.workflow).await?.value;
        let builds: Vec<&BuildId> = match target(&workflow, job) {
            Some(Target::Teardown { build, .. }) => build.iter().collect(),
            other => other.map(Target::uses).unwrap_or_default().into_iter().map(|(_, of)| of.build).collect(),
        };
        let install = table::install(&*self.store, &job.install).await?.value;
        let Some(app) = install.app() else { return Ok(None) };
        let mut found = None;
        for id in workflow.tool_image.iter().map(|image| &image.build).chain(builds) {
            let record: Option<Stored<Build>> = load(&*self.store, &build_key(app, id)).await?;
            found = record.map(|record| record.value).or(found);
            let is_it =
                |build: &Build| matches!(&build.state, BuildState::Built { artifact: a, .. } if a.digest == *artifact);
            if found.as_ref().is_some_and(is_it) {
                break;
            }
        }
        Ok(found)
    }

    async fn grant(
        &self,
        artifact: &Artifact,
        missing: &[Digest],
        request: &GrantMessage,
    ) -> Result<GrantAnswer, AppError> {
        let mut manifests = Vec::new();
        for manifest in &artifact.manifests {
            let bytes = self.registry.manifest(manifest).await?;
            if Digest::of(&bytes) != manifest.digest {
                return Err(AppError::internal(format!(
                    "tenant registry holds a manifest with another digest under `{}`",
                    manifest.digest
                )));
            }
            manifests.push(ManifestBytes {
                media_type: manifest.media_type.clone(),
                digest: manifest.digest.clone(),
                bytes: base64::engine::general_purpose::STANDARD.encode(&bytes),
            });
        }
        let mut blobs = Vec::new();
        for blob in artifact.blobs.iter().filter(|blob| missing.contains(&blob.digest)) {
            let url = self.registry.blob_url(blob).await?;
            blobs.push(BlobUrl { digest: blob.digest.clone(), size: blob.size, url });
        }
        tracing::info!(job.id = %request.job, "Granted artifact `{}` to attempt {}", artifact.digest, request.fence);
        Ok(GrantAnswer::Granted { manifests, blobs })
    }

    async fn record_refusal(
        &self,
        request: &GrantMessage,
        refusal: GrantRefusal,
        reason: &str,
    ) -> Result<(), AppError> {
        tracing::warn!(job.id = %request.job, "Refused grant `{}` ({}): {reason}", request.grant, refusal.as_str());
        let refused = Refused {
            // The refusal is stored beside the job's grants, because this function's role permits no writes to other
            // partitions.
            pk: grants_pk(&request.job),
            message: Digest::of(format!("{}#{}", request.grant, request.seq).as_bytes()),
            at: self.clock.now(),
            runner: None,
            refusal: Some(refusal),
            reason: reason.to_owned(),
        };
        table::store_refusal(&*self.store, &refused).await
    }
}

/// Returns whether `again` has the same origin and asks for the same blobs as the request that used the grant.
fn is_same(earlier: &BurntGrant, again: &BurntGrant) -> bool {
    earlier.seq == again.seq && (earlier.wants.is_none() || earlier.wants == again.wants)
}

fn wants_digest(request: &GrantMessage) -> Result<Digest, AppError> {
    Ok(Digest::of(&serde_json::to_vec(&request.wants)?))
}

fn target<'a>(workflow: &'a Workflow, job: &Job) -> Option<&'a Target> {
    workflow.nodes.iter().find(|node| node.name == job.node).map(|node| &node.target)
}

fn has_blob(artifact: &Artifact, digest: &Digest) -> bool {
    artifact.blobs.iter().any(|blob| blob.digest == *digest)
}
