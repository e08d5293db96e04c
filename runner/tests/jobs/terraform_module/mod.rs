//! Terraform modules, with the real program and its state in the local cloud.

mod fetched_providers;
mod locks;
mod removal;
mod sensitive_outputs;
mod ten_kills;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use freehold_protocol::order::{ApplyTerraform, Artifact, MODULE_ARTIFACT, MODULE_LAYER, Package, RemovePart, Work};
use freehold_protocol::report::Outcome;
use freehold_runner::config::Config;
use freehold_runner::job::StopReason;
use freehold_runner::kinds::execute;
use freehold_skips::have;
use serde_json::{Value, json};

use crate::artifacts::of_layer;
use crate::cloud::Cloud;
use crate::fixture::{Bench, eventually, outputs, processes, reason};

const LOCK: &str = "terraform/network.tfstate.tflock";
const MARK: &str = "terraform/network.fence.json";

async fn artifact(cloud: &Cloud, module: &str) -> Artifact {
    artifact_of(cloud, &[("main.tf", module)]).await
}

async fn artifact_of(cloud: &Cloud, files: &[(&str, &str)]) -> Artifact {
    let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut tar = tar::Builder::new(gzip);
    for (name, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o755);
        tar.append_data(&mut header, name, text.as_bytes()).unwrap();
    }
    let layer = tar.into_inner().unwrap().finish().unwrap();
    of_layer(cloud, Package::TerraformModule, layer, (MODULE_LAYER, MODULE_ARTIFACT)).await
}

fn work(artifact: &Artifact, vars: Value) -> Work {
    let Value::Object(vars) = vars else { panic!("an object") };
    Work::TerraformModule(ApplyTerraform {
        component: "network".parse().unwrap(),
        artifact: artifact.clone(),
        terraform_version: String::new(),
        vars: vars.into_iter().collect(),
        env_vars: BTreeMap::new(),
        var_files: vec!["size = 3\n".into()],
    })
}

async fn state(cloud: &Cloud) -> Value {
    serde_json::from_slice(&cloud.object("terraform/network.tfstate").await.expect("a state")).unwrap()
}

/// The module has a backend of its own, which must not be used.
const MODULE: &str = r#"
terraform {
  backend "local" { path = "elsewhere.tfstate" }
}
variable "name" { type = string }
variable "size" { type = number }
resource "terraform_data" "this" { input = "${var.name}-${var.size}" }
output "name" { value = terraform_data.this.output }
output "secret" {
  value     = "hidden"
  sensitive = true
}
"#;

#[tokio::test]
async fn a_module_is_applied_and_its_state_and_plan_stay_in_the_bucket() {
    if !have(&["bwrap", "terraform"]) {
        return;
    }
    let test = "terraform_module::a_module_is_applied_and_its_state_and_plan_stay_in_the_bucket";
    let Some(cloud) = Cloud::here(test).await else { return };
    let artifact = artifact(&cloud, MODULE).await;
    let mut bench = cloud.bench(work(&artifact, json!({ "name": "{{ .nuon.install.id }}" })), &artifact);

    let first = execute(&bench.job).await;
    let log = bench.log();
    bench.next_attempt();
    let second = execute(&bench.job).await;
    let second_log = bench.log();
    bench.next_attempt();
    bench.change_order(|order| order.skip_noops = true);
    let skipped = execute(&bench.job).await;
    let skipped_log = bench.log();

    println!("{log}");
    assert_eq!(outputs(first), json!({ "name": "globex-prod-3" }));
    assert_eq!(outputs(skipped), json!({ "name": "globex-prod-3" }));
    assert!(skipped_log.contains("nothing is applied (`skip_noops`)") && !skipped_log.contains("Apply complete!"));
    assert!(second_log.contains("Apply complete!"), "{second_log}");
    assert_eq!(outputs(second), json!({ "name": "globex-prod-3" }));
    assert!(log.contains("1 to create, 0 to update, 0 to replace, 0 to delete"));
    assert!(second_log.contains("0 to create, 0 to update, 0 to replace, 0 to delete"));
    assert_eq!(state(&cloud).await["outputs"]["secret"]["value"], "hidden");
    let plan = cloud.object("plans/job_00000000000000000001/1.1.bin").await.expect("a plan");
    assert!(log.contains(freehold_protocol::Digest::of(&plan).as_str()));
    assert!(cloud.object(LOCK).await.is_none());
    let mark: Value = serde_json::from_slice(&cloud.object(MARK).await.unwrap()).unwrap();
    assert_eq!(mark["ended"], true);
}

