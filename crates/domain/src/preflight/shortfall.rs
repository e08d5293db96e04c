//! Predicts, only from an app version, which permissions a preflight would find missing in the app's own roles.

use std::collections::BTreeMap;

use freehold_permissions::{Allowance, Answer};
use freehold_protocol::app_version::{AppVersion, Component, ComponentSpec, RolePolicy};
use freehold_protocol::order::Mode;
use freehold_protocol::preflight::{STACK_CHANGES, STACK_READS, STACK_REMOVALS};
use freehold_protocol::{ComponentName, RoleKey};

use super::creation;
use crate::runs_as::{Operation, RunsAs, UnknownRole, check_role, runs_as};

/// The modes that deploy components: `provision` for the first deploy of an install, `maintenance` for all later ones.
const DEPLOYING: [Mode; 2] = [Mode::Provision, Mode::Maintenance];
/// The maximum number of components that are checked, which keeps a check fast. Apps usually have several dozen.
const MAX_COMPONENTS: usize = 200;

/// Permissions that a component needs in a customer's account and that its role does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortfall {
    pub component: ComponentName,
    /// The mode of the deploy, or of the teardown.
    pub mode: Mode,
    /// The name of the role in the config; `None` when the app has no role for the mode.
    pub role: Option<String>,
    /// The missing IAM actions, such as `cloudformation:CreateChangeSet`, in the order in which a job calls them.
    pub actions: Vec<&'static str>,
    /// The resource of the actions: a pattern of ARNs, which may contain templates.
    pub resource: String,
    /// The reason why the actions are missing; never [`Answer::Possible`].
    pub answer: Answer,
}

/// The key of a role: a mode for the role of a mode, or a role key for a named role.
type Key = (Option<Mode>, Option<RoleKey>);

/// The roles of an app version with their parsed policies.
#[derive(Debug)]
pub struct Roles<'v> {
    version: &'v AppVersion,
    /// The name of each role in the config, and the permissions that the role allows.
    read: BTreeMap<Key, (&'v str, Allowance)>,
}

impl<'v> Roles<'v> {
    pub fn of(version: &'v AppVersion) -> Self {
        let read = |name: &'v str, policies: &'v [RolePolicy], boundary: &Option<String>| {
            (name, Allowance::of(policies, boundary.as_deref()))
        };
        let modes = version.roles.iter();
        let modes = modes.map(|role| ((Some(role.mode), None), read(&role.name, &role.policies, &role.boundary)));
        let named = version.named_roles.iter();
        let named = named.map(|role| ((None, Some(role.key())), read(&role.name, &role.policies, &role.boundary)));
        Self { version, read: modes.chain(named).collect() }
    }

    /// Returns the permissions that the roles lack for deploys of the app's CloudFormation stacks. Checks the
    /// actions that a preflight of an install checks too. Components with an unknown role are left out;
    /// [`unknown_roles`] reports them.
    pub fn stacks(&self) -> Vec<Shortfall> {
        let actions: Vec<&'static str> = STACK_READS.into_iter().chain(STACK_CHANGES).collect();
        self.all_stacks().flat_map(|(component, resource)| self.lacking(component, &actions, &resource)).collect()
    }

    /// Returns the permissions that the roles lack for the teardown of the app's CloudFormation stacks. Leaves out a
    /// stack whose teardown has no role in the app: such an app removes nothing.
    pub fn stack_removals(&self) -> Vec<Shortfall> {
        let found = self.all_stacks().flat_map(|(component, resource)| {
            let (operation, mode) = (Operation::Teardown(component), Mode::Deprovision);
            self.lacking_in(component, operation, mode, &STACK_REMOVALS, &resource)
        });
        found.filter(|one| one.role.is_some()).collect()
    }

    /// Returns the components that are CloudFormation stacks, and the pattern of the stack's ARN.
    fn all_stacks(&self) -> impl Iterator<Item = (&'v Component, String)> {
        let stacks = self.version.components.iter().filter_map(|component| match &component.spec {
            ComponentSpec::CloudformationStack { stack_name, .. } => {
                Some((component, format!("arn:*:cloudformation:*:*:stack/{stack_name}/*")))
            }
            ComponentSpec::ContainerImage { .. }
            | ComponentSpec::TerraformModule { .. }
            | ComponentSpec::HelmChart { .. }
            | ComponentSpec::KubernetesManifest { .. }
            | ComponentSpec::DockerBuild { .. }
            | ComponentSpec::Job { .. }
            | ComponentSpec::Pulumi { .. } => None,
        });
        stacks.take(MAX_COMPONENTS)
    }

