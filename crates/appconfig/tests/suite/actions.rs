//! Actions and runbooks: the documents that they become, and the messages about faulty ones.

use freehold_protocol::app_version::{Reference, StepKind, Trigger};
use freehold_protocol::order::Source;

use crate::config::{Config, good, is_of_programs};

/// Returns a config with the action `a`: one step, and `keys`.
fn with_action(keys: &str) -> Config {
    good().with("actions/a.toml", &format!("name = \"a\"\n{keys}\n[[steps]]\nname = \"s\"\ncommand = \"true\"\n"))
}

/// Returns a config with the runbook `r` of these steps.
fn with_runbook(steps: &str) -> Config {
    with_action("").with("runbooks/r.toml", &format!("name = \"r\"\n{steps}"))
}

#[test]
fn every_trigger_of_the_format_is_data() {
    let config = with_action(
        "[[triggers]]\ntype = \"manual\"\n[[triggers]]\ntype = \"cron\"\ncron_schedule = \"*/5 * * * *\"\n[[triggers]]\ntype = \"post-component-deploy\"\ncomponent_name = \"web\"\n[[triggers]]\ntype = \"pre-teardown-component\"\ncomponent_name = \"net\"\n[[triggers]]\ntype = \"role-enabled\"\n",
    );

    let loaded = config.load();

    let event = |event: &str, component: Option<&str>| Trigger::Event {
        event: event.to_owned(),
        component: component.map(|name| name.parse().unwrap()),
    };
    let expected = [
        Trigger::Manual,
        Trigger::PostDeployComponent { component: "web".parse().unwrap() },
        Trigger::Cron { schedule: "*/5 * * * *".to_owned() },
        event("pre-teardown-component", Some("net")),
        event("role-enabled", None),
    ];
    assert_eq!(loaded.version.actions[0].triggers, expected.into());
    assert!(loaded.warnings.is_empty(), "{}", loaded.warnings);
}

#[test]
fn an_action_that_a_role_starts_has_variables_about_the_role_beside_its_own() {
    let of_role = |event: &str| {
        let keys = format!("[[triggers]]\ntype = \"{event}\"\n[env_vars]\nROLE_NAME = \"mine\"\n");
        with_action(&keys).load().version.actions[0].env_vars.clone()
    };

    let env_vars = of_role("role-disabled");

    let names: Vec<&str> = env_vars.keys().map(String::as_str).collect();
    assert_eq!(names, ["CHANGE_TYPE", "ROLE_ARN", "ROLE_ID", "ROLE_NAME", "ROLE_TYPE", "TRIGGER_TYPE"]);
    assert_eq!(env_vars["ROLE_NAME"], "mine");
    assert_eq!(env_vars["CHANGE_TYPE"], "{{ with .nuon.action.role }}{{ .change }}{{ end }}");
    assert_eq!(of_role("manual").len(), 1);
}

#[test]
fn an_action_keeps_what_it_says_of_itself() {
    let commit = "0123456789abcdef0123456789abcdef01234567";
    let config = good().with("break_glass.toml", "[[role]]\nname = \"emergency\"\ndescription = \"d\"\n").with(
        "actions/a.toml",
        &format!(
            r#"
name = "a"
description = "does it"
dependencies = ["net"]
break_glass_role = "emergency"
role = "{{{{ .nuon.install.id }}}}-maintenance"
enable_kube_config = true
image = "tools.example/kubectl:1"
labels = {{ type = "report" }}

[[inputs]]
name = "key"

[[steps]]
name = "one"
command = "echo {{{{ .nuon.components.web.outputs.digest }}}}"

[[steps]]
name = "two"
command = "./two.sh"
[steps.public_repo]
repo = "acme/actions"
directory = "two"
branch = "{commit}"
"#
        ),
    );

    let action = config.load().version.actions[0].clone();

    assert_eq!(action.dependencies, ["net".parse().unwrap(), "web".parse().unwrap()].into());
    assert_eq!(action.step_repos[0].step, 1);
    assert!(matches!(&action.step_repos[0].source, Source::Git { directory, .. } if directory == "two"));
    assert_eq!((action.break_glass_role.as_str(), action.description.as_str()), ("emergency", "does it"));
    assert_eq!(action.role, "{{ .nuon.install.id }}-maintenance");
    assert_eq!(action.image.unwrap(), "tools.example/kubectl:1");
    assert_eq!(action.labels["type"], "report");
    assert_eq!(action.inputs[0].name, "key");
    assert_eq!(action.env_vars["KEY"], "{{ .nuon.action.inputs.key }}");
    assert!(action.enable_kube_config);
}

