//! Reads the texts of Kyverno policies, which the runner applies to the app's clusters.

use freehold_protocol::policy::scope::TYPES_IN_CLUSTERS;

use crate::build::data_files::{documents, value};
use crate::check::syntax;
use crate::kinds::Kind;
use crate::read::document::Node;
use crate::read::yaml;
use crate::report::draft::Draft;
use crate::state::app::App;
use crate::state::file::Checked;

/// The API group of Kyverno's kinds, and the end of its other groups, such as `policies.kyverno.io`.
const GROUP: &str = "kyverno.io";

/// The types of policies that are about something outside of a cluster.
const OUTSIDE: [&str; 5] = ["terraform_module", "container_image", "docker_build", "pulumi", "sandbox"];

/// The types of components that are deployed into a cluster.
const IN_CLUSTERS: [&str; 3] = ["helm_chart", "kubernetes_manifest", "job"];

/// Reports a text that is not a Kyverno policy, or one that no cluster gets. `node` is the policy, `contents` its text.
pub(super) fn mistake(app: &App, checked: &Checked, node: &Node, contents: &str) -> Option<Draft> {
    // An engine of another name was reported.
    if node.text("engine").is_some_and(|engine| engine != "kyverno") {
        return None;
    }
    let text = node.get("contents")?;
    if contents.trim().is_empty() {
        return Some(Draft::warning(checked.place(text), "the policy is empty").expected("a Kyverno policy's YAML"));
    }
    if first_line(contents).is_some_and(|line| line.starts_with("package ")) {
        let draft = Draft::warning(checked.place(text), "the policy is Rego, but its engine is `kyverno`");
        return Some(draft.help("add `engine = \"opa\"`"));
    }
    let kind = node.text("type").unwrap_or_default();
    if OUTSIDE.contains(&kind) {
        let message = format!("a Kyverno policy is asked in a cluster, and so cannot check a `{kind}`");
        let draft = Draft::warning(checked.place_of(node, "type"), message);
        return Some(
            draft.help("write `type = \"kubernetes_cluster\"`, or write the policy in Rego with `engine = \"opa\"`"),
        );
    }
    if let Err(wrong) = syntax::yaml(contents) {
        let place = checked.place_in(&app.files, text, wrong.offset);
        return Some(Draft::error(place, format!("the policy is not YAML: {}", wrong.message)));
    }
    // Other types were reported.
    if !TYPES_IN_CLUSTERS.contains(&kind) {
        return None;
    }
    not_of_kyverno(app, checked, text, contents).or_else(|| without_effect(app, checked, node))
}

/// Reports the first object that the runner would refuse, and with it every deploy into a cluster.
fn not_of_kyverno(app: &App, checked: &Checked, text: &Node, contents: &str) -> Option<Draft> {
    let mut all = documents(contents).into_iter().filter_map(|(start, document)| {
        let object = yaml::parse(document).ok()?;
        let first = object.entries().first()?.key_span.start;
        Some((start + first, wrong_with(&object)))
    });
    let found = all.find_map(|(at, wrong)| Some((at, wrong?)));
    let (at, message) = found?;
    let draft = Draft::error(checked.place_in(&app.files, text, at), message);
    Some(draft.help("a Kyverno policy is an object such as `ClusterPolicy` of `kyverno.io/v1`; put other objects into a component of type `kubernetes_manifest`"))
}

fn wrong_with(object: &Node) -> Option<String> {
    let text = |key: &str| value(object, key).and_then(Node::as_text).filter(|text| !text.is_empty());
    let named = value(object, "metadata").and_then(|metadata| value(metadata, "name")).and_then(Node::as_text);
    let missing = [("apiVersion", text("apiVersion")), ("kind", text("kind")), ("metadata.name", named)];
    if let Some((key, _)) = missing.iter().find(|(_, text)| text.is_none()) {
        return Some(format!("the policy has no `{key}`"));
    }
    let (version, kind) = (text("apiVersion")?, text("kind")?);
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let is_of_kyverno = group == GROUP || group.strip_suffix(GROUP).is_some_and(|before| before.ends_with('.'));
    (!is_of_kyverno).then(|| format!("`{kind}` of `{version}` is not a kind of Kyverno"))
}

/// Warns about a policy that no cluster gets, and about components that do not limit it.
fn without_effect(app: &App, checked: &Checked, node: &Node) -> Option<Draft> {
    let is_in_cluster = |one: &Checked| one.root.text("type").is_some_and(|kind| IN_CLUSTERS.contains(&kind));
    if !app.of(Kind::Component).any(is_in_cluster) {
        let message = "no component of the app is deployed into a cluster, so no cluster gets this Kyverno policy";
        let draft = Draft::warning(checked.place_of(node, "contents"), message);
        return Some(draft.help("remove the policy, or write it in Rego with `engine = \"opa\"`"));
    }
    let named = node.tables("components").iter().find(|one| one.as_text() != Some("*"))?;
    let message = "`components` has no effect: Kyverno asks a policy about everything in the cluster";
    let draft = Draft::warning(checked.place(named), message);
    Some(draft.help("remove `components`, and select objects with `match` in the policy"))
}

/// Returns the first line that is neither empty nor a comment.
fn first_line(text: &str) -> Option<&str> {
    text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'))
}