#[tokio::test]
async fn a_sandbox_has_a_state_apart_from_those_of_components() {
    if !have(&["bwrap", "terraform"]) {
        return;
    }
    let test = "terraform_module::a_sandbox_has_a_state_apart_from_those_of_components";
    let Some(cloud) = Cloud::here(test).await else { return };
    let artifact = artifact(&cloud, MODULE).await;
    let Work::TerraformModule(module) = work(&artifact, json!({ "name": "net" })) else { panic!("a module") };
    let bench = cloud.bench(Work::Sandbox(module), &artifact);

    let made = execute(&bench.job).await;

    assert_eq!(outputs(made), json!({ "name": "net-3" }), "{}", bench.log());
    assert!(cloud.object("terraform/sandbox/sandbox.tfstate").await.is_some());
    assert!(cloud.object("terraform/sandbox/sandbox.fence.json").await.is_some());
    assert!(cloud.object("terraform/network.tfstate").await.is_none());
}

/// What the platform sets, and one variable of which the config says something else.
const OF_THE_PLATFORM: &str = r#"
variable "nuon_id" { type = string }
variable "region" { type = string }
variable "vpc_id" { type = string }
variable "tags" { type = map(any) }
variable "size" { type = number }
variable "name" { type = string }
variable "internal_root_domain" { type = string }
output "all" {
  value = "${var.nuon_id} ${var.region} ${var.vpc_id} ${var.tags["freehold:install"]} ${var.internal_root_domain} ${var.name}"
}
"#;

#[tokio::test]
async fn a_sandbox_gets_the_variables_of_its_platform_unless_the_config_sets_them() {
    if !have(&["bwrap", "terraform"]) {
        return;
    }
    let test = "terraform_module::a_sandbox_gets_the_variables_of_its_platform_unless_the_config_sets_them";
    let Some(cloud) = Cloud::here(test).await else { return };
    let artifact = artifact(&cloud, OF_THE_PLATFORM).await;
    let vars = json!({ "name": "{{ .nuon.install_stack.outputs.vpc_id }}", "internal_root_domain": "globex.example" });
    let Work::TerraformModule(module) = work(&artifact, vars) else { panic!("a module") };
    let mut bench = cloud.bench(Work::Sandbox(module), &artifact);

    let early = execute(&bench.job).await;
    bench.job.config = Arc::new(Config {
        outputs: [("vpc_id".to_owned(), "vpc-0a1b".to_owned())].into(),
        ..(*bench.job.config).clone()
    });
    bench.next_attempt();
    let made = execute(&bench.job).await;

    assert_eq!(
        reason(early).0,
        "the sandbox, variable `name`: `.nuon.install_stack.outputs.vpc_id` has no value (line 1, column 4); the install \
         stack has no `vpc_id`: launch its current template, which makes a network or takes yours (`VpcId`, \
         `PublicSubnetIds`, `PrivateSubnetIds`), and start the runner with its outputs"
    );
    let all = "globex-prod eu-west-1 vpc-0a1b globex-prod globex.example vpc-0a1b";
    assert_eq!(outputs(made), json!({ "all": all }), "{}", bench.log());
}

