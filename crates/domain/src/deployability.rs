//! Finds the parts of an app version that cannot be deployed yet, and names them.

use std::collections::BTreeSet;

use freehold_protocol::app_version::{
    Action, AppVersion, Component, ComponentSpec, Platform, Reference, RolePolicy, Sandbox,
};
use freehold_protocol::order::{Mode, Signer, Source};
use freehold_protocol::{ActionName, ComponentName};

/// A part that prevents a deploy, and the reason. Its text continues the sentence "app `x` cannot be deployed yet:".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undeployable {
    pub part: Part,
    /// The reason as the end of a sentence about the part, such as "is of type `azure-bicep`".
    pub why: String,
}

/// A part of an app version that can prevent a deploy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    Stack,
    Sandbox,
    Component(ComponentName),
    Action(ActionName),
    /// The role of a mode: the mode, and the role's name in the config.
    ModeRole(Mode, String),
    NamedRole(String),
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Stack => write!(f, "the stack"),
            Self::Sandbox => write!(f, "the sandbox"),
            Self::Component(name) => write!(f, "component `{name}`"),
            Self::Action(name) => write!(f, "action `{name}`"),
            Self::ModeRole(mode, _) => write!(f, "the role of mode `{}`", mode.as_str()),
            Self::NamedRole(name) => write!(f, "role `{name}`"),
        }
    }
}

impl std::fmt::Display for Undeployable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.part, self.why)
    }
}

/// Returns the parts that prevent a deploy of `version`, with the reasons; empty when the version can be deployed.
pub fn undeployable(version: &AppVersion) -> Vec<Undeployable> {
    let mut found = Vec::new();
    let mut add = |part: &Part, reasons: Vec<String>| {
        found.extend(reasons.into_iter().map(|why| Undeployable { part: part.clone(), why }));
    };
    if let Some(platform) =
        version.stack.as_ref().map(|stack| stack.platform).filter(|p| *p != Platform::AwsCloudformation)
    {
        add(&Part::Stack, vec![format!("is of type `{}`", platform.as_str())]);
    }
    let sandbox = version.sandbox.as_ref();
    add(&Part::Sandbox, sandbox.map(sandbox_why).unwrap_or_default());
    for component in &version.components {
        add(&Part::Component(component.name.clone()), component_why(component, sandbox));
    }
    for action in &version.actions {
        let mut why = action_why(action, sandbox);
        why.extend(name_of_step_why(version, action));
        add(&Part::Action(action.name.clone()), why);
    }
    for role in &version.roles {
        add(&Part::ModeRole(role.mode, role.name.clone()), role_why(&role.policies));
    }
    for role in &version.named_roles {
        add(&Part::NamedRole(role.name.clone()), role_why(&role.policies));
    }
    found
}

fn role_why(policies: &[RolePolicy]) -> Vec<String> {
    let of_google = policies.iter().any(|policy| matches!(policy, RolePolicy::GcpPredefined(_)));
    of_google.then(|| "has permissions of Google Cloud".to_owned()).into_iter().collect()
}

fn sandbox_why(sandbox: &Sandbox) -> Vec<String> {
    let mut why = references_why(&sandbox.references, Some(sandbox));
    for reference in &sandbox.references {
        match reference {
            Reference::Component(name) => {
                why.push(format!("reads component `{name}`, but is deployed before all components"));
            }
            Reference::Action(name) => why.push(format!("reads action `{name}`, but is deployed before all actions")),
            Reference::Sandbox(_) => why.push("reads its own outputs".into()),
            Reference::Input(_) | Reference::Secret(_) | Reference::InstallStack(_) | Reference::Licence => {}
        }
    }
    why
}

fn component_why(component: &Component, sandbox: Option<&Sandbox>) -> Vec<String> {
    if sandbox.is_some() && component.name.is_sandbox() {
        return vec!["has the name of the sandbox; give it another name".into()];
    }
    let mut why = references_why(&component.references, sandbox);
    let is_provided = component.references.iter().any(|reference| matches!(reference, Reference::Component(_)));
    if let (ComponentSpec::Job { .. }, Source::Version, false) = (&component.spec, &component.source, is_provided) {
        why.push("runs an image that no component copies into the install registry".into());
    }
    if let ComponentSpec::ContainerImage { verification: Some(verification) } = &component.spec
        && verification.require_signature
        && !verification.signers().iter().any(|signer| matches!(signer, Signer::Key { .. }))
    {
        why.push("requires a keyless signature, which builds do not check".into());
    }
    why
}

fn action_why(action: &Action, sandbox: Option<&Sandbox>) -> Vec<String> {
    let mut why = references_why(&action.references, sandbox);
    if action.image.as_ref().is_some_and(|image| !image.contains("{{")) {
        why.push("runs in an image that is not a component of the app".into());
    }
    why
}

/// Returns a reason when a component, or another directory, has the name under which the directory of a step is built.
fn name_of_step_why(version: &AppVersion, action: &Action) -> Option<String> {
    let all: Vec<ComponentName> = version.actions.iter().flat_map(Action::sources).map(|source| source.name).collect();
    let is_taken = |name: &ComponentName| {
        version.component(name).is_some() || all.iter().filter(|other| *other == name).count() > 1
    };
    let taken = action.sources().into_iter().find(|source| is_taken(&source.name))?;
    let name = taken.name;
    Some(format!(
        "has a step whose directory gets the name `{name}`, which another part already has; give the action \
         another name"
    ))
}

