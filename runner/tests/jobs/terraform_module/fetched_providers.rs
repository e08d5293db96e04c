//! Providers that Terraform fetches itself: what one job leaves for the next one.

use freehold_protocol::order::Work;
use freehold_protocol::terraform::own_platform;
use freehold_runner::kinds::execute;
use freehold_skips::have;
use serde_json::json;

use super::{artifact_of, fake_terraform, work};
use crate::cloud::Cloud;
use crate::fixture::{Bench, outputs};

/// The lock file of a provider that consists of the files `a` with "one" and `b` with "two".
const LOCK: &str = r#"
provider "registry.example/acme/note" {
  version = "1.0.0"
  hashes = [
    "h1:c9kx41MfEyR7vDoBCPzQwO9IAmCl51mA23+m4LxTGsQ=",
  ]
}
"#;

/// Lets `init` fetch the provider, with `first` as the content of its file `a`, unless the cache has the provider. Then
/// it tries to change the provider.
fn fetch(bench: &mut Bench, first: &str) {
    let place = format!("registry.example/acme/note/1.0.0/{}", own_platform());
    let init = format!(
        "cd $TF_PLUGIN_CACHE_DIR; if [ -e {place} ]; then echo \"has $(cat {place}/a)\"; \
         (echo evil > {place}/a) 2>/dev/null || echo \"cannot change it\"; \
         else mkdir -p {place}; echo {first} > {place}/a; echo two > {place}/b; echo fetched; fi"
    );
    fake_terraform(bench, &format!("echo plan > plan.bin ;;\ninit) {init}"));
}

/// Returns the cloud, and a job for a module with the lock file.
async fn here(test: &str) -> Option<(Cloud, Bench)> {
    if !have(&["bwrap"]) {
        return None;
    }
    let cloud = Cloud::here(&format!("terraform_module::fetched_providers::{test}")).await?;
    let artifact = artifact_of(&cloud, &[("main.tf", ""), (".terraform.lock.hcl", LOCK)]).await;
    let Work::TerraformModule(mut work) = work(&artifact, json!({})) else { panic!("a module") };
    work.var_files.clear();
    let bench = cloud.bench(Work::TerraformModule(work), &artifact);
    Some((cloud, bench))
}

#[tokio::test]
async fn a_fetched_provider_is_kept_and_no_later_job_can_change_it() {
    let test = "a_fetched_provider_is_kept_and_no_later_job_can_change_it";
    let Some((_cloud, mut bench)) = here(test).await else { return };
    fetch(&mut bench, "one");

    let mut logs = Vec::new();
    for _ in 0..3 {
        outputs(execute(&bench.job).await);
        logs.push(bench.log());
        bench.next_attempt();
    }

    assert!(logs[0].contains("fetched"), "{}", logs[0]);
    for log in &logs[1..] {
        assert!(log.contains("has one") && log.contains("cannot change it"), "{log}");
    }
}

#[tokio::test]
async fn what_a_job_puts_into_its_cache_beside_the_lock_file_reaches_no_other_job() {
    let test = "what_a_job_puts_into_its_cache_beside_the_lock_file_reaches_no_other_job";
    let Some((_cloud, mut bench)) = here(test).await else { return };

    fetch(&mut bench, "evil");
    outputs(execute(&bench.job).await);
    let evil = bench.log();
    bench.next_attempt();
    fetch(&mut bench, "one");
    outputs(execute(&bench.job).await);

    assert!(evil.contains("fetched"), "{evil}");
    let log = bench.log();
    assert!(log.contains("fetched") && !log.contains("has evil"), "{log}");
}