#[tokio::test]
async fn a_module_is_removed_and_a_second_removal_finds_nothing() {
    if !have(&["bwrap", "terraform"]) {
        return;
    }
    let test = "terraform_module::a_module_is_removed_and_a_second_removal_finds_nothing";
    let Some(cloud) = Cloud::here(test).await else { return };
    let artifact = artifact(&cloud, MODULE).await;
    let work = work(&artifact, json!({ "name": "net" }));
    execute(&cloud.bench(work.clone(), &artifact).job).await;
    let removal = Work::Remove(RemovePart { what: Box::new(work), destroy_data: false, removes_policies: false });
    let mut bench = cloud.bench(removal, &artifact);

    bench.next_attempt();
    let first = execute(&bench.job).await;
    let log = bench.log();
    bench.next_attempt();
    let second = execute(&bench.job).await;

    assert_eq!(outputs(first), json!({}), "{log}");
    assert!(log.contains("0 to create, 0 to update, 0 to replace, 1 to delete"), "{log}");
    assert_eq!(outputs(second), json!({}));
    assert!(bench.log().contains("0 to create, 0 to update, 0 to replace, 0 to delete"), "{}", bench.log());
    assert_eq!(state(&cloud).await["resources"], json!([]));
    assert!(cloud.object(LOCK).await.is_none());
}

#[tokio::test]
async fn a_module_that_was_never_applied_is_removed_too() {
    if !have(&["bwrap", "terraform"]) {
        return;
    }
    let Some(cloud) = Cloud::here("terraform_module::a_module_that_was_never_applied_is_removed_too").await else {
        return;
    };
    let artifact = artifact(&cloud, MODULE).await;
    let what = Box::new(work(&artifact, json!({ "name": "net" })));
    let bench = cloud.bench(Work::Remove(RemovePart { what, destroy_data: false, removes_policies: false }), &artifact);

    let removed = execute(&bench.job).await;

    assert_eq!(outputs(removed), json!({}), "{}", bench.log());
    assert!(cloud.object(LOCK).await.is_none());
}

#[tokio::test]
async fn a_module_that_does_not_plan_fails_without_a_change_and_says_why() {
    if !have(&["bwrap", "terraform"]) {
        return;
    }
    let test = "terraform_module::a_module_that_does_not_plan_fails_without_a_change_and_says_why";
    let Some(cloud) = Cloud::here(test).await else { return };
    let artifact = artifact(&cloud, MODULE).await;
    let bench = cloud.bench(work(&artifact, json!({})), &artifact);

    let (reason, partial) = reason(execute(&bench.job).await);

    assert!(reason.contains("`terraform plan`") && reason.contains("No value for required variable"), "{reason}");
    assert!(!partial);
    assert!(cloud.object("terraform/network.tfstate").await.is_none());
}

/// The first resource is quick, the second one takes a year; its mark is in the command line of what it runs.
fn slow(mark: &str) -> String {
    format!(
        r#"
variable "size" {{ type = number }}
resource "terraform_data" "quick" {{ input = "done" }}
resource "terraform_data" "slow" {{
  depends_on = [terraform_data.quick]
  provisioner "local-exec" {{ command = "sleep {mark}" }}
}}
output "quick" {{ value = terraform_data.quick.output }}
"#
    )
}

async fn interrupt(bench: &Bench, mark: &str, reason: StopReason) -> Outcome {
    let (outcome, ()) = tokio::join!(execute(&bench.job), async {
        eventually("the slow resource is being made", || !processes(&format!("sleep {mark}")).is_empty()).await;
        bench.stop.send(Some(reason)).unwrap();
    });
    outcome
}

#[tokio::test]
async fn a_stopped_apply_keeps_its_state_and_gives_its_lock_back() {
    if !have(&["bwrap", "terraform"]) {
        return;
    }
    let test = "terraform_module::a_stopped_apply_keeps_its_state_and_gives_its_lock_back";
    let Some(cloud) = Cloud::here(test).await else { return };
    let artifact = artifact(&cloud, &slow("31536021")).await;
    let bench = cloud.bench(work(&artifact, json!({})), &artifact);

    let outcome = interrupt(&bench, "31536021", StopReason::TimedOut).await;

    println!("{}", bench.log());
    let (reason, partial) = reason(outcome);
    assert!(reason.contains("its time limit") && partial, "{reason}");
    assert_eq!(state(&cloud).await["resources"][0]["name"], "quick");
    assert!(cloud.object(LOCK).await.is_none());
    eventually("no process is left", || processes("sleep 31536021").is_empty()).await;
}

