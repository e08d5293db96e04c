//! Compares two documents of terms: the permissions that the second adds, and those that it removes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use freehold_protocol::app_version::Reference;
use freehold_protocol::contract::{ActionTerms, FORMAT, PolicyTerms, RoleTerms, Terms};
use freehold_protocol::order::Mode;
use freehold_protocol::order::policy_scope::is_for_clusters;
use freehold_protocol::{ActionName, ComponentName};
use serde::{Deserialize, Serialize};

use crate::permission::{Powers, compare};

mod inputs;
mod probes;
mod removal;

pub use inputs::{describe_answer, describe_copy, describe_reader, describe_value};
pub use probes::{describe_command, describe_probe};
pub use removal::terms_for_removal;

/// The maximum number of clauses in a summary.
const MOST_SHOWN: usize = 8;
/// The maximum length of one clause in a summary, in characters.
const LONGEST_SHOWN: usize = 300;

/// The differences between two documents of terms. When `widened` is empty, a customer who agreed to the first document
/// need not agree to the second.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TermsDiff {
    pub widened: Vec<Clause>,
    pub narrowed: Vec<Clause>,
}

/// One difference between two documents of terms.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Clause {
    /// The subject, such as ``role `provision` ``.
    pub about: String,
    /// The difference, such as "allows s3:GetObject on *".
    pub says: String,
}

impl fmt::Display for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.about, self.says)
    }
}

impl TermsDiff {
    /// Returns whether there are no differences.
    pub const fn is_empty(&self) -> bool {
        self.widened.is_empty() && self.narrowed.is_empty()
    }

    /// Returns the widened clauses as one text, shortened to fit into a sentence.
    pub fn summary(&self) -> String {
        let short = |clause: &Clause| {
            let text: String = clause.to_string().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            match text.char_indices().nth(LONGEST_SHOWN) {
                Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
                None => text,
            }
        };
        let shown: Vec<String> = self.widened.iter().take(MOST_SHOWN).map(short).collect();
        let left = self.widened.len().saturating_sub(MOST_SHOWN);
        let more = if left > 0 { format!("; and {left} more") } else { String::new() };
        format!("{}{more}", shown.join("; "))
    }
}

/// Returns the permissions that `after` adds to `before`, and those that it removes.
///
/// A difference that cannot be decided counts as widened, so that no additional permission is missed.
pub fn compare_terms(before: &Terms, after: &Terms) -> TermsDiff {
    let mut found = TermsDiff::default();
    if before.format != FORMAT || after.format != FORMAT {
        found.widen(
            "the terms",
            format!("have formats {} and {}, and only {FORMAT} can be compared", before.format, after.format),
        );
    }
    if before.app != after.app {
        found.widen("the terms", format!("belong to app `{}`, not to `{}`", after.app, before.app));
    }
    found.roles(&before.roles, &after.roles);
    for (name, value) in &after.policy_inputs {
        if before.policy_inputs.get(name) != Some(value) {
            found.widen(
                &format!("input `{name}`"),
                format!(
                    "is used in policies; its value is {value} unless the vendor or the customer sets another value"
                ),
            );
        }
    }
    found.inputs_and_secrets(before, after);
    for host in after.hosts.difference(&before.hosts) {
        found.widen(&format!("host `{host}`"), "is contacted".to_owned());
    }
    for host in before.hosts.difference(&after.hosts) {
        found.narrow(&format!("host `{host}`"), "is no longer contacted".to_owned());
    }
    for host in after.inside_hosts.difference(&before.inside_hosts) {
        found.widen(&format!("host `{host}`"), "may be in a private network".to_owned());
    }
    for host in before.inside_hosts.difference(&after.inside_hosts) {
        found.narrow(&format!("host `{host}`"), "may no longer be in a private network".to_owned());
    }
    found.actions(&before.actions, &after.actions);
    if before.tool_image != after.tool_image {
        let says = match &after.tool_image {
            Some(component) => format!("run in the image of component `{component}`"),
            None => "see the file system of the runner's machine".to_owned(),
        };
        found.widen("programs of jobs", says);
    }
    found.policies(&before.policies, &after.policies);
    found.probes(&before.probes, &after.probes);
    found
}

