//! Chooses the role of a job from the roles that the caller and the app version name.

use freehold_protocol::RoleKey;
use freehold_protocol::app_version::{Action, AppVersion, Component, Sandbox};
use freehold_protocol::order::Mode;
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
