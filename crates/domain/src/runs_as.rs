//! Chooses the role of a job from the roles that the caller and the app version name.

use std::collections::BTreeSet;

use freehold_protocol::app_version::{Action, AppVersion, Component, Sandbox, StepKind};
use freehold_protocol::order::Mode;
use freehold_protocol::{ActionName, RoleKey};
use serde::{Deserialize, Serialize};

use crate::suggestion::{hint, nearest};

/// The role of one job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunsAs {
    pub mode: Mode,
    /// The named role under which the job runs instead of the role of its mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<RoleKey>,
}

impl RunsAs {
    /// Returns the name of the role in a contract (`RoleTerms::role`): that of the mode, or the key of the named role.
    pub fn in_terms(&self) -> &str {
        self.role.as_ref().map_or_else(|| self.mode.as_str(), RoleKey::as_str)
    }
}

/// The error for a role that the app does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("app `{app}` has no role `{role}`; {}{}", list_roles(.known), hint(.nearest))]
pub struct UnknownRole {
    app: String,
    role: String,
    nearest: Option<String>,
    known: Vec<String>,
}

fn list_roles(known: &[String]) -> String {
    match known {
        [] => "define the role in the app config, because the app has no roles".to_owned(),
        known => format!("choose one of its roles: `{}`", known.join("`, `")),
    }
}

/// The error for a role under which the contract does not let the action run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "action `{action}` may not run under role `{role}`, because its contract has only `{}`; add the role to `other_roles` \
     of the action, sync and deploy the app, and let the customer accept the new contract", .agreed.join("`, `")
)]
pub struct RoleNotAgreed {
    action: ActionName,
    role: String,
    agreed: Vec<String>,
}

impl UnknownRole {
    /// Returns the name of the role that the app does not have.
    pub fn role(&self) -> &str {
        &self.role
    }
}

