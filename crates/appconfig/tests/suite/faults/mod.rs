//! Faulty configs and the messages about them: the whole text as a person sees it.

mod planted_faults;
mod references;
mod texts;
mod unreadable_files;
mod values;

use crate::config::good;

#[test]
fn a_file_that_is_not_toml_says_where() {
    let config = good().with("components/web.toml", "name = \"web\ntype = 1\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: not TOML: invalid basic string, expected `"`
     --> components/web.toml:1:12
      |
    1 | name = "web
      |            ^
    "#);
}

#[test]
fn a_file_in_another_language_says_how_toml_is_written() {
    let help = |text: &str| {
        let found = good().with("components/web.toml", text).faults().to_string();
        let help = found.lines().find_map(|line| line.split_once("= help: "));
        help.map(|(_, help)| help.to_owned()).unwrap_or(found)
    };

    assert_eq!(help("name = web\n"), "write a text in quotes: `\"...\"`");
    assert_eq!(help("name = “web”\n"), "write straight quotes: `\"...\"`");
    assert_eq!(help("name: \"web\"\n"), "write `=` instead of `:`; config files are TOML, not YAML");
    let json = help("{\"name\": \"web\"}\n");
    assert_eq!(json, "write `key = value` on a line of its own; config files are TOML, not JSON");
}

