//! What the files of an app say about each other: names, and who refers to whom.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::app_version::Reference;
use freehold_template::nearest;

use crate::build::App;
use crate::diagnostic::Draft;
use crate::document::{Data, Node};
use crate::files::Place;
use crate::kinds::Kind;
use crate::validate::{Checked, Reading};

/// Keys below `.nuon`.
const TREE: [&str; 12] = [
    "org",
    "app",
    "install",
    "inputs",
    "install_stack",
    "sandbox",
    "components",
    "actions",
    "secrets",
    "runner",
    "domain",
    "cloud_account",
];

/// Every name that something else may refer to, and where it is given.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) inputs: BTreeMap<String, Place>,
    pub(crate) groups: BTreeMap<String, Place>,
    pub(crate) secrets: BTreeMap<String, Place>,
    pub(crate) actions: BTreeMap<String, Place>,
    pub(crate) components: BTreeMap<String, Place>,
    /// Of what a file could not be parsed, so that a missing name there is not worth a second mistake.
    unsure: BTreeSet<&'static str>,
}

impl Index {
    /// Returns the component called `name`.
    pub(crate) fn component(&self, name: &str) -> Option<&str> {
        self.components.get_key_value(name).map(|(name, _)| name.as_str())
    }

    fn component_words(&self) -> impl Iterator<Item = &str> {
        self.components.keys().map(String::as_str)
    }
}

/// One component's need of another, and where it is said.
#[derive(Debug)]
pub(crate) struct Edge {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) place: Place,
}

/// Collects all names; says which are given twice.
pub(crate) fn index(app: &mut App) -> Index {
    let mut index = Index { unsure: app.broken.iter().map(|kind| names_of(*kind)).collect(), ..Index::default() };
    let mut drafts = Vec::new();
    for checked in &app.checked {
        let root = &checked.root;
        let mut take = |names: &mut BTreeMap<String, Place>, what: &str, node: &Node| {
            let Some(name) = node.text("name") else { return };
            let place = checked.place_of(node, "name");
            if let Some(first) = names.get(name) {
                let message = format!("{what} `{name}` is defined twice, in {} and here", app.files.short(first));
                let draft = Draft::error(place, message).related(first.clone(), "first defined here");
                drafts.push(draft.help("rename one of them, or remove it"));
            } else {
                names.insert(name.to_owned(), place);
            }
        };
        match checked.kind {
            Kind::Component => take(&mut index.components, "component", root),
            Kind::Action => take(&mut index.actions, "action", root),
            Kind::InputGroup => take(&mut index.groups, "input group", root),
            Kind::Inputs => {
                root.tables("group").iter().for_each(|node| take(&mut index.groups, "input group", node));
                root.tables("input").iter().for_each(|node| take(&mut index.inputs, "input", node));
            }
            Kind::Input => take(&mut index.inputs, "input", root),
            Kind::Secrets => root.tables("secret").iter().for_each(|node| take(&mut index.secrets, "secret", node)),
            Kind::Secret => take(&mut index.secrets, "secret", root),
            Kind::Metadata
            | Kind::Permissions
            | Kind::Role
            | Kind::BreakGlass
            | Kind::OperationRoles
            | Kind::Sandbox
            | Kind::Runner
            | Kind::Stack
            | Kind::Policies
            | Kind::Installer
            | Kind::Branch
            | Kind::Triggers
            | Kind::Install
            | Kind::Runbook => {}
        }
    }
    app.drafts.extend(drafts);
    index
}

/// Returns what the files of `kind` give names to.
const fn names_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Component => "component",
        Kind::Action => "action",
        Kind::Inputs | Kind::Input => "input",
        Kind::InputGroup => "input group",
        Kind::Secrets | Kind::Secret => "secret",
        Kind::Metadata
        | Kind::Permissions
        | Kind::Role
        | Kind::BreakGlass
        | Kind::OperationRoles
        | Kind::Sandbox
        | Kind::Runner
        | Kind::Stack
        | Kind::Policies
        | Kind::Installer
        | Kind::Branch
        | Kind::Triggers
        | Kind::Install
        | Kind::Runbook => "",
    }
}

/// Checks what files say about each other; returns the components' needs.
pub(crate) fn check(app: &mut App, index: &Index) -> Vec<Edge> {
    let mut edges = Vec::new();
    let mut drafts = Vec::new();
    for checked in &app.checked {
        let owner = (checked.kind == Kind::Component).then(|| checked.root.text("name")).flatten();
        for reading in &checked.uses {
            if let Some(draft) = misreference(reading, index) {
                drafts.push(draft);
            } else if let (Some(owner), Some(to)) = (owner, needed(reading, index)) {
                edges.push(Edge { from: owner.to_owned(), to: to.to_owned(), place: reading.place.clone() });
            }
        }
        names(checked, index, &mut drafts, |to, place| {
            if let Some(owner) = owner {
                edges.push(Edge { from: owner.to_owned(), to: to.to_owned(), place });
            }
        });
    }
    app.drafts.extend(drafts);
    edges
}

fn needed<'a>(reading: &Reading, index: &'a Index) -> Option<&'a str> {
    match target(&reading.path)? {
        ("component", word) => index.component(word),
        _ => None,
    }
}

/// Returns the kind and name of what a path is about.
fn target(path: &[String]) -> Option<(&'static str, &str)> {
    let words: Vec<&str> = path.iter().map(String::as_str).collect();
    let found = match words.as_slice() {
        ["nuon", "inputs", "inputs", name, ..] | ["nuon", "install", "inputs", name, ..] => ("input", *name),
        ["nuon", "components", name, ..] => ("component", *name),
        ["nuon", "actions", "workflows", name, ..] => ("action", *name),
        ["nuon", "secrets", name, ..] => ("secret", *name),
        _ => return None,
    };
    (found.1 != "*").then_some(found)
}

