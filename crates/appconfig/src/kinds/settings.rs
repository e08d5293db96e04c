//! The keys of the sandbox, the runner and the install stack.

use crate::kinds::spec::Holds::{Any, Flag, Scalars, Table, Tables, Template, Text, Texts, Values, Whole, Word};
use crate::kinds::spec::{Key, may, must};

use super::components::{HELM_DRIVERS, PROVIDERS, RELEASES_ARE_SECRETS, REPO, VAR_FILE};

pub(super) const SANDBOX: &[Key] = &[
    may("type", Word(&["terraform", "pulumi"])).doc("The tool that runs the module; default `terraform`"),
    may("terraform_version", Text).doc(
        "The version of Terraform that the module is written for, such as `1.11.3`; needed by `terraform`. The runner \
         uses its own Terraform and logs a difference",
    ),
    may("runtime", Word(&["go", "nodejs", "python"])).doc("The language of the program; needed by `pulumi`"),
    may("pulumi_version", Text).doc(
        "The version of Pulumi that the program is written for. The runner uses its own Pulumi and logs a difference",
    ),
    may("pulumi_config", Values).doc("The configuration of a Pulumi program; strings are templates"),
    may("source", Text).doc(
        "`./path` of a directory, relative to the directory of this file; if it is not there, relative to the directory of the app",
    ),
    may("public_repo", Table(REPO)).doc("The public repository of the module"),
    may("connected_repo", Table(REPO)).doc("The private repository of the module"),
    may("vars", Values).doc("Variables of the Terraform module; strings are templates"),
    may("env_vars", Scalars).doc("Environment of the tool; values are templates"),
    may("var_file", Tables(VAR_FILE)).doc("Variable files, in this order; a later file overrides an earlier one"),
    PROVIDERS,
    may("drift_schedule", Text)
        .doc("When to check the sandbox for drift: a cron expression of five fields in UTC, at most once an hour; empty for never. Each install starts later by a fixed offset of its own, 0 to 59 minutes. Only a Terraform module is checked"),
    may("operation_roles", Any).doc("The role of each operation, such as `provision = \"...\"`; names are templates"),
    may("max_auto_retries", Whole).doc("How often a failed run is retried automatically; default `0`, at most `10`"),
    may("skip_noops", Flag).doc("Whether to skip the apply when the plan has no changes; default `false`"),
    may("auto_approve_on_policies_passing", Flag)
        .doc("Whether a plan is approved without a person of the vendor when it passes every policy; default `false`"),
];

pub(super) const RUNNER: &[Key] = &[
    must("runner_type", Word(&["aws", "gcp", "azure"]))
        .doc("The cloud that the runner runs in. It has to be the cloud of `stack.toml`"),
    may("env_vars", Scalars).doc(
        "Environment of Terraform, Pulumi and the steps of all actions; values are templates. A variable that a component or an action sets itself takes precedence. The customer agrees to the steps of actions with their environment, so a change needs a new consent",
    ),
    may("helm_driver", Word(HELM_DRIVERS))
        .doc("Where Helm keeps its releases unless a component sets another place; default `secret`")
        .never_for("nuon", RELEASES_ARE_SECRETS),
    // Only Freehold knows the config key `tool_image`.
    may("tool_image", Text).doc(
        "The component of type `container_image` or `docker_build` in whose image jobs run their programs; by \
         default, the programs see the file system of the runner's machine",
    ),
    // Only Freehold knows the config key `inside_hosts`.
    may("inside_hosts", Texts).doc(
        "Hosts that the app contacts and that may be in the customer's private network: `db.corp.example:5432`, `*.corp.example`. \
         Every other host has to resolve to a public address. The customer agrees to each host of this list",
    ),
    may("init_script_url", Text).doc("A script for the machine of another tool's runner").never(
        "Freehold never runs it; the install stack starts the runner, and `tool_image` has the programs that jobs need",
    ),
    may("instance_type", Text).doc(
        "The type of the runner's machine on EC2 that new install stacks propose; the customer may choose another. By \
         default `t4g.small`. The machine needs a Graviton processor: types of the families `t2` to `t3a`, `m5` to \
         `m7i`, `c5` to `c7i` and `r5` to `r7i` are replaced, with a warning, by the Graviton type of the same size, \
         if it exists; other types are an error",
    ),
];

pub(super) const STACK: &[Key] = &[
    must("type", Word(&["aws-cloudformation", "azure-bicep", "gcp-terraform"])).doc("The cloud that the app is for"),
    must("name", Template).doc(
        "The install stack's name for people, which `freehold install stack` shows. The stack itself keeps the name that \
         Freehold gives it, by which commands find it",
    ),
    must("description", Template).doc(
        "What the install stack is for, which `freehold install stack` shows, so that the vendor can send it to the \
         customer with the template. It is not in the template: the description in the template, which Freehold \
         writes, explains what the stack permits. This text and `name` are left out when they read a sensitive input \
         or an input that the customer answers",
    ),
    may("vpc_nested_template_url", Template)
        .doc("A template that makes the network")
        .never("the install stack itself makes the network that the app needs, or uses the customer's (`VpcId`)"),
    may("runner_nested_template_url", Template).doc("A template that makes the machine of the runner").never(
        "the install stack itself makes the machine, or the customer runs the runner elsewhere (`RunnerPrincipal`)",
    ),
    may(
        "custom_nested_stacks",
        Tables(&[
            must("name", Text).doc("The nested stack's name; unique in the stack"),
            must("template_url", Template).doc("The address of the stack's template"),
            may("index", Whole).doc(
                "The place of the stack in the order: the lowest number goes first, and no two stacks share a number; \
                 default `0`",
            ),
            may("parameters", Values)
                .doc("The parameters of the stack; their templates read only the install's id, name and inputs"),
        ]),
    )
    .doc("Stacks that the install stack contains")
    .never(
        "the install stack contains only what a customer can check without the vendor; make resources of the app in \
         a component of type `cloudformation_stack`, and give the customer a template of its own for what only they \
         may do",
    ),
    may("deployment_scope", Text)
        .doc("Azure: `resource_group` or `subscription`")
        .never("installs are in AWS, where the stack of an install is in one account and region"),
];