#[test]
fn a_missing_key_is_named_with_a_line_that_sets_it() {
    let config =
        good().with("components/net.toml", "name = \"net\"\ntype = \"terraform_module\"\nsource = \"./modules/net\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: key `terraform_version` is missing
     --> components/net.toml:1:1
      |
    1 | name = "net"
      | ^
      |
      = help: add `terraform_version = "..."`
    "#);
}

#[test]
fn a_missing_key_of_an_inner_table_marks_the_table() {
    let config = good()
        .with("components/web.toml", "name = \"web\"\ntype = \"container_image\"\n\n[public]\nimage_url = \"x/y\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: key `tag` is missing
     --> components/web.toml:4:1
      |
    4 | [public]
      | ^^^^^^^^
      |
      = help: add `tag = "..."`
    "#);
}

#[test]
fn a_wrong_type_says_what_belongs_there() {
    let config = good().with(
        "components/web.toml",
        "name = 7\ntype = \"container_image\"\n[public]\nimage_url = \"x/y\"\ntag = 1.0\n",
    );

    insta::assert_snapshot!(config.faults(), @r"
    error: `name` is a number
     --> components/web.toml:1:8
      |
    1 | name = 7
      |        ^ expected a string

    error: `tag` is a number
     --> components/web.toml:5:7
      |
    5 | tag = 1.0
      |       ^^^ expected a string
    ");
}

#[test]
fn an_unknown_key_is_a_warning_with_the_nearest_known_one() {
    let config = good().with("metadata.toml", "version = \"v2\"\ndescripton = \"x\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    warning: unknown key `descripton`; it has no effect
     --> metadata.toml:2:1
      |
    2 | descripton = "x"
      | ^^^^^^^^^^
      |
      = help: did you mean `description`?
    "#);
}

#[test]
fn an_unknown_key_like_no_other_lists_the_known_ones() {
    let config = good().with("components/web.toml", "name = \"web\"\ntype = \"container_image\"\n[public]\nimage_url = \"x/y\"\ntag = \"1\"\nplatform = \"arm64\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    warning: unknown key `platform`; it has no effect
     --> components/web.toml:6:1
      |
    6 | platform = "arm64"
      | ^^^^^^^^
      |
      = help: known keys here: image_url, tag
    "#);
}

#[test]
fn an_unknown_component_type_names_the_nearest() {
    let config = good().with("components/web.toml", "name = \"web\"\ntype = \"container_imag\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: `type` is `container_imag`
     --> components/web.toml:2:8
      |
    2 | type = "container_imag"
      |        ^^^^^^^^^^^^^^^^ expected one of `terraform_module`, `container_image`, `cloudformation_stack`, `helm_chart`, `kubernetes_manifest`, `docker_build`, `job`, `pulumi`, `external_image`
      |
      = help: did you mean `container_image`?
    "#);
}

#[test]
fn a_mistyped_key_for_the_type_is_named_where_the_type_is_missing() {
    let config = good().with("components/web.toml", "name = \"web\"\ntyp = \"container_image\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: key `type` is missing, and `typ` is not a key of this file
     --> components/web.toml:2:1
      |
    2 | typ = "container_image"
      | ^^^
      |
      = help: did you mean `type`?
    "#);
}

#[test]
fn a_component_defined_twice_names_both_files() {
    let config = good().with(
        "components/web2.toml",
        "name = \"web\"\ntype = \"container_image\"\n[public]\nimage_url = \"x/y\"\ntag = \"1\"\n",
    );

    insta::assert_snapshot!(config.faults(), @r#"
    error: component `web` is defined twice, in components/web.toml:1 and here
     --> components/web2.toml:1:8
      |
    1 | name = "web"
      |        ^^^^^
      |
     ::: components/web.toml:1:8
      |
    1 | name = "web"
      |        ----- first defined here
      |
      = help: rename one of them, or remove it
    "#);
}

#[test]
fn a_component_without_a_source_lists_the_choices() {
    let config = good()
        .with("components/net.toml", "name = \"net\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: component `net` does not name the source of its module
     --> components/net.toml:2:8
      |
    2 | type = "terraform_module"
      |        ^^^^^^^^^^^^^^^^^^
      |
      = help: add one of `source`, `public_repo`, `connected_repo`
    "#);
}

#[test]
fn a_component_with_two_sources_marks_both() {
    let config = good().with("components/net.toml", "name = \"net\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"./modules/net\"\n[public_repo]\nrepo = \"a/b\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: the module comes from two places
     --> components/net.toml:5:2
      |
    4 | source = "./modules/net"
      | ------ the other key
    5 | [public_repo]
      |  ^^^^^^^^^^^
      |
      = help: keep one of `source`, `public_repo`, `connected_repo`
    "#);
}

#[test]
fn a_source_that_is_not_there_or_outside_is_an_error() {
    let config = good()
        .with("components/net.toml", "name = \"net\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"./modules/nte\"\n")
        .with("components/out.toml", "name = \"out\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"../../elsewhere\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: the source `./modules/nte` cannot be read: it does not exist
     --> components/net.toml:4:10
      |
    4 | source = "./modules/nte"
      |          ^^^^^^^^^^^^^^^
      |
      = help: create the source, or correct the path: it is relative to this file or to the app's directory

    error: `../../elsewhere` is outside of the app's directory
     --> components/out.toml:4:10
      |
    4 | source = "../../elsewhere"
      |          ^^^^^^^^^^^^^^^^^
      |
      = help: move it into the app's directory
    "#);
}

#[test]
fn an_image_cannot_depend_on_an_install() {
    let config = good().with("components/web.toml", "name = \"web\"\ntype = \"container_image\"\n[public]\nimage_url = \"x/y\"\ntag = \"{{ .nuon.inputs.inputs.region }}\"\n");

    insta::assert_snapshot!(config.faults(), @r"
    error: the image and its tag cannot be templates: an image is copied at build time, when no install is known
     --> components/web.toml:3:1
      |
    3 | [public]
      | ^^^^^^^^
      |
      = help: write the image and its tag without templates
    ");
}

#[test]
fn a_length_of_time_is_checked() {
    let config = good()
        .with("actions/a.toml", "name = \"a\"\ntimeout = \"2h\"\n[[steps]]\nname = \"s\"\ncommand = \"true\"\n")
        .with("actions/b.toml", "name = \"b\"\ntimeout = \"soon\"\n[[steps]]\nname = \"s\"\ncommand = \"true\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: `timeout` is 7200 seconds
     --> actions/a.toml:2:11
      |
    2 | timeout = "2h"
      |           ^^^^ expected 1 to 1800 seconds

    error: `timeout` is `soon`
     --> actions/b.toml:2:11
      |
    2 | timeout = "soon"
      |           ^^^^^^ expected a length of time such as `90s`, `5m` or `1h30m`
    "#);
}

#[test]
fn a_trigger_is_known_or_named_with_the_nearest() {
    let config = good().with("actions/a.toml", "name = \"a\"\n[[triggers]]\ntype = \"post-provison\"\n[[triggers]]\ntype = \"cron\"\ncron_schedule = \"0 * * * *\"\n[[triggers]]\ntype = \"post-deploy-component\"\n[[steps]]\nname = \"s\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: there is no trigger `post-provison`
     --> actions/a.toml:3:8
      |
    3 | type = "post-provison"
      |        ^^^^^^^^^^^^^^^
      |
      = help: did you mean `post-provision`?

    error: trigger `post-deploy-component` names no component
     --> actions/a.toml:8:8
      |
    8 | type = "post-deploy-component"
      |        ^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: add `component_name = "..."`

    error: step `s` does nothing
     --> actions/a.toml:9:1
      |
    9 | [[steps]]
      | ^^^^^^^^^
      |
      = help: add `command = "..."` or `inline_contents = "..."`
    "#);
}

#[test]
fn a_policy_document_that_is_not_json_is_placed_in_its_own_file() {
    let config = good()
        .with("permissions/provision.toml", "type = \"provision\"\nname = \"{{ .nuon.install.id }}-p\"\ndescription = \"d\"\n[[policies]]\nname = \"x\"\ncontents = \"./x.json\"\n[[policies]]\nmanaged_policy_name = \"A\"\ncontents = \"{}\"\nname = \"y\"\n")
        .with("permissions/x.json", "{\n  \"Resource\": \"{{ .nuon.install.id }}-*\",\n  \"Action\": [,]\n}\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: the policy has both `managed_policy_name` and `contents`
     --> permissions/provision.toml:7:1
      |
    7 | [[policies]]
      | ^^^^^^^^^^^^ expected either `managed_policy_name`, or `name` and `contents`

    error: the policy document is not JSON: expected value
     --> permissions/x.json:3:14
      |
    3 |   "Action": [,]
      |              ^
    "#);
}

#[test]
fn a_mode_with_two_roles_names_both() {
    let config = good()
        .with("permissions.toml", "[provision_role]\nname = \"p\"\ndescription = \"d\"\n[[provision_role.policies]]\nmanaged_policy_name = \"A\"\n")
        .with("permissions/p.toml", "type = \"provision\"\nname = \"q\"\ndescription = \"d\"\n[[policies]]\nmanaged_policy_name = \"A\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: mode `provision` has two roles, in permissions.toml:2 and here
     --> permissions/p.toml:2:8
      |
    2 | name = "q"
      |        ^^^
      |
     ::: permissions.toml:2:8
      |
    2 | name = "p"
      |        --- first defined here
      |
      = help: merge their policies into one role
    "#);
}

#[test]
fn a_named_file_that_is_not_there_is_an_error() {
    let config = good().with("components/net.toml", "name = \"net\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"./modules/net\"\n[[var_file]]\ncontents = \"./net.tfvars\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: `./net.tfvars` cannot be read: it does not exist
     --> components/net.toml:6:12
      |
    6 | contents = "./net.tfvars"
      |            ^^^^^^^^^^^^^^
      |
      = help: create the file, or correct the path: it is relative to this file or to the app's directory
    "#);
}

#[test]
fn a_folder_of_texts_that_is_not_here_is_an_error_only_for_a_sync() {
    let config = good().with("components/net.toml", "name = \"net\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"./generated/net\"\n[[var_file]]\ncontents = \"./vars/net.tfvars\"\n");

    insta::assert_snapshot!(config.check(), @r#"
    error: the source `./generated/net` cannot be read: it does not exist
     --> components/net.toml:4:10
      |
    4 | source = "./generated/net"
      |          ^^^^^^^^^^^^^^^^^
      |
      = help: create the source, or correct the path: it is relative to this file or to the app's directory

    warning: `./vars/net.tfvars` cannot be read: directory `vars` does not exist
     --> components/net.toml:6:12
      |
    6 | contents = "./vars/net.tfvars"
      |            ^^^^^^^^^^^^^^^^^^^
      |
      = help: a sync needs this directory: fetch or generate it, or correct the path
    "#);
    insta::assert_snapshot!(config.faults(), @r#"
    error: the source `./generated/net` cannot be read: it does not exist
     --> components/net.toml:4:10
      |
    4 | source = "./generated/net"
      |          ^^^^^^^^^^^^^^^^^
      |
      = help: create the source, or correct the path: it is relative to this file or to the app's directory

    error: `./vars/net.tfvars` cannot be read: directory `vars` does not exist
     --> components/net.toml:6:12
      |
    6 | contents = "./vars/net.tfvars"
      |            ^^^^^^^^^^^^^^^^^^^
      |
      = help: a sync needs this directory: fetch or generate it, or correct the path
    "#);
}

#[test]
fn a_template_error_in_a_named_file_is_placed_in_that_file() {
    let config = good()
        .with("components/net.toml", "name = \"net\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"./modules/net\"\n[[var_file]]\ncontents = \"./net.tfvars\"\n")
        .with("components/net.tfvars", "# {{ .nuon.install.id }}\nregion = \"{{ .nuon.inputs.inputs.zone }}\"\n{{ end }}\n");

    insta::assert_snapshot!(config.faults(), @r"
    error: template: `end` closes nothing; remove it, or open `if`, `with` or `range` before
     --> components/net.tfvars:3:4
      |
    3 | {{ end }}
      |    ^
    ");
}

#[test]
fn an_input_is_of_a_known_group_and_its_default_fits() {
    let config = good().with("inputs.toml", "[[group]]\nname = \"main\"\n[[input]]\nname = \"region\"\ndisplay_name = \"R\"\ndescription = \"d\"\ngroup = \"mian\"\ntype = \"number\"\ndefault = \"many\"\n[[input]]\nname = \"j\"\ndisplay_name = \"J\"\ndescription = \"d\"\ngroup = \"main\"\ntype = \"json\"\ndefault = \"{\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: there is no input group `mian`
     --> inputs.toml:7:9
      |
    7 | group = "mian"
      |         ^^^^^^
      |
      = help: did you mean `main`?

    error: the default of input `region` does not fit its type
     --> inputs.toml:9:11
      |
    9 | default = "many"
      |           ^^^^^^ expected a number

    error: the default of input `j` is not JSON: EOF while parsing an object
      --> inputs.toml:16:12
       |
    16 | default = "{"
       |            ^ expected valid JSON
    "#);
}

#[test]
fn an_unknown_root_file_is_a_warning() {
    let config = good().with("metdata.toml", "");

    insta::assert_snapshot!(config.faults(), @r"
    warning: `metdata.toml` is not a known file; it has no effect
    --> metdata.toml
     = help: did you mean `metadata.toml`?
    ");
}

#[test]
fn a_config_without_metadata_says_how_to_begin() {
    let config = good().without("metadata.toml");

    insta::assert_snapshot!(config.faults(), @r#"
    error: the app has no `metadata.toml`
    --> metadata.toml
     = help: create it with `version = "v2"`, and a `display_name` and `description`
    "#);
}

#[test]
fn an_invalid_component_name_says_what_is_valid() {
    let config = good().with(
        "components/web.toml",
        "name = \"we b\"\ntype = \"container_image\"\n[public]\nimage_url = \"x/y\"\ntag = \"1\"\n",
    );

    insta::assert_snapshot!(config.faults(), @r#"
    error: `we b` is not a component name; expected 1 to 64 letters, digits, dashes or underscores, starting with a letter or digit
     --> components/web.toml:1:8
      |
    1 | name = "we b"
      |        ^^^^^^
    "#);
}
