//! Checks every link of a lineage: the signatures, the digests, and that consecutive messages are about the same thing.

use std::borrow::Cow;

use super::{Approval, Broken, FORMAT, Lineage, Link, LinkName, Made, Proof, Used};
use crate::envelope::{EnvelopeError, Payload, PublicKey, SuccessionError};
use crate::order::{Artifact, BuildArtifact, Order, Recipe, Source, Work};
use crate::provenance::{Expected, Provenance, ProvenanceError, ResourceDescriptor, Statement};
use crate::report::{AttemptEvent, Hello, Outcome, Report, ReportBody};
use crate::succession::Roots;
use crate::{BuildId, ComponentName, Digest, Envelope, Timestamp, canonical};

/// The largest difference between the clocks of two machines that is accepted, in seconds: AWS refuses the requests of
/// a machine whose clock differs more (AWS Signature Version 4, "Elements of a request").
const CLOCK_SECS: u64 = 15 * 60;

type Finding = Result<String, Broken>;

impl Lineage {
    /// Verifies every link of the lineage and trusts only the key `root`. Returns all links, also those that failed.
    pub fn verify(&self, root: &PublicKey) -> Vec<Link> {
        let mut roots = Roots::given(self.tenant.clone(), root.clone(), None);
        let followed = roots.follow(&self.succession);
        let check = Check { lineage: self, roots, followed };
        let of = self.artifact.to_string();
        let mut links = vec![Link { name: LinkName::RootKey, of: of.clone(), finding: check.root_key() }];
        if self.builds.is_empty() {
            let finding = Err(Broken::Missing("the record of a build"));
            links.push(Link { name: LinkName::Build, of, finding });
        }
        links.extend(self.builds.iter().flat_map(|made| check.made(made)));
        links.extend(self.uses.iter().flat_map(|used| check.used(used)));
        links
    }
}

struct Check<'a> {
    lineage: &'a Lineage,
    /// The trusted root key, and the root keys that follow it.
    roots: Roots,
    followed: Result<(), SuccessionError>,
}

/// A verified order, and the earliest time at which the tenant can have sent it.
struct Believed {
    order: Order,
    from: Timestamp,
}

/// A verified report of success.
struct Success {
    report: Report,
    /// The digest of the copied image, if the outputs contain it.
    image: Option<String>,
    artifact: Option<Artifact>,
}

