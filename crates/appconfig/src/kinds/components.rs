//! The keys of components of every type.

use crate::kinds::spec::Holds::{
    Any, Duration, File, Flag, Scalars, Table, Tables, Template, TemplateFile, Text, Texts, Values, Whole, Word,
};
use crate::kinds::spec::{Key, may, must};

use super::spec::MAX_COMPONENT_SECS;

/// The maximum time for which a component may be required to stay healthy, in seconds.
const MAX_STABILIZATION_SECS: u32 = 60 * 60;

pub(super) const REPO: &[Key] = &[
    must("repo", Text).doc("`owner/name` on GitHub, an `https://` or `ssh://` address, or `./path` of a directory"),
    may("directory", Text).doc("The directory inside of the repository; its root by default"),
    may("branch", Text).doc("A branch, tag or commit, pinned to a commit at sync; the default branch by default"),
];

const PUBLIC_REPO: Key = may("public_repo", Table(REPO)).doc("A git repository that anyone may read");
const CONNECTED_REPO: Key =
    may("connected_repo", Table(REPO)).doc("A private git repository, read with the vendor's own credentials");
// Only Freehold knows the config key `source`; other tools that read these files do not.
const SOURCE: Key = may("source", Text)
    .doc("`./path` of a directory, relative to the directory of this file; if it is not there, relative to the directory of the app");
const ENV_VARS: Key = may("env_vars", Scalars).doc("Environment variables; values are templates");

pub(super) const VAR_FILE: &[Key] =
    &[must("contents", TemplateFile).doc("The file's text, which is a template; or `./path` of a file with that text")];

/// The keys that components of all types have.
pub(super) const COMPONENT: &[Key] = &[
    must("name", Text).doc("The component's name, by which other files refer to it"),
    must("type", Word(COMPONENT_TYPES)).doc("The type of the component; it decides which other keys the component has"),
    may("var_name", Text).doc("Another name for the component in templates: `.nuon.components.<var_name>`"),
    may("dependencies", Texts)
        .doc("Components to deploy before this component; components that its templates read need not be listed"),
    may("labels", Scalars)
        .doc("Labels by which people find components: `freehold app show APP` lists them, and `--label` chooses by them"),
    may("operation_roles", Tables(OPERATION_ROLE))
        .doc("Roles for operations of the component, instead of the role of the mode"),
    may("kubernetes_context", Text)
        .doc("The cluster to deploy into: the name of a `[[kubernetes_context]]` of `metadata.toml`; the sandbox's cluster by default"),
    may("toggleable", Flag)
        .doc("Whether an install may leave the component out (`freehold install toggles`); `false` by default"),
    may("default_enabled", Flag)
        .doc("Whether an install has the component before somebody switches it on or off; `true` by default"),
    may("build_timeout", Duration(MAX_COMPONENT_SECS)).doc("The time limit of a build: at most `1h`; `15m` by default"),
    may("deploy_timeout", Duration(MAX_COMPONENT_SECS))
        .doc("The time limit of a deploy: at most `1h`, which is also the default"),
    may("max_auto_retries", Whole)
        .doc("How often a failed deploy is retried automatically; `0` by default, at most `10`"),
    may("skip_noops", Flag).doc("Whether to skip the apply when the plan has no changes; `false` by default"),
    may("auto_approve_on_policies_passing", Flag)
        .doc("Whether a plan that passes every policy is approved without a person of the vendor; `false` by default"),
    may("health", Table(HEALTH))
        .doc("The health checks of the component, and whether a deploy and the component's dependents wait for them"),
    may("drift_schedule", Template).doc("When to check for drift: five cron fields in UTC, at most once an hour; never by default. Each install starts later by a fixed offset of its own, 0 to 59 minutes. Terraform modules, charts and manifests are checked; a template is not rendered here, and means never"),
];

pub(super) const OPERATION_ROLE: &[Key] = &[
    must("operation", Word(&["deploy", "teardown"])).doc("The operation that uses the role"),
    must("role", Template).doc("The name of a role of this app; a template"),
];

