//! Keys that have no effect in their table, and the way out that each warning names.

use freehold_appconfig::Diagnostic;

use crate::config::{Config, good};

const CONTEXT: &str = "version = \"v2\"\n[[kubernetes_context]]\nname = \"main\"\ncomponent = \"net\"\n";

/// Returns each warning about something unused: its file, its line, its message and its help.
fn unused(config: &Config) -> String {
    let is_one = |one: &&Diagnostic| {
        let others = ["not deployed into a cluster", "kubeconfig of this cluster"];
        one.message.ends_with("` has no effect") || others.iter().any(|end| one.message.ends_with(end))
    };
    let line = |one: &Diagnostic| {
        let help = one.help.as_deref().unwrap_or_default();
        format!("{}:{}: {}; {help}", one.file, one.line, one.message)
    };
    config.all().iter().filter(is_one).map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_settings_that_a_type_of_component_does_not_use_are_warnings() {
    let web = r#"name = "web"
type = "container_image"
kubernetes_context = "main"
skip_noops = true
auto_approve_on_policies_passing = true
drift_schedule = "0 3 * * *"
[public]
image_url = "registry.example/web"
tag = "1.0"
[verification]
authorities = [{ public_key = "./key.pub" }]
"#;
    let config = good()
        .with("metadata.toml", CONTEXT)
        .with("components/web.toml", web)
        .with("components/key.pub", "-----BEGIN PUBLIC KEY-----\nQUJD\n-----END PUBLIC KEY-----\n");

    insta::assert_snapshot!(unused(&config), @r#"
    components/web.toml:3: component `web` is a `container_image`, which is not deployed into a cluster; remove `kubernetes_context`, or write `dependencies = ["net"]` instead
    components/web.toml:4: `skip_noops` has no effect; a component of type `container_image` has no plan; remove it
    components/web.toml:5: `auto_approve_on_policies_passing` has no effect; a component of type `container_image` has no plan; remove it
    components/web.toml:6: `drift_schedule` has no effect; an image is named by its digest and does not change; remove it
    components/web.toml:11: `authorities` has no effect; a build checks signatures only with `require_signature = true`
    "#);
}

#[test]
fn a_schedule_that_is_a_template_and_a_key_of_another_type_of_probe_are_warnings() {
    let net = r#"name = "net"
type = "terraform_module"
terraform_version = "1.11.3"
source = "./modules/net"
skip_noops = true
drift_schedule = "{{ .nuon.install.id }}"
[health]
schedule = "{{ .nuon.install.id }}"
[[health.probes]]
type = "http"
url = "https://net.example/"
command = ["true"]
[[health.probes]]
type = "exec"
command = ["true"]
url = "https://net.example/"
"#;

    insta::assert_snapshot!(unused(&good().with("components/net.toml", net)), @r"
    components/net.toml:6: `drift_schedule` has no effect; a schedule is not a template; write five cron fields, such as `0 3 * * *`
    components/net.toml:8: `schedule` has no effect; a schedule is not a template; write five cron fields, such as `0 3 * * *`
    components/net.toml:12: `command` has no effect; a probe of type `http` does not use it; remove it
    components/net.toml:16: `url` has no effect; a probe of type `exec` does not use it; remove it
    ");
}

#[test]
fn a_sandbox_of_pulumi_is_not_checked_for_drift() {
    let sandbox = |keys: &str| {
        let text = format!("{keys}\ndrift_schedule = \"0 3 * * *\"\n[public_repo]\nrepo = \"acme/sandbox\"\n");
        unused(&good().with("sandbox.toml", &text))
    };

    assert_eq!(sandbox("terraform_version = \"1.11.3\""), "");
    assert_eq!(
        sandbox("type = \"pulumi\"\nruntime = \"go\""),
        "sandbox.toml:3: `drift_schedule` has no effect; a preview compares the program with its state, and does not see \
         resources that were changed outside; remove it"
    );
}

#[test]
fn more_retries_than_there_are_is_a_warning() {
    let retries = |count: u32| {
        let keys = format!("terraform_version = \"1.11.3\"\nsource = \"./modules/net\"\nmax_auto_retries = {count}\n");
        let found = good().with("components/net.toml", &format!("name = \"net\"\ntype = \"terraform_module\"\n{keys}"));
        found.faults().iter().map(|one| one.message.clone()).collect::<Vec<_>>()
    };

    assert_eq!(retries(10), [""; 0]);
    assert_eq!(retries(11), ["`max_auto_retries` is 11, and a failed deploy is retried at most 10 times"]);
}

#[test]
fn the_keys_of_an_action_that_another_key_replaces_are_warnings() {
    let action = r#"name = "a"
role = "{{ .nuon.install.id }}-a"
break_glass_role = "{{ .nuon.install.id }}-b"
kubernetes_context = "main"
[[triggers]]
type = "post-provision"
component_name = "web"
[[triggers]]
type = "post-deploy-component"
component_name = "web"
[[steps]]
name = "s"
command = "true"
"#;
    let config = |text: &str| good().with("metadata.toml", CONTEXT).with("actions/a.toml", text);

    insta::assert_snapshot!(unused(&config(action)), @r"
    actions/a.toml:2: `role` has no effect; `break_glass_role` takes precedence; keep one of them
    actions/a.toml:4: no step of the action gets a kubeconfig of this cluster; add `enable_kube_config = true`, or remove `kubernetes_context`
    actions/a.toml:7: `component_name` has no effect; trigger `post-provision` is not about one component; remove it
    ");
    let of_step = action.replace("command = \"true\"", "command = \"true\"\nenable_kube_config = true");
    assert!(!unused(&config(&of_step)).contains("kubeconfig"), "{}", unused(&config(&of_step)));
}

#[test]
fn the_keys_that_a_type_of_step_does_not_use_are_warnings() {
    let runbook = r#"name = "r"
[[steps]]
type = "component_tear_down"
component_name = "web"
deploy_dependencies = true
[[steps]]
type = "sandbox_deprovision"
skip_component_deploys = true
[[steps]]
type = "action"
action_name = "a"
timeout = "1m"
env_vars = { A = "b" }
[[steps]]
type = "command"
command = "true"
timeout = "1m"
component_name = "web"
[[steps]]
type = "sandbox_reprovision"
skip_component_deploys = true
"#;
    let action = "name = \"a\"\n[[steps]]\nname = \"s\"\ncommand = \"true\"\n";
    let config = good().with("actions/a.toml", action).with("runbooks/r.toml", runbook);

    insta::assert_snapshot!(unused(&config), @r"
    runbooks/r.toml:5: `deploy_dependencies` has no effect; a step of type `component_tear_down` does not use it; remove it
    runbooks/r.toml:8: `skip_component_deploys` has no effect; a step of type `sandbox_deprovision` does not use it; remove it
    runbooks/r.toml:12: `timeout` has no effect; the action in `action_name` has its own; remove it
    runbooks/r.toml:13: `env_vars` has no effect; the action in `action_name` has its own; remove it
    runbooks/r.toml:18: `component_name` has no effect; a step of type `command` does not use it; remove it
    ");
}

/// A role for emergencies, with every key that the place of the role decides.
const EMERGENCY: &str = r#"[[role]]
name = "emergency"
description = "d"
type = "custom"
enabled_in_stack = true
cloud_platform = "azure"
"#;

/// Two roles of modes and one custom role.
const ROLES: &str = r#"[deprovision_role]
name = "d"
description = "d"
type = "provision"
enabled_in_stack = true
[provision_role]
name = "p"
description = "d"
type = "provision"
enabled_in_stack = false
[[provision_role.policies]]
managed_policy_name = "ReadOnlyAccess"
azure_actions = ["*/read"]
[[custom_roles]]
name = "c"
description = "d"
enabled_in_stack = false
cloud_platform = "aws"
"#;

#[test]
fn what_the_place_of_a_role_or_the_cloud_of_the_stack_decides_is_a_warning() {
    let stack = "type = \"aws-cloudformation\"\nname = \"n\"\ndescription = \"d\"\n";
    let config = |stack: &str| {
        good()
            .with("break_glass.toml", EMERGENCY)
            .with("permissions.toml", ROLES)
            .with("runner.toml", "runner_type = \"gcp\"\n")
            .with("stack.toml", stack)
    };

    insta::assert_snapshot!(unused(&config(stack)), @r#"
    break_glass.toml:4: `type = "custom"` has no effect; its table or file makes it a break-glass role; remove `type`, or write the role under `[[roles]]`
    break_glass.toml:5: `enabled_in_stack` has no effect; a break-glass role is off in a new install stack until the customer switches it on
    break_glass.toml:6: `cloud_platform = "azure"` has no effect; `stack.toml` is of type `aws-cloudformation`, and everything of an install is in one cloud
    permissions.toml:4: `type = "provision"` has no effect; its table or file makes it the role of mode `deprovision`; remove `type`, or write the role under `[[roles]]`
    permissions.toml:5: `enabled_in_stack` has no effect; the role of mode `deprovision` is off in a new install stack until the customer switches it on
    permissions.toml:10: `enabled_in_stack` has no effect; the role of mode `provision` is on in a new install stack until the customer switches it off
    permissions.toml:13: `azure_actions` has no effect; the roles of an install are in AWS; remove it
    runner.toml:1: `runner_type = "gcp"` has no effect; `stack.toml` is of type `aws-cloudformation`, and everything of an install is in one cloud
    "#);
    let elsewhere = unused(&config(&stack.replace("aws-cloudformation", "gcp-terraform")));
    assert!(!elsewhere.contains("cloud_platform") && !elsewhere.contains("runner_type"), "{elsewhere}");
}

#[test]
fn who_gives_the_value_of_a_secret_is_not_a_setting() {
    let secret = |keys: &str| {
        unused(&good().with("secrets.toml", &format!("[[secret]]\nname = \"a\"\ndescription = \"d\"\n{keys}\n")))
    };

    assert_eq!(secret("user_configurable = true"), "");
    assert_eq!(secret("user_configurable = false\nauto_generate = true"), "");
    assert_eq!(
        secret("user_configurable = false"),
        "secrets.toml:4: `user_configurable = false` has no effect; the customer enters each secret that the install stack \
         does not generate (`auto_generate = true`)"
    );
    assert_eq!(
        secret("user_configurable = true\nauto_generate = true"),
        "secrets.toml:4: `user_configurable = true` has no effect; the install stack generates the value; remove \
         `auto_generate` to let the customer enter it"
    );
}
