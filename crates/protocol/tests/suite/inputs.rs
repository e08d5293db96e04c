//! Inputs: what counts as an answer, and the schema that says so to others.

use freehold_protocol::app_version::{Input, InputGroup, InputKind, inputs_schema};
use proptest::prelude::*;
use serde_json::{Value, json};

const KINDS: [InputKind; 7] = [
    InputKind::String,
    InputKind::Number,
    InputKind::List,
    InputKind::Json,
    InputKind::Bool,
    InputKind::Yaml,
    InputKind::Hcl,
];

fn input(kind: InputKind, required: bool) -> Input {
    serde_json::from_value(json!({ "name": "answer", "type": kind, "required": required })).unwrap()
}

fn named(name: &str) -> Input {
    Input { name: name.to_owned(), ..input(InputKind::String, false) }
}

fn mistake(kind: InputKind, given: Value) -> String {
    input(kind, true).accept(&given).unwrap_err().to_string()
}

#[test]
fn texts_are_read_as_the_inputs_type() {
    let cases = [
        (InputKind::String, json!("3"), json!("3")),
        (InputKind::String, json!(" "), json!(" ")),
        (InputKind::Number, json!(" 3 "), json!(3)),
        (InputKind::Number, json!("9007199254740992"), json!(9_007_199_254_740_992_u64)),
        (InputKind::Number, json!("-.5"), json!(-0.5)),
        (InputKind::Number, json!("1e3"), json!(1000.0)),
        (InputKind::Bool, json!("False"), json!(false)),
        (InputKind::List, json!("[1, \"b\"]"), json!([1, "b"])),
        (InputKind::List, json!("a, b,"), json!(["a", "b"])),
        (InputKind::List, json!("a"), json!(["a"])),
        (InputKind::Json, json!("{\"a\": [1]}"), json!({ "a": [1] })),
        (InputKind::Json, json!(7), json!(7)),
        (InputKind::Yaml, json!("a: 1"), json!("a: 1")),
    ];

    for (kind, given, expected) in cases {
        assert_eq!(input(kind, true).accept(&given).unwrap(), expected, "{given} as {}", kind.as_str());
    }
}

#[test]
fn what_does_not_fit_is_refused_without_its_value() {
    assert_eq!(mistake(InputKind::String, json!(7)), "input `answer` must be a text, found a number");
    assert_eq!(
        mistake(InputKind::Number, json!("soon")),
        "input `answer` must be a number, found a text of 4 characters"
    );
    assert_eq!(mistake(InputKind::Bool, json!(1)), "input `answer` must be `true` or `false`, found a number");
    assert_eq!(mistake(InputKind::Json, json!("{a")), "input `answer` must be JSON, found a text of 2 characters");
    assert_eq!(
        mistake(InputKind::List, json!("[a")),
        "input `answer` must be a list, such as `[\"a\", \"b\"]` or `a, b`, found a text of 2 characters"
    );
    assert_eq!(
        mistake(InputKind::Number, json!(u64::MAX)),
        "input `answer` must be a number, found a number with more digits than can be stored"
    );
    for bad in
        ["nan", "inf", "9007199254740993", "18446744073709551615", "99999999999999999999", "1_000", "0x10", "1e999"]
    {
        assert!(input(InputKind::Number, false).accept(&json!(bad)).is_err(), "{bad}");
    }
}

#[test]
fn an_empty_answer_is_refused_where_one_is_required_and_nothing_elsewhere() {
    for kind in KINDS {
        for empty in [json!(""), Value::Null] {
            let nothing = if kind == InputKind::List { json!([]) } else { json!("") };

            assert_eq!(input(kind, false).accept(&empty).unwrap(), nothing, "{}", kind.as_str());
            assert_eq!(mistake(kind, empty), "input `answer` is required", "{}", kind.as_str());
        }
    }
}

