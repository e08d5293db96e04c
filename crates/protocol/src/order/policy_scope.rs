//! Which work a policy guards.

use std::collections::BTreeSet;

use crate::ComponentName;
use crate::app_version::PolicyEngine;
use crate::build::Package;
use crate::order::{SyncImage, Work};
use crate::provenance::Statement;

/// Returns whether a policy of type `kind` that names these components guards `work`. A policy that names no components
/// guards all components of its type. A removal is guarded like the deploy of the removed part. No policy guards
/// the removal of an image, which removes nothing, or a drift check, which applies nothing.
pub fn guards(kind: &str, components: &BTreeSet<ComponentName>, work: &Work) -> bool {
    if matches!(work, Work::DetectDrift(_)) {
        return false;
    }
    let is_removal = matches!(work, Work::Remove(_));
    let made_by = work.made_by();
    let is_of_kind = match made_by {
        Work::TerraformModule(_) => kind == "terraform_module",
        Work::Sandbox(_) | Work::PulumiSandbox(_) => kind == "sandbox",
        Work::Pulumi(_) => kind == "pulumi",
        Work::HelmChart(_) => matches!(kind, "helm_chart" | "kubernetes_cluster"),
        Work::KubernetesManifest(_) => matches!(kind, "kubernetes_manifest" | "kubernetes_cluster"),
        Work::KubernetesJob(_) => kind == "kubernetes_cluster",
        Work::ContainerImage(image) => kind == type_of_image(image) && !is_removal,
        Work::CloudformationStack(_)
        | Work::CopySecrets(_)
        | Work::Remove(_)
        | Work::DetectDrift(_)
        | Work::Action(_)
        | Work::Build(_)
        | Work::Preflight(_)
        | Work::Leftovers(_)
        | Work::Health(_)
        | Work::Upgrade(_) => false,
    };
    is_of_kind && (components.is_empty() || made_by.component().is_some_and(|name| components.contains(name)))
}

/// Returns whether a policy of `engine` with type `kind` is for the app's clusters: Kyverno checks the objects of a
/// cluster, and no order contains a Kyverno policy of another type.
pub fn is_for_clusters(engine: PolicyEngine, kind: &str) -> bool {
    engine == PolicyEngine::Kyverno && matches!(kind, "kubernetes_cluster" | "helm_chart" | "kubernetes_manifest")
}

/// The kinds that a Kyverno policy may have, by API group. Other kinds of Kyverno are not policies: exceptions from
/// policies, and instructions to delete or to create objects.
const KINDS_OF_KYVERNO: [(&str, &[&str]); 2] = [
    ("kyverno.io", &["ClusterPolicy", "Policy"]),
    (
        "policies.kyverno.io",
        &["ValidatingPolicy", "ImageValidatingPolicy", "NamespacedValidatingPolicy", "NamespacedImageValidatingPolicy"],
    ),
];

/// Returns whether objects of `kind` in `api_version` are policies of Kyverno.
pub fn is_kind_of_kyverno(api_version: &str, kind: &str) -> bool {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    KINDS_OF_KYVERNO.iter().any(|(known, kinds)| *known == group && kinds.contains(&kind))
}

/// Returns whether an order for `work` carries a policy of `engine` with type `kind` that names these components.
///
/// A policy in Rego is in the orders for the work that it guards. A policy of Kyverno applies to a whole cluster,
/// whichever components it names, so it is in every order that deploys a component into a cluster.
pub fn carries(engine: PolicyEngine, kind: &str, components: &BTreeSet<ComponentName>, work: &Work) -> bool {
    match engine {
        PolicyEngine::Opa => guards(kind, components, work),
        PolicyEngine::Kyverno => is_for_clusters(engine, kind) && deploys_into_cluster(work),
    }
}

const fn deploys_into_cluster(work: &Work) -> bool {
    matches!(work, Work::HelmChart(_) | Work::KubernetesManifest(_) | Work::KubernetesJob(_))
}

/// Returns the type of the component that an image comes from, according to the statement about the image.
fn type_of_image(image: &SyncImage) -> &'static str {
    let statement = image.artifact.provenance.as_ref().map(|provenance| provenance.statement.peek::<Statement>());
    let package = statement.and_then(Result::ok).map(|it| it.predicate.build_definition.external_parameters.package);
    if package == Some(Package::DockerImage) { "docker_build" } else { "container_image" }
}
