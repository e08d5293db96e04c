//! Tests of the denials of a boundary, with a small evaluation of IAM policies.

use proptest::prelude::*;
use wildmatch::WildMatch;

use super::*;

fn own() -> Own {
    own_in("eu-west-1")
}

fn own_in(region: &str) -> Own {
    let (tenant, install) = ("acme".parse().unwrap(), "globex".parse().unwrap());
    Own::of(&tenant, &install, &"222222222222".parse().unwrap(), region)
}

fn denied_by(statements: Value) -> Vec<Value> {
    denials(&json!({ "Version": "2012-10-17", "Statement": statements }), &own()).unwrap()
}

fn refusal(statements: Value) -> String {
    denials(&json!({ "Statement": statements }), &own()).unwrap_err()
}

/// A call with the values of its condition keys.
#[derive(Debug, Clone)]
struct Call {
    action: &'static str,
    resource: &'static str,
    keys: Vec<(&'static str, &'static str)>,
}

/// Returns whether a statement is about a call (IAM policy evaluation logic), for the operators of these tests.
fn matches(statement: &Value, call: &Call) -> bool {
    let any = |element: &str, text: &str| {
        let patterns = statements::texts(&statement[element]).unwrap_or_default();
        patterns.iter().any(|pattern| WildMatch::new(&pattern.to_lowercase()).matches(&text.to_lowercase()))
    };
    let is_of = |plain: &str, but: &str, text: &str| match statement.get(but) {
        Some(_) => !any(but, text),
        None => any(plain, text),
    };
    let condition = statement["Condition"].as_object().into_iter().flatten();
    let mut tests =
        condition.flat_map(|(operator, tests)| tests.as_object().unwrap().iter().map(move |test| (operator, test)));
    is_of("Action", "NotAction", call.action)
        && is_of("Resource", "NotResource", call.resource)
        && tests.all(|(operator, (key, wanted))| {
            let value = call.keys.iter().find(|(name, _)| name == key).map(|(_, value)| *value);
            let wanted = statements::texts(wanted).unwrap();
            match operator.as_str() {
                "StringEquals" => value.is_some_and(|value| wanted.iter().any(|one| one == value)),
                "StringNotEquals" => value.is_none_or(|value| wanted.iter().all(|one| one != value)),
                "Bool" => value == Some(wanted[0].as_str()),
                "BoolIfExists" => value.is_none_or(|value| value == wanted[0]),
                "Null" => value.is_none() == (wanted[0] == "true"),
                other => panic!("operator {other}"),
            }
        })
}

fn is_denied(statements: &[Value], call: &Call) -> bool {
    statements.iter().filter(|one| one["Effect"] == "Deny").any(|one| matches(one, call))
}

fn is_allowed(statements: &[Value], call: &Call) -> bool {
    statements.iter().filter(|one| one["Effect"] == "Allow").any(|one| matches(one, call))
        && !is_denied(statements, call)
}

const ACTIONS: [&str; 9] = [
    "ec2:RunInstances",
    "ec2:DescribeVpcs",
    "rds:CreateDBInstance",
    "iam:PassRole",
    "iam:CreateRole",
    "s3:GetObject",
    "s3:PutBucketPolicy",
    "kms:Decrypt",
    "ecr:BatchGetImage",
];
const PATTERNS: [&str; 12] = [
    "*",
    "ec2:*",
    "ec2:Describe*",
    "rds:*",
    "iam:PassRole",
    "iam:*",
    "s3:*",
    "s3:GetObject",
    "kms:*",
    "EC2:runinstances",
    "ecr:*",
    "iam:Create?ole",
];
const RESOURCES: [&str; 4] =
    ["arn:aws:x:::theirs", "arn:aws:x:::others", "arn:aws:s3:::others/key", "arn:aws:kms:eu-west-1:222222222222:key/2"];

fn some(from: &'static [&'static str]) -> impl Strategy<Value = Vec<&'static str>> {
    proptest::sample::subsequence(from.to_vec(), 1..4)
}

fn statement() -> impl Strategy<Value = Value> {
    let condition = prop_oneof![
        4 => Just(json!({})),
        1 => Just(json!({ "StringEquals": { "aws:tag": ["a", "b"] } })),
        1 => Just(json!({ "StringNotEquals": { "aws:tag": "a" }, "Bool": { "aws:mfa": "true" } })),
        1 => Just(json!({ "Null": { "aws:tag": "false" } })),
    ];
    let effect = prop_oneof![4 => Just("Allow"), 1 => Just("Deny")];
    let resource = prop_oneof![3 => Just("*"), 1 => Just("arn:aws:x:::theirs")];
    (effect, some(&PATTERNS), resource, condition).prop_map(|(effect, actions, resource, condition)| {
        let mut statement = json!({ "Effect": effect, "Action": actions, "Resource": resource });
        if condition != json!({}) {
            statement["Condition"] = condition;
        }
        statement
    })
}

