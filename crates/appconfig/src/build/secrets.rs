//! Reads the secrets of an app from `secrets.toml` and `secrets/`.

use freehold_protocol::app_version::{Secret, SecretFormat, SyncedSecret};

use crate::build::values::unusable_name;
use crate::kinds::Kind;
use crate::read::document::{Entry, Node};
use crate::report::draft::Draft;
use crate::state::app::App;
use crate::state::file::Checked;

/// Returns the app's secrets, sorted by name.
pub(crate) fn build(app: &mut App) -> Vec<Secret> {
    let mut drafts = Vec::new();
    let mut secrets = Vec::new();
    for checked in &app.checked {
        let nodes: &[Node] = match checked.kind {
            Kind::Secrets => checked.root.tables("secret"),
            Kind::Secret => std::slice::from_ref(&checked.root),
            _ => continue,
        };
        for node in nodes {
            secrets.extend(secret(checked, node, &mut drafts));
        }
    }
    app.drafts.extend(drafts);
    secrets.sort_by(|a, b| a.name.cmp(&b.name));
    secrets.dedup_by(|a, b| a.name == b.name);
    secrets
}

fn secret(checked: &Checked, node: &Node, drafts: &mut Vec<Draft>) -> Option<Secret> {
    let name = node.text("name")?;
    let text = |key: &str| node.text(key).unwrap_or_default().to_owned();
    drafts.extend(unusable_name(checked, node, "a secret"));
    drafts.extend(exclusive(checked, node, name));
    if let Some(default) = node.entry("default").filter(|entry| !is_empty(&entry.value)) {
        let message = format!(
            "the default of secret `{name}` is never part of an app version; the secret is empty unless the customer \
             enters a value"
        );
        let draft = Draft::warning(checked.key_place(default), message);
        drafts.push(draft.help("remove the default; `auto_generate = true` generates a value"));
    }
    Some(Secret {
        name: name.to_owned(),
        display_name: text("display_name"),
        description: text("description"),
        required: node.flag("required"),
        auto_generate: node.flag("auto_generate"),
        format: if node.text("format") == Some("base64") { SecretFormat::Base64 } else { SecretFormat::Plain },
        kubernetes: synced(checked, node, name, drafts),
    })
}

fn is_empty(node: &Node) -> bool {
    node.as_text().is_some_and(str::is_empty)
}

/// Reports keys of a secret that exclude each other.
fn exclusive(checked: &Checked, node: &Node, name: &str) -> Option<Draft> {
    let mut given: Vec<&Entry> = ["required", "auto_generate"]
        .into_iter()
        .filter(|key| node.flag(key))
        .chain(node.get("default").filter(|value| !is_empty(value)).map(|_| "default"))
        .filter_map(|key| node.entry(key))
        .collect();
    given.sort_by_key(|entry| entry.key_span.start);
    let [first, second, ..] = given.as_slice() else { return None };
    let message = format!("secret `{name}` has both `{}` and `{}`", first.key, second.key);
    let draft = Draft::error(checked.key_place(second), message).related(checked.key_place(first), "the other key");
    Some(draft.help("keep one of `required`, `auto_generate`, `default`"))
}

/// Returns the namespace and name of a secret's copy in a cluster; `None` if the secret is not copied.
fn synced(checked: &Checked, node: &Node, name: &str, drafts: &mut Vec<Draft>) -> Option<SyncedSecret> {
    const KEYS: [&str; 2] = ["kubernetes_secret_namespace", "kubernetes_secret_name"];
    if !node.flag("kubernetes_sync") {
        if let Some(entry) = KEYS.iter().find_map(|key| node.entry(key)).filter(|entry| !is_empty(&entry.value)) {
            let message = format!("`{}` has no effect: secret `{name}` is not synced", entry.key);
            drafts.push(Draft::warning(checked.key_place(entry), message).help("add `kubernetes_sync = true`"));
        }
        return None;
    }
    let [namespace, secret] = KEYS.map(|key| node.text(key).filter(|text| !text.is_empty()));
    for (key, value) in KEYS.into_iter().zip([namespace, secret]) {
        if value.is_none()
            && let Some(entry) = node.entry("kubernetes_sync")
        {
            let message = format!("secret `{name}` is synced to a cluster, but `{key}` is missing");
            drafts.push(Draft::error(checked.key_place(entry), message).help(format!("add `{key} = \"...\"`")));
        }
    }
    Some(SyncedSecret { namespace: namespace?.to_owned(), name: secret?.to_owned() })
}
