//! The contract of an app version: what it may do in a customer's account, and the digests of the artifacts and steps
//! that do it.

use std::collections::{BTreeMap, BTreeSet};

use freehold_permissions::{may_read_input, rendered_texts};
use freehold_protocol::app_version::{
    Action, AppVersion, Component, NamedRole, Reference, RolePolicy, Secret, Trigger,
};
use freehold_protocol::contract::{
    ActionTerms, Contract, CustomerInputTerms, FORMAT, PolicyTerms, ProbeTerms, Reader, RoleTerms, SecretTerms, Terms,
};
use freehold_protocol::order::health::{Probe, checked};
use freehold_protocol::order::{Executed, Mode};
use freehold_protocol::{ActionName, ComponentName, Digest, InstallId, canonical};
use serde_json::Value;

use crate::build::Build;
use crate::contacted_hosts::hosts;
use crate::plan::triggers::event_modes;
use crate::runs_as::{Operation, RunsAs, other_roles, runs_as};

/// The modes of roles, and whether the install stack switches each of them on by default.
const MODES: [(Mode, bool); 3] = [(Mode::Provision, true), (Mode::Maintenance, true), (Mode::Deprovision, false)];

/// The reason why a version may not run in an install: its customer agreed to other terms.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConsentError {
    #[error(
        "the customer of install `{install}` agreed to `{accepted}`, but this version may do more: {more}; {}",
        way_to_agree(.install)
    )]
    Wider { install: InstallId, accepted: Digest, more: String },
    /// The customer agreed to the latest version, and this version is older. The current template asks for consent to
    /// the latest version only.
    #[error(
        "the customer of install `{install}` agreed to `{accepted}`, but version {version} may do more: {more}; the customer \
         agreed to what version {latest} may do, so deploy that version: `freehold deploy {install}`"
    )]
    Older { install: InstallId, accepted: Digest, version: u64, latest: u64, more: String },
    #[error(
        "the customer of install `{install}` agreed to the terms `{accepted}`, but no version that was synced here has these \
         terms; {}", way_to_agree(.install)
    )]
    UnknownTerms { install: InstallId, accepted: Digest },
}

fn way_to_agree(install: &InstallId) -> String {
    format!(
        "`freehold contract diff {install}` shows the difference; to agree, the customer launches the template that \
         `freehold install stack {install}` writes, with `--accept-contract`, and restarts the runner if it is on \
         another machine than the stack's"
    )
}

/// Returns the terms of a version.
pub fn terms(version: &AppVersion) -> Terms {
    let mut actions: Vec<ActionTerms> = version.actions.iter().map(|action| action_terms(version, action)).collect();
    actions.sort_by(|a, b| a.name.cmp(&b.name));
    let policy_terms = version.policies.iter().map(|policy| PolicyTerms {
        name: policy.name.clone(),
        kind: policy.kind.clone(),
        engine: policy.engine,
        components: policy.components.clone(),
        contents: Digest::of(policy.contents.as_bytes()),
    });
    let roles = roles(version);
    Terms {
        format: FORMAT,
        app: version.app.clone(),
        customer_inputs: customer_inputs(version, &roles),
        secrets: secrets(version),
        policy_inputs: policy_inputs(version, &roles),
        roles,
        hosts: hosts(version).into_keys().collect(),
        inside_hosts: version.runner.iter().flat_map(|runner| runner.inside_hosts.clone()).collect(),
        actions,
        tool_image: version.tool_image().map(|component| component.name.clone()),
        policies: policy_terms.collect(),
        probes: probes(version),
    }
}

/// Returns the contract of a version with the usable artifacts of `builds`. `digest` is the digest of the version.
///
/// # Errors
/// The error of [`canonical::digest`].
pub fn contract(
    version: &AppVersion,
    digest: &Digest,
    builds: &BTreeMap<ComponentName, Build>,
) -> Result<Contract, serde_json::Error> {
    let artifacts = builds.iter().filter_map(|(name, build)| Some((name.clone(), build.usable()?.digest.clone())));
    let steps = version.actions.iter().map(|action| Ok((action.name.clone(), steps(action)?)));
    Ok(Contract {
        format: FORMAT,
        app: version.app.clone(),
        version: digest.clone(),
        terms: terms(version),
        artifacts: artifacts.collect(),
        steps: steps.collect::<Result<BTreeMap<ActionName, Digest>, serde_json::Error>>()?,
    })
}

fn steps(action: &Action) -> Result<Digest, serde_json::Error> {
    canonical::digest(&(&action.steps, &action.env_vars, &action.step_repos, &action.image))
}

