//! Files of every kind for the tests of schemas: good ones with many keys, and faulty ones.

/// Kind, path and text of files without a mistake, beside the config of `config::good`.
pub(crate) const GOOD: &[(&str, &str, &str)] = &[
    (
        "metadata",
        "metadata.toml",
        r##"version = "v2"
display_name = "Shop"
description = "sells"
readme = "it *sells*"
[label_colors]
team = "#ff0000"
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
        "terraform_module",
        "components/db.toml",
        r#"name = "db"
type = "terraform_module"
terraform_version = "1.11.3"
dependencies = ["net"]
build_timeout = "10m"
deploy_timeout = "1h"
max_auto_retries = 1
drift_schedule = "0 3 * * *"
[public_repo]
repo = "acme/modules"
directory = "db"
branch = "main"
[vars]
names = ["a", { b = 1 }]
[env_vars]
A = "b"
C = 1
[[var_file]]
contents = "a = 1"
"#,
    ),
    (
        "container_image",
        "components/copy.toml",
        r#"name = "copy"
type = "container_image"
[aws_ecr]
iam_role_arn = "arn:aws:iam::111111111111:role/pull"
region = "eu-west-1"
image_url = "111111111111.dkr.ecr.eu-west-1.amazonaws.com/web"
tag = "1.0"
"#,
    ),
    (
        "cloudformation_stack",
        "components/bucket.toml",
        r#"name = "bucket"
type = "cloudformation_stack"
template = "./bucket.yaml"
stack_name = "{{ .freehold.install_stack.outputs.prefix }}bucket"
capabilities = ["CAPABILITY_IAM"]
[parameters]
A = "b"
"#,
    ),
    (
        "helm_chart",
        "components/chart.toml",
        r#"name = "chart"
type = "helm_chart"
chart_name = "chart"
namespace = "shop"
storage_driver = "secret"
take_ownership = true
[helm_repo]
repo_url = "https://charts.example"
chart = "web"
version = "1.0.0"
[values]
a = [1, { b = "c" }]
[[values_file]]
contents = "a: 1"
"#,
    ),
    (
        "kubernetes_manifest",
        "components/manifest.toml",
        r#"name = "manifest"
type = "kubernetes_manifest"
namespace = "shop"
manifest = "kind: Namespace"
"#,
    ),
    (
        "docker_build",
        "components/build.toml",
        r#"name = "build"
type = "docker_build"
dockerfile = "Dockerfile"
[env_vars]
A = "b"
[public_repo]
repo = "acme/build"
directory = "."
branch = "main"
"#,
    ),
    (
        "job",
        "components/seed.toml",
        r#"name = "seed"
type = "job"
image_url = "registry.example/seed"
tag = "1.0"
cmd = ["seed"]
args = ["--all"]
[env_vars]
A = "b"
"#,
    ),
    (
        "pulumi",
        "components/net2.toml",
        r#"name = "net2"
type = "pulumi"
runtime = "go"
pulumi_version = "3.1.0"
[config]
a = 1
[env_vars]
A = "b"
[public_repo]
repo = "acme/net2"
directory = "."
branch = "main"
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
        "install",
        "installs/one.toml",
        r#"name = "one"
approval_option = "approve-all"
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

/// Kind, path and text of files with one mistake that has nothing to do with other files.
pub(crate) const FAULTY: &[(&str, &str, &str)] = &[
    ("metadata", "metadata.toml", "display_name = \"no version\""),
    ("metadata", "metadata.toml", "version = 2"),
    ("metadata", "metadata.toml", "version = \"v2\"\nkubernetes_context = \"main\""),
    ("metadata", "metadata.toml", "version = \"v2\"\n[[kubernetes_context]]\nname = \"main\""),
    ("inputs", "inputs.toml", "group = \"main\""),
    ("inputs", "inputs.toml", "[[group]]\ndisplay_name = \"no name\""),
    (
        "input",
        "inputs/a.toml",
        "name = \"a\"\ndisplay_name = \"a\"\ndescription = \"a\"\ngroup = \"main\"\ntype = \"text\"",
    ),
    (
        "input",
        "inputs/a.toml",
        "name = \"a\"\ndisplay_name = \"a\"\ndescription = \"a\"\ngroup = \"main\"\ntype = \"number\"\ndefault = \"many\"",
    ),
    (
        "input",
        "inputs/a.toml",
        "name = \"a\"\ndisplay_name = \"a\"\ndescription = \"a\"\ngroup = \"main\"\ndefault = [3]",
    ),
    ("input", "inputs/a.toml", "name = \"a\"\ndisplay_name = \"a\"\ngroup = \"main\""),
    ("input_group", "input_groups/a.toml", "name = [\"a\"]"),
    ("secret", "secrets/a.toml", "name = \"a\"\ndisplay_name = \"a\""),
    ("secret", "secrets/a.toml", "name = \"a\"\ndisplay_name = \"a\"\ndescription = \"a\"\nformat = \"hex\""),
    ("secret", "secrets/a.toml", "name = \"a\"\ndisplay_name = \"a\"\ndescription = \"a\"\nkubernetes_sync = \"yes\""),
    ("permissions", "permissions.toml", "[provision_role]\nname = \"p\""),
    ("role", "permissions/a.toml", "type = \"provison\"\nname = \"p\"\ndescription = \"p\""),
    (
        "role",
        "permissions/a.toml",
        "type = \"provision\"\nname = \"p\"\ndescription = \"p\"\n[[policies]]\nname = \"x\"\nmanaged_policy_name = \"y\"\ncontents = \"{}\"",
    ),
    (
        "role",
        "permissions/a.toml",
        "type = \"provision\"\nname = \"p\"\ndescription = \"p\"\n[[policies]]\ncontents = \"{}\"",
    ),
    ("break_glass", "break_glass.toml", "[[role]]\nname = \"p\"\ndescription = \"p\"\nenabled_in_stack = 1"),
    ("operation_roles", "operation_roles.toml", "[[rules]]\nprincipal = \"nuon::sandbox\"\noperation = \"provision\""),
    ("sandbox", "sandbox.toml", "terraform_version = \"1.11.3\"\n[public_repo]\ndirectory = \"aws\""),
    ("sandbox", "sandbox.toml", "terraform_version = 1.11\n[public_repo]\nrepo = \"a/b\""),
    ("runner", "runner.toml", "helm_driver = \"secret\""),
    ("runner", "runner.toml", "runner_type = \"aws\"\nhelm_driver = \"sql\""),
    ("stack", "stack.toml", "type = \"cloudformation\"\nname = \"s\"\ndescription = \"s\""),
    ("policies", "policies.toml", "[[policy]]\ntype = \"helm_chart\"\nengine = \"opa\""),
    (
        "helm_chart",
        "components/a.toml",
        "name = \"a\"\ntype = \"helm_chart\"\n[helm_repo]\nrepo_url = \"u\"\nchart = \"c\"",
    ),
    (
        "terraform_module",
        "components/a.toml",
        "name = \"a\"\ntype = \"terraform_module\"\nterraform_version = \"1\"\nsource = \"./modules/net\"\n[public_repo]\nrepo = \"a/b\"",
    ),
    ("terraform_module", "components/a.toml", "name = \"a\"\ntype = \"terraform_module\"\nterraform_version = \"1\""),
    (
        "terraform_module",
        "components/a.toml",
        "name = \"a\"\ntype = \"terraform_module\"\nterraform_version = \"1\"\nsource = \"./modules/net\"\ndeploy_timeout = \"2h\"",
    ),
    (
        "terraform_module",
        "components/a.toml",
        "name = \"a\"\ntype = \"terraform_module\"\nterraform_version = \"1\"\nsource = \"./modules/net\"\nbuild_timeout = \"5 minutes\"",
    ),
    (
        "terraform_module",
        "components/a.toml",
        "name = \"not a name\"\ntype = \"terraform_module\"\nterraform_version = \"1\"\nsource = \"./modules/net\"",
    ),
    ("container_image", "components/a.toml", "name = \"a\"\ntype = \"container_image\""),
    (
        "container_image",
        "components/a.toml",
        "name = \"a\"\ntype = \"container_image\"\n[public]\nimage_url = \"i\"\ntag = 1.0",
    ),
    ("component", "components/a.toml", "name = \"a\"\ntype = \"container_imgae\""),
    ("component", "components/a.toml", "name = \"a\""),
    ("job", "components/a.toml", "name = \"a\"\ntype = \"job\"\nimage_url = \"i\"\ntag = \"t\"\ncmd = [\"a\", 1]"),
    (
        "job",
        "components/a.toml",
        "name = \"a\"\ntype = \"job\"\nimage_url = \"i\"\ntag = \"t\"\nenv_vars = { A = [\"b\"] }",
    ),
    ("pulumi", "components/a.toml", "name = \"a\"\ntype = \"pulumi\"\nruntime = \"rust\""),
    ("action", "actions/a.toml", "name = \"a\""),
    ("action", "actions/a.toml", "name = \"a\"\ntimeout = \"31m\"\n[[steps]]\nname = \"s\"\ncommand = \"ls\""),
    ("action", "actions/a.toml", "name = \"a\"\n[[steps]]\nname = \"s\"\ncommand = \"ls\"\ninline_contents = \"ls\""),
    ("action", "actions/a.toml", "name = \"a\"\n[[steps]]\nname = \"s\"\ncommand = \"\""),
    (
        "action",
        "actions/a.toml",
        "name = \"a\"\n[[triggers]]\ntype = \"post-deploy-component\"\n[[steps]]\nname = \"s\"\ncommand = \"ls\"",
    ),
    (
        "action",
        "actions/a.toml",
        "name = \"a\"\n[[triggers]]\ntype = \"after-deploy\"\n[[steps]]\nname = \"s\"\ncommand = \"ls\"",
    ),
    ("install", "installs/a.toml", "name = \"a\"\napproval_option = \"ask\""),
    ("runbook", "runbooks/a.toml", "name = \"a\"\n[[steps]]\nname = \"no type\""),
    (
        "secret",
        "secrets/a.toml",
        "name = \"a\"\ndisplay_name = \"a\"\ndescription = \"a\"\nrequired = true\nauto_generate = true",
    ),
    (
        "secret",
        "secrets/a.toml",
        "name = \"a\"\ndisplay_name = \"a\"\ndescription = \"a\"\nauto_generate = true\ndefault = \"x\"",
    ),
    (
        "secret",
        "secrets/a.toml",
        "name = \"a\"\ndisplay_name = \"a\"\ndescription = \"a\"\nkubernetes_sync = true\nkubernetes_secret_name = \"a\"",
    ),
    (
        "secrets",
        "secrets.toml",
        "[[secret]]\nname = \"a\"\ndisplay_name = \"a\"\ndescription = \"a\"\nrequired = true\ndefault = \"x\"",
    ),
    ("secret", "secrets/a.toml", "[[secret]]\nname = \"no description\""),
    ("input", "inputs/a.toml", "[[input]]\nname = \"no group\"\ndisplay_name = \"a\"\ndescription = \"a\""),
    ("role", "permissions/a.toml", "[provision_role]\nname = \"no description\""),
    ("policies", "policies/a.toml", "contents = \"no type\""),
    ("break_glass", "break_glass/a.toml", "name = \"no description\""),
    ("sandbox", "sandbox.toml", "terraform_version = \"1\""),
    (
        "sandbox",
        "sandbox.toml",
        "terraform_version = \"1\"\n[public_repo]\nrepo = \"a/b\"\n[connected_repo]\nrepo = \"a/b\"",
    ),
    ("sandbox", "sandbox.toml", "[public_repo]\nrepo = \"a/b\""),
    ("sandbox", "sandbox.toml", "type = \"pulumi\"\n[public_repo]\nrepo = \"a/b\""),
    (
        "sandbox",
        "sandbox.toml",
        "terraform_version = \"1\"\ndrift_schedule = \"every day\"\n[public_repo]\nrepo = \"a/b\"",
    ),
    (
        "operation_roles",
        "operation_roles.toml",
        "[[rules]]\nprincipal = \"sandbox\"\noperation = \"provision\"\nrole = \"{{ .nuon.install.id }}\"",
    ),
    (
        "operation_roles",
        "operation_roles.toml",
        "[[rules]]\nprincipal = \"nuon::sandbox\"\noperation = \"create\"\nrole = \"{{ .nuon.install.id }}\"",
    ),
    ("install", "installs/a.toml", "name = \"a\"\ninputs = \"region\""),
    ("install", "installs/a.toml", "name = \"a\"\n[inputs]\nregion = 1"),
    ("install", "installs/a.toml", "name = \"a\"\ncomponent_toggles = [\"net\"]"),
    (
        "branch",
        "branch.toml",
        "[[install_groups]]\nname = \"a\"\ninstall_names = [\"x\"]\nlabel_selector = { a = \"b\" }",
    ),
    ("branch", "branch.toml", "[preview]\nmode = \"apply\""),
    ("branch", "branch.toml", "[preview]\ninstall_id = \"x\"\ninstall_name = \"y\""),
    ("helm_chart", "components/a.toml", "name = \"a\"\ntype = \"helm_chart\"\nchart_name = \"c\""),
    (
        "helm_chart",
        "components/a.toml",
        "name = \"a\"\ntype = \"helm_chart\"\nchart_name = \"c\"\n[public_repo]\nrepo = \"a/b\"\n[helm_repo]\nrepo_url = \"u\"\nchart = \"c\"",
    ),
    ("kubernetes_manifest", "components/a.toml", "name = \"a\"\ntype = \"kubernetes_manifest\"\nnamespace = \"n\""),
    (
        "kubernetes_manifest",
        "components/a.toml",
        "name = \"a\"\ntype = \"kubernetes_manifest\"\nnamespace = \"n\"\nmanifest = \"a: b\"\n[kustomize]\npath = \"x\"",
    ),
    ("docker_build", "components/a.toml", "name = \"a\"\ntype = \"docker_build\"\ndockerfile = \"Dockerfile\""),
    (
        "container_image",
        "components/a.toml",
        "name = \"a\"\ntype = \"container_image\"\n[public]\nimage_url = \"i\"\ntag = \"t\"\n[verification]\nrequire_signature = true",
    ),
    (
        "terraform_module",
        "components/a.toml",
        "name = \"a\"\ntype = \"terraform_module\"\nterraform_version = \"1\"\nsource = \"./modules/net\"\n[[health.probes]]\ntype = \"exec\"\nurl = \"x\"",
    ),
    (
        "terraform_module",
        "components/a.toml",
        "name = \"a\"\ntype = \"terraform_module\"\nterraform_version = \"1\"\nsource = \"./modules/net\"\ndrift_schedule = \"* * * *\"",
    ),
    (
        "action",
        "actions/a.toml",
        "name = \"a\"\n[[steps]]\nname = \"s\"\ncommand = \"ls\"\n[[triggers]]\ntype = \"cron\"",
    ),
    (
        "action",
        "actions/a.toml",
        "name = \"a\"\n[[steps]]\nname = \"s\"\ncommand = \"ls\"\n[[triggers]]\ntype = \"cron\"\ncron_schedule = \"hourly\"",
    ),
    (
        "action",
        "actions/a.toml",
        "name = \"a\"\n[[steps]]\nname = \"s\"\ncommand = \"ls\"\n[steps.public_repo]\nrepo = \"a/b\"\n[steps.connected_repo]\nrepo = \"a/b\"",
    ),
    ("runbook", "runbooks/a.toml", "name = \"a\"\n[[steps]]\ntype = \"component_deploy\""),
    ("runbook", "runbooks/a.toml", "name = \"a\"\n[[steps]]\ntype = \"command\""),
    ("runbook", "runbooks/a.toml", "name = \"a\"\n[[steps]]\ntype = \"action\"\naction_name = \"x\"\ncommand = \"ls\""),
];
