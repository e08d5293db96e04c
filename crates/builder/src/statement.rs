//! Asks the tenant for a signed statement about the built artifact, and attaches it to the artifact.

use std::collections::BTreeMap;

use freehold_oci::Repository;
use freehold_protocol::Timestamp;
use freehold_protocol::grant::GrantAnswer;
use freehold_protocol::order::{Artifact, BuildArtifact};
use freehold_protocol::provenance::{BuildFacts, Provenance, ResourceDescriptor};
use freehold_runner::job::Job;
use freehold_runner::job::failure::Failure;
use freehold_runner::kinds::provenance::{check, push_statement};
use freehold_runner::process::clock;

/// The facts that a build collects for its statement.
#[derive(Debug)]
pub(crate) struct Facts {
    started_at: Timestamp,
    resolved: Vec<ResourceDescriptor>,
    versions: BTreeMap<String, String>,
}

impl Facts {
    /// Returns facts with the builder's version and the current time.
    pub(crate) fn begin() -> Self {
        let own = ("freehold-builder".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        Self { started_at: clock::local(), resolved: Vec::new(), versions: BTreeMap::from([own]) }
    }

    /// Records a program that the build used, and its version.
    pub(crate) fn took_part(&mut self, program: &str, version: &str) {
        self.versions.insert(program.to_owned(), version.to_owned());
    }

    /// Records a resolved dependency: the source, a base image, a provider, or a key that signed an image.
    pub(crate) fn resolved(&mut self, uri: &str, algorithm: &str, hex: &str) {
        let digest = BTreeMap::from([(algorithm.to_owned(), hex.to_owned())]);
        self.resolved.push(ResourceDescriptor { uri: uri.to_owned(), digest });
    }
}

/// Attaches the tenant's statement to `artifact` in the tenant registry. Returns the artifact with the statement.
pub(crate) async fn attest(
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
            return Err(Failure::new(format!(
                "the tenant did not sign a statement about artifact `{digest}` ({word}): {reason}"
            )));
        }
        GrantAnswer::Granted { .. } => {
            return Err(Failure::new(format!(
                "the tenant's answer about artifact `{}` is not a signed statement",
                artifact.digest
            )));
        }
    };
    let referrer = push_statement(repository, &artifact, &statement).await?;
    let provenance = Provenance { statement, referrer };
    // The build reports success only if an install runner would accept the statement too.
    check(job, &provenance, &artifact.digest, None, &work.component)?;
    job.log.line(&format!("pushed provenance {} of the artifact", provenance.referrer));
    Ok(Artifact { provenance: Some(Box::new(provenance)), ..artifact })
}