    /// Returns the permissions that the deploys of `component` lack to create resources of these types (as Terraform or
    /// CloudFormation names them). Types whose creating action is not known here are ignored.
    pub fn creations<'t>(&self, component: &ComponentName, types: impl IntoIterator<Item = &'t str>) -> Vec<Shortfall> {
        let Some(component) = self.version.component(component) else { return Vec::new() };
        let mut actions: Vec<&'static str> = types.into_iter().filter_map(creation::action).collect();
        actions.sort_unstable();
        actions.dedup();
        self.lacking(component, &actions, "*")
    }

    fn lacking(&self, component: &Component, actions: &[&'static str], resource: &str) -> Vec<Shortfall> {
        let mut found: Vec<Shortfall> = Vec::new();
        for mode in DEPLOYING {
            let mut of_mode = self.lacking_in(component, Operation::Deploy(component), mode, actions, resource);
            // If the component has a role of its own, both modes use it, and the result would appear twice.
            of_mode.retain(|new| {
                !found.iter().any(|old| new.role.is_some() && old.role == new.role && old.actions == new.actions)
            });
            found.extend(of_mode);
        }
        found
    }

    /// Returns what the role of this operation lacks, one value for each reason. Nothing if the role is unknown.
    fn lacking_in(
        &self,
        component: &Component,
        operation: Operation<'_>,
        mode: Mode,
        actions: &[&'static str],
        resource: &str,
    ) -> Vec<Shortfall> {
        let Ok(own) = runs_as(self.version, operation, None, mode) else { return Vec::new() };
        let (key, mode_of_role) = match own {
            Some(RunsAs { role: Some(key), .. }) => ((None, Some(key)), mode),
            Some(RunsAs { mode, role: None }) => ((Some(mode), None), mode),
            None => ((Some(mode), None), mode),
        };
        let known = self.read.get(&key);
        let mut found: Vec<Shortfall> = Vec::new();
        for action in actions {
            let answer = known.map_or(Answer::NotAllowed, |(_, allowance)| allowance.answer(action, resource));
            if answer == Answer::Possible {
                continue;
            }
            match found.iter_mut().find(|one| one.answer == answer) {
                Some(one) => one.actions.push(action),
                None => found.push(Shortfall {
                    component: component.name.clone(),
                    mode: mode_of_role,
                    role: known.map(|(name, _)| (*name).to_owned()),
                    actions: vec![action],
                    resource: resource.to_owned(),
                    answer,
                }),
            }
        }
        found
    }
}

/// A component, an action or the sandbox that names a role which the app does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoRole {
    /// The part that names the role, such as ``component `web` ``.
    pub what: String,
    pub error: UnknownRole,
}