#[test]
fn a_schema_tells_everything_but_the_default_of_a_secret() {
    let inputs: Vec<Input> = serde_json::from_value(json!([
        { "name": "days", "type": "number", "default": "7", "required": true, "display_name": "Days", "group": "g",
          "description": "how long logs are kept", "customer": true },
        { "name": "domain", "type": "string", "required": true, "default": "" },
        { "name": "token", "type": "string", "sensitive": true, "default": "hunter2" },
        { "name": "values", "type": "yaml", "internal": true },
    ]))
    .unwrap();

    let groups: Vec<InputGroup> = serde_json::from_value(json!([
        { "name": "g", "display_name": "Logs", "description": "What is kept" },
        { "name": "rest" },
    ]))
    .unwrap();

    let schema = inputs_schema(&inputs, &groups);

    insta::assert_snapshot!(serde_json::to_string_pretty(&schema).unwrap(), @r#"
    {
      "$schema": "https://json-schema.org/draft/2020-12/schema",
      "additionalProperties": false,
      "properties": {
        "days": {
          "default": 7,
          "description": "how long logs are kept",
          "title": "Days",
          "type": "number",
          "x-freehold-group": "g",
          "x-freehold-source": "customer",
          "x-freehold-type": "number"
        },
        "domain": {
          "minLength": 1,
          "type": "string",
          "x-freehold-source": "vendor",
          "x-freehold-type": "string"
        },
        "token": {
          "type": "string",
          "writeOnly": true,
          "x-freehold-sensitive": true,
          "x-freehold-source": "vendor",
          "x-freehold-type": "string"
        },
        "values": {
          "contentMediaType": "application/yaml",
          "type": "string",
          "x-freehold-internal": true,
          "x-freehold-source": "vendor",
          "x-freehold-type": "yaml"
        }
      },
      "required": [
        "domain"
      ],
      "type": "object",
      "x-freehold-groups": [
        {
          "description": "What is kept",
          "name": "g",
          "title": "Logs"
        },
        {
          "name": "rest"
        }
      ]
    }
    "#);
    jsonschema::meta::validate(&schema).unwrap();
    assert_eq!(inputs_schema(&inputs, &[]).get("x-freehold-groups"), None);
}

#[test]
fn a_parameters_id_is_camel_case_and_never_that_of_another_input() {
    for (name, id) in [
        ("domain", "InputDomain"),
        ("domain_name", "InputDomainName"),
        ("s3_bucket2", "InputS3Bucket2"),
        ("domain-name", "InputDomainnameX6c5dc6d991905703"),
    ] {
        assert_eq!(named(name).parameter(), id);
    }
    let alike = [
        "a_b",
        "ab",
        "a-b",
        "aB",
        "A_B",
        "a__b",
        "a_b_",
        "a_1",
        "a1",
        "a.b",
        "ä_b",
        "\u{0}",
        "",
        "x".repeat(300).as_str(),
    ]
    .map(|name| named(name).parameter());
    let mut unique = alike.to_vec();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), alike.len(), "{alike:?}");
    assert!(alike.iter().all(|id| id.len() <= 255 && id.bytes().all(|b| b.is_ascii_alphanumeric())), "{alike:?}");
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[ -~]{0,12}".prop_map(Value::from),
        "-?[0-9]{1,22}(\\.[0-9]{1,3})?(e[0-9])?".prop_map(Value::from),
        prop_oneof![
            Just("true"),
            Just("FALSE"),
            Just("[1, 2]"),
            Just("[\"a\"]"),
            Just("{\"a\": 1}"),
            Just("a,b"),
            Just(" ")
        ]
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-c]", inner, 0..3).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_accepted_fits_the_schema_and_what_the_schema_refuses_is_not_taken_as_it_is(
        kind in prop::sample::select(KINDS.to_vec()), required in any::<bool>(), given in any_value(),
    ) {
        let input = input(kind, required);
        let schema = jsonschema::validator_for(&input.schema()).unwrap();

        let accepted = input.accept(&given);

        if let Ok(value) = &accepted {
            prop_assert!(schema.is_valid(value), "{value} does not fit {}", input.schema());
        }
        if !schema.is_valid(&given) {
            prop_assert_ne!(accepted.as_ref().ok(), Some(&given));
        }
    }

    #[test]
    fn no_two_names_share_a_parameter(one in "[a-zA-Z0-9_-]{1,6}", other in "[a-zA-Z0-9_-]{1,6}") {
        prop_assume!(one != other);

        prop_assert_ne!(named(&one).parameter(), named(&other).parameter());
    }
}
