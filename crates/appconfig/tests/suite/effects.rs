//! Warnings about parts of a config that Freehold reads and does not act on, and about apps that it cannot deploy.

use freehold_appconfig::Diagnostics;

use crate::config::{Config, good, is_of_programs};

/// Returns a config whose component `web` has more keys.
fn with_web(keys: &str) -> Config {
    let image = "[public]\nimage_url = \"registry.example/web\"\ntag = \"1.0\"\n";
    good().with("components/web.toml", &format!("name = \"web\"\ntype = \"container_image\"\n{keys}\n{image}"))
}

/// The findings with file and line, without the warning that jobs need a program.
fn lines(found: &Diagnostics) -> String {
    let line = |one: &freehold_appconfig::Diagnostic| format!("{}:{}: {}", one.file, one.line, one.message);
    found.iter().filter(|one| !is_of_programs(&one.message)).map(line).collect::<Vec<_>>().join("\n")
}

fn shown(config: &Config) -> Diagnostics {
    config.all().filter(|one| !is_of_programs(&one.message))
}

#[test]
fn a_key_and_a_file_without_effect_are_warnings_with_their_line() {
    let stack =
        "type = \"aws-cloudformation\"\nname = \"shop\"\ndescription = \"The shop\"\ndeployment_scope = \"x\"\n";
    let config = with_web("labels = { tier = \"web\" }\n[health]\nblock_deploy = true\n")
        .with("stack.toml", stack)
        .with("metadata.toml", "version = \"v2\"\nslack_webhook_url = \"https://hooks.example\"\n")
        .with("runner.toml", "runner_type = \"aws\"\ninstance_type = \"t3a.large\"\n")
        .with("installer.toml", "name = \"x\"\n")
        .with("policies.toml", "[[policy]]\ntype = \"kubernetes_cluster\"\ncontents = \"a: 1\"\n");

    insta::assert_snapshot!(lines(&config.all()), @r"
    components/web.toml:4: `health` has no effect: a component of type `container_image` is checked by probes only
    installer.toml:1: `installer.toml` has no effect
    metadata.toml:2: `slack_webhook_url` has no effect
    policies.toml:3: the policy has no `apiVersion`
    runner.toml:2: the runner's machine is of type `t4g.large`, and not `t3a.large`
    stack.toml:4: `deployment_scope` has no effect
    ");
}

#[test]
fn files_and_keys_of_other_tools_are_known() {
    let secret = "name = \"s\"\ndescription = \"d\"\n[[kubernetes_sync_targets]]\nname = \"s\"\nkey = \"k\"\n";
    let config = good()
        .with("events.toml", "[[rules]]\nname = \"tag\"\ntrigger = \"registry\"\n")
        .with("installs.toml", "[connected_repo]\nrepo = \"acme/fleet\"\n")
        .with("installs/one.toml", "name = \"one\"\napp_branch = \"main\"\n")
        .with("secrets/s.toml", secret);

    insta::assert_snapshot!(lines(&config.all()), @r"
    events.toml:1: `events.toml` has no effect
    installs.toml:1: `installs.toml` has no effect
    installs/one.toml:2: `app_branch` has no effect
    secrets/s.toml:3: `kubernetes_sync_targets` has no effect
    ");
}

#[test]
fn a_word_without_effect_is_a_warning_and_the_other_words_are_not() {
    let driver = |word: &str| {
        let runner = format!("runner_type = \"aws\"\nhelm_driver = \"{word}\"\n");
        lines(&good().with("runner.toml", &runner).all())
    };

    assert_eq!(driver("nuon"), "runner.toml:2: `helm_driver = \"nuon\"` has no effect");
    assert_eq!(driver("secret"), "");
}

#[test]
fn a_trigger_on_the_switch_of_a_role_has_an_effect() {
    let triggers = "[[triggers]]\ntype = \"role-enabled\"\n[[triggers]]\ntype = \"role-disabled\"\n";
    let action = format!("name = \"a\"\n{triggers}[[steps]]\nname = \"s\"\ncommand = \"true\"\n");

    assert_eq!(lines(&good().with("actions/a.toml", &action).all()), "");
}

#[test]
fn of_a_branch_only_the_runbooks_after_a_deploy_have_an_effect() {
    let branch = "name = \"main\"\ninstalls_directory = \"x\"\npost_deploy_runbooks = [\"r\"]\n[run]\nx = 1\n";
    let runbook = "name = \"r\"\n[[steps]]\nname = \"s\"\ntype = \"component_deploy\"\ncomponent_name = \"web\"\n";
    let config = good().with("runbooks/r.toml", runbook).with("branch.toml", branch);

    assert_eq!(
        lines(&config.all()),
        "branch.toml:2: `installs_directory` has no effect\nbranch.toml:4: `run` has no effect"
    );
}

#[test]
fn keys_of_other_tools_name_the_way_out() {
    let nested =
        "custom_nested_stacks = [{ name = \"queue\", template_url = \"https://templates.example/queue.yaml\" }]\n";
    let chart = "name = \"shop\"\ntype = \"helm_chart\"\nchart_name = \"shop\"\nstorage_driver = \"nuon\"\n\
                 [helm_repo]\nrepo_url = \"https://charts.example\"\nchart = \"shop\"\n";
    let config = good()
        .with_sandbox()
        .with("stack.toml", &format!("type = \"aws-cloudformation\"\nname = \"n\"\ndescription = \"d\"\n{nested}"))
        .with("runner.toml", "runner_type = \"aws\"\nhelm_driver = \"nuon\"\n")
        .with("components/shop.toml", chart)
        .with("branch.toml", "[[install_groups]]\nname = \"early\"\ninstall_names = [\"a1\"]\n")
        .with(
            "installs/a1.toml",
            "name = \"a1\"\n[aws_account]\nregion = \"eu-west-1\"\n[stack_overrides]\nname = \"n\"\n",
        );
    let line = |one: &freehold_appconfig::Diagnostic| {
        format!("{}:{}: {}; {}", one.file, one.line, one.message, one.help.as_deref().unwrap_or_default())
    };

    let all = config.all();
    let found = all.iter().filter(|one| one.message.ends_with("` has no effect")).map(line);

    insta::assert_snapshot!(found.collect::<Vec<_>>().join("\n"), @r#"
    branch.toml:1: `install_groups` has no effect; let the installs of each group follow a channel (`freehold install release INSTALL --channel GROUP`), and move one channel after another (`freehold channel move`)
    components/shop.toml:4: `storage_driver = "nuon"` has no effect; it is a store of another tool; Helm keeps the releases in the cluster, as with `secret`
    installs/a1.toml:4: `stack_overrides` has no effect; all installs of a version have one stack; the customer sets its parameters
    runner.toml:2: `helm_driver = "nuon"` has no effect; it is a store of another tool; Helm keeps the releases in the cluster, as with `secret`
    stack.toml:4: `custom_nested_stacks` has no effect; the install stack contains only what a customer can check without the vendor; make resources of the app in a component of type `cloudformation_stack`, and give the customer a template of its own for what only they may do
    "#);
}

#[test]
fn an_index_of_a_trigger_that_starts_one_action_is_a_warning() {
    let trigger = |word: &str, index: u8| format!("[[triggers]]\ntype = \"{word}\"\nindex = {index}\n");
    let triggers = [trigger("manual", 2), trigger("manual", 0), trigger("post-provision", 1)].concat();
    let config = good()
        .with("actions/a.toml", &format!("name = \"a\"\n{triggers}[[steps]]\nname = \"s\"\ncommand = \"true\"\n"));

    assert_eq!(lines(&config.all()), "actions/a.toml:4: an index has no effect on trigger `manual`");
}

#[test]
fn a_value_that_asks_for_nothing_is_not_warned_about() {
    let config = with_web("drift_schedule = \"\"\nskip_noops = false\nmax_auto_retries = 0\nlabels = {}\n");

    assert_eq!(lines(&config.all()), "");
}

#[test]
fn what_stands_in_the_way_of_an_install_is_one_warning_for_each_reason() {
    let job = |name: &str| {
        format!("name = \"{name}\"\ntype = \"job\"\nimage_url = \"{{{{ .nuon.install.id }}}}\"\ntag = \"1\"\n")
    };
    let config = good()
        .with("components/a.toml", &job("a"))
        .with("components/b.toml", &job("b"))
        .with("stack.toml", "type = \"azure-bicep\"\nname = \"n\"\ndescription = \"d\"\n");

    insta::assert_snapshot!(shown(&config), @r#"
    warning: the app cannot be deployed yet: component `a` runs an image that no component copies into the install registry (and 1 more)
     --> components/a.toml:2:8
      |
    2 | type = "job"
      |        ^^^^^
      |
      = help: the app can be checked, synced and built; an install of it is refused

    warning: the app cannot be deployed yet: the stack is of type `azure-bicep`
     --> stack.toml:1:8
      |
    1 | type = "azure-bicep"
      |        ^^^^^^^^^^^^^
      |
      = help: the app can be checked, synced and built; an install of it is refused
    "#);
}

#[test]
fn a_program_of_pulumi_is_said_to_be_untried() {
    let program = "name = \"a\"\ntype = \"pulumi\"\nruntime = \"go\"\nsource = \"./modules/net\"\n";
    let config = good().with("components/a.toml", program);

    insta::assert_snapshot!(shown(&config), @r#"
    warning: component `a` is a program of Pulumi: Freehold was tested with a program that has Pulumi's interface, and not with Pulumi itself
     --> components/a.toml:2:8
      |
    2 | type = "pulumi"
      |        ^^^^^^^^
      |
      = help: deploy to an install of your own first, and tear it down again
    "#);
}

#[test]
fn what_stands_in_the_way_of_a_sandbox_is_a_warning_of_its_own() {
    let config = good()
        .with("sandbox.toml", "terraform_version = \"1.11.3\"\nsource = \"./modules/net\"\n[vars]\nregion = \"{{ .nuon.components.net.outputs.x }}\"\n")
        .with("components/sandbox.toml", "name = \"sandbox\"\ntype = \"container_image\"\n[public]\nimage_url = \"example/x\"\ntag = \"1\"\n");

    assert_eq!(
        lines(&config.all()),
        "components/sandbox.toml:2: the app cannot be deployed yet: component `sandbox` has the name of the sandbox; \
         give it another name\nsandbox.toml:1: the app cannot be deployed yet: the sandbox reads component `net`, but \
         is deployed before all components"
    );
}

/// Returns a config whose component `web` is toggleable, and whose component `api` needs it.
fn with_toggle(keys: &str) -> Config {
    let api = "name = \"api\"\ntype = \"container_image\"\ndependencies = [\"web\"]\n\
               [public]\nimage_url = \"registry.example/api\"\ntag = \"1.0\"\n";
    with_web(&format!("toggleable = true\n{keys}")).with("components/api.toml", api)
}

#[test]
fn a_component_that_needs_one_which_new_installs_do_not_have_is_a_warning() {
    assert_eq!(lines(&with_toggle("").all()), "");
    insta::assert_snapshot!(shown(&with_toggle("default_enabled = false\n")), @r#"
    warning: component `api` needs component `web`, which new installs do not have (`default_enabled = false`)
     --> components/api.toml:1:8
      |
    1 | name = "api"
      |        ^^^^^
      |
      = help: create installs with `--on web`: without this option, `freehold install create` refuses the install
    "#);
}