/// The commands of the app that an order runs, as far as terms name commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderedCommands<'a> {
    None,
    /// The steps of an action.
    OfAction(&'a ActionName),
    /// The probes of a component's health check.
    OfHealth(&'a ComponentName),
}

/// Returns the differences that matter for an order. The order executes no steps of other actions and no probes of other
/// components, so these are not compared.
pub fn compare_terms_for(before: &Terms, after: &Terms, commands: OrderedCommands<'_>) -> TermsDiff {
    let (action, component) = match commands {
        OrderedCommands::None => (None, None),
        OrderedCommands::OfAction(action) => (Some(action), None),
        OrderedCommands::OfHealth(component) => (None, Some(component)),
    };
    let mut after = after.clone();
    for other in after.actions.iter_mut().filter(|other| Some(&other.name) != action) {
        if let Some(known) = before.actions.iter().find(|known| known.name == other.name) {
            other.steps.clone_from(&known.steps);
        }
    }
    after.probes.retain(|probe| Some(&probe.component) == component);
    after.probes.extend(before.probes.iter().filter(|probe| Some(&probe.component) != component).cloned());
    compare_terms(before, &after)
}

impl TermsDiff {
    fn widen(&mut self, about: &str, says: String) {
        self.widened.push(Clause { about: about.to_owned(), says });
    }

    fn narrow(&mut self, about: &str, says: String) {
        self.narrowed.push(Clause { about: about.to_owned(), says });
    }

    fn roles(&mut self, before: &[RoleTerms], after: &[RoleTerms]) {
        let named = |all: &[RoleTerms], name: &str| all.iter().position(|role| role.role == name);
        for role in after {
            let about = format!("role `{}`", role.role);
            let known = named(before, &role.role).and_then(|at| before.get(at));
            if known.is_none() {
                self.widen(&about, "is new".to_owned());
            }
            let gap = compare(known.map(powers), Some(powers(role)));
            gap.widened.iter().for_each(|one| self.widen(&about, one.describe(true)));
            gap.narrowed.iter().for_each(|one| self.narrow(&about, one.describe(false)));
        }
        for role in before.iter().filter(|role| named(after, &role.role).is_none()) {
            self.narrow(&format!("role `{}`", role.role), "is gone".to_owned());
        }
    }

    fn actions(&mut self, before: &[ActionTerms], after: &[ActionTerms]) {
        let by_name = |all: &'_ [ActionTerms]| -> BTreeMap<String, ActionTerms> {
            all.iter().map(|action| (action.name.to_string(), action.clone())).collect()
        };
        let (was, is) = (by_name(before), by_name(after));
        for (name, action) in &is {
            let about = format!("action `{name}`");
            match was.get(name) {
                None => self.widen(&about, format!("is new: {}", describe_action(action))),
                Some(known) => self.action(&about, known, action),
            }
        }
        for name in was.keys().filter(|name| !is.contains_key(*name)) {
            self.narrow(&format!("action `{name}`"), "is gone".to_owned());
        }
    }

    fn action(&mut self, about: &str, before: &ActionTerms, after: &ActionTerms) {
        if before.role != after.role {
            self.widen(about, format!("runs as `{}`, not as `{}`", after.role, before.role));
        }
        for one in after.event_modes.difference(&before.event_modes) {
            self.widen(about, format!("runs {}", in_event(*one)));
        }
        for one in before.event_modes.difference(&after.event_modes) {
            self.narrow(about, format!("no longer runs {}", in_event(*one)));
        }
        for one in after.other_roles.difference(&before.other_roles) {
            self.widen(about, format!("runs {}", by_choice(one)));
        }
        for one in before.other_roles.difference(&after.other_roles) {
            self.narrow(about, format!("no longer runs {}", by_choice(one)));
        }
        for one in after.schedules.difference(&before.schedules) {
            self.widen(about, format!("runs automatically on schedule `{one}` (UTC)"));
        }
        for one in before.schedules.difference(&after.schedules) {
            self.narrow(about, format!("no longer runs automatically on schedule `{one}` (UTC)"));
        }
        for one in after.reads.difference(&before.reads) {
            self.widen(about, format!("reads {}", describe_reference(one)));
        }
        for one in before.reads.difference(&after.reads) {
            self.narrow(about, format!("no longer reads {}", describe_reference(one)));
        }
        match (before.cluster, after.cluster) {
            (false, true) => self.widen(about, "gets access to a cluster".to_owned()),
            (true, false) => self.narrow(about, "no longer gets access to a cluster".to_owned()),
            (true, true) | (false, false) => {}
        }
        match (&before.steps, &after.steps) {
            (Some(was), Some(is)) if was != is => {
                self.widen(about, format!("executes other steps: `{is}`, not `{was}`"));
            }
            (Some(was), None) => self.widen(about, format!("may execute any steps, not only `{was}`")),
            (None, Some(is)) => self.narrow(about, format!("executes the steps `{is}` only")),
            (Some(_), Some(_)) | (None, None) => {}
        }
        if before.image != after.image {
            let image = if after.image.is_empty() { "the image of all jobs".to_owned() } else { image(&after.image) };
            self.widen(about, format!("runs in {image}"));
        }
    }

    /// Compares policies. They restrict the vendor, so terms in which a policy is removed or changed are wider. A
    /// policy of Kyverno is applied to a cluster, where it may also change or create objects of others, so a new policy
    /// of Kyverno is wider too.
    fn policies(&mut self, before: &BTreeSet<PolicyTerms>, after: &BTreeSet<PolicyTerms>) {
        let about = |policy: &PolicyTerms| format!("policy `{}` of {}", policy.name, policy.kind);
        let same = |all: &BTreeSet<PolicyTerms>, one: &PolicyTerms| {
            all.iter().any(|other| other.name == one.name && other.kind == one.kind)
        };
        for policy in before.difference(after) {
            let says = if same(after, policy) {
                "has changed, or applies to other components; read it, because it may allow more"
            } else {
                "is gone"
            };
            self.widen(&about(policy), says.to_owned());
        }
        // A policy counts as the changed form of another policy only if that policy is gone. Otherwise, it is an
        // additional policy.
        let replaces = |one: &PolicyTerms| {
            let mut gone = before.difference(after);
            gone.any(|other| (&other.name, &other.kind, other.engine) == (&one.name, &one.kind, one.engine))
        };
        for policy in after.difference(before).filter(|policy| !replaces(policy)) {
            if is_for_clusters(policy.engine, &policy.kind) {
                self.widen(
                    &about(policy),
                    "is new; it is applied to the cluster, where Kyverno enforces it".to_owned(),
                );
            } else {
                self.narrow(&about(policy), "is new".to_owned());
            }
        }
    }
}

