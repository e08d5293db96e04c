//! The commands that an order runs as probes, compared with those of its contract.

use serde_json::{Value, json};

use super::*;

/// The terms have a role for an action, and none for a command. A person may choose the role of a deploy, and so that of its checks.
#[test]
fn a_command_may_run_under_each_role_of_the_contract_and_under_no_other() {
    let under = |role: Option<&str>| {
        let mut order: Order = serde_json::from_value(honest(work_of("CheckHealth"))).unwrap();
        order.role = role.map(|role| role.parse().unwrap());
        beyond_terms(&order)
    };

    assert_eq!((under(Some("custom-support")), under(None)), (None, None));
    let Some(Outcome::Blocked { reason, .. }) = under(Some("custom-admin")) else { panic!("followed") };
    assert!(reason.contains("runs under role `custom-admin`, which is not in its contract"), "{reason}");
}

#[test]
fn without_the_document_of_its_terms_a_health_check_runs_no_command() {
    let refused = |work: &Value| {
        let mut order: Order = serde_json::from_value(honest(work.clone())).unwrap();
        (order.role, order.tool_image) = (None, None);
        order.terms.as_mut().unwrap().document = None;
        beyond_terms(&order)
    };
    let mut asks_an_address = work_of("CheckHealth");
    asks_an_address["probes"] = json!([{ "name": "up", "type": "tcp", "url": "a.example:1" }]);

    let Some(Outcome::Blocked { reason, .. }) = refused(&work_of("CheckHealth")) else { panic!("followed") };
    assert!(reason.contains("runs a command to check the health of component `web`, and does not contain"), "{reason}");
    assert_eq!(refused(&asks_an_address), None);
}
