//! Component toggles: the components that an install leaves out, and the check of a change.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::ComponentName;
use freehold_protocol::app_version::{AppVersion, Component};

use crate::suggestion::Known;

/// A component that is on and depends on a component that is switched off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependent {
    pub component: ComponentName,
    pub off: ComponentName,
    /// Whether an install may leave the dependent out too.
    pub is_toggleable: bool,
}

impl std::fmt::Display for Dependent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { component, off, is_toggleable } = self;
        write!(f, "component `{component}` needs component `{off}`, which is switched off in this install; ")?;
        if *is_toggleable {
            write!(f, "switch `{off}` on with `freehold install toggles`, or switch `{component}` off too")
        } else {
            write!(f, "switch `{off}` on with `freehold install toggles`, because `{component}` is not `toggleable`")
        }
    }
}

/// The reason why the toggles of an install cannot be changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToggleError {
    #[error("app `{app}` has no component `{component}`; {}", .known.way_out("components"))]
    Unknown { app: String, component: ComponentName, known: Known },
    #[error(
        "component `{0}` cannot be switched: every install has it, because its config does not have `toggleable = true`; \
         to let installs leave it out, add this line and run `freehold app sync`"
    )]
    Fixed(ComponentName),
    #[error("{0}")]
    Needed(Dependent),
}

/// Returns the components of `version` that an install with these choices leaves out. The choice of a component that is
/// not toggleable has no effect: another version of the app may have made it toggleable.
pub fn off(version: &AppVersion, choices: &BTreeMap<ComponentName, bool>) -> BTreeSet<ComponentName> {
    let components = version.components.iter().filter(|component| !is_on(component, choices));
    components.map(|component| component.name.clone()).collect()
}

/// Returns whether an install with these choices has the component.
pub fn is_on(component: &Component, choices: &BTreeMap<ComponentName, bool>) -> bool {
    let default = component.settings.toggle;
    default.is_none_or(|default| choices.get(&component.name).copied().unwrap_or(default))
}

/// Returns the first component among `parts` that depends on a component in `off`.
pub fn dependent_on_off<'a>(
    parts: impl IntoIterator<Item = &'a Component>,
    off: &BTreeSet<ComponentName>,
) -> Option<Dependent> {
    parts.into_iter().find_map(|part| {
        let missing = part.dependencies.intersection(off).next()?;
        let is_toggleable = part.settings.toggle.is_some();
        Some(Dependent { component: part.name.clone(), off: missing.clone(), is_toggleable })
    })
}

/// Returns the choices after `changes`. `None` removes a choice, so that the default of the config applies.
///
/// # Errors
/// [`ToggleError`] for an unknown component, for a component that every install has, and when a component that stays on
/// depends on a component that is off.
pub fn changed(
    version: &AppVersion,
    choices: &BTreeMap<ComponentName, bool>,
    changes: &BTreeMap<ComponentName, Option<bool>>,
) -> Result<BTreeMap<ComponentName, bool>, ToggleError> {
    let mut next = choices.clone();
    for (name, choice) in changes {
        let component = version.component(name).ok_or_else(|| {
            let known = Known::instead_of(name.as_str(), version.components.iter().map(|one| one.name.as_str()));
            ToggleError::Unknown { app: version.app.to_string(), component: name.clone(), known }
        })?;
        if component.settings.toggle.is_none() {
            return Err(ToggleError::Fixed(name.clone()));
        }
        match choice {
            Some(on) => next.insert(name.clone(), *on),
            None => next.remove(name),
        };
    }
    let off = off(version, &next);
    let on = version.components.iter().filter(|component| !off.contains(&component.name));
    dependent_on_off(on, &off).map_or(Ok(next), |found| Err(ToggleError::Needed(found)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn component(name: &str, dependencies: &[&str], toggle: Option<bool>) -> Value {
        json!({
            "name": name, "dependencies": dependencies, "deploy_timeout_secs": 600,
            "source": { "from": "version" }, "spec": { "kind": "container_image" },
            "settings": { "toggle": toggle },
        })
    }

    fn version() -> AppVersion {
        let components = [
            component("api", &["db"], None),
            component("cache", &[], Some(false)),
            component("db", &[], Some(true)),
            component("search", &["cache"], Some(false)),
        ];
        serde_json::from_value(json!({ "format": 1, "app": "demo", "components": components })).unwrap()
    }

    fn change(choices: &Value, changes: &Value) -> Result<Value, String> {
        let (choices, changes) =
            (serde_json::from_value(choices.clone()).unwrap(), serde_json::from_value(changes.clone()).unwrap());
        changed(&version(), &choices, &changes).map(|next| json!(next)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_component_is_on_unless_the_config_or_the_vendor_says_no() {
        let names = |choices: Value| -> Vec<String> {
            off(&version(), &serde_json::from_value(choices).unwrap()).into_iter().map(String::from).collect()
        };

        assert_eq!(names(json!({})), ["cache", "search"]);
        assert_eq!(names(json!({ "cache": true, "db": false, "api": false })), ["db", "search"]);
    }

    #[test]
    fn a_choice_replaces_the_default_and_null_brings_it_back() {
        assert_eq!(change(&json!({}), &json!({ "cache": true })), Ok(json!({ "cache": true })));
        assert_eq!(change(&json!({ "cache": true, "db": true }), &json!({ "cache": null })), Ok(json!({ "db": true })));
    }

    #[test]
    fn what_cannot_be_switched_is_named_with_the_way_out() {
        let refused = |changes: Value| change(&json!({}), &changes).unwrap_err();

        assert_eq!(refused(json!({ "cach": true })), "app `demo` has no component `cach`; did you mean `cache`?");
        assert_eq!(
            refused(json!({ "api": false })),
            "component `api` cannot be switched: every install has it, because its config does not have `toggleable = true`; \
             to let installs leave it out, add this line and run `freehold app sync`"
        );
        assert_eq!(
            refused(json!({ "db": false })),
            "component `api` needs component `db`, which is switched off in this install; switch `db` on with \
             `freehold install toggles`, because `api` is not `toggleable`"
        );
        assert_eq!(
            refused(json!({ "search": true })),
            "component `search` needs component `cache`, which is switched off in this install; switch `cache` on with \
             `freehold install toggles`, or switch `search` off too"
        );
    }

    #[test]
    fn dependents_are_switched_together_with_what_they_need() {
        let both = json!({ "cache": true, "search": true });

        assert_eq!(change(&json!({}), &both), Ok(both.clone()));
        assert_eq!(change(&both, &json!({ "cache": false, "search": null })), Ok(json!({ "cache": false })));
        assert!(change(&both, &json!({ "cache": false })).is_err());
    }
}
