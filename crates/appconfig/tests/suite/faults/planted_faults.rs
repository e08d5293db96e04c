//! Faults that people make, planted into copies of real app configs: each is found once, with its file and line.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use freehold_appconfig::{Diagnostic, Severity, check};
use tempfile::TempDir;

use crate::real_apps::{copy_tree, real_apps};

/// A change of a file: its path, and the text that is replaced by another one. An empty text stands for the whole file.
type Edit = (&'static str, &'static str, &'static str);

/// A fault: the app, the changes, and the new finding with its place and the start of its message.
type Fault = (&'static str, &'static [Edit], &'static str);

const ALB: &str = "components/4-alb-backend.toml";
const CERTIFICATE: &str = "components/2-certificate.toml";
const CLASS: &str = "components/0-default-storage-class.toml";
const REPOSITORY: &str = "[public_repo]\nrepo      = \"nuonco/example-app-configs\"\ndirectory = \"baserow/src/components/alb\"\nbranch    = \"main\"\n";
const CERTIFICATE_REPOSITORY: &str =
    "repo      = \"nuonco/example-app-configs\"\ndirectory = \"baserow/src/components/certificate\"\n";

const FAULTS: [Fault; 32] = [
    (
        "baserow",
        &[(ALB, "components.certificate", "components.certificat")],
        "error 4-alb-backend.toml:14: there is no component `certificat`",
    ),
    (
        "baserow",
        &[(ALB, "\"certificate\", \"baserow\"", "\"certificate\", \"base_row\"")],
        "error 4-alb-backend.toml:5: there is no component `base_row`",
    ),
    (
        "baserow",
        &[("sandbox.toml", "inputs.inputs.instance_type", "inputs.inputs.instance_typ")],
        "error sandbox.toml:15: there is no input `instance_typ`",
    ),
    (
        "baserow",
        &[("inputs.toml", "\"instance_type\"", "\"node_type\"")],
        "error sandbox.toml:15: there is no input `instance_type`",
    ),
    (
        "baserow",
        &[("inputs.toml", "group        = \"baserow\"", "group        = \"basrow\"")],
        "error inputs.toml:13: there is no input group `basrow`",
    ),
    (
        "baserow",
        &[(CERTIFICATE, "install_stack.outputs.region", "install_stack.outputs.regoin")],
        "warning 2-certificate.toml:17: no install stack has an output `regoin`",
    ),
    (
        "baserow",
        &[(ALB, ".nuon.install.id}}-backend", ".nuon.install.ids}}-backend")],
        "warning 4-alb-backend.toml:16: `.nuon.install.ids` does not exist",
    ),
    (
        "baserow",
        &[(
            CERTIFICATE,
            "sandbox.outputs.nuon_dns.public_domain.zone_id",
            "sandbox.output.nuon_dns.public_domain.zone_id",
        )],
        "warning 2-certificate.toml:13: `.nuon.install.sandbox.output` does not exist",
    ),
    (
        "baserow",
        &[("sandbox.toml", "inputs.inputs.instance_type", "inputs.instance_type")],
        "warning sandbox.toml:15: `.nuon.inputs.instance_type` does not exist",
    ),
    (
        "baserow",
        &[("sandbox.toml", "{{ .nuon.inputs.inputs.instance_type }}", "${.nuon.inputs.inputs.instance_type}")],
        "warning sandbox.toml:15: `${.nuon.inputs.inputs.instance_type}` is not a template",
    ),
    (
        "baserow",
        &[(ALB, "{{.nuon.install.id}}-backend", "{{.nuon.install.id}-backend")],
        "error 4-alb-backend.toml:16: template: unexpected character `}`",
    ),
    (
        "baserow",
        &[("components/values/baserow/values.yaml", "", "a: [1\nb: 2\n")],
        "error values.yaml:2: the text of values is not YAML",
    ),
    (
        "baserow",
        &[("components/1-baserow.toml", "\"./values/baserow", "\"values/baserow")],
        "error 1-baserow.toml:15: `values/baserow/values.yaml` is read as a text, not as a path",
    ),
    (
        "baserow",
        &[("components/1-baserow.toml", "\"./values/baserow", "\"./value/baserow")],
        "warning 1-baserow.toml:15: `./value/baserow/values.yaml` cannot be read",
    ),
    (
        "baserow",
        &[(CLASS, "metadata:\n  name: gp2", "metadata:\n name: gp2\n   x: y")],
        "error 0-default-storage-class.toml:13: the manifest is not YAML",
    ),
    (
        "baserow",
        &[(CLASS, "kind: StorageClass\n", "")],
        "error 0-default-storage-class.toml:9: the object has no `kind`",
    ),
    (
        "baserow",
        &[("sandbox.tfvars", "", "tags = {\n  a = 1\n")],
        "error sandbox.tfvars:1: the variable file is not HCL",
    ),
    (
        "baserow",
        &[("permissions/provision.toml", "AdministratorAccess", "AdminstratorAccess")],
        "warning provision.toml:8: AWS has no managed policy `AdminstratorAccess`",
    ),
    (
        "baserow",
        &[("permissions/maintenance.toml", "\"secretsmanager:TagResource\",", "\"secretsmanager:TagResource\"")],
        "error maintenance.toml:25: the policy document is not JSON",
    ),
    (
        "baserow",
        &[(ALB, "chart_name   = ", "chart_nam    = ")],
        "error 4-alb-backend.toml:1: key `chart_name` is missing",
    ),
    (
        "baserow",
        &[(ALB, "chart_name   = ", "kubernetes_context = \"prod\"\nchart_name   = ")],
        "error 4-alb-backend.toml:4: there is no kubernetes context `prod`",
    ),
    (
        "baserow",
        &[(ALB, REPOSITORY, "source = \"./alb\"\n"), ("components/alb/values.yaml", "", "a: 1\n")],
        "error 4-alb-backend.toml:8: there is no `Chart.yaml` in `components/alb`",
    ),
    (
        "baserow",
        &[
            (CERTIFICATE, CERTIFICATE_REPOSITORY, "repo = \"./src\"\n"),
            ("src/main.tf", "", "resource \"aws_acm_certificate\" \"x\" {\n"),
        ],
        "error main.tf:1: not Terraform",
    ),
    (
        "baserow",
        &[("components/0-s3-bucket.toml", "terraform_version = \"1.11.3\"", "terraform_version = \"latest\"")],
        "warning 0-s3-bucket.toml:4: `terraform_version` is `latest`",
    ),
    (
        "baserow",
        &[("policies/unused.yaml", "", "a: 1\n")],
        "warning unused.yaml:1: `policies/unused.yaml` is not read: no file of the config names it",
    ),
    (
        "aws-lambda",
        &[("actions/http_healthcheck.toml", "\"api_gateway\"", "\"api_gatway\"")],
        "error http_healthcheck.toml:12: there is no component `api_gatway`",
    ),
    (
        "aws-lambda",
        &[("actions/http_healthcheck.toml", "post-deploy-component", "post-deployed-component")],
        "error http_healthcheck.toml:11: there is no trigger `post-deployed-component`",
    ),
    (
        "aws-lambda",
        &[("actions/http_healthcheck.toml", "timeout = \"10m\"", "timeout = \"10m\"\nrole = \"admin\"")],
        "error http_healthcheck.toml:4: there is no role `admin`",
    ),
    (
        "aws-lambda",
        &[("actions/http_healthcheck.toml", "timeout = \"10m\"", "timeout = \"2h\"")],
        "error http_healthcheck.toml:3: `timeout` is 7200 seconds",
    ),
    (
        "aws-lambda",
        &[("actions/http_healthcheck.toml", "type = \"manual\"", "type = \"cron\"\ncron_schedule = \"*/5 * * *\"")],
        "error http_healthcheck.toml:9: the schedule has 4 fields",
    ),
    (
        "aws-lambda",
        &[(
            "actions/http_healthcheck.toml",
            "timeout = \"10m\"",
            "timeout = \"10m\"\nenv_vars = { K = \"{{.nuon.secrets.api_key}}\" }",
        )],
        "error http_healthcheck.toml:4: there is no secret `api_key`",
    ),
    (
        "aws-lambda",
        &[("actions/hello.toml", "\"hello\"", "\"http_healthcheck\"")],
        "error http_healthcheck.toml:2: action `http_healthcheck` is defined twice",
    ),
];

#[test]
fn every_planted_fault_is_found_at_its_line_and_said_once() {
    let Some(apps) = real_apps() else { return };

    let wrong: Vec<String> =
        FAULTS.iter().filter_map(|(app, edits, expected)| fault(&apps, app, edits, expected)).collect();

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Plants one fault. Returns what is wrong with the findings.
fn fault(apps: &[PathBuf], app: &str, edits: &[Edit], expected: &str) -> Option<String> {
    let real = apps.iter().find(|dir| dir.ends_with(app)).unwrap();
    let home = TempDir::new().unwrap();
    let copy = home.path().join(app);
    copy_tree(real, &copy);
    let before: BTreeSet<(String, String)> = check(&copy).iter().map(known).collect();
    for (path, old, new) in edits {
        edit(&copy.join(path), old, new);
    }
    let found: Vec<String> = check(&copy).iter().filter(|one| !before.contains(&known(one))).map(shown).collect();
    // A key with a wrong name is both an unknown key and a missing one.
    let others = found.iter().filter(|one| !one.starts_with(expected) && !one.contains(": unknown key `")).count();
    let times = found.iter().filter(|one| one.starts_with(expected)).count();
    (times != 1 || others != 0).then(|| format!("{app}: expected once `{expected}`, found:\n  {}", found.join("\n  ")))
}

fn edit(path: &Path, old: &str, new: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    if old.is_empty() {
        return std::fs::write(path, new).unwrap();
    }
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains(old), "{}: `{old}`", path.display());
    std::fs::write(path, text.replacen(old, new, 1)).unwrap();
}

fn known(one: &Diagnostic) -> (String, String) {
    (one.file.clone(), one.message.clone())
}

/// Returns severity, name of the file, line and message of a finding.
fn shown(one: &Diagnostic) -> String {
    let severity = if one.severity == Severity::Error { "error" } else { "warning" };
    let file = one.file.rsplit('/').next().unwrap_or_default();
    format!("{severity} {file}:{}: {}", one.line, one.message)
}
