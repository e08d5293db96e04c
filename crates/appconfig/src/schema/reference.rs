//! Generates the reference of the config format in Markdown.

use std::fmt::Write as _;

use super::example;
use super::kind::{Shape, about, schema_kinds};
use super::rule::Rule;
use super::rules;
use crate::kinds::spec::{Holds, Key};
use crate::kinds::{Kind, component_keys};

const DEPLOYED: &str = "\
**What can be deployed.** Components of every type. Installs are in AWS: stacks of Azure and GCP are read and checked only.
";

/// The requirements of components of type `pulumi`, for a vendor.
const UNTRIED: &str =
    " Freehold was tested with a program that has the interface of Pulumi, and not with Pulumi itself.";

const HEAD: &str = "\
# The app config

An app is one directory of TOML files; the directory's name is the name of the app. `freehold app check DIR` reports the
mistakes in the files; `freehold app schema` writes JSON Schemas, with which editors report the same mistakes while you
type. This page is generated from the tables that both commands read.

- [An example](#an-example): a whole small app, file by file.
- [Layout](#layout): which files there are, with a link to the keys of each.
- [Types of values](#types-of-values): what a key may hold, and what templates read.
- [Tags and labels](#tags-and-labels): what tells to which install a resource belongs.
- [What a check looks at](#what-a-check-looks-at): which mistakes are errors, and which are warnings.
- [Toggles and events](#toggles-and-events): what an install may leave out, and when actions run.
- [Keys of other tools](#keys-of-other-tools): what to do instead of nested stacks and of branches that deploy.
- The keys of each kind of file, from [the metadata](#metadata) on; each type of [component](#component) has its own.

";

const LAYOUT: &str = "\
## Layout

The place of a file decides its kind: the files below are in the app's directory itself; in the directories below, each TOML
file counts, at any depth and with any name. A first comment such as `# helm` is for people and editors. An unknown key
has no effect and gives a warning; a wrong type, a missing key or an unknown word is an error.

If this page states that a key, a value or a file has no effect, Freehold reads and checks it and does nothing else with it. A
config that uses it gets a warning with the file, the line and the way out. Most of them are accepted because configs for other
tools have them. A key that has an effect in other types of tables only, or that another key replaces, gets such a warning too.

";

const OTHER_TOOLS: &str = "
## Keys of other tools

**Nested stacks.** `custom_nested_stacks` of `stack.toml` has no effect, and never will have one: a customer [checks the install
stack](install-stack.md) without the vendor and without a network, and CloudFormation fetches a nested stack by its address, also
at each later update ([decision 0096](decisions/0096-no-stacks-in-the-install-stack.md)). What such stacks make has two other places:

- Resources of the app belong in a component, of type [`cloudformation_stack`](#cloudformation_stack) for a template. It is made under
  a role of the app, and has plans, approvals, policies and releases like every component.
- What only the customer may do, such as an access entry or a namespace in their cluster, or a rule of their security group, belongs
  in a template or a script of its own. The customer reads it, runs it with their own credentials after the launch of the install
  stack, and can take it back without the vendor. The roles that it names are outputs of the install stack (`ProvisionRoleArn`,
  `MaintenanceRoleArn`, `DeprovisionRoleArn`). What the app has to know of it is an input that the customer answers.

**Branches.** Freehold watches no repository. What the keys of a [branch](#branch) describe, channels and the vendor's CI do
([decision 0097](decisions/0097-a-branch-is-a-channel.md)):

| key | instead |
|---|---|
| `connected_repo`, `public_repo` | A job of the CI, started by a change of the branch: `freehold app sync`, `build`, `release create` and `channel move`. A job without AWS credentials can make the move by a [webhook](webhooks.md). |
| `install_groups` | One channel for each group. Its installs follow it: `freehold install release INSTALL --channel GROUP`, or `--channel` of `install create`. `freehold install list --label` lists the installs that a `label_selector` would choose. The job moves one channel after another, in the order of the groups, and looks at the deploys in between. Plans that pass every policy are approved by `auto_approve_on_policies_passing` of components and of the sandbox. |
| `preview` | `build-only`: `freehold build`. `plan-only`: `freehold app diff DIR` shows which parts a deploy would run, and needs no install. `apply`: an install of your own that follows a channel for previews; with `freehold install approvals INSTALL prompt`, its plans wait. The CI sets the statuses and writes the comments. |
| `ignore_changes_regex`, `send_statuses_on_ignore`, `run` | Settings of the CI. A sync of the same content makes no version, and a deploy runs only the parts that changed. |
| `installs_directory` | `installs/`, which `freehold install sync` reads. |
";

const FEATURES: &str = "\
## Types of values

| type | value |
|---|---|
| text | a string, used as it is |
| template | a string; expressions such as `{{ .nuon.install.id }}` are evaluated when it is used |
| text or file | a string, or the path or address of a file with the string; used as it is |
| template or file | a string, or the path or address of a file with the string; the string is a template |
| duration | hours, minutes and seconds such as `90s`, `5m` or `1h30m` |
| scalars | a table of strings, numbers and booleans; strings are templates |
| values | a table of any values; strings in it are templates |
| any | any value |

**Files.** `./path` is looked for beside the config file, then in the directory of its kind, such as `components/`, then in the
app's directory. A path outside of the app's directory is an error.

**Addresses.** `https://...`, `file://...` and `git::...//path?ref=...` are replaced by the text at the address, which is
fetched when an app version is made.

**Templates** are written in Go's template language, with the functions of Sprig that configs use. They read one tree, `.nuon`
(`.freehold` is another name of the same tree). It holds `org`, `app`, `install` (`id`, `name`, `inputs`, `sandbox`, `licence`
and [its tags and labels](#tags-and-labels)), `inputs.inputs`, `install_stack.outputs`, `sandbox.outputs`,
`components.<name>.outputs`, `actions.workflows.<name>.outputs`, `secrets`, `runner`, `domain` and `cloud_account`; the steps of
an action have `action.inputs.<name>` too, and those of a runbook's run `runbook.inputs.<name>` (`.action.inputs.<name>` and
`.runbook_inputs.<name>`, without `.nuon`, are other names of these).

A reference to the outputs of another component is a dependency on it. A reference to something that does not exist is an
error, which suggests the nearest name. A template that reads a whole subtree, such as `toJson .nuon.install`, refers to
everything below it that is an input, a secret, or an output of the sandbox or of a component, and its job gets the sensitive
values too.

`install.licence` is the signed licence that the vendor set for the install, as one line of JSON, in components, the sandbox, actions
and runbooks. It does not exist in an install without a licence ([licences](licences.md)).

`install_stack.outputs` has `account_id`, `region`, `prefix`, `boundary_arn` and `role_path`. `prefix` is
`<tenant>--<install>--`, which keeps names of two installs apart. Every role, policy and instance profile that a component
creates needs the path `role_path`, and every role also needs `boundary_arn` as its permissions boundary (`path` and
`permissions_boundary` in Terraform, `Path` and `PermissionsBoundary` in CloudFormation); otherwise AWS denies the call that
creates it, whatever the policies of the mode allow. A role may trust this account and AWS's services; a job fails if a role
trusts anybody else when the job ends ([decision 0039](decisions/0039-a-ceiling-that-holds.md)).

An app with a sandbox, or with a component that reads one of these outputs, gets a network: `vpc_id`, `runner_subnet`,
`public_subnets` and `private_subnets` (ids, separated by commas). The install stack creates the network, or uses subnets that
the customer already has. `provision_iam_role_arn`, `maintenance_iam_role_arn` and `deprovision_iam_role_arn` are the roles of
the modes; `break_glass_role_arns` and `custom_role_arns` are maps of the app's own roles. The runner reads these outputs in the
customer's account.

Freehold sets variables of a sandbox's module that the module declares and the config does not set: `nuon_id` and `region`,
`tags` (a map), each output of the paragraph above except the two maps, and `internal_root_domain` and `public_root_domain`.
Under the values of these two domains no name resolves on the internet, so an app with a domain has to set them
([decision 0048](decisions/0048-what-the-install-stack-gives-to-an-app.md)).

## Tags and labels

The AWS resources that a job makes have tags: `freehold:tenant`, `freehold:app`, `freehold:install`, `freehold:component`
(`sandbox` for the sandbox), and `freehold:owner`, which conditions of IAM read. The AWS provider of Terraform (from 5.62) and
that of Pulumi set them as default tags, and a CloudFormation stack gives them to its resources. A customer who activates the
keys as cost allocation tags in AWS Billing sees the cost of each app, install and component. A module may set these tags
itself with the same values, as `tags = var.tags` in a sandbox does. The resources of the install stack have the tags of the
tenant, the app and the install, but its launch template has none of the app. AWS allows at most 50 tags on most resources, and 10 on an object of S3.

Kubernetes objects have the labels `freehold.dev/app`, `freehold.dev/install` and `freehold.dev/component`: those of charts and
manifests, Kubernetes Jobs, copies of secrets, and namespaces that the runner makes (without a component). The pods of a
manifest's workloads have them too, if the workload was made with them; those of a chart have not, and neither have objects of
hooks and of `crds/`. A name that is not a legal value of a label is cut, and a digest follows. Selectors never change, and the
labels of Helm stay.

A resource or an object that an earlier version of the runner made gets the tags or labels in the next apply that also changes
something else ([decision 0108](decisions/0108-tags-and-labels.md)). A CloudFormation stack keeps the keys that it was made
with, and the pods of a workload keep the labels that they were made with.

Templates read the same values, for what the runner does not mark itself: the pods of a chart, the nodes of a cluster, the
machines of an Auto Scaling group. The runner adds them to the tree, so policies of roles cannot read them.

| value | contents |
|---|---|
| `.nuon.install.tags` | a map of the tags, all five, without `freehold:component` in an action |
| `.nuon.install.labels` | a map of the labels |
| `.nuon.install.node_labels` | the labels without the component, for nodes and for selectors of nodes |
| `.nuon.install.namespace` | the install's id, the namespace of its jobs and by default of its charts |

In a values file, `podLabels: {{ .nuon.install.labels | toJson }}` labels the pods of a chart that has such a value, and
`nodeSelector: {{ .nuon.install.node_labels | toJson }}` puts them on the nodes to which the sandbox gave these labels. New
labels in the template of pods replace the running pods once.

## What a check looks at

`freehold app check` reads the config and the sources that are in the app's directory. It runs nothing, and it contacts
neither AWS nor another host. An error is certain: a sync, a build, or the first deploy of an install would fail. A warning
marks a likely mistake. Exit code 2 means that there are errors, and 0 that there are none; a warning changes the exit code
only with `--deny-warnings`. `--json` prints every finding with its file, line and column.

| source | error | warning |
|---|---|---|
| Terraform module | its directory does not exist or has no `.tf` file, a file does not parse, a module that it calls is not in the source, a variable has no value, another component reads an output that it does not declare, it fetches its `providers` and has no `.terraform.lock.hcl`, `env_vars` have a variable that changes which providers Terraform takes or which programs it runs | it needs a provider and has no `.terraform.lock.hcl`, an expression reads a variable that no file declares, a value for a variable that it does not declare, an action reads an output that it does not declare, a file of neither a component nor an action reads a sensitive output |
| CloudFormation template | it does not parse, an unknown section or key of a resource, a resource without `Type`, `Ref`, `GetAtt`, `Sub`, `FindInMap`, `DependsOn` or a condition that names nothing, parameters that it does not have or does not get, another component reads an output that it does not declare, IAM resources without their `capabilities`, a role without `PermissionsBoundary` | a key that is given twice, a resource type of AWS that does not exist, a property that a resource type does not have, a required property that is missing, a literal of the wrong sort (a map where a list is needed, a text that is not a number), an action reads an output that it does not declare, a role under a condition without `PermissionsBoundary` |
| Helm chart | no `Chart.yaml`, or one without `apiVersion`, `name` or `version`; `Chart.yaml` or `values.yaml` is not YAML | no templates; a value that the chart does not read |
| kustomization | no `kustomization.yaml` | |
| Dockerfile | it is not in the source, has no `FROM`, or does not have the stage that `target` names | |
| manifest, values of a chart, variable file | it is not YAML or HCL; an object has no `apiVersion` or no `kind` | the same, in a text with templates |

**Programs.** Without a `tool_image`, jobs have the programs of the runner's machine, and the machine of the install stack has
none of `terraform`, `tofu`, `helm`, `kubectl`, `kustomize` and `pulumi`. The check warns once for each of these programs that a
part needs. It finds a program in the scripts of actions where a command starts with it. It does not warn of a program in a
script that contains a path or URL of the program, defines it as a function or alias, installs it, checks whether it exists, or
sets `PATH`.

**Clusters.** A chart, manifest or job without `kubernetes_context`, a secret with `kubernetes_sync` and an action with
`enable_kube_config` use the cluster that the output `cluster` or `cluster_name` of the sandbox names. If the app has no sandbox, or its
module in the app's directory has neither output, the check reports each of them: an error if the first deploy of every install would
fail because of it, and otherwise a warning.

A source in a repository is not checked; the check names the components that have such a source. The types and properties of
CloudFormation's resources come from one version of cfn-lint, which the help of these warnings names, and AWS may have newer
types. Values that a template computes are not checked: functions (both branches of `Fn::If` are), dynamic references
(`{{resolve:...}}`), custom resources, and types that are not AWS's. A template with a macro (`Transform`) may refer to what the
macro makes; its properties are checked only if each macro is one of AWS that does not change them, such as
`AWS::LanguageExtensions`. The arguments of Terraform's providers are not checked.

**Policies of roles.** The contract lists a policy before its templates are rendered, so a template can only be a value: a key
of a policy document that contains a template or is given twice, and a template in `Sid`, `Id`, `Version` or `Effect`, is an
error. CloudFormation inserts the customer's answers into the install stack. A policy may therefore contain an input that the
customer answers only unchanged, in `Resource` or `Condition` of an `Allow` statement, and not directly next to `*` or `?`;
every other use is an error. It is also an error if a policy reads a sensitive input, or if an input that the customer answers
and a policy reads has a default with `*`, `?` or `${`. A policy that is JSON only after it is rendered is listed in the
contract as one text, and the customer has to accept each change of this text.

**Permissions.** For each `cloudformation_stack`, the check compares the calls that a [preflight](preflight.md) tries in the
customer's account with the role that deploys the stack: in the first deploy the role of mode `provision`, later the role of
mode `maintenance`, or a role of the component's own. A call that the role of the first deploy denies or does not allow is an
error; for later deploys it is a warning. A role that lists AWS managed policies which the check does not know gets a warning
too. For each module and template, the check compares the call that creates a resource (`sqs:CreateQueue` for `aws_sqs_queue`
and `AWS::SQS::Queue`) with the role, for some fifty common types, and warns. A policy that may allow a call (under a condition,
or for some value of a template) counts as allowing it: the preflight decides at the customer. An app that has roles, but no role
for mode `deprovision`, gets a warning: a teardown cannot remove what its components created.

## Toggles and events

**Toggles.** A component with `toggleable = true` is deployed unless the install leaves it out: `default_enabled = false`, or
`freehold install toggles INSTALL --off NAME`. The next deploy of the whole app removes what is off and deploys what is on
again. It removes components under the mode `deprovision`, and each component before the components that it needs. If a
component needs another component that is off, the switch and the deploy are refused with an error that names both. An action
that needs a component that is off is skipped when an event starts it, and refused when a person starts it
([decision 0057](decisions/0057-toggles-and-events.md)).

**Events.** Each event starts each action that has it as a trigger once. `pre-` means that the action runs before it, and that the
event does not happen when the action fails; `post-` means that it runs after the event succeeded.

Actions that one event starts at one moment start in the order of `index`, the lowest first. Actions without an index follow.
Actions with equal indexes and actions without an index are ordered by name. They run side by side while the runner has free
slots: then Freehold sends them in this order, but an action may end, or even begin, before an action with a lower index. With
one slot, an action starts after the previous action ended. In both cases an action also starts when a previous action failed,
and an action that waits for a component starts when the component is deployed, whatever its index. If one action needs the
result of another, put both into one action with two steps.

| event | happens |
|---|---|
| `provision` | in the first deploy of an install |
| `reprovision` | in `freehold deploy --all`, which deploys the sandbox and all components again |
| `deprovision` | in `freehold teardown` of everything |
| `provision-sandbox` | when the sandbox is created (only with `post-`) |
| `reprovision-sandbox`, `deprovision-sandbox` | when the sandbox is changed or deployed again; when it is removed |
| `deploy-all-components` | in a deploy of one component or more |
| `teardown-all-components` | in `freehold teardown` of everything |
| `deploy-component`, `teardown-component` | when the component in `component_name` is deployed; when it is removed |
| `enable-component`, `disable-component` | in the deploy after somebody switched the component on; when it is removed because it is off |
| `update-inputs` | in a deploy that changes inputs |
| `secrets-sync` | when secrets are copied into the cluster |
| `role-enabled`, `role-disabled` | when the customer switches a role of the install stack on; when they switch it off (without `pre-` and `post-`) |

**Roles.** The roles are those of the modes, and the custom roles and break-glass roles of the deployed version. A break-glass role
counts as switched off when `BreakGlassUntil` has passed, and so does a role that the launched stack does not have any more. The
runner looks for changed switches in the stack every ten minutes, and a sweep starts the actions within a minute after the runner's
report, or within some minutes if many actions start. Each action runs once for each role, outside of deploys, under its own role or
that of mode `maintenance`. A change that is taken back before the runner has seen it is not an event, and neither is the first
report of an install. The kill switch (`EnableRunner`) is not the switch of a role. A run is skipped if the install refuses it, for
example because the vendor has disabled the install; if it would start more than an hour after the runner's report, for example
after an outage; and if switches of roles have started 100 other runs in the install that are younger than an hour or have not
ended. `freehold install show` then names the reason until a later run of the action starts. The steps of an action with one of
these triggers have the environment variables `TRIGGER_TYPE` (the trigger), `CHANGE_TYPE` (`enabled` or `disabled`), `ROLE_NAME`,
`ROLE_ARN`, `ROLE_ID` (the ARN too) and `ROLE_TYPE` (`runner_provision`, `runner_maintenance`, `runner_deprovision`, `custom` or
`breakglass`), unless `env_vars` of the action has a variable of this name. They are empty in other runs of the action.

**Runbooks after a deploy.** `post_deploy_runbooks` of a [branch](#branch) names runbooks that run after each deploy of all
components of an install, once per deploy: the first deploy of the install, a later one by whoever asked for it (a person, a webhook
or a channel), one that was resumed and has succeeded since, and a roll back, which runs the runbooks of the version that is back. A
deploy with `--component`, a step of a runbook, and a deploy that continued without one of its nodes do not count. A deploy in which
nothing differs counts.

They run one after the other, with the defaults of their inputs, in the name of whoever asked for the deploy. They follow the
customer's change windows, even after a deploy with `--now`. A sweep starts the first one within a minute. A run that fails does not
change the result of the deploy; the next runbook begins after somebody has resumed the run and it has succeeded. While another run
in the install has not ended, they wait. Once a newer deploy or teardown has begun, also of one component, they do not run any more,
so that a newer deploy that failed can still be resumed or rolled back; a newer deploy of all components has runs of its own
([decision 0087](decisions/0087-runbooks.md)). An app version has one such list, with at most 20 runbooks, each of them once. If the
branches of an app have different lists, or if the steps and inputs of a runbook in the list have more than 120 KiB, a sync is
refused.

";

/// Returns the reference of all kinds of file, as Markdown.
pub fn reference() -> String {
    let mut text = String::from(HEAD);
    text.push_str(&example::section());
    text.push_str(LAYOUT);
    text.push_str("| file | content |\n|---|---|\n");
    for kind in schema_kinds() {
        if let Shape::File(file) = kind.0 {
            let files: Vec<String> = kind.files().iter().map(|glob| format!("`{glob}`")).collect();
            let (title, about) = (about(file).0, about_with_effect(file));
            write(&mut text, &format!("| {} | [{title}](#{kind}): {about} |\n", files.join(", ")));
        }
    }
    text.push('\n');
    text.push_str(FEATURES);
    text.push_str(DEPLOYED);
    text.push_str(OTHER_TOOLS);
    for kind in schema_kinds() {
        section(&mut text, kind.name(), kind.0);
    }
    text
}

/// Returns the sentences about a kind of file, including the sentence about its effect.
fn about_with_effect(kind: Kind) -> String {
    let remark = kind.effect().remark().map(|remark| format!(" {remark}"));
    format!("{}{}", about(kind).1, remark.unwrap_or_default())
}

fn section(text: &mut String, name: &str, shape: Shape) {
    write(text, &format!("\n## {name}\n\n"));
    let keys = match shape {
        Shape::File(kind) => {
            write(text, &format!("{}. {}\n", about(kind).0, about_with_effect(kind)));
            kind.keys()
        }
        Shape::Component(word) => {
            let remark = if word == "pulumi" { UNTRIED } else { "" };
            write(
                text,
                &format!(
                    "A component with `type = \"{word}\"`: the keys of every [component](#component), and these.{remark}\n"
                ),
            );
            component_keys(word)
        }
    };
    if let Shape::File(Kind::Component) = shape {
        text.push_str("The keys of every component; each type has further keys.\n");
    }
    if keys.is_empty() {
        return;
    }
    text.push_str("\n| key | holds | required | meaning |\n|---|---|---|---|\n");
    let mut sentences = Vec::new();
    rows(text, &mut sentences, name, "", keys);
    if !sentences.is_empty() {
        text.push('\n');
        for (at, sentence) in sentences {
            let inside = if at.is_empty() { String::new() } else { format!("In `{at}`: ") };
            write(text, &format!("- {inside}{sentence}\n"));
        }
    }
}

/// Writes one row for each key, and the keys of an inner table after the key of the table. Collects the sentences of
/// the rules.
fn rows(text: &mut String, sentences: &mut Vec<(String, String)>, path: &str, before: &str, keys: &[Key]) {
    let inside = before.trim_end_matches('.');
    sentences.extend(rules::at(path).flat_map(Rule::sentences).map(|sentence| (inside.to_owned(), sentence)));
    for key in keys {
        let must = if key.must { "yes" } else { "" };
        let doc = key.about().unwrap_or_default().replace('|', "\\|");
        write(text, &format!("| `{before}{}` | {} | {must} | {doc} |\n", key.name, held(&key.holds)));
        let path = format!("{path}.{}", key.name);
        match &key.holds {
            Holds::Table(keys) => rows(text, sentences, &path, &format!("{before}{}.", key.name), keys),
            Holds::Tables(keys) => rows(text, sentences, &path, &format!("{before}{}[].", key.name), keys),
            Holds::Text
            | Holds::Template
            | Holds::TemplateFile
            | Holds::File
            | Holds::Word(_)
            | Holds::Flag
            | Holds::Whole
            | Holds::Duration(_)
            | Holds::Texts
            | Holds::Scalars
            | Holds::Values
            | Holds::Any => {}
        }
    }
}

fn held(holds: &Holds) -> String {
    match holds {
        Holds::Text => "text".to_owned(),
        Holds::Template => "template".to_owned(),
        Holds::TemplateFile => "template or file".to_owned(),
        Holds::File => "text or file".to_owned(),
        Holds::Word(words) => {
            let shown = |word: &&str| if word.is_empty() { "`\"\"`".to_owned() } else { format!("`{word}`") };
            words.iter().map(shown).collect::<Vec<_>>().join(", ")
        }
        Holds::Flag => "`true` or `false`".to_owned(),
        Holds::Whole => "whole number".to_owned(),
        Holds::Duration(most) => format!("duration, at most {}", length(*most)),
        Holds::Texts => "list of texts".to_owned(),
        Holds::Scalars => "scalars".to_owned(),
        Holds::Values => "values".to_owned(),
        Holds::Table(_) => "table".to_owned(),
        Holds::Tables(_) => "list of tables".to_owned(),
        Holds::Any => "any".to_owned(),
    }
}

fn length(secs: u32) -> String {
    match (secs % 3600, secs % 60) {
        (0, _) => format!("`{}h`", secs / 3600),
        (_, 0) => format!("`{}m`", secs / 60),
        _ => format!("`{secs}s`"),
    }
}

fn write(text: &mut String, more: &str) {
    // INVARIANT: writing to a string does not fail.
    let _ = text.write_str(more);
}
