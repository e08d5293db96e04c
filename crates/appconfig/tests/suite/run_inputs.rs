//! The inputs of actions and of runs, and the environment of all jobs.

use freehold_protocol::app_version::ComponentSpec;

use crate::config::good;

#[test]
fn an_input_is_a_variable_of_each_step_unless_the_action_sets_it_itself() {
    let text = r#"
name = "a"
[[inputs]]
name = "public_key"
required = true
[[inputs]]
name = "mode"
default = "check"
[[inputs]]
name = "region"
[env_vars]
MODE = "own"
REGION = ""
[[steps]]
name = "s"
command = "./x.sh $MODE"
[steps.env_vars]
PUBLIC_KEY = ""
EMPTY = ""
"#;

    let action = good().with("actions/a.toml", text).load().version.actions[0].clone();

    let variable = |name: &str| action.env_vars[name].as_str();
    assert_eq!((variable("PUBLIC_KEY"), variable("MODE")), ("{{ .nuon.action.inputs.public_key }}", "own"));
    assert_eq!((action.inputs[0].required, action.inputs[1].default.as_str()), (true, "check"));
    // A variable without a text names what the step reads, and the input gives it its text.
    assert_eq!(variable("REGION"), "{{ .nuon.action.inputs.region }}");
    assert_eq!(action.steps[0].env_vars.keys().collect::<Vec<_>>(), ["EMPTY"]);
}

#[test]
fn inputs_that_nobody_gives_that_do_not_exist_or_that_break_programs_are_refused() {
    let text = r#"
name = "a"
[[triggers]]
type = "cron"
cron_schedule = "* * * * *"
[[inputs]]
name = "ticket"
required = true
[[inputs]]
name = "path"
[[inputs]]
name = "PATH"
[[steps]]
name = "s"
command = "./x.sh {{ .nuon.action.inputs.tiket }}"
"#;

    let found = good().with("actions/a.toml", text).faults().to_string();

    for message in [
        "input `ticket` is required, and trigger `cron` gives the action no inputs",
        "the input would set the environment variable `PATH`",
        "the action has two inputs `PATH`",
        "whoever gives the input can run commands, because the input's text becomes part of the script",
        "the action has no input `tiket`",
    ] {
        assert!(found.contains(message), "{message}: {found}");
    }
}

