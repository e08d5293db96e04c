//! What templates render to, and the errors when they cannot be.

use freehold_template::{Limits, Template, render, render_value};
use serde_json::{Value, json};

fn tree() -> Value {
    json!({ "nuon": {
        "install": { "id": "acme", "name": "Acme" },
        "inputs": { "inputs": { "region": "eu-west-1", "replicas": "3", "tailscale": "true", "empty": "" } },
        "sandbox": { "outputs": { "vpc": { "subnets": ["a", "b", "c"] }, "none": null, "zones": { "y": "2", "x": "1" } } },
        "components": {
            "store-info": { "outputs": { "url": "https://x", "port": 8080, "ratio": 0.5, "big": 3_000_000 } },
            "web": { "outputs": { "tags": ["1", "2"] } },
        },
    }})
}

fn good(template: &str) -> String {
    render(template, &tree(), &Limits::default()).unwrap()
}

fn bad(template: &str) -> String {
    render(template, &tree(), &Limits::default()).unwrap_err().to_string()
}

#[test]
fn fields_render_with_or_without_the_dot_and_under_both_names() {
    assert_eq!(good("a-{{ .nuon.install.id }}-b"), "a-acme-b");
    assert_eq!(good("{{nuon.install.id}}"), "acme");
    assert_eq!(good("{{ .freehold.install.id }}{{ freehold.install.id }}{{ $.freehold.install.id }}"), "acmeacmeacme");
    assert_eq!(good("{{.nuon.components.store-info.outputs.port}}"), "8080");
    assert_eq!(good("{{ .nuon.components.store-info.outputs.big }} {{ 1.5 }}"), "3000000 1.5");
}

#[test]
fn inputs_of_a_run_are_also_beside_the_tree() {
    let tree = json!({ "nuon": { "action": { "inputs": { "a": "1" } }, "runbook": { "inputs": { "b": "2" } } } });
    let read = |text: &str| render(text, &tree, &Limits::default());

    assert_eq!(read("{{ .action.inputs.a }}{{ .runbook_inputs.b }}").unwrap(), "12");
    assert!(read("{{ .nuon.runbook_inputs.b }}").is_err() && read("{{ .runbook_inputs.c }}").is_err());
}

#[test]
fn a_text_without_actions_is_unchanged() {
    assert_eq!(good("${var.x} } {not} %d"), "${var.x} } {not} %d");
}

#[test]
fn trim_markers_and_comments_take_the_space_around_them() {
    assert_eq!(good("a \n {{- 1 -}} \n b"), "a1b");
    assert_eq!(good("a {{/* x */}} b"), "a  b");
    assert_eq!(good("a {{- /* x */ -}} b"), "ab");
    assert_eq!(good("{{-3}}"), "-3");
}

