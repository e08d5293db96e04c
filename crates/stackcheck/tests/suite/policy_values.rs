//! A value in an app's policy is the same for every reader of YAML.

use freehold_stackcheck::check;

const RENDERED: &str = include_str!("../../../app/golden/install-with-inputs.yaml");
const RESOURCE: &str = "\"arn:aws:dynamodb:*:222222222222:table/globex-*\"";

/// Returns the reasons of the findings when a policy has `value` without quotes.
fn reasons_for(value: &str) -> Vec<String> {
    assert_eq!(RENDERED.matches(RESOURCE).count(), 1);
    let template = RENDERED.replace(RESOURCE, &format!(" {value}"));
    check(&template).unwrap_or_else(|wrong| panic!("{wrong}")).into_iter().map(|one| one.reason).collect()
}

/// The first two are account 999999999999, in hexadecimal and in octal.
#[test]
fn a_value_that_yaml_can_read_as_another_is_found() {
    for value in ["0xE8D4A50FFF", "016432451207777", "1_0", "2026-11-30", "~", "null"] {
        let reasons = reasons_for(value);

        assert!(reasons.len() == 1 && reasons[0].contains(&format!("has `{value}`")), "{value}: {reasons:?}");
    }
}

#[test]
fn a_boolean_and_a_number_of_json_are_not_found() {
    for value in ["true", "3600", "1.5"] {
        assert_eq!(reasons_for(value), Vec::<String>::new(), "{value}");
    }
}
