//! What files say about each other: names of components in templates, outputs, clusters, loops.

use std::time::{Duration, Instant};

use freehold_protocol::app_version::Reference;

use crate::config::{Config, good};

/// Returns a config in which the component `net` has one variable.
fn with_var(template: &str) -> Config {
    good().with(
        "components/net.toml",
        &format!("name = \"net\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"./modules/net\"\n\n[vars]\nx = '{template}'\n"),
    )
}

fn image(name: &str, keys: &str) -> String {
    format!("name = \"{name}\"\ntype = \"container_image\"\n{keys}\n[public]\nimage_url = \"x/{name}\"\ntag = \"1\"\n")
}

#[test]
fn templates_may_name_a_component_by_its_other_name() {
    let config = with_var("{{ .nuon.components.site.outputs.digest }}")
        .with("components/web.toml", &image("web", "var_name = \"site\""))
        .with("components/app.toml", &image("app", "dependencies = [\"site\"]"));

    let version = config.load().version;

    let net = version.component(&"net".parse().unwrap()).unwrap();
    assert_eq!(net.references, [Reference::Component("web".parse().unwrap())].into());
    assert_eq!(net.dependencies, ["web".parse().unwrap()].into());
    let app = version.component(&"app".parse().unwrap()).unwrap();
    assert_eq!(app.dependencies, ["web".parse().unwrap()].into());
    assert_eq!(version.component(&"web".parse().unwrap()).unwrap().var_name, "site");
}

#[test]
fn outputs_of_the_sandbox_and_the_install_stack_are_references_in_both_spellings() {
    let config = with_var(
        "{{ .nuon.sandbox.outputs.vpc.id }} {{ .nuon.install.sandbox.outputs.cluster.name }} {{ .nuon.install_stack.outputs.region }} {{ range $k, $v := .nuon.sandbox.outputs }}{{ $v }}{{ end }}",
    );

    let version = config.load().version;

    let expected = [
        Reference::Sandbox(String::new()),
        Reference::Sandbox("cluster".to_owned()),
        Reference::Sandbox("vpc".to_owned()),
        Reference::InstallStack("region".to_owned()),
    ];
    assert_eq!(version.components[0].references, expected.into());
}

#[test]
fn the_licence_of_the_install_is_a_reference_in_both_spellings() {
    for template in ["{{ .nuon.install.licence }}", "{{ .freehold.install.licence | default \"\" }}"] {
        let config = with_var(template);

        assert_eq!(config.faults().to_string(), "", "{template}");
        assert_eq!(config.load().version.components[0].references, [Reference::Licence].into(), "{template}");
    }
}

#[test]
fn a_licence_is_not_read_where_templates_are_rendered_without_it() {
    let place = "[[secret]]\nname = \"api_key\"\ndescription = \"A key\"\nkubernetes_sync = true\n\
                 kubernetes_secret_namespace = \"{{ .nuon.install.licence }}\"\nkubernetes_secret_name = \"key\"\n";

    let text = good().with("secrets.toml", place).check().to_string();

    assert!(text.contains("warning: `.nuon.install.licence` does not exist here\n --> secrets.toml:5:35"), "{text}");
    assert!(text.contains("read it in a component, the sandbox, an action or a runbook"), "{text}");
}

