//! Counts the cost of a deploy, of an approved change and of a drift check through proxies in front of a local cloud with the
//! real functions. With a command as argument, it then runs the command against that cloud, for measurements of functions.

#![expect(clippy::indexing_slicing, reason = "not shipped; a panic ends the run, as it should")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context as _, bail, ensure};
use aws_sdk_sfn::types::HistoryEventType;
use clap::Parser;
use freehold_protocol::Digest;
use freehold_protocol::api::JobView;
use freehold_tests::bench::{http_event, row, skipped};
use freehold_tests::harness::clients::{self, REGION};
use freehold_tests::harness::wait::SOON;
use freehold_tests::harness::{Proxies, World, app};
use freehold_tests::proxy::{Counts, RowWrites};
use freehold_tests::workspace::functions;
use serde_json::Value;
use tokio::process::Command;

const INSTALL: &str = "globex";
const APP: &str = "ten";
/// The app whose components can be checked for drift, and its install.
const MODULES: &str = "small";
const CHECKED: &str = "initech";
const COMPONENTS: u32 = 10;
/// What a drift check of a Terraform module needs.
const PROGRAMS: [&str; 2] = ["bwrap", "terraform|tofu"];

// List prices in USD of one, us-east-1, without free tiers: AWS price lists of DynamoDB on demand, Step Functions
// Standard, SQS (FIFO), Lambda (arm64, 128 MB, 20 ms).
const WRITE_PRICE: f64 = 0.625e-6;
const READ_PRICE: f64 = 0.125e-6;
const TRANSITION_PRICE: f64 = 25.0e-6;
const SQS_PRICE: f64 = 0.5e-6;
const INVOKE_PRICE: f64 = 0.2e-6 + 0.125 * 0.02 * 0.000_013_333_4;
/// A request to an HTTP API, whose function is an invoke of its own.
const REQUEST_PRICE: f64 = 1.0e-6;

/// Deploys ten components, approves their changes and checks them for drift, and counts; prints JSON lines.
#[derive(Debug, Parser)]
struct Arguments {
    /// The zips of the functions.
    #[arg(long)]
    functions: PathBuf,
    /// Then runs this with the environment of the function `api` and `EVENT`, a file with an event; for `lambda-rapi`.
    #[arg(trailing_var_arg = true)]
    then: Vec<String>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let proxies = Proxies::start(1).await?;
    let world = World::start_behind(&proxies, Some(&arguments.functions)).await?;
    let lacking = freehold_skips::lacking(&PROGRAMS);
    let app = world.directory().join(APP);
    write_app(&app)?;
    let builder = world.build_runner().await?;
    world.sync_and_build(&app, APP).await?;
    if lacking.is_none() {
        world.sync_and_build(&write_modules(world.directory())?, MODULES).await?;
    }
    drop(builder);
    let install = world.install_with_inputs(INSTALL, APP, &["round:=1"]).await?;
    let runner = world.runner(&install).await?;
    world.provisioned(&install).await?;
    let what = Counted { name: "deploy", machine: "deploy-components", asked: 0 };
    count(&world, &proxies, what, async || deploy(&world).await).await?;
    world.vendor(&["install", "approvals", INSTALL, "prompt"]).await?;
    let what = Counted { name: "approved", machine: "deploy-components", asked: u64::from(COMPONENTS) };
    count(&world, &proxies, what, async || approve(&world).await).await?;
    drop(runner);
    match lacking {
        None => {
            let install = world.install(CHECKED, MODULES).await?;
            let _runner = world.runner(&install).await?;
            world.provisioned(&install).await?;
            let what = Counted { name: "drift", machine: "detect-drift", asked: 0 };
            count(&world, &proxies, what, async || detect_drift(&world).await).await?;
        }
        Some(reason) => skipped("drift", &reason),
    }
    if !arguments.then.is_empty() {
        then(&world, &arguments.then).await?;
    }
    Ok(())
}

/// Deploys ten components, all of which change.
async fn deploy(world: &World) -> anyhow::Result<()> {
    all_done(&world.vendor(&["deploy", INSTALL, "--input", "round:=2"]).await?)
}

