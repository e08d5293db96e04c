//! Each built-in policy against changes that it must deny, name or permit.

use serde_json::{Value, json};

use super::{ALL, BuiltIn};
use crate::input::{About, Operation, plan, review};
use crate::{Verdict, evaluate_strictly};

fn about() -> About {
    About {
        tenant: "acme".into(),
        install: "globex".into(),
        account: "222222222222".into(),
        component: "web".into(),
        mode: "maintenance".into(),
        maintenance_creates: true,
        ..About::default()
    }
}

fn named(name: &str) -> &'static BuiltIn {
    ALL.iter().find(|one| one.name == name).unwrap()
}

fn asked(name: &str, input: &Value) -> Verdict {
    evaluate_strictly(&named(name).policy(), input).unwrap()
}

fn change(kind: &str, actions: &[&str], before: Value, after: Value) -> Value {
    let change = json!({ "actions": actions, "before": before, "after": after, "after_unknown": {} });
    json!({ "resource_changes": [{ "address": format!("{kind}.x"), "type": kind, "change": change }] })
}

fn created(name: &str, kind: &str, after: Value) -> Verdict {
    asked(name, &plan(change(kind, &["create"], Value::Null, after), &about()))
}

fn trust(principal: &Value, condition: &Value) -> Value {
    let statement =
        json!([{ "Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole", "Condition": condition }]);
    json!({ "name": "x", "max_session_duration": 3600, "assume_role_policy": json!({ "Statement": statement }).to_string() })
}

#[test]
fn every_policy_says_nothing_about_a_plan_without_changes() {
    for one in ALL {
        for input in [plan(json!({}), &about()), plan(json!({ "resource_changes": [] }), &about())] {
            assert_eq!(asked(one.name, &input), Verdict::default(), "{}", one.name);
        }
    }
}

#[test]
fn strangers_are_denied_and_those_inside_are_not() {
    let mine = |key: &str, value: Value| json!({ "StringEquals": { key: value } });
    let everybody = || json!({ "AWS": "*" });
    for (principal, condition, is_denied) in [
        (json!({ "AWS": "arn:aws:iam::333333333333:root" }), json!({}), true),
        (json!({ "AWS": ["222222222222", "333333333333"] }), json!({}), true),
        (json!("*"), json!({}), true),
        (everybody(), json!({ "Bool": { "aws:SecureTransport": "true" } }), true),
        (everybody(), mine("aws:SourceAccount", json!("222222222222")), false),
        (everybody(), mine("aws:SourceAccount", json!("333333333333")), true),
        (everybody(), mine("AWS:PrincipalAccount", json!(["222222222222", "333333333333"])), true),
        (everybody(), mine("aws:PrincipalAccount", json!([])), true),
        (everybody(), mine("aws:PrincipalOrgID", json!("o-1")), true),
        (everybody(), json!({ "StringNotEquals": { "aws:PrincipalAccount": "222222222222" } }), true),
        (everybody(), json!({ "StringEqualsIfExists": { "aws:SourceAccount": "222222222222" } }), true),
        (everybody(), json!({ "ArnLike": { "aws:SourceArn": "arn:aws:sns:eu-west-1:222222222222:x" } }), false),
        (everybody(), json!({ "ArnLike": { "aws:SourceArn": "arn:aws:sns:*:*:x" } }), true),
        (json!({ "AWS": "arn:aws:iam::222222222222:role/a" }), json!({}), false),
        (json!({ "AWS": "arn:aws:iam::cloudfront:user/CloudFront Origin Access Identity E1" }), json!({}), false),
        (
            json!({ "CanonicalUser": "79a59df900b949e55d96a1e698fbacedfd6e09d98eacf8f8d5218e7cd47ef2be" }),
            json!({}),
            true,
        ),
        (json!({ "Service": "ec2.amazonaws.com" }), json!({}), false),
        (json!({ "Federated": "arn:aws:iam::222222222222:oidc-provider/x" }), json!({}), false),
        (json!({ "Federated": "accounts.google.com" }), json!({}), true),
        (json!({ "Federated": "cognito-identity.amazonaws.com" }), json!({}), false),
    ] {
        let verdict = created("no-strangers", "aws_iam_role", trust(&principal, &condition));

        assert_eq!(!verdict.deny.is_empty(), is_denied, "{principal} {condition} {verdict:?}");
    }
}

