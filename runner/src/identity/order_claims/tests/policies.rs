//! The policies of an order, compared with those of its contract.

use freehold_protocol::policy::OrderPolicy;
use serde_json::{Value, json};

use super::*;

#[test]
fn an_order_has_exactly_the_policies_of_its_terms_that_guard_its_work() {
    let text = "package nuon";
    let policy =
        |kind: &str| json!({ "name": "p", "type": kind, "engine": "opa", "contents": Digest::of(text.as_bytes()) });
    let carried = json!([OrderPolicy::new("p", PolicyEngine::Opa, text).unwrap()]);
    let refused = |kind: &str, policies: &Value| {
        let mut terms = terms(Some(steps_of(&action())));
        terms["policies"] = json!([policy(kind)]);
        let mut order = honest(work_of("TerraformModule"));
        (order["terms"], order["policies"]) = (order_terms(&terms), policies.clone());
        match beyond_terms(&serde_json::from_value(order).unwrap())? {
            Outcome::Blocked { reason, .. } => Some(reason),
            other => panic!("{other:?}"),
        }
    };

    assert_eq!(refused("terraform_module", &carried), None);
    assert_eq!(refused("helm_chart", &json!([])), None);
    assert!(refused("terraform_module", &json!([])).unwrap().contains("leaves out policy `p` of its contract"));
    assert!(refused("helm_chart", &carried).unwrap().contains("has policy `p`, which its contract does not have"));
    // Nobody asks a policy of Kyverno about a plan.
    let relabelled = json!([OrderPolicy::new("p", PolicyEngine::Kyverno, text).unwrap()]);
    assert!(refused("terraform_module", &relabelled).unwrap().contains("leaves out policy `p` of its contract"));
}

#[test]
fn a_policy_of_kyverno_comes_with_its_contract_and_with_all_others() {
    let policy = |name: &str| OrderPolicy::new(name, PolicyEngine::Kyverno, name).unwrap();
    let terms_of = |names: &[&str]| {
        let mut terms = terms(Some(steps_of(&action())));
        let policies = names.iter().map(|name| {
            json!({ "name": name, "type": "kubernetes_cluster", "engine": "kyverno", "contents": policy(name).contents })
        });
        terms["policies"] = policies.collect();
        terms
    };
    let refused = |work: &str, agreed: &[&str], carried: &[&str]| -> Option<String> {
        let mut order = honest(work_of(work));
        order["terms"] = order_terms(&terms_of(agreed));
        order["policies"] = carried.iter().map(|name| json!(policy(name))).collect();
        match beyond_terms(&serde_json::from_value(order).unwrap())? {
            Outcome::Blocked { reason, .. } => Some(reason),
            other => panic!("{other:?}"),
        }
    };
    let mut bare: Order = serde_json::from_value(honest(work_of("HelmChart"))).unwrap();
    (bare.role, bare.tool_image) = (None, None);
    bare.policies = vec![policy("a")];
    bare.terms.as_mut().unwrap().document = None;

    for work in ["HelmChart", "KubernetesManifest", "KubernetesJob"] {
        assert_eq!(refused(work, &["a", "b"], &["a", "b"]), None, "{work}");
        // As the control plane of the release before sends it.
        assert_eq!(refused(work, &["a", "b"], &[]), None, "{work}");
        assert!(
            refused(work, &["a", "b"], &["a"]).unwrap().contains("leaves out policy `b` of its contract"),
            "{work}"
        );
        assert!(
            refused(work, &["a"], &["a", "b"]).unwrap().contains("has policy `b`, which its contract does not have")
        );
    }
    assert!(
        refused("TerraformModule", &["a"], &["a"]).unwrap().contains("has policy `a`, which its contract does not")
    );
    let Some(Outcome::Blocked { reason, .. }) = beyond_terms(&bare) else { panic!("{bare:?}") };
    assert!(reason.contains("puts policy `a` into a cluster, and does not contain its contract"), "{reason}");
}
