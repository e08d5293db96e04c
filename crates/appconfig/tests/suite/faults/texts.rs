//! Texts that a tool refuses later: manifests, values, variable files, keys of the tree, and templates in wrong braces.

use freehold_appconfig::Severity;

use crate::config::{Config, good};

/// The findings, each with its severity, file and line, and its way out.
fn lines(config: &Config) -> String {
    let line = |one: &freehold_appconfig::Diagnostic| {
        let severity = if one.severity == Severity::Error { "error" } else { "warning" };
        let help = one.help.as_deref().unwrap_or_default();
        format!("{severity} {}:{}: {}; {help}\n", one.file, one.line, one.message)
    };
    config.faults().iter().map(line).collect()
}

fn manifest(text: &str) -> Config {
    let manifest = "name = \"k\"\ntype = \"kubernetes_manifest\"\nnamespace = \"x\"\nmanifest = \"./k.yaml\"\n";
    good().with_sandbox().with("components/k.toml", manifest).with("components/k.yaml", text)
}

fn chart(values: &str) -> Config {
    let chart = "name = \"c\"\ntype = \"helm_chart\"\nchart_name = \"c\"\n[helm_repo]\nrepo_url = \"https://charts.example\"\n\
                 chart = \"c\"\n[[values_file]]\n";
    good().with_sandbox().with("components/c.toml", &format!("{chart}contents = '''\n{values}'''\n"))
}

fn module(text: &str) -> Config {
    let net =
        "name = \"net\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"./modules/net\"\n";
    good().with("components/net.toml", &format!("{net}{text}"))
}

#[test]
fn a_manifest_that_no_cluster_takes_is_an_error_at_its_line() {
    assert_eq!(
        lines(&manifest("apiVersion: v1\nkind: Pod\nmetadata:\n name: a\n   b: c\n")),
        "error components/k.yaml:5: the manifest is not YAML: mapping values are not allowed in this context; \n"
    );
    assert_eq!(
        lines(&manifest("# two\n---\napiVersion: v1\nkind: Pod\n---\nkind: Pod\nname: {{ .nuon.install.id }}\n---\n")),
        "warning components/k.yaml:6: the object has no `apiVersion`; add `apiVersion: ...`; every object of a manifest has \
         `apiVersion` and `kind`\n"
    );
}

#[test]
fn an_incomplete_object_in_a_list_is_an_error_at_its_line() {
    let items = "- {apiVersion: v1, kind: Pod}\n- <<: {kind: Pod}\n  metadata: {name: a}\n";

    assert_eq!(
        lines(&manifest(&format!("---\nkind: List\nitems:\n{items}"))),
        "error components/k.yaml:5: the object has no `apiVersion`; add `apiVersion: ...`; every object of a manifest has \
         `apiVersion` and `kind`\n"
    );
    // Without `items`, it is an object like others, for example of a resource definition of the cluster's own.
    assert!(lines(&manifest("kind: AllowList\n")).contains(":1: the object has no `apiVersion`; "));
}

#[test]
fn a_manifest_that_is_complete_or_that_a_rendering_completes_is_not_a_mistake() {
    for text in [
        "{{ .nuon.inputs.inputs.region }}\n",
        "apiVersion: v1\nkind: Pod\n{{ if .nuon.install.id }}\nmetadata: {name: a}\n{{ end }}\n",
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {{ .nuon.install.id }}\n{{ .nuon.inputs.inputs.region }}\n",
        "# nothing\n",
        "kind: List\nitems:\n- {apiVersion: v1, kind: Pod}\n",
        "kind: List\nitems:\n",
        "kind: PodList\nitems: [{kind: List, items: []}]\n",
        "<<: {apiVersion: v1, kind: Pod}\nmetadata: {name: a}\n",
        "<<: [{apiVersion: v1}, {kind: Pod}]\nmetadata: {name: a}\n",
        "apiVersion: v1\nkind: List\nitems:\n- &a {apiVersion: v1, kind: Pod}\n- <<: *a\n  metadata: {name: a}\n",
    ] {
        assert_eq!(lines(&manifest(text)), "", "{text}");
    }
}

#[test]
fn values_and_variables_are_parsed_and_with_templates_a_mistake_is_a_warning() {
    assert_eq!(lines(&chart("a: 1\nb: \"{{ .nuon.install.id }}\"\n")), "");
    assert!(lines(&chart("a: [1\nb: 2\n")).starts_with("error components/c.toml:10: the text of values is not YAML: "));
    let templated = lines(&chart("a: {{ .nuon.install.id }}\n b: 2\n"));
    assert!(templated.starts_with("warning components/c.toml:10: the text of values is not YAML: "), "{templated}");
    assert_eq!(lines(&module("[[var_file]]\ncontents = 'region = \"{{ .nuon.install.id }}\"'\n")), "");
    let open = lines(&module("[[var_file]]\ncontents = 'region = [1'\n"));
    assert!(open.starts_with("error components/net.toml:6: the variable file is not HCL: "), "{open}");
}