/// An operation that a job performs under a role.
#[derive(Debug, Clone, Copy)]
pub enum Operation<'a> {
    Deploy(&'a Component),
    Trigger(&'a Action),
    /// Makes the sandbox for the first time.
    Provision(&'a Sandbox),
    /// Changes the sandbox.
    Reprovision(&'a Sandbox),
    /// Removes a component.
    Teardown(&'a Component),
    /// Removes the sandbox.
    Deprovision(&'a Sandbox),
}

impl<'a> Operation<'a> {
    /// Returns the roles that the app version names for the operation, in order of precedence: an action's break-glass
    /// role, the component's or action's own role, the first matching rule of the matrix.
    fn roles(self, version: &'a AppVersion) -> impl Iterator<Item = &'a str> {
        let (kind, name, operation) = match self {
            Self::Deploy(component) => ("component", component.name.as_str(), "deploy"),
            Self::Trigger(action) => ("action", action.name.as_str(), "trigger"),
            Self::Provision(_) => ("sandbox", "", "provision"),
            Self::Reprovision(_) => ("sandbox", "", "reprovision"),
            Self::Teardown(component) => ("component", component.name.as_str(), "teardown"),
            Self::Deprovision(_) => ("sandbox", "", "deprovision"),
        };
        let own = match self {
            Self::Deploy(component) | Self::Teardown(component) => {
                [component.settings.operation_roles.get(operation).map(String::as_str), None]
            }
            Self::Trigger(action) => [Some(action.break_glass_role.as_str()), Some(action.role.as_str())],
            Self::Provision(sandbox) | Self::Reprovision(sandbox) | Self::Deprovision(sandbox) => {
                [sandbox.operation_roles.get(operation).map(String::as_str), None]
            }
        };
        let fits = move |principal: &str| match principal.split_once(':') {
            Some((of_kind, of)) => of_kind == kind && (of == "*" || of == name),
            None => principal == kind && name.is_empty(),
        };
        let rule = version.operation_roles.iter().find(|rule| rule.operation == operation && fits(&rule.principal));
        own.into_iter().flatten().filter(|role| !role.is_empty()).chain(rule.map(|rule| rule.role.as_str()))
    }
}

/// Returns the role of a job: the role that the caller asked for, else the role that the app version names. Returns
/// `None` if the job runs under the mode's own role.
///
/// # Errors
/// [`UnknownRole`] when the app has no role of the name that was chosen.
pub fn runs_as(
    version: &AppVersion,
    operation: Operation<'_>,
    asked: Option<&str>,
    mode: Mode,
) -> Result<Option<RunsAs>, UnknownRole> {
    let Some(name) = asked.or_else(|| operation.roles(version).next()) else { return Ok(None) };
    find_role(version, name, mode).map(Some)
}

/// Returns the role of an action that an event of a deploy or of a teardown starts. The role that the caller asked for
/// is for the whole workflow, so it counts for the action only if the contract lets the action run under it.
///
/// # Errors
/// [`UnknownRole`].
pub fn runs_as_in_event(
    version: &AppVersion,
    action: &Action,
    asked: Option<&str>,
    mode: Mode,
) -> Result<Option<RunsAs>, UnknownRole> {
    let asked = match asked {
        Some(name) if !may_choose(version, action, &find_role(version, name, mode)?) => None,
        Some(_) | None => asked,
    };
    runs_as(version, Operation::Trigger(action), asked, mode)
}

/// Refuses a role under which the contract does not let the action run when a person or a runbook starts it. A role
/// that the app does not have is not refused here.
///
/// # Errors
/// [`RoleNotAgreed`].
pub fn check_choice(version: &AppVersion, action: &Action, name: &str) -> Result<(), RoleNotAgreed> {
    let Some(chosen) = called(version, name, Mode::Maintenance).filter(|chosen| !may_choose(version, action, chosen))
    else {
        return Ok(());
    };
    let agreed = own_role(version, action).into_iter().chain(other_roles(version, action)).collect();
    Err(RoleNotAgreed { action: action.name.clone(), role: chosen.in_terms().to_owned(), agreed })
}

/// Returns the roles, besides its own, under which a person or a runbook may start the action, as a contract writes
/// them: those in `other_roles` of its config, and those of the runbook steps that run it. A role that the app does not
/// have is left out.
pub fn other_roles(version: &AppVersion, action: &Action) -> BTreeSet<String> {
    let steps = version.runbooks.iter().flat_map(|runbook| &runbook.steps);
    let runs_it = |does: &StepKind| matches!(does, StepKind::Action { action: name } if *name == action.name);
    let of_steps = steps.filter(|step| runs_it(&step.does) && !step.role.is_empty()).map(|step| &step.role);
    let named = action.other_roles.iter().chain(of_steps);
    let own = own_role(version, action);
    let found = named.filter_map(|name| called(version, name, Mode::Maintenance));
    found.map(|role| role.in_terms().to_owned()).filter(|role| own.as_ref() != Some(role)).collect()
}

/// Returns whether a person or a runbook may start the action under `chosen`.
fn may_choose(version: &AppVersion, action: &Action, chosen: &RunsAs) -> bool {
    let chosen = chosen.in_terms();
    own_role(version, action).is_some_and(|own| own == chosen) || other_roles(version, action).contains(chosen)
}

/// Returns the role of an action that a person starts and for which they choose no role, as a contract writes it;
/// `None` if the app does not have the role that the action names.
fn own_role(version: &AppVersion, action: &Action) -> Option<String> {
    let own = runs_as(version, Operation::Trigger(action), None, Mode::Maintenance).ok()?;
    Some(own.map_or_else(|| Mode::Maintenance.as_str().to_owned(), |own| own.in_terms().to_owned()))
}

/// Refuses a role that the app does not have.
///
/// # Errors
/// [`UnknownRole`].
pub fn check_role(version: &AppVersion, name: &str) -> Result<(), UnknownRole> {
    find_role(version, name, Mode::Maintenance).map(drop)
}

fn find_role(version: &AppVersion, name: &str, mode: Mode) -> Result<RunsAs, UnknownRole> {
    called(version, name, mode).ok_or_else(|| {
        let known = known(version);
        let (app, role, nearest) = (version.app.to_string(), name.to_owned(), meant(name, &known));
        UnknownRole { app, role, nearest, known }
    })
}

/// Returns the role key that was probably meant by `name`: a key with a similar spelling, or the key of the role that
/// has this name in IAM, such as `break-glass-admin` for `globex-admin`.
fn meant(name: &str, known: &[String]) -> Option<String> {
    let of_iam = |key: &&String| {
        let own = key.strip_prefix("break-glass-").or_else(|| key.strip_prefix("custom-"));
        own.is_some_and(|own| name == own || name.strip_suffix(own).is_some_and(|before| before.ends_with('-')))
    };
    nearest(name, known.iter().map(String::as_str)).or_else(|| known.iter().find(of_iam).cloned())
}

/// Returns the role called `name`: the name in the config, the role's key, or the name of a mode.
fn called(version: &AppVersion, name: &str, mode: Mode) -> Option<RunsAs> {
    let wanted = plain(name);
    let of_mode = version.roles.iter().find(|role| role.mode.as_str() == wanted || plain(&role.name) == wanted);
    if let Some(role) = of_mode {
        return Some(RunsAs { mode: role.mode, role: None });
    }
    let named = version.named_roles.iter().find(|role| plain(&role.name) == wanted || role.key().as_str() == wanted)?;
    let mode = if named.break_glass { Mode::BreakGlass } else { mode };
    Some(RunsAs { mode, role: Some(named.key()) })
}

fn known(version: &AppVersion) -> Vec<String> {
    let modes = version.roles.iter().map(|role| role.mode.as_str().to_owned());
    modes.chain(version.named_roles.iter().map(|role| role.key().to_string())).collect()
}

/// Returns a name without its white space: the same template can be written with more or less white space.
fn plain(name: &str) -> String {
    name.split_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn version(action: &Value, rules: &Value) -> AppVersion {
        let mut complete = json!({ "name": "restart", "timeout_secs": 60, "steps": [] });
        complete.as_object_mut().unwrap().extend(action.as_object().unwrap().clone());
        serde_json::from_value(json!({
            "format": 1,
            "app": "shop",
            "actions": [complete],
            "roles": [{ "mode": "provision", "name": "{{.nuon.install.id}}-provision", "policies": [] }],
            "named_roles": [
                { "name": "{{ .nuon.install.id }}-support", "enabled": true, "policies": [] },
                { "name": "emergency", "break_glass": true, "policies": [] },
            ],
            "operation_roles": rules,
        }))
        .unwrap()
    }

    fn found(action: Value, rules: Value, asked: Option<&str>) -> Result<String, String> {
        let version = version(&action, &rules);
        let role = runs_as(&version, Operation::Trigger(&version.actions[0]), asked, Mode::Maintenance);
        let lines =
            |role: RunsAs| format!("{} {}", role.mode.as_str(), role.role.map(String::from).unwrap_or_default());
        role.map(|role| role.map_or_else(String::new, lines)).map_err(|error| error.to_string())
    }

    #[test]
    fn whoever_starts_it_comes_before_break_glass_the_action_itself_and_the_matrix() {
        let rules = json!([
            { "principal": "component:*", "operation": "deploy", "role": "unknown" },
            { "principal": "action:*", "operation": "trigger", "role": "{{.nuon.install.id}}-provision" },
            { "principal": "action:restart", "operation": "trigger", "role": "unknown" },
        ]);
        let own = json!({ "role": "{{.nuon.install.id}}-support" });
        let both = json!({ "role": "{{.nuon.install.id}}-support", "break_glass_role": "emergency" });

        assert_eq!(found(json!({}), json!([]), None), Ok(String::new()));
        assert_eq!(found(json!({}), rules.clone(), None), Ok("provision ".into()));
        assert_eq!(found(own, rules.clone(), None), Ok("maintenance custom-support".into()));
        assert_eq!(found(both.clone(), rules.clone(), None), Ok("break_glass break-glass-emergency".into()));
        assert_eq!(found(both.clone(), rules.clone(), Some("provision")), Ok("provision ".into()));
        assert_eq!(found(both, rules, Some("custom-support")), Ok("maintenance custom-support".into()));
    }

    #[test]
    fn a_person_may_choose_the_roles_that_the_action_or_a_step_of_a_runbook_lists() {
        let choices = |action: Value, runbooks: Value| {
            let mut version = version(&action, &json!([]));
            version.runbooks = serde_json::from_value(runbooks).unwrap();
            let action = &version.actions[0];
            let refused = ["maintenance", "provision", "custom-support", "emergency", "nobody"]
                .map(|name| check_choice(&version, action, name).is_err());
            (Vec::from_iter(other_roles(&version, action)), refused)
        };
        let listed = json!({ "other_roles": ["{{.nuon.install.id}}-support", "emergency", "gone"] });
        let step = |name: &str| {
            let step = json!({ "does": { "type": "action", "action": name }, "role": "emergency" });
            json!([{ "name": "fix", "steps": [step] }])
        };
        let own = json!({ "role": "provision", "other_roles": ["provision"] });

        // The app of these tests has no role for mode `maintenance`, so nobody can name it.
        assert_eq!(choices(json!({}), json!([])), (vec![], [false, true, true, true, false]));
        assert_eq!(choices(json!({}), step("other")), (vec![], [false, true, true, true, false]));
        assert_eq!(
            choices(json!({}), step("restart")),
            (vec!["break-glass-emergency".to_owned()], [false, true, true, false, false])
        );
        let two = ["break-glass-emergency", "custom-support"].map(str::to_owned).to_vec();
        assert_eq!(choices(listed, json!([])), (two, [false, true, false, false, false]));
        assert_eq!(choices(own, json!([])), (vec![], [false, false, true, true, false]));
    }

    #[test]
    fn a_choice_beyond_the_contract_is_refused_with_what_may_be_chosen() {
        let version = version(&json!({ "other_roles": ["emergency"] }), &json!([]));

        let error = check_choice(&version, &version.actions[0], "custom-support").unwrap_err().to_string();

        assert_eq!(
            error,
            "action `restart` may not run under role `custom-support`, because its contract has only `maintenance`, \
             `break-glass-emergency`; add the role to `other_roles` of the action, sync and deploy the app, and let the \
             customer accept the new contract"
        );
    }

    #[test]
    fn the_role_of_a_whole_workflow_counts_for_an_action_that_lists_it_and_for_no_other() {
        let under = |action: Value, asked: Option<&str>| {
            let version = version(&action, &json!([]));
            let found = runs_as_in_event(&version, &version.actions[0], asked, Mode::Provision);
            found.map(|role| role.map(|role| role.in_terms().to_owned())).map_err(|error| error.role().to_owned())
        };
        let listed = || json!({ "other_roles": ["emergency"] });

        assert_eq!(under(listed(), Some("emergency")), Ok(Some("break-glass-emergency".to_owned())));
        assert_eq!(under(listed(), Some("custom-support")), Ok(None));
        assert_eq!(under(json!({ "role": "provision" }), Some("emergency")), Ok(Some("provision".to_owned())));
        assert_eq!(under(listed(), Some("emergancy")), Err("emergancy".to_owned()));
        assert_eq!(under(listed(), None), Ok(None));
    }

    #[test]
    fn a_name_that_no_role_has_is_refused_with_the_nearest() {
        let error = found(json!({}), json!([]), Some("custom-suport")).unwrap_err();

        assert_eq!(
            error,
            "app `shop` has no role `custom-suport`; choose one of its roles: `provision`, `custom-support`, `break-glass-emergency`; \
             did you mean `custom-support`?"
        );
    }

    #[test]
    fn the_name_that_a_role_has_in_iam_leads_to_its_key() {
        for name in ["globex-emergency", "emergenci", "emergency-of-globex"] {
            let error = found(json!({}), json!([]), Some(name)).unwrap_err();

            assert_eq!(error.contains("did you mean `break-glass-emergency`?"), name == "globex-emergency", "{error}");
            assert!(
                error.contains("choose one of its roles: `provision`, `custom-support`, `break-glass-emergency`"),
                "{error}"
            );
        }
    }
}
