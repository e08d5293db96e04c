//! Reads the texts of Kyverno policies, which the runner applies to the app's clusters.

use freehold_protocol::app_version::PolicyEngine;
use freehold_protocol::order::policy_scope::{is_for_clusters, is_kind_of_kyverno};
use freehold_protocol::policy::MAX_POLICY_BYTES;

use crate::build::data_files::{documents, value};
use crate::check::syntax;
use crate::kinds::Kind;
use crate::read::document::Node;
use crate::read::yaml;
use crate::report::draft::Draft;
use crate::state::app::App;
use crate::state::file::Checked;

/// The types of policies that are about something outside of a cluster.
const OUTSIDE: [&str; 5] = ["terraform_module", "container_image", "docker_build", "pulumi", "sandbox"];

/// The types of components that are deployed into a cluster.
const IN_CLUSTERS: [&str; 3] = ["helm_chart", "kubernetes_manifest", "job"];

/// Reports a text that is not a Kyverno policy, or a policy that no cluster gets. `node` is the policy, `contents` its
/// text.
pub(super) fn mistake(app: &App, checked: &Checked, node: &Node, contents: &str) -> Option<Draft> {
    // An unknown engine was reported before.
    if node.text("engine").is_some_and(|engine| engine != "kyverno") {
        return None;
    }
    let text = node.get("contents")?;
    let kind = node.text("type").unwrap_or_default();
    // No order contains a policy of another type, so a mistake in such a policy is only a warning.
    let is_carried = is_for_clusters(PolicyEngine::Kyverno, kind);
    let draft = |message: &str| {
        let draft = if is_carried { Draft::error } else { Draft::warning };
        draft(checked.place(text), message.to_owned())
    };
    if contents.trim().is_empty() {
        return Some(draft("the policy is empty").expected("a Kyverno policy's YAML"));
    }
    if first_line(contents).is_some_and(|line| line.starts_with("package ")) {
        let engine = if node.get("engine").is_none() { "`kyverno`, the default" } else { "`kyverno`" };
        let effect = if is_carried { "Kyverno cannot read it" } else { "nothing evaluates it" };
        let message = format!("the policy is Rego, and its engine is {engine}: {effect}");
        return Some(draft(&message).help("write `engine = \"opa\"`"));
    }
    if OUTSIDE.contains(&kind) {
        let message = format!("a Kyverno policy is evaluated in a cluster, and so cannot check a `{kind}`");
        let draft = Draft::warning(checked.place_of(node, "type"), message);
        return Some(
            draft.help("write `type = \"kubernetes_cluster\"`, or write the policy in Rego with `engine = \"opa\"`"),
        );
    }
    if let Err(wrong) = syntax::yaml(contents) {
        let place = checked.place_in(&app.files, text, wrong.offset);
        return Some(Draft::error(place, format!("the policy is not YAML: {}", wrong.message)));
    }
    // Other types were reported before.
    if !is_carried {
        return None;
    }
    if contents.len() > MAX_POLICY_BYTES {
        let message = format!("the policy has {} bytes, and may have at most {MAX_POLICY_BYTES}", contents.len());
        return Some(Draft::error(checked.place(text), message).help("split its rules into several policies"));
    }
    not_of_kyverno(app, checked, text, contents).or_else(|| without_effect(app, checked, node))
}

/// Reports the first object because of which the runner would refuse every deploy into a cluster.
fn not_of_kyverno(app: &App, checked: &Checked, text: &Node, contents: &str) -> Option<Draft> {
    let objects: Vec<_> = documents(contents)
        .into_iter()
        .filter(|(_, document)| first_line(document).is_some())
        .filter_map(|(start, document)| Some((start, yaml::parse(document).ok()?)))
        .collect();
    let Some((at, message)) = objects.iter().find_map(|(start, object)| {
        let first = object.entries().first().map_or(0, |entry| entry.key_span.start);
        Some((start + first, wrong_with(object)?))
    }) else {
        let draft = || Draft::error(checked.place(text), "the text has no policy").expected("a Kyverno policy's YAML");
        return objects.is_empty().then(draft);
    };
    let draft = Draft::error(checked.place_in(&app.files, text, at), message);
    Some(draft.help(
        "a Kyverno policy is a `ClusterPolicy` or `Policy` of `kyverno.io`, or one of its validating policies; put other \
         objects into a component of type `kubernetes_manifest`",
    ))
}

fn wrong_with(object: &Node) -> Option<String> {
    let text = |node: &Node| node.as_text().filter(|text| !text.is_empty()).map(str::to_owned);
    let named = value(object, "metadata").and_then(|metadata| value(metadata, "name")).and_then(text);
    let of = |key: &str| value(object, key).and_then(text);
    let (version, kind) = (of("apiVersion"), of("kind"));
    let missing = [("apiVersion", &version), ("kind", &kind), ("metadata.name", &named)];
    if let Some((key, _)) = missing.iter().find(|(_, text)| text.is_none()) {
        return Some(format!("the policy has no `{key}`"));
    }
    let (version, kind) = (version?, kind?);
    let is_of_namespace = kind == "Policy" || kind.starts_with("Namespaced");
    if is_of_namespace && value(object, "metadata").and_then(|metadata| value(metadata, "namespace")).is_none() {
        return Some(format!("a `{kind}` applies to one namespace, and this object has no `metadata.namespace`"));
    }
    (!is_kind_of_kyverno(&version, &kind))
        .then(|| format!("`{kind}` of `{version}` is not a kind of policy that Kyverno has"))
}

/// Warns about a policy that no cluster gets, and about `components`, which does not limit a Kyverno policy.
fn without_effect(app: &App, checked: &Checked, node: &Node) -> Option<Draft> {
    let is_in_cluster = |one: &Checked| one.root.text("type").is_some_and(|kind| IN_CLUSTERS.contains(&kind));
    if !app.of(Kind::Component).any(is_in_cluster) {
        let message = "no component of the app is deployed into a cluster, so no cluster gets this Kyverno policy";
        let draft = Draft::warning(checked.place_of(node, "contents"), message);
        return Some(draft.help("remove the policy, or write it in Rego with `engine = \"opa\"`"));
    }
    let named = node.tables("components").iter().find(|one| one.as_text() != Some("*"))?;
    let message = "`components` has no effect: Kyverno applies a policy to everything in the cluster";
    let draft = Draft::warning(checked.place(named), message);
    Some(draft.help("remove `components`, and select objects with `match` in the policy"))
}

/// Returns the first line that is neither empty nor a comment.
fn first_line(text: &str) -> Option<&str> {
    text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'))
}
