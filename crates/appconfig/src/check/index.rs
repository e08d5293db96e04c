//! The index of all names that the files of an app define, with their places.

use std::collections::{BTreeMap, BTreeSet};

use freehold_template::nearest;

use crate::kinds::Kind;
use crate::read::document::Node;
use crate::read::files::Place;
use crate::report::draft::Draft;
use crate::state::app::App;
use crate::state::file::Checked;

/// A kind of thing that a config defines by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Thing {
    Input,
    InputGroup,
    Secret,
    Action,
    Component,
    KubernetesContext,
    Role,
    BreakGlassRole,
}

impl Thing {
    /// Returns the name of the kind in messages.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::InputGroup => "input group",
            Self::Secret => "secret",
            Self::Action => "action",
            Self::Component => "component",
            Self::KubernetesContext => "kubernetes context",
            Self::Role => "role",
            Self::BreakGlassRole => "break-glass role",
        }
    }

    /// Returns the file or the directory that defines things of this kind.
    const fn home(self) -> &'static str {
        match self {
            Self::Input | Self::InputGroup => "inputs.toml",
            Self::Secret => "secrets.toml",
            Self::Action => "actions/",
            Self::Component => "components/",
            Self::KubernetesContext => "metadata.toml",
            Self::Role => "permissions/",
            Self::BreakGlassRole => "break_glass.toml",
        }
    }
}

/// Names, each with the place that defines it.
type Names = BTreeMap<String, Place>;

/// All names that a file may refer to, each with the place that defines it.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) inputs: Names,
    pub(crate) groups: Names,
    pub(crate) secrets: Names,
    pub(crate) actions: Names,
    pub(crate) components: Names,
    pub(crate) runbooks: Names,
    pub(crate) has_sandbox: bool,
    /// Whether the install stack is for another cloud than AWS.
    pub(crate) other_cloud: bool,
    /// The Kubernetes contexts that `metadata.toml` or `kubernetes_contexts.toml` define.
    pub(crate) contexts: Names,
    /// The name of the component that creates the cluster of each Kubernetes context.
    context_components: BTreeMap<String, String>,
    /// The second names (`var_name`) of components in templates, each with the name of its component and the place that
    /// defines it.
    var_names: BTreeMap<String, (String, Place)>,
    /// The type of each component.
    types: BTreeMap<String, String>,
    /// The names of all roles, with white space removed.
    roles: BTreeSet<String>,
    break_glass_roles: BTreeSet<String>,
    /// Kinds of things that a file without valid TOML may define. A missing name of such a kind is not reported,
    /// because that file may define the name.
    unsure: BTreeSet<Thing>,
}

impl Index {
    /// Returns the name of the component whose name or `var_name` is `word`.
    pub(crate) fn component(&self, word: &str) -> Option<&str> {
        let by_name = self.components.get_key_value(word).map(|(name, _)| name);
        by_name.or_else(|| self.var_names.get(word).map(|(name, _)| name)).map(String::as_str)
    }

    /// Returns the `type` of the component `name`.
    pub(crate) fn type_of(&self, name: &str) -> Option<&str> {
        self.types.get(name).map(String::as_str)
    }

    /// Returns the component that creates the cluster of `context`.
    pub(crate) fn component_of_context(&self, context: &str) -> Option<&str> {
        self.component(self.context_components.get(context)?)
    }

    /// Reports, at `place`, that `name` does not exist. Returns `None` if it exists, or if a file that could not be
    /// parsed may define it.
    pub(crate) fn unknown(&self, place: Place, thing: Thing, name: &str) -> Option<Draft> {
        let known = match thing {
            Thing::Component => self.component(name).is_some(),
            Thing::Role => self.roles.contains(&plain(name)),
            Thing::BreakGlassRole => self.break_glass_roles.contains(&plain(name)),
            Thing::Input => self.inputs.contains_key(name),
            Thing::InputGroup => self.groups.contains_key(name),
            Thing::Secret => self.secrets.contains_key(name),
            Thing::Action => self.actions.contains_key(name),
            Thing::KubernetesContext => self.contexts.contains_key(name),
        };
        if known || self.unsure.contains(&thing) {
            return None;
        }
        let what = thing.as_str();
        let draft = Draft::error(place, format!("there is no {what} `{name}`"));
        let names = self.names_of(thing);
        Some(match nearest(name, names.iter().copied()) {
            near @ Some(_) => draft.meant(near),
            // No command lists the groups, and there are only a few, so the message names them all.
            None if thing == Thing::InputGroup && !names.is_empty() => draft.help(format!(
                "the groups are {}; name one of them, or define another one in a `[[group]]` of `inputs.toml`",
                names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
            )),
            None => draft.help(format!("define the {what} in `{}`, or remove the reference to it", thing.home())),
        })
    }

