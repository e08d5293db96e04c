//! What a preflight finds in the local cloud and on this machine.

use std::os::unix::fs::PermissionsExt as _;

use freehold_protocol::Digest;
use freehold_protocol::order::Work;
use freehold_protocol::preflight::{CheckInstall, ExistingCluster, Finding, Verdict};
use freehold_protocol::report::Outcome;
use freehold_runner::kinds::execute;
use freehold_skips::have;

use serde_json::json;

use crate::cloud::Cloud;
use crate::cluster::{self, Cluster, DEPLOYER, NAME, READER, STRANGER};
use crate::fixture::{ACCOUNT, Bench, outputs, reason};

fn bench(change: impl FnOnce(&mut CheckInstall)) -> Bench {
    let mut work = CheckInstall { disk_bytes: 1 << 20, ..CheckInstall::default() };
    change(&mut work);
    Bench::new(Work::Preflight(work))
}

fn findings(outcome: Outcome) -> Vec<Finding> {
    serde_json::from_value(outputs(outcome)["findings"].clone()).unwrap()
}

fn states<'a>(findings: &'a [Finding], check: &str) -> Vec<(Verdict, &'a str)> {
    findings.iter().filter(|found| found.check == check).map(|found| (found.state, found.detail.as_str())).collect()
}

#[tokio::test]
async fn all_is_well_and_what_cannot_be_asked_is_a_warning() {
    if !have(&["terraform", "bwrap"]) {
        return;
    }
    let Some(cloud) = Cloud::here("preflight::all_is_well_and_what_cannot_be_asked_is_a_warning").await else { return };
    let bench = bench(|work| {
        work.terraform_versions.insert("99.0.0".into());
        work.stacks.insert("{{ .nuon.install.id }}-storage".into());
        work.stacks.insert("{{ .nuon.components.net.outputs.name }}".into());
        work.programs = true;
        work.hosts.insert("127.0.0.1:1".into());
    });
    let before = cloud.object("terraform/freehold-preflight").await;

    let found = findings(execute(&bench.job).await);

    let log = bench.log();
    println!("{log}");
    assert!(found.iter().all(|one| one.state != Verdict::Fail), "{found:#?}");
    assert!(found.iter().all(|one| log.contains(&format!("{}  {}: ", one.state.as_str(), one.check))), "{log}");
    for check in ["region", "install registry", "state bucket", "stack globex-prod-storage", "sandbox"] {
        let states = states(&found, check);
        assert!(!states.is_empty() && states.iter().all(|(state, _)| *state == Verdict::Pass), "{check}: {states:?}");
    }
    let (terraform, host) = (states(&found, "terraform"), states(&found, "network 127.0.0.1:1"));
    assert!(terraform[0].0 == Verdict::Warn && terraform[0].1.contains("names `99.0.0`"), "{terraform:?}");
    assert_eq!(host[0].0, Verdict::Warn, "{host:?}");
    let unknown = states(&found, "stack {{ .nuon.components.net.outputs.name }}");
    assert_eq!(unknown[0].0, Verdict::Warn, "{unknown:?}");
    assert_eq!(cloud.object("terraform/freehold-preflight").await, before, "a look changes nothing");
}

#[tokio::test]
async fn a_bucket_that_is_gone_and_a_disk_that_is_too_small_are_named_with_their_fix() {
    const TEST: &str = "preflight::a_bucket_that_is_gone_and_a_disk_that_is_too_small_are_named_with_their_fix";
    let Some(_cloud) = Cloud::here(TEST).await else { return };
    let mut bench = bench(|work| {
        work.terraform_versions.insert(String::new());
        work.disk_bytes = u64::MAX / 2;
    });
    bench.change_config(|config| {
        config.bucket = Some("fh-acme--gone--222222222222".into());
        config.terraform = Some("/nowhere/terraform".into());
    });

    let (reason, partial) = reason(execute(&bench.job).await);

    println!("{}", bench.log());
    assert!(!partial);
    for part in ["`state bucket`: ", "update that stack", "`disk`: ", "volume of `state_dir`", "`terraform`: "] {
        assert!(reason.contains(part), "`{part}`: {reason}");
    }
}