impl Check<'_> {
    fn root_key(&self) -> Finding {
        if self.lineage.format != FORMAT {
            return Err(other("the document's format", self.lineage.format, FORMAT));
        }
        let unbelieved = |error: &SuccessionError| Broken::Envelope {
            what: "the succession of root keys",
            source: EnvelopeError::Succession(error.clone()),
        };
        self.followed.as_ref().map_err(unbelieved)?;
        if !self.roots.include(&self.lineage.root_key) {
            same("the document's root key", self.lineage.root_key.key_id(), self.roots.current().key_id())?;
        }
        Ok(format!("key {} of tenant {}", self.roots.current().key_id(), self.lineage.tenant))
    }

    fn made(&self, made: &Made) -> Vec<Link> {
        let of = format!("{}/{} {}", made.app, made.component, made.build);
        let statement = self.statement(made.app.as_str(), &made.component, made.provenance.as_deref());
        let order = self.order(&made.proof);
        let report = self.report(&made.proof);
        let (stated, ordered, ended) = (statement.as_ref().ok(), order.as_ref().ok(), report.as_ref().ok());
        let findings = [
            (LinkName::Source, source(made, stated, ordered)),
            (LinkName::BuildOrder, order.as_ref().map_err(Clone::clone).and_then(|found| build_order(made, found))),
            (LinkName::BuildRunnerKey, self.runner_key(&made.proof)),
            (LinkName::BuildReport, report.as_ref().map_err(Clone::clone).and_then(|found| self.built(made, found))),
            (LinkName::BuildTimes, build_times(made, stated, ordered, ended)),
        ];
        let statement = statement.and_then(|statement| about_build(made, &statement));
        let findings = std::iter::once((LinkName::Statement, statement)).chain(findings);
        findings.map(|(name, finding)| Link { name, of: of.clone(), finding }).collect()
    }

    fn used(&self, used: &Used) -> Vec<Link> {
        let of = format!("{}/{} {}", used.proof.install, used.component, used.proof.job);
        let order = self.order(&used.proof);
        let report = self.report(&used.proof);
        let (ordered, ended) = (order.as_ref().ok(), report.as_ref().ok());
        let findings = [
            (LinkName::Sync, self.sync(used, ordered)),
            (LinkName::Approval, Ok(approval(used.approval))),
            (LinkName::RunnerKey, self.runner_key(&used.proof)),
            (
                LinkName::DeployReport,
                report.as_ref().map_err(Clone::clone).and_then(|found| self.deployed(found, ordered)),
            ),
            (LinkName::Times, self.use_times(used, ordered, ended)),
        ];
        let order = order.and_then(|found| deploy_order(used, &found.order));
        let findings = std::iter::once((LinkName::Order, order)).chain(findings);
        findings.map(|(name, finding)| Link { name, of: of.clone(), finding }).collect()
    }

    fn statement(
        &self,
        app: &str,
        component: &ComponentName,
        provenance: Option<&Provenance>,
    ) -> Result<Statement, Broken> {
        let artifact = &self.lineage.artifact;
        let provenance = provenance.ok_or_else(|| ProvenanceError::Missing(artifact.clone()))?;
        let expected = Expected { tenant: &self.lineage.tenant, artifact, app: Some(app), component };
        Ok(provenance.verify(self.roots.signer(&provenance.statement), &expected)?)
    }

    /// Verifies the order: a delegate key signed it, and the certificate and the order were valid at the same time.
    fn order(&self, proof: &Proof) -> Result<Believed, Broken> {
        let envelope = proof.order.as_ref().ok_or(Broken::Missing("the signed order"))?;
        let unbelieved = |source| Broken::Envelope { what: "the order", source };
        let claimed: Order = envelope.peek().map_err(unbelieved)?;
        let roots = self.roots.followed_by(envelope).map_err(unbelieved)?;
        let delegate = roots.delegate(envelope).map_err(unbelieved)?;
        // An order that is sent late or again may be older than the delegate key that signs it.
        let from = claimed.issued_at.max(delegate.not_before);
        let order: Order = roots.open_delegated(envelope, from).map_err(unbelieved)?;
        before("the certificate of the order's key", from, "the expiry of the order", order.not_after, 0)?;
        same("the tenant of the order", &order.tenant, &self.lineage.tenant)?;
        same("the install of the order", &order.install, &proof.install)?;
        same("the job of the order", &order.job, &proof.job)?;
        same("the dispatch of the order", order.dispatch, proof.fence.dispatch)?;
        Ok(Believed { order, from })
    }

    /// Verifies that the announced key signed the runner's announcement.
    fn runner_key(&self, proof: &Proof) -> Finding {
        let envelope = proof.hello.as_ref().ok_or(Broken::Missing("the announcement of the runner's key"))?;
        let hello = announced(envelope)?;
        let report: Report = opened("the announcement of the runner's key", envelope, &hello.public_key)?;
        same("the tenant of the announcement", &report.tenant, &self.lineage.tenant)?;
        same("the install of the announcement", &report.install, &proof.install)?;
        same("the runner of the announcement", &report.runner, &hello.public_key.key_id())?;
        same("the announced key", &hello.public_key.key_id(), &proof.runner)?;
        Ok(format!("key {} announced from {}", proof.runner, hello.host))
    }

    /// Verifies the report with the key from the announcement. A separate link verifies the announcement.
    fn report(&self, proof: &Proof) -> Result<Success, Broken> {
        let envelope = proof.report.as_ref().ok_or(Broken::Missing("the signed report of success"))?;
        let hello = proof.hello.as_ref().and_then(|hello| announced(hello).ok());
        let hello = hello.ok_or(Broken::Unfounded("runner key"))?;
        let report: Report = opened("the report", envelope, &hello.public_key)?;
        same("the tenant of the report", &report.tenant, &self.lineage.tenant)?;
        same("the install of the report", &report.install, &proof.install)?;
        same("the runner of the report", &report.runner, &proof.runner)?;
        let ReportBody::Attempt(attempt) = &report.body else {
            return Err(other("the report", "not about a job", "the end of a job"));
        };
        same("the job of the report", &attempt.job, &proof.job)?;
        same("the attempt of the report", attempt.fence, proof.fence)?;
        let AttemptEvent::Finished { outcome, .. } = &attempt.event else {
            return Err(other("the report", "not the end of the attempt", "the end of the attempt"));
        };
        let (outputs, artifact) = match outcome {
            Outcome::Succeeded { outputs, artifact, .. } => (outputs, artifact.clone()),
            Outcome::Failed { .. }
            | Outcome::Blocked { .. }
            | Outcome::Interrupted { .. }
            | Outcome::Cancelled
            | Outcome::NeedsApproval { .. } => {
                return Err(other("the outcome of the report", "no success", "success"));
            }
        };
        let image = outputs.get("image").and_then(|image| image.get("digest")?.as_str()).map(str::to_owned);
        Ok(Success { image, artifact, report })
    }

    fn built(&self, made: &Made, success: &Success) -> Finding {
        let artifact = success.artifact.as_ref().ok_or(Broken::Missing("the artifact in the report"))?;
        same("the artifact of the report", &artifact.digest, &self.lineage.artifact)?;
        if artifact.provenance != made.provenance {
            return Err(other("the provenance of the report", "another provenance", "the provenance of the build"));
        }
        Ok(reported(&success.report))
    }

    /// Checks that the order names this artifact, and that the named build made it.
    fn sync(&self, used: &Used, order: Option<&Believed>) -> Finding {
        let order = &order.ok_or(Broken::Unfounded("order"))?.order;
        let artifact = order.work.artifact_of(&used.component).or_else(|| order.work.artifact());
        let artifact = artifact.ok_or(Broken::Missing("the artifact in the order"))?;
        same("the artifact of the order", &artifact.digest, &self.lineage.artifact)?;
        let statement = self.statement(used.app.as_str(), &used.component, artifact.provenance.as_deref())?;
        let build = &statement.predicate.build_definition.internal_parameters.build;
        same("the build in the order's statement", build, &used.build)?;
        if !self.lineage.builds.iter().any(|made| made.build == used.build) {
            return Err(Broken::Missing("the build of the artifact that was deployed"));
        }
        Ok(format!("{} of build {}", artifact.digest, used.build))
    }

    /// Checks the report of success. If a job copied an image and reported the digest of the copy, this digest must be
    /// that of the artifact.
    fn deployed(&self, success: &Success, order: Option<&Believed>) -> Finding {
        let image = order.is_some_and(|found| matches!(found.order.work, Work::ContainerImage(_)));
        if let (true, Some(digest)) = (image, &success.image) {
            same("the digest in the install's registry", digest.as_str(), self.lineage.artifact.as_str())?;
        }
        Ok(reported(&success.report))
    }

    fn use_times(&self, used: &Used, order: Option<&Believed>, success: Option<&Success>) -> Finding {
        let order = order.ok_or(Broken::Unfounded("order"))?;
        let success = success.ok_or(Broken::Unfounded("report"))?;
        let found = self.lineage.builds.iter().find(|made| made.build == used.build);
        if let Some(made) = found {
            before("the build", made.proof.at, "the order of the deploy", order.order.issued_at, CLOCK_SECS)?;
        }
        attempt_times(&used.proof, order, success)
    }
}