#[test]
fn the_policy_of_a_bucket_and_a_share_are_judged_too() {
    let bucket =
        json!({ "bucket": "x", "policy": json!({ "Statement": { "Effect": "Allow", "Principal": "*" } }).to_string() });

    let policy = created("no-strangers", "aws_s3_bucket_policy", bucket);
    let share = created("no-strangers", "aws_lambda_permission", json!({ "principal": "333333333333" }));
    let own = created("no-strangers", "aws_lambda_permission", json!({ "principal": "s3.amazonaws.com" }));

    assert_eq!(policy.deny, ["aws_s3_bucket_policy.x: `policy` gives access to `*`, which is outside of the account"]);
    assert_eq!(
        share.deny,
        ["aws_lambda_permission.x: it is shared with `333333333333`, which is outside of the account"]
    );
    assert_eq!(own, Verdict::default());
}

#[test]
fn documents_are_found_at_any_depth_and_whatever_permits_whom_it_does_not_list_is_for_everybody() {
    let statement = json!({ "Effect": "Allow", "NotPrincipal": { "AWS": "222222222222" } });
    let nested = json!({ "rule": [{ "policy": json!({ "Statement": [statement] }).to_string() }] });
    let object = json!({ "policy": { "Statement": [{ "Effect": "Allow", "Principal": "*" }] } });

    assert_eq!(
        created("no-strangers", "aws_x", nested).deny,
        ["aws_x.x: `rule` gives access to `everybody except NotPrincipal`, which is outside of the account"]
    );
    assert_eq!(created("no-strangers", "aws:s3/bucketPolicy:BucketPolicy", object.clone()).deny.len(), 1);
    assert_eq!(created("no-strangers", "aws_vpc_endpoint", object), Verdict::default());
}

#[test]
fn whoever_signs_for_an_identity_provider_comes_in() {
    let cluster = "https://oidc.eks.eu-west-1.amazonaws.com/id/ABC0123456789";
    for (kind, after, denied, warned) in [
        ("aws_iam_openid_connect_provider", json!({ "url": "https://ci.example.com" }), 1, 0),
        ("aws_iam_openid_connect_provider", json!({ "url": format!("https://x.example.com/{cluster}") }), 1, 0),
        ("aws_iam_openid_connect_provider", json!({ "url": cluster }), 0, 1),
        ("aws_iam_saml_provider", json!({ "name": "x" }), 1, 0),
    ] {
        let verdict = created("no-strangers", kind, after.clone());

        assert_eq!((verdict.deny.len(), verdict.warn.len()), (denied, warned), "{kind} {after} {verdict:?}");
    }
}

#[test]
fn what_is_not_known_yet_is_named() {
    let mut plan_of_bucket = change("aws_s3_bucket_policy", &["create"], Value::Null, json!({}));
    plan_of_bucket["resource_changes"][0]["change"]["after_unknown"] = json!({ "policy": true });

    assert_eq!(asked("no-strangers", &plan(plan_of_bucket, &about())).warn.len(), 1);
}

#[test]
fn a_trust_that_is_not_known_yet_is_named() {
    let mut plan_of_role = change("aws_iam_role", &["create"], Value::Null, json!({}));
    plan_of_role["resource_changes"][0]["change"]["after_unknown"] = json!({ "assume_role_policy": true });

    let verdict = asked("no-strangers", &plan(plan_of_role, &about()));

    assert_eq!((verdict.deny.len(), verdict.warn.len()), (0, 1));
}

#[test]
fn data_and_operators_ports_are_not_public_and_the_product_is_named() {
    let ingress = |from: u32, to: u32, protocol: &str, range: &str| {
        json!({ "ingress": [{ "from_port": from, "to_port": to, "protocol": protocol, "cidr_blocks": [range],
            "ipv6_cidr_blocks": [] }] })
    };
    for (kind, after, denied, warned) in [
        ("aws_db_instance", json!({ "publicly_accessible": true }), 1, 0),
        ("aws_db_instance", json!({ "publicly_accessible": false }), 0, 0),
        ("aws_s3_bucket_acl", json!({ "acl": "public-read" }), 1, 0),
        ("aws_s3_bucket_public_access_block", json!({ "block_public_acls": false, "block_public_policy": true }), 1, 0),
        ("aws_security_group", ingress(22, 22, "tcp", "0.0.0.0/0"), 1, 0),
        ("aws_security_group", ingress(443, 443, "tcp", "0.0.0.0/0"), 0, 1),
        ("aws_security_group", ingress(0, 0, "-1", "0.0.0.0/0"), 1, 0),
        ("aws_security_group", ingress(22, 22, "tcp", "10.0.0.0/8"), 0, 0),
        ("aws_security_group", ingress(22, 22, "tcp", "128.0.0.0/1"), 1, 0),
        ("aws_vpc_security_group_ingress_rule", json!({ "cidr_ipv6": "::/0", "ip_protocol": "-1" }), 1, 0),
        ("aws_vpc_security_group_ingress_rule", json!({ "cidr_ipv6": "8000::/1", "ip_protocol": "-1" }), 1, 0),
        ("aws_vpc_security_group_ingress_rule", json!({ "cidr_ipv6": "fd00::/64", "ip_protocol": "-1" }), 0, 0),
        ("aws_lb", json!({ "internal": false }), 0, 1),
        ("aws_lambda_function_url", json!({ "authorization_type": "NONE" }), 0, 1),
    ] {
        let verdict = created("no-public-exposure", kind, after.clone());

        assert_eq!((verdict.deny.len(), verdict.warn.len()), (denied, warned), "{kind} {after} {verdict:?}");
    }
}

