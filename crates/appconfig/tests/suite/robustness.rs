//! No file makes the reader panic.

use proptest::prelude::*;

use crate::config::good;

/// Lines of configs, so that many of the files are nearly right.
fn lines() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec![
        "name = \"a\"",
        "name = \"web\"",
        "name = 3",
        "type = \"terraform_module\"",
        "type = \"container_image\"",
        "type = \"helm_chart\"",
        "type = []",
        "dependencies = [\"net\", 1]",
        "dependencies = \"x\"",
        "[public]",
        "[[public]]",
        "image_url = \"x\"",
        "tag = \"{{ .nuon.components.a }}\"",
        "tag = \"{{ é\"",
        "[vars]",
        "x = \"\\u00e9 {{ nope }}\"",
        "y = '''\n{{ .a }}\n{{ end }}'''",
        "z = \"\"\"\\\n   a {{ if }}\"\"\"",
        "source = \"./modules/net\"",
        "source = \"/etc\"",
        "source = \"\"",
        "template = \"./\"",
        "[[steps]]",
        "command = \"\"",
        "[[triggers]]",
        "component_name = \"b\"",
        "[[policies]]",
        "contents = \"{\"",
        "contents = \"./x\"",
        "permissions_boundary = \"é{{\"",
        "[[input]]",
        "group = \"g\"",
        "default = 1979-05-27",
        "type = \"json\"",
        "type = \"hcl\"",
        "type = \"yaml\"",
        "default = \"é: [\\u00e9\"",
        "sources = [\"./inputs.toml\", \"./*.toml\", \"*/*\", \"\"]",
        "contents = '{\"Statement\": [1, {\"é\": {{ .x }}, \"Action\": [2]}]}'",
        "[[rules]]",
        "principal = \"nuon::component:é\"",
        "operation = \"deploy\"",
        "role = \"{{ x\"",
        "operation_roles = [1]",
        "[[install_groups]]",
        "ignore_changes_regex = \"é(\"",
        "drift_schedule = \"é * * * *\"",
        "inputs = [1]",
        "component_toggles = 1",
        "a.b.c = 1",
        "= 1",
        "[",
        "\"\" = 1",
        "timeout = \"99999999999h\"",
        "type = \"kubernetes_manifest\"",
        "type = \"cron\"",
        "var_name = \"net\"",
        "manifest = \"git::https://x//é?ref=\"",
        "contents = \"file:///\"",
        "inline_contents = \"https://\"",
        "cron_schedule = \"é * * * 9-\"",
        "drift_schedule = \"\\u00e9 25 * * *\"",
        "kubernetes_context = \"é\"",
        "[kustomize]",
        "path = \".\"",
        "[[operation_roles]]",
        "[[health.probes]]",
        "[[verification.authorities]]",
        "public_key = \"./é\"",
    ]);
    prop::collection::vec(line, 0..12).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_lines_in_any_file_are_read_or_refused(
        text in lines(),
        path in prop::sample::select(vec![
            "metadata.toml", "inputs.toml", "permissions.toml", "sandbox.toml", "stack.toml", "policies.toml",
            "components/a.toml", "actions/a.toml", "permissions/a.toml", "inputs/a.toml", "runbooks/a.toml", "other.toml",
            "secrets.toml", "operation_roles.toml", "branch.toml", "break_glass/a.toml", "installs/a.toml", "secrets/a.toml",
            "policies/a.toml",
        ]),
    ) {
        let config = good().with(path, &text);

        let found = config.check();

        for one in found.iter() {
            prop_assert!(one.line >= 1 && one.column >= 1);
        }
        let _ = found.to_string();
    }

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        let config = good().with("components/a.toml", &text);

        let _ = config.check().to_string();
    }
}