fn approval(approval: Approval) -> String {
    match approval {
        Approval::NoneRequired => approval.describe().to_owned(),
    }
}

fn reported(report: &Report) -> String {
    match &report.body {
        ReportBody::Attempt(attempt) => {
            format!("attempt {} succeeded, as runner {} reported", attempt.fence, report.runner)
        }
        ReportBody::Hello(_) | ReportBody::Heartbeat | ReportBody::Refused(_) | ReportBody::Away(_) => String::new(),
    }
}

/// Checks that the statement is about this build and its job.
fn about_build(made: &Made, statement: &Statement) -> Finding {
    let definition = &statement.predicate.build_definition;
    let internal = &definition.internal_parameters;
    same("the build of the statement", &internal.build, &made.build)?;
    same("the job of the statement", &internal.job, &made.proof.job)?;
    let run = &statement.predicate.run_details;
    same("the invocation of the statement", run.metadata.invocation_id.as_str(), made.proof.job.as_str())?;
    Ok(format!("signed by the root key for {}", run.builder.id))
}

fn source(made: &Made, statement: Option<&Statement>, order: Option<&Believed>) -> Finding {
    let definition = &statement.ok_or(Broken::Unfounded("statement"))?.predicate.build_definition;
    let (external, internal) = (&definition.external_parameters, &definition.internal_parameters);
    same_source("the source of the statement", &external.source, &made.source)?;
    same("the kind of artifact in the statement", external.package.describe(), made.package.describe())?;
    let recipe = recipe(order)?;
    let digest = match &recipe {
        Some(recipe) => canonical::digest(&(made.source.pinned(), made.package, recipe)),
        None => canonical::digest(&(made.source.pinned(), made.package)),
    };
    let digest = digest.map_err(|_| Broken::Missing("a source that can be written as JSON"))?;
    same("the source digest of the statement", &internal.source_digest, &digest)?;
    same("the build of that source", &BuildId::derive(&made.app, &digest, &made.component), &made.build)?;
    match (&made.source, recipe.as_deref()) {
        // The text is the whole source: the digest in the statement, which was compared above, covers it.
        (Source::Version, Some(Recipe::Manifest { text })) => {
            Ok(format!("the manifest in the order sha256:{}", Digest::of(text.as_bytes()).hex()))
        }
        (source, _) => resolved(source, &definition.resolved_dependencies),
    }
}

