//! Inputs in policies of roles, and their defaults: what an install stack refuses is reported in its line.

use crate::config::good;

const INPUTS: &str = r#"
[[group]]
name = "main"

[[input]]
name = "region"
display_name = "R"
description = "d"
group = "main"
default = "eu-west-1"

[[input]]
name = "cluster"
display_name = "C"
description = "d"
group = "main"
user_configurable = true
default = "DEFAULT"

[[input]]
name = "password"
display_name = "P"
description = "d"
group = "main"
sensitive = true
user_configurable = true

[[input]]
name = "prefix"
display_name = "P"
description = "d"
group = "main"
default = "demo"
"#;

fn role(policies: &str) -> String {
    format!("type = \"provision\"\nname = \"p\"\ndescription = \"d\"\n{policies}")
}

fn policy(name: &str, document: &str) -> String {
    format!("[[policies]]\nname = \"{name}\"\ncontents = '''\n{document}'''\n")
}

/// Returns each fault as its file, line, column, message and help.
fn faults(default: &str, policies: &str) -> Vec<String> {
    let config =
        good().with("inputs.toml", &INPUTS.replace("DEFAULT", default)).with("permissions/p.toml", &role(policies));
    let found = serde_json::to_value(config.faults()).unwrap();
    let text = |one: &serde_json::Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
    let lines = found.as_array().unwrap().iter().map(|one| {
        let (line, column) = (&one["line"], &one["column"]);
        format!("{}:{line}:{column}: {} | {}", text(one, "file"), text(one, "message"), text(one, "help"))
    });
    lines.collect()
}

#[test]
fn answers_at_places_that_a_stack_refuses_are_reported_in_their_lines() {
    let document = r#"{ "Statement": [
  { "Effect": "Allow", "Action": "s3:*", "Resource": [
    "arn:aws:s3:::{{ .nuon.inputs.inputs.prefix }}*",
    "arn:aws:s3:::{{ .nuon.inputs.inputs.cluster }}-*",
    "arn:aws:s3:::{{ .nuon.inputs.inputs.cluster }}*" ] },
  { "Effect": "Allow", "Action": "{{ .nuon.inputs.inputs.cluster }}", "Resource": "*" },
  { "Effect": "Deny", "Action": "s3:*", "Resource":
    "arn:aws:s3:::{{ .nuon.inputs.inputs.cluster }}" },
  { "Effect": "Allow", "Action": "s3:*", "Resource": "{{ upper .nuon.inputs.inputs.cluster }}" },
  { "Effect": "Allow", "Action": "s3:*", "Resource": "{{ .nuon.inputs.inputs.password }}" }
] }
"#;

    let found = faults("demo", &policy("x", document));

    insta::assert_snapshot!(found.join("\n"), @r"
    permissions/p.toml:11:5: in `arn:aws:s3:::${InputCluster}*`, a wildcard is directly next to an input that the customer answers, so an empty answer matches everything | write a character between them, such as `-`
    permissions/p.toml:12:34: `Action` of a policy contains an input that the customer answers | write the value, or let the vendor answer the input
    permissions/p.toml:14:5: a `Deny` statement contains an input that the customer answers, and another answer could make it deny less | write the value, or let the vendor answer the input
    permissions/p.toml:15:54: the template changes an input that the customer answers | use the input unchanged, or let the vendor answer it
    permissions/p.toml:16:54: input `password` is sensitive, and a policy can be read by many people | use an input that is not sensitive
    ");
}

#[test]
fn a_document_that_is_json_only_after_it_is_rendered_is_reported_at_its_beginning() {
    let document = "{ \"Statement\": { \"Effect\": \"Allow\", \"Action\": \"s3:*\", \"Resource\": \"{{ index .nuon.inputs.inputs \"cluster\" }}*\" } }\n";

    let found = faults("demo", &policy("x", document));

    insta::assert_snapshot!(found.join("\n"), @"permissions/p.toml:6:12: in `${InputCluster}*`, a wildcard is directly next to an input that the customer answers, so an empty answer matches everything | write a character between them, such as `-`");
}

#[test]
fn two_policies_of_one_name_in_aws_are_reported() {
    let found = faults(
        "demo",
        &[policy("own tables", "{ \"Statement\": [] }\n"), policy("owntables", "{ \"Statement\": [] }\n")].concat(),
    );

    insta::assert_snapshot!(found.join("\n"), @"permissions/p.toml:10:8: policies `own tables` and `owntables` are both `owntables` in AWS, so only one of them would take effect | rename one of them");
}

#[test]
fn a_default_that_a_stack_or_its_check_refuses_is_reported_in_its_line() {
    let reading = policy(
        "x",
        "{ \"Statement\": { \"Effect\": \"Allow\", \"Action\": \"s3:*\", \"Resource\": \"a-{{ .nuon.inputs.inputs.cluster }}\" } }\n",
    );
    let long = "x".repeat(4097);
    let cases =
        ["demo", "de*mo", "${aws:username}", "{{resolve:ssm:a}}", &long].map(|default| faults(default, &reading));
    let unread = faults("de*mo", &policy("x", "{ \"Statement\": [] }\n"));

    insta::assert_snapshot!(cases.concat().join("\n"), @r"
    inputs.toml:18:11: the default of input `cluster` has a wildcard or a variable of IAM, and a policy reads this input | write a default without `*`, `?` and `${`: `freehold customer verify-template` refuses the install stack otherwise, because a role could do more than the contract says
    inputs.toml:18:11: the default of input `cluster` has a wildcard or a variable of IAM, and a policy reads this input | write a default without `*`, `?` and `${`: `freehold customer verify-template` refuses the install stack otherwise, because a role could do more than the contract says
    inputs.toml:18:11: the default of input `cluster` must not contain a dynamic reference (`{{resolve:`) | leave it out
    inputs.toml:18:11: the default of input `cluster` has 4097 bytes, more than the 4096 of a stack parameter | make it shorter
    ");
    assert_eq!(unread, Vec::<String>::new());
}
