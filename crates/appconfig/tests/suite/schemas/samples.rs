//! Files without a mistake and with many keys, for the tests of schemas: all but most components.

/// Kind, path and text of files that are valid beside the config of `config::good`.
pub(crate) const FILES: &[(&str, &str, &str)] = &[
    (
        "metadata",
        "metadata.toml",
        r##"version = "v2"
display_name = "Shop"
description = "sells"
readme = "it *sells*"
[label_colors]
team = "#ff0000"
[default_labels]
team = "shop"
[[kubernetes_context]]
name = "main"
component = "net"
"##,
    ),
    (
        "inputs",
        "inputs.toml",
        r#"[[group]]
name = "main"
display_name = "Main"
description = "all"
[[input]]
name = "region"
display_name = "Region"
description = "where"
group = "rest"
default = "eu-west-1"
[[input]]
name = "count"
display_name = "Count"
description = "how many"
group = "rest"
type = "number"
default = 3
sensitive = false
internal = false
user_configurable = true
"#,
    ),
    (
        "input",
        "inputs/size.toml",
        r#"name = "size"
display_name = "Size"
description = "how large"
group = "main"
type = "bool"
default = "true"
required = false
"#,
    ),
    (
        "input_group",
        "input_groups/rest.toml",
        r#"name = "rest"
display_name = "Rest"
description = "others"
"#,
    ),
    (
        "secrets",
        "secrets.toml",
        r#"[[secret]]
name = "token"
display_name = "Token"
description = "of the shop"
required = true
[[secret]]
name = "key"
display_name = "Key"
description = "of the door"
auto_generate = true
format = "base64"
kubernetes_sync = true
kubernetes_secret_namespace = "shop"
kubernetes_secret_name = "key"
"#,
    ),
    (
        "secret",
        "secrets/other.toml",
        r#"name = "other"
display_name = "Other"
description = "of the cellar"
default = "none"
"#,
    ),
    (
        "permissions",
        "permissions.toml",
        r#"[maintenance_role]
name = "keep"
description = "keeps it"
display_name = "Keeper"
permissions_boundary = '{"Version": "2012-10-17"}'
[[maintenance_role.policies]]
managed_policy_name = "ReadOnlyAccess"
[[maintenance_role.policies]]
name = "more"
contents = '{"Version": "2012-10-17"}'
"#,
    ),
    (
        "role",
        "permissions/make.toml",
        r#"type = "provision"
name = "{{ .nuon.install.id }}-make"
description = "makes it"
display_name = "Maker"
cloud_platform = "aws"
[[policies]]
name = "all"
contents = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}'
"#,
    ),
    (
        "break_glass",
        "break_glass.toml",
        r#"[[role]]
name = "fix"
description = "mends it"
display_name = "Mender"
[[role.policies]]
managed_policy_name = "AdministratorAccess"
"#,
    ),
    (
        "sandbox",
        "sandbox.toml",
        r#"terraform_version = "1.11.3"
max_auto_retries = 2
skip_noops = true
auto_approve_on_policies_passing = false
drift_schedule = "0 3 * * *"
providers = "packed"
[public_repo]
repo = "acme/sandboxes"
directory = "aws"
branch = "main"
[vars]
size = 3
[env_vars]
A = "b"
[[var_file]]
contents = "a = 1"
"#,
    ),
    (
        "runner",
        "runner.toml",
        r#"runner_type = "aws"
helm_driver = "configmap"
instance_type = "t3.medium"
tool_image = "web"
[env_vars]
A = "b"
"#,
    ),
    (
        "stack",
        "stack.toml",
        r#"type = "aws-cloudformation"
name = "shop-{{.nuon.install.id}}"
description = "the shop"
vpc_nested_template_url = "https://templates.example/vpc.yaml"
runner_nested_template_url = "https://templates.example/runner.yaml"
[[custom_nested_stacks]]
name = "more"
template_url = "https://templates.example/more.yaml"
index = 1
"#,
    ),
    (
        "policies",
        "policies.toml",
        r#"[[policy]]
type = "terraform_module"
engine = "opa"
name = "small"
components = ["net"]
contents = "package nuon"
"#,
    ),
    (
        "action",
        "actions/look.toml",
        r#"name = "look"
description = "looks at it"
timeout = "90s"
idempotent = true
[env_vars]
A = "b"
[[triggers]]
type = "manual"
[[triggers]]
type = "post-deploy-component"
component_name = "net"
index = 1
[[steps]]
name = "first"
command = "ls"
[[steps]]
name = "second"
inline_contents = "ls\nls"
[steps.env_vars]
A = 1
"#,
    ),
    (
        "kubernetes_contexts",
        "kubernetes_contexts/second.toml",
        r#"name = "second"
component = "net"
"#,
    ),
    (
        "role",
        "permissions/policies/logs.toml",
        r#"name = "{{ .nuon.install.id }}-logs"
display_name = "Logs"
description = "reads logs"
contents = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "logs:GetLogEvents", "Resource": "*"}]}'
"#,
    ),
    (
        "install",
        "installs/one.toml",
        r#"name = "one"
approval_option = "approve-all"
[labels]
env = "test"
[aws_account]
region = "eu-west-1"
[[inputs]]
region = "eu-west-1"
"#,
    ),
    (
        "action",
        "actions/often.toml",
        r#"name = "often"
[[triggers]]
type = "cron"
cron_schedule = "*/5 * * * *"
[[steps]]
name = "first"
command = "make"
[steps.connected_repo]
repo = "acme/scripts"
directory = "daily"
branch = "main"
"#,
    ),
    (
        "kubernetes_manifest",
        "components/kustomized.toml",
        r#"name = "kustomized"
type = "kubernetes_manifest"
namespace = "shop"
[kustomize]
path = "overlays/shop"
[public_repo]
repo = "acme/manifests"
directory = "."
branch = "main"
[health]
block_deploy = true
stabilization_window = "2m"
[[health.probes]]
type = "http"
url = "https://shop.example/health"
[[health.probes]]
type = "exec"
command = ["true"]
"#,
    ),
    (
        "container_image",
        "components/signed.toml",
        r#"name = "signed"
type = "external_image"
[public]
image_url = "registry.example/signed"
tag = "1.0"
[verification]
require_signature = true
[[verification.authorities]]
issuer = "https://accounts.example"
subject = "build@example"
"#,
    ),
    (
        "operation_roles",
        "operation_roles.toml",
        r#"type = "matrix"
[[rules]]
principal = "nuon::sandbox"
operation = "provision"
role = "{{ .nuon.install.id }}-make"
[[rules]]
principal = "nuon::component:*"
operation = "deploy"
role = "{{ .nuon.install.id }}-make"
"#,
    ),
    (
        "runbook",
        "runbooks/all.toml",
        r#"name = "all"
description = "does it all"
[labels]
team = "shop"
[[steps]]
name = "deploy"
type = "component_deploy"
component_name = "net"
deploy_dependencies = true
[[steps]]
name = "look"
type = "command"
command = "ls"
timeout = "2m"
"#,
    ),
    (
        "branch",
        "branch.toml",
        r#"name = "main"
post_deploy_runbooks = []
ignore_changes_regex = "^docs/"
[[install_groups]]
name = "first"
order = 1
install_names = ["one"]
[[install_groups]]
name = "rest"
order = 2
label_selector = { env = "production" }
[preview]
mode = "plan-only"
install_name = "one"
"#,
    ),
    (
        "policies",
        "policies/one.toml",
        r#"type = "sandbox"
engine = "opa"
name = "one"
contents = "package nuon"
"#,
    ),
    (
        "break_glass",
        "break_glass/one.toml",
        r#"name = "open"
description = "opens it"
[[policies]]
managed_policy_name = "AdministratorAccess"
"#,
    ),
    (
        "input",
        "inputs/many.toml",
        r#"[[group]]
name = "many"
[[input]]
name = "first"
display_name = "First"
description = "the first"
group = "rest"
"#,
    ),
    (
        "secret",
        "secrets/many.toml",
        r#"[[secret]]
name = "first"
description = "the first"
"#,
    ),
    (
        "role",
        "permissions/many.toml",
        r#"[deprovision_role]
name = "end"
description = "ends it"
[[deprovision_role.policies]]
managed_policy_name = "AdministratorAccess"
[[custom_roles]]
name = "look"
description = "looks at it"
"#,
    ),
];
