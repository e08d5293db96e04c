//! The role of an order, compared with the roles that its contract has for the action and for the command of the probe.

use serde_json::{Value, json};

use super::*;

/// Returns why the runner refuses the order of `work` under a mode and a named role, where the contract has `agreed`
/// beside the name of the action or the command of the probe.
fn refused(work: &Value, agreed: &Value, mode: &str, role: Option<&str>) -> Option<String> {
    let mut terms = terms(Some(steps_of(&action())));
    for name in ["provision", "deprovision", "break-glass"] {
        terms["roles"].as_array_mut().unwrap().push(json!({ "role": name, "on": true, "policies": [] }));
    }
    for one in ["actions", "probes"] {
        terms[one][0].as_object_mut().unwrap().extend(agreed[one].as_object().cloned().unwrap_or_default());
    }
    let mut order = honest(work.clone());
    order["terms"] = order_terms(&terms);
    (order["mode"], order["role"]) = (json!(mode), json!(role));
    match beyond_terms(&serde_json::from_value(order).unwrap())? {
        Outcome::Blocked { block: Block::ContractNotAccepted, reason } => Some(reason),
        other => panic!("{other:?}"),
    }
}

/// Break-glass is open at this customer, so the role would work.
#[test]
fn an_action_does_not_run_under_a_role_that_the_contract_has_for_others() {
    let nothing = json!({});
    let of = |mode: &str, role: Option<&str>| refused(&action(), &nothing, mode, role);

    let reason = of("break_glass", Some("break-glass")).unwrap();

    assert!(
        reason.contains("runs action `check` under role `break-glass`, and its contract has `maintenance`;"),
        "{reason}"
    );
    for (mode, role) in
        [("provision", None), ("deprovision", None), ("break_glass", None), ("maintenance", Some("custom-support"))]
    {
        assert!(of(mode, role).is_some(), "{mode} {role:?}");
    }
    assert_eq!(of("maintenance", None), None);
}

#[test]
fn an_action_runs_under_the_modes_of_its_events_and_under_the_roles_that_may_be_chosen() {
    let agreed =
        json!({ "actions": { "event_modes": ["provision"], "other_roles": ["custom-support", "deprovision"] } });
    let of = |mode: &str, role: Option<&str>| refused(&action(), &agreed, mode, role);

    for (mode, role) in [
        ("maintenance", None),
        ("provision", None),
        ("deprovision", None),
        ("maintenance", Some("custom-support")),
        // The workflow of the action is a removal, and the person who started it chose this role.
        ("deprovision", Some("custom-support")),
    ] {
        assert_eq!(of(mode, role), None, "{mode} {role:?}");
    }
    let reason = of("break_glass", Some("break-glass")).unwrap();
    assert!(
        reason.contains("its contract has `maintenance`, `provision`, `custom-support`, `deprovision`;"),
        "{reason}"
    );
    assert!(of("break_glass", None).is_some());
}

#[test]
fn an_action_with_a_named_role_runs_under_this_role_in_every_mode_and_under_no_mode() {
    let agreed = json!({ "actions": { "role": "custom-support" } });
    let of = |mode: &str, role: Option<&str>| refused(&action(), &agreed, mode, role);

    for mode in ["provision", "maintenance", "deprovision"] {
        assert_eq!(of(mode, Some("custom-support")), None, "{mode}");
        assert!(of(mode, None).is_some(), "{mode}");
    }
}

#[test]
fn the_command_of_a_probe_runs_under_the_role_of_its_contract() {
    let work = work_of("Health");
    let of = |agreed: &str, mode: &str, role: Option<&str>| {
        refused(&work, &json!({ "probes": { "role": agreed } }), mode, role)
    };

    assert_eq!((of("", "maintenance", None), of("", "provision", None)), (None, None));
    assert_eq!(of("custom-support", "provision", Some("custom-support")), None);
    assert_eq!(of("deprovision", "deprovision", None), None);
    for (agreed, mode, role) in [
        ("", "deprovision", None),
        ("", "break_glass", None),
        ("", "maintenance", Some("custom-support")),
        ("", "break_glass", Some("break-glass")),
        ("custom-support", "maintenance", None),
        ("custom-support", "break_glass", Some("break-glass")),
    ] {
        let reason = of(agreed, mode, role).unwrap_or_else(|| panic!("{agreed} {mode} {role:?} is followed"));
        assert!(reason.contains("to check the health of component `web` under role `"), "{reason}");
    }
}

#[test]
fn a_check_without_a_command_runs_under_each_role_of_the_contract_and_under_no_other() {
    let mut work = work_of("Health");
    work["probes"] = json!([{ "name": "up", "type": "tcp", "url": "a.example:1" }]);
    let of = |role: &str| refused(&work, &json!({}), "maintenance", Some(role));

    assert_eq!(of("custom-support"), None);
    assert!(of("custom-admin").unwrap().contains("runs under role `custom-admin`, which is not in its contract"));
}

/// The customer's stack has the roles of the modes, and switches them on and off. The terms do not name components.
#[test]
fn a_component_is_deployed_under_each_mode_and_each_named_role_of_the_contract() {
    let work = work_of("TerraformModule");
    let of = |mode: &str, role: Option<&str>| refused(&work, &json!({}), mode, role);

    for mode in ["provision", "maintenance", "deprovision"] {
        assert_eq!((of(mode, None), of(mode, Some("custom-support"))), (None, None), "{mode}");
    }
    assert!(of("maintenance", Some("custom-admin")).is_some());
}
