//! Provenance: who made an artifact, from what and when, as a signed in-toto statement (in-toto attestation framework v1,
//! "Statement") with the SLSA provenance predicate (SLSA v1.0, "Provenance").

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::build::{Package, Source};
use crate::envelope::{EnvelopeError, Payload, PublicKey};
use crate::{AppName, BuildId, ComponentName, Digest, Envelope, JobId, TenantName, Timestamp};

/// The statement's `_type`.
pub const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
/// The statement's `predicateType`.
pub const PREDICATE_TYPE: &str = "https://slsa.dev/provenance/v1";
/// What a build of ours is, `buildType` of the predicate.
pub const BUILD_TYPE: &str = "urn:freehold:build:v1";
/// `artifactType` of the referrer that carries a statement, and the media type of its one layer: the envelope as JSON.
pub const REFERRER_TYPE: &str = "application/vnd.in-toto+json";

/// A signed statement and the digest of its referrer in the tenant registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// A [`Statement`], signed by the tenant's root key itself, so that it is valid for as long as that key is.
    pub statement: Envelope,
    /// The digest of the manifest that refers to the artifact.
    pub referrer: Digest,
}

/// An in-toto statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Statement {
    #[serde(rename = "_type")]
    pub statement_type: String,
    /// Exactly one.
    pub subject: Vec<Subject>,
    pub predicate_type: String,
    pub predicate: Predicate,
}

impl Payload for Statement {
    const TYPE: &'static str = "application/vnd.in-toto+json";
}

/// What a statement is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// `<app>/<component>`.
    pub name: String,
    pub digest: DigestSet,
}

/// Digests by algorithm, hex (in-toto attestation framework v1, "DigestSet").
pub type DigestSet = BTreeMap<String, String>;

/// The SLSA predicate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Predicate {
    pub build_definition: BuildDefinition,
    pub run_details: RunDetails,
}

/// What was to be built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BuildDefinition {
    pub build_type: String,
    pub external_parameters: ExternalParameters,
    pub internal_parameters: InternalParameters,
    /// What the source was resolved to.
    pub resolved_dependencies: Vec<ResourceDescriptor>,
}

/// What the vendor asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExternalParameters {
    pub app: AppName,
    pub component: ComponentName,
    pub package: Package,
    pub source: Source,
}

/// What the control plane added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InternalParameters {
    pub tenant: TenantName,
    pub build: BuildId,
    pub job: JobId,
    /// The digest of source and package form, which the build is named by.
    pub source_digest: Digest,
}

/// One thing that went into a build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResourceDescriptor {
    pub uri: String,
    pub digest: DigestSet,
}

/// Who built, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunDetails {
    pub builder: Builder,
    pub metadata: RunMetadata,
}

/// What built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Builder {
    /// `urn:freehold:tenant:<tenant>:build-runner`.
    pub id: String,
    /// `freehold-builder` and the tools that took part, with their versions.
    pub version: BTreeMap<String, String>,
}

/// When.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunMetadata {
    /// The job.
    pub invocation_id: String,
    /// The start of the build, by the build runner's clock.
    #[serde(with = "crate::time::rfc3339")]
    pub started_on: Timestamp,
    #[serde(with = "crate::time::rfc3339")]
    pub finished_on: Timestamp,
}

/// What only the build runner knows of a build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuildFacts {
    /// What the source was resolved to, such as an upstream image's digest, and what it was built on.
    pub resolved: Vec<ResourceDescriptor>,
    /// Programs that took part, by name, with their versions; the runner itself among them.
    pub versions: BTreeMap<String, String>,
    pub started_at: Timestamp,
    pub finished_at: Timestamp,
}

/// What a statement has to say.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    pub tenant: &'a TenantName,
    pub artifact: &'a Digest,
    /// The app, where the reader knows it.
    pub app: Option<&'a str>,
    pub component: &'a ComponentName,
}

/// Why an artifact's provenance failed verification.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProvenanceError {
    #[error("artifact `{0}` has no provenance; build its component again")]
    Missing(Digest),
    #[error("provenance of artifact `{artifact}` failed verification: {source}")]
    Envelope {
        artifact: Digest,
        #[source]
        source: EnvelopeError,
    },
    #[error("provenance of artifact `{artifact}` names another {what}: `{found}`")]
    Other { artifact: Digest, what: &'static str, found: String },
}

impl Statement {
    /// Returns the statement of a build.
    pub fn new(
        artifact: &Digest,
        external: ExternalParameters,
        internal: InternalParameters,
        facts: BuildFacts,
    ) -> Self {
        let tenant = internal.tenant.clone();
        Self {
            statement_type: STATEMENT_TYPE.to_owned(),
            subject: vec![Subject {
                name: format!("{}/{}", external.app, external.component),
                digest: sha256(artifact),
            }],
            predicate_type: PREDICATE_TYPE.to_owned(),
            predicate: Predicate {
                run_details: RunDetails {
                    builder: Builder {
                        id: format!("urn:freehold:tenant:{tenant}:build-runner"),
                        version: facts.versions,
                    },
                    metadata: RunMetadata {
                        invocation_id: internal.job.to_string(),
                        started_on: facts.started_at,
                        finished_on: facts.finished_at,
                    },
                },
                build_definition: BuildDefinition {
                    build_type: BUILD_TYPE.to_owned(),
                    external_parameters: external,
                    internal_parameters: internal,
                    resolved_dependencies: facts.resolved,
                },
            },
        }
    }

    /// Checks that the statement is about what is `expected`.
    ///
    /// # Errors
    /// [`ProvenanceError::Other`] with the first difference.
    pub fn check(&self, expected: &Expected<'_>) -> Result<(), ProvenanceError> {
        let definition = &self.predicate.build_definition;
        let (external, internal) = (&definition.external_parameters, &definition.internal_parameters);
        let subject = match self.subject.as_slice() {
            [one] if one.digest.len() == 1 => one.digest.get("sha256").map(String::as_str).unwrap_or_default(),
            _ => "",
        };
        let found = [
            ("type", self.statement_type.as_str(), STATEMENT_TYPE),
            ("predicate", self.predicate_type.as_str(), PREDICATE_TYPE),
            ("build type", definition.build_type.as_str(), BUILD_TYPE),
            ("artifact", subject, expected.artifact.hex()),
            ("tenant", internal.tenant.as_str(), expected.tenant.as_str()),
            ("app", external.app.as_str(), expected.app.unwrap_or(external.app.as_str())),
            ("component", external.component.as_str(), expected.component.as_str()),
        ];
        match found.into_iter().find(|(_, found, wanted)| found != wanted) {
            None => Ok(()),
            Some((what, found, _)) => {
                let found = found.chars().take(120).collect();
                Err(ProvenanceError::Other { artifact: expected.artifact.clone(), what, found })
            }
        }
    }
}

impl Provenance {
    /// Returns the statement after checking that the tenant's root key signed it and that it is about what is expected.
    ///
    /// # Errors
    /// [`ProvenanceError`].
    pub fn verify(&self, root: &PublicKey, expected: &Expected<'_>) -> Result<Statement, ProvenanceError> {
        let unbelieved = |source| ProvenanceError::Envelope { artifact: expected.artifact.clone(), source };
        let statement: Statement = self.statement.open(root).map_err(unbelieved)?;
        statement.check(expected)?;
        Ok(statement)
    }
}

/// Returns `digest` as in-toto writes it.
pub fn sha256(digest: &Digest) -> DigestSet {
    DigestSet::from([("sha256".to_owned(), digest.hex().to_owned())])
}
