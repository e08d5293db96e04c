//! Which paths a template is found to read.

use freehold_template::Template;

fn paths(text: &str) -> String {
    let found = Template::parse(text).unwrap().references();
    found.into_iter().map(|path| path.join(".")).collect::<Vec<_>>().join(" ")
}

#[test]
fn paths_are_found_wherever_they_stand() {
    assert_eq!(paths("a {{ .nuon.install.id }} {{nuon.inputs.inputs.x}}"), "nuon.inputs.inputs.x nuon.install.id");
    assert_eq!(paths("{{ .freehold.install.id }}"), "nuon.install.id");
    assert_eq!(paths("{{ .action.inputs.a }}{{ .runbook_inputs.b }}"), "nuon.action.inputs.a nuon.runbook.inputs.b");
    assert_eq!(paths(r#"{{ .nuon.a.b | join "," | quote }}"#), "nuon.a.b");
    assert_eq!(paths(r#"{{ printf "%s" (default .nuon.a (upper .nuon.b)) }}"#), "nuon.a nuon.b");
    assert_eq!(
        paths("{{ if and .nuon.a (not .nuon.b) }}{{ .nuon.c }}{{ else if .nuon.d }}{{ else }}{{ .nuon.e }}{{ end }}"),
        "nuon.a nuon.b nuon.c nuon.d nuon.e"
    );
}

#[test]
fn constant_keys_of_index_and_get_extend_a_path() {
    assert_eq!(
        paths(r#"{{ index .nuon.components "store-info" "outputs" 0 }}"#),
        "nuon.components.store-info.outputs.0"
    );
    assert_eq!(
        paths(r#"{{ (index .nuon.components "a").outputs.x }}"#),
        "nuon.components.a nuon.components.a.outputs.x"
    );
    assert_eq!(
        paths(r#"{{ index .nuon.components .nuon.inputs.inputs.which "x" }}"#),
        "nuon.components nuon.inputs.inputs.which"
    );
    assert_eq!(paths(r#"{{ get .nuon.inputs.inputs "x" }}"#), "nuon.inputs.inputs.x");
}

#[test]
fn scopes_and_variables_are_followed_where_they_are_static() {
    assert_eq!(
        paths("{{ with .nuon.components.a }}{{ .outputs.x }}{{ $.nuon.b }}{{ end }}"),
        "nuon.b nuon.components.a nuon.components.a.outputs.x"
    );
    assert_eq!(
        paths("{{ $c := .nuon.components }}{{ $c.a.outputs.x }}"),
        "nuon.components nuon.components.a.outputs.x"
    );
    assert_eq!(
        paths("{{ range $n, $c := .nuon.components }}{{ $c.outputs.x }}{{ $n }}{{ .outputs.y }}{{ end }}"),
        "nuon.components nuon.components.*.outputs.x nuon.components.*.outputs.y"
    );
    assert_eq!(
        paths("{{ $x := .nuon.a }}{{ if .nuon.b }}{{ $x = .nuon.c }}{{ end }}{{ $x.y }}"),
        "nuon.a nuon.b nuon.c"
    );
}

#[test]
fn a_use_knows_its_place_and_whether_it_is_guarded() {
    let template = Template::parse("ä {{ .nuon.a }}\n{{ if .nuon.b }}{{ .nuon.c | default 1 }}{{ end }}").unwrap();

    let uses: Vec<_> =
        template.uses().iter().map(|u| format!("{} {}:{} {}", u.path.join("."), u.line, u.column, u.guarded)).collect();

    assert_eq!(uses, ["nuon.a 1:6 false", "nuon.b 2:7 true", "nuon.c 2:20 true"]);
}
