//! Reports permissions that the app's own roles lack, so that the vendor learns of them before a preflight finds them
//! at a customer.

use std::collections::{BTreeMap, BTreeSet};

use freehold_domain::preflight::shortfall::{NoRole, Roles, Shortfall, unknown_roles};
use freehold_domain::runs_as::{Operation, runs_as};
use freehold_permissions::Answer;
use freehold_protocol::app_version::{AppVersion, ComponentSpec, Platform};
use freehold_protocol::order::Mode;
use freehold_template::nearest;

use crate::kinds::Kind;
use crate::read::document::Node;
use crate::read::files::Place;
use crate::report::diagnostic::Severity;
use crate::report::draft::Draft;
use crate::state::app::App;
use crate::state::file::Checked;
use crate::state::source::Made;

/// The roles that the files of an app define.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DefinedRoles<'a> {
    /// The place that defines each role, by the role's name.
    pub(crate) places: &'a BTreeMap<String, Place>,
    /// The names of roles with a policy that cannot be read. This policy may allow what the role's other policies do
    /// not allow.
    pub(crate) incomplete: &'a BTreeSet<String>,
    /// Whether the list of roles is complete; false if a role was left out because its type or its name could not be
    /// read.
    pub(crate) is_whole: bool,
}

/// Compares the permissions that components need with those that their roles allow. Does nothing if a file of roles
/// could not be parsed, and reports nothing about a role with a policy that cannot be read.
pub(crate) fn check(app: &mut App, version: &AppVersion, defined: DefinedRoles<'_>, made: &[Made]) {
    let unsure = [Kind::Permissions, Kind::Role, Kind::BreakGlass, Kind::OperationRoles];
    let elsewhere = version.stack.as_ref().is_some_and(|stack| stack.platform != Platform::AwsCloudformation);
    if unsure.iter().any(|kind| app.broken.contains(kind)) {
        return;
    }
    let mut drafts = unknown(app, &unknown_roles(version));
    if !elsewhere {
        let roles = Roles::of(version);
        let owners = components(app);
        let looker = Looker { owners, defined, version };
        let stacks = [roles.stacks(), roles.stack_removals()].concat();
        drafts.extend(stacks.iter().filter(|one| looker.is_certain(one)).filter_map(|one| looker.stack(one)));
        drafts.extend(looker.creations(&roles, made));
        drafts.extend(without_removals(version, defined));
    }
    app.drafts.extend(drafts);
}

/// Warns about an app that has roles to create resources, but no role to remove them. The role of mode `deprovision`
/// then allows nothing, so that AWS denies the calls of a teardown.
fn without_removals(version: &AppVersion, defined: DefinedRoles<'_>) -> Option<Draft> {
    let first = version.roles.first()?;
    if !defined.is_whole || version.roles.iter().any(|role| role.mode == Mode::Deprovision) {
        return None;
    }
    let is_of_mode =
        |operation: Operation<'_>| matches!(runs_as(version, operation, None, Mode::Deprovision), Ok(None));
    let sandbox = version.sandbox.iter().filter(|sandbox| is_of_mode(Operation::Deprovision(sandbox)));
    let components = version.components.iter().filter(|one| is_removed(&one.spec));
    let components = components.filter(|one| is_of_mode(Operation::Teardown(one)));
    let parts: Vec<String> = components
        .map(|one| format!("component `{}`", one.name))
        .chain(sandbox.map(|_| "the sandbox".to_owned()))
        .collect();
    let more = match parts.len() {
        0 | 1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    let message =
        format!("the app has no role for mode `deprovision`, so a teardown cannot remove {}{more}", parts.first()?);
    let help = "add a role with `type = \"deprovision\"` in `permissions/` that allows what the removal calls";
    Some(Draft::warning(defined.places.get(&first.name)?.clone(), message).help(help))
}

/// Returns whether the removal of a component needs permissions in the customer's account.
const fn is_removed(spec: &ComponentSpec) -> bool {
    match spec {
        ComponentSpec::TerraformModule { .. }
        | ComponentSpec::CloudformationStack { .. }
        | ComponentSpec::HelmChart { .. }
        | ComponentSpec::KubernetesManifest { .. }
        | ComponentSpec::Pulumi { .. }
        | ComponentSpec::Job { .. } => true,
        ComponentSpec::ContainerImage { .. } | ComponentSpec::DockerBuild { .. } => false,
    }
}

fn components(app: &App) -> BTreeMap<&str, &Checked> {
    app.of(Kind::Component).filter_map(|checked| Some((checked.root.text("name")?, checked))).collect()
}

struct Looker<'a> {
    /// The file of each component, by the component's name.
    owners: BTreeMap<&'a str, &'a Checked>,
    defined: DefinedRoles<'a>,
    version: &'a AppVersion,
}