fn call() -> impl Strategy<Value = Call> {
    let tag = proptest::option::of(proptest::sample::select(vec!["a", "b", "c"]));
    let mfa = proptest::option::of(proptest::sample::select(vec!["true", "false"]));
    let (action, resource) = (proptest::sample::select(&ACTIONS[..]), proptest::sample::select(&RESOURCES[..]));
    (action, resource, tag, mfa).prop_map(|(action, resource, tag, mfa)| {
        let keys = tag.map(|tag| ("aws:tag", tag)).into_iter().chain(mfa.map(|mfa| ("aws:mfa", mfa))).collect();
        Call { action, resource, keys }
    })
}

proptest! {
    // Many of the drawn boundaries have statements that meet, and are refused.
    #![proptest_config(ProptestConfig { max_global_rejects: 65_536, ..ProptestConfig::default() })]

    #[test]
    fn what_a_boundary_does_not_allow_is_denied_and_nothing_else(
        statements in proptest::collection::vec(statement(), 1..4),
        call in call(),
    ) {
        let denials = denials(&json!({ "Statement": statements }), &own());
        prop_assume!(denials.is_ok());
        let denials = denials.unwrap_or_default();

        prop_assert_eq!(!is_denied(&denials, &call), is_allowed(&statements, &call), "{:#?}", denials);
    }

    #[test]
    fn what_every_job_needs_stays(statements in proptest::collection::vec(statement(), 1..4)) {
        let denials = denials(&json!({ "Statement": statements }), &own());
        prop_assume!(denials.is_ok());
        let denials = denials.unwrap_or_default();
        let tags = vec![("aws:ResourceTag/freehold:install", "globex"), ("aws:ResourceTag/freehold:tenant", "acme")];
        let needed = [
            (ON_OWN_BUCKET.as_slice(), "arn:aws:s3:::fh-acme--globex--222222222222/terraform/state", Vec::new()),
            (&ON_OWN_REPOSITORY, "arn:aws:ecr:eu-west-1:222222222222:repository/fh-acme/globex", Vec::new()),
            (&ON_OWN_KEY, "arn:aws:kms:eu-west-1:222222222222:key/1", tags),
            (&ON_ALL, "*", Vec::new()),
        ];
        for (actions, resource, keys) in needed {
            for action in actions {
                let call = Call { action, resource, keys: keys.clone() };
                prop_assert!(!is_denied(&denials, &call), "{} of {:#?}", action, denials);
            }
        }
    }
}

#[test]
fn a_list_of_services_denies_every_other_service() {
    let found = denied_by(json!({ "Effect": "Allow", "Action": ["ec2:*", "s3:*"], "Resource": "*" }));

    let at = |found: &[Value], action, resource| is_denied(found, &Call { action, resource, keys: Vec::new() });
    assert!(!at(&found, "ec2:RunInstances", "*"));
    assert!(at(&found, "rds:CreateDBInstance", "*"));
    assert!(at(&found, "ecr:BatchGetImage", "arn:aws:ecr:eu-west-1:222222222222:repository/others"));
    assert!(!at(&found, "ecr:BatchGetImage", "arn:aws:ecr:eu-west-1:222222222222:repository/fh-acme/globex"));
    assert!(at(&found, "kms:Decrypt", "arn:aws:kms:eu-west-1:222222222222:key/1"));
}

#[test]
fn a_boundary_that_allows_everything_denies_nothing() {
    assert!(denied_by(json!([{ "Sid": "All", "Effect": "Allow", "Action": "*", "Resource": "*" }])).is_empty());
}

