//! Derives from an order what it would do, and compares that with the order's terms: its role, the role and the steps
//! of its action, the role and the commands of its probes, its policies, its group, and whether it may start twice.
//! [`super::consent`] has compared the terms with those that the customer accepted.

use std::collections::BTreeSet;

use freehold_permissions::describe_command;
use freehold_protocol::app_version::{PolicyEngine, Reference};
use freehold_protocol::contract::{ActionTerms, PolicyTerms, ProbeTerms, Terms};
use freehold_protocol::order::health::CheckHealth;
use freehold_protocol::order::policy_scope::carries;
use freehold_protocol::order::{KeptOutputs, Mode, Order, Redelivery, RunAction, Work};
use freehold_protocol::policy::OrderPolicy;
use freehold_protocol::report::{Block, Outcome};
use freehold_protocol::{ActionName, ComponentName, Digest, RoleKey};

/// The part of an order that its terms do not permit.
#[derive(Debug, thiserror::Error)]
enum Beyond {
    #[error("runs under role `{0}`, and does not contain its contract, which must name this role")]
    RoleWithoutTerms(RoleKey),
    #[error("runs under role `{0}`, which is not in its contract")]
    Role(RoleKey),
    #[error("runs action `{0}`, and does not contain its contract, which must name the steps of this action")]
    ActionWithoutTerms(ActionName),
    #[error("runs action `{0}`, which is not in its contract")]
    Action(ActionName),
    #[error("runs action `{action}` under role `{found}`, and its contract has {agreed}")]
    ActionRole { action: ActionName, found: String, agreed: String },
    #[error("executes other steps of action `{action}` than its contract has: `{found}`, not `{agreed}`")]
    Steps { action: ActionName, found: String, agreed: Digest },
    #[error(
        "runs a command to check the health of component `{0}`, and does not contain its contract, which must have this command"
    )]
    ProbeWithoutTerms(ComponentName),
    #[error("runs {command} to check the health of component `{component}`, which its contract does not have")]
    Probe { component: ComponentName, command: String },
    #[error(
        "runs {command} to check the health of component `{component}` under role `{found}`, and its contract has {agreed}"
    )]
    ProbeRole { component: ComponentName, command: String, found: String, agreed: String },
    #[error("gives action `{0}` access to a cluster, which its contract does not give")]
    Cluster(ActionName),
    #[error("gives action `{action}` sensitive outputs of `{part}`, which its contract does not let it read")]
    Outputs { action: ActionName, part: ComponentName },
    #[error("runs in the image of component `{0}`, and does not contain its contract, which must name this component")]
    ImageWithoutTerms(ComponentName),
    #[error("runs in the image of component `{found}`, and its contract has {agreed}")]
    Image { found: ComponentName, agreed: String },
    #[error("runs action `{action}` in image `{found}`, and its contract has {agreed}")]
    ActionImage { action: ActionName, found: String, agreed: String },
    #[error("leaves out policy `{name}` of its contract, which guards its work")]
    PolicyLeftOut { name: String },
    #[error("has policy `{name}`, which its contract does not have")]
    Policy { name: String },
    #[error("puts policy `{name}` into a cluster, and does not contain its contract, which must name this policy")]
    PolicyWithoutTerms { name: String },
    #[error("states that its work may start twice, and work of this kind may not start twice")]
    Redelivery,
    #[error("has group `{found}`, and its work changes `{changes}`")]
    Group { found: String, changes: String },
    #[error("works on the sandbox under the name of component `{0}`")]
    Sandbox(ComponentName),
}

/// Returns the outcome of an order that would do what its terms do not permit. Returns `None` for any other order, and for
/// an order without terms.
pub fn beyond_terms(order: &Order) -> Option<Outcome> {
    // Terms that cannot be read count as terms that permit nothing.
    let terms = order.terms.as_ref()?.asked().ok().flatten();
    let beyond = beyond(order, terms.as_ref())?;
    let reason = format!(
        "the order {beyond}; report it to the vendor, and update the runner if it is older than the vendor's control plane"
    );
    Some(Outcome::Blocked { block: Block::ContractNotAccepted, reason })
}

fn beyond(order: &Order, terms: Option<&Terms>) -> Option<Beyond> {
    role(order, terms)
        .or_else(|| image(order, terms))
        .or_else(|| work(order, terms))
        .or_else(|| policies(order, terms))
        .or_else(|| group(order))
        .or_else(|| sandbox(order))
        .or_else(|| redelivery(order))
}