/// Returns a reason when templates read outputs of the sandbox and the app has no sandbox.
fn references_why(references: &BTreeSet<Reference>, sandbox: Option<&Sandbox>) -> Vec<String> {
    let reads = references.iter().any(|reference| matches!(reference, Reference::Sandbox(_)));
    let orphan = reads && sandbox.is_none();
    let no_sandbox = "reads outputs of the sandbox, but the app has no `sandbox.toml`";
    orphan.then(|| no_sandbox.to_owned()).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use freehold_protocol::app_version::{ComponentSettings, Verification};
    use serde_json::json;

    use super::*;

    fn component(spec: ComponentSpec, source: Source, references: &[Reference]) -> Component {
        Component {
            name: "api".parse().unwrap(),
            var_name: String::new(),
            dependencies: BTreeSet::new(),
            references: references.iter().cloned().collect(),
            deploy_timeout_secs: 60,
            build_timeout_secs: None,
            source,
            spec,
            settings: ComponentSettings::default(),
        }
    }

    fn reasons(component: Component) -> Vec<String> {
        let version = AppVersion { components: vec![component], ..AppVersion::empty("shop".parse().unwrap()) };
        undeployable(&version).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_in_the_way_is_named() {
        let image = || ComponentSpec::ContainerImage { verification: None };
        let public = || Source::Image { reference: "example/api:1".into() };
        let program = ComponentSpec::Pulumi {
            runtime: "go".into(),
            pulumi_version: String::new(),
            config: Default::default(),
            env_vars: Default::default(),
        };
        let job = |image_url: &str, tag: &str| ComponentSpec::Job {
            image_url: image_url.into(),
            tag: tag.into(),
            cmd: Vec::new(),
            args: Vec::new(),
            env_vars: Default::default(),
        };

        assert_eq!(reasons(component(image(), public(), &[Reference::Input("a".into())])), [""; 0]);
        assert_eq!(reasons(component(program, Source::Version, &[])), [""; 0]);
        assert_eq!(reasons(component(job("x", "1"), public(), &[])), [""; 0]);
        let of_component = [Reference::Component("web".parse().unwrap())];
        assert_eq!(reasons(component(job("{{ .nuon.components.web }}", "1"), Source::Version, &of_component)), [""; 0]);
        assert_eq!(
            reasons(component(job("x", "{{ .nuon.inputs.inputs.a }}"), Source::Version, &[])),
            ["component `api` runs an image that no component copies into the install registry"]
        );
        assert_eq!(
            reasons(component(image(), public(), &[Reference::Sandbox("vpc".into()), Reference::Secret("key".into())])),
            ["component `api` reads outputs of the sandbox, but the app has no `sandbox.toml`"]
        );
    }

    #[test]
    fn a_sandbox_of_terraform_is_not_in_the_way_and_what_cannot_run_is_named() {
        let sandbox = |tool: serde_json::Value, references: serde_json::Value| AppVersion {
            components: vec![component(
                ComponentSpec::ContainerImage { verification: None },
                Source::Image { reference: "example/api:1".into() },
                &[Reference::Sandbox("vpc".into())],
            )],
            sandbox: Some(
                serde_json::from_value(json!({
                    "tool": tool, "source": { "from": "version" }, "references": references,
                }))
                .unwrap(),
            ),
            ..AppVersion::empty("shop".parse().unwrap())
        };
        let terraform = json!({ "tool": "terraform", "version": "1.11.3" });
        let texts = |version: AppVersion| undeployable(&version).iter().map(ToString::to_string).collect::<Vec<_>>();
        let mut named = sandbox(terraform.clone(), json!([]));
        named.components[0].name = "sandbox".parse().unwrap();

        assert_eq!(texts(sandbox(terraform.clone(), json!([]))), [""; 0]);
        assert_eq!(texts(sandbox(json!({ "tool": "pulumi", "runtime": "go", "version": "" }), json!([]))), [""; 0]);
        assert_eq!(
            texts(sandbox(terraform, json!([{ "to": "component", "name": "api" }]))),
            ["the sandbox reads component `api`, but is deployed before all components"]
        );
        assert_eq!(texts(named), ["component `sandbox` has the name of the sandbox; give it another name"]);
    }

    #[test]
    fn a_signature_by_a_key_is_not_in_the_way() {
        let (key, keyless) = (json!({ "public_key": "KEY" }), json!({ "issuer": "https://accounts.example" }));
        let image = |require_signature, authorities| {
            let verification = Some(Verification { require_signature, authorities });
            let source = Source::Image { reference: "example/api:1".into() };
            component(ComponentSpec::ContainerImage { verification }, source, &[])
        };

        assert_eq!(reasons(image(true, vec![keyless.clone(), key])), [""; 0]);
        assert_eq!(reasons(image(false, vec![keyless.clone()])), [""; 0]);
        assert_eq!(
            reasons(image(true, vec![keyless])),
            ["component `api` requires a keyless signature, which builds do not check"]
        );
    }
}