/// Does nothing unless its variables are set: it is the runner that the next test kills.
#[tokio::test]
async fn a_runner_that_applies() {
    let Ok(artifact) = std::env::var("FREEHOLD_TEST_ARTIFACT") else { return };
    let artifact: Artifact = serde_json::from_str(&artifact).unwrap();
    execute(&Bench::new(work(&artifact, json!({}))).job).await;
}

#[tokio::test]
async fn the_next_attempt_breaks_the_lock_of_a_killed_one_and_plans_anew() {
    if !have(&["bwrap", "terraform"]) {
        return;
    }
    let test = "terraform_module::the_next_attempt_breaks_the_lock_of_a_killed_one_and_plans_anew";
    let Some(cloud) = Cloud::here(test).await else { return };
    let artifact_slow = artifact(&cloud, &slow("31536022")).await;
    // Brings the artifact into the install registry, so that the runner to be killed needs no grant.
    let image =
        freehold_protocol::order::SyncImage { component: "network".parse().unwrap(), artifact: artifact_slow.clone() };
    outputs(execute(&cloud.bench(Work::ContainerImage(image), &artifact_slow).job).await);
    let mut runner = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "terraform_module::a_runner_that_applies"])
        .env("FREEHOLD_TEST_ARTIFACT", serde_json::to_string(&artifact_slow).unwrap())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    eventually("the slow resource is being made", || !processes("sleep 31536022").is_empty()).await;
    runner.kill().await.unwrap();
    eventually("terraform is gone", || processes("sleep 31536022").is_empty()).await;
    assert!(cloud.object(LOCK).await.is_some(), "a killed attempt leaves its lock");

    let fixed = slow("0");
    let artifact = artifact(&cloud, &fixed).await;
    let mut bench = cloud.bench(work(&artifact, json!({})), &artifact);
    bench.next_attempt();
    let outcome = execute(&bench.job).await;

    let log = bench.log();
    println!("{log}");
    assert_eq!(outputs(outcome), json!({ "quick": "done" }));
    assert!(log.contains("which a killed attempt left on the state"), "{log}");
    assert!(cloud.object(LOCK).await.is_none());
}

#[tokio::test]
async fn a_lock_of_somebody_else_is_not_touched() {
    if !have(&["bwrap", "terraform"]) {
        return;
    }
    let Some(cloud) = Cloud::here("terraform_module::a_lock_of_somebody_else_is_not_touched").await else { return };
    let artifact = artifact(&cloud, MODULE).await;
    let lock = r#"{"ID":"8b9d4dd2-0000-0000-0000-000000000000","Operation":"OperationTypeApply","Info":"","Who":"alice@laptop","Version":"1.11.4","Created":"2026-11-21T00:00:00Z","Path":"x"}"#;
    cloud.put_object(LOCK, lock).await;
    let bench = cloud.bench(work(&artifact, json!({ "name": "n" })), &artifact);
    let stop = bench.stop.clone();

    // Terraform waits for the lock for a minute; it is asked to stop as soon as it tries.
    let (outcome, ()) = tokio::join!(execute(&bench.job), async {
        eventually("terraform plans", || !processes("plan\u{0}-input=false").is_empty()).await;
        stop.send(Some(StopReason::Cancelled)).unwrap();
    });

    assert_eq!(outcome, Outcome::Cancelled);
    assert_eq!(cloud.object(LOCK).await.unwrap(), lock.as_bytes());
}

