//! The commands that an order runs as probes, compared with those of its contract.

use serde_json::{Value, json};

use super::*;

#[test]
fn without_the_document_of_its_terms_a_health_check_runs_no_command() {
    let refused = |work: &Value| {
        let mut order: Order = serde_json::from_value(honest(work.clone())).unwrap();
        (order.role, order.tool_image) = (None, None);
        order.terms.as_mut().unwrap().document = None;
        beyond_terms(&order)
    };
    let mut asks_an_address = work_of("Health");
    asks_an_address["probes"] = json!([{ "name": "up", "type": "tcp", "url": "a.example:1" }]);

    let Some(Outcome::Blocked { reason, .. }) = refused(&work_of("Health")) else { panic!("followed") };
    assert!(reason.contains("runs a command to check the health of component `web`, and does not contain"), "{reason}");
    assert_eq!(refused(&asks_an_address), None);
}
