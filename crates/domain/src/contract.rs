//! The contract of an app version: what it may do in a customer's account, and the digests of the artifacts and steps
//! that do it.

use std::collections::{BTreeMap, BTreeSet};

use freehold_permissions::{may_read_input, rendered_texts};
use freehold_protocol::app_version::{Action, AppVersion, NamedRole, Reference, RolePolicy, Secret, Trigger};
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
use crate::runs_as::{Operation, runs_as};

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
        Ok(Some(as_what)) => as_what.role.map_or_else(|| as_what.mode.as_str().to_owned(), String::from),
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
        schedules: action.triggers.iter().filter_map(schedule).collect(),
        reads: action.references.clone(),
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
    // INVARIANT: names, numbers and texts are always JSON. No action has the digest of no bytes, so a runner would
    // refuse it.
    Some(executed.digest().unwrap_or_else(|_| Digest::of(b"")))
}

/// Returns the commands that health checks run as probes.
fn probes(version: &AppVersion) -> BTreeSet<ProbeTerms> {
    let asked = version.components.iter().filter_map(|one| Some((&one.name, checked(one)?)));
    let commands = asked.flat_map(|(component, health)| {
        let probes = health.probes.iter().filter_map(Probe::of);
        probes.filter_map(move |probe| {
            let (component, command) = (component.clone(), probe.command()?.to_vec());
            Some(ProbeTerms { component, command })
        })
    });
    commands.collect()
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
        let arn = Reference::InstallStack(secret.arn_output());
        let terms = SecretTerms {
            generated: secret.auto_generate,
            shared: is_shared(version, secret),
            read_by: readers(version, &[Reference::Secret(secret.name.clone()), arn]).collect(),
            kubernetes: secret.kubernetes.clone(),
        };
        (secret.name.clone(), terms)
    });
    terms.collect()
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
mod tests {
    use freehold_protocol::order::RunAction;
    use serde_json::json;

    use super::*;

    fn version(more: &Value) -> AppVersion {
        let mut all = json!({ "format": 1, "app": "shop" });
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(all).unwrap()
    }

