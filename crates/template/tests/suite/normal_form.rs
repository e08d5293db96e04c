//! A template written as text is the same template, and reads nothing that it does not say.

use freehold_template::{Limits, Template};
use proptest::prelude::*;
use serde_json::{Map, Value};

use crate::go::{cases, random};
use crate::robustness::template;

fn normal(text: &str) -> String {
    Template::parse(text).unwrap().to_string()
}

#[test]
fn the_normal_form_keeps_the_words_and_drops_the_rest() {
    let written = [
        "a {{- /* b */ -}} c {{nuon.x}}",
        "{{-  $x:=.a|default   `b\n`  -}} {{ $x }}",
        "{{ if .a }}1{{ else if .b }}2{{ else }}3{{ end }}",
        "{{ range $k, $v := (index .a 0x10).b }}{{ break }}{{ end }}",
        "a{{/**/}}{ b{ {{- 1.0 }}{ {{- 1e300 }}",
        "{{ mustToJson (list) }}",
    ]
    .map(normal);

    insta::assert_snapshot!(written.join("\n"), @r#"
    ac {{ $.nuon.x }}
    {{ $x := .a | default "b\n" }}{{ $x }}
    {{ if .a }}1{{ else }}{{ if .b }}2{{ else }}3{{ end }}{{ end }}
    {{ range $k, $v := (index .a 16).b }}{{ break }}{{ end }}
    a{ b{ {{- /**/}}{{ 1.0 }}{ {{- /**/}}{{ 1e+300 }}
    {{ toJson (list) }}
    "#);
}

/// Keeps of `value` what `paths` lead to; lists are kept whole, since positions count.
fn pruned(value: &Value, paths: &[&[String]]) -> Value {
    let Value::Object(map) = value else { return value.clone() };
    if paths.iter().any(|path| path.is_empty()) {
        return value.clone();
    }
    let kept = map.iter().filter_map(|(key, inner)| {
        let further: Vec<&[String]> =
            paths.iter().filter(|path| path[0] == *key || path[0] == "*").map(|path| &path[1..]).collect();
        (!further.is_empty()).then(|| (key.clone(), pruned(inner, &further)))
    });
    Value::Object(kept.collect::<Map<_, _>>())
}

fn reads_only_what_it_says(text: &str, tree: &Value) {
    let template = Template::parse(text).unwrap();
    let references = template.references();
    let paths: Vec<&[String]> = references.iter().map(Vec::as_slice).collect();
    let known = pruned(tree, &paths);
    if let Ok(whole) = template.render(tree, &Limits::default()) {
        assert_eq!(template.render(&known, &Limits::default()), Ok(whole), "{text}\n{references:?}");
    }
}

#[test]
fn what_a_template_does_not_refer_to_does_not_matter() {
    for text in cases::ALL {
        reads_only_what_it_says(text, &cases::tree());
    }
    for text in ["{{ toJson . }}", "{{ len $ }}", "{{ range $k, $v := . }}{{ $k }}{{ $v.install.id }}{{ end }}"] {
        reads_only_what_it_says(text, &cases::tree());
    }
    for seed in 0..2_000 {
        let case = random::case(seed);
        reads_only_what_it_says(&case.text, &case.tree);
    }
}

#[test]
fn templates_of_all_functions_survive_being_written() {
    let random = (0..2_000).map(|seed| random::case(seed).text);
    for text in cases::ALL.iter().map(|text| (*text).to_owned()).chain(random) {
        let template = Template::parse(&text).unwrap();

        let written = template.to_string();

        assert_eq!(Template::parse(&written).as_ref(), Ok(&template), "{text}\n{written}");
        assert_eq!(Template::parse(&written).unwrap().to_string(), written);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn parsing_what_was_written_gives_the_same_template(text in template()) {
        if let Ok(template) = Template::parse(&text) {
            let written = template.to_string();

            prop_assert_eq!(Template::parse(&written), Ok(template));
        }
    }

    #[test]
    fn texts_full_of_braces_survive_being_written(text in r#"([{} a\n-]|\{\{/\*\*/\}\}|\{\{ 1 \}\}){0,20}"#) {
        if let Ok(template) = Template::parse(&text) {
            let written = template.to_string();

            prop_assert_eq!(Template::parse(&written), Ok(template));
        }
    }

    #[test]
    fn a_template_that_was_written_renders_the_same(text in template(), seed in 0..1_000u64) {
        let tree = random::case(seed).tree;
        if let Ok(template) = Template::parse(&text) {
            let written = Template::parse(&template.to_string()).unwrap();

            let (one, two) = (template.render(&tree, &Limits::default()), written.render(&tree, &Limits::default()));

            prop_assert_eq!(one.ok(), two.ok());
        }
    }
}