const HEALTH: &[Key] = &[
    may("enabled", Flag).doc("Whether the health of the component is checked after its deploy; `true` by default"),
    may("block_deploy", Flag)
        .doc("Whether a deploy fails when the component does not become healthy, and whether its dependents wait until it is healthy; `false` by default"),
    may("stabilization_window", Duration(MAX_STABILIZATION_SECS))
        .doc("The time in which the component has to become healthy, and with `block_deploy` also how long it must then stay healthy, at most `1h`; `3m` by default"),
    may("schedule", Text)
        .doc("When to check outside of deploys: five cron fields in UTC, at most once an hour; never by default. Each install starts later by a fixed offset of its own, 0 to 59 minutes"),
    may("required_checks", Texts).doc("Names of external checks that a deploy waits for, at most 10, each reported with `freehold check report`. With `block_deploy`, they have to pass within `stabilization_window` after the component became healthy; without it, they only count in the health that Freehold shows"),
    may("probes", Tables(PROBE)).doc("Probes by which the runner checks whether the component responds; at most 20"),
];

const PROBE: &[Key] = &[
    must("type", Word(&["http", "tcp", "exec"]))
        .doc("`http` requests an address, `tcp` opens a connection, `exec` runs a command"),
    may("name", Text).doc("The probe's name, of at most 64 characters; its address or command by default"),
    may("url", Template).doc("For `http` an address, for `tcp` also `host:port`; a template"),
    may("command", Texts).doc(
        "For `exec`: the program and its arguments, without a shell, of at most 1000 characters together; templates. Exit code 0 within 10 seconds is healthy. The command runs in the box of jobs, with credentials that only read and without a kubeconfig, and the customer agrees to its text with the contract. A runner without boxes does not run it, and the check fails",
    ),
];

pub(crate) const COMPONENT_TYPES: &[&str] = &[
    "terraform_module",
    "container_image",
    "cloudformation_stack",
    "helm_chart",
    "kubernetes_manifest",
    "docker_build",
    "job",
    "pulumi",
    "external_image",
];

/// Returns the keys that only components of type `word` have.
pub(crate) fn component_keys(word: &str) -> &'static [Key] {
    match word {
        "terraform_module" => TERRAFORM_MODULE,
        "container_image" | "external_image" => CONTAINER_IMAGE,
        "cloudformation_stack" => CLOUDFORMATION_STACK,
        "helm_chart" => HELM_CHART,
        "kubernetes_manifest" => KUBERNETES_MANIFEST,
        "docker_build" => DOCKER_BUILD,
        "job" => JOB,
        "pulumi" => PULUMI,
        _ => &[],
    }
}

pub(super) const TERRAFORM_MODULE: &[Key] = &[
    must("terraform_version", Text).doc(
        "The version of Terraform that the module is written for, such as `1.11.3`. The runner uses its own Terraform \
         and logs a difference",
    ),
    PUBLIC_REPO,
    CONNECTED_REPO,
    SOURCE,
    may("vars", Values).doc("Input variables of the module; strings are templates"),
    ENV_VARS,
    may("var_file", Tables(VAR_FILE)).doc("`.tfvars` files, in order; a later file overrides an earlier one"),
    PROVIDERS,
];

// Only Freehold knows the config key `providers`.
pub(super) const PROVIDERS: Key = may("providers", Word(&["packed", "registry"])).doc(
    "The source of the module's providers: `packed` (the default) when the build packs them with the module, or \
     `registry` when each job downloads them from their registry, which the contract then names",
);

const IMAGE_URL: Key =
    must("image_url", Text).filled().doc("The image without its tag, such as `docker.io/library/nginx`");
const TAG: Key = must("tag", Text).doc("The image's tag, pinned to a digest at build");

pub(super) const IMAGE: &[Key] = &[IMAGE_URL, TAG];

pub(super) const ECR_IMAGE: &[Key] = &[
    must("iam_role_arn", Text)
        .doc("A role that may read the repository; `freehold tenant deploy --source-role` lets builds assume it"),
    must("region", Text).doc("The registry's AWS region, such as `us-east-1`"),
    IMAGE_URL,
    TAG,
];

/// What Freehold does instead of a login by an identity of another cloud, or by a secret of the app.
const LOGIN: &str =
    "a build reads the registry anonymously, or with the login that `freehold tenant source add oci://HOST` stores";
