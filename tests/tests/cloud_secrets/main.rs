//! Secrets of an app across two accounts: a thousand canaries reach the jobs of the customer, in every spelling, and nothing that
//! the vendor has and no list of processes shows one. The vendor has what the control plane stores, queues and logs, also while
//! plans wait for an approval.

#![cfg(test)]

mod processes;
mod readers;
mod sealed_inputs;
mod sensitive_outputs;
mod vendor;

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use freehold_protocol::api::JobView;
use freehold_protocol::app_version::parameter_id;
use freehold_protocol::{Digest, names};
use freehold_tests::faults::Queues;
use freehold_tests::harness::runner::Signal;
use freehold_tests::harness::wait::{SOON, until};
use freehold_tests::harness::{Capability, Install, Needs, Runner, World, clients};
use serde_json::{Value, json};

use processes::Processes;
use readers::{COMPONENTS, SANDBOX, app_with_readers};
use vendor::{take_messages, what_the_vendor_has};

const NEEDS: Needs = Needs { cloud: &[Capability::HttpApi, Capability::IamEnforced], programs: &["bwrap"] };
/// What it takes to build and apply modules too.
const NEEDS_OF_MODULES: Needs = Needs {
    cloud: &[Capability::HttpApi, Capability::Registry, Capability::IamEnforced],
    programs: &["terraform|tofu", "bwrap"],
};

/// Secrets that the customer enters, and lines of each: every line is a canary.
const ENTERED: usize = 50;
const LINES: usize = 20;
/// What every canary of this test begins with. Those of the other tests, which run at the same time, begin otherwise.
const MARK: &str = "cAn4rY/";