/// Returns every part that names a role which the app does not have. The planner would refuse these parts.
pub fn unknown_roles(version: &AppVersion) -> Vec<NoRole> {
    let refused = |what: String, operation: Operation<'_>| {
        runs_as(version, operation, None, Mode::Maintenance).err().map(|error| NoRole { what, error })
    };
    let components = version.components.iter();
    let components = components.flat_map(|one| {
        [Operation::Deploy(one), Operation::Teardown(one)]
            .into_iter()
            .filter_map(|operation| refused(format!("component `{}`", one.name), operation))
    });
    let sandbox = version.sandbox.iter().flat_map(|sandbox| {
        [Operation::Provision(sandbox), Operation::Reprovision(sandbox), Operation::Deprovision(sandbox)]
            .into_iter()
            .filter_map(|operation| refused("the sandbox".to_owned(), operation))
    });
    let actions = version.actions.iter();
    let actions = actions.flat_map(|one| {
        let what = format!("action `{}`", one.name);
        let others: Vec<NoRole> = one
            .other_roles
            .iter()
            .filter_map(|name| Some(NoRole { what: what.clone(), error: check_role(version, name).err()? }))
            .collect();
        refused(what, Operation::Trigger(one)).into_iter().chain(others)
    });
    sandbox.chain(components).chain(actions).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn version(policies: &Value, more: &Value) -> AppVersion {
        let stack = json!({ "kind": "cloudformation_stack", "stack_name": "{{ .nuon.install.id }}-topic" });
        let mut all = json!({
            "format": 1,
            "app": "shop",
            "components": [{
                "name": "topic", "deploy_timeout_secs": 600, "source": { "from": "version" }, "spec": stack,
            }],
            "roles": [
                { "mode": "provision", "name": "{{ .nuon.install.id }}-provision", "policies": policies },
                { "mode": "maintenance", "name": "maintenance", "policies": [{ "managed": "AdministratorAccess" }] },
            ],
        });
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(all).unwrap()
    }

    fn allow(action: &str, resource: &str) -> Value {
        let document = json!({ "Statement": { "Effect": "Allow", "Action": action, "Resource": resource } });
        json!([{ "inline": { "name": "own", "document": document.to_string() } }])
    }

    #[test]
    fn a_stack_that_no_policy_names_lacks_every_call_of_a_preflight() {
        let other = allow("cloudformation:*", "arn:aws:cloudformation:*:*:stack/{{ .nuon.install.id }}-queue/*");
        let version = version(&other, &json!({}));

        let found = Roles::of(&version).stacks();

        let expected = Shortfall {
            component: "topic".parse().unwrap(),
            mode: Mode::Provision,
            role: Some("{{ .nuon.install.id }}-provision".into()),
            actions: STACK_READS.into_iter().chain(STACK_CHANGES).collect(),
            resource: "arn:*:cloudformation:*:*:stack/{{ .nuon.install.id }}-topic/*".into(),
            answer: Answer::NotAllowed,
        };
        assert_eq!(found, [expected]);
    }

    #[test]
    fn single_calls_are_named_and_a_mode_without_a_role_has_none() {
        let reads = version(&allow("cloudformation:Describe*", "*"), &json!({}));
        let nothing = version(&json!([]), &json!({ "roles": [] }));
        let whole = version(&allow("*", "*"), &json!({}));

        let reading = Roles::of(&reads).stacks();

        assert_eq!(reading[0].actions, ["cloudformation:CreateChangeSet", "cloudformation:ExecuteChangeSet"]);
        let modes: Vec<_> = Roles::of(&nothing).stacks().into_iter().map(|one| (one.mode, one.role)).collect();
        assert_eq!(modes, [(Mode::Provision, None), (Mode::Maintenance, None)]);
        assert_eq!(Roles::of(&whole).stacks(), []);
    }

    #[test]
    fn a_component_with_a_role_of_its_own_is_held_against_that_role() {
        let rules = json!([{ "principal": "component:topic", "operation": "deploy", "role": "deployer" }]);
        let more = json!({
            "operation_roles": rules,
            "named_roles": [{ "name": "deployer", "enabled": true, "policies": [{ "managed": "ReadOnlyAccess" }] }],
        });
        let version = version(&allow("*", "*"), &more);

        let found = Roles::of(&version).stacks();

        let found: Vec<_> = found.iter().map(|one| (one.role.as_deref(), one.actions.len(), &one.answer)).collect();
        let managed = Answer::Managed(["ReadOnlyAccess".to_owned()].into());
        assert_eq!(found, [(Some("deployer"), 3, &managed), (Some("deployer"), 2, &Answer::NotAllowed)]);
    }

    #[test]
    fn a_role_that_may_not_list_a_stacks_resources_cannot_remove_the_stack() {
        let document = r#"{"Statement":{"Effect":"Allow","Resource":"*","Action":["cloudformation:D*"]}}"#;
        let role = json!({ "mode": "deprovision", "name": "removal", "policies": [
            { "inline": { "name": "own", "document": document } },
        ] });
        let removable = version(&json!([]), &json!({ "roles": [role] }));

        let found = Roles::of(&removable).stack_removals();

        let found: Vec<_> = found.iter().map(|one| (one.mode, one.role.as_deref(), &*one.actions)).collect();
        assert_eq!(found, [(Mode::Deprovision, Some("removal"), &["cloudformation:ListStackResources"][..])]);
        assert_eq!(Roles::of(&version(&json!([]), &json!({}))).stack_removals(), [], "no role removes anything");
    }

    #[test]
    fn what_a_module_creates_is_held_against_its_role() {
        let version = version(&allow("sqs:*", "*"), &json!({}));
        let roles = Roles::of(&version);

        let found =
            roles.creations(&"topic".parse().unwrap(), ["aws_sqs_queue", "AWS::SNS::Topic", "aws_sns_topic", "x"]);

        assert_eq!(found.len(), 1);
        assert_eq!((found[0].mode, &*found[0].actions), (Mode::Provision, &["sns:CreateTopic"][..]));
    }

    #[test]
    fn a_role_that_the_planner_would_refuse_is_found() {
        let more = json!({ "actions": [
            { "name": "check", "timeout_secs": 60, "steps": [], "role": "{{ .nuon.install.id }}-maintainance" },
            { "name": "fine", "timeout_secs": 60, "steps": [], "role": "{{.nuon.install.id}}-provision",
              "other_roles": ["maintenance", "emergency"] },
        ] });

        let found = unknown_roles(&version(&json!([]), &more));

        let found: Vec<_> = found.iter().map(|one| (one.what.as_str(), one.error.role())).collect();
        let expected = [("action `check`", "{{ .nuon.install.id }}-maintainance"), ("action `fine`", "emergency")];
        assert_eq!(found, expected);
    }
}