/// What Freehold does instead of finding a registry by other keys.
const BY_URL: &str = "`image_url` names the host of the registry";

const GAR_IMAGE: &[Key] = &[
    may("gcp_project_id", Text).doc("The Google Cloud project that holds the registry").never(BY_URL),
    may("region", Text).doc("The registry's Google Cloud region").never(BY_URL),
    IMAGE_URL,
    TAG,
    may("service_account_email", Text).doc("The service account that may read the repository").never(LOGIN),
    may("workload_identity_provider", Text)
        .doc("The workload identity provider by which a build gets the credentials of the service account")
        .never(LOGIN),
];

const ACR_IMAGE: &[Key] = &[
    may("registry_url", Text).doc("The registry's login server, such as `acme.azurecr.io`").never(BY_URL),
    IMAGE_URL,
    TAG,
    may("tenant_id", Text).doc("The Azure tenant that owns the registry").never(LOGIN),
    may("client_id", Text).doc("The app registration that may read the repository").never(LOGIN),
    may("client_secret_name", Text)
        .doc("The name of the secret that holds the app registration's password")
        .never(LOGIN),
    may("client_certificate_name", Text)
        .doc("The name of the secret that holds the app registration's certificate")
        .never(LOGIN),
];

const VERIFICATION: &[Key] = &[
    may("require_signature", Flag)
        .doc("Whether a build fails for an image without a valid signature; `false` by default"),
    may("authorities", Tables(AUTHORITY)).doc(
        "The signers that are accepted; a signature by one of them is enough. Builds check keys, not keyless \
         signatures: name a `public_key`",
    ),
];

const AUTHORITY: &[Key] = &[
    may("type", Word(&["sigstore_keyless", "keyless", "cosign_key"])).doc(
        "The kind of signature; by default, the other keys decide. `keyless` is another name of `sigstore_keyless`",
    ),
    may("issuer", Text).doc("For a keyless signature: who issued the certificate, such as `https://accounts.example`"),
    may("subject", Text).doc("For a keyless signature: the identity in the certificate"),
    may("subject_regexp", Text).doc("For a keyless signature: a pattern of the identity in the certificate"),
    may("public_key", File)
        .doc("The key of `cosign sign --key` in PEM form (ECDSA, RSA or Ed25519), or `./path` of it"),
];

pub(super) const CONTAINER_IMAGE: &[Key] = &[
    may("public", Table(IMAGE)).doc("An image by its reference, read anonymously or with a login of the tenant"),
    may("aws_ecr", Table(ECR_IMAGE)).doc("An image of a private Amazon ECR registry"),
    may("gcp_gar", Table(GAR_IMAGE)).doc("An image of Google Artifact Registry"),
    may("azure_acr", Table(ACR_IMAGE)).doc("An image of Azure Container Registry"),
    // Only Freehold knows this config key: the image is an OCI image layout beside the config.
    may("oci_layout", Table(&[must("path", Text).doc("`./path` of the layout: a directory with an `index.json`")]))
        .doc("An image that is already on disk, as an OCI image layout"),
    may("verification", Table(VERIFICATION))
        .doc("Signatures that the image must have; checked at build, before anything is copied"),
];

/// Only Freehold knows this component type: a template that the runner deploys directly with the AWS API.
pub(super) const CLOUDFORMATION_STACK: &[Key] = &[
    may("template", Text).doc("`./path` of the template"),
    may("source", Text).doc("`./path` of a directory with a `template.yaml` or `template.json`"),
    may("stack_name", Template).doc(
        "The stack's name: a template that begins with `{{ .nuon.install_stack.outputs.prefix }}`; by default, this \
         prefix and the component's name",
    ),
    may("parameters", Scalars).doc("Stack parameters; values are templates"),
    may("capabilities", Texts)
        .doc("The capabilities that CloudFormation requires to be acknowledged, such as `CAPABILITY_NAMED_IAM`"),
];

const VALUES_FILE: &[Key] = &[
    may("contents", TemplateFile).doc("The file's text, which is a template; or `./path` of a file with that text"),
    may("path", TemplateFile).doc("`./path` of the file"),
    may("source", TemplateFile).doc("`./path` of the file; an older name of `path`"),
];