/// Changes ten components, and approves the plan of each. As many wait at once as the runner has slots. The sweep that orders
/// what is approved does not wait for its minute.
async fn approve(world: &World) -> anyhow::Result<()> {
    let started = world.vendor(&["deploy", INSTALL, "--input", "round:=3", "--no-wait"]).await?;
    let workflow = started["workflow"].as_str().context("a deploy without an id")?;
    let (mut approved, deadline) = (BTreeSet::new(), Instant::now() + SOON);
    while approved.len() < COMPONENTS as usize {
        ensure!(Instant::now() < deadline, "{} of {COMPONENTS} plans waited for an approval", approved.len());
        for (job, plan) in plans(world, workflow, &approved).await? {
            world.vendor(&["job", "approve", &job, "--plan", plan.as_str()]).await?;
            approved.insert(job);
        }
        clients::invoke(&world.administrator(world.tenant_account())?, world.tenant(), "sweep").await?;
    }
    all_done(&world.vendor(&["workflow", "watch", workflow]).await?)
}

/// Returns the jobs of a workflow that wait for an approval, with their plans; none before all waiting jobs are known.
async fn plans(world: &World, workflow: &str, approved: &BTreeSet<String>) -> anyhow::Result<Vec<(String, Digest)>> {
    let view = world.vendor(&["workflow", "show", workflow]).await?;
    let nodes: Vec<&Value> = view["nodes"].as_array().into_iter().flatten().collect();
    if nodes.iter().any(|node| node["state"] == "active") {
        return Ok(Vec::new());
    }
    let mut plans = Vec::new();
    let waiting = nodes.into_iter().filter(|node| node["state"] == "waiting_for_approval");
    for job in waiting.filter_map(|node| node["job"].as_str()).filter(|job| !approved.contains(*job)) {
        let view: JobView = serde_json::from_value(world.vendor(&["job", "show", job]).await?)?;
        plans.extend(view.plan.map(|plan| (job.to_owned(), plan.proposed.plan)));
    }
    Ok(plans)
}

/// Checks ten modules for drift.
async fn detect_drift(world: &World) -> anyhow::Result<()> {
    world.vendor(&["drift", "detect", CHECKED]).await?;
    all_done(&world.newest_workflow(CHECKED).await?)
}

/// Checks that each component of a workflow had its job.
fn all_done(view: &Value) -> anyhow::Result<()> {
    let done = view["nodes"].as_array().into_iter().flatten().filter(|node| node["state"] == "succeeded").count();
    ensure!(done == COMPONENTS as usize, "{done} of {COMPONENTS} components are done: {view}");
    Ok(())
}

/// What is counted.
#[derive(Debug, Clone, Copy)]
struct Counted {
    /// The first part of the rows' names.
    name: &'static str,
    /// The state machine that is executed once.
    machine: &'static str,
    /// The requests with which people answer in between.
    asked: u64,
}

/// Counts what ten components cost in one workflow, which `act` waits for.
#[expect(clippy::cast_precision_loss, reason = "small counts")]
async fn count(
    world: &World,
    proxies: &Proxies,
    what: Counted,
    act: impl AsyncFnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    proxies.functions.reset_counts();
    proxies.runners.reset_counts();
    let before = invokes(world).await?;
    act().await?;
    let (functions, runners) = (proxies.functions.counts(), proxies.runners.counts());
    eprintln!("{}:", what.name);
    show_writes(&functions);
    let after = invokes(world).await?;
    let others =
        after.iter().zip(&before).filter(|((name, _), _)| !["api", "accept-report", "sweep"].contains(&name.as_str()));
    let beside: u64 = others.map(|((_, after), (_, before))| after - before).sum();
    let reports: u64 =
        after.iter().zip(&before).filter(|((name, _), _)| *name == "accept-report").map(|(a, b)| a.1 - b.1).sum();
    let transitions = transitions(world, what.machine).await? as f64;
    // A runner polls also when nothing happens; these polls are in the idle rows.
    let polls = runners.forwarded("sqs.ReceiveMessage");
    let billed = functions.sqs_billed + runners.sqs_billed - polls;
    // A runner renews the lease of an order every ten seconds: how often depends on how long the machine takes.
    let renewals = runners.forwarded("sqs.ChangeMessageVisibility*");
    let requests = (billed - renewals) as f64;
    let show = |name: &str, count: f64, unit: &str| {
        row(&format!("{}.{name}", what.name), count / f64::from(COMPONENTS), unit);
    };
    show_units(show, &functions);
    show("transitions", transitions, "");
    show("invokes", beside as f64, "");
    show("report_invokes", reports as f64, "");
    show("queue_requests", requests, "");
    show("renewals", renewals as f64, "");
    show("callbacks", functions.forwarded("states.SendTask*") as f64, "");
    show("kms_calls", functions.forwarded("kms.*") as f64, "");
    let cost = functions.units.write * WRITE_PRICE
        + functions.units.read * READ_PRICE
        + transitions * TRANSITION_PRICE
        + billed as f64 * SQS_PRICE
        + (beside + reports) as f64 * INVOKE_PRICE
        + what.asked as f64 * (REQUEST_PRICE + INVOKE_PRICE);
    show("cost", cost, "USD");
    Ok(())
}

