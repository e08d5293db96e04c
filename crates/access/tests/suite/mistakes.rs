//! Mistakes in a text of policies: each message has the place and the way out.

use freehold_access::{MAX_POLICIES_BYTES, Policies, PoliciesError};

fn message(text: &str) -> String {
    Policies::parse(text).unwrap_err().to_string()
}

#[test]
fn a_text_that_is_not_cedar_is_refused_with_its_place() {
    for (text, expected) in [
        (
            "@id(\"a\") permitt (principal, action, resource);",
            "line 1, column 10: invalid policy effect: permitt; effect must be either `permit` or `forbid`",
        ),
        (
            "// why\n@id(\"a\") permit (principal, action, resource) when { principal.name == 'x' };",
            "line 2, column 72: invalid token; strings must use double quotes, not single quotes",
        ),
        (
            "@id(\"a\") permit (principal, action);",
            "line 1, column 35: this policy is missing the `resource` variable in the scope; policy scopes must \
             contain a `principal`, `action`, and `resource` element in that order",
        ),
    ] {
        assert_eq!(message(text), expected, "{text}");
    }
    let unended = message("@id(\"a\")\npermit (principal, action, resource)\n");
    assert!(unended.starts_with("line 2, column 37: unexpected end of input; expected "), "{unended}");
}

#[test]
fn a_name_that_the_schema_does_not_have_is_refused() {
    for (text, expected) in [
        (
            "@id(\"a\") permit (principal, action == Freehold::Action::\"deploy\", resource);",
            "line 1, column 39: policy `a`: unrecognized action `Freehold::Action::\"deploy\"`; docs/access.md lists \
             the actions",
        ),
        (
            "@id(\"a\") permit (principal in Freehold::Team::\"x\", action, resource);",
            "line 1, column 31: policy `a`: unrecognized entity type `Freehold::Team`; docs/access.md lists the types",
        ),
        (
            "@id(\"a\") permit (principal, action, resource is Freehold::Install)\n\
             when { resource.enviroment == \"x\" };",
            "line 2, column 8: policy `a`: attribute `enviroment` on entity type `Freehold::Install` not found; did \
             you mean `environment`?",
        ),
        (
            "@id(\"a\") permit (principal, action, resource)\nwhen { resource.environment == \"x\" };",
            "line 2, column 8: policy `a`: attribute `environment` on entity type `Freehold::App` not found; limit the \
             types in the policy's scope, such as `resource is Freehold::Install` (docs/access.md)",
        ),
    ] {
        assert_eq!(message(text), expected, "{text}");
    }
}

#[test]
fn a_policy_that_never_applies_is_refused() {
    let never = "never applies; correct its actions, its resource or its conditions (docs/access.md)";
    for text in [
        "@id(\"a\") permit (principal, action == Freehold::Action::\"set_policies\", resource is Freehold::Install);",
        "@id(\"a\") forbid (principal, action, resource) when { 1 == 2 };",
    ] {
        assert_eq!(message(text), format!("line 1, column 1: policy `a`: the policy {never}"), "{text}");
    }
}

#[test]
fn a_policy_that_reads_another_entity_is_refused() {
    let text =
        "@id(\"a\") forbid (principal, action, resource) when { Freehold::Install::\"x\".environment == \"y\" };";

    assert_eq!(
        message(text),
        "line 1, column 54: policy `a`: the policy reads an attribute of an entity that it names; it can read those of \
         `principal` and `resource`"
    );
}

#[test]
fn characters_that_change_the_direction_of_reading_are_refused() {
    let text = "@id(\"a\") permit (principal, action, resource) when { principal.name == \"\u{202e}nimda\" };";

    assert_eq!(
        message(text),
        "line 1, column 72: policy `a`: a text has characters that look like others or change the direction of \
         reading; write plain letters"
    );
}

#[test]
fn every_policy_has_a_name_of_its_own() {
    let named = "@id(\"a\") permit (principal, action, resource);\n";
    let other = "permit (principal, action, resource);";

    for (text, expected) in [
        (format!("{named}\n{other}"), "line 3, column 1: the policy has no name; write `@id(\"NAME\")` before it"),
        (format!("@id {other}"), "line 1, column 1: the policy has no name; write `@id(\"NAME\")` before it"),
        (
            format!("{named}{named}"),
            "line 2, column 1: the policy on line 1 is named `a` too; give each policy a name of its own",
        ),
        (
            format!("@id(\"a b\") {other}"),
            "line 1, column 1: the policy's name is not 1 to 64 letters, digits, dots, dashes or underscores, starting \
             with a letter or digit; change its `@id`",
        ),
        (
            "@id(\"a\") permit (principal == ?principal, action, resource);".to_owned(),
            "line 1, column 1: the policy has a slot for a principal or a resource; name the principal or the resource \
             itself",
        ),
    ] {
        assert_eq!(message(&text), expected, "{text}");
    }
}

#[test]
fn all_mistakes_are_found_at_once() {
    let text = "@id(\"a\") permit (principal, action == Freehold::Action::\"x\", resource);\n\
                @id(\"b\") permit (principal, action == Freehold::Action::\"y\", resource);\n";

    let PoliciesError::Wrong { mistakes } = Policies::parse(text).unwrap_err() else { panic!("expected mistakes") };

    let places: Vec<(u32, Option<&str>)> = mistakes.iter().map(|found| (found.line, found.policy.as_deref())).collect();
    assert_eq!(places, [(1, Some("a")), (2, Some("b"))]);
    assert!(message(text).ends_with("docs/access.md lists the actions (and 1 more mistake)"), "{}", message(text));
}

#[test]
fn a_text_that_is_too_long_is_refused_before_it_is_read() {
    let long = format!("//{}", "x".repeat(MAX_POLICIES_BYTES - 1));

    assert_eq!(message(&long), "the policies have 65537 bytes; the maximum is 65536: remove policies, or use groups");
    assert!(Policies::parse(&long[..MAX_POLICIES_BYTES]).is_ok());
}

#[test]
fn long_and_deep_policies_are_read_or_refused_and_never_end_the_process() {
    let policy = |condition: &str| format!("@id(\"a\") permit (principal, action, resource) when {{ {condition} }};");
    let deep = policy(&format!("{}true{}", "(".repeat(4_000), ")".repeat(4_000)));
    let long = policy(&format!("{}true", "true && ".repeat(1_500)));
    let attributes = policy(&format!("principal{}", ".a".repeat(1_900)));

    assert!(message(&deep).contains("more than 32 parentheses are in each other"), "{}", message(&deep));
    assert!(message(&long).contains("the policy is longer than 4096 bytes"), "{}", message(&long));
    assert!(Policies::parse(&policy(&format!("{}true", "true && ".repeat(400)))).is_ok());
    assert!(message(&attributes).contains("attribute `a` on entity type `Freehold::Iam` not found"));
    let wrong = format!("{}principal", "true && ".repeat(400));
    assert!(Policies::parse(&policy(&wrong)).is_err(), "the last operand is not checked");
}