    fn shop() -> AppVersion {
        version(&json!({
            "inputs": [
                { "name": "prefix", "type": "string", "default": "shop" },
                { "name": "domain", "type": "string", "customer": true },
                { "name": "size", "type": "number", "default": 3 },
            ],
            "components": [{
                "name": "db", "deploy_timeout_secs": 600, "source": { "from": "version" },
                "spec": { "kind": "terraform_module", "terraform_version": "1.11.3", "vars": { "url": "https://x.example/a" } },
            }],
            "actions": [
                { "name": "restart", "timeout_secs": 60, "steps": [], "role": "support",
                  "references": [{ "to": "input", "name": "domain" }] },
                { "name": "check", "timeout_secs": 60, "steps": [{ "name": "say", "command": "true" }] },
            ],
            "roles": [{ "mode": "provision", "policies": [{ "inline": {
                "name": "own", "document": r#"{"Statement": {"Effect": "Allow", "Action": "s3:*",
                    "Resource": "arn:aws:s3:::{{ .nuon.inputs.inputs.prefix }}-{{ .nuon.inputs.inputs.domain }}"}}"#,
            } }] }],
            "named_roles": [
                { "name": "{{ .nuon.install.id }}-support", "enabled": true, "policies": [{ "managed": "ReadOnlyAccess" }] },
                { "name": "emergency", "enabled": true, "break_glass": true, "policies": [] },
            ],
            "operation_roles": [{ "principal": "action:restart", "operation": "trigger", "role": "custom-support" }],
            "policies": [{ "name": "tags", "type": "terraform_module", "engine": "opa", "contents": "package tags" }],
        }))
    }

    #[test]
    fn terms_name_who_may_do_what_and_not_how() {
        let mut version = shop();
        version.actions[0].role = String::new();

        let mut terms = serde_json::to_value(terms(&version)).unwrap();

        for action in terms["actions"].as_array_mut().unwrap() {
            assert!(action.as_object_mut().unwrap().remove("steps").is_some_and(|steps| steps.is_string()));
        }
        let found = json!({
            "hosts": terms["hosts"], "inputs": terms["policy_inputs"], "actions": terms["actions"],
            "roles": terms["roles"].as_array().unwrap().iter().map(|role| json!([role["role"], role["on"]])).collect::<Vec<_>>(),
        });
        let expected = json!({
            "hosts": ["*.amazonaws.com", "x.example"],
            "inputs": { "domain": null, "prefix": "shop" },
            "actions": [
                { "name": "check", "role": "maintenance" },
                { "name": "restart", "role": "custom-support", "reads": [{ "to": "input", "name": "domain" }] },
            ],
            "roles": [["provision", true], ["custom-support", true], ["break-glass-emergency", false]],
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn terms_name_the_customers_inputs_and_secrets_and_who_reads_them() {
        let mut version = shop();
        let more = json!({
            "inputs": [
                { "name": "domain", "type": "string", "customer": true },
                { "name": "token", "type": "string", "customer": true, "sensitive": true, "default": "hidden" },
                { "name": "size", "type": "number", "default": 3 },
            ],
            "secrets": [
                { "name": "license", "kubernetes": { "namespace": "shop", "name": "license" } },
                { "name": "session", "auto_generate": true },
                { "name": "unused" },
            ],
        });
        version.inputs = serde_json::from_value(more["inputs"].clone()).unwrap();
        version.secrets = serde_json::from_value(more["secrets"].clone()).unwrap();
        let reads = json!([
            { "to": "input", "name": "token" }, { "to": "secret", "name": "session" },
            { "to": "install_stack", "name": "license_arn" }, { "to": "input", "name": "size" },
        ]);
        version.components[0].references = serde_json::from_value(reads).unwrap();

        let found = serde_json::to_value(terms(&version)).unwrap();

        let db = json!({ "part": "component", "name": "db" });
        let expected = json!({
            "domain": { "read_by": [{ "part": "role", "name": "provision" }] },
            "token": { "sensitive": true, "read_by": [db] },
        });
        assert_eq!(found["customer_inputs"], expected);
        let expected = json!({
            "license": { "shared": true, "read_by": [db], "kubernetes": { "namespace": "shop", "name": "license" } },
            "session": { "generated": true, "read_by": [db] },
            "unused": {},
        });
        assert_eq!(found["secrets"], expected);
        assert!(!found.to_string().contains("hidden"), "{found}");
    }

    #[test]
    fn the_sandbox_and_a_reader_of_all_outputs_of_the_stack_are_named() {
        let sandbox = json!({
            "tool": { "tool": "terraform", "version": "1.11.3" }, "source": { "from": "version" },
            "references": [{ "to": "install_stack", "name": "" }, { "to": "input", "name": "domain" }],
        });
        let input = json!({ "name": "domain", "type": "string", "customer": true });
        let version = version(&json!({ "sandbox": sandbox, "inputs": [input], "secrets": [{ "name": "license" }] }));

        let Terms { customer_inputs, secrets, .. } = terms(&version);

        assert_eq!(customer_inputs["domain"].read_by, [Reader::Sandbox].into());
        assert_eq!(secrets["license"].read_by, [Reader::Sandbox].into());
        assert!(!secrets["license"].shared);
    }

    #[test]
    fn the_digest_of_the_terms_covers_the_schedules_of_actions() {
        let (plain, mut scheduled) = (shop(), shop());
        let triggers = json!([{ "on": "manual" }, { "on": "cron", "schedule": "0 3 * * *" }]);
        scheduled.actions[1].triggers = serde_json::from_value(triggers).unwrap();

        let (plain, scheduled) = (terms(&plain), terms(&scheduled));

        assert_eq!(scheduled.actions[0].schedules, ["0 3 * * *".to_owned()].into());
        assert_ne!(scheduled.digest().unwrap(), plain.digest().unwrap());
    }

    #[test]
    fn a_host_that_may_be_inside_is_contacted_and_marked() {
        let runner = json!({ "runner_type": "aws", "inside_hosts": ["db.corp.example:5432"] });

        let terms = terms(&version(&json!({ "runner": runner })));

        assert_eq!(terms.inside_hosts, ["db.corp.example:5432".to_owned()].into());
        assert!(terms.hosts.is_superset(&terms.inside_hosts), "{:?}", terms.hosts);
    }

    #[test]
    fn terms_name_registries_where_a_part_fetches_its_providers() {
        let module = |providers: &str| json!({ "kind": "terraform_module", "terraform_version": "1.11.3", "providers": providers });
        let component = |name: &str, providers: &str| json!({ "name": name, "deploy_timeout_secs": 60, "source": { "from": "version" }, "spec": module(providers) });
        let sandbox = json!({
            "tool": { "tool": "terraform", "version": "1.11.3", "providers": "registry" }, "source": { "from": "version" },
        });
        let components = json!([component("packed", "packed"), component("net", "registry")]);

        let found = hosts(&version(&json!({ "components": components, "sandbox": sandbox })));

        assert_eq!(
            serde_json::to_value(found).unwrap(),
            json!({
                "*.amazonaws.com": ["the runner"],
                "registry.opentofu.org": ["component `net` providers", "sandbox providers"],
                "registry.terraform.io": ["component `net` providers", "sandbox providers"],
            })
        );
    }

    #[test]
    fn other_steps_change_the_terms_of_their_action_and_artifacts_change_no_terms() {
        let digest = |change: &dyn Fn(&mut Action)| {
            let mut version = shop();
            change(&mut version.actions[1]);
            let contract = contract(&version, &Digest::of(b"version"), &BTreeMap::new()).unwrap();
            (contract.terms.actions.into_iter().map(|action| action.steps.unwrap()).collect::<Vec<_>>(), contract.steps)
        };
        let (was, whole) = digest(&|_| ());

        for change in [
            &(|action: &mut Action| action.steps[0].command = "false".into()) as &dyn Fn(&mut Action),
            &|action| drop(action.env_vars.insert("LEVEL".into(), "debug".into())),
            &|action| action.idempotent = true,
        ] {
            let (is, _) = digest(change);
            assert!(was[0] != is[0] && was[1] == is[1], "{was:?} {is:?}");
        }
        let (same, of_image) = digest(&|action| action.image = Some("own".into()));
        assert_eq!(was, same, "the terms have the image beside the steps");
        assert_ne!(whole, of_image);
    }

    #[test]
    fn an_order_of_an_action_has_the_steps_that_its_terms_have() {
        let action = shop().actions.remove(1);
        let work = RunAction {
            action: action.name.clone(),
            steps: action.steps.clone(),
            directories: Vec::new(),
            env_vars: action.env_vars.clone(),
            idempotent: action.idempotent,
            cluster: None,
            image: String::new(),
        };

        assert_eq!(executed(&action), Some(work.executed().digest().unwrap()));
    }

    #[test]
    fn terms_have_the_commands_of_probes_and_no_address() {
        let health = |disabled: bool, word: &str| {
            json!({ "stabilization_window_secs": 60, "disabled": disabled, "probes": [
                { "type": "tcp", "url": "db.example:5432" },
                { "type": "exec", "command": ["check", word] },
                { "type": "exec", "name": "the same", "command": ["check", word] },
            ] })
        };
        let of = |health: Value| {
            let mut version = shop();
            version.components[0].settings.health = Some(serde_json::from_value(health).unwrap());
            terms(&version)
        };

        let found = of(health(false, "{{ .nuon.install.id }}"));

        let expected = json!([{ "component": "db", "command": ["check", "{{ .nuon.install.id }}"] }]);
        assert_eq!(serde_json::to_value(&found.probes).unwrap(), expected);
        assert_ne!(found.digest().unwrap(), of(health(false, "other")).digest().unwrap());
        assert!(of(health(true, "x")).probes.is_empty());
        assert_eq!(of(health(true, "x")).digest().unwrap(), terms(&shop()).digest().unwrap());
    }

    #[test]
    fn an_input_is_found_in_a_template_that_is_written_with_escapes() {
        let mut version = shop();
        let document = r#"{"Statement": {"Effect": "Allow", "Action": "s3:*", "Resource": "\u007b{ .nuon.inputs.inputs.s\u0069ze }}"}}"#;
        version.roles[0].policies = vec![RolePolicy::Inline { name: "own".into(), document: document.into() }];

        assert_eq!(serde_json::to_value(terms(&version).policy_inputs).unwrap(), json!({ "size": 3 }));
    }

    #[test]
    fn a_policy_that_reads_whatever_there_is_names_every_default() {
        let text = "{{ range $k, $v := .nuon.inputs.inputs }}{{ $v }}{{ end }}";

        assert!(mentions(text, "size") && mentions("{{ .nuon.inputs.inputs.size }}", "size"));
        assert!(!mentions("size", "size") && !mentions("{{ .nuon.install.id }}", "size"));
    }
}