#[test]
fn a_repository_of_a_step_waits_for_its_commit() {
    let config = good().with(
        "actions/a.toml",
        "name = \"a\"\n[[steps]]\nname = \"s\"\ncommand = \"./x.sh\"\npublic_repo = { repo = \"acme/actions\", branch = \"main\" }\n",
    );
    let mut loaded = config.load();
    assert_eq!(loaded.unresolved.len(), 1);

    loaded.resolve("https://github.com/acme/actions", "main", "0123456789abcdef0123456789abcdef01234567").unwrap();

    let Source::Git { commit, .. } = &loaded.version.actions[0].step_repos[0].source else { panic!("not git") };
    assert_eq!(commit.len(), 40);
}

/// Returns the config with one step of these keys and a `public_repo` or `connected_repo`, without the other mistakes.
fn with_step(keys: &str) -> Config {
    good().with("actions/a.toml", &format!("name = \"a\"\n[[steps]]\nname = \"s\"\n{keys}\n"))
}

#[test]
fn a_step_in_a_repository_can_be_deployed() {
    for key in ["public_repo", "connected_repo"] {
        let config =
            with_step(&format!("command = \"./x.sh\"\n{key} = {{ repo = \"acme/actions\", directory = \"x\" }}"));

        let warnings = config.all().filter(|one| !is_of_programs(&one.message)).to_string();

        assert_eq!(warnings, "", "{key}");
    }
}

#[test]
fn a_step_in_a_directory_of_the_config_brings_it_packed() {
    let config = with_step("command = \"./x.sh\"\npublic_repo = { repo = \"./scripts\", directory = \"x\" }")
        .with("scripts/x/x.sh", "#!/bin/sh\ntrue\n");

    let loaded = config.load();

    let Source::Directory { digest } = &loaded.version.actions[0].step_repos[0].source else { panic!("not packed") };
    let packed = loaded.sources.iter().find(|local| local.digest == *digest).unwrap();
    assert!(packed.owner.contains("step `s` of action `a`"), "{}", packed.owner);
}

#[test]
fn a_repository_of_a_step_that_cannot_be_used_is_named_with_the_way_out() {
    let cases = [
        (
            "inline_contents = \"ls\"\npublic_repo = { repo = \"acme/actions\" }",
            "step `s` of action `a` has both `inline_contents` and a repository",
            "write `command = \"...\"`, which runs in the directory of the repository",
        ),
        ("public_repo = { repo = \"acme/actions\" }", "step `s` does nothing", "add `command = \"./SCRIPT\"`"),
        (
            "command = \"./x.sh\"\nconnected_repo = { repo = \"acme/actions\", directory = \"../x\" }",
            "`../x` is outside of the repository",
            "name a directory inside of it",
        ),
        (
            "command = \"./x.sh\"\npublic_repo = { repo = \"./scripts\", directory = \"absent\" }",
            "the source `./scripts/absent` cannot be read",
            "create the source, or correct the path",
        ),
        (
            "command = \"./x.sh\"\npublic_repo = { repo = \"../../scripts\" }",
            "is outside of the app's directory",
            "move it into the app's directory",
        ),
    ];

    for (keys, mistake, way_out) in cases {
        let found = with_step(keys).check().to_string();
        assert!(found.contains("error: ") && found.contains(mistake) && found.contains(way_out), "{keys}: {found}");
    }
}

#[test]
fn a_component_with_the_name_of_a_steps_directory_is_in_the_way() {
    let web = "name = \"action-a-step-1\"\ntype = \"container_image\"\n[public]\nimage_url = \"registry.example/web\"\ntag = \"1\"\n";
    let config =
        with_step("command = \"./x.sh\"\npublic_repo = { repo = \"acme/actions\" }").with("components/b.toml", web);

    let found = freehold_appconfig::check(&config.dir).to_string();

    assert!(
        found.contains(
            "action `a` has a step whose directory gets the name `action-a-step-1`, which another part already has"
        ),
        "{found}"
    );
}

