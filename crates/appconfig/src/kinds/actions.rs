//! The keys of actions and runbooks.

use crate::kinds::spec::Holds::{
    Duration, File, Flag, Scalars, Table, Tables, Template, TemplateFile, Text, Texts, Whole, Word,
};
use crate::kinds::spec::{Key, may, must};

use super::components::REPO;
use super::spec::MAX_ACTION_SECS;

pub(super) const ACTION: &[Key] = &[
    must("name", Text).doc("The action's name, by which other files refer to it"),
    may("description", Text).doc("A description of the action, which `freehold app show` shows"),
    may("timeout", Duration(MAX_ACTION_SECS)).doc("The time limit of one run: at most `30m`, `5m` by default"),
    // Only Freehold knows the config key `idempotent`. The key decides whether the steps run again when a job is
    // delivered a second time.
    may("idempotent", Flag)
        .doc("Whether the steps may run again after the runner died while it ran them; `false` by default"),
    may("dependencies", Texts)
        .doc("Components that the action waits for when an event of the same deploy starts the action"),
    may("break_glass_role", Template).doc("A break-glass role to run under; `role` is the newer key"),
    may("role", Template).doc("The role to run under instead of the role of the mode; a template"),
    // Only Freehold knows the config key `other_roles`.
    may("other_roles", Texts).doc(
        "More roles under which a person may start the action (`freehold action run --role`); templates. The contract names \
         them, and the runner refuses every other role. The roles of runbook steps that run the action need not be listed",
    ),
    may("enable_kube_config", Flag).doc(
        "Whether steps get a kubeconfig of the cluster. By default, they get it if a script of the action in the app's \
         directory calls `kubectl` or `helm` and does not mention a kubeconfig",
    ),
    may("kubernetes_context", Text).doc(
        "The cluster of the kubeconfig: the name of a `[[kubernetes_context]]` of `metadata.toml`; the sandbox's cluster \
         by default",
    ),
    may("image", Template).doc(
        "The image that steps run in, as `{{ .nuon.components.NAME.outputs.reference }}` of an image component; \
         `tool_image` of `runner.toml` by default",
    ),
    may("labels", Scalars)
        .doc("Labels by which people find actions: `freehold app show APP` lists them, and `--label` chooses by them"),
    may("inputs", Tables(ACTION_INPUT))
        .doc("Texts that a person gives to a run (`freehold action run --input NAME=TEXT`); not for secrets, since the order of the run contains them"),
    may("env_vars", Scalars).doc("Environment variables of every step; values are templates"),
    may("triggers", Tables(TRIGGER)).doc("What starts the action"),
    must("steps", Tables(STEP)).doc("The steps in order; the first step that fails ends the run"),
];

const ACTION_INPUT: &[Key] = &[
    must("name", Text).doc(
        "The name of the input. Each step has the text in an environment variable of this name in upper case, unless `env_vars` gives that variable another text. Templates read it as `{{ .nuon.action.inputs.<name> }}`; use that in `env_vars` only, so that a shell does not run the text",
    ),
    may("description", Text).doc("What the text is used for"),
    may("required", Flag).doc("Whether a run without the text is refused; default `false`. If `true`, only a person, a webhook or a runbook can start the action, unless the input has a default"),
    may("default", Text).doc("The default text"),
];

const TRIGGER: &[Key] = &[
    must("type", Text).doc("`manual`, `cron`, or an event such as `post-deploy-component`"),
    may("index", Whole).doc(
        "The place of the action among the actions that the same event starts: the lowest index starts first, and actions \
         without an index start after them, by name. They do not wait for each other's end",
    ),
    may("cron_schedule", Text).doc("For `cron`: five cron fields, in UTC, such as `*/5 * * * *`"),
    may("component_name", Text).doc("The component that the event is about"),
];

