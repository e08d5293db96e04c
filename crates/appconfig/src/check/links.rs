//! Checks the references between the files of an app: finds dependencies between components, and reports names that do
//! not exist.

use std::collections::BTreeSet;

use freehold_protocol::ComponentName;

use crate::check::index::Thing;
use crate::check::references::{Target, all_components, misreference, run_input, target, unlicensed};
use crate::kinds::Kind;
use crate::read::document::{Data, Node};
use crate::read::files::Place;
use crate::report::draft::Draft;
use crate::state::app::App;
use crate::state::file::{Checked, Reading};

pub(crate) use crate::check::index::{Index, index};
pub(crate) use crate::check::references::references;

/// A dependency of one component on another, and the place that causes it.
#[derive(Debug)]
pub(crate) struct Edge {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) place: Place,
}

/// Checks the references between files. Returns the dependencies between components.
pub(crate) fn check(app: &mut App, index: &Index) -> Vec<Edge> {
    let mut edges = Vec::new();
    let mut drafts = Vec::new();
    for checked in &app.checked {
        for reading in &checked.uses {
            drafts.extend(misreference(reading, index));
            drafts.extend(run_input(reading, checked));
            drafts.extend(unlicensed(reading, checked));
        }
        drafts.extend(all_components(checked));
        let mut names = Names { checked, index, drafts: &mut drafts };
        names.file();
        if checked.kind == Kind::Component
            && let Some(from) = checked.root.text("name")
        {
            edges.extend(needs(checked, index).map(|(to, place)| Edge {
                from: from.to_owned(),
                to: to.to_owned(),
                place,
            }));
        }
    }
    app.drafts.extend(drafts);
    edges
}

/// Returns the components that a component depends on: the components that its templates read, the components that it
/// declares, and the component that creates its cluster.
fn needs<'a>(checked: &'a Checked, index: &'a Index) -> impl Iterator<Item = (&'a str, Place)> {
    let read = checked
        .uses
        .iter()
        .filter_map(|reading| Some((index.component(component_of(reading)?)?, reading.place.clone())));
    let root = &checked.root;
    let declared = list(root, "dependencies")
        .iter()
        .filter_map(|node| Some((index.component(node.as_text()?)?, checked.place(node))));
    let cluster = root.get("kubernetes_context").and_then(|node| {
        let maker = index.component_of_context(node.as_text()?)?;
        (root.text("name") != Some(maker)).then(|| (maker, checked.place(node)))
    });
    read.chain(declared).chain(cluster)
}

/// Returns the name by which a template reads the outputs of a component; `None` when it reads something else.
fn component_of(reading: &Reading) -> Option<&str> {
    match target(&reading.path)? {
        Target::Component(word, _) => Some(word),
        Target::Input(_)
        | Target::Action(..)
        | Target::Secret(_)
        | Target::Sandbox(_)
        | Target::InstallStack(_)
        | Target::Licence => None,
    }
}

/// Returns the components that must be deployed before an action runs: the components that it declares, and those that
/// its templates require.
pub(crate) fn needed_by_action(checked: &Checked, index: &Index) -> BTreeSet<ComponentName> {
    let read = checked.uses.iter().filter(|reading| !reading.guarded).filter_map(component_of);
    let declared = list(&checked.root, "dependencies").iter().filter_map(Node::as_text);
    read.chain(declared).filter_map(|word| index.component(word)?.parse().ok()).collect()
}

/// Checks the names that one file uses outside of templates.
struct Names<'a> {
    checked: &'a Checked,
    index: &'a Index,
    drafts: &'a mut Vec<Draft>,
}

impl Names<'_> {
    fn file(&mut self) {
        let root = &self.checked.root;
        match self.checked.kind {
            Kind::Component => {
                self.each(list(root, "dependencies"), Thing::Component);
                self.context(root);
                for node in root.tables("operation_roles") {
                    self.role(node.get("role"), Thing::Role);
                }
            }
            Kind::Action => {
                self.each(list(root, "dependencies"), Thing::Component);
                self.each(
                    root.tables("triggers").iter().filter_map(|trigger| trigger.get("component_name")),
                    Thing::Component,
                );
                self.context(root);
                self.role(root.get("role"), Thing::Role);
                self.role(root.get("break_glass_role"), Thing::BreakGlassRole);
                list(root, "other_roles").iter().for_each(|role| self.role(Some(role), Thing::Role));
            }
            Kind::Runbook => {
                let steps = root.tables("steps");
                self.each(steps.iter().filter_map(|step| step.get("component_name")), Thing::Component);
                self.each(steps.iter().filter_map(|step| step.get("action_name")), Thing::Action);
                steps.iter().for_each(|step| self.role(step.get("role"), Thing::Role));
            }
            Kind::Metadata | Kind::KubernetesContexts => {
                let contexts = root.tables("kubernetes_context");
                self.each(contexts.iter().filter_map(|context| context.get("component")), Thing::Component);
            }
            Kind::Policies => {
                let components = root.tables("policy").iter().flat_map(|policy| list(policy, "components"));
                self.each(components.filter(|node| node.as_text() != Some("*")), Thing::Component);
            }
            Kind::Inputs | Kind::Input => {
                let one = (self.checked.kind == Kind::Input).then_some(root);
                self.each(
                    root.tables("input").iter().chain(one).filter_map(|input| input.get("group")),
                    Thing::InputGroup,
                );
            }
            Kind::Runner => self.each(root.get("tool_image"), Thing::Component),
            Kind::InputGroup
            | Kind::Secrets
            | Kind::Secret
            | Kind::Permissions
            | Kind::Role
            | Kind::NamedPolicy
            | Kind::BreakGlass
            | Kind::OperationRoles
            | Kind::Sandbox
            | Kind::Stack
            | Kind::Installer
            | Kind::Branch
            | Kind::Triggers
            | Kind::InstallsSource
            | Kind::Install => {}
        }
    }

    fn each<'n>(&mut self, nodes: impl IntoIterator<Item = &'n Node>, thing: Thing) {
        for node in nodes {
            let Some(name) = node.as_text() else { continue };
            self.drafts.extend(self.index.unknown(self.checked.place(node), thing, name));
        }
    }

    /// Checks the Kubernetes context that a component or action names; an empty name is the sandbox's cluster.
    fn context(&mut self, root: &Node) {
        let context = root.get("kubernetes_context").filter(|node| node.as_text() != Some(""));
        self.each(context, Thing::KubernetesContext);
    }

    /// Checks the name of a role. A template is not checked, because its value is only known at run time.
    fn role(&mut self, node: Option<&Node>, thing: Thing) {
        self.each(node.filter(|node| node.as_text().is_some_and(|name| !name.contains("{{"))), thing);
    }
}

fn list<'a>(node: &'a Node, key: &str) -> &'a [Node] {
    match node.get(key).map(|value| &value.data) {
        Some(Data::List(items)) => items,
        _ => &[],
    }
}