/// Says why what a template reads is nothing that the tree will have.
fn misreference(reading: &Reading, index: &Index) -> Option<Draft> {
    let shown = format!(".{}", reading.path.join("."));
    let place = reading.place.clone();
    if reading.guarded {
        return None;
    }
    match reading.path.first().map(String::as_str) {
        Some("nuon") | None => {}
        Some(first) => {
            let draft = Draft::error(place, format!("`{shown}` is not in the tree; everything is below `.nuon`"));
            return Some(match first {
                "install" | "inputs" | "components" | "sandbox" => draft.help(format!("write `.nuon{shown}`")),
                _ => draft.meant(nearest(first, ["nuon"])),
            });
        }
    }
    if let Some(second) = reading.path.get(1)
        && !TREE.contains(&second.as_str())
    {
        // Only a warning: the text may be one that nothing renders, such as a role's name.
        let draft = Draft::warning(place, format!("`.nuon.{second}` does not exist"));
        return Some(match nearest(second, TREE) {
            Some(near) => draft.help(format!("did you mean `.nuon.{near}`?")),
            None => draft.help(format!("below `.nuon` are: {}", TREE.join(", "))),
        });
    }
    let (what, name) = target(&reading.path)?;
    let near = match what {
        "input" if !index.inputs.contains_key(name) => nearest(name, index.inputs.keys().map(String::as_str)),
        "component" if index.component(name).is_none() => nearest(name, index.component_words()),
        "action" if !index.actions.contains_key(name) => nearest(name, index.actions.keys().map(String::as_str)),
        "secret" if !index.secrets.contains_key(name) => nearest(name, index.secrets.keys().map(String::as_str)),
        _ => return None,
    };
    (!index.unsure.contains(what)).then(|| unknown(place, what, name, near))
}

fn unknown(place: Place, what: &str, name: &str, near: Option<&str>) -> Draft {
    let draft = Draft::error(place, format!("there is no {what} `{name}`"));
    match near {
        Some(_) => draft.meant(near),
        None => draft.help(format!("define the {what}, or remove what refers to it")),
    }
}

/// Checks the names that a file gives outside of templates; `need` is told each component in `dependencies`.
fn names(checked: &Checked, index: &Index, drafts: &mut Vec<Draft>, mut need: impl FnMut(&str, Place)) {
    let root = &checked.root;
    let component = |node: &Node, drafts: &mut Vec<Draft>| {
        let name = node.as_text()?;
        let found = index.component(name);
        if found.is_none() && !index.unsure.contains("component") {
            drafts.push(unknown(checked.place(node), "component", name, nearest(name, index.component_words())));
        }
        found.map(str::to_owned)
    };
    match checked.kind {
        Kind::Component => {
            for node in list(root, "dependencies") {
                if let Some(to) = component(node, drafts) {
                    need(&to, checked.place(node));
                }
            }
        }
        Kind::Action => {
            list(root, "dependencies").iter().for_each(|node| drop(component(node, drafts)));
            for node in root.tables("triggers").iter().filter_map(|trigger| trigger.get("component_name")) {
                component(node, drafts);
            }
        }
        Kind::Runbook => {
            for step in root.tables("steps") {
                if let Some(node) = step.get("component_name") {
                    component(node, drafts);
                }
                if let Some(node) = step.get("action_name")
                    && let Some(name) = node.as_text()
                    && !index.actions.contains_key(name)
                    && !index.unsure.contains("action")
                {
                    let near = nearest(name, index.actions.keys().map(String::as_str));
                    drafts.push(unknown(checked.place(node), "action", name, near));
                }
            }
        }
        Kind::Policies => {
            for node in root.tables("policy").iter().flat_map(|policy| list(policy, "components")) {
                if node.as_text() != Some("*") {
                    component(node, drafts);
                }
            }
        }
        Kind::Inputs | Kind::Input => {
            let one = (checked.kind == Kind::Input).then_some(root);
            for node in root.tables("input").iter().chain(one).filter_map(|input| input.get("group")) {
                if let Some(name) = node.as_text()
                    && !index.groups.contains_key(name)
                    && !index.unsure.contains("input group")
                    && !index.unsure.contains("input")
                {
                    let near = nearest(name, index.groups.keys().map(String::as_str));
                    drafts.push(unknown(checked.place(node), "input group", name, near));
                }
            }
        }
        Kind::Metadata
        | Kind::InputGroup
        | Kind::Secrets
        | Kind::Secret
        | Kind::Permissions
        | Kind::Role
        | Kind::BreakGlass
        | Kind::OperationRoles
        | Kind::Sandbox
        | Kind::Runner
        | Kind::Stack
        | Kind::Installer
        | Kind::Branch
        | Kind::Triggers
        | Kind::Install => {}
    }
}

fn list<'a>(node: &'a Node, key: &str) -> &'a [Node] {
    match node.get(key).map(|value| &value.data) {
        Some(Data::List(items)) => items,
        _ => &[],
    }
}

/// Returns what the templates of `checked` refer to, under the names that the app version uses.
pub(crate) fn references(checked: &Checked, index: &Index) -> BTreeSet<Reference> {
    let found = checked.uses.iter().filter_map(|reading| target(&reading.path));
    found
        .filter_map(|(what, name)| match what {
            "input" if index.inputs.contains_key(name) => Some(Reference::Input(name.to_owned())),
            "component" => index.component(name)?.parse().ok().map(Reference::Component),
            "action" if index.actions.contains_key(name) => name.parse().ok().map(Reference::Action),
            "secret" if index.secrets.contains_key(name) => Some(Reference::Secret(name.to_owned())),
            _ => None,
        })
        .collect()
}
