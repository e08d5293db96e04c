//! Widened and narrowed roles, compared with an evaluation of what they allow.

use freehold_protocol::app_version::AppVersion;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::version;
use crate::diff::{Permission, RoleDiff, diff};

fn role(policies: &Value, boundary: Option<&Value>) -> AppVersion {
    let boundary = boundary.map(ToString::to_string);
    version(json!({ "roles": [{ "mode": "maintenance", "policies": policies, "boundary": boundary }] }))
}

fn inline(statements: &Value) -> Value {
    json!({ "inline": { "name": "p", "document": json!({ "Statement": statements }).to_string() } })
}

fn of_statements(statements: &Value) -> AppVersion {
    role(&json!([inline(statements)]), None)
}

fn shown(diffs: &[RoleDiff]) -> String {
    let mut lines = Vec::new();
    for role in diffs {
        lines.push(role.role.clone());
        lines.extend(role.widened.iter().map(|one| format!("  + {}", one.describe(true))));
        lines.extend(role.narrowed.iter().map(|one| format!("  - {}", one.describe(false))));
    }
    lines.join("\n")
}

#[test]
fn permissions_are_compared_by_what_they_let_through() {
    let from = of_statements(&json!([
        { "Sid": "A", "Effect": "Allow", "Action": "s3:Get*", "Resource": ["arn:a", "arn:b"] },
        { "Effect": "Allow", "Action": ["sqs:SendMessage"], "Resource": "*" },
        { "Effect": "Deny", "Action": "s3:DeleteBucket", "Resource": "*" },
    ]));
    let to = of_statements(&json!([
        { "Effect": "Allow", "Action": ["S3:getobject", "s3:*"], "Resource": "arn:a" },
        { "Effect": "Allow", "Action": "sqs:SendMessage", "Resource": "arn:q" },
        { "Effect": "Allow", "NotAction": "iam:*", "Resource": "arn:q" },
    ]));

    let diff = diff(&from, &to);

    insta::assert_snapshot!(shown(&diff.roles), @r#"
    mode maintenance
      + allows s3:* on arn:a
      + no longer denies s3:DeleteBucket on *
      + allows {"NotAction":"iam:*","Resource":"arn:q"}
      - no longer allows s3:Get* on arn:b
      - no longer allows sqs:SendMessage on *
    "#);
}

#[test]
fn equivalent_policies_do_not_differ() {
    let from = of_statements(&json!([
        { "Effect": "Allow", "Action": ["s3:GetObject", "s3:PutObject"], "Resource": ["arn:a", "arn:b"],
          "Condition": { "StringEquals": { "aws:RequestTag/x": "1" } } },
    ]));
    let to = role(
        &json!([
            inline(&json!({ "Effect": "Allow", "Action": "s3:putobject", "Resource": ["arn:b", "arn:a"],
                "Condition": { "StringEquals": { "aws:RequestTag/x": ["1"] } } })),
            inline(&json!({ "Effect": "Allow", "Action": "s3:GetObject", "Resource": ["arn:b", "arn:a"],
                "Condition": { "StringEquals": { "aws:RequestTag/x": ["1"] } } })),
        ]),
        None,
    );

    assert_eq!(shown(&diff(&from, &to).roles), "");
    assert_eq!(shown(&diff(&to, &from).roles), "");
}

#[test]
fn a_condition_that_goes_widens_and_one_that_changes_counts_as_both() {
    let with = |condition: &Value| {
        let statement = json!({ "Effect": "Allow", "Action": "s3:*", "Resource": "*", "Condition": condition });
        of_statements(&json!([statement]))
    };
    let (one, two, none) = (json!({ "Bool": { "a": "true" } }), json!({ "Bool": { "a": "false" } }), json!({}));

    let gone = diff(&with(&one), &with(&none));
    let changed = diff(&with(&one), &with(&two));

    insta::assert_snapshot!(shown(&gone.roles), @r"
    mode maintenance
      + allows s3:* on *
    ");
    insta::assert_snapshot!(shown(&changed.roles), @r#"
    mode maintenance
      + allows s3:* on * when {"Bool":{"a":["false"]}}
      - no longer allows s3:* on * when {"Bool":{"a":["true"]}}
    "#);
}

#[test]
fn boundaries_managed_policies_and_unreadable_texts_are_shown() {
    let allow = |action: &str| json!({ "Statement": [{ "Effect": "Allow", "Action": action, "Resource": "*" }] });
    let unread = |text: &str| json!([{ "inline": { "name": "odd", "document": text } }]);
    let managed = json!([{ "managed": "ReadOnlyAccess" }]);
    let admin = json!([{ "managed": "AdministratorAccess" }]);
    let cases = [
        (role(&managed, Some(&allow("s3:*"))), role(&admin, None)),
        (role(&managed, None), role(&managed, Some(&allow("s3:*")))),
        (role(&managed, Some(&allow("s3:Get*"))), role(&managed, Some(&allow("s3:*")))),
        (role(&unread("{{ if }}a"), None), role(&unread("{{ if }}b"), None)),
        (version(json!({})), role(&admin, None)),
        (role(&admin, None), version(json!({}))),
    ];

    let texts: Vec<String> = cases.iter().map(|(from, to)| shown(&diff(from, to).roles)).collect();

    insta::assert_snapshot!(texts.join("\n--\n"), @r"
    mode maintenance
      + managed policy AdministratorAccess
      + no longer has a permissions boundary
      - managed policy ReadOnlyAccess
    --
    mode maintenance
      - has a permissions boundary
    --
    mode maintenance
      + has a boundary that allows s3:* on *
    --
    mode maintenance
      + policy `odd` changed and cannot be compared; read it, because it may grant more
    --
    mode maintenance
      + managed policy AdministratorAccess
    --
    mode maintenance
      - managed policy AdministratorAccess
    ");
}

#[test]
fn what_an_absent_role_denies_means_nothing() {
    let denies = of_statements(&json!([{ "Effect": "Deny", "Action": "*", "Resource": "*" }]));

    let (added, removed) = (diff(&version(json!({})), &denies), diff(&denies, &version(json!({}))));

    for diff in [added, removed] {
        assert!(diff.roles[0].widened.is_empty() && diff.roles[0].narrowed.is_empty(), "{:?}", diff.roles);
    }
}

#[test]
fn a_named_role_that_is_switched_on_is_wider() {
    let named = |enabled: bool, break_glass: bool| {
        version(json!({ "named_roles": [
            { "name": "debug", "enabled": enabled, "break_glass": break_glass, "policies": [] },
        ] }))
    };

    let diff = diff(&named(false, true), &named(true, false));

    assert_eq!(diff.roles[0].widened, [Permission::SwitchedOn]);
    assert_eq!(diff.roles[0].changes[0].key, "break_glass");
}

/// What a request is about: an action, a resource, and whether the one condition holds.
type Request = (&'static str, &'static str, bool);

const ACTIONS: [&str; 3] = ["s3:Get", "s3:Put", "sqs:Get"];
const RESOURCES: [&str; 3] = ["arn:a", "arn:b", "arn:ab"];

fn statement() -> impl Strategy<Value = Value> {
    let actions = prop::sample::select(vec!["s3:Get", "s3:Put", "sqs:Get", "s3:*", "*:Get", "*", "s?:*"]);
    let resources = prop::sample::select(vec!["arn:a", "arn:b", "arn:a*", "arn:?", "*"]);
    let keys = prop::sample::select(vec![("Action", "Resource"), ("NotAction", "Resource"), ("Action", "NotResource")]);
    let lists = (prop::collection::vec(actions, 1..3), prop::collection::vec(resources, 1..3));
    (any::<bool>(), keys, lists, any::<bool>()).prop_map(|(allow, (action, resource), (actions, resources), when)| {
        let effect = if allow { "Allow" } else { "Deny" };
        let condition = if when { json!({ "Bool": { "x": "true" } }) } else { json!({}) };
        json!({ "Effect": effect, action: actions, resource: resources, "Condition": condition })
    })
}

fn allowed(statements: &[Value], (action, resource, holds): Request) -> bool {
    let hit = |statement: &Value, key: &str, text: &str| {
        let any = |list: &Value| list.as_array().unwrap().iter().any(|one| matches(one.as_str().unwrap(), text));
        match statement.get(key) {
            Some(list) => any(list),
            None => !any(&statement[format!("Not{key}")]),
        }
    };
    let applies = |statement: &&Value| {
        let met = holds || statement["Condition"].as_object().unwrap().is_empty();
        met && hit(statement, "Action", action) && hit(statement, "Resource", resource)
    };
    let effects: Vec<&Value> = statements.iter().filter(applies).map(|statement| &statement["Effect"]).collect();
    effects.iter().all(|effect| **effect == "Allow") && !effects.is_empty()
}

fn matches(pattern: &str, text: &str) -> bool {
    match (pattern.chars().next(), text.chars().next()) {
        (None, None) => true,
        (Some('*'), _) => matches(&pattern[1..], text) || (!text.is_empty() && matches(pattern, &text[1..])),
        (Some('?'), Some(_)) => matches(&pattern[1..], &text[1..]),
        (Some(p), Some(t)) => p == t && matches(&pattern[1..], &text[1..]),
        _ => false,
    }
}

proptest! {
    #[test]
    fn a_role_that_allows_more_than_before_is_never_missed(
        from in prop::collection::vec(statement(), 0..4), to in prop::collection::vec(statement(), 0..4),
    ) {
        let diff = diff(&of_statements(&json!(from)), &of_statements(&json!(to)));

        let (widened, narrowed) =
            diff.roles.first().map_or((false, false), |role| (!role.widened.is_empty(), !role.narrowed.is_empty()));
        for action in ACTIONS {
            for resource in RESOURCES {
                for holds in [false, true] {
                    let request = (action, resource, holds);
                    let (before, after) = (allowed(&from, request), allowed(&to, request));
                    prop_assert!(widened || before || !after, "{:?} is new", request);
                    prop_assert!(narrowed || after || !before, "{:?} is gone", request);
                }
            }
        }
    }

    #[test]
    fn widened_there_is_narrowed_back(
        from in prop::collection::vec(statement(), 0..4), to in prop::collection::vec(statement(), 0..4),
    ) {
        let (from, to) = (of_statements(&json!(from)), of_statements(&json!(to)));

        let (there, back) = (diff(&from, &to).roles, diff(&to, &from).roles);

        let sides = |roles: &[RoleDiff]| roles.first().map(|role| (role.widened.clone(), role.narrowed.clone()));
        prop_assert_eq!(sides(&there), sides(&back).map(|(widened, narrowed)| (narrowed, widened)));
    }
}
