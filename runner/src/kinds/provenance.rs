//! Verifies the provenance of an artifact before a job uses the artifact.

use bytes::Bytes;
use freehold_oci::{Repository, push_referrer};
use freehold_protocol::order::{Artifact, Descriptor, Order, Source};
use freehold_protocol::provenance::{Expected, Provenance, ProvenanceError, REFERRER_TYPE, Statement};
use freehold_protocol::{AppName, ComponentName, Digest, Envelope};
use serde_json::{Value, json};

use crate::job::Job;
use crate::job::failure::Failure;

/// A provenance that was verified.
#[derive(Debug, Clone, Copy)]
pub(super) struct Believed<'a>(&'a Provenance);

/// Verifies and returns the provenance of an artifact of `component` that the order names.
pub(super) fn verify<'a>(
    job: &Job,
    component: &ComponentName,
    artifact: &'a Artifact,
) -> Result<Believed<'a>, Failure> {
    let Some(provenance) = &artifact.provenance else {
        return Err(refused(&ProvenanceError::Missing(artifact.digest.clone())));
    };
    let app = app_of(&job.order)?;
    check(job, provenance, &artifact.digest, app.as_ref(), component)?;
    Ok(Believed(provenance))
}

/// Returns the app whose artifacts an order may use: the app of its terms, to which the customer agreed. An order that
/// contains no terms names it in the values for its templates, and an order that names no terms at all is refused
/// before its job starts if the customer has accepted a contract.
fn app_of(order: &Order) -> Result<Option<AppName>, Failure> {
    let terms = order.terms.as_ref().and_then(|terms| terms.asked().ok().flatten());
    let named = order.context.pointer("/nuon/app/name").and_then(Value::as_str).and_then(|name| name.parse().ok());
    match (terms.map(|terms| terms.app).or(named), &order.terms) {
        (None, Some(_)) => Err(Failure::new(
            "the order does not name its app, so the origin of its artifacts cannot be checked; report it to the vendor",
        )),
        (app, _) => Ok(app),
    }
}

/// Returns the facts about an image on which policies are evaluated: its name in its source, and the facts of the
/// tenant's signed statement.
pub(super) fn image(job: &Job, component: &ComponentName, artifact: &Artifact) -> Result<(String, Value), Failure> {
    let believed = verify(job, component, artifact)?;
    let statement: Statement = believed.0.statement.peek().map_err(|error| Failure::new(error.to_string()))?;
    let definition = statement.predicate.build_definition;
    let name = match definition.external_parameters.source {
        Source::Image { reference } | Source::EcrImage { reference, .. } => reference,
        Source::Directory { .. } | Source::Git { .. } | Source::Chart { .. } | Source::Version => component.to_string(),
    };
    let sources = definition.resolved_dependencies;
    let metadata = json!({ "image": name, "digest": artifact.digest, "package": definition.external_parameters.package,
        "sources": sources, "builder": statement.predicate.run_details.builder.version });
    Ok((name, metadata))
}

/// Pushes the statement to the install registry, and checks that it has the same digest there as in the tenant
/// registry.
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
    Err(Failure::new(format!(
        "the provenance of artifact `{}` has digest `{pushed}` in the install registry, but `{wanted}` in the order",
        artifact.digest
    )))
}

/// Pushes `statement` as a referrer of `artifact`. Returns the digest of the statement's manifest.
///
/// # Errors
/// The reason why the push failed.
pub async fn push_statement(
    repository: &Repository,
    artifact: &Artifact,
    statement: &Envelope,
) -> Result<Digest, Failure> {
    let Some(subject) = artifact.manifests.last().filter(|top| top.digest == artifact.digest) else {
        let text = format!(
            "the list of manifests of artifact `{}` does not end with the artifact's own manifest",
            artifact.digest
        );
        return Err(Failure::new(text));
    };
    let subject: &Descriptor = subject;
    let bytes = statement.to_json().map_err(|error| Failure::because("could not write the statement", &error))?;
    Ok(push_referrer(repository, subject, REFERRER_TYPE, Bytes::from(bytes)).await?.digest)
}

/// Returns the statement if the tenant signed it, and if it is about `artifact`, built for `component`.
///
/// # Errors
/// The reason why the statement is not trusted.
pub fn check(
    job: &Job,
    provenance: &Provenance,
    artifact: &Digest,
    app: Option<&AppName>,
    component: &ComponentName,
) -> Result<Statement, Failure> {
    let expected = Expected { tenant: &job.order.tenant, artifact, app: app.map(AppName::as_str), component };
    provenance.verify(job.roots.signer(&provenance.statement), &expected).map_err(|error| refused(&error))
}

fn refused(error: &ProvenanceError) -> Failure {
    Failure::new(freehold_aws_errors::chain(error))
}

#[cfg(test)]
mod tests {
    use freehold_protocol::contract::{OrderTerms, PackedTerms};

    use super::*;
    use crate::testing::order;

    #[test]
    fn the_app_of_the_terms_counts_whatever_the_values_for_templates_say() {
        let terms = json!({ "format": 1, "app": "shop", "roles": [], "hosts": [], "actions": [] }).to_string();
        let digest = Digest::of(terms.as_bytes());
        let document = PackedTerms::of(terms.as_bytes()).unwrap();
        let named = OrderTerms { digest, document: None, change: None };
        let whole = OrderTerms { document: Some(document), ..named.clone() };
        let context = json!({ "nuon": { "app": { "name": "blog" } } });
        let app = |context: &Value, terms: Option<&OrderTerms>| {
            let order = Order { context: context.clone(), terms: terms.cloned().map(Box::new), ..order(1, 7) };
            app_of(&order).map(|app| app.map(|app| app.to_string())).ok()
        };

        assert_eq!(app(&context, Some(&whole)), Some(Some("shop".to_owned())));
        assert_eq!(app(&json!({}), Some(&whole)), Some(Some("shop".to_owned())));
        assert_eq!(app(&context, Some(&named)), Some(Some("blog".to_owned())));
        assert_eq!(app(&json!({}), Some(&named)), None);
        assert_eq!(app(&json!({}), None), Some(None));
    }
}