#[tokio::test]
async fn an_attempt_that_finds_a_higher_fence_of_its_job_changes_nothing() {
    let test = "terraform_module::an_attempt_that_finds_a_higher_fence_of_its_job_changes_nothing";
    if !have(&["bwrap", "terraform"]) {
        return;
    }
    let Some(cloud) = Cloud::here(test).await else { return };
    let artifact = artifact(&cloud, MODULE).await;
    let mark = json!({ "job": "job_00000000000000000001", "fence": { "dispatch": 1, "receive": 2 }, "ended": false });
    cloud.put_object(MARK, &mark.to_string()).await;
    let bench = cloud.bench(work(&artifact, json!({ "name": "n" })), &artifact);

    let (reason, partial) = reason(execute(&bench.job).await);

    assert!(reason.contains("a newer attempt") && !partial, "{reason}");
    assert!(cloud.object("terraform/network.tfstate").await.is_none());
}

#[tokio::test]
async fn a_provider_that_the_module_does_not_pin_is_not_used() {
    if !have(&["bwrap", "terraform"]) {
        return;
    }
    let test = "terraform_module::a_provider_that_the_module_does_not_pin_is_not_used";
    let Some(cloud) = Cloud::here(test).await else { return };
    let module = "terraform {\n  required_providers {\n    fake = {\n      source = \"example.com/acme/fake\"\n    }\n  }\n}\n\
                  resource \"fake_thing\" \"x\" {}\n";
    let platform = if cfg!(target_arch = "aarch64") { "linux_arm64" } else { "linux_amd64" };
    // Terraform takes it for a mirror by itself (Terraform CLI documentation, "Implied Local Mirror Directories").
    let provider = format!("terraform.d/plugins/example.com/acme/fake/1.0.0/{platform}/terraform-provider-fake_v1.0.0");
    let files = [("main.tf", module), (provider.as_str(), "#!/bin/sh\nexit 1\n")];
    let artifact = artifact_of(&cloud, &files).await;
    let Work::TerraformModule(mut work) = work(&artifact, json!({})) else { panic!("a module") };
    work.var_files.clear();
    let bench = cloud.bench(Work::TerraformModule(work), &artifact);

    let (why, partial) = reason(execute(&bench.job).await);

    assert!(why.contains("`.terraform.lock.hcl` does not pin") && !partial, "{why}\n{}", bench.log());
}

/// Stands in for Terraform: its `plan` does what a provider might do beside the plan.
fn fake_terraform(bench: &mut Bench, plan: &str) {
    let path = bench.directory.path().join("terraform");
    let script = format!(
        "#!/bin/sh\ncase $1 in\nversion) echo '{{\"terraform_version\": \"1.11.4\"}}' ;;\nplan) {plan} ;;\nshow | output) echo '{{}}' ;;\n\
         esac\n"
    );
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    bench.change_config(|config| config.terraform = Some(path));
}

#[tokio::test]
async fn a_plan_that_is_not_a_plain_file_is_neither_read_nor_kept() {
    if !have(&["bwrap", "mkfifo", "truncate"]) {
        return;
    }
    let test = "terraform_module::a_plan_that_is_not_a_plain_file_is_neither_read_nor_kept";
    let Some(cloud) = Cloud::here(test).await else { return };
    let artifact = artifact(&cloud, MODULE).await;
    let mut bench = cloud.bench(work(&artifact, json!({ "name": "n" })), &artifact);
    let key = bench.directory.path().join("runner.key");
    std::fs::write(&key, "key").unwrap();

    for (plan, why) in [
        (format!("ln -s {} plan.bin", key.display()), "`module/plan.bin` is not a regular file"),
        ("echo plan > other; ln other plan.bin".to_owned(), "`module/plan.bin` is not a regular file"),
        ("mkfifo plan.bin".to_owned(), "`module/plan.bin` is not a regular file"),
        ("ln -s /dev/zero plan.bin".to_owned(), "`module/plan.bin` is not a regular file"),
        ("truncate -s 2G plan.bin".to_owned(), "the runner reads at most 1073741824"),
        ("true".to_owned(), "`module/plan.bin` is gone"),
    ] {
        fake_terraform(&mut bench, &plan);
        let (found, partial) = reason(execute(&bench.job).await);

        assert!(found.contains(why) && !partial, "{plan}: {found}");
        let key = format!("plans/job_00000000000000000001/1.{}.bin", bench.job.fence.receive);
        assert!(cloud.object(&key).await.is_none(), "{plan}");
        bench.next_attempt();
    }
}