/// Returns the recipe of a build, which only its order contains. The id of the build depends on the recipe too.
fn recipe(order: Option<&Believed>) -> Result<Option<Cow<'_, Recipe>>, Broken> {
    let Some(Work::Build(BuildArtifact { recipe, .. })) = order.map(|found| &found.order.work) else {
        return Ok(None);
    };
    let unpacked = recipe.as_ref().map(Recipe::unpacked).transpose();
    unpacked.map_err(|_| Broken::Missing("the manifest that the order packs"))
}

/// Checks that the build used the pinned source, and returns the exact source from the statement.
fn resolved(source: &Source, found: &[ResourceDescriptor]) -> Finding {
    let (algorithm, pinned) = match source {
        Source::Git { commit, .. } => ("gitCommit", Some(commit.as_str())),
        Source::Directory { digest } => ("sha256", Some(digest.hex())),
        Source::Image { reference } | Source::EcrImage { reference, .. } => {
            ("sha256", reference.split_once("@sha256:").map(|(_, hex)| hex))
        }
        Source::Chart { .. } | Source::Version => ("sha256", None),
    };
    let digests = found.iter().filter_map(|one| Some((one.uri.as_str(), one.digest.get(algorithm)?.as_str())));
    let mut digests = digests.filter(|(_, digest)| pinned.is_none_or(|pinned| pinned == *digest));
    match (digests.next(), found.first()) {
        (Some((uri, digest)), _) => Ok(format!("{uri} {algorithm}:{digest}")),
        (None, Some(first)) => Err(other("the pinned source", &first.uri, pinned.unwrap_or("a digest"))),
        (None, None) => Err(Broken::Missing("the pinned source")),
    }
}

fn build_order(made: &Made, Believed { order, .. }: &Believed) -> Finding {
    let Work::Build(work) = &order.work else {
        return Err(other("the work of the order", order.work.kind(), "build"));
    };
    same("the build of the order", &work.build, &made.build)?;
    same("the component of the order", &work.component, &made.component)?;
    same_source("the source of the order", &work.source, &made.source)?;
    same("the kind of artifact in the order", work.package.describe(), made.package.describe())?;
    Ok(format!("order {} of job {}, signed for the tenant", order.dispatch, order.job))
}