    /// Returns the names of all things of one kind.
    fn names_of(&self, thing: Thing) -> Vec<&str> {
        let names = match thing {
            Thing::Component => {
                return self.components.keys().chain(self.var_names.keys()).map(String::as_str).collect();
            }
            Thing::Role => return self.roles.iter().map(String::as_str).collect(),
            Thing::BreakGlassRole => return self.break_glass_roles.iter().map(String::as_str).collect(),
            Thing::Input => &self.inputs,
            Thing::InputGroup => &self.groups,
            Thing::Secret => &self.secrets,
            Thing::Action => &self.actions,
            Thing::KubernetesContext => &self.contexts,
        };
        names.keys().map(String::as_str).collect()
    }
}

/// Returns the name of a role without spaces. Names of roles are compared in this form, because a template in a name
/// can be written with or without spaces.
fn plain(name: &str) -> String {
    name.split_whitespace().collect()
}

/// Collects all names. Reports names that are defined twice.
pub(crate) fn index(app: &mut App) -> Index {
    let unsure = app.broken.iter().flat_map(|kind| named_by(*kind)).copied().collect();
    let has_sandbox = app.of(Kind::Sandbox).next().is_some();
    let platform = app.of(Kind::Stack).next().and_then(|checked| checked.root.text("type"));
    let other_cloud = matches!(platform, Some("azure-bicep" | "gcp-terraform"));
    let index = Index { unsure, has_sandbox, other_cloud, ..Index::default() };
    let mut collector = Collector { app, index, drafts: Vec::new() };
    for checked in &app.checked {
        collector.file(checked);
    }
    for checked in app.of(Kind::Component) {
        collector.var_name(checked);
    }
    let Collector { index, drafts, .. } = collector;
    app.drafts.extend(drafts);
    index
}

/// Returns the kinds of thing that files of `kind` define.
const fn named_by(kind: Kind) -> &'static [Thing] {
    match kind {
        Kind::Component => &[Thing::Component],
        Kind::Action => &[Thing::Action],
        Kind::Inputs | Kind::Input => &[Thing::Input, Thing::InputGroup],
        Kind::InputGroup => &[Thing::InputGroup],
        Kind::Secrets | Kind::Secret => &[Thing::Secret],
        Kind::Metadata | Kind::KubernetesContexts => &[Thing::KubernetesContext],
        Kind::Permissions | Kind::Role => &[Thing::Role],
        Kind::BreakGlass => &[Thing::Role, Thing::BreakGlassRole],
        Kind::NamedPolicy
        | Kind::OperationRoles
        | Kind::Sandbox
        | Kind::Runner
        | Kind::Stack
        | Kind::Policies
        | Kind::Installer
        | Kind::Branch
        | Kind::Triggers
        | Kind::InstallsSource
        | Kind::Install
        | Kind::Runbook => &[],
    }
}

struct Collector<'a> {
    app: &'a App,
    index: Index,
    drafts: Vec<Draft>,
}

