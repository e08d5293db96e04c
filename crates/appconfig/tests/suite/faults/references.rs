//! The messages about names that nothing has, and about dependencies that form a loop.

use crate::config::good;

#[test]
fn an_unknown_dependency_names_the_nearest_component() {
    let config = good().with("components/api.toml", "name = \"api\"\ntype = \"container_image\"\ndependencies = [\"net\", \"wbe\"]\n[public]\nimage_url = \"x/y\"\ntag = \"1\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: there is no component `wbe`
     --> components/api.toml:3:24
      |
    3 | dependencies = ["net", "wbe"]
      |                        ^^^^^
      |
      = help: did you mean `web`?
    "#);
}

#[test]
fn an_unknown_component_in_a_trigger_is_an_error() {
    let config = good().with("actions/a.toml", "name = \"a\"\n[[triggers]]\ntype = \"post-deploy-component\"\ncomponent_name = \"databse\"\n[[steps]]\nname = \"s\"\ncommand = \"true\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: there is no component `databse`
     --> actions/a.toml:4:18
      |
    4 | component_name = "databse"
      |                  ^^^^^^^^^
      |
      = help: define the component in `components/`, or remove the reference to it
    "#);
}

#[test]
fn a_template_error_is_placed_inside_the_value() {
    let config = good().with("components/net.toml", "name = \"net\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"./modules/net\"\n\n[vars]\na = \"\\\"é\\\" {{ uper .nuon.install.id }}\"\nb = '''\nfirst\n{{ if .nuon.install.id }}\n'''\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: template: there is no function `uper`; did you mean `upper`?
     --> components/net.toml:7:15
      |
    7 | a = "\"é\" {{ uper .nuon.install.id }}"
      |               ^

    error: template: `if` is never closed; add `{{ end }}`
      --> components/net.toml:10:1
       |
    10 | {{ if .nuon.install.id }}
       | ^
    "#);
}

#[test]
fn a_reference_to_an_unknown_input_names_the_nearest() {
    let config = good().with("components/net.toml", "name = \"net\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"./modules/net\"\n\n[vars]\nregion = \"x {{ .nuon.inputs.inputs.regoin }}\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: there is no input `regoin`
     --> components/net.toml:7:16
      |
    7 | region = "x {{ .nuon.inputs.inputs.regoin }}"
      |                ^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: did you mean `region`?
    "#);
}

#[test]
fn a_reference_to_an_unknown_component_is_an_error() {
    let config = good().with("components/net.toml", "name = \"net\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"./modules/net\"\n\n[vars]\nx = \"{{ index .nuon.components \\\"database\\\" \\\"outputs\\\" \\\"url\\\" }}\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: there is no component `database`
     --> components/net.toml:7:15
      |
    7 | x = "{{ index .nuon.components \"database\" \"outputs\" \"url\" }}"
      |               ^^^^^^^^^^^^^^^^
      |
      = help: define the component in `components/`, or remove the reference to it
    "#);
}

#[test]
fn a_reference_outside_of_the_tree_says_how_to_write_it() {
    let config = good().with("components/net.toml", "name = \"net\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"./modules/net\"\n\n[vars]\nx = \"{{ .install.id }}{{ .nuon.instal.id }}\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: `.install.id` does not exist in templates; all values are below `.nuon`
     --> components/net.toml:7:9
      |
    7 | x = "{{ .install.id }}{{ .nuon.instal.id }}"
      |         ^^^^^^^^^^^
      |
      = help: write `.nuon.install.id`

    warning: `.nuon.instal` does not exist
     --> components/net.toml:7:26
      |
    7 | x = "{{ .install.id }}{{ .nuon.instal.id }}"
      |                          ^^^^^^^^^^^^^^^
      |
      = help: did you mean `.nuon.install`?
    "#);
}

#[test]
fn an_output_that_no_install_stack_has_is_a_warning_unless_it_has_a_default() {
    let config = good().with("components/net.toml", "name = \"net\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"./modules/net\"\n\n[vars]\nx = \"{{ .nuon.install_stack.outputs.vpcid }}{{ .nuon.install_stack.outputs.vpc_id }}{{ .nuon.install_stack.outputs.key | default \\\"\\\" }}\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    warning: no install stack has an output `vpcid`
     --> components/net.toml:7:9
      |
    7 | x = "{{ .nuon.install_stack.outputs.vpcid }}{{ .nuon.install_stack.outputs.vpc_id }}{{ .nuon.install_stack.outputs.key | default \"\"...
      |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: did you mean `vpc_id`?
    "#);
}

#[test]
fn a_dependency_cycle_is_printed_as_a_loop() {
    let config = good()
        .with("components/a.toml", "name = \"a\"\ntype = \"container_image\"\ndependencies = [\"b\"]\n[public]\nimage_url = \"x/y\"\ntag = \"1\"\n")
        .with("components/b.toml", "name = \"b\"\ntype = \"container_image\"\ndependencies = [\"web\", \"c\"]\n[public]\nimage_url = \"x/y\"\ntag = \"1\"\n")
        .with("components/c.toml", "name = \"c\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"./modules/net\"\n[vars]\nx = \"{{ .nuon.components.a.outputs.digest }}\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: component `a` depends on itself via `b`, `c`
     --> components/a.toml:3:17
      |
    3 | dependencies = ["b"]
      |                 ^^^
      |
     ::: components/b.toml:3:24
      |
    3 | dependencies = ["web", "c"]
      |                        --- `b` needs `c`
      |
     ::: components/c.toml:6:9
      |
    6 | x = "{{ .nuon.components.a.outputs.digest }}"
      |         --------------------------------- `c` needs `a`
      |
      = help: remove one of: a -> b (components/a.toml:3), b -> c (components/b.toml:3), c -> a (components/c.toml:6)
    "#);
}

#[test]
fn a_component_that_needs_itself_is_a_cycle() {
    let config = good().with("components/net.toml", "name = \"net\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"./modules/net\"\n\n[vars]\nx = \"{{ .nuon.components.net.outputs.id }}\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: component `net` depends on itself
     --> components/net.toml:7:9
      |
    7 | x = "{{ .nuon.components.net.outputs.id }}"
      |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: remove one of: net -> net (components/net.toml:7)
    "#);
}