#[tokio::test]
async fn what_terraform_prints_goes_to_no_name_in_the_workspace() {
    if !have(&["bwrap", "mkfifo"]) {
        return;
    }
    let test = "terraform_module::what_terraform_prints_goes_to_no_name_in_the_workspace";
    let Some(cloud) = Cloud::here(test).await else { return };
    let artifact = artifact(&cloud, MODULE).await;
    let mut bench = cloud.bench(work(&artifact, json!({ "name": "n" })), &artifact);
    let key = bench.directory.path().join("runner.key");
    std::fs::write(&key, "key").unwrap();
    let links = format!("ln -s {} ../plan.json; mkfifo ../outputs.json; echo plan > plan.bin", key.display());
    fake_terraform(&mut bench, &links);

    let outcome = execute(&bench.job).await;

    assert_eq!(outputs(outcome), json!({}), "{}", bench.log());
    assert_eq!(std::fs::read_to_string(&key).unwrap(), "key");
    assert_eq!(cloud.object("plans/job_00000000000000000001/1.1.bin").await.unwrap(), b"plan\n");
}

#[tokio::test]
async fn the_bytes_that_were_hashed_are_applied_whatever_is_in_the_workspace_by_then() {
    if !have(&["bwrap"]) {
        return;
    }
    let test = "terraform_module::the_bytes_that_were_hashed_are_applied_whatever_is_in_the_workspace_by_then";
    let Some(cloud) = Cloud::here(test).await else { return };
    let artifact = artifact(&cloud, MODULE).await;
    let mut bench = cloud.bench(work(&artifact, json!({ "name": "n" })), &artifact);
    let apply =
        "echo other > plan.bin; for last; do :; done; echo \"applies $(cat $last)\"; echo third > $last || true";
    fake_terraform(&mut bench, &format!("echo plan > plan.bin ;;\napply) {apply}"));

    let outcome = execute(&bench.job).await;

    let log = bench.log();
    assert_eq!(outputs(outcome), json!({}), "{log}");
    assert!(log.contains("applies plan\n") && log.contains("ead-only file system"), "{log}");
    assert_eq!(cloud.object("plans/job_00000000000000000001/1.1.bin").await.unwrap(), b"plan\n");
    let left = std::fs::read_dir(bench.job.workspace.parent().unwrap()).unwrap();
    assert!(left.flatten().all(|entry| !entry.file_name().to_string_lossy().ends_with(".plan")));
}

#[tokio::test]
async fn a_variable_that_could_undo_the_lock_file_fails_the_job_before_terraform_runs() {
    if !have(&["bwrap"]) {
        return;
    }
    let test = "terraform_module::a_variable_that_could_undo_the_lock_file_fails_the_job_before_terraform_runs";
    let Some(cloud) = Cloud::here(test).await else { return };
    let artifact = artifact(&cloud, MODULE).await;

    let of_terraform = ["TF_CLI_CONFIG_FILE", "TF_REATTACH_PROVIDERS", "TF_PLUGIN_CACHE_DIR", "TF_ENCRYPTION"];
    let of_others = ["GIT_SSH_COMMAND", "LD_PRELOAD", "PATH", "AWS_CONFIG_FILE", "AWS_PROFILE"];
    for name in of_terraform.into_iter().chain(of_others) {
        let Work::TerraformModule(mut work) = work(&artifact, json!({ "name": "n" })) else { panic!("a module") };
        work.env_vars.insert(name.into(), "/workspace/module/x".into());
        let mut bench = cloud.bench(Work::TerraformModule(work), &artifact);
        let ran = bench.job.workspace.join("module/ran");
        fake_terraform(&mut bench, "touch ran");

        let (why, partial) = reason(execute(&bench.job).await);

        assert!(why.contains(&format!("environment variable `{name}`")) && why.contains("`env_vars`"), "{why}");
        assert!(!partial && !ran.exists());
    }
}
