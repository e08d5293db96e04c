//! Reads the policies that check plans, manifests and images: `policies.toml` and `policies/`.

use std::collections::BTreeSet;

use freehold_protocol::app_version::{Policy, PolicyEngine};

use crate::check::links::Index;
use crate::check::syntax;
use crate::kinds::Kind;
use crate::read::document::Node;
use crate::report::draft::Draft;
use crate::state::app::App;
use crate::state::file::Checked;

/// Old types of policies that have no effect, each with the type that replaces it.
const IDLE: [(&str, &str); 3] = [
    ("runner_job_terraform_deploy", "terraform_module"),
    ("runner_job_helm_deploy", "helm_chart"),
    ("runner_job_action_workflow", "kubernetes_cluster"),
];

/// Types of policies that are component types too.
const KINDS: [&str; 6] =
    ["terraform_module", "helm_chart", "kubernetes_manifest", "container_image", "docker_build", "pulumi"];

/// Returns the app's policies, sorted by name, then by type, then by contents.
pub(crate) fn build(app: &mut App, index: &Index) -> Vec<Policy> {
    let mut drafts = Vec::new();
    let mut policies: Vec<Policy> = Vec::new();
    for checked in app.of(Kind::Policies) {
        for node in checked.root.tables("policy") {
            policies.extend(policy(app, checked, node, index, &mut drafts));
        }
    }
    app.drafts.extend(drafts);
    policies.sort_by(|a, b| (&a.name, &a.kind, &a.contents, a).cmp(&(&b.name, &b.kind, &b.contents, b)));
    policies.dedup();
    policies
}

fn policy(app: &App, checked: &Checked, node: &Node, index: &Index, drafts: &mut Vec<Draft>) -> Option<Policy> {
    let kind = node.text("type")?;
    if let Some((_, today)) = IDLE.iter().find(|(word, _)| *word == kind) {
        let draft = Draft::warning(checked.place_of(node, "type"), format!("a policy of type `{kind}` checks nothing"));
        drafts.push(draft.help(format!("write `type = \"{today}\"`")));
    }
    let engine = match node.text("engine") {
        Some("opa") => PolicyEngine::Opa,
        Some(_) | None => PolicyEngine::Kyverno,
    };
    components(app, checked, node, index, kind, drafts);
    let value = node.get("contents")?;
    let contents = checked.content(value)?;
    // The contents are also empty when they are at an address whose text has not been fetched.
    let there = !contents.is_empty() || value.as_text() == Some("");
    drafts.extend(match engine {
        PolicyEngine::Opa | PolicyEngine::Kyverno if !there => None,
        PolicyEngine::Opa => not_rego(checked, value, contents),
        PolicyEngine::Kyverno => not_kyverno(app, checked, node, value, contents),
    });
    let names = node.tables("components").iter().filter_map(Node::as_text);
    Some(Policy {
        name: node.text("name").unwrap_or_default().to_owned(),
        kind: kind.to_owned(),
        engine,
        components: names.filter_map(|word| index.component(word)?.parse().ok()).collect::<BTreeSet<_>>(),
        contents: contents.to_owned(),
    })
}

/// Warns about components whose type the policy does not check.
fn components(app: &App, checked: &Checked, node: &Node, index: &Index, kind: &str, drafts: &mut Vec<Draft>) {
    for named in node.tables("components") {
        let Some(name) = named.as_text().and_then(|word| index.component(word)) else { continue };
        let Some(owner) = app.of(Kind::Component).find(|one| one.root.text("name") == Some(name)) else { continue };
        let own = match owner.root.text("type") {
            Some("external_image") => "container_image",
            Some(word) => word,
            None => continue,
        };
        if KINDS.contains(&kind) && own != kind {
            let message = format!("component `{name}` is a `{own}`, which a policy of type `{kind}` does not check");
            let other = if KINDS.contains(&own) { format!(", or write `type = \"{own}\"`") } else { String::new() };
            let draft = Draft::warning(checked.place(named), message);
            let draft = draft.help(format!("remove `{name}` from `components`{other}"));
            drafts.push(draft.related(owner.place_of(&owner.root, "type"), "its type"));
        }
    }
}

/// Warns about a text that is probably not Rego, or whose package is never evaluated.
fn not_rego(checked: &Checked, value: &Node, contents: &str) -> Option<Draft> {
    let first = contents.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    let package = first.and_then(|line| line.strip_prefix("package")).map(str::trim);
    let message = match package {
        Some("nuon" | "freehold") => return None,
        Some(other) => format!("the policy is in package `{other}`, which is never evaluated"),
        None => "the policy does not start with a package, as Rego does".to_owned(),
    };
    let draft = Draft::warning(checked.place(value), message);
    Some(draft.help("start with `package nuon`; rules `deny` and `warn` are evaluated"))
}

/// Reports a text that is not a Kyverno policy.
fn not_kyverno(app: &App, checked: &Checked, node: &Node, value: &Node, contents: &str) -> Option<Draft> {
    if contents.trim_start().starts_with("package ") {
        let draft =
            Draft::warning(checked.place_of(node, "contents"), "the policy is Rego, but its engine is `kyverno`");
        return Some(draft.help("add `engine = \"opa\"`"));
    }
    if contents.trim().is_empty() {
        return Some(Draft::warning(checked.place(value), "the policy is empty").expected("a Kyverno policy's YAML"));
    }
    let wrong = syntax::yaml(contents).err()?;
    // A text with templates outside of strings is YAML only after it is rendered, so it is not reported.
    if contents.contains("{{") {
        return None;
    }
    let place = checked.place_in(&app.files, value, wrong.offset);
    Some(Draft::error(place, format!("the policy is not YAML: {}", wrong.message)))
}
