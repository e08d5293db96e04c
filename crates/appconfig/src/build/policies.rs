//! Reads the policies that check plans, manifests and images: `policies.toml` and `policies/`.

use std::collections::BTreeSet;

use freehold_policy::PolicyText;
use freehold_protocol::app_version::{Policy, PolicyEngine};

use crate::build::kyverno;
use crate::check::links::Index;
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
        PolicyEngine::Opa => not_rego(app, checked, value, contents),
        PolicyEngine::Kyverno => kyverno::mistake(app, checked, node, contents),
    });
    let names = node.tables("components").iter().filter_map(Node::as_text);
    Some(Policy {
        name: node.text("name").filter(|name| !name.is_empty()).map_or_else(|| name_of(value, kind), str::to_owned),
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

/// Returns the name of a policy that has none: the name of its file without the extension, or its type.
fn name_of(value: &Node, kind: &str) -> String {
    let path = value.as_text().filter(|text| text.starts_with("./") && !text.contains('\n'));
    let file = path.and_then(|path| path.rsplit('/').next());
    let stem = file.map(|file| file.rsplit_once('.').map_or(file, |(stem, _)| stem));
    stem.filter(|stem| !stem.is_empty()).unwrap_or(kind).to_owned()
}

/// Reports a text that the runner could not read as a policy. Such a policy would stop everything that it guards.
fn not_rego(app: &App, checked: &Checked, value: &Node, contents: &str) -> Option<Draft> {
    let policy = PolicyText { file: String::new(), text: contents.to_owned() };
    let error = match freehold_policy::check(&policy) {
        Ok(true) => return None,
        Ok(false) => {
            let draft = Draft::warning(checked.place(value), "the policy has no rule `deny` and no rule `warn`");
            return Some(draft.help("no other rule is evaluated; write `deny contains \"why\" if { ... }`"));
        }
        Err(error) => error,
    };
    let (place, message) = match error.place() {
        Some((line, column, message)) => {
            (checked.place_in(&app.files, value, offset(contents, line, column)), message.to_owned())
        }
        None => (checked.place(value), error.to_string().trim_start_matches(": ").to_owned()),
    };
    let draft = Draft::error(place, format!("the policy cannot be read as Rego: {message}"));
    Some(draft.help("`freehold policy test FILE` reads one policy, and evaluates it on a recorded plan"))
}

/// Returns the position, in bytes, of a line and a column, both from 1.
fn offset(text: &str, line: u32, column: u32) -> usize {
    let before = |number: u32| usize::try_from(number.saturating_sub(1)).unwrap_or_default();
    let start: usize = text.split_inclusive('\n').take(before(line)).map(str::len).sum();
    let rest = text.get(start..).unwrap_or_default();
    let column = rest.char_indices().nth(before(column)).map_or(rest.len(), |(at, _)| at);
    (start + column).min(text.len().saturating_sub(1))
}