#[test]
fn a_thousand_components_are_checked_fast() {
    let mut config = good();
    for at in 0..1000 {
        let needs = if at == 0 { String::new() } else { format!("dependencies = [\"c{}\", \"c{}\"]", at - 1, at / 2) };
        config = config.with(&format!("components/c{at}.toml"), &image(&format!("c{at}"), &needs));
    }
    let start = Instant::now();

    let found = config.check();

    assert!(found.is_empty(), "{found}");
    // Tests are not optimized, and machines are busy; what is caught here is work that grows with the square.
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

#[test]
fn another_name_that_is_taken_is_an_error() {
    let config = good()
        .with("components/web.toml", &image("web", "var_name = \"net\""))
        .with("components/a.toml", &image("a", "var_name = \"site\""))
        .with("components/b.toml", &image("b", "var_name = \"site\""));

    insta::assert_snapshot!(config.faults(), @r#"
    error: the name `site` in templates already means component `a`
     --> components/b.toml:3:12
      |
    3 | var_name = "site"
      |            ^^^^^^
      |
     ::: components/a.toml:3:12
      |
    3 | var_name = "site"
      |            ------ taken here
      |
      = help: choose another `var_name`, or remove it

    error: the name `net` in templates already means component `net`
     --> components/web.toml:3:12
      |
    3 | var_name = "net"
      |            ^^^^^
      |
     ::: components/net.toml:1:8
      |
    1 | name = "net"
      |        ----- taken here
      |
      = help: choose another `var_name`, or remove it
    "#);
}

#[test]
fn another_name_is_one_that_templates_can_write() {
    let config = good().with("components/web.toml", &image("web", "var_name = \"my site\""));

    insta::assert_snapshot!(config.faults(), @r#"
    error: `my site` is not a component name; expected 1 to 64 letters, digits, dashes or underscores, starting with a letter or digit
     --> components/web.toml:3:12
      |
    3 | var_name = "my site"
      |            ^^^^^^^^^
    "#);
}

#[test]
fn an_output_that_images_do_not_have_is_a_warning() {
    let config = with_var(
        "{{ .nuon.components.web.outputs.image.tga }}{{ .nuon.components.web.outputs.ref }}{{ .nuon.components.web.outputs.image.repository }}",
    );

    insta::assert_snapshot!(config.faults(), @r"
    warning: image `web` has no output `tga`
     --> components/net.toml:7:9
      |
    7 | x = '{{ .nuon.components.web.outputs.image.tga }}{{ .nuon.components.web.outputs.ref }}{{ .nuon.components.web.outputs.image.reposito...
      |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: did you mean `tag`?

    warning: image `web` has no output `ref`
     --> components/net.toml:7:53
      |
    7 | x = '{{ .nuon.components.web.outputs.image.tga }}{{ .nuon.components.web.outputs.ref }}{{ .nuon.components.web.outputs.image.reposito...
      |                                                     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: its outputs here are: reference, repository, digest, image
    ");
}

#[test]
fn what_is_not_an_output_of_a_component_is_a_warning() {
    let config = with_var("{{ .nuon.components.web.digest }}");

    insta::assert_snapshot!(config.faults(), @r"
    warning: `.nuon.components.web.digest` does not exist
     --> components/net.toml:7:9
      |
    7 | x = '{{ .nuon.components.web.digest }}'
      |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: its outputs are below `.nuon.components.web.outputs`
    ");
}

#[test]
fn an_input_one_step_too_high_says_where_it_is() {
    let config = with_var("{{ .nuon.inputs.region }}");

    insta::assert_snapshot!(config.faults(), @r"
    warning: `.nuon.inputs.region` does not exist
     --> components/net.toml:7:9
      |
    7 | x = '{{ .nuon.inputs.region }}'
      |         ^^^^^^^^^^^^^^^^^^^
      |
      = help: write `.nuon.inputs.inputs.region`
    ");
}

#[test]
fn a_reference_to_an_unknown_action_or_secret_names_the_nearest() {
    let config = with_var("{{ .nuon.actions.workflows.chek.outputs.x }}{{ .nuon.secrets.pasword }}")
        .with("actions/check.toml", "name = \"check\"\n[[steps]]\nname = \"s\"\ncommand = \"true\"\n")
        .with("secrets.toml", "[[secret]]\nname = \"password\"\ndescription = \"d\"\n");

    insta::assert_snapshot!(config.faults(), @r"
    error: there is no action `chek`
     --> components/net.toml:7:9
      |
    7 | x = '{{ .nuon.actions.workflows.chek.outputs.x }}{{ .nuon.secrets.pasword }}'
      |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: did you mean `check`?

    error: there is no secret `pasword`
     --> components/net.toml:7:53
      |
    7 | x = '{{ .nuon.actions.workflows.chek.outputs.x }}{{ .nuon.secrets.pasword }}'
      |                                                     ^^^^^^^^^^^^^^^^^^^^^
      |
      = help: did you mean `password`?
    ");
}

#[test]
fn a_cluster_that_metadata_does_not_name_is_an_error() {
    let config = good()
        .with("metadata.toml", "version = \"v2\"\n[[kubernetes_context]]\nname = \"compute\"\ncomponent = \"nte\"\n")
        .with("components/web.toml", &image("web", "kubernetes_context = \"computer\""));

    insta::assert_snapshot!(config.faults(), @r#"
    error: there is no kubernetes context `computer`
     --> components/web.toml:3:22
      |
    3 | kubernetes_context = "computer"
      |                      ^^^^^^^^^^
      |
      = help: did you mean `compute`?

    error: there is no component `nte`
     --> metadata.toml:4:13
      |
    4 | component = "nte"
      |             ^^^^^
      |
      = help: did you mean `net`?
    "#);
}

#[test]
fn a_role_of_an_operation_exists() {
    let config =
        good().with("permissions/d.toml", "type = \"provision\"\nname = \"deployer\"\ndescription = \"d\"\n").with(
            "components/web.toml",
            &(image("web", "") + "[[operation_roles]]\noperation = \"deploy\"\nrole = \"deplyer\"\n"),
        );

    insta::assert_snapshot!(config.faults(), @r#"
    error: there is no role `deplyer`
     --> components/web.toml:9:8
      |
    9 | role = "deplyer"
      |        ^^^^^^^^^
      |
      = help: did you mean `deployer`?
    "#);
}

#[test]
fn the_roles_that_a_person_may_choose_for_an_action_exist() {
    let action = |roles: &str| {
        let action = format!("name = \"a\"\nother_roles = [{roles}]\n[[steps]]\nname = \"s\"\ncommand = \"true\"\n");
        good()
            .with("break_glass.toml", "[[role]]\nname = \"emergency\"\ndescription = \"d\"\n")
            .with("actions/a.toml", &action)
    };

    let known = action("\"emergency\"").load().version.actions.remove(0);

    assert_eq!(known.other_roles, ["emergency"]);
    insta::assert_snapshot!(action("\"emergency\", \"support\"").faults(), @r#"
    error: there is no role `support`
     --> actions/a.toml:2:29
      |
    2 | other_roles = ["emergency", "support"]
      |                             ^^^^^^^^^
      |
      = help: define the role in `permissions/`, or remove the reference to it
    "#);
    let of_template = action("\"{{ .nuon.install.id }}-support\"").check().to_string();
    assert!(of_template.contains("action `a` would run under role `{{ .nuon.install.id }}-support`"), "{of_template}");
}

#[test]
fn a_loop_through_a_cluster_and_a_job_is_printed() {
    let config = good()
        .with("metadata.toml", "version = \"v2\"\n[[kubernetes_context]]\nname = \"c\"\ncomponent = \"net\"\n")
        .with("components/job.toml", "name = \"job\"\ntype = \"job\"\nkubernetes_context = \"c\"\nimage_url = \"x\"\ntag = \"1\"\n")
        .with(
            "components/net.toml",
            "name = \"net\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"./modules/net\"\n[vars]\nx = \"{{ .nuon.components.job.outputs.x }}\"\n",
        );

    insta::assert_snapshot!(config.faults(), @r#"
    error: component `job` depends on itself via `net`
     --> components/job.toml:3:22
      |
    3 | kubernetes_context = "c"
      |                      ^^^
      |
     ::: components/net.toml:6:9
      |
    6 | x = "{{ .nuon.components.job.outputs.x }}"
      |         ------------------------------ `net` needs `job`
      |
      = help: remove one of: job -> net (components/job.toml:3), net -> job (components/net.toml:6)
    "#);
}
