//! Programs of Pulumi, with a program that has Pulumi's documented interface (`examples/pulumi-stand-in.rs`) and its
//! state in the local cloud. Pulumi itself cannot be had here.

mod locks;
mod ten_kills;

use std::collections::BTreeMap;
use std::path::PathBuf;

use freehold_protocol::order::{Artifact, PROGRAM_ARTIFACT, PROGRAM_LAYER, Package, RemovePart, RunPulumi, Work};
use freehold_runner::kinds::execute;
use freehold_skips::have;
use serde_json::{Value, json};

use crate::artifacts::of_layer;
use crate::cloud::{Cloud, s3};
use crate::fixture::{BUCKET, outputs, reason};

const STATE: &str = "terraform/network/.pulumi/stacks/net/globex-prod.json";
const MARK: &str = "terraform/network/fence.json";

/// Returns a directory with the stand-in as `pulumi`.
fn stand_in() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let built = tests.parent().and_then(|deps| deps.parent()).unwrap().join("examples/pulumi-stand-in");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pulumi");
    std::fs::create_dir_all(&folder).unwrap();
    // Another test may be running the stand-in at this moment, so its file is replaced and not written.
    let own = folder.join(format!("pulumi.{}", std::process::id()));
    std::fs::copy(&built, &own).expect("the stand-in; `cargo build --package freehold-runner --examples` builds it");
    std::fs::rename(own, folder.join("pulumi")).unwrap();
    folder
}

/// Returns a cloud with the install's key, in a process that finds the stand-in; nothing where the test is skipped.
async fn start(test: &str) -> Option<Cloud> {
    if !have(&["bwrap"]) {
        return None;
    }
    let cloud = Cloud::here_with(&format!("pulumi::{test}"), &[stand_in()]).await?;
    let kms = aws_sdk_kms::Client::new(&cloud.customer);
    let key = kms.create_key().send().await.unwrap().key_metadata.unwrap().key_id;
    kms.create_alias().alias_name("alias/fh-acme--globex-prod").target_key_id(key).send().await.unwrap();
    Some(cloud)
}

async fn artifact(cloud: &Cloud, program: &Value) -> Artifact {
    let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut tar = tar::Builder::new(gzip);
    let program = program.to_string();
    for (name, text) in [("Pulumi.yaml", "name: net\nruntime: go\n"), ("program.json", program.as_str())] {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, text.as_bytes()).unwrap();
    }
    let layer = tar.into_inner().unwrap().finish().unwrap();
    of_layer(cloud, Package::PulumiProgram, layer, (PROGRAM_LAYER, PROGRAM_ARTIFACT)).await
}

fn work(artifact: &Artifact) -> RunPulumi {
    RunPulumi {
        component: "network".parse().unwrap(),
        artifact: artifact.clone(),
        pulumi_version: String::new(),
        config: BTreeMap::from([("size".to_owned(), json!("{{ .nuon.install.id }}"))]),
        env_vars: BTreeMap::from([("ZONE".to_owned(), "b".to_owned()), ("PULUMI_STACK".to_owned(), "own".to_owned())]),
    }
}

async fn state(cloud: &Cloud) -> Value {
    serde_json::from_slice(&cloud.object(STATE).await.expect("a state")).unwrap()
}

fn table(name: &str) -> Value {
    json!({ "name": name, "type": "aws:dynamodb/table:Table" })
}

#[tokio::test]
async fn a_program_is_updated_by_its_plan_and_state_plan_and_key_stay_in_the_bucket() {
    let Some(cloud) = start("a_program_is_updated_by_its_plan_and_state_plan_and_key_stay_in_the_bucket").await else {
        return;
    };
    let program = json!({
        "resources": [{ "name": "main", "type": "aws:ec2/vpc:Vpc" }],
        "outputs": { "size": "config:size", "zone": "env:ZONE", "region": "config:aws:region", "password": "hidden" },
        "secrets": ["password"],
    });
    let artifact = artifact(&cloud, &program).await;
    let mut bench = cloud.bench(Work::Pulumi(work(&artifact)), &artifact);

    let first = execute(&bench.job).await;
    let log = bench.log();
    bench.next_attempt();
    let second = execute(&bench.job).await;
    let second_log = bench.log();

    println!("{log}\n{second_log}");
    let expected = json!({ "size": "globex-prod", "zone": "b", "region": "eu-west-1" });
    let kept = [&first, &second].map(|outcome| crate::fixture::sensitive(outcome).clone());
    assert_eq!(kept[0].keys().collect::<Vec<_>>(), ["password"]);
    assert_ne!(kept[0], kept[1], "the second order names no earlier outputs, so its key is new");
    let object = cloud.object("locked/network/00000000000000000001.job_00000000000000000001.1.2.json").await;
    assert!(String::from_utf8(object.expect("the outputs")).unwrap().contains("\"password\":\"hidden\""));
    assert_eq!((outputs(first), outputs(second)), (expected.clone(), expected));
    assert!(log.contains("1 to create") && second_log.contains("no change of a resource"));
    assert!(log.contains("outputs `password` are sensitive") && !log.contains("hidden"));
    assert!(log.contains("environment variables `PULUMI_STACK` are ignored"));
    let plan = cloud.object("plans/job_00000000000000000001/1.1.bin").await.expect("a plan");
    assert!(log.contains(freehold_protocol::Digest::of(&plan).as_str()));
    let key: Value = serde_json::from_slice(&cloud.object("terraform/network/stack.json").await.unwrap()).unwrap();
    assert_eq!(key["secretsprovider"], "awskms://alias/fh-acme--globex-prod?region=eu-west-1");
    let mark: Value = serde_json::from_slice(&cloud.object(MARK).await.unwrap()).unwrap();
    assert_eq!(mark["ended"], true);
    let objects =
        s3(&cloud.customer).list_objects_v2().bucket(BUCKET).prefix("terraform/network/.pulumi/").send().await;
    let keys: Vec<String> = objects.unwrap().contents().iter().filter_map(|one| one.key().map(str::to_owned)).collect();
    assert!(keys.iter().any(|key| key.contains("/history/")), "{keys:?}");
    assert!(!keys.iter().any(|key| key.contains("/backups/") || key.contains("/locks/")), "{keys:?}");
}

