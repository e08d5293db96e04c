//! Work on the sandbox that names a component.

use serde_json::json;

use super::*;

/// The Pulumi state has the name of the component, and the group of an order keeps two jobs from changing one state.
#[test]
fn work_on_the_sandbox_names_no_component() {
    let refused = |kind: &str, component: &str| {
        let work = json!({ "kind": kind, "component": component, "artifact": artifact(), "terraform_version": "1" });
        let orders = [work.clone(), json!({ "kind": "remove", "what": work })];
        orders.map(|work| refusal(&honest(work)))
    };

    for kind in ["pulumi_sandbox", "sandbox"] {
        assert_eq!(refused(kind, "sandbox"), [None, None]);
        for reason in refused(kind, "db") {
            let reason = reason.unwrap_or_else(|| panic!("{kind} is followed"));
            assert!(reason.contains("works on the sandbox under the name of component `db`"), "{reason}");
        }
    }
}