impl Collector<'_> {
    fn file(&mut self, checked: &Checked) {
        let root = &checked.root;
        match checked.kind {
            Kind::Component => {
                if let (true, Some(name), Some(word)) = (
                    self.take(checked, |index| &mut index.components, "component", root),
                    root.text("name"),
                    root.text("type"),
                ) {
                    self.index.types.insert(name.to_owned(), word.to_owned());
                }
            }
            Kind::Action => drop(self.take(checked, |index| &mut index.actions, "action", root)),
            Kind::Runbook => drop(self.take(checked, |index| &mut index.runbooks, "runbook", root)),
            Kind::InputGroup => drop(self.take(checked, |index| &mut index.groups, "input group", root)),
            Kind::Input if root.entry("name").is_some() => {
                self.take(checked, |index| &mut index.inputs, "input", root);
            }
            Kind::Inputs | Kind::Input => {
                self.each(checked, "group", |index| &mut index.groups, "input group");
                self.each(checked, "input", |index| &mut index.inputs, "input");
            }
            Kind::Secret if root.entry("name").is_some() => {
                self.take(checked, |index| &mut index.secrets, "secret", root);
            }
            Kind::Secrets | Kind::Secret => self.each(checked, "secret", |index| &mut index.secrets, "secret"),
            Kind::Metadata | Kind::KubernetesContexts => self.contexts(checked),
            Kind::Permissions | Kind::Role | Kind::BreakGlass => self.roles(checked),
            Kind::NamedPolicy
            | Kind::OperationRoles
            | Kind::Sandbox
            | Kind::Runner
            | Kind::Stack
            | Kind::Policies
            | Kind::Installer
            | Kind::Branch
            | Kind::Triggers
            | Kind::InstallsSource
            | Kind::Install => {}
        }
    }

    fn each(&mut self, checked: &Checked, key: &str, names: fn(&mut Index) -> &mut Names, what: &str) {
        for node in checked.root.tables(key) {
            self.take(checked, names, what, node);
        }
    }

    /// Adds the name of `node` and returns true. If the name is already defined, reports this and returns false.
    fn take(&mut self, checked: &Checked, names: fn(&mut Index) -> &mut Names, what: &str, node: &Node) -> bool {
        let Some(name) = node.text("name") else { return false };
        let place = checked.place_of(node, "name");
        let names = names(&mut self.index);
        if let Some(first) = names.get(name) {
            let message = format!("{what} `{name}` is defined twice, in {} and here", self.app.files.short(first));
            let draft = Draft::error(place, message).related(first.clone(), "first defined here");
            self.drafts.push(draft.help("rename one of them, or remove it"));
            return false;
        }
        names.insert(name.to_owned(), place);
        true
    }

    fn contexts(&mut self, checked: &Checked) {
        for node in checked.root.tables("kubernetes_context") {
            self.take(checked, |index| &mut index.contexts, "kubernetes context", node);
            if let (Some(name), Some(component)) = (node.text("name"), node.text("component")) {
                self.index.context_components.insert(name.to_owned(), component.to_owned());
            }
        }
    }

    fn roles(&mut self, checked: &Checked) {
        let root = &checked.root;
        let listed = ["roles", "custom_roles", "role"].into_iter().flat_map(|key| root.tables(key));
        let single =
            ["provision_role", "maintenance_role", "deprovision_role"].into_iter().filter_map(|key| root.get(key));
        for name in listed.chain(single).chain([root]).filter_map(|node| node.text("name")) {
            if checked.kind == Kind::BreakGlass {
                self.index.break_glass_roles.insert(plain(name));
            }
            self.index.roles.insert(plain(name));
        }
    }

    /// Adds the `var_name` of a component. Reports a name that templates already use for another component.
    fn var_name(&mut self, checked: &Checked) {
        let root = &checked.root;
        let (Some(name), Some(word)) = (root.text("name"), root.text("var_name")) else { return };
        if name == word {
            return;
        }
        let place = checked.place_of(root, "var_name");
        let first = match (self.index.components.get(word), self.index.var_names.get(word)) {
            (Some(other), _) => Some((word.to_owned(), other.clone())),
            (None, Some((other, place))) => Some((other.clone(), place.clone())),
            (None, None) => None,
        };
        if let Some((other, first)) = first {
            let draft =
                Draft::error(place, format!("the name `{word}` in templates already means component `{other}`"));
            let draft = draft.related(first, "taken here");
            self.drafts.push(draft.help("choose another `var_name`, or remove it"));
        } else if let Err(error) = word.parse::<freehold_protocol::ComponentName>() {
            self.drafts.push(Draft::error(place, format!("{error}")));
        } else {
            self.index.var_names.insert(word.to_owned(), (name.to_owned(), place));
        }
    }
}
