//! Reads the name, description, default labels and clusters of an app: `metadata.toml`, and `kubernetes_contexts.toml`.

use std::collections::BTreeMap;

use freehold_protocol::app_version::KubernetesContext;

use crate::build::values::install_labels;
use crate::check::links::Index;
use crate::kinds::Kind;
use crate::read::document::Node;
use crate::report::draft::Draft;
use crate::state::app::App;
use crate::state::file::Checked;

/// The values of these files that belong to the app version.
#[derive(Debug, Default)]
pub(crate) struct Metadata {
    pub(crate) display_name: String,
    pub(crate) description: String,
    pub(crate) readme: String,
    pub(crate) default_labels: BTreeMap<String, String>,
    /// The Kubernetes contexts, sorted by name.
    pub(crate) kubernetes_contexts: Vec<KubernetesContext>,
}

/// The version of the config format that this crate reads.
const VERSION: &str = "v2";

/// Reads the metadata. Reports default labels that no install can have, and Kubernetes contexts whose component does
/// not create a cluster.
pub(crate) fn build(app: &mut App, index: &Index) -> Metadata {
    let mut drafts = Vec::new();
    let metadata = app.of(Kind::Metadata).next().map(|checked| {
        let root = &checked.root;
        let text = |key: &str| root.text(key).unwrap_or_default().to_owned();
        drafts.extend(other_version(checked));
        let (default_labels, refused) = install_labels(checked, "default_labels");
        drafts.extend(refused);
        Metadata {
            display_name: text("display_name"),
            description: text("description"),
            readme: root.get("readme").and_then(|node| checked.content(node)).unwrap_or_default().to_owned(),
            default_labels: default_labels.unwrap_or_default(),
            kubernetes_contexts: contexts(app, index, &mut drafts),
        }
    });
    app.drafts.extend(drafts);
    metadata.unwrap_or_default()
}

/// Warns about another version of the config format. Configs for other tools have `v1`, and most of them can be used.
fn other_version(checked: &Checked) -> Option<Draft> {
    let node = checked.root.get("version")?;
    let version = node.as_text().filter(|version| *version != VERSION)?;
    let draft =
        Draft::warning(checked.place(node), format!("`version` is `{version}`, and the config is read as `{VERSION}`"));
    Some(draft.help(format!("write `version = \"{VERSION}\"`")))
}

/// Returns the Kubernetes contexts whose components exist. The other contexts are reported by [`crate::check::links`].
fn contexts(app: &App, index: &Index, drafts: &mut Vec<Draft>) -> Vec<KubernetesContext> {
    let mut found = Vec::new();
    let files = app.of(Kind::Metadata).chain(app.of(Kind::KubernetesContexts));
    let nodes =
        files.flat_map(|checked| checked.root.tables("kubernetes_context").iter().map(move |node| (checked, node)));
    for (checked, node) in nodes {
        let (Some(name), Some(word)) = (node.text("name"), node.text("component")) else { continue };
        let Some(component) = index.component(word) else { continue };
        drafts.extend(no_cluster(app, checked, node, component));
        found.extend(component.parse().ok().map(|component| KubernetesContext { name: name.to_owned(), component }));
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found.dedup_by(|a, b| a.name == b.name);
    found
}

/// Reports a component of a type that cannot create a cluster.
fn no_cluster(app: &App, checked: &Checked, node: &Node, component: &str) -> Option<Draft> {
    let owner = app.of(Kind::Component).find(|one| one.root.text("name") == Some(component))?;
    let kind = owner.root.text("type")?;
    if ["terraform_module", "pulumi", "cloudformation_stack"].contains(&kind) {
        return None;
    }
    let message = format!("component `{component}` is a `{kind}`, which does not create a cluster");
    let draft = Draft::error(checked.place_of(node, "component"), message);
    let draft = draft.related(owner.place_of(&owner.root, "type"), "its type");
    Some(draft.expected("a component of type `terraform_module`, `pulumi` or `cloudformation_stack`"))
}