const STEP: &[Key] = &[
    must("name", Text).doc("The name of the step in logs"),
    may("command", Template).doc("A shell command line; a template"),
    may("inline_contents", TemplateFile)
        .doc("A script, which is a template: its text, or the `./path` or address of a file with the text"),
    may("env_vars", Scalars).doc("Environment variables of the step; values are templates"),
    may("enable_kube_config", Flag)
        .doc("Whether all steps of the action get a kubeconfig; as of the action by default"),
    may("public_repo", Table(REPO)).doc(
        "A git repository that anyone may read; `command` runs in a copy of its `directory` at the commit of `branch`",
    ),
    may("connected_repo", Table(REPO)).doc(
        "A private git repository, read with the vendor's own credentials; `command` runs in a copy of its `directory`",
    ),
];

pub(crate) const RUNBOOK_STEPS: &[&str] = &[
    "component_deploy",
    "component_tear_down",
    "action",
    "sandbox_reprovision",
    "sandbox_provision",
    "sandbox_deprovision",
    "command",
    "deploy",
];

pub(super) const RUNBOOK: &[Key] = &[
    must("name", Text).doc("The runbook's name"),
    may("description", Text)
        .doc("A description of the runbook, which `freehold runbook list INSTALL` and `freehold app show APP` show"),
    may("readme", File).doc(
        "Markdown for people: its text, or the `./path` or address of a file with the text. `freehold app readme APP \
         --runbook NAME` prints it as it is",
    ),
    may("labels", Scalars).doc(
        "Labels by which people find runbooks: `freehold runbook list INSTALL` and `freehold app show APP` list them, and \
         `--label` chooses by them",
    ),
    may("inputs", Tables(RUNBOOK_INPUT))
        .doc("Texts that a person gives to a run; not for secrets, since the run and its orders show them"),
    may("input", Tables(RUNBOOK_INPUT)).doc("Another name of `inputs`"),
    may("steps", Tables(RUNBOOK_STEP)).doc("The steps in order; the first step that fails ends the run"),
];

const ONE_COMPONENT: &str = "a step is about one component; add a step for each of the others";

const RUNBOOK_INPUT: &[Key] = &[
    must("name", Text).doc(
        "The name by which steps read the text: `{{ .nuon.runbook.inputs.<name> }}`. Read it in `env_vars` and use the variable in the command, so that a shell does not run the text",
    ),
    may("description", Text).doc("What the text is used for"),
    may("required", Flag).doc("Whether a run without the text is refused; default `false`"),
    may("default", Text).doc("The default text"),
    may("display_name", Text).doc("The question's heading in forms").never("the commands show `name`"),
    may("type", Text).doc("The type of the text").never("every input of a run is a text, which the steps can check"),
    may("sensitive", Flag)
        .doc("Whether nothing shows the text")
        .never("the run and its orders show it; make it a secret of the app, or a sensitive input"),
];

const RUNBOOK_STEP: &[Key] = &[
    may("name", Text).doc("The name of the step"),
    must("type", Word(RUNBOOK_STEPS)).doc("What the step does; `deploy` is an older name of `component_deploy`"),
    may("action_name", Text).doc("For `action`: the action to run"),
    may("component_name", Text).doc("For `component_deploy` and `component_tear_down`: the component"),
    may("deploy_dependencies", Flag)
        .doc("For `component_deploy`: whether to deploy the component's dependencies too; `false` by default"),
    may("deploy_dependents", Flag)
        .doc("For `component_deploy`: whether to deploy the components too that depend on the component")
        .never(ONE_COMPONENT),
    may("tear_down_dependents", Flag)
        .doc("For `component_tear_down`: whether to remove the components too that depend on the component")
        .never(ONE_COMPONENT),
    may("plan_only", Flag).doc(
        "For `component_deploy`: whether the step plans and changes nothing. The runbook is read without such a step",
    ),
    may("skip_component_deploys", Flag)
        .doc("For sandbox steps: whether to leave the components as they are; `false` by default"),
    may("command", Template)
        .doc("For `command`, and for `action` without `action_name`: a shell command line; a template"),
    may("inline_contents", TemplateFile)
        .doc("Instead of `command`: the text of a script, which is a template, or the `./path` or address of a script"),
    may("timeout", Duration(MAX_ACTION_SECS)).doc("The time limit of the command: at most `30m`, `5m` by default"),
    may("env_vars", Scalars).doc("Environment variables of the command; values are templates"),
    may("role", Template).doc("The role that the step runs under; a template"),
];