#[tokio::test]
async fn a_terraform_with_another_digest_is_named_and_not_started() {
    let test = "preflight::a_terraform_with_another_digest_is_named_and_not_started";
    let Some(_cloud) = Cloud::here(test).await else { return };
    let mut bench = bench(|work| work.terraform_versions = [String::new()].into());
    let (program, started) = (bench.directory.path().join("terraform"), bench.directory.path().join("started"));
    std::fs::write(&program, format!("#!/bin/sh\ntouch {}\n", started.display())).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    bench.change_config(|config| {
        config.programs = [("terraform".to_owned(), Digest::of(b"another"))].into();
        config.terraform = Some(program);
    });

    let (reason, _) = reason(execute(&bench.job).await);

    assert!(reason.contains("`terraform`: ") && reason.contains("terraform` has the digest"), "{reason}");
    assert!(!started.exists());
}

#[tokio::test]
async fn a_cloud_that_is_out_of_reach_fails_with_the_way_to_it() {
    let bench = bench(|work| work.stacks = ["globex-storage".to_owned()].into()).plain();
    if std::env::var_os("AWS_ENDPOINT_URL").is_none() {
        again_out_of_reach();
        return;
    }

    let (reason, _) = reason(execute(&bench.job).await);

    println!("{}", bench.log());
    for check in ["`region`: ", "`install registry`: ", "`stack globex-storage`: "] {
        assert!(reason.contains(check), "{check} {reason}");
    }
    assert!(reason.contains("let the runner reach AWS STS on port 443"), "{reason}");
}

/// The endpoint comes from the environment of a process, so the test runs once more in one of its own.
fn again_out_of_reach() {
    let test = "preflight::a_cloud_that_is_out_of_reach_fails_with_the_way_to_it";
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
        .env("AWS_ACCESS_KEY_ID", "222222222222")
        .env("AWS_SECRET_ACCESS_KEY", "secret")
        .env("NO_PROXY", "127.0.0.1")
        .status()
        .unwrap();
    assert!(status.success());
}

#[tokio::test]
async fn each_mode_is_asked_what_it_may_do_in_a_cluster_that_exists() {
    let test = "preflight::each_mode_is_asked_what_it_may_do_in_a_cluster_that_exists";
    if !have(&["bwrap"]) {
        return;
    }
    let Some(cloud) = cluster::with_clusters(test).await else { return };
    Cluster::make(&cloud).await;
    let existing = |name: &str| ExistingCluster { name: name.to_owned(), namespaces: ["shop".to_owned()].into() };
    let mut bench = bench(|work| {
        let later = "{{ .nuon.components.net.outputs.cluster }}";
        work.clusters = vec![existing(NAME), existing("made-by-the-sandbox"), existing(later)];
    });
    bench.job.credentials = cluster::session(&cloud, DEPLOYER).await;
    let role = |name: &str| format!("arn:aws:iam::{ACCOUNT}:role/{name}");
    let modes = json!({ "provision": role(DEPLOYER), "maintenance": role(READER), "deprovision": role(STRANGER) });
    bench.change_config(|config| config.modes = serde_json::from_value(modes).unwrap());

    let found = findings(execute(&bench.job).await);

    let clusters: Vec<&Finding> = found.iter().filter(|one| one.check.starts_with("cluster ")).collect();
    let checks: Vec<&str> = clusters.iter().map(|one| one.check.as_str()).collect();
    let modes = ["provision", "maintenance", "deprovision"].map(|mode| format!("cluster {NAME}, mode {mode}"));
    assert_eq!(checks, modes, "{clusters:#?}");
    let [deployer, reader, stranger] = clusters[..] else { panic!("{clusters:#?}") };
    assert_eq!(
        (deployer.state, deployer.detail.as_str()),
        (Verdict::Pass, "may patch `configmaps`, `secrets` and `deployments` in shop")
    );
    assert_eq!(reader.state, Verdict::Warn);
    assert!(reader.detail.contains("to patch `configmaps` in `shop`, patch `secrets` in `shop`"), "{reader:?}");
    assert!(reader.fix.contains(&format!("of role `{}`", role(READER))), "{reader:?}");
    assert_eq!(
        (stranger.state, stranger.detail.as_str()),
        (Verdict::Warn, "the cluster does not know the role of the mode")
    );
    assert!(stranger.fix.contains(&format!("an access entry for role `{}`", role(STRANGER))), "{stranger:?}");
}