/// Returns the parts of a role that decide its permissions.
fn powers(role: &RoleTerms) -> Powers<'_> {
    Powers { on: role.on, policies: &role.policies, boundary: role.boundary.as_deref() }
}

/// Returns a description of an action, such as "runs as `maintenance`, reads input `domain`".
pub fn describe_action(action: &ActionTerms) -> String {
    let mut parts = vec![format!("runs as `{}`", action.role)];
    parts.extend(action.event_modes.iter().map(|mode| in_event(*mode)));
    parts.extend(action.other_roles.iter().map(|role| by_choice(role)));
    parts.extend(action.schedules.iter().map(|schedule| format!("runs automatically on schedule `{schedule}` (UTC)")));
    if !action.reads.is_empty() {
        parts.push(format!("reads {}", action.reads.iter().map(describe_reference).collect::<Vec<_>>().join(", ")));
    }
    if action.cluster {
        parts.push("gets access to a cluster".to_owned());
    }
    if !action.image.is_empty() {
        parts.push(format!("runs in {}", image(&action.image)));
    }
    parts.join(", ")
}

fn in_event(mode: Mode) -> String {
    let by = match mode {
        Mode::Provision => "the first deploy",
        Mode::Deprovision => "a removal",
        Mode::Maintenance => "another deploy",
        Mode::BreakGlass => "an emergency",
    };
    format!("as `{}` when {by} starts it", mode.as_str())
}

fn by_choice(role: &str) -> String {
    format!("as `{role}` when the vendor chooses this role for a run")
}

fn image(reference: &str) -> String {
    format!("image `{reference}`")
}

/// Returns a description of a value that an action reads, such as "input `domain`".
pub fn describe_reference(reference: &Reference) -> String {
    let outputs = |of: &str, name: &str| match name {
        "" => format!("all outputs of {of}"),
        name => format!("output `{name}` of {of}"),
    };
    match reference {
        Reference::Input(name) => format!("input `{name}`"),
        Reference::Component(name) => format!("outputs of component `{name}`"),
        Reference::Action(name) => format!("outputs of action `{name}`"),
        Reference::Secret(name) => format!("secret `{name}`"),
        Reference::Sandbox(name) => outputs("the sandbox", name),
        Reference::InstallStack(name) => outputs("the install stack", name),
        Reference::Licence => "the licence of the install".to_owned(),
    }
}

#[cfg(test)]
mod tests;