#[test]
fn a_denial_of_a_boundary_stays_and_leaves_the_installs_own_bucket() {
    let found = denied_by(json!([
        { "Effect": "Allow", "Action": "*", "Resource": "*" },
        { "Sid": "Data", "Effect": "Deny", "Action": "s3:GetObject", "Resource": "*" },
        { "Effect": "Deny", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::data/*" },
        { "Effect": "Deny", "NotAction": "ec2:*", "Resource": "*",
          "Condition": { "StringNotEquals": { "aws:RequestedRegion": "eu-west-1" } } },
    ]));

    let own = own();
    assert_eq!(found[0], json!({ "Effect": "Deny", "Action": ["s3:GetObject"], "NotResource": own.bucket }));
    assert_eq!(found[1], json!({ "Effect": "Deny", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::data/*" }));
    let call = |action, resource, region| Call { action, resource, keys: vec![("aws:RequestedRegion", region)] };
    let outside = &found[2..];
    assert!(is_denied(outside, &call("kms:ScheduleKeyDeletion", RESOURCES[3], "us-east-1")));
    assert!(is_denied(outside, &call("kms:Decrypt", RESOURCES[3], "us-east-1")));
    assert!(!is_denied(outside, &call("kms:Decrypt", RESOURCES[3], "eu-west-1")));
    assert!(!is_denied(outside, &call("ecr:GetAuthorizationToken", "*", "us-east-1")));
    assert!(!is_denied(outside, &call("s3:GetObject", "arn:aws:s3:::fh-acme--globex--222222222222/x", "us-east-1")));
}

#[test]
fn everything_but_some_actions_is_kept() {
    let found = denied_by(json!({ "Effect": "Allow", "NotAction": ["iam:Create*", "s3:Delete*"], "Resource": "*" }));

    assert_eq!(
        found,
        [
            json!({ "Effect": "Deny", "Action": ["iam:Create*"], "Resource": "*" }),
            json!({ "Effect": "Deny", "Action": ["s3:Delete*"], "NotResource": own().bucket }),
        ]
    );
}

#[test]
fn everything_within_one_region_is_kept() {
    let found = denied_by(json!({
        "Effect": "Allow", "Action": "*", "Resource": "*",
        "Condition": { "StringEquals": { "aws:RequestedRegion": "eu-west-1" } },
    }));

    let call = |action, region| Call { action, resource: "*", keys: vec![("aws:RequestedRegion", region)] };
    assert!(is_denied(&found, &call("ec2:RunInstances", "us-east-1")));
    assert!(!is_denied(&found, &call("ec2:RunInstances", "eu-west-1")));
    assert!(!is_denied(&found, &call("iam:ListRoles", "us-east-1")));
}

#[test]
fn a_denial_of_all_keys_leaves_the_installs_own_and_no_other() {
    let found = denied_by(json!([
        { "Effect": "Allow", "Action": "*", "Resource": "*" },
        { "Effect": "Deny", "Action": "kms:*", "Resource": "*" },
    ]));

    let key = |keys: &[(&'static str, &'static str)]| Call {
        action: "kms:Decrypt",
        resource: RESOURCES[3],
        keys: keys.to_vec(),
    };
    let (tenant, install) = ((TENANT, "acme"), (TAG, "globex"));
    assert!(is_denied(&found, &key(&[])));
    assert!(is_denied(&found, &key(&[tenant, (TAG, "initech")])));
    assert!(is_denied(&found, &key(&[(TENANT, "umbrella"), install])), "another vendor's install of the same name");
    assert!(!is_denied(&found, &key(&[tenant, install])));
    assert!(is_denied(&found, &key(&[tenant, install, (OF_APP, "acme--globex")])));
}

#[test]
fn one_action_on_several_resources_may_stand_in_several_statements() {
    let found = denied_by(json!([
        { "Effect": "Allow", "Action": "ec2:*", "Resource": "arn:aws:x:::theirs" },
        { "Effect": "Allow", "Action": "ec2:*", "Resource": "arn:aws:x:::others" },
    ]));

    let call = |resource| Call { action: "ec2:RunInstances", resource, keys: Vec::new() };
    assert!(!is_denied(&found, &call(RESOURCES[0])) && !is_denied(&found, &call(RESOURCES[1])));
    assert!(is_denied(&found, &call(RESOURCES[2])));
}

#[test]
fn a_denial_of_everything_elsewhere_leaves_what_every_job_needs() {
    let found = denied_by(json!([
        { "Effect": "Allow", "Action": "*", "Resource": "*" },
        { "Effect": "Deny", "Action": "s3:*", "NotResource": "arn:aws:s3:::acme-*" },
    ]));

    let call = |resource| Call { action: "s3:PutObject", resource, keys: Vec::new() };
    assert!(is_denied(&found, &call(RESOURCES[2])));
    assert!(!is_denied(&found, &call("arn:aws:s3:::acme-data")));
    assert!(!is_denied(&found, &call("arn:aws:s3:::fh-acme--globex--222222222222/terraform/x")));
}

#[test]
fn what_has_no_exact_opposite_is_refused() {
    let allow = |more: Value| {
        let mut statement = json!({ "Effect": "Allow", "Action": "ec2:*", "Resource": "*" });
        statement.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        statement
    };
    let whole = || allow(json!({ "Action": "ec2:Describe*" }));
    let of_keys = json!({ "StringEquals": { "aws:TagKeys": "a" } });
    let cases = [
        (json!(allow(json!({ "Condition": of_keys }))), "`aws:TagKeys` has several values"),
        (
            json!(allow(
                json!({ "Condition": { "DateLessThan": { "aws:CurrentTime": ["2026-01-01", "2027-01-01"] } } })
            )),
            "no exact opposite",
        ),
        (
            json!({ "Effect": "Deny", "Action": "s3:*", "Resource": "arn:aws:s3:::*" }),
            "may be the install's own bucket",
        ),
        (json!({ "Effect": "Deny", "Action": "ec2:*", "Resource": "*", "Principal": "*" }), "cannot have `Principal`"),
        (
            json!([whole(), allow(json!({ "Resource": "arn:aws:ec2:*" }))]),
            "`ec2:*` is allowed for some resources or under a condition, and another",
        ),
        (
            json!(allow(json!({ "Action": "iam:*", "Resource": "arn:aws:iam::*" }))),
            "every job needs `iam:GetAccountSummary`",
        ),
        (
            json!(allow(json!({ "Condition": { "ForAnyValue:StringLike": { "aws:TagKeys": "a" } } }))),
            "no exact opposite",
        ),
        (json!(allow(json!({ "Resource": "arn:aws:s3:::${aws:username}" }))), "a variable of IAM"),
        (json!(allow(json!({ "Principal": "*" }))), "`Principal` cannot be converted into a `Deny`"),
        (json!([whole(), { "Effect": "Allow", "NotAction": "iam:*", "Resource": "*" }]), "`NotAction` with `Allow`"),
        (
            json!({ "Effect": "Deny", "Action": "iam:*", "Resource": "*" }),
            "`iam:*` is denied or limited, and every job needs",
        ),
        (json!({ "Effect": "Maybe" }), "neither `Allow` nor `Deny`"),
    ];

    for (statements, expected) in cases {
        let found = refusal(statements);
        assert!(found.contains(expected), "{found}");
    }
}

#[test]
fn a_denied_pattern_is_compared_with_the_partition_and_region_of_the_install() {
    for (region, partition, other) in [
        ("eu-west-1", "aws", "aws-cn"),
        ("us-gov-west-1", "aws-us-gov", "aws"),
        ("cn-north-1", "aws-cn", "aws"),
        ("eusc-de-east-1", "aws-eusc", "aws"),
    ] {
        let reason = |resource: &str| {
            let statement = json!({ "Effect": "Deny", "Action": ["s3:*", "ecr:*"], "Resource": resource });
            denials(&json!({ "Version": "2012-10-17", "Statement": statement }), &own_in(region)).err()
        };

        for resource in [
            format!("arn:{partition}:s3:::*"),
            format!("arn:{partition}:s3:::fh-acme--*/?"),
            "arn:*:s3:::fh-acme--globex*".to_owned(),
            format!("arn:{partition}:ecr:{region}:222222222222:repository/*"),
            "arn:aws*:ecr:*".to_owned(),
        ] {
            let reason = reason(&resource).unwrap_or_default();
            assert!(reason.contains("may be the install's own bucket or repository"), "{resource}: {reason}");
        }
        for resource in [format!("arn:{other}:s3:::*"), format!("arn:{partition}:ecr:ap-east-1:*:repository/*")] {
            assert_eq!(reason(&resource), None, "{resource}");
        }
    }
}

#[test]
fn a_denied_pattern_of_objects_is_compared_with_the_bucket_of_the_install() {
    let reason = |resource: &str| {
        let statement = json!({ "Effect": "Deny", "Action": "s3:*", "Resource": resource });
        denials(&json!({ "Version": "2012-10-17", "Statement": statement }), &own()).err()
    };

    for resource in [
        "arn:aws:s3:::*/terraform/*",
        "arn:*:s3:::fh-acme--*/audit/?",
        "arn:aws:s3:::fh-acme--globex--222222222222/terraform/*",
        "arn:aws:s3:::${aws:PrincipalTag/team}*/plans/*",
        "*/terraform/*",
    ] {
        let reason = reason(resource).unwrap_or_default();
        assert!(reason.contains("may be the install's own bucket or repository"), "{resource}: {reason}");
    }
    for resource in [
        "arn:aws:s3:::data/*",
        "arn:aws:s3:::*-logs/*",
        "arn:aws:s3:::fh-initech--*/terraform/*",
        "arn:aws-cn:s3:::*/terraform/*",
        "arn:aws:ecr:*:*:repository/data/*",
    ] {
        assert_eq!(reason(resource), None, "{resource}");
    }
}
