//! What an app says of itself: `metadata.toml`.

use std::collections::BTreeMap;

use freehold_protocol::app_version::KubernetesContext;

use crate::build::App;
use crate::diagnostic::Draft;
use crate::document::Node;
use crate::files::Place;
use crate::kinds::Kind;
use crate::links::Index;
use crate::names;
use crate::validate::Checked;

/// What goes into the app version.
#[derive(Debug, Default)]
pub(crate) struct Metadata {
    pub(crate) display_name: String,
    pub(crate) description: String,
    pub(crate) readme: String,
    /// Sorted by name.
    pub(crate) kubernetes_contexts: Vec<KubernetesContext>,
}

/// Reads the metadata; says which Kubernetes contexts are none.
pub(crate) fn build(app: &mut App, index: &Index) -> Metadata {
    let mut drafts = Vec::new();
    let metadata = app.of(Kind::Metadata).next().map(|checked| {
        let root = &checked.root;
        let text = |key: &str| root.text(key).unwrap_or_default().to_owned();
        Metadata {
            display_name: text("display_name"),
            description: text("description"),
            readme: root.get("readme").and_then(|node| checked.content(node)).unwrap_or_default().to_owned(),
            kubernetes_contexts: contexts(app, checked, index, &mut drafts),
        }
    });
    app.drafts.extend(drafts);
    metadata.unwrap_or_default()
}

fn contexts(app: &App, checked: &Checked, index: &Index, drafts: &mut Vec<Draft>) -> Vec<KubernetesContext> {
    let mut seen: BTreeMap<&str, Place> = BTreeMap::new();
    let mut found = Vec::new();
    for node in checked.root.tables("kubernetes_context") {
        let (Some(name), Some(component)) = (node.text("name"), node.text("component")) else { continue };
        let place = checked.place_of(node, "name");
        if let Some(first) = seen.get(name) {
            drafts.push(names::twice(&app.files, &format!("Kubernetes context `{name}`"), first, place));
            continue;
        }
        seen.insert(name, place);
        if !index.components.contains_key(component) {
            if !app.broken.contains(&Kind::Component) {
                let known = index.components.keys().map(String::as_str);
                drafts.push(names::unknown(checked.place_of(node, "component"), "component", component, known));
            }
            continue;
        }
        drafts.extend(no_cluster(app, checked, node, component));
        found.extend(component.parse().ok().map(|component| KubernetesContext { name: name.to_owned(), component }));
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// Says that a component of this kind has no outputs that describe a cluster.
fn no_cluster(app: &App, checked: &Checked, node: &Node, component: &str) -> Option<Draft> {
    let owner = app.of(Kind::Component).find(|one| one.root.text("name") == Some(component))?;
    let kind = owner.root.text("type")?;
    if ["terraform_module", "pulumi", "cloudformation_stack"].contains(&kind) {
        return None;
    }
    let message = format!("component `{component}` is a `{kind}`, which makes no cluster");
    let draft = Draft::error(checked.place_of(node, "component"), message);
    let draft = draft.related(owner.place_of(&owner.root, "type"), "its kind");
    Some(draft.expected("a component of type `terraform_module`, `pulumi` or `cloudformation_stack`"))
}