#[test]
fn a_runbook_is_read_with_every_kind_of_step() {
    let config = with_action("").with("runbooks/r.md", "# Read me\n").with(
        "runbooks/r.toml",
        r#"
name = "r"
description = "all of it"
readme = "./r.md"
labels = { team = "shop" }

[[steps]]
name = "first"
type = "component_deploy"
component_name = "net"
deploy_dependencies = true

[[steps]]
type = "component_tear_down"
component_name = "web"

[[steps]]
type = "action"
action_name = "a"

[[steps]]
type = "sandbox_reprovision"
skip_component_deploys = true

[[steps]]
type = "action"
command = "curl {{ .nuon.inputs.inputs.region }}"
timeout = "1m"
env_vars = { N = 1 }
"#,
    );

    let version = config.load().version;
    let runbook = version.runbooks[0].clone();
    let command = &version.actions[1];

    assert_eq!((command.name.as_str(), command.timeout_secs), ("runbook-r-step-5", 60));
    assert_eq!(command.steps[0].command, "curl {{ .nuon.inputs.inputs.region }}");
    assert_eq!(command.steps[0].env_vars, [("N".to_owned(), "1".to_owned())].into());
    assert!(command.references.contains(&Reference::Input("region".to_owned())) && command.triggers.is_empty());
    assert_eq!(runbook.readme, "# Read me\n");
    assert_eq!(runbook.labels["team"], "shop");
    assert!(runbook.steps[0].deploy_dependencies && runbook.steps[3].skip_component_deploys);
    let does: Vec<_> = runbook.steps.into_iter().map(|step| step.does).collect();
    let expected = [
        StepKind::ComponentDeploy { component: "net".parse().unwrap() },
        StepKind::ComponentTearDown { component: "web".parse().unwrap() },
        StepKind::Action { action: "a".parse().unwrap() },
        StepKind::SandboxReprovision {},
        StepKind::Action { action: "runbook-r-step-5".parse().unwrap() },
    ];
    assert_eq!(does, expected);
}