impl Looker<'_> {
    /// Returns whether every policy of the role is known.
    fn is_certain(&self, lacks: &Shortfall) -> bool {
        lacks.role.as_ref().is_none_or(|role| !self.defined.incomplete.contains(role))
    }

    /// Reports a stack that its role may not deploy or remove. This is an error only if a first deploy is certain to fail,
    /// otherwise a warning.
    fn stack(&self, lacks: &Shortfall) -> Option<Draft> {
        let checked = self.owners.get(lacks.component.as_str())?;
        let root = &checked.root;
        let place =
            root.entry("stack_name").map_or_else(|| checked.place_of(root, "type"), |e| checked.place(&e.value));
        let name = lacks.resource.split('/').nth(1).unwrap_or_default();
        let what = match lacks.mode {
            Mode::Deprovision => format!("a teardown of component `{}` removes stack `{name}`", lacks.component),
            Mode::Provision | Mode::Maintenance | Mode::BreakGlass => {
                format!("component `{}` deploys stack `{name}`", lacks.component)
            }
        };
        let severity = match (&lacks.answer, lacks.mode) {
            (Answer::Managed(_), _) | (_, Mode::Maintenance | Mode::Deprovision) => Severity::Warning,
            _ => Severity::Error,
        };
        let resource = lacks.resource.replacen("arn:*:", "arn:aws:", 1);
        Some(self.described(severity, place, &what, lacks, &resource))
    }

    /// Warns that a role may not create the resources that a module or a template declares, once for each role and
    /// action.
    fn creations(&self, roles: &Roles<'_>, made: &[Made]) -> Vec<Draft> {
        let mut by_owner: BTreeMap<&str, Vec<&Made>> = BTreeMap::new();
        for one in made {
            by_owner.entry(&one.component).or_default().push(one);
        }
        let mut drafts = Vec::new();
        for (owner, made) in by_owner {
            let Ok(component) = owner.parse() else { continue };
            for one in first_of_each(&made) {
                let found = roles.creations(&component, [one.kind.as_str()]);
                for lacks in found.into_iter().filter(|lacks| self.is_certain(lacks)) {
                    let what = format!("component `{owner}` creates a resource of type `{}`", one.kind);
                    drafts.push(self.described(Severity::Warning, one.place.clone(), &what, &lacks, "*"));
                }
            }
        }
        drafts
    }

    /// Returns an action in the role's policies that is probably a typo of `action`, with another service before the
    /// same call. Returns `action` as the second value.
    fn mistyped(&self, role: &str, action: &str) -> Option<(String, String)> {
        let (service, call) = action.split_once(':')?;
        let modes = self.version.roles.iter().map(|one| (&one.name, &one.policies));
        let named = self.version.named_roles.iter().map(|one| (&one.name, &one.policies));
        let policies = modes.chain(named).find(|(name, _)| *name == role)?.1;
        let text = serde_json::to_string(policies).ok()?;
        let mut words = text.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, ':' | '-'));
        let is_typo = |word: &&str| {
            let typo = word.split_once(':').filter(|(other, same)| *same == call && *other != service);
            typo.is_some_and(|(other, _)| nearest(other, [service]).is_some())
        };
        Some((words.find(is_typo)?.to_owned(), action.to_owned()))
    }

    fn described(&self, severity: Severity, place: Place, what: &str, lacks: &Shortfall, resource: &str) -> Draft {
        let actions = lacks.actions.iter().map(|action| format!("`{action}`")).collect::<Vec<_>>().join(", ");
        let when = match lacks.mode {
            Mode::Provision => "the first deploy of an install",
            Mode::Maintenance | Mode::BreakGlass => "a later deploy",
            Mode::Deprovision => "a teardown",
        };
        let Some(role) = &lacks.role else {
            let message = format!("{what}, and the app has no role for mode `{}`", lacks.mode.as_str());
            let help = format!(
                "{when} needs a role of this mode: add one with `type = \"{}\"` in `permissions/` that allows {actions} \
                 on `{resource}`",
                lacks.mode.as_str()
            );
            return Draft::new(severity, place, message).help(help);
        };
        // Some actions have no narrower resource, and the names of most resources are in the module only.
        let narrow = if resource == "*" { ", and narrow its `Resource` to what the component creates" } else { "" };
        let (verb, help) = match &lacks.answer {
            Answer::Denied => {
                ("denies", format!("{when} needs this permission: narrow the `Deny` in the role's policies"))
            }
            Answer::OutsideBoundary => (
                "has a permissions boundary that does not allow",
                format!("{when} needs this permission: add the actions to the boundary of the role"),
            ),
            Answer::Managed(names) => {
                let names = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                let help = format!(
                    "{when} needs this permission: unless an AWS managed policy of the role ({names}) allows it, \
                     add {}{narrow}",
                    statement(lacks, resource)
                );
                ("does not itself allow", help)
            }
            Answer::NotAllowed | Answer::Possible => (
                "does not allow",
                format!(
                    "{when} needs this permission: add {} to the role's policies{narrow}",
                    statement(lacks, resource)
                ),
            ),
        };
        let draft = Draft::new(severity, place, format!("{what}, and role `{role}` {verb} {actions}"));
        let typo = lacks.actions.iter().find_map(|action| self.mistyped(role, action));
        let draft = draft.help(match typo {
            Some((written, meant)) => format!("the role's policies name `{written}`; did you mean `{meant}`? {help}"),
            None => help,
        });
        match self.defined.places.get(role) {
            Some(place) => draft.related(place.clone(), "the role is defined here"),
            None => draft,
        }
    }
}

