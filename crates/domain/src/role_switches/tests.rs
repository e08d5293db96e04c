use serde_json::json;

use super::*;

const BASE: Timestamp = Timestamp::from_millis(1_795_250_000_000);

fn announced(roles: &[(&str, bool)]) -> BTreeMap<RoleKey, bool> {
    roles.iter().map(|(role, is_on)| (role.parse().unwrap(), *is_on)).collect()
}

fn base() -> RoleSwitches {
    RoleSwitches::first(BASE, &announced(&[("maintenance", true), ("deprovision", false)]))
}

/// Returns the events of a hello that comes this many seconds after the base.
fn events(secs: u64, roles: &[(&str, bool)]) -> Vec<String> {
    let (_, changes) = base().after(BASE.plus_secs(secs), &announced(roles)).unwrap_or_else(|| (base(), Vec::new()));
    changes.iter().map(|change| format!("{} {}", change.event(), change.role)).collect()
}

fn change(role: &str, enabled: bool) -> RoleChange {
    RoleChange { role: role.parse().unwrap(), enabled }
}

#[test]
fn each_switch_that_differs_is_an_event() {
    assert_eq!(events(600, &[("maintenance", true), ("deprovision", false)]), [""; 0]);
    assert_eq!(events(600, &[("maintenance", true), ("deprovision", true)]), ["role-enabled deprovision"]);
    assert_eq!(
        events(600, &[("maintenance", false), ("deprovision", true)]),
        ["role-enabled deprovision", "role-disabled maintenance"]
    );
}

#[test]
fn a_role_that_the_stack_does_not_have_is_off() {
    assert_eq!(events(600, &[("deprovision", false)]), ["role-disabled maintenance"]);
    assert_eq!(events(600, &[("maintenance", true), ("custom-a", true)]), ["role-enabled custom-a"]);
    assert_eq!(events(600, &[("maintenance", true), ("custom-a", false)]), [""; 0]);
}

#[test]
fn a_change_counts_a_minute_after_the_change_before_it() {
    let off = [("maintenance", false)];

    assert_eq!((events(0, &off).len(), events(59, &off).len(), events(60, &off).len()), (0, 0, 1));
    let (switched, _) = base().after(BASE.plus_secs(60), &announced(&off)).unwrap();
    assert_eq!(switched.after(BASE.plus_secs(119), &announced(&[("maintenance", true)])), None);
    let again = switched.after(BASE.plus_secs(120), &announced(&[("maintenance", true)])).unwrap();
    assert_eq!(again.1, [change("maintenance", true)]);
}

#[test]
fn an_older_hello_and_the_same_hello_again_change_nothing() {
    let off = announced(&[("maintenance", false)]);
    let (switched, _) = base().after(BASE.plus_secs(600), &off).unwrap();

    assert_eq!(switched.after(BASE.plus_secs(600), &off), None);
    assert_eq!(switched.after(BASE.plus_secs(300), &announced(&[("maintenance", true)])), None);
}

#[test]
fn a_change_starts_the_actions_of_its_event_by_index_and_name() {
    let action = |name: &str, triggers: &[&str]| {
        let triggers: Vec<_> = triggers.iter().map(|event| json!({ "on": "event", "event": event })).collect();
        json!({ "name": name, "timeout_secs": 60, "triggers": triggers, "steps": [] })
    };
    let mut last = action("a", &["role-enabled"]);
    last["indexes"] = json!([{ "trigger": { "on": "event", "event": "role-enabled" }, "index": 7 }]);
    let mut first = action("z", &["role-enabled", "role-disabled"]);
    first["indexes"] = json!([
        { "trigger": { "on": "event", "event": "role-enabled" }, "index": 2 },
        { "trigger": { "on": "event", "event": "role-disabled" }, "index": 9 },
    ]);
    let mut version = serde_json::to_value(AppVersion::empty("demo".parse().unwrap())).unwrap();
    version["actions"] = json!([last, action("b", &["role-enabled"]), action("c", &["post-provision"]), first]);
    version["named_roles"] = json!([{ "name": "support", "policies": [] }]);
    let version: AppVersion = serde_json::from_value(version).unwrap();
    let started = |role: &str, enabled: bool| -> Vec<String> {
        change(role, enabled).actions(&version).iter().map(|action| action.name.to_string()).collect()
    };

    assert_eq!(started("provision", true), ["z", "a", "b"]);
    assert_eq!(started("custom-support", false), ["z"]);
    assert_eq!(started("custom-other", true), [""; 0]);
}

#[test]
fn a_role_has_the_type_of_the_config_format() {
    let types = ["provision", "maintenance", "deprovision", "break-glass-admin", "custom-support"]
        .map(|role| change(role, true).role_type());

    assert_eq!(types, ["runner_provision", "runner_maintenance", "runner_deprovision", "breakglass", "custom"]);
}

#[test]
fn each_run_of_each_change_has_a_cause_of_its_own() {
    let actions = ["a", "b"].map(|name| {
        let action = json!({ "name": name, "timeout_secs": 60, "steps": [] });
        serde_json::from_value::<Action>(action).unwrap()
    });
    let changes = [change("provision", true), change("provision", false), change("maintenance", true)];

    let causes: BTreeSet<String> = changes
        .iter()
        .flat_map(|change| actions.iter().map(move |action| (change, action)))
        .flat_map(|(change, action)| [BASE, BASE.plus_secs(60)].map(|at| change.cause(action, at)))
        .collect();

    assert_eq!(causes.len(), 12);
    assert!(causes.contains("role-enabled provision 1795250000000 a"));
}
