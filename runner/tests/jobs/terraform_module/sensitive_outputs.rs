//! Sensitive outputs: kept in the bucket by the attempt that made them, read by the jobs whose orders name that attempt, and
//! removed with their component.

use freehold_protocol::order::KeptOutputs;
use freehold_protocol::report::Fence;
use freehold_runner::record::log::JobLog;

use super::*;
use crate::fixture::sensitive;

/// A module with one sensitive output that can be left out, and a plain one.
const SECRETS: &str = r#"
variable "password" { type = string }
variable "size" { type = number }
output "plain" { value = "x" }
output "login" {
  value     = { user = "admin", password = var.password }
  sensitive = true
}
"#;

const PLAIN: &str = "variable \"password\" {}\nvariable \"size\" {}\noutput \"plain\" { value = \"x\" }\n";

/// Runs the job. Each of these tests runs many, whose futures together are too large for the stack of a test.
async fn applied(bench: &Bench) -> Outcome {
    Box::pin(execute(&bench.job)).await
}

/// Returns what the control plane records about the job of `bench`.
fn recorded(bench: &Bench, outcome: &Outcome) -> KeptOutputs {
    KeptOutputs {
        part: "network".parse().unwrap(),
        sandbox: false,
        var_name: "net".into(),
        serial: bench.job.order.serial,
        job: bench.job.order.job.clone(),
        fence: bench.job.fence,
        digests: sensitive(outcome).clone(),
    }
}

/// Starts the next job of the component, whose order names what was recorded.
fn next_job(bench: &mut Bench, recorded: &KeptOutputs) {
    bench.next_attempt();
    bench.change_order(|order| {
        order.serial += 1;
        order.job = format!("job_{:020}", order.serial).parse().unwrap();
        order.kept_outputs = vec![recorded.clone()];
    });
}

/// Returns the values that a job of component `api` sees, and what its log shows of `text`.
async fn read(bench: &Bench, recorded: &KeptOutputs, text: &str) -> Result<(Value, String), String> {
    let mut order = (*bench.job.order).clone();
    order.kept_outputs = vec![recorded.clone()];
    if let Work::TerraformModule(work) = &mut order.work {
        work.component = "api".parse().unwrap();
    }
    let log = JobLog::default();
    let order = bench.job.sensitive_outputs.add_to(order, &log).await.map_err(|error| error.to_string())?;
    log.line(text);
    Ok((order.context["nuon"]["components"].clone(), log.take_chunk()))
}

async fn objects(cloud: &Cloud) -> Vec<String> {
    let names = crate::cloud::objects(&cloud.customer, "locked/").await;
    names.iter().map(|name| name.trim_start_matches("locked/network/0000000000000000000").to_owned()).collect()
}