/// Returns the roles of the install stack. A mode that has no role in the app version gets no permissions, and is left
/// out.
fn roles(version: &AppVersion) -> Vec<RoleTerms> {
    let modes = MODES.into_iter().filter_map(|(mode, on)| {
        let role = version.roles.iter().find(|role| role.mode == mode)?;
        let (policies, boundary) = (role.policies.clone(), role.boundary.clone());
        Some(RoleTerms { role: mode.as_str().to_owned(), on, policies, boundary })
    });
    let named = version.named_roles.iter().map(|role: &NamedRole| RoleTerms {
        role: role.key().to_string(),
        on: role.enabled && !role.break_glass,
        policies: role.policies.clone(),
        boundary: role.boundary.clone(),
    });
    modes.chain(named).collect()
}

fn action_terms(version: &AppVersion, action: &Action) -> ActionTerms {
    let named = runs_as(version, Operation::Trigger(action), None, Mode::Maintenance);
    // An action without a role of its own runs under the role of the workflow whose event starts it.
    let event_modes = if matches!(named, Ok(None)) { event_modes(action) } else { BTreeSet::new() };
    let role = match named {
        Ok(Some(own)) => own.in_terms().to_owned(),
        Ok(None) => Mode::Maintenance.as_str().to_owned(),
        // An action with an unknown role cannot be run. Its terms name the role as the config does.
        Err(_) => [&action.break_glass_role, &action.role]
            .into_iter()
            .find(|role| !role.is_empty())
            .cloned()
            .unwrap_or_default(),
    };
    ActionTerms {
        name: action.name.clone(),
        role,
        event_modes,
        other_roles: other_roles(version, action),
        schedules: action.triggers.iter().filter_map(schedule).collect(),
        // The licence is a statement of the vendor, and contains no value of the customer.
        reads: action.references.iter().filter(|one| **one != Reference::Licence).cloned().collect(),
        cluster: action.enable_kube_config,
        image: action.image.clone().unwrap_or_default(),
        steps: executed(action),
    }
}

/// Returns the digest of what an order of the action executes.
fn executed(action: &Action) -> Option<Digest> {
    let sources = action.sources();
    let directories = sources.iter().map(|one| (&one.name, one.steps.as_slice())).collect();
    let Action { steps, env_vars, idempotent, .. } = action;
    let executed = Executed { steps, directories, env_vars, idempotent: *idempotent };
    // INVARIANT: names, numbers and texts are always JSON. The digest of zero bytes belongs to no action, so a
    // runner would refuse the order.
    Some(executed.digest().unwrap_or_else(|_| Digest::of(b"")))
}

/// Returns the commands that health checks run as probes.
fn probes(version: &AppVersion) -> BTreeSet<ProbeTerms> {
    let asked = version.components.iter().filter_map(|one| Some((one, checked(one)?)));
    let commands = asked.flat_map(|(component, health)| {
        let role = role_of_checks(version, component);
        let probes = health.probes.iter().filter_map(Probe::of);
        probes.filter_map(move |probe| {
            let (component, command) = (component.name.clone(), probe.command()?.to_vec());
            Some(ProbeTerms { component, command, role: role.clone() })
        })
    });
    commands.collect()
}

/// Returns the role that the health checks of a component run under, if the app names one for its deploy; otherwise
/// an empty text. A role that the app does not have is written as the config writes it: nothing can run under it.
fn role_of_checks(version: &AppVersion, component: &Component) -> String {
    match runs_as(version, Operation::Deploy(component), None, Mode::Maintenance) {
        Ok(own) => own.as_ref().map(RunsAs::in_terms).unwrap_or_default().to_owned(),
        Err(error) => error.role().to_owned(),
    }
}

fn schedule(trigger: &Trigger) -> Option<String> {
    match trigger {
        Trigger::Cron { schedule } => Some(schedule.clone()),
        Trigger::Manual
        | Trigger::PostProvision
        | Trigger::PostDeployComponent { .. }
        | Trigger::PostDeployAllComponents
        | Trigger::Event { .. } => None,
    }
}