fn role(order: &Order, terms: Option<&Terms>) -> Option<Beyond> {
    // The role of a mode has no permissions unless the stack gives it some.
    let role = order.role.as_ref()?;
    match (terms, &order.work) {
        // These kinds of work run nothing of an app version, and their orders do not contain the document of their
        // terms.
        (None, Work::Leftovers(_) | Work::CopySecrets(_)) => None,
        (None, _) => Some(Beyond::RoleWithoutTerms(role.clone())),
        (Some(terms), _) => {
            let is_agreed = terms.roles.iter().any(|agreed| agreed.role == role.as_str());
            (!is_agreed).then(|| Beyond::Role(role.clone()))
        }
    }
}

fn image(order: &Order, terms: Option<&Terms>) -> Option<Beyond> {
    let found = order.tool_image.as_ref()?.component.clone();
    let Some(terms) = terms else { return Some(Beyond::ImageWithoutTerms(found)) };
    let agreed = terms.tool_image.as_ref();
    (agreed != Some(&found)).then(|| Beyond::Image { found, agreed: named(agreed.map(ComponentName::as_str)) })
}

fn named(image: Option<&str>) -> String {
    image.filter(|image| !image.is_empty()).map_or_else(|| "none".to_owned(), |image| format!("`{image}`"))
}

fn work(order: &Order, terms: Option<&Terms>) -> Option<Beyond> {
    if let Work::Health(work) = &order.work {
        return probes(order, work, terms);
    }
    let Work::Action(work) = &order.work else { return None };
    let action = work.action.clone();
    let Some(terms) = terms else { return Some(Beyond::ActionWithoutTerms(action)) };
    match terms.actions.iter().find(|agreed| agreed.name == action) {
        Some(agreed) => role_of_action(order, work, agreed)
            .or_else(|| executed(work, agreed))
            .or_else(|| outputs(order, work, agreed)),
        None => Some(Beyond::Action(action)),
    }
}

/// Returns the name of the role that the order runs under, as terms write it: that of its mode, or its named role.
fn runs_as(order: &Order) -> &str {
    order.role.as_ref().map_or_else(|| order.mode.as_str(), RoleKey::as_str)
}

/// Returns an error for an order that runs an action under a role that its terms do not have for this action.
fn role_of_action(order: &Order, work: &RunAction, agreed: &ActionTerms) -> Option<Beyond> {
    let found = runs_as(order);
    let in_event = order.role.is_none() && agreed.event_modes.contains(&order.mode);
    if found == agreed.role || in_event || agreed.other_roles.contains(found) {
        return None;
    }
    let of_events = agreed.event_modes.iter().map(|mode| mode.as_str());
    let all = [agreed.role.as_str()].into_iter().chain(of_events).chain(agreed.other_roles.iter().map(String::as_str));
    let agreed = all.map(|role| format!("`{role}`")).collect::<Vec<_>>().join(", ");
    Some(Beyond::ActionRole { action: work.action.clone(), found: found.to_owned(), agreed })
}

/// Returns an error for an order that runs a command as a probe that its terms do not have for this component, or have
/// for another role.
fn probes(order: &Order, work: &CheckHealth, terms: Option<&Terms>) -> Option<Beyond> {
    let component = || work.component.clone();
    let Some(terms) = terms else {
        return work.commands().next().map(|_| Beyond::ProbeWithoutTerms(component()));
    };
    for command in work.commands() {
        let is_same = |probe: &&ProbeTerms| probe.component == work.component && probe.command.as_slice() == command;
        let described = || describe_command(command);
        let Some(agreed) = terms.probes.iter().find(is_same) else {
            return Some(Beyond::Probe { component: component(), command: described() });
        };
        if !may_run_probe(order, agreed) {
            let (found, agreed) = (runs_as(order).to_owned(), roles_of_probe(agreed));
            return Some(Beyond::ProbeRole { component: component(), command: described(), found, agreed });
        }
    }
    None
}

fn may_run_probe(order: &Order, agreed: &ProbeTerms) -> bool {
    match agreed.role.as_str() {
        "" => order.role.is_none() && matches!(order.mode, Mode::Provision | Mode::Maintenance),
        role => role == runs_as(order),
    }
}

fn roles_of_probe(agreed: &ProbeTerms) -> String {
    match agreed.role.as_str() {
        "" => "`maintenance` and `provision`".to_owned(),
        role => format!("`{role}`"),
    }
}