fn deploy_order(used: &Used, order: &Order) -> Finding {
    same("the workflow of the order", &order.workflow, &used.workflow)?;
    if order.work.artifact_of(&used.component).is_none() {
        let component = order.work.component().ok_or(Broken::Missing("the component in the order"))?;
        same("the component of the order", component, &used.component)?;
    }
    // The order's context contains the app and the account.
    let context = |path: &str| order.context.pointer(path).and_then(|value| value.as_str()).unwrap_or_default();
    same("the app of the order", context("/nuon/app/id"), used.app.as_str())?;
    same("the account of the order", context("/nuon/cloud_account/aws/account_id"), used.account.as_str())?;
    Ok(format!("order {} of job {}, signed for the tenant", order.dispatch, order.job))
}

fn build_times(
    made: &Made,
    statement: Option<&Statement>,
    order: Option<&Believed>,
    success: Option<&Success>,
) -> Finding {
    let statement = statement.ok_or(Broken::Unfounded("statement"))?;
    let order = order.ok_or(Broken::Unfounded("order"))?;
    let success = success.ok_or(Broken::Unfounded("report"))?;
    let ran = &statement.predicate.run_details.metadata;
    before("the order of the build", order.from, "the start of the build", ran.started_on, CLOCK_SECS)?;
    before("the start of the build", ran.started_on, "its end", ran.finished_on, 0)?;
    before("the end of the build", ran.finished_on, "the report", success.report.at, CLOCK_SECS)?;
    attempt_times(&made.proof, order, success)
}

fn attempt_times(proof: &Proof, order: &Believed, success: &Success) -> Finding {
    before("the order", order.from, "the report", success.report.at, CLOCK_SECS)?;
    before("the report", success.report.at, "its arrival", proof.at, CLOCK_SECS)?;
    before("the order", order.order.issued_at, "the arrival of the report", proof.at, CLOCK_SECS)?;
    Ok(format!("ordered {} ms before the report arrived", proof.at.since(order.order.issued_at)))
}

/// Returns the announcement without verifying it.
fn announced(envelope: &Envelope) -> Result<Hello, Broken> {
    let what = "the announcement of the runner's key";
    let report: Report = envelope.peek().map_err(|source| Broken::Envelope { what, source })?;
    match report.body {
        ReportBody::Hello(hello) => Ok(hello),
        ReportBody::Heartbeat | ReportBody::Attempt(_) | ReportBody::Refused(_) | ReportBody::Away(_) => {
            Err(other(what, "another report", "an announcement"))
        }
    }
}

fn opened<P: Payload>(what: &'static str, envelope: &Envelope, key: &PublicKey) -> Result<P, Broken> {
    envelope.open(key).map_err(|source| Broken::Envelope { what, source })
}

fn same<T: PartialEq + ToString>(what: &'static str, found: T, expected: T) -> Result<(), Broken> {
    if found == expected { Ok(()) } else { Err(other(what, found, expected)) }
}

fn same_source(what: &'static str, found: &Source, expected: &Source) -> Result<(), Broken> {
    let text = |source: &Source| serde_json::to_string(source).unwrap_or_default();
    if found == expected { Ok(()) } else { Err(other(what, text(found), text(expected))) }
}

fn other(what: &'static str, found: impl ToString, expected: impl ToString) -> Broken {
    let short = |text: String| text.chars().take(120).collect();
    Broken::Other { what, found: short(found.to_string()), expected: short(expected.to_string()) }
}

fn before(
    early: &'static str,
    early_at: Timestamp,
    late: &'static str,
    late_at: Timestamp,
    tolerance_secs: u64,
) -> Result<(), Broken> {
    if early_at <= late_at.plus_secs(tolerance_secs) {
        return Ok(());
    }
    Err(Broken::Times { early, early_at, late, late_at })
}