fn canary(mark: &str, secret: usize, line: usize) -> String {
    let digest = Digest::of(format!("{secret}.{line}").as_bytes());
    format!("{mark}{}+\"&{secret}.{line}", &digest.hex()[..16])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_canaries_reach_the_jobs_and_nothing_that_the_vendor_has() -> anyhow::Result<()> {
    let Some(mut world) = World::start("cloud_secrets", NEEDS_OF_MODULES).await? else { return Ok(()) };
    let directory = app_with_readers(&mut world, ENTERED)?;
    world.ship(&directory).await?;
    let install = install_with_canaries(&world).await?;
    world.vendor(&["install", "approvals", "globex", "prompt"]).await?;
    let processes = Processes::watch(&[]);
    let mut runner = world.runner(&install).await?;
    let generated = read_generated(&world, &install).await?;

    let provisioning = install.created["workflow"].as_str().context("an install without a workflow")?;
    let sandbox = find_waiting(&world, provisioning, &[SANDBOX]).await?;
    approve(&world, &sandbox).await?;
    let components = find_waiting(&world, provisioning, &COMPONENTS).await?;
    let held_meanwhile = what_the_vendor_has(&world).await?;
    approve(&world, &components).await?;
    let provisioned = world.provisioned(&install).await?;
    world.vendor(&["install", "approvals", "globex", "approve-all"]).await?;
    let run = world.run(&["action", "run", "globex", "say", "--json"]).await?.ended_with(1)?;
    let seen = processes.end("freehold");

    assert_eq!(provisioned["state"], "succeeded", "{provisioned}");
    let plans: String = sandbox.iter().chain(&components).map(|job| format!("{job:?}\n")).collect();
    ensure!(plans.contains("terraform_data.all"), "the plans have no summary: {plans}");
    let done = show_jobs(&world, &provisioned).await?;
    ensure!(done.contains("terraform_data.all would hold [redacted]"), "no policy named a value: {done}");
    let log = log_of(&world, &run).await?;
    let redacted = redacted_lines(&log);
    assert_eq!(redacted, ENTERED * LINES, "{log}");
    let messages = messages_that_wait(&world, &install, &mut runner).await?;
    let held = what_the_vendor_has(&world).await?;
    it_was_searched(&messages, [&held_meanwhile, &held])?;
    let messages: String = messages.into_values().collect();
    let texts =
        [&held_meanwhile, &held, &messages, &plans, &done, &provisioned.to_string(), &log, &run, &runner.log(), &seen];
    let found = |mark: &str| texts.map(|text| leaks(mark, text)).iter().sum::<usize>();
    let leaks = found(MARK);
    print_figures(redacted, leaks);
    assert_eq!((leaks, found(&generated)), (0, 0));
    Ok(())
}

/// Creates the install, whose customer enters a canary in each line of each secret.
async fn install_with_canaries(world: &World) -> anyhow::Result<Install> {
    let answers: Vec<String> = (0..ENTERED)
        .map(|n| {
            let lines: Vec<String> = (0..LINES).map(|line| canary(MARK, n, line)).collect();
            format!("{}={}", parameter_id("AppSecret", &format!("entered_{n}")), lines.join("\n"))
        })
        .collect();
    let answers: Vec<&str> = answers.iter().map(String::as_str).collect();
    world.install_answering("globex", "small", &answers).await
}

/// Returns the secret that the customer's stack has drawn.
async fn read_generated(world: &World, install: &Install) -> anyhow::Result<String> {
    let secrets = aws_sdk_secretsmanager::Client::new(&world.administrator(&install.account)?);
    let name = names::app_secret(&world.tenant().parse()?, &install.name.parse()?, "generated");
    let found = secrets.get_secret_value().secret_id(name).send().await?;
    let value = found.secret_string().context("the secret has no text")?.to_owned();
    ensure!(value.len() >= 32, "a short secret may be in any text");
    Ok(value)
}

/// Returns the jobs of these nodes of a workflow once all of their plans wait for an approval.
async fn find_waiting(world: &World, workflow: &str, nodes: &[&str]) -> anyhow::Result<Vec<JobView>> {
    until(&format!("the plans of {nodes:?} wait"), SOON, || async {
        let view = world.vendor(&["workflow", "show", workflow]).await?;
        ensure!(view["ended_at"].is_null(), "the workflow has ended: {view}");
        let mut found = Vec::new();
        for node in view["nodes"].as_array().into_iter().flatten() {
            if let (true, Some(job)) = (nodes.iter().any(|name| node["name"] == *name), node["job"].as_str()) {
                found.push(serde_json::from_value::<JobView>(world.vendor(&["job", "show", job]).await?)?);
            }
        }
        Ok((found.iter().filter(|job| job.plan.is_some()).count() == nodes.len()).then_some(found))
    })
    .await
}

async fn approve(world: &World, jobs: &[JobView]) -> anyhow::Result<()> {
    for job in jobs {
        let plan = &job.plan.as_ref().context("no plan waits")?.proposed.plan;
        world.vendor(&["job", "approve", job.job.as_str(), "--plan", plan.as_str()]).await?;
    }
    // The schedule calls it each minute.
    clients::invoke(&world.administrator(world.tenant_account())?, world.tenant(), "sweep").await
}

/// Returns all jobs of a workflow as the vendor sees them, and their logs.
async fn show_jobs(world: &World, workflow: &Value) -> anyhow::Result<String> {
    let mut all = String::new();
    for node in workflow["nodes"].as_array().into_iter().flatten() {
        if let Some(job) = node["job"].as_str() {
            all.push_str(&world.vendor(&["job", "show", job]).await?.to_string());
            all.push_str(&world.run(&["job", "logs", job]).await?.ended_with(0)?);
        }
    }
    Ok(all)
}

/// Returns the whole log of the action's only job.
async fn log_of(world: &World, run: &str) -> anyhow::Result<String> {
    let mut documents = serde_json::Deserializer::from_str(run).into_iter::<Value>();
    let workflow = documents.next().context("no answer")?.with_context(|| run.to_owned())?;
    let job = workflow["nodes"][0]["job"].as_str().with_context(|| format!("no job: {workflow}"))?;
    let has_arn = |log: &str| log.contains("arn: arn:aws:secretsmanager:");
    let log = world.log(job, |log| has_arn(log) && redacted_lines(log) == ENTERED * LINES).await?;
    ensure!(has_arn(&log), "{log}");
    Ok(log)
}

/// Lets messages wait in the queues: the reports of the action, which SQS moves to the dead letters, and the order of another
/// action. Takes all of them, and returns them by queue.
async fn messages_that_wait(
    world: &World,
    install: &Install,
    runner: &mut Runner,
) -> anyhow::Result<BTreeMap<String, String>> {
    let queues = Queues::new(world)?;
    queues.empty("reports").await?;
    queues.enable("reports", false).await?;
    let run = world.vendor(&["action", "run", "globex", "say", "--no-wait"]).await?;
    let workflow = run["workflow"].as_str().context("an action without a workflow")?;
    let job = until("the action has a job", SOON, || async {
        let view = world.vendor(&["workflow", "show", workflow]).await?;
        Ok(view["nodes"][0]["job"].as_str().map(str::to_owned))
    })
    .await?;
    runner.logs(&format!("Started job `{job}`"), SOON).await?;
    queues.empty("globex.fifo").await?;
    // It ends when its job has ended and the queue has its reports.
    runner.signal(Signal::TERM)?;
    runner.ends(SOON).await?;
    let dead = queues.move_reports_to_dead_letters().await?;
    ensure!(dead > 1, "only {dead} reports were dead letters");
    world.vendor(&["action", "run", "globex", "later", "--no-wait"]).await?;
    let order = until("an order waits", SOON, || async { Ok((queues.length("globex.fifo").await? > 0).then_some(())) });
    order.await?;
    let role = world.role(&install.account, &format!("fh-{}--globex--runner", world.tenant())).await?;
    take_messages(world, role).await
}

/// Checks that the texts are those that were meant: each has something that is known to be in its place.
fn it_was_searched(messages: &BTreeMap<String, String>, held: [&String; 2]) -> anyhow::Result<()> {
    let of = |name: &str| messages.get(name).with_context(|| format!("no queue `{name}`: {:?}", messages.keys()));
    // The sweep may have put dead letters back.
    let reports = format!("{}{}", of("dead")?, of("reports")?);
    let lines = reports.matches(": [redacted]").count();
    ensure!(lines > ENTERED * LINES / 2, "the dead letters are not the reports of the action: {reports}");
    ensure!(of("globex.fifo")?.contains("entered_5"), "the order is another one: {messages:?}");
    for held in held {
        ensure!(held.len() > 10_000 && held.contains("entered_49"), "no rows and objects were searched");
        ensure!(held.contains("terraform_data.all"), "no plan was searched");
        ensure!(held.contains("TaskStateEntered"), "no history was searched");
        ensure!(held.contains("START RequestId"), "no log of a function was searched");
    }
    Ok(())
}

/// Returns how many numbered lines of the action are redacted in its log.
fn redacted_lines(log: &str) -> usize {
    (1..=ENTERED * LINES).filter(|number| log.contains(&format!("line {number}: [redacted]\n"))).count()
}

/// Prints what `tests/figures/secrets` hands to the page of figures.
fn print_figures(redacted: usize, leaks: usize) {
    let all = ENTERED * LINES;
    for (name, value, passed) in
        [("secrets.canaries", all, redacted), ("secrets.leaked", leaks, all.saturating_sub(leaks))]
    {
        println!("{}", json!({"name": name, "value": value, "attempted": all, "passed": passed, "seed": 0}));
    }
}

/// Returns how often `mark`, a secret or the beginning of the canaries, is in a text, in any spelling.
fn leaks(mark: &str, text: &str) -> usize {
    spellings(mark).iter().map(|spelling| text.matches(spelling.as_str()).count()).sum()
}

/// Returns the spellings of `mark`: as it is, for JSON, for URLs, in hex, and in base64 wherever a group begins.
fn spellings(mark: &str) -> Vec<String> {
    let hex: String = mark.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut all = vec![mark.to_owned(), mark.replace('/', "\\/"), mark.replace('/', "%2F"), hex];
    let json = json!(mark).to_string();
    let json = &json[1..json.len() - 1];
    all.extend((json != mark).then(|| json.to_owned()));
    for before in 0..3 {
        // Only digits that depend on the mark alone.
        let encoded = STANDARD_NO_PAD.encode(format!("{}{mark}", " ".repeat(before)));
        let first = (before * 8).div_ceil(6);
        let last = (before + mark.len()) * 8 / 6;
        all.push(encoded[first..last].to_owned());
    }
    all
}