#[tokio::test]
async fn a_plan_that_changes_nothing_is_not_applied_when_the_order_says_so_and_a_changed_output_is() {
    let test = "a_plan_that_changes_nothing_is_not_applied_when_the_order_says_so_and_a_changed_output_is";
    let Some(cloud) = start(test).await else { return };
    let program = json!({ "resources": [table("main")], "outputs": { "zone": "env:ZONE" } });
    let artifact = artifact(&cloud, &program).await;
    let mut bench = cloud.bench(Work::Pulumi(work(&artifact)), &artifact);
    let skipped = "nothing is applied (`skip_noops`)";

    let first = outputs(execute(&bench.job).await);
    bench.next_attempt();
    bench.change_order(|order| order.skip_noops = true);
    let second = outputs(execute(&bench.job).await);
    let second_log = bench.log();
    let mut changed = work(&artifact);
    changed.env_vars.insert("ZONE".to_owned(), "c".to_owned());
    bench.next_attempt();
    bench.change_order(|order| order.work = Work::Pulumi(changed));
    let third = outputs(execute(&bench.job).await);
    let third_log = bench.log();

    assert_eq!((first, second, third), (json!({ "zone": "b" }), json!({ "zone": "b" }), json!({ "zone": "c" })));
    assert!(second_log.contains(skipped), "{second_log}");
    assert!(third_log.contains("no change of a resource") && !third_log.contains(skipped), "{third_log}");
}

#[tokio::test]
async fn a_plan_that_changes_an_option_of_a_resource_is_applied() {
    let Some(cloud) = start("a_plan_that_changes_an_option_of_a_resource_is_applied").await else { return };
    let mut protected = table("main");
    protected["protect"] = json!(true);
    let [before, after] = [json!({ "resources": [table("main")] }), json!({ "resources": [protected] })];
    let (before, after) = (artifact(&cloud, &before).await, artifact(&cloud, &after).await);
    let skipping = |artifact: &Artifact| {
        let mut bench = cloud.bench(Work::Pulumi(work(artifact)), artifact);
        bench.change_order(|order| order.skip_noops = true);
        bench
    };
    outputs(execute(&skipping(&before).job).await);

    let (changed, same) = (skipping(&after), skipping(&after));
    outputs(execute(&changed.job).await);
    let state = state(&cloud).await;
    outputs(execute(&same.job).await);

    let [changed, same] = [changed.log(), same.log()];
    assert!(changed.contains("no change of a resource") && !changed.contains("`skip_noops`"), "{changed}");
    assert_eq!(state["checkpoint"]["latest"]["resources"][0]["protect"], true);
    assert!(same.contains("`skip_noops`"), "{same}");
}

#[tokio::test]
async fn a_stack_is_removed_and_data_only_when_the_order_permits_it() {
    let Some(cloud) = start("a_stack_is_removed_and_data_only_when_the_order_permits_it").await else { return };
    let program = json!({ "resources": [{ "name": "main", "type": "aws:ec2/vpc:Vpc" }, table("orders")] });
    let artifact = artifact(&cloud, &program).await;
    let made = cloud.bench(Work::Pulumi(work(&artifact)), &artifact);
    outputs(execute(&made.job).await);
    let remove = |destroy_data: bool| {
        Work::Remove(RemovePart {
            what: Box::new(Work::Pulumi(work(&artifact))),
            destroy_data,
            removes_policies: false,
        })
    };

    let refused = execute(&cloud.bench(remove(false), &artifact).job).await;
    let kept = state(&cloud).await;
    let bench = cloud.bench(remove(true), &artifact);
    let removed = execute(&bench.job).await;
    let again = execute(&cloud.bench(remove(true), &artifact).job).await;

    let (why, partial) = reason(refused);
    assert_eq!(
        why,
        "component `network`: the removal would destroy data, in `orders (aws:dynamodb/table:Table)`; keep a copy of what \
         is needed, and allow the removal with `freehold teardown ... --destroy-data`"
    );
    assert!(!partial);
    assert_eq!(kept["checkpoint"]["latest"]["resources"].as_array().unwrap().len(), 2);
    assert_eq!((outputs(removed), outputs(again)), (json!({}), json!({})), "{}", bench.log());
    assert_eq!(state(&cloud).await["checkpoint"]["latest"]["resources"], json!([]));
}

#[tokio::test]
async fn a_program_that_fails_says_why_and_changes_nothing() {
    let Some(cloud) = start("a_program_that_fails_says_why_and_changes_nothing").await else { return };
    let artifact = artifact(&cloud, &json!({ "resources": [table("a")], "outputs": { "x": "config:absent" } })).await;
    let bench = cloud.bench(Work::Pulumi(work(&artifact)), &artifact);

    let (why, partial) = reason(execute(&bench.job).await);

    assert!(bench.log().contains("error: missing required configuration variable 'net:absent'"));
    let expected = "`pulumi preview` ended with exit code 255: missing required configuration variable 'net:absent'";
    assert_eq!((why.as_str(), partial), (expected, false));
    assert_eq!(state(&cloud).await["checkpoint"]["latest"]["resources"], json!([]));
}
