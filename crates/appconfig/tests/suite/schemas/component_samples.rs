//! Components without a mistake and with many keys, for the tests of schemas: each type once.

/// Kind, path and text of components that are valid beside the config of `config::good`.
pub(crate) const COMPONENTS: &[(&str, &str, &str)] = &[
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
manifest = "{apiVersion: v1, kind: Namespace}"
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
];