#[test]
fn a_schedule_is_checked_field_by_field() {
    let config = with_action(
        "[[triggers]]\ntype = \"cron\"\ncron_schedule = \"0 0 * jan mon-fry\"\n[[triggers]]\ntype = \"cron\"\ncron_schedule = \"@daily\"\n",
    );

    insta::assert_snapshot!(config.faults(), @r#"
    error: the day of the week `mon-fry` is not a number from 0 to 7
     --> actions/a.toml:4:28
      |
    4 | cron_schedule = "0 0 * jan mon-fry"
      |                            ^^^^^^^
      |
      = help: write minute, hour, day of the month, month and day of the week, such as `*/15 8-18 * * mon-fri`

    error: the schedule has 1 field instead of 5
     --> actions/a.toml:7:18
      |
    7 | cron_schedule = "@daily"
      |                  ^^^^^^
      |
      = help: write minute, hour, day of the month, month and day of the week, such as `*/15 8-18 * * mon-fri`
    "#);
}

#[test]
fn a_trigger_without_what_it_needs_is_an_error() {
    let config = with_action(
        "[[triggers]]\ntype = \"cron\"\n[[triggers]]\ntype = \"pre-deploy-component\"\n[[triggers]]\ntype = \"post-deply-component\"\n",
    );

    insta::assert_snapshot!(config.faults(), @r#"
    error: trigger `cron` has no schedule
     --> actions/a.toml:3:8
      |
    3 | type = "cron"
      |        ^^^^^^
      |
      = help: add a schedule, such as `cron_schedule = "0 * * * *"` for every hour

    error: trigger `pre-deploy-component` names no component
     --> actions/a.toml:5:8
      |
    5 | type = "pre-deploy-component"
      |        ^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: add `component_name = "..."`

    error: there is no trigger `post-deply-component`
     --> actions/a.toml:7:8
      |
    7 | type = "post-deply-component"
      |        ^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: did you mean `post-deploy-component`?
    "#);
}

#[test]
fn a_schedule_of_another_trigger_has_no_effect() {
    let config = with_action("[[triggers]]\ntype = \"manual\"\ncron_schedule = \"* * * * *\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    warning: a schedule has no effect on trigger `manual`
     --> actions/a.toml:4:1
      |
    4 | cron_schedule = "* * * * *"
      | ^^^^^^^^^^^^^
      |
      = help: set `type = "cron"`, or remove `cron_schedule`
    "#);
}

#[test]
fn a_step_with_two_repositories_is_an_error() {
    let config = good().with(
        "actions/a.toml",
        "name = \"a\"\n[[steps]]\nname = \"s\"\ncommand = \"true\"\npublic_repo = { repo = \"a/b\" }\nconnected_repo = { repo = \"a/c\" }\n",
    );

    insta::assert_snapshot!(config.faults(), @r#"
    error: the repository comes from two places
     --> actions/a.toml:6:1
      |
    5 | public_repo = { repo = "a/b" }
      | ----------- the other key
    6 | connected_repo = { repo = "a/c" }
      | ^^^^^^^^^^^^^^
      |
      = help: keep one of `public_repo`, `connected_repo`
    "#);
}

#[test]
fn a_step_in_no_repository_at_all_says_what_one_is() {
    let config = good().with(
        "actions/a.toml",
        "name = \"a\"\n[[steps]]\nname = \"s\"\ncommand = \"true\"\npublic_repo = { repo = \"scripts\" }\n",
    );

    insta::assert_snapshot!(config.faults(), @r#"
    error: `scripts` is not a repository
     --> actions/a.toml:5:24
      |
    5 | public_repo = { repo = "scripts" }
      |                        ^^^^^^^^^ expected `owner/name`, an `https://` or `ssh://` address, or `./path`
    "#);
}

#[test]
fn a_role_that_the_app_does_not_have_is_an_error() {
    let config = with_action("role = \"maintainer\"\nbreak_glass_role = \"emergency\"\n")
        .with("permissions.toml", "[maintenance_role]\nname = \"maintenance\"\ndescription = \"d\"\n[[maintenance_role.policies]]\nmanaged_policy_name = \"A\"\n")
        .with("break_glass.toml", "[[role]]\nname = \"emergencies\"\ndescription = \"d\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: there is no role `maintainer`
     --> actions/a.toml:2:8
      |
    2 | role = "maintainer"
      |        ^^^^^^^^^^^^
      |
      = help: define the role in `permissions/`, or remove the reference to it

    error: there is no break-glass role `emergency`
     --> actions/a.toml:3:20
      |
    3 | break_glass_role = "emergency"
      |                    ^^^^^^^^^^^
      |
      = help: did you mean `emergencies`?
    "#);
}

#[test]
fn a_runbook_names_what_there_is() {
    let config = with_runbook(
        "[[steps]]\ntype = \"component_deploy\"\ncomponent_name = \"wb\"\n[[steps]]\ntype = \"action\"\naction_name = \"aa\"\n[[steps]]\ntype = \"component_deplay\"\n",
    );

    insta::assert_snapshot!(config.faults(), @r#"
    error: there is no component `wb`
     --> runbooks/r.toml:4:18
      |
    4 | component_name = "wb"
      |                  ^^^^
      |
      = help: did you mean `web`?

    error: there is no action `aa`
     --> runbooks/r.toml:7:15
      |
    7 | action_name = "aa"
      |               ^^^^
      |
      = help: did you mean `a`?

    error: `type` is `component_deplay`
     --> runbooks/r.toml:9:8
      |
    9 | type = "component_deplay"
      |        ^^^^^^^^^^^^^^^^^^ expected one of `component_deploy`, `component_tear_down`, `action`, `sandbox_reprovision`, `sandbox_provision`, `sandbox_deprovision`, `command`, `deploy`
      |
      = help: did you mean `component_deploy`?
    "#);
}

#[test]
fn a_runbook_step_without_what_its_type_needs_is_an_error() {
    let config = with_runbook(
        "[[steps]]\ntype = \"component_tear_down\"\n[[steps]]\ntype = \"action\"\n[[steps]]\ntype = \"command\"\n",
    );

    insta::assert_snapshot!(config.faults(), @r#"
    error: a step of type `component_tear_down` needs a component
     --> runbooks/r.toml:3:8
      |
    3 | type = "component_tear_down"
      |        ^^^^^^^^^^^^^^^^^^^^^
      |
      = help: add `component_name = "..."`

    error: a step of type `action` needs something to run
     --> runbooks/r.toml:5:8
      |
    5 | type = "action"
      |        ^^^^^^^^
      |
      = help: add one of `action_name`, `command`, `inline_contents`

    error: a step of type `command` needs something to run
     --> runbooks/r.toml:7:8
      |
    7 | type = "command"
      |        ^^^^^^^^^
      |
      = help: add one of `command`, `inline_contents`
    "#);
}

#[test]
fn a_runbook_step_with_two_things_to_run_is_an_error() {
    let config = with_runbook("[[steps]]\ntype = \"action\"\naction_name = \"a\"\ncommand = \"true\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: the step has two things to run
     --> runbooks/r.toml:5:1
      |
    4 | action_name = "a"
      | ----------- the other key
    5 | command = "true"
      | ^^^^^^^
      |
      = help: keep one of `action_name`, `command`, `inline_contents`
    "#);
}

#[test]
fn a_runbook_defined_twice_names_both_files() {
    let config =
        with_runbook("[[steps]]\ntype = \"action\"\naction_name = \"a\"\n").with("runbooks/s.toml", "name = \"r\"\n");

    insta::assert_snapshot!(config.faults(), @r#"
    error: runbook `r` is defined twice, in runbooks/r.toml:1 and here
     --> runbooks/s.toml:1:8
      |
    1 | name = "r"
      |        ^^^
      |
     ::: runbooks/r.toml:1:8
      |
    1 | name = "r"
      |        --- first defined here
      |
      = help: rename one of them, or remove it

    warning: the runbook does nothing
     --> runbooks/s.toml:1:8
      |
    1 | name = "r"
      |        ^^^
      |
      = help: add a step: `[[steps]]` with a `type`
    "#);
}