#[test]
fn a_name_of_an_input_that_is_no_variable_is_an_error() {
    let action =
        "name = \"a\"\n[[inputs]]\nname = \"log-level\"\n[[steps]]\nname = \"s\"\ncommand = \"echo $LOG_LEVEL\"\n";
    let runbook = "name = \"r\"\n[[inputs]]\nname = \"\"\n";

    insta::assert_snapshot!(good().with("actions/a.toml", action).with("runbooks/r.toml", runbook).faults(), @r#"
    error: `log-level` is not a name that an input of an action can have
     --> actions/a.toml:3:8
      |
    3 | name = "log-level"
      |        ^^^^^^^^^^^ expected 1 to 64 letters, digits or underscores, and no digit at the start

    warning: the runbook does nothing
     --> runbooks/r.toml:1:8
      |
    1 | name = "r"
      |        ^^^
      |
      = help: add a step: `[[steps]]` with a `type`

    error: `` is not a name that an input of a runbook can have
     --> runbooks/r.toml:3:8
      |
    3 | name = ""
      |        ^^ expected 1 to 64 letters, digits or underscores, and no digit at the start
    "#);
}

#[test]
fn the_environment_of_the_runner_is_that_of_each_program_unless_it_sets_a_variable_itself() {
    let config = good()
        .with("runner.toml", "runner_type = \"aws\"\n[env_vars]\nLEVEL = \"{{ .nuon.install.id }}\"\nMODE = \"all\"\n")
        .with(
            "actions/a.toml",
            "name = \"a\"\n[env_vars]\nMODE = \"own\"\n[[steps]]\nname = \"s\"\ncommand = \"./x.sh\"\n",
        );

    let version = config.load().version;

    let action = &version.actions.iter().find(|action| action.name.as_str() == "a").unwrap().env_vars;
    assert_eq!((action["LEVEL"].as_str(), action["MODE"].as_str()), ("{{ .nuon.install.id }}", "own"));
    let modules = version.components.iter().filter_map(|component| match &component.spec {
        ComponentSpec::TerraformModule { env_vars, .. } => Some(env_vars["MODE"].as_str()),
        _ => None,
    });
    assert_eq!(modules.collect::<Vec<_>>(), ["all"]);
}

#[test]
fn an_environment_that_terraform_must_not_have_or_that_a_job_would_have_to_make_first_is_refused() {
    let runner = "runner_type = \"aws\"\n[env_vars]\nTF_CLI_CONFIG_FILE = \"-x\"\nURL = \"{{ .nuon.components.web.outputs.url }}\"\n";

    let found = good().with("runner.toml", runner).faults().to_string();

    assert!(
        found.contains("cannot read outputs of jobs, because the first job already gets these variables"),
        "{found}"
    );
    assert!(found.contains("`TF_CLI_CONFIG_FILE`"), "{found}");
}

#[test]
fn a_runbook_whose_step_requires_an_input_that_it_does_not_have_is_refused() {
    let action =
        "name = \"a\"\n[[inputs]]\nname = \"ticket\"\nrequired = true\n[[steps]]\nname = \"s\"\ncommand = \"./x.sh\"\n";
    let runbook = |inputs: &str| {
        format!("name = \"fix\"\n{inputs}[[steps]]\nname = \"one\"\ntype = \"action\"\naction_name = \"a\"\n")
    };
    let faults = |inputs: &str| {
        good().with("actions/a.toml", action).with("runbooks/fix.toml", &runbook(inputs)).faults().to_string()
    };

    let (lacking, given) = (faults(""), faults("[[inputs]]\nname = \"ticket\"\n"));

    assert!(lacking.contains("action `a` requires input `ticket`, which the runbook does not have"), "{lacking}");
    assert_eq!(given, "");
}

#[test]
fn the_environment_of_every_job_reads_no_subtree_with_what_jobs_make() {
    for path in [".nuon", ".nuon.install", ".nuon.install.sandbox.outputs.x", ".nuon.action.inputs.x"] {
        let runner = format!("runner_type = \"aws\"\n[env_vars]\nX = \"{{{{ toJson {path} }}}}\"\n");

        let found = good().with("runner.toml", &runner).faults().to_string();

        assert!(found.contains("cannot read outputs of jobs"), "{path}: {found}");
    }
}

#[test]
fn an_input_of_a_run_is_read_by_its_name_and_only_by_steps() {
    let runbook = r#"
name = "r"
[[inputs]]
name = "ticket"
[[steps]]
type = "command"
command = "echo {{ .nuon.runbook.inputs.tikcet }}"
"#;
    let component = r#"
name = "net"
type = "kubernetes_manifest"
namespace = "n"
manifest = "kind: {{ .nuon.runbook.inputs.ticket }}"
"#;

    let found = good().with("runbooks/r.toml", runbook).with("components/net.toml", component).faults().to_string();

    assert!(found.contains("error: the runbook has no input `tikcet`"), "{found}");
    assert!(found.contains("did you mean `ticket`?"), "{found}");
    assert!(found.contains("warning: `.nuon.runbook` exists only in the steps of a runbook's run"), "{found}");
}

#[test]
fn a_runbook_of_another_tool_has_its_inputs_and_no_step_that_only_plans() {
    let input = |name: &str| format!("name = \"{name}\"\ndisplay_name = \"N\"\ntype = \"string\"\nrequired = true\n");
    let text = format!(
        "name = \"r\"\n[[inputs]]\nname = \"mode\"\n[[input]]\n{}[[input]]\n{}\
         [[steps]]\ntype = \"component_deploy\"\ncomponent_name = \"web\"\nplan_only = true\n\
         [[steps]]\ntype = \"action\"\ncommand = \"echo $WHO\"\nenv_vars = {{ WHO = \"{{{{ .runbook_inputs.who }}}}\" }}\n",
        input("who"),
        input("when"),
    );

    let loaded = good().with("runbooks/r.toml", &text).load();
    let misspelt = good().with("runbooks/r.toml", &text.replace("_inputs.who", "_inputs.woh")).faults().to_string();

    let runbook = &loaded.version.runbooks[0];
    let inputs: Vec<_> = runbook.inputs.iter().map(|input| (input.name.as_str(), input.required)).collect();
    assert_eq!(inputs, [("mode", false), ("who", true), ("when", true)]);
    assert_eq!(runbook.steps.len(), 1);
    let warnings = loaded.warnings.to_string();
    assert!(warnings.contains("the step only plans, so the runbook is read without it"), "{warnings}");
    assert!(misspelt.contains("the runbook has no input `woh`"), "{misspelt}");
}
