//! No text and no tree makes the engine panic or run away.

use freehold_template::{Limits, Template, function_names, render};
use proptest::prelude::*;
use serde_json::{Value, json};

const SMALL: Limits = Limits { max_steps: 20_000, max_output_bytes: 64 * 1024 };

fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("[a-c]", inner, 0..4).prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    })
}

/// Pieces of templates, so that many of the texts are nearly valid.
pub(crate) fn template() -> impl Strategy<Value = String> {
    let function = prop::sample::select(function_names().collect::<Vec<_>>());
    let operand = prop::sample::select(vec![
        ".",
        "$",
        ".nuon",
        ".nuon.a",
        ".nuon.b.c",
        "$x",
        "1",
        "-7",
        "0",
        "\"a\"",
        "`%s%d%v`",
        "nil",
        "true",
        "(list 1 . 3)",
        "99999999999",
        "1.5",
        "\"\"",
        "`(a|b)*c?`",
        "9223372036854775807",
        "(dict `a` . `b` 2)",
    ]);
    let call = (function, prop::collection::vec(operand.clone(), 0..4))
        .prop_map(|(function, operands)| format!("{function} {}", operands.join(" ")));
    let pipeline = prop_oneof![
        operand.prop_map(str::to_owned),
        call.clone(),
        (call.clone(), call.clone()).prop_map(|(a, b)| format!("{a} | {b}")),
        call.prop_map(|call| format!("$x = {call}")),
    ];
    let piece = (pipeline, 0..8u8).prop_map(|(pipeline, form)| match form {
        0 => format!("{{{{ if {pipeline} }}}}y{{{{ end }}}}"),
        1 => format!("{{{{- with {pipeline} -}}}} {{{{ . }}}} {{{{ end }}}}"),
        2 => format!("{{{{ range $k, $v := {pipeline} }}}}{{{{ $x = $v }}}}{{{{ else }}}}n{{{{ end }}}}"),
        3 => format!("{{{{ $x := {pipeline} }}}}"),
        _ => format!("a {{{{ {pipeline} }}}}\n"),
    });
    prop::collection::vec(piece, 1..8).prop_map(|pieces| format!("{{{{ $x := 1 }}}}{}", pieces.concat()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn any_text_parses_or_is_refused_with_a_place_inside_of_it(text in any::<String>()) {
        if let Err(error) = Template::parse(&text) {
            prop_assert!(error.offset <= text.len());
        }
    }

    #[test]
    fn any_text_of_template_signs_parses_or_is_refused(text in r#"[{}.$|()"`/*a-z0-9 :=,\n\\-]{0,60}"#) {
        if let Ok(template) = Template::parse(&text) {
            let _ = template.uses();
            let _ = template.render(&json!({ "nuon": { "a": 1 } }), &SMALL);
        }
    }

    #[test]
    fn any_template_over_any_tree_ends_within_its_limits(text in template(), inner in tree()) {
        if let Ok(out) = render(&text, &json!({ "nuon": inner }), &SMALL) {
            prop_assert!(out.len() <= SMALL.max_output_bytes);
        }
    }

    #[test]
    fn a_text_without_an_action_is_rendered_as_it_is(text in "[^{]{0,40}") {
        prop_assert_eq!(render(&text, &Value::Null, &SMALL).unwrap(), text);
    }
}