#[tokio::test]
async fn another_job_reads_what_the_recorded_attempt_kept_and_its_log_shows_nothing() {
    if !have(&["bwrap", "terraform"]) {
        return;
    }
    let test = "terraform_module::sensitive_outputs::another_job_reads_what_the_recorded_attempt_kept_and_its_log_shows_nothing";
    let Some(cloud) = Cloud::here(test).await else { return };
    let artifact = artifact(&cloud, SECRETS).await;
    let mut bench = cloud.bench(work(&artifact, json!({ "password": "{{ .nuon.install.id }} canary" })), &artifact);

    let first = applied(&bench).await;
    let recorded_first = recorded(&bench, &first);
    let first_log = bench.log();
    next_job(&mut bench, &recorded_first);
    let again = applied(&bench).await;
    let recorded_again = recorded(&bench, &again);
    let changed = work(&artifact, json!({ "password": "another canary" }));
    next_job(&mut bench, &recorded_again);
    bench.change_order(|order| order.work = changed);
    // A killed attempt kept its outputs, and another attempt at the job did the same.
    applied(&bench).await;
    bench.next_attempt();
    let other = applied(&bench).await;

    assert_eq!(outputs(first.clone()), json!({ "plain": "x" }));
    assert!(first_log.contains("outputs `login` are sensitive") && !first_log.contains("canary"), "{first_log}");
    assert!(!format!("{first:?}{again:?}{other:?}").contains("canary"));
    assert_eq!(sensitive(&first), sensitive(&again), "the same value has the same digest");
    assert_ne!(sensitive(&again), sensitive(&other));
    // What the order named counts until the success of its own job is recorded.
    let third = "3.job_00000000000000000003.1";
    let expected =
        ["2.job_00000000000000000002.1.2.json".to_owned(), format!("{third}.3.json"), format!("{third}.4.json")];
    assert_eq!(objects(&cloud).await, expected);
    let (tree, log) = read(&bench, &recorded_again, "globex-prod canary").await.unwrap();
    let login = json!({ "user": "admin", "password": "globex-prod canary" });
    assert_eq!(tree["network"]["outputs"]["login"], login);
    assert_eq!(tree["net"]["outputs"]["login"], login);
    assert_eq!(log, "[redacted]\n");
    // A plan that replaces a value prints the one before it.
    let (tree, log) = read(&bench, &recorded(&bench, &other), "globex-prod canary -> another canary").await.unwrap();
    assert_eq!(
        (tree["net"]["outputs"]["login"]["password"].as_str(), log.as_str()),
        (Some("another canary"), "[redacted] -> [redacted]\n")
    );
    // The outcome of this attempt is reported at the sixth delivery of its order.
    let mut handed_on = recorded(&bench, &other);
    handed_on.fence.receive = 6;
    let kept = &bench.job.sensitive_outputs;
    kept.hand_on(&bench.job.order, bench.job.fence, handed_on.fence).await.unwrap();
    kept.hand_on(&bench.job.order, Fence { dispatch: 9, receive: 1 }, handed_on.fence).await.unwrap();
    let (tree, _) = read(&bench, &handed_on, "").await.unwrap();
    assert_eq!(tree["net"]["outputs"]["login"]["password"], "another canary");
    let gone = read(&bench, &recorded_first, "").await.unwrap_err();
    assert!(gone.contains("component `network` are not in the install's bucket") && gone.contains("deploy"), "{gone}");
    let mut forged = recorded_again.clone();
    forged.digests = sensitive(&other).clone();
    let refused = read(&bench, &forged, "").await.unwrap_err();
    assert!(refused.contains("are not those that its deploy reported"), "{refused}");
}

#[tokio::test]
async fn sensitive_outputs_go_with_the_output_and_with_the_component() {
    if !have(&["bwrap", "terraform"]) {
        return;
    }
    let test = "terraform_module::sensitive_outputs::sensitive_outputs_go_with_the_output_and_with_the_component";
    let Some(cloud) = Cloud::here(test).await else { return };
    let with = artifact(&cloud, SECRETS).await;
    let mut bench = cloud.bench(work(&with, json!({ "password": "canary" })), &with);
    let first = recorded(&bench, &applied(&bench).await);
    let made = objects(&cloud).await;

    let without = artifact(&cloud, PLAIN).await;
    bench.job.grants = cloud.grants(&without, 0, "");
    next_job(&mut bench, &first);
    bench.change_order(|order| order.work = work(&without, json!({ "password": "canary" })));
    let second = applied(&bench).await;
    let kept_until_recorded = objects(&cloud).await;
    next_job(&mut bench, &first);
    bench.change_order(|order| order.kept_outputs.clear());
    applied(&bench).await;
    let after = objects(&cloud).await;
    bench.job.grants = cloud.grants(&with, 0, "");
    next_job(&mut bench, &first);
    bench.change_order(|order| order.work = work(&with, json!({ "password": "canary" })));
    bench.change_order(|order| order.kept_outputs.clear());
    let fourth = recorded(&bench, &applied(&bench).await);
    next_job(&mut bench, &fourth);
    let what = Box::new(work(&with, json!({ "password": "canary" })));
    bench.change_order(|order| {
        order.work = Work::Remove(RemovePart { what, destroy_data: false, removes_policies: false })
    });
    let removed = applied(&bench).await;
    bench.next_attempt();
    let removed_again = applied(&bench).await;

    assert_eq!((sensitive(&second).len(), made.len()), (0, 1));
    assert_eq!(kept_until_recorded, made);
    assert_eq!(after, Vec::<String>::new());
    assert_eq!(fourth.digests.len(), 1);
    assert_eq!((outputs(removed), outputs(removed_again)), (json!({}), json!({})), "{}", bench.log());
    assert_eq!(objects(&cloud).await, Vec::<String>::new());
}
