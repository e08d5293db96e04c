//! Comparing terms: the words for each kind of change, and that no widening is missed.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn terms(more: &Value) -> Terms {
    let mut all = json!({ "format": 1, "app": "shop", "roles": [], "hosts": [], "actions": [] });
    all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(all).unwrap()
}

fn role(name: &str, on: bool, statements: &Value) -> Value {
    let document = json!({ "Version": "2012-10-17", "Statement": statements }).to_string();
    json!({ "role": name, "on": on, "policies": [{ "inline": { "name": "own", "document": document } }] })
}

fn summary(before: &Terms, after: &Terms) -> String {
    let diff = compare_terms(before, after);
    let widened = diff.widened.iter().map(|clause| format!("+ {clause}\n"));
    widened.chain(diff.narrowed.iter().map(|clause| format!("- {clause}\n"))).collect()
}

#[test]
fn a_boundary_that_goes_or_allows_more_is_a_widening() {
    let with = |boundary: Option<&str>| {
        let mut role = role("provision", true, &json!([{ "Effect": "Allow", "Action": "*", "Resource": "*" }]));
        if let Some(actions) = boundary {
            let statement = json!({ "Effect": "Allow", "Action": actions, "Resource": "*" });
            role["boundary"] = json!(json!({ "Version": "2012-10-17", "Statement": [statement] }).to_string());
        }
        terms(&json!({ "roles": [role] }))
    };
    let (none, narrow, wide) = (with(None), with(Some("ec2:*")), with(Some("*")));

    insta::assert_snapshot!(summary(&narrow, &none), @"+ role `provision` no longer has a permissions boundary");
    insta::assert_snapshot!(summary(&narrow, &wide), @"+ role `provision` has a boundary that allows * on *");
    insta::assert_snapshot!(summary(&none, &narrow), @"- role `provision` has a permissions boundary");
}