/// Returns the defaults of the inputs that policies read; null for an input without a default. Sensitive inputs are
/// left out. An input that the customer answers is included, because its default is in the template that the vendor
/// sends.
fn policy_inputs(version: &AppVersion, roles: &[RoleTerms]) -> BTreeMap<String, Value> {
    // A string in a document may contain escapes, so only the parsed string shows its template.
    let in_document = |document: &str, name: &str| rendered_texts(document).iter().any(|text| mentions(text, name));
    let in_policy = |policy: &RolePolicy, name: &str| match policy {
        RolePolicy::Managed(text) | RolePolicy::GcpPredefined(text) => mentions(text, name),
        RolePolicy::Inline { document, .. } => in_document(document, name),
    };
    let named = |name: &str| {
        roles.iter().any(|role| {
            role.policies.iter().any(|policy| in_policy(policy, name))
                || role.boundary.as_ref().is_some_and(|boundary| in_document(boundary, name))
        })
    };
    let read = version.inputs.iter().filter(|input| !input.sensitive && named(&input.name));
    read.map(|input| (input.name.clone(), input.default.clone().unwrap_or_default())).collect()
}

/// Returns the inputs that the customer answers.
fn customer_inputs(version: &AppVersion, roles: &[RoleTerms]) -> BTreeMap<String, CustomerInputTerms> {
    let asked = version.inputs.iter().filter(|input| input.customer);
    let terms = asked.map(|input| {
        let reading = roles.iter().filter(|role| {
            role.policies.iter().any(|policy| may_read(policy, &input.name))
                || role.boundary.as_ref().is_some_and(|boundary| may_read_input(boundary, &input.name))
        });
        let of_roles = reading.map(|role| Reader::Role(role.role.clone()));
        let read_by = readers(version, &[Reference::Input(input.name.clone())]).chain(of_roles).collect();
        (input.name.clone(), CustomerInputTerms { sensitive: input.sensitive, read_by })
    });
    terms.collect()
}

fn may_read(policy: &RolePolicy, input: &str) -> bool {
    match policy {
        RolePolicy::Managed(text) | RolePolicy::GcpPredefined(text) => may_read_input(text, input),
        RolePolicy::Inline { document, .. } => may_read_input(document, input),
    }
}

/// Returns the secrets of the app.
fn secrets(version: &AppVersion) -> BTreeMap<String, SecretTerms> {
    let terms = version.secrets.iter().map(|secret| {
        let terms = SecretTerms {
            generated: secret.auto_generate,
            shared: is_shared(version, secret),
            read_by: readers(version, &references_to(secret)).collect(),
            kubernetes: secret.kubernetes.clone(),
        };
        (secret.name.clone(), terms)
    });
    terms.collect()
}

/// Returns whether templates with these references read the secret or its ARN.
pub fn reads_secret(references: &BTreeSet<Reference>, secret: &Secret) -> bool {
    reads(references, &references_to(secret))
}

/// Returns the references to the secret and to its ARN.
fn references_to(secret: &Secret) -> [Reference; 2] {
    [Reference::Secret(secret.name.clone()), Reference::InstallStack(secret.arn_output())]
}

/// Returns whether a template of the app names the secret's ARN. If one does, a role of the app can read the secret
/// itself.
pub fn is_shared(version: &AppVersion, secret: &Secret) -> bool {
    let arn = Reference::InstallStack(secret.arn_output());
    let of_actions = version.actions.iter().map(|action| &action.references);
    version.parts().any(|part| part.references.contains(&arn)) || of_actions.into_iter().any(|all| all.contains(&arn))
}

/// Returns the sandbox and the components whose templates read one of `wanted`.
fn readers<'a>(version: &'a AppVersion, wanted: &'a [Reference]) -> impl Iterator<Item = Reader> {
    let sandbox = version.sandbox.iter().filter(|sandbox| reads(&sandbox.references, wanted)).map(|_| Reader::Sandbox);
    let components = version.components.iter().filter(|component| reads(&component.references, wanted));
    sandbox.chain(components.map(|component| Reader::Component(component.name.clone())))
}

/// Returns whether `references` contain one of `wanted`. A template that reads all outputs of the install stack reads
/// the ARNs of all secrets.
fn reads(references: &BTreeSet<Reference>, wanted: &[Reference]) -> bool {
    let whole_stack = Reference::InstallStack(String::new());
    let is_output = |one: &Reference| matches!(one, Reference::InstallStack(_));
    wanted.iter().any(|one| references.contains(one) || is_output(one) && references.contains(&whole_stack))
}

/// Returns whether a template may read the input called `name`. If this is not certain, returns true: the customer then
/// accepts a default that may have no effect, but never overlooks a default that has one.
fn mentions(text: &str, name: &str) -> bool {
    let reads_all = || ["range", "toJson", "toPrettyJson", "toYaml", "values"].iter().any(|word| text.contains(word));
    text.contains("{{") && (text.contains(name) || reads_all())
}

#[cfg(test)]
mod tests;