/// Returns a policy statement that allows the missing actions.
fn statement(lacks: &Shortfall, resource: &str) -> String {
    let actions = lacks.actions.iter().map(|action| format!("\"{action}\"")).collect::<Vec<_>>().join(", ");
    format!("`{{\"Effect\": \"Allow\", \"Action\": [{actions}], \"Resource\": \"{resource}\"}}`")
}

fn first_of_each<'m>(made: &[&'m Made]) -> Vec<&'m Made> {
    let mut first: BTreeMap<&str, &Made> = BTreeMap::new();
    for one in made {
        first.entry(&one.kind).or_insert(one);
    }
    first.into_values().collect()
}

/// Reports each role name that is a template and that no role of the app has. Other unknown names are reported by
/// [`crate::check::links`].
fn unknown(app: &App, refused: &[NoRole]) -> Vec<Draft> {
    let mut users: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for one in refused.iter().filter(|one| one.error.role().contains("{{")) {
        users.entry(one.error.role()).or_default().push(&one.what);
    }
    let report = |(role, users): (&str, Vec<&str>)| {
        let first = users.first().copied().unwrap_or_default();
        let more = match users.len() {
            1 => String::new(),
            count => format!(" (and {} more)", count - 1),
        };
        let message = format!("{first}{more} would run under role `{role}`, which does not exist");
        let draft = Draft::error(naming(app, role)?, message);
        Some(draft.help("write the role exactly as the `name` of a role of the app, letter by letter"))
    };
    users.into_iter().filter_map(report).collect()
}

/// Returns the first place where the config uses a role's name.
fn naming(app: &App, role: &str) -> Option<Place> {
    let kinds = [Kind::Component, Kind::Action, Kind::Sandbox, Kind::OperationRoles];
    app.checked.iter().filter(|checked| kinds.contains(&checked.kind)).find_map(|checked| {
        let root = &checked.root;
        let of_lists = root.tables("operation_roles").iter().chain(root.tables("rules"));
        let others = root.get("other_roles").map(Node::items).unwrap_or_default();
        let own = [root.get("break_glass_role"), root.get("role")].into_iter().flatten().chain(others);
        let by_operation = root.get("operation_roles").map(Node::entries).unwrap_or_default();
        let listed = of_lists.filter_map(|rule| rule.get("role"));
        let mut all = own.chain(listed).chain(by_operation.iter().map(|one| &one.value));
        let node = all.find(|node| node.as_text() == Some(role))?;
        Some(checked.place(node))
    })
}