const HELM_REPO: &[Key] = &[
    must("repo_url", Text).doc("The address of the chart repository"),
    must("chart", Text).filled().doc("The chart's name in the repository"),
    may("version", Text).doc("The chart's version; the newest at build by default"),
];

pub(super) const HELM_DRIVERS: &[&str] = &["secret", "configmap", "nuon"];
pub(super) const RELEASES_ARE_SECRETS: &str =
    "it is a store of another tool; Helm keeps the releases in the cluster, as with `secret`";

pub(super) const HELM_CHART: &[Key] = &[
    must("chart_name", Template).filled().doc("The release's name; a template"),
    may("namespace", Template).doc("The namespace; a template; the install's id by default"),
    may("storage_driver", Word(HELM_DRIVERS))
        .doc("Where Helm keeps its releases; by default, `helm_driver` in `runner.toml` decides")
        .never_for("nuon", RELEASES_ARE_SECRETS),
    may("take_ownership", Flag).doc("Whether the release takes over objects that exist already; `false` by default"),
    may("values", Values).doc("Values of the chart; strings are templates"),
    may("values_file", Tables(VALUES_FILE)).doc("Values files, in order; a later file overrides an earlier one"),
    PUBLIC_REPO,
    CONNECTED_REPO,
    SOURCE,
    may("helm_repo", Table(HELM_REPO)).doc("A chart of a chart repository"),
];

const KUSTOMIZE: &[Key] = &[
    may("path", Text).doc("The directory with the `kustomization.yaml`: in the repository, or else beside this file"),
    may("directory", Text)
        .doc("`./path` of a directory next to this file, instead of a repository; all of its files are used"),
    PUBLIC_REPO,
    CONNECTED_REPO,
    may("patches", Any).doc("Patches to apply to the objects of the source"),
    may("enable_helm", Flag).doc("Whether Kustomize may render charts; `false` by default"),
    may("load_restrictor", Word(&["rootOnly", "none"]))
        .doc("Whether files outside of the directory may be read; `rootOnly` by default"),
];

pub(super) const KUBERNETES_MANIFEST: &[Key] = &[
    may("manifest", TemplateFile)
        .doc("The manifest in YAML, which is a template: its text, or the `./path` or address of a file with the text"),
    must("namespace", Template).doc("The namespace; a template"),
    may("kustomize", Table(KUSTOMIZE))
        .doc("A directory from which Kustomize renders the manifest, instead of `manifest`"),
    PUBLIC_REPO,
    CONNECTED_REPO,
];

pub(super) const DOCKER_BUILD: &[Key] = &[
    must("dockerfile", Text).doc("The Dockerfile, relative to the source's directory"),
    may("env_vars", Scalars).doc("More arguments of the build; for the same name, `build_args` takes precedence"),
    PUBLIC_REPO,
    CONNECTED_REPO,
    SOURCE,
    // Only Freehold knows the config key `build_args`.
    may("build_args", Scalars).doc("Arguments of the build (`ARG`)"),
    may("target", Text).doc("The stage of the Dockerfile to build; the last by default"),
    may("hosts", Texts).doc(
        "Hosts that `RUN` and `ADD` may reach, such as package registries: `example.org`, `*.example.org`, `host:port`; none by \
         default. The images that the Dockerfile names do not need a host here",
    ),
];

pub(super) const JOB: &[Key] = &[
    must("image_url", Template).doc(
        "The image without its tag: an image that the build copies, or a template that reads the `repository` of a \
         component's image",
    ),
    must("tag", Template).doc("The image's tag; a template that reads the `tag` of the same component's image"),
    may("cmd", Texts).doc("The program to run, instead of the image's entry point; templates"),
    may("args", Texts).doc("The program's arguments; templates"),
    ENV_VARS,
];

pub(super) const PULUMI: &[Key] = &[
    must("runtime", Word(&["go", "nodejs", "python"])).doc("The language of the program"),
    may("pulumi_version", Text).doc(
        "The version of Pulumi that the program is written for. The runner uses its own Pulumi and logs a difference",
    ),
    PUBLIC_REPO,
    CONNECTED_REPO,
    SOURCE,
    may("config", Values).doc("Configuration of the stack; strings are templates"),
    ENV_VARS,
];
