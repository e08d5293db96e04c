//! What is said about the Terraform modules beside a config.

use crate::config::{Config, good};

fn module(files: &[(&str, &str)]) -> Config {
    let net =
        "name = \"net\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"./modules/own\"\n";
    files.iter().fold(good().with("components/net.toml", net), |config, (path, text)| config.with(path, text))
}

#[test]
fn an_unclosed_block_is_marked_in_its_file() {
    let config = module(&[("modules/own/main.tf", "# é\nresource \"aws_sqs_queue\" \"jobs\" {\n  name = \"jobs\"\n")]);

    insta::assert_snapshot!(config.check(), @r#"
    error: not Terraform: `{` is never closed
     --> modules/own/main.tf:2:33
      |
    2 | resource "aws_sqs_queue" "jobs" {
      |                                 ^
      |
      = help: close it with `}`
    "#);
    assert_eq!(config.check(), config.faults());
}

#[test]
fn a_mistake_in_the_middle_is_marked_there() {
    let config = module(&[("modules/own/main.tf", "locals {\n  a = [1, 2\n  b = 3\n}\n")]);

    insta::assert_snapshot!(config.check(), @r"
    error: not Terraform: `b` does not belong here
     --> modules/own/main.tf:3:3
      |
    3 |   b = 3
      |   ^ expected `]`
    ");
}

#[test]
fn a_json_module_is_json() {
    let config = module(&[("modules/own/main.tf.json", "{\"variable\": {\n  \"a\": }\n}")]);

    insta::assert_snapshot!(config.check(), @r#"
    error: not JSON: expected value
     --> modules/own/main.tf.json:2:8
      |
    2 |   "a": }
      |        ^
    "#);
}

#[test]
fn a_folder_without_a_module_is_an_error_that_names_the_nearest_one() {
    let empty = module(&[("modules/own/README.md", "x"), ("modules/own/.main.tf", "a {")]);
    let below = module(&[("modules/own/aws/main.tf", "")]);

    insta::assert_snapshot!(empty.check(), @r#"
    error: the module in `modules/own` has no `.tf` file
     --> components/net.toml:4:10
      |
    4 | source = "./modules/own"
      |          ^^^^^^^^^^^^^^^
      |
      = help: write its files there, such as `main.tf`, or correct the path
    "#);
    insta::assert_snapshot!(below.check(), @r#"
    error: the module in `modules/own` has no `.tf` file
     --> components/net.toml:4:10
      |
    4 | source = "./modules/own"
      |          ^^^^^^^^^^^^^^^
      |
      = help: did you mean `./modules/own/aws`?
    "#);
}

#[test]
fn a_folder_that_is_not_there_is_an_error_for_a_check_too() {
    let config = good().with(
        "components/net.toml",
        "name = \"net\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"./generated/net\"\n",
    );

    insta::assert_snapshot!(config.check(), @r#"
    error: the source `./generated/net` cannot be read: it does not exist
     --> components/net.toml:4:10
      |
    4 | source = "./generated/net"
      |          ^^^^^^^^^^^^^^^^^
      |
      = help: create the source, or correct the path: it is relative to this file or to the app's directory
    "#);
}

#[test]
fn a_module_that_is_called_is_looked_at_and_must_be_in_the_source() {
    let config = module(&[
        (
            "modules/own/main.tf",
            "module \"a\" {\n  source = \"./a\"\n}\nmodule \"b\" {\n  source = \"./b\"\n}\nmodule \"c\" {\n  source = \"../c\"\n}\nmodule \"d\" {\n  source = \"hashicorp/consul/aws\"\n}\n",
        ),
        ("modules/own/a/main.tf", "module \"self\" {\n  source = \"../a\"\n}\nx = {\n"),
        ("modules/own/unused/main.tf", "x = {\n"),
        ("modules/c/main.tf", ""),
    ]);

    insta::assert_snapshot!(config.check(), @r#"
    error: not Terraform: `{` is never closed
     --> modules/own/a/main.tf:4:5
      |
    4 | x = {
      |     ^
      |
      = help: close it with `}`

    error: the module in `modules/own/b` does not exist
     --> modules/own/main.tf:5:12
      |
    5 |   source = "./b"
      |            ^^^^^
      |
      = help: write its files there, such as `main.tf`, or correct the path

    error: module `../c` is outside of the source `./modules/own`, and only the source is packed
     --> modules/own/main.tf:8:12
      |
    8 |   source = "../c"
      |            ^^^^^^
      |
      = help: move the module into the source, or name a source directory that contains it
    "#);
}

#[test]
fn variables_without_a_value_and_values_without_a_variable_are_named() {
    let config = module(&[
        (
            "modules/own/main.tf",
            "variable \"region\" {}\nvariable \"size\" {}\nvariable \"tags\" {\n  default = {}\n}\n",
        ),
        (
            "components/net.toml",
            "name = \"net\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"./modules/own\"\n[vars]\nregoin = \"x\"\n[env_vars]\nTF_VAR_size = \"3\"\n",
        ),
    ]);

    insta::assert_snapshot!(config.check(), @r#"
    error: the module in `modules/own` needs variable `region`, but the config has no value for it
     --> components/net.toml:5:2
      |
    5 | [vars]
      |  ^^^^
      |
     ::: modules/own/main.tf:1:10
      |
    1 | variable "region" {}
      |          -------- declared here without a default
      |
      = help: add `region = "..."` to `[vars]`, or give the variable a default

    warning: the module in `modules/own` has no variable `regoin`; the value has no effect
     --> components/net.toml:6:1
      |
    6 | regoin = "x"
      | ^^^^^^
      |
      = help: did you mean `region`?
    "#);
}

#[test]
fn values_may_come_from_files_and_from_overrides() {
    let declared = ("modules/own/main.tf", "variable \"size\" {}\n");

    let own = module(&[declared, ("modules/own/prod.auto.tfvars", "size = 3\n")]);
    let overridden = module(&[declared, ("modules/own/override.tf", "variable \"size\" {\n  default = 3\n}\n")]);

    assert!(own.check().is_empty() && overridden.check().is_empty(), "{} {}", own.check(), overridden.check());
}

#[test]
fn a_file_that_is_not_text_is_an_error_and_a_huge_one_is_not_looked_at() {
    let config = module(&[("modules/own/main.tf", "")]);
    std::fs::write(config.dir.join("modules/own/bad.tf"), [b'a', 0xff]).unwrap();
    std::fs::write(config.dir.join("modules/own/huge.tf"), vec![b'#'; 5 * 1024 * 1024]).unwrap();

    insta::assert_snapshot!(config.check(), @r#"
    error: `modules/own/bad.tf` of the source `./modules/own` cannot be read: it is not UTF-8 text, because of a byte in line 1
     --> components/net.toml:4:10
      |
    4 | source = "./modules/own"
      |          ^^^^^^^^^^^^^^^
      |
      = help: correct the file, or remove it from the source

    warning: `modules/own/huge.tf` of the source `./modules/own` cannot be read: it is larger than 4194304 bytes
     --> components/net.toml:4:10
      |
    4 | source = "./modules/own"
      |          ^^^^^^^^^^^^^^^
      |
      = help: make the file smaller, or remove it from the source
    "#);
}

#[cfg(unix)]
#[test]
fn a_link_is_followed_inside_of_the_app_only() {
    let config = module(&[("modules/own/main.tf", ""), ("modules/own/shared/vars.tf.part", "x = {\n")]);
    std::os::unix::fs::symlink("shared/vars.tf.part", config.dir.join("modules/own/vars.tf")).unwrap();
    std::os::unix::fs::symlink("gone", config.dir.join("modules/own/gone.tf")).unwrap();

    insta::assert_snapshot!(config.check(), @r#"
    error: `modules/own/gone.tf` of the source `./modules/own` cannot be read: it does not exist
     --> components/net.toml:4:10
      |
    4 | source = "./modules/own"
      |          ^^^^^^^^^^^^^^^
      |
      = help: correct the file, or remove it from the source

    error: not Terraform: `{` is never closed
     --> modules/own/shared/vars.tf.part:1:5
      |
    1 | x = {
      |     ^
      |
      = help: close it with `}`
    "#);
}

#[test]
fn a_file_as_terraform_takes_it_is_not_a_mistake() {
    let text = "\u{feff}terraform {\r\n  required_version = \">= 1.5\"\r\n}\r\nlocals {\r\n  a = provider::aws::arn_parse(var.x)\r\n  b = <<-EOT\r\n    %{ for k in [1] ~}\r\n    ${k}\r\n    %{ endfor ~}\r\n  EOT\r\n  c = { for k, v in var.m : k => v... if v != null }\r\n  d = var.x[*].id\r\n  e = var.x.*.id\r\n}\r\n";

    let declared = "variable \"x\" {\n  default = []\n}\nvariable \"m\" {\n  default = {}\n}\n";

    let config = module(&[("modules/own/main.tf", text), ("modules/own/variables.tf", declared)]);

    assert!(config.check().is_empty(), "{}", config.check());
}

#[test]
fn what_is_given_twice_and_an_open_heredoc_are_said_as_that() {
    let error_of = |text: &str| {
        let found = module(&[("modules/own/main.tf", text)]).check();
        found
            .iter()
            .map(|one| format!("{:?} {}: {}", one.severity, one.line, one.message))
            .collect::<Vec<_>>()
            .join("; ")
    };

    assert_eq!(error_of("locals {\n  a = 1\n  a = 2\n}\n"), "Error 3: not Terraform: an attribute is given twice");
    assert_eq!(
        error_of("locals {\n  a = { b = 1, b = 2 }\n}\n"),
        "Warning 2: a key of an object is given twice; the last one counts"
    );
    assert_eq!(error_of("locals {\n  a = <<EOT\n x\n}\n"), "Error 2: not Terraform: the heredoc is never closed");
}

#[test]
fn hostile_modules_are_refused_at_once() {
    for text in ["x = <<EOT\n".repeat(100_000), "{a=".repeat(100_000), "x = \"${".repeat(10_000), "a {".repeat(100_000)]
    {
        let found = module(&[("modules/own/main.tf", &text)]).check();

        assert_eq!(found.iter().count(), 1, "{found}");
    }
}

#[test]
fn a_provider_is_pinned_beside_the_module() {
    let main = (
        "modules/own/main.tf",
        "module \"queue\" {\n  source = \"./queue\"\n}\nresource \"terraform_data\" \"a\" {}\n",
    );
    let queue = ("modules/own/queue/main.tf", "resource \"aws_sqs_queue\" \"jobs\" {}\n");
    let required = (
        "modules/own/main.tf",
        "terraform {\n  required_providers {\n    fake = { source = \"example.com/acme/fake\" }\n  }\n}\n",
    );

    insta::assert_snapshot!(module(&[main, queue]).check(), @r#"
    warning: the module in `modules/own` needs a provider, and has no `.terraform.lock.hcl` that pins it: each build takes the newest version
     --> modules/own/queue/main.tf:1:10
      |
    1 | resource "aws_sqs_queue" "jobs" {}
      |          ^^^^^^^^^^^^^^^
      |
      = help: run `terraform providers lock -platform=linux_amd64 -platform=linux_arm64` in the module, and keep the file that it writes
    "#);
    let text = module(&[required]).check().to_string();
    assert!(text.contains("modules/own/main.tf:3:5"), "{text}");
    let net =
        "name = \"net\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"./modules/own\"\n";
    let fetching = module(&[main, queue]).with("components/net.toml", &format!("{net}providers = \"registry\"\n"));
    let text = fetching.check().to_string();
    assert!(text.starts_with("error: the module in `modules/own` needs a provider, and has no"), "{text}");
    assert!(text.contains("or remove `providers`: each build then pins and packs the provider"), "{text}");
    let locked = module(&[main, queue, ("modules/own/.terraform.lock.hcl", "")]);
    assert_eq!(locked.check().to_string(), "");
}

#[test]
fn a_variable_that_could_undo_the_lock_file_is_refused() {
    let net = "name = \"net\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"./modules/own\"\n\
               [env_vars]\nTF_LOG = \"debug\"\nTF_REATTACH_PROVIDERS = \"{}\"\nGIT_SSH_COMMAND = \"sh -c x\"\nAWS_CONFIG_FILE = \"aws.cfg\"\n";
    let config = good().with("components/net.toml", net).with("modules/own/main.tf", "locals {}\n");

    insta::assert_snapshot!(config.check(), @r#"
    error: environment variable `TF_REATTACH_PROVIDERS` may make Terraform take other providers than the module pins, run other programs, or write other files, so it is refused
     --> components/net.toml:7:1
      |
    7 | TF_REATTACH_PROVIDERS = "{}"
      | ^^^^^^^^^^^^^^^^^^^^^
      |
      = help: remove it from `env_vars`; pass values to the module with `vars`; the customer configures a mirror of providers on the runner's machine

    error: environment variable `GIT_SSH_COMMAND` may make Terraform take other providers than the module pins, run other programs, or write other files, so it is refused
     --> components/net.toml:8:1
      |
    8 | GIT_SSH_COMMAND = "sh -c x"
      | ^^^^^^^^^^^^^^^
      |
      = help: remove it from `env_vars`; pass values to the module with `vars`; the customer configures a mirror of providers on the runner's machine

    error: environment variable `AWS_CONFIG_FILE` may make Terraform take other providers than the module pins, run other programs, or write other files, so it is refused
     --> components/net.toml:9:1
      |
    9 | AWS_CONFIG_FILE = "aws.cfg"
      | ^^^^^^^^^^^^^^^
      |
      = help: remove it from `env_vars`; pass values to the module with `vars`; the customer configures a mirror of providers on the runner's machine
    "#);
}

#[test]
fn a_variable_that_no_file_of_its_module_declares_is_a_warning() {
    let main = "variable \"region\" {\n  default = \"\"\n}\n\nlocals {\n  a = \"${var.regoin}-${var.region}\"\n  b = var.absent\n  c = var.other\n}\n\nmodule \"in\" {\n  source = \"./in\"\n}\n";
    let config = module(&[
        ("modules/own/main.tf", main),
        ("modules/own/other.tf", "variable \"other\" {\n  default = 1\n}\n"),
        ("modules/own/in/main.tf", "output \"x\" {\n  value = var.region\n}\n"),
    ]);

    insta::assert_snapshot!(config.check(), @r#"
    warning: the module in `modules/own/in` reads `var.region`, which none of its files declares
     --> modules/own/in/main.tf:2:11
      |
    2 |   value = var.region
      |           ^^^
      |
      = help: declare it: `variable "region" {}`, or correct the name

    warning: the module in `modules/own` reads `var.regoin`, which none of its files declares
     --> modules/own/main.tf:6:10
      |
    6 |   a = "${var.regoin}-${var.region}"
      |          ^^^
      |
      = help: did you mean `region`?

    warning: the module in `modules/own` reads `var.absent`, which none of its files declares
     --> modules/own/main.tf:7:7
      |
    7 |   b = var.absent
      |       ^^^
      |
      = help: declare it: `variable "absent" {}`, or correct the name
    "#);
    let with_json = config.with("modules/own/more.tf.json", "{}").with("modules/own/in/more.tf.json", "{}");
    assert_eq!(with_json.check().to_string(), "");
}