fn executed(work: &RunAction, agreed: &ActionTerms) -> Option<Beyond> {
    if work.cluster.is_some() && !agreed.cluster {
        return Some(Beyond::Cluster(work.action.clone()));
    }
    if work.image != agreed.image {
        let (action, found) = (work.action.clone(), work.image.clone());
        return Some(Beyond::ActionImage { action, found, agreed: named(Some(&agreed.image)) });
    }
    let agreed = agreed.steps.as_ref()?;
    let mut names = BTreeSet::new();
    if let Some(twice) = work.directories.iter().find(|one| !names.insert(&one.component)) {
        // The digest covers each directory only once, and the runner would unpack this directory twice.
        let found = format!("directory `{}` twice", twice.component);
        return Some(Beyond::Steps { action: work.action.clone(), found, agreed: agreed.clone() });
    }
    let found = work.executed().digest();
    if found.as_ref().is_ok_and(|found| found == agreed) {
        return None;
    }
    let found = found.map_or_else(|error| error.to_string(), |found| found.to_string());
    Some(Beyond::Steps { action: work.action.clone(), found, agreed: agreed.clone() })
}

/// Returns an error for an order with sensitive outputs that the action does not read, or that would take the place of
/// other outputs that the action reads.
fn outputs(order: &Order, work: &RunAction, agreed: &ActionTerms) -> Option<Beyond> {
    let reads =
        |name: &str| agreed.reads.iter().any(|one| matches!(one, Reference::Component(part) if part.as_str() == name));
    let reads_sandbox = agreed.reads.iter().any(|one| matches!(one, Reference::Sandbox(_)));
    let may_read = |kept: &&KeptOutputs| {
        let (part, other) = (kept.part.as_str(), kept.var_name.as_str());
        if kept.sandbox {
            return reads_sandbox && kept.part.is_sandbox();
        }
        reads(part) && (other == part || !reads(other))
    };
    let found = order.kept_outputs.iter().find(|kept| !may_read(kept))?;
    Some(Beyond::Outputs { action: work.action.clone(), part: found.part.clone() })
}

/// Returns an error for an order whose policies are not those that its terms have for its work.
fn policies(order: &Order, terms: Option<&Terms>) -> Option<Beyond> {
    let mut of_kyverno = order.policies.iter().filter(|policy| policy.engine == PolicyEngine::Kyverno);
    let first = of_kyverno.next();
    let Some(terms) = terms else {
        // A Rego policy can only refuse. A Kyverno policy is applied to a cluster, and may change objects of others
        // there.
        return first.map(|policy| Beyond::PolicyWithoutTerms { name: policy.name.clone() });
    };
    let carried = |policy: &&PolicyTerms| carries(policy.engine, &policy.kind, &policy.components, &order.work);
    let agreed = || terms.policies.iter().filter(carried);
    // Compares the engine too: the runner itself does not evaluate a policy whose engine in the order is Kyverno.
    let is_same = |found: &OrderPolicy, agreed: &PolicyTerms| {
        (&found.contents, found.engine) == (&agreed.contents, agreed.engine)
    };
    // The control plane of the previous release puts no Kyverno policy into an order. Such an order also removes none.
    let is_needed = |policy: &&PolicyTerms| policy.engine == PolicyEngine::Opa || first.is_some();
    let mut left_out =
        agreed().filter(is_needed).filter(|policy| !order.policies.iter().any(|found| is_same(found, policy)));
    if let Some(policy) = left_out.next() {
        return Some(Beyond::PolicyLeftOut { name: policy.name.clone() });
    }
    let found = order.policies.iter().find(|found| !agreed().any(|agreed| is_same(found, agreed)));
    found.map(|policy| Beyond::Policy { name: policy.name.clone() })
}

/// Returns an error for an order that permits a second start although its kind of work must never start twice.
fn redelivery(order: &Order) -> Option<Beyond> {
    let twice = order.redelivery == Redelivery::Resume && order.work.redelivery() == Redelivery::Interrupted;
    twice.then_some(Beyond::Redelivery)
}

/// Returns an error for an order whose group is not the group of the thing that its work changes. Two jobs of one group
/// never run at the same time.
fn group(order: &Order) -> Option<Beyond> {
    let changes = order.work.changes();
    (order.group.thing() != changes).then(|| Beyond::Group { found: order.group.to_string(), changes })
}

/// Returns an error for work on the sandbox that names a component: it would change the Pulumi state of this component,
/// at the same time as a job of the component's own group.
fn sandbox(order: &Order) -> Option<Beyond> {
    let made = order.work.made_by();
    let named = made.component().filter(|_| matches!(made, Work::Sandbox(_) | Work::PulumiSandbox(_)))?;
    (!named.is_sandbox()).then(|| Beyond::Sandbox(named.clone()))
}

#[cfg(test)]
mod tests;