#[test]
fn a_load_balancer_of_a_cluster_is_named_unless_it_is_internal() {
    let service = |annotations: Value| {
        json!({ "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": "web", "annotations": annotations }, "spec": { "type": "LoadBalancer" } })
    };
    let internal = json!({ "service.beta.kubernetes.io/aws-load-balancer-scheme": "internal" });
    let asked_about =
        |object: &Value| asked("no-public-exposure", &review(Operation::Create, Some(object), None, &about()));

    assert_eq!(asked_about(&service(json!({}))).warn.len(), 1);
    assert_eq!(asked_about(&service(internal)), Verdict::default());
}

#[test]
fn resources_of_others_are_neither_changed_nor_taken_over() {
    let of = |install: &str| json!({ "tags": null, "tags_all": { "freehold:install": install } });
    let of_both = |tenant: &str, install: &str| json!({ "tags": { "freehold:tenant": tenant }, "tags_all": { "freehold:install": install } });
    let importing = |before: Value| {
        let mut plan = change("aws_vpc", &["update"], before, json!({}));
        plan["resource_changes"][0]["change"]["importing"] = json!({ "id": "vpc-1" });
        plan
    };
    for (document, denied) in [
        (change("aws_vpc", &["update"], of("initech"), json!({})), 1),
        (change("aws_vpc", &["delete"], of("initech"), Value::Null), 1),
        (change("aws_vpc", &["update"], of("globex"), json!({})), 0),
        (change("aws_vpc", &["update"], of_both("acme", "globex"), json!({})), 0),
        (change("aws_vpc", &["update"], of_both("umbrella", "globex"), json!({})), 1),
        (change("aws_vpc", &["delete"], of_both("umbrella", "globex"), Value::Null), 1),
        (change("aws_vpc", &["update"], json!({ "cidr": "x" }), json!({})), 0),
        (change("aws_vpc", &["create"], Value::Null, json!({})), 0),
        (importing(json!({ "tags": { "Name": "theirs" } })), 1),
        (importing(of("globex")), 0),
        (importing(of_both("acme", "globex")), 0),
        (importing(json!({ "tags": { "freehold:tenant": "acme" } })), 1),
    ] {
        let verdict = asked("own-resources-only", &plan(document.clone(), &about()));

        assert_eq!(verdict.deny.len(), denied, "{document} {verdict:?}");
    }
}

#[test]
fn maintenance_is_limited_as_the_customer_says() {
    let create = change("aws_vpc", &["create"], Value::Null, json!({}));
    let replace = change("aws_vpc", &["delete", "create"], json!({}), json!({}));
    let limited = About { maintenance_creates: false, ..about() };
    let elsewhere = About { mode: "provision".into(), ..limited.clone() };
    let components =
        |names: &[&str]| About { maintenance_components: names.iter().map(ToString::to_string).collect(), ..about() };
    let object = json!({ "kind": "Pod", "metadata": { "name": "a" } });
    let cases = [
        (plan(create.clone(), &about()), 0),
        (plan(create.clone(), &limited), 1),
        (plan(replace, &limited), 0),
        (plan(create.clone(), &elsewhere), 0),
        (plan(create.clone(), &components(&["db"])), 1),
        (plan(create, &components(&["db", "web"])), 0),
        (review(Operation::Create, Some(&object), None, &limited), 1),
        (review(Operation::Update, Some(&object), Some(&object), &limited), 0),
    ];

    for (document, denied) in cases {
        assert_eq!(asked("maintenance-limits", &document).deny.len(), denied, "{document}");
    }
}
