//! Provenance: the builder, the input and the times of an artifact's build, as a signed in-toto statement (in-toto
//! attestation framework v1, "Statement") with the SLSA provenance predicate (SLSA v1.0, "Provenance").

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::build::{Package, Source};
use crate::envelope::{EnvelopeError, Payload, PublicKey};
use crate::{AppName, BuildId, ComponentName, Digest, Envelope, JobId, TenantName, Timestamp};

/// The statement's `_type`.
pub const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
/// The statement's `predicateType`.
pub const PREDICATE_TYPE: &str = "https://slsa.dev/provenance/v1";
/// The predicate's `buildType`: the URN of Freehold's build process.
pub const BUILD_TYPE: &str = "urn:freehold:build:v1";
/// The referrer's `artifactType`, and the media type of its one layer: the envelope with the statement, as JSON.
pub const REFERRER_TYPE: &str = "application/vnd.in-toto+json";

/// A signed statement and the digest of its referrer in the tenant registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// A [`Statement`]. The tenant's root key itself signs it, because a delegate key would expire.
    pub statement: Envelope,
    /// The digest of the referrer: the manifest that contains the statement and refers to the artifact.
    pub referrer: Digest,
}

/// An in-toto statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Statement {
    #[serde(rename = "_type")]
    pub statement_type: String,
    /// The artifact; exactly one element.
    pub subject: Vec<Subject>,
    pub predicate_type: String,
    pub predicate: Predicate,
}

impl Payload for Statement {
    const TYPE: &'static str = "application/vnd.in-toto+json";
}

/// The artifact that a statement describes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// The app and the component, `<app>/<component>`.
    pub name: String,
    pub digest: DigestSet,
}

/// Digests as hex digits, by the name of the algorithm (in-toto attestation framework v1, "DigestSet").
pub type DigestSet = BTreeMap<String, String>;

/// The SLSA predicate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Predicate {
    pub build_definition: BuildDefinition,
    pub run_details: RunDetails,
}

/// The input of the build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BuildDefinition {
    pub build_type: String,
    pub external_parameters: ExternalParameters,
    pub internal_parameters: InternalParameters,
    /// The exact sources that the build used, such as a commit or an image with its digest.
    pub resolved_dependencies: Vec<ResourceDescriptor>,
}

/// The parameters that the vendor's app config determines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExternalParameters {
    pub app: AppName,
    pub component: ComponentName,
    pub package: Package,
    pub source: Source,
}

/// The parameters that the control plane added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InternalParameters {
    pub tenant: TenantName,
    pub build: BuildId,
    pub job: JobId,
    /// The digest from which the build's id is derived: of the source, the kind of package and the recipe.
    pub source_digest: Digest,
}

/// One source or tool that a build used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResourceDescriptor {
    pub uri: String,
    pub digest: DigestSet,
}

/// The builder and the times of the build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunDetails {
    pub builder: Builder,
    pub metadata: RunMetadata,
}

/// The build runner that ran the build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Builder {
    /// The URN of the build runner, `urn:freehold:tenant:<tenant>:build-runner`.
    pub id: String,
    /// The versions of `freehold-builder` and of the tools that it ran, by name.
    pub version: BTreeMap<String, String>,
}

/// The job and the times of the build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunMetadata {
    /// The id of the job.
    pub invocation_id: String,
    /// The start of the build, by the build runner's clock.
    #[serde(with = "crate::time::rfc3339")]
    pub started_on: Timestamp,
    #[serde(with = "crate::time::rfc3339")]
    pub finished_on: Timestamp,
}

/// The facts about a build that only the build runner knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuildFacts {
    /// The exact sources that the build used, such as an upstream image with its digest or a base image.
    pub resolved: Vec<ResourceDescriptor>,
    /// The versions of the programs that took part, by name, including the build runner itself.
    pub versions: BTreeMap<String, String>,
    pub started_at: Timestamp,
    pub finished_at: Timestamp,
}

/// The values that a statement must contain.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    pub tenant: &'a TenantName,
    pub artifact: &'a Digest,
    /// The app; `None` when the reader does not know it.
    pub app: Option<&'a str>,
    pub component: &'a ComponentName,
}

/// The reason why an artifact's provenance failed verification.
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
    /// Returns the statement about a build.
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

    /// Checks that the statement contains the `expected` values.
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
    /// Returns the statement after checking that `root` signed it and that it contains the `expected` values.
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

/// Returns `digest` in the form of in-toto.
pub fn sha256(digest: &Digest) -> DigestSet {
    DigestSet::from([("sha256".to_owned(), digest.hex().to_owned())])
}