#[test]
fn forms_of_real_configs_render() {
    assert_eq!(good(r#"{{ .nuon.sandbox.outputs.vpc.subnets | join "," }}"#), "a,b,c");
    assert_eq!(good("{{index .nuon.sandbox.outputs.vpc.subnets 1}}"), "b");
    assert_eq!(good(r#"{{ index .nuon.components "store-info" "outputs" "url" }}"#), "https://x");
    assert_eq!(
        good(
            "{{ if gt (len .nuon.sandbox.outputs.zones) 0 }}{{ index (values .nuon.sandbox.outputs.zones) 0 }}{{ end }}"
        ),
        "1"
    );
    assert_eq!(good(r#"{{ ternary 3 0 (eq "true" .nuon.inputs.inputs.tailscale) }}"#), "3");
    let guarded = r#"{{ $sub := "whoami" }}{{ with .nuon.inputs }}{{ with .inputs }}{{ with .subdomain }}{{ $sub = . }}{{ end }}{{ end }}{{ end }}{{ $sub }}.x"#;
    assert_eq!(good(guarded), "whoami.x");
}

#[test]
fn blocks_choose_and_repeat() {
    assert_eq!(
        good("{{ if .nuon.inputs.inputs.empty }}a{{ else if eq .nuon.install.id `acme` }}b{{ else }}c{{ end }}"),
        "b"
    );
    assert_eq!(good("{{ range $i, $s := .nuon.sandbox.outputs.vpc.subnets }}{{ $i }}{{ $s }},{{ end }}"), "0a,1b,2c,");
    assert_eq!(good("{{ range $k, $v := .nuon.sandbox.outputs.zones }}{{ $k }}={{ $v }} {{ end }}"), "x=1 y=2 ");
    assert_eq!(
        good(
            "{{ range .nuon.sandbox.outputs.vpc.subnets }}{{ if eq . `b` }}{{ continue }}{{ end }}{{ . }}{{ $.nuon.install.id }}{{ end }}"
        ),
        "aacmecacme"
    );
    assert_eq!(good("{{ range .nuon.sandbox.outputs.vpc.subnets }}{{ break }}{{ else }}none{{ end }}"), "");
    assert_eq!(good("{{ range list }}x{{ else }}none{{ end }}"), "none");
    assert_eq!(
        good("{{ with .nuon.install }}{{ .id }}{{ end }}{{ with .nuon.gone }}x{{ else }}none{{ end }}"),
        "acmenone"
    );
}

#[test]
fn functions_follow_go_and_sprig() {
    for (template, expected) in [
        (
            r#"{{ printf "%s-%05d|%-4s|%q|%.2f|%x|%v%%" "a" 42 "b" "c" 1.5 255 true }}"#,
            r#"a-00042|b   |"c"|1.50|ff|true%"#,
        ),
        (r#"{{ print "a" 1 2 "b" }}{{ println "x" 1 }}"#, "a1 2bx 1\n"),
        (r#"{{ "a,b" | splitList "," | last }}{{ (split "," "a,b")._0 }}"#, "ba"),
        (r#"{{ dict "a" 1 "b" (list 1 "x") | toJson }}"#, r#"{"a":1,"b":[1,"x"]}"#),
        (r#"{{ (fromJson "{\"a\":[1,2]}").a | last }}"#, "2"),
        (r#"{{ "hello" | b64enc }}{{ "aGk=" | b64dec }}"#, "aGVsbG8=hi"),
        (
            r#"{{ "x" | quote }}{{ "x" | squote }}{{ upper "ab" }}{{ lower "AB" }}{{ title "ab cd" }}"#,
            r#""x"'x'ABabAb Cd"#,
        ),
        (
            r#"{{ trim " a " }}{{ "a.b" | trimSuffix ".b" }}{{ "a.b" | trimPrefix "a." }}{{ "a-b-c" | replace "-" "_" }}"#,
            "aaba_b_c",
        ),
        (r#"{{ contains "b" "abc" }}{{ hasPrefix "a" "abc" }}{{ hasSuffix "a" "abc" }}"#, "truetruefalse"),
        (r#"{{ "a\nb" | indent 2 }}{{ "a" | nindent 1 }}"#, "  a\n  b\n a"),
        (
            r#"{{ coalesce "" .nuon.gone "c" }}{{ .nuon.gone | default "d" }}{{ default "e" .nuon.inputs.inputs.empty }}"#,
            "cde",
        ),
        (r#"{{ empty .nuon.gone.further }}{{ hasKey .nuon.install "id" }}{{ get .nuon.install "zz" }}"#, "truetrue"),
        (r#"{{ keys .nuon.sandbox.outputs.zones | join "" }}{{ first (list 1 2) }}"#, "xy1"),
        (
            r#"{{ add 1 2 3 }}{{ sub 5 1 }}{{ mul 2 3 }}{{ div 7 2 }}{{ int "12" }}{{ toString 5 }}{{ trunc 2 "abc" }}{{ trunc -2 "abc" }}"#,
            "6463125abbc",
        ),
        (r#"{{ sha256sum "" | trunc 8 }}"#, "e3b0c442"),
        (
            r#"{{ and 1 0 2 }}{{ or 0 "" 3 }}{{ not 0 }}{{ eq 1 2 1 }}{{ ne 1 2 }}{{ lt 1 2 }}{{ le "b" "a" }}{{ ge 2.5 2 }}"#,
            "03truetruetruetruefalsetrue",
        ),
        (r#"{{ slice "abc" 1 2 }}{{ slice (list 1 2 3) 1 }}{{ len "abc" }}"#, "b[2 3]3"),
        ("{{ .nuon.sandbox.outputs.zones }}", "map[x:1 y:2]"),
    ] {
        assert_eq!(good(template), expected, "{template}");
    }
}

#[test]
fn a_mistake_is_reported_with_a_place_and_a_way_out() {
    let messages: Vec<String> = [
        "{{ .nuon.inputs.inputs.regoin }}",
        "x\n {{ .nuon.install.id.deep }}",
        "{{ .nuon.sandbox.outputs.none }}",
        "{{ index .nuon.components \"web2\" }}",
        "{{ index .nuon.sandbox.outputs.vpc.subnets 7 }}",
        "{{ eq .nuon.components.store-info.outputs.port \"8080\" }}",
        "{{ required \"set a subdomain\" .nuon.inputs.inputs.empty }}",
        "{{ $x := 1 }}{{ $x.y }}",
        "{{ div 1 0 }}",
        "{{ join \",\" }}",
        "{{ range 1.5 }}{{ end }}",
        "{{ fromJson \"{\" }}",
    ]
    .into_iter()
    .map(bad)
    .collect();

    insta::assert_snapshot!(messages.join("\n"), @r#"
    `.nuon.inputs.inputs.regoin` has no value; did you mean `region`? (line 1, column 4)
    `.nuon.install.id.deep` cannot be read: its parent is a string, not a map (line 2, column 5)
    `.nuon.sandbox.outputs.none` is null; set it, or use the template function `default` to give a value in its place (line 1, column 4)
    `index`: the map has no key `web2`; did you mean `web`? (line 1, column 4)
    `index`: there is no element at position 7: the list has 3 elements (line 1, column 4)
    `eq`: cannot compare a number with a string; write `eq (toString ...) "..."` (line 1, column 4)
    `required`: set a subdomain (line 1, column 4)
    `$x.y` cannot be read: its parent is a number, not a map (line 1, column 17)
    `div`: division by zero (line 1, column 4)
    `join`: takes 2 arguments, got 1 (line 1, column 4)
    `range` takes a list, a map or a whole number, got a fraction (line 1, column 10)
    `fromJson`: the text is not JSON (line 1, column 1) (line 1, column 4)
    "#);
}

#[test]
fn a_syntax_error_names_its_place() {
    let messages: Vec<String> = [
        "{{ .nuon.install.id",
        "a\nb {{ .x } }}",
        "{{ if .x }}a",
        "{{ end }}",
        "{{ else }}",
        "{{ uper \"a\" }}",
        "{{ install.id }}",
        "{{ $x }}",
        "{{ \"abc }}",
        "{{ 'abc' }}",
        "{{ .a .b }}",
        "{{ .a | .b }}",
        "{{ (.a }}",
        "{{ }}",
        "{{ break }}",
        "{{ define \"x\" }}{{ end }}",
        "{{ if .x }}{{ else }}{{ else }}{{ end }}",
        "{{ /* x }}",
        "{{ 12ab }}",
        "{{ {{ .a }} }}",
    ]
    .into_iter()
    .map(|text| Template::parse(text).unwrap_err().to_string())
    .collect();

    insta::assert_snapshot!(messages.join("\n"), @r#"
    the action is never closed; end it with `}}` (line 1, column 3)
    unexpected character `}` (line 2, column 9)
    `if` is never closed; add `{{ end }}` (line 1, column 1)
    `end` closes nothing; remove it, or open `if`, `with` or `range` before (line 1, column 4)
    `else` is outside of `if`, `with` and `range` (line 1, column 4)
    there is no function `uper`; did you mean `upper`? (line 1, column 4)
    there is no function `install`; a value starts with a dot, as in `.nuon.install.id` (line 1, column 4)
    variable `$x` is not declared (line 1, column 4)
    the string is never closed; end it with `"` (line 1, column 4)
    strings in templates are written in double quotes or backticks, not in single quotes (line 1, column 4)
    expected `|` or the end of the action (a value takes no arguments), found `.b` (line 1, column 7)
    only a function can follow `|` (line 1, column 9)
    expected `)`, found the end of the action (line 1, column 8)
    expected a value or a function, found the end of the action (line 1, column 4)
    `break` is outside of `range` (line 1, column 4)
    `define` is not supported; write the text itself instead (line 1, column 4)
    a second `else` in one `if` (line 1, column 25)
    the comment is never closed; end it with `*/}}` (line 1, column 1)
    `12ab` is not a number (line 1, column 4)
    an action inside an action; close the first one with `}}` (line 1, column 4)
    "#);
}

#[test]
fn work_size_and_depth_are_bounded() {
    let doubling = r#"{{ $x := "0123456789" }}{{ range (splitList "" "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa") }}{{ $x = print $x $x }}{{ end }}"#;
    assert!(bad(doubling).contains("takes more than"), "{}", bad(doubling));

    let nesting = r#"{{ $x := 1 }}{{ range (splitList "" (printf "%2000s" "a")) }}{{ $x = list $x }}{{ end }}"#;
    assert!(bad(nesting).contains("nested too deeply"), "{}", bad(nesting));

    let loops = r#"{{ $l := splitList "" (printf "%2000s" "a") }}{{ range $l }}{{ range $l }}{{ range $l }}{{ end }}{{ end }}{{ end }}"#;
    assert!(bad(loops).contains("steps"), "{}", bad(loops));

    let wide = r#"{{ range (splitList "" (printf "%4000s" "a")) }}{{ printf "%4000d%4000d" 1 1 }}{{ end }}"#;
    assert!(bad(wide).contains("bytes"), "{}", bad(wide));

    let deep = format!("{}{}", "{{ if 1 }}".repeat(500), "{{ end }}".repeat(500));
    assert!(bad(&deep).contains("nest deeper"), "{}", bad(&deep));

    let parens = format!("{{{{ {}1{} }}}}", "(".repeat(5000), ")".repeat(5000));
    assert!(bad(&parens).contains("nest deeper"), "{}", bad(&parens));
}

#[test]
fn every_string_of_a_value_is_rendered() {
    let value = json!({ "a": "{{ .nuon.install.id }}", "b": [1, "{{ .nuon.install.name }}", null], "{{ k }}": true });

    let rendered = render_value(&value, &tree(), &Limits::default()).unwrap();

    assert_eq!(rendered, json!({ "a": "acme", "b": [1, "Acme", null], "{{ k }}": true }));
}

#[test]
fn what_fails_inside_of_a_value_is_named() {
    let value = json!({ "tags": [{ "owner": "x" }, { "owner": "{{ .nuon.install.nmae }}" }] });

    let error = render_value(&value, &tree(), &Limits::default()).unwrap_err();

    assert_eq!(
        error.explain(),
        "at `tags.1.owner`: `.nuon.install.nmae` has no value; did you mean `name`? (line 1, column 4)"
    );
    let plain = render_value(&json!("{{ .nuon.gone }}"), &tree(), &Limits::default()).unwrap_err();
    assert_eq!(plain.explain(), "`.nuon.gone` has no value (line 1, column 4)");
    assert_eq!(plain.to_string(), plain.explain());
}