/// Shows the units that were written and read.
///
/// How many transactions meet another one depends on how many jobs end at the same moment, and so on the machine. A report
/// that ends a job writes the runner's contact again when it is two seconds old, so how often depends on how long the jobs
/// take. Both are shown apart, and all write units have a gate of their own.
fn show_units(show: impl Fn(&str, f64, &str), counts: &Counts) {
    let contacts = counts.writes_by_row.get("install contact").map_or(0.0, |writes| writes.units);
    show("write_units", counts.units.write - counts.units.cancelled - contacts, "");
    show("cancelled_write_units", counts.units.cancelled, "");
    show("contact_write_units", contacts, "");
    show("all_write_units", counts.units.write, "");
    show("read_units", counts.units.read, "");
}

/// Prints what each kind of row costs: units, writes, those in transactions, those that were cancelled, bytes of one item.
fn show_writes(counts: &Counts) {
    eprintln!("{:<20} {:>6} {:>7} {:>11} {:>10} {:>6}", "row", "units", "writes", "transacted", "cancelled", "bytes");
    for (row, RowWrites { units, writes, transacted, cancelled, bytes }) in &counts.writes_by_row {
        eprintln!("{row:<20} {units:>6} {writes:>7} {transacted:>11} {cancelled:>10} {:>6}", bytes / (*writes).max(1));
    }
}