#[test]
fn every_kind_of_widening_is_named_and_the_way_back_is_a_narrowing() {
    let allow = |actions: &[&str]| json!([{ "Effect": "Allow", "Action": actions, "Resource": "*" }]);
    let before = terms(&json!({
        "roles": [role("provision", true, &allow(&["s3:GetObject"])), role("custom-support", false, &json!([]))],
        "hosts": ["*.amazonaws.com"],
        "actions": [{ "name": "check", "role": "maintenance" }],
        "policies": [{ "name": "tags", "type": "terraform_module", "engine": "opa", "contents": format!("sha256:{}", "a".repeat(64)) }],
    }));
    let after = terms(&json!({
        "roles": [
            role("provision", true, &allow(&["s3:GetObject", "s3:PutObject"])),
            role("custom-support", true, &json!([])),
            role("break-glass", false, &json!([])),
        ],
        "hosts": ["*.amazonaws.com", "telemetry.example"],
        "inside_hosts": ["telemetry.example"],
        "actions": [
            { "name": "check", "role": "provision", "event_modes": ["provision", "deprovision"], "other_roles": ["break-glass"], "schedules": ["0 3 * * *"], "reads": [{ "to": "secret", "name": "token" }], "cluster": true },
            { "name": "dump", "role": "maintenance", "other_roles": ["provision"], "schedules": ["*/5 * * * *"], "reads": [{ "to": "input", "name": "domain" }] },
        ],
    }));

    insta::assert_snapshot!(summary(&before, &after), @r"
    + role `provision` allows s3:PutObject on *
    + role `custom-support` is switched on unless the customer switches it off
    + role `break-glass` is new
    + host `telemetry.example` is contacted
    + host `telemetry.example` may be in a private network
    + action `check` runs as `provision`, not as `maintenance`
    + action `check` runs as `provision` when the first deploy starts it
    + action `check` runs as `deprovision` when a removal starts it
    + action `check` runs as `break-glass` when the vendor chooses this role for a run
    + action `check` runs automatically on schedule `0 3 * * *` (UTC)
    + action `check` reads secret `token`
    + action `check` gets access to a cluster
    + action `dump` is new: runs as `maintenance`, as `provision` when the vendor chooses this role for a run, runs automatically on schedule `*/5 * * * *` (UTC), reads input `domain`
    + policy `tags` of terraform_module is gone
    ");
    insta::assert_snapshot!(summary(&after, &before), @r"
    + action `check` runs as `maintenance`, not as `provision`
    - role `provision` no longer allows s3:PutObject on *
    - role `custom-support` is switched off until the customer switches it on
    - role `break-glass` is gone
    - host `telemetry.example` is no longer contacted
    - host `telemetry.example` may no longer be in a private network
    - action `check` no longer runs as `provision` when the first deploy starts it
    - action `check` no longer runs as `deprovision` when a removal starts it
    - action `check` no longer runs as `break-glass` when the vendor chooses this role for a run
    - action `check` no longer runs automatically on schedule `0 3 * * *` (UTC)
    - action `check` no longer reads secret `token`
    - action `check` no longer gets access to a cluster
    - action `dump` is gone
    - policy `tags` of terraform_module is new
    ");
}

#[test]
fn what_cannot_be_compared_counts_as_widened() {
    let with = |value: Value| terms(&json!({ "policy_inputs": { "prefix": value } }));
    let text = |text: &str| {
        terms(
            &json!({ "roles": [{ "role": "provision", "on": true, "policies": [{ "inline": { "name": "own", "document": text } }] }] }),
        )
    };
    let of_another_app = Terms { app: "other".parse().unwrap(), ..terms(&json!({})) };
    let of_another_format = Terms { format: 2, ..terms(&json!({})) };

    for (before, after) in [
        (with(json!("shop")), with(json!("*"))),
        (terms(&json!({})), with(Value::Null)),
        (text("{{ .a }}"), text("{{ .b }}")),
        (terms(&json!({})), of_another_app),
        (terms(&json!({})), of_another_format.clone()),
        (of_another_format.clone(), of_another_format),
    ] {
        let diff = compare_terms(&before, &after);

        assert_eq!(diff.widened.len(), 1, "{diff:?}");
    }
}

#[test]
fn a_long_difference_has_a_short_summary() {
    let hosts: Vec<String> = (0..50).map(|n| format!("{n:02}{}.example", "x".repeat(1000))).collect();

    let summary = compare_terms(&terms(&json!({})), &terms(&json!({ "hosts": hosts }))).summary();

    assert!(summary.chars().count() < 8 * 310 && summary.ends_with("; and 42 more"), "{summary}");
}

/// Statements over actions and resources of two letters, so that they meet often.
fn statement() -> impl Strategy<Value = Value> {
    let pattern = "[ab*?]{1,3}";
    let list = |pattern| prop::collection::vec(pattern, 1..3);
    let condition = prop::option::of(prop::sample::select(vec!["one", "two"]));
    (prop::bool::weighted(0.75), list(pattern), list(pattern), condition, prop::bool::weighted(0.1)).prop_map(
        |(allows, actions, resources, condition, all_but)| {
            let effect = if allows { "Allow" } else { "Deny" };
            let action = if all_but { "NotAction" } else { "Action" };
            let mut statement = json!({ "Effect": effect, action: actions, "Resource": resources });
            if let Some(condition) = condition {
                statement["Condition"] = json!({ "StringEquals": { "k": condition } });
            }
            statement
        },
    )
}

fn statements() -> impl Strategy<Value = Vec<Value>> {
    prop::collection::vec(statement(), 0..4)
}

fn matches(pattern: &str, text: &str) -> bool {
    match (pattern.chars().next(), text.chars().next()) {
        (None, None) => true,
        (Some('*'), _) => matches(&pattern[1..], text) || (!text.is_empty() && matches(pattern, &text[1..])),
        (Some('?'), Some(_)) => matches(&pattern[1..], &text[1..]),
        (Some(p), Some(t)) if p == t => matches(&pattern[1..], &text[1..]),
        _ => false,
    }
}

/// What IAM would say: an allowance and no denial, where a condition holds for the one value that there is.
fn allowed(statements: &[Value], action: &str, resource: &str, value: &str) -> bool {
    let any = |list: &Value, text: &str| list.as_array().unwrap().iter().any(|p| matches(p.as_str().unwrap(), text));
    let holds = |effect: &str| {
        statements.iter().filter(|one| one["Effect"] == effect).any(|one| {
            let acts = match one.get("Action") {
                Some(list) => any(list, action),
                None => !any(&one["NotAction"], action),
            };
            let when = one.get("Condition").is_none_or(|condition| condition["StringEquals"]["k"] == value);
            acts && any(&one["Resource"], resource) && when
        })
    };
    holds("Allow") && !holds("Deny")
}

fn of(statements: &[Value]) -> Terms {
    terms(&json!({ "roles": [role("provision", true, &json!(statements))] }))
}

fn is_narrower(before: &Terms, after: &Terms) -> bool {
    compare_terms(before, after).widened.is_empty()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn nothing_is_allowed_anew_that_is_not_called_a_widening(
        before in statements(), after in statements(), action in "[ab]{1,3}", resource in "[ab]{1,3}",
        value in prop::sample::select(vec!["one", "two", "three"]),
    ) {
        let anew = allowed(&after, &action, &resource, value) && !allowed(&before, &action, &resource, value);

        prop_assert!(!anew || !is_narrower(&of(&before), &of(&after)), "{before:?} {after:?}");
    }

    #[test]
    fn a_statement_that_comes_or_goes_is_never_missed(
        all in statements(), one in statement(), action in "[ab]{1,3}", resource in "[ab]{1,3}",
    ) {
        let with: Vec<Value> = all.iter().cloned().chain([one]).collect();

        for (before, after) in [(&all, &with), (&with, &all)] {
            let anew = allowed(after, &action, &resource, "one") && !allowed(before, &action, &resource, "one");
            prop_assert!(!anew || !is_narrower(&of(before), &of(after)), "{before:?} {after:?}");
        }
    }

    #[test]
    fn terms_are_not_wider_than_themselves_and_narrowing_is_transitive(
        a in statements(), b in statements(), c in statements(),
    ) {
        let (first, second, third) = (of(&a), of(&b), of(&c));

        prop_assert!(compare_terms(&first, &first).is_empty());
        if is_narrower(&first, &second) && is_narrower(&second, &third) {
            prop_assert!(is_narrower(&first, &third), "{a:?} {b:?} {c:?}");
        }
    }

    #[test]
    fn what_is_left_out_of_the_roles_narrows(all in statements(), left in 0usize..4) {
        let fewer: Vec<Value> = all.iter().enumerate()
            .filter(|(at, one)| *at != left || one["Effect"] == "Deny").map(|(_, one)| one.clone()).collect();

        prop_assert!(is_narrower(&of(&all), &of(&fewer)), "{all:?}");
    }
}

#[test]
fn another_image_for_programs_is_a_widening_in_both_directions() {
    let action = |image: &str| json!([{ "name": "check", "role": "maintenance", "image": image }]);
    let before = terms(&json!({ "actions": action("") }));
    let after =
        terms(&json!({ "actions": action("{{ .nuon.components.own.outputs.reference }}"), "tool_image": "tools" }));

    insta::assert_snapshot!(summary(&before, &after), @r"
    + action `check` runs in image `{{ .nuon.components.own.outputs.reference }}`
    + programs of jobs run in the image of component `tools`
    ");
    insta::assert_snapshot!(summary(&after, &before), @r"
    + action `check` runs in the image of all jobs
    + programs of jobs see the file system of the runner's machine
    ");
}

#[test]
fn other_steps_are_wider_for_the_order_of_their_action_alone() {
    let of = |steps: Option<&str>| {
        let mut action = json!({ "name": "check", "role": "maintenance" });
        if let Some(steps) = steps {
            action["steps"] = json!(format!("sha256:{}", steps.repeat(64)));
        }
        terms(&json!({ "actions": [action] }))
    };
    let (none, a, b) = (of(None), of(Some("a")), of(Some("b")));
    let widened = |was: &Terms, is: &Terms, action: Option<&str>| {
        let action: Option<ActionName> = action.map(|name| name.parse().unwrap());
        let commands = action.as_ref().map_or(OrderedCommands::None, OrderedCommands::OfAction);
        compare_terms_for(was, is, commands).widened.len()
    };

    let digest = |letter: &str| format!("sha256:{}", letter.repeat(64));
    let says = format!("+ action `check` executes other steps: `{}`, not `{}`\n", digest("b"), digest("a"));
    assert_eq!(summary(&a, &b), says);
    assert_eq!(summary(&a, &none), format!("+ action `check` may execute any steps, not only `{}`\n", digest("a")));
    assert_eq!(summary(&none, &a), format!("- action `check` executes the steps `{}` only\n", digest("a")));
    for (is, of_check) in [(&b, 1), (&none, 1), (&a, 0)] {
        assert_eq!(
            (widened(&a, is, Some("check")), widened(&a, is, Some("other")), widened(&a, is, None)),
            (of_check, 0, 0)
        );
    }
}

#[test]
fn another_command_of_a_probe_is_wider_for_the_check_of_its_component_alone() {
    let probe = |component: &str, word: &str| json!({ "component": component, "command": ["check", word] });
    let of = |probes: Value| terms(&json!({ "probes": probes }));
    let (none, both) = (of(json!([])), of(json!([probe("web", "-a"), probe("db", "-a")])));
    let other = of(json!([probe("web", "-b"), probe("db", "-a")]));
    let (web, db): (ComponentName, ComponentName) = ("web".parse().unwrap(), "db".parse().unwrap());
    let widened = |was: &Terms, is: &Terms, commands: OrderedCommands<'_>| {
        compare_terms_for(was, is, commands).widened.iter().map(ToString::to_string).collect::<Vec<_>>()
    };

    insta::assert_snapshot!(summary(&both, &other), @r#"
    + the health check of component `web` runs command `["check","-b"]` as `maintenance`, or as `provision` in the first deploy
    - the health check of component `web` no longer runs command `["check","-a"]` as `maintenance`, or as `provision` in the first deploy
    "#);
    let of_web = [
        "the health check of component `web` runs command `[\"check\",\"-b\"]` as `maintenance`, or as `provision` in the first \
         deploy",
    ];
    assert_eq!(widened(&both, &other, OrderedCommands::OfHealth(&web)), of_web);
    assert_eq!(widened(&none, &both, OrderedCommands::OfHealth(&db)).len(), 1);
    let backup: ActionName = "backup".parse().unwrap();
    for commands in [OrderedCommands::OfHealth(&db), OrderedCommands::OfAction(&backup), OrderedCommands::None] {
        assert!(widened(&both, &other, commands).is_empty(), "{commands:?}");
    }
    assert!(widened(&both, &none, OrderedCommands::OfHealth(&web)).is_empty());
}

#[test]
fn another_role_of_a_probe_is_wider_in_both_directions() {
    let of = |role: &str| terms(&json!({ "probes": [{ "component": "web", "command": ["check"], "role": role }] }));

    insta::assert_snapshot!(summary(&of(""), &of("custom-support")), @r#"
    + the health check of component `web` runs command `["check"]` as `custom-support`
    - the health check of component `web` no longer runs command `["check"]` as `maintenance`, or as `provision` in the first deploy
    "#);
    assert!(!is_narrower(&of("custom-support"), &of("")));
}

#[test]
fn a_new_policy_in_rego_only_refuses_and_one_of_kyverno_is_asked_about() {
    let with = |engine: &str| {
        let policy = json!({ "name": "p", "type": "kubernetes_cluster", "engine": engine, "contents": format!("sha256:{}", "a".repeat(64)) });
        terms(&json!({ "policies": [policy] }))
    };
    let without = terms(&json!({}));

    assert_eq!(summary(&without, &with("opa")), "- policy `p` of kubernetes_cluster is new\n");
    assert_eq!(
        summary(&without, &with("kyverno")),
        "+ policy `p` of kubernetes_cluster is new; it is applied to the cluster, where Kyverno enforces it\n"
    );
    assert_eq!(summary(&with("kyverno"), &without), "+ policy `p` of kubernetes_cluster is gone\n");
}

#[test]
fn a_policy_of_kyverno_beside_one_of_its_name_is_asked_about() {
    let with = |policies: &[(&str, &str)]| {
        let policy = |(engine, digit): &(&str, &str)| json!({ "name": "p", "type": "kubernetes_cluster", "engine": engine, "contents": format!("sha256:{}", digit.repeat(64)) });
        terms(&json!({ "policies": policies.iter().map(policy).collect::<Vec<_>>() }))
    };
    let asked = "+ policy `p` of kubernetes_cluster is new; it is applied to the cluster, where Kyverno enforces it\n";

    assert_eq!(summary(&with(&[("kyverno", "a")]), &with(&[("kyverno", "a"), ("kyverno", "b")])), asked);
    assert_eq!(summary(&with(&[("opa", "a")]), &with(&[("opa", "a"), ("kyverno", "a")])), asked);
    let changed = summary(&with(&[("opa", "a")]), &with(&[("kyverno", "a")]));
    assert!(changed.starts_with("+ ") && changed.contains(asked), "{changed}");
}
