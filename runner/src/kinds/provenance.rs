//! Provenance of artifacts: asked for after a build, believed before a use.

use std::collections::BTreeMap;

use bytes::Bytes;
use freehold_oci::{Repository, push_referrer};
use freehold_protocol::grant::GrantAnswer;
use freehold_protocol::order::{Artifact, BuildArtifact, Descriptor};
use freehold_protocol::provenance::{
    BuildFacts, Expected, Provenance, ProvenanceError, REFERRER_TYPE, ResourceDescriptor, Statement,
};
use freehold_protocol::{AppName, ComponentName, Digest, Envelope, Timestamp};

use super::Failure;
use crate::wire::clock;
use crate::work::job::Job;

/// An artifact's provenance that was verified.
#[derive(Debug, Clone, Copy)]
pub(super) struct Believed<'a>(&'a Provenance);

/// What a build learns on its way.
#[derive(Debug)]
pub(super) struct Facts {
    started_at: Timestamp,
    resolved: Vec<ResourceDescriptor>,
    versions: BTreeMap<String, String>,
}

impl Facts {
    /// Begins with the runner's own version, now.
    pub(super) fn begin() -> Self {
        let own = ("freehold-runner".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        Self { started_at: clock::local(), resolved: Vec::new(), versions: BTreeMap::from([own]) }
    }

    /// Notes what something was resolved to: the source, or what it was built on.
    pub(super) fn resolved(&mut self, uri: &str, algorithm: &str, hex: &str) {
        let digest = BTreeMap::from([(algorithm.to_owned(), hex.to_owned())]);
        self.resolved.push(ResourceDescriptor { uri: uri.to_owned(), digest });
    }
}

/// Returns `artifact` with the tenant's word on what made it, which refers to it in the tenant registry from now on.
pub(super) async fn attest(
    job: &Job,
    work: &BuildArtifact,
    repository: &Repository,
    artifact: Artifact,
    facts: Facts,
) -> Result<Artifact, Failure> {
    let Facts { started_at, resolved, versions } = facts;
    let facts = BuildFacts { resolved, versions, started_at, finished_at: clock::local() };
    let statement = match job.grants.attest(job, &artifact, facts).await? {
        GrantAnswer::Attested { statement } => statement,
        GrantAnswer::Refused { refusal, reason } => {
            let (digest, word) = (&artifact.digest, refusal.as_str());
            return Err(Failure::new(format!("artifact `{digest}` was not attested ({word}): {reason}")));
        }
        GrantAnswer::Granted { .. } => {
            return Err(Failure::new(format!("the answer on artifact `{}` is no statement", artifact.digest)));
        }
    };
    let referrer = push_statement(repository, &artifact, &statement).await?;
    let provenance = Provenance { statement, referrer };
    // What other runners would refuse is not reported as built.
    check(job, &provenance, &artifact.digest, None, &work.component)?;
    job.log.line(&format!("provenance {} refers to it", provenance.referrer));
    Ok(Artifact { provenance: Some(Box::new(provenance)), ..artifact })
}

/// Returns the provenance of the artifact that the order deploys.
pub(super) fn verify<'a>(job: &Job, artifact: &'a Artifact) -> Result<Believed<'a>, Failure> {
    let Some(provenance) = &artifact.provenance else {
        return Err(refused(&ProvenanceError::Missing(artifact.digest.clone())));
    };
    let app = job.order.context.pointer("/nuon/app/name").and_then(serde_json::Value::as_str);
    let app: Option<AppName> = app.and_then(|name| name.parse().ok());
    let Some(component) = job.order.work.component() else {
        return Err(Failure::new("the order's work has no component"));
    };
    check(job, provenance, &artifact.digest, app.as_ref(), component)?;
    Ok(Believed(provenance))
}

/// Makes the install registry list the statement, under the digest that it has in the tenant registry.
pub(super) async fn push(
    repository: &Repository,
    artifact: &Artifact,
    Believed(provenance): Believed<'_>,
) -> Result<(), Failure> {
    let pushed = push_statement(repository, artifact, &provenance.statement).await?;
    if pushed == provenance.referrer {
        return Ok(());
    }
    let wanted = &provenance.referrer;
    Err(Failure::new(format!("provenance of artifact `{}` is `{pushed}` here, not `{wanted}`", artifact.digest)))
}

async fn push_statement(repository: &Repository, artifact: &Artifact, statement: &Envelope) -> Result<Digest, Failure> {
    let Some(subject) = artifact.manifests.last().filter(|top| top.digest == artifact.digest) else {
        return Err(Failure::new(format!("the manifests do not end with artifact `{}`", artifact.digest)));
    };
    let subject: &Descriptor = subject;
    let bytes = statement.to_json().map_err(|error| Failure::because("could not write the statement", &error))?;
    Ok(push_referrer(repository, subject, REFERRER_TYPE, Bytes::from(bytes)).await?.digest)
}

fn check(
    job: &Job,
    provenance: &Provenance,
    artifact: &Digest,
    app: Option<&AppName>,
    component: &ComponentName,
) -> Result<Statement, Failure> {
    let expected = Expected { tenant: &job.order.tenant, artifact, app: app.map(AppName::as_str), component };
    provenance.verify(&job.config.tenant_key, &expected).map_err(|error| refused(&error))
}

fn refused(error: &ProvenanceError) -> Failure {
    let mut reason = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        reason.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    Failure::new(reason)
}