/// Returns how many states the newest execution of a machine entered.
async fn transitions(world: &World, name: &str) -> anyhow::Result<usize> {
    let states = aws_sdk_sfn::Client::new(&world.administrator(world.tenant_account())?);
    let (tenant, account) = (world.tenant(), world.tenant_account());
    let machine = format!("arn:aws:states:{REGION}:{account}:stateMachine:fh-{tenant}--{name}");
    let all = states.list_executions().state_machine_arn(machine).send().await?;
    let newest = all.executions().iter().max_by_key(|execution| execution.start_date().as_nanos());
    let arn = newest.context("nothing was executed")?.execution_arn();
    let history = states.get_execution_history().execution_arn(arn).max_results(1000).send().await?;
    let entered = |kind: &HistoryEventType| kind.as_str().ends_with("StateEntered");
    Ok(history.events().iter().filter(|event| entered(event.r#type())).count())
}

/// Returns how often each function has been invoked: the lines that begin an invoke in its log.
async fn invokes(world: &World) -> anyhow::Result<Vec<(String, u64)>> {
    let logs = aws_sdk_cloudwatchlogs::Client::new(&world.administrator(world.tenant_account())?);
    let mut counts = Vec::new();
    for name in functions()? {
        let group = format!("/aws/lambda/fh-{}--{name}", world.tenant());
        let mut pages = logs.filter_log_events().log_group_name(group).into_paginator().send();
        let mut count = 0;
        while let Some(page) = pages.next().await {
            // A function that was never invoked may have no group.
            let Ok(page) = page else { break };
            let starts =
                page.events().iter().filter(|event| event.message().is_some_and(|m| m.starts_with("START RequestId")));
            count += starts.count() as u64;
        }
        counts.push((name, count));
    }
    Ok(counts)
}

async fn then(world: &World, words: &[String]) -> anyhow::Result<()> {
    let (tenant, account) = (world.tenant(), world.tenant_account());
    let endpoint = world.endpoint().context("a local cloud without an endpoint")?;
    let event = world.directory().join("event.json");
    std::fs::write(&event, http_event("/v1/apps").to_string())?;
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::null());
    let lambda = aws_sdk_lambda::Client::new(&world.administrator(account)?);
    let function = lambda.get_function_configuration().function_name(format!("fh-{tenant}--api")).send().await?;
    let variables = function.environment().and_then(|environment| environment.variables());
    command.envs(variables.context("the function `api` without variables")?).env("EVENT", &event);
    command.env("AWS_ENDPOINT_URL", endpoint).env("AWS_REGION", REGION).env("AWS_DEFAULT_REGION", REGION);
    command.env("AWS_ACCESS_KEY_ID", account).env("AWS_SECRET_ACCESS_KEY", "local");
    if !command.status().await?.success() {
        bail!("`{}` failed", words.join(" "));
    }
    Ok(())
}

/// Writes an app of ten stacks that do not depend on each other.
fn write_app(directory: &Path) -> anyhow::Result<()> {
    let write = |path: String, text: &str| -> anyhow::Result<()> {
        let path = directory.join(path);
        std::fs::create_dir_all(path.parent().context("a file without a directory")?)?;
        Ok(std::fs::write(path, text)?)
    };
    write("metadata.toml".to_owned(), "version = \"v2\"\ndisplay_name = \"Ten\"\ndescription = \"Ten stacks\"\n")?;
    let inputs = "[[group]]\nname = \"g\"\ndescription = \"g\"\ndisplay_name = \"G\"\n\n[[input]]\nname = \"round\"\ndisplay_name \
        = \"Round\"\ndescription = \"Number of the deploy\"\ngroup = \"g\"\ntype = \"number\"\ndefault = 1\n";
    write("inputs.toml".to_owned(), inputs)?;
    let template = include_str!("../../figures/ledger/templates/queue.yaml");
    for number in 1..=COMPONENTS {
        // Ten different artifacts, as the components of an app have: equal ones would compress to one.
        write(format!("templates/c{number}.yaml"), &template.replace("A queue", &format!("Queue {number}")))?;
        let text = format!(
            "name = \"c{number}\"\ntype = \"cloudformation_stack\"\ntemplate = \"./templates/c{number}.yaml\"\nstack_name = \
             \"{{{{ .nuon.install_stack.outputs.prefix }}}}c{number}\"\n\n[parameters]\nName = \"{{{{ .nuon.install.id }}}}-c{number}\"\n\
             Round = \"{{{{ .nuon.inputs.inputs.round }}}}\"\n"
        );
        write(format!("components/c{number}.toml"), &text)?;
    }
    write("permissions/queues.json".to_owned(), include_str!("../../figures/ledger/permissions/queues.json"))?;
    for role in ["provision", "maintenance"] {
        let text = format!(
            "type = \"{role}\"\nname = \"{{{{ .nuon.install.id }}}}-{role}\"\ndisplay_name = \"{role}\"\ndescription = \
             \"makes ten queues\"\n\n[[policies]]\nname = \"queues\"\ncontents = \"./queues.json\"\n"
        );
        write(format!("permissions/{role}.toml"), &text)?;
    }
    Ok(())
}

/// Writes an app of ten Terraform modules that do not depend on each other.
fn write_modules(parent: &Path) -> anyhow::Result<PathBuf> {
    let directory = app::small(parent)?;
    for number in 1..=COMPONENTS {
        let component = format!(
            "name = \"m{number}\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"../m{number}\"\n"
        );
        app::write(&directory, &format!("components/m{number}.toml"), &component)?;
        let module = format!("resource \"terraform_data\" \"this\" {{ input = \"{number}\" }}\n");
        app::write(&directory, &format!("m{number}/main.tf"), &module)?;
    }
    Ok(directory)
}