#[test]
fn a_path_without_its_dot_is_read_as_a_text_and_named() {
    let config = chart("values/c.yaml").with("components/values/c.yaml", "a: 1\n");

    assert_eq!(
        lines(&config),
        "error components/c.toml:8: `values/c.yaml` is read as a text, not as a path; write `./values/c.yaml`\n"
    );
    let readme = good().with("metadata.toml", "version = \"v2\"\nreadme = \"README.md\"\n").with("README.md", "x");
    assert!(lines(&readme).starts_with("warning metadata.toml:2: `README.md` is read as a text, not as a path; "));
}

#[test]
fn a_reference_in_one_pair_of_braces_is_a_warning() {
    for (text, meant) in [
        ("{ .nuon.install.id }", ".nuon.install.id"),
        ("a-${.nuon.install.id}", ".nuon.install.id"),
        ("{{ .nuon.install.id }}-{.freehold.install.name}", ".freehold.install.name"),
    ] {
        let found = lines(&module(&format!("[vars]\nx = '{text}'\n")));

        assert!(found.starts_with("warning components/net.toml:6: `"), "{text}: {found}");
        assert!(
            found.ends_with(&format!("is not a template, so the text stays as it is; write `{{{{ {meant} }}}}`\n"))
        );
    }
    for text in ["{{ .nuon.install.id }}", "{{- .nuon.install.id -}}", "jq {a: .nuon.b}", "see .nuon.install.id"] {
        assert_eq!(lines(&module(&format!("[vars]\nx = '{text}'\n"))), "", "{text}");
    }
}

#[test]
fn a_key_that_the_tree_does_not_have_is_a_warning_with_the_nearest() {
    let read = |path: &str| lines(&module(&format!("[vars]\nx = '{{{{ {path} }}}}'\n")));
    let place = "warning components/net.toml:6: ";

    assert_eq!(
        read(".nuon.install.ids"),
        format!("{place}`.nuon.install.ids` does not exist; did you mean `.nuon.install.id`?\n")
    );
    assert_eq!(
        read(".nuon.install.sandbox.vpc"),
        format!("{place}`.nuon.install.sandbox.vpc` does not exist; below `.nuon.install.sandbox` are: outputs\n")
    );
    assert_eq!(read(".nuon.id"), format!("{place}`.nuon.id` does not exist; did you mean `.nuon.install.id`?\n"));
    for path in [".nuon.cloud_account.aws.region", ".nuon.install.node_labels | toJson", ".nuon.install.namespace"] {
        assert_eq!(read(path), "", "{path}");
    }
}

#[test]
fn versions_policies_and_clusters_that_do_not_exist_are_named() {
    let role = "type = \"provision\"\nname = \"p\"\ndescription = \"d\"\n[[policies]]\nmanaged_policy_name = ";
    let config = module("kubernetes_context = \"prod\"\n")
        .with("permissions/p.toml", &format!("{role}\"AdministatorAccess\"\n"))
        .with("permissions/unused.json", "{}")
        .with("sandbox.toml", "terraform_version = \"latest\"\nsource = \"./modules/net\"\n");

    insta::assert_snapshot!(lines(&config), @r#"
    error components/net.toml:5: there is no kubernetes context `prod`; define the kubernetes context in `metadata.toml`, or remove the reference to it
    warning permissions/p.toml:5: AWS has no managed policy `AdministatorAccess`; did you mean `AdministratorAccess`?
    warning permissions/unused.json:1: `permissions/unused.json` is not read: no file of the config names it; name it in a `.toml` file, such as `contents = "./unused.json"`, or remove it
    warning sandbox.toml:1: `terraform_version` is `latest`, which is not a version; write a version, such as `1.11.3`
    "#);
}

#[test]
fn outputs_of_a_stack_of_another_cloud_and_empty_files_are_not_said_apart() {
    let stack = "type = \"gcp-terraform\"\nname = \"n\"\ndescription = \"d\"\n";
    let config = module("[vars]\nx = '{{ .nuon.install_stack.outputs.project_id }}{{ .nuon.cloud_account.gcp.id }}'\n")
        .with("stack.toml", stack)
        .with("policies.toml", "# none\n");

    let messages: Vec<String> = config.all().iter().map(|one| one.message.clone()).collect();

    assert_eq!(messages, ["the app cannot be deployed yet: the stack is of type `gcp-terraform`"]);
}
