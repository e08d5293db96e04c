//! Deploys repeatedly while calls fail, counts lost, doubled and stale effects, and prints figures as JSON lines.

#![expect(clippy::indexing_slicing, reason = "not shipped; a panic ends the run, as it should")]

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use aws_sdk_sqs::types::QueueAttributeName;
use clap::Parser;
use freehold_tests::harness::{Install, Proxies, World};
use freehold_tests::proxy::parse_rules;
use freehold_tests::workspace::workspace_root;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

const INSTALL: &str = "globex";
const APP: &str = "ledger";

/// Runs whole deploys through real binaries while one call in ten fails, and counts effects lost, doubled and stale.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many deploys.
    #[arg(long, default_value_t = 20)]
    deploys: u32,
    /// The seed of all faults.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Faults between the functions and the cloud; see `fault-proxy --help`.
    #[arg(long, default_value = "* 0.1 any stubborn")]
    faults: String,
    /// Faults between the runner and the cloud. Receiving never fails: after a lost delivery an action may have begun
    /// elsewhere, and then it ends `interrupted` instead of running twice.
    #[arg(
        long,
        default_value = "sqs.SendMessage* 0.1 any;sqs.DeleteMessage 0.1 any;sqs.ChangeMessage* 0.1 any;s3.* 0.1 any"
    )]
    runner_faults: String,
    /// The zips of the functions.
    #[arg(long)]
    functions: Option<PathBuf>,
    /// Keep the directory with all logs.
    #[arg(long)]
    keep: bool,
}

/// The effects that the action wrote, by round.
type Ledger = Arc<Mutex<HashMap<u64, Vec<String>>>>;

/// The install that is deployed to.
struct Target<'a> {
    world: &'a World,
    install: Install,
}

/// The result of one deploy.
#[derive(Debug, Default, Clone)]
struct Verdict {
    /// How it ended, when not `succeeded`.
    failed: Option<String>,
    /// An effect is reported and missing.
    lost: bool,
    /// The action wrote more than once.
    doubled: bool,
    /// The action wrote in an attempt other than the accepted one.
    stale: bool,
}

/// The longest that one deploy may take.
const DEPLOY_LIMIT: Duration = Duration::from_secs(240);
const LOOK: Duration = Duration::from_millis(700);
/// Internal queues give a failed message back after this time, in seconds, instead of after the stack's minute and a half:
/// the run is about what happens then, not about the wait.
const VISIBILITY_SECS: &str = "3";

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let (ledger, port) = listen().await?;
    let proxies = Proxies::start(arguments.seed).await?;
    let mut world = World::start_behind(&proxies, arguments.functions.as_deref()).await?;
    if arguments.keep {
        eprintln!("logs: {}", world.keep().display());
    }
    let verdicts = deploy_all(&arguments, (&world, &proxies), &ledger, port).await;
    if verdicts.is_err() {
        eprintln!("logs: {}", world.keep().display());
    }
    let verdicts = verdicts?;
    report(&arguments, &verdicts);
    if verdicts.iter().all(Verdict::is_right) {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("logs: {}", world.keep().display());
    Ok(ExitCode::FAILURE)
}

async fn deploy_all(
    arguments: &Arguments,
    (world, proxies): (&World, &Proxies),
    ledger: &Ledger,
    port: u16,
) -> anyhow::Result<Vec<Verdict>> {
    let app = workspace_root()?.join("tests/figures").join(APP);
    let _builder = world.build_runner().await?;
    world.sync_and_build(&app, APP).await?;
    let install = world.install_with_inputs(INSTALL, APP, &["round:=1", &format!("port:={port}")]).await?;
    // The action writes into the ledger, which listens on this machine: a box would not reach it.
    let _runner = world.runner_without_boxes(&install).await?;
    world.provisioned(&install).await?;
    let target = Target { world, install };
    eprintln!("provisioned; {} deploys follow, seed {}", arguments.deploys, arguments.seed);
    shorten_visibility(world).await?;
    proxies.functions.set_faults(arguments.seed, parse_rules(&arguments.faults)?);
    proxies.runners.set_faults(arguments.seed, parse_rules(&arguments.runner_faults)?);
    let mut verdicts = Vec::new();
    for round in 2..u64::from(arguments.deploys) + 2 {
        let started = Instant::now();
        let verdict = deploy(&target, ledger, round).await;
        let (functions, runners) = (proxies.functions.counts().injected("*"), proxies.runners.counts().injected("*"));
        let took = started.elapsed().as_secs_f64();
        let outcome = if verdict.is_right() { "right" } else { "WRONG" };
        eprintln!(
            "round {round}: {outcome} in {took:.1} s, faults so far {functions} + {runners}{}",
            verdict.complaint()
        );
        verdicts.push(verdict);
    }
    Ok(verdicts)
}

async fn deploy(target: &Target<'_>, ledger: &Ledger, round: u64) -> Verdict {
    let failed = |error: anyhow::Error| {
        let said = format!("{error:#}");
        Verdict { failed: Some(said.lines().last().unwrap_or_default().to_owned()), ..Verdict::default() }
    };
    let deadline = Instant::now() + DEPLOY_LIMIT;
    // The same key for every try: however often it is asked for, it is one deploy.
    let (key, input) = (format!("faulty-round-{round}"), format!("round:={round}"));
    let start = ["deploy", INSTALL, "--no-wait", "--idempotency-key", &key, "--input", &input];
    let workflow = match retry(target.world, deadline, &start, |_| true).await {
        Ok(started) => started["workflow"].as_str().unwrap_or_default().to_owned(),
        Err(error) => return failed(error),
    };
    let ended =
        |view: &Value| ["succeeded", "failed", "cancelled"].contains(&view["state"].as_str().unwrap_or_default());
    let view = match retry(target.world, deadline, &["workflow", "show", &workflow], ended).await {
        Ok(view) => view,
        Err(error) => return failed(error.context(format!("`{workflow}` did not end"))),
    };
    judge(target, ledger, round, &view, deadline).await.unwrap_or_else(failed)
}

/// Runs a command again until it succeeds with an answer that `will_do`: calls to the API fail as well.
async fn retry(
    world: &World,
    deadline: Instant,
    arguments: &[&str],
    will_do: impl Fn(&Value) -> bool,
) -> anyhow::Result<Value> {
    loop {
        let answer = world.vendor(arguments).await;
        match answer {
            Ok(value) if will_do(&value) => return Ok(value),
            answer if Instant::now() >= deadline => {
                return answer.and_then(|value| Err(anyhow::anyhow!("still {}", value["state"])));
            }
            Ok(_) | Err(_) => tokio::time::sleep(LOOK).await,
        }
    }
}

/// Compares the effects in the world with the effects that the deploy reports.
async fn judge(
    target: &Target<'_>,
    ledger: &Ledger,
    round: u64,
    view: &Value,
    deadline: Instant,
) -> anyhow::Result<Verdict> {
    let effects = ledger.lock().unwrap_or_else(PoisonError::into_inner).get(&round).cloned().unwrap_or_default();
    let nodes = view["nodes"].as_array().cloned().unwrap_or_default();
    let node = |name: &str| nodes.iter().find(|node| node["name"] == name).cloned().unwrap_or_default();
    let mut lost = Vec::new();
    for component in ["first", "second"] {
        lost.push(node(component)["state"] == "succeeded" && shown(target, component).await? != round);
    }
    let record = node("action:record");
    let accepted = match record["job"].as_str() {
        Some(job) => retry(target.world, deadline, &["job", "show", job], |_| true).await?["outputs"]["effect"].clone(),
        None => Value::Null,
    };
    lost.push(record["state"] == "succeeded" && !effects.iter().any(|effect| accepted == effect.as_str()));
    let bad = nodes.iter().filter(|node| node["state"] != "succeeded");
    let bad: Vec<_> = bad.map(|node| format!("{} {} {}", node["name"], node["state"], node["reason"])).collect();
    Ok(Verdict {
        failed: (view["state"] != "succeeded").then(|| format!("{} {} {bad:?}", view["state"], view["reason"])),
        lost: lost.contains(&true),
        doubled: effects.len() > 1,
        stale: effects.iter().any(|effect| accepted != effect.as_str()),
    })
}

async fn shorten_visibility(world: &World) -> anyhow::Result<()> {
    let sqs = aws_sdk_sqs::Client::new(&world.administrator(world.tenant_account())?);
    for queue in ["dispatch", "reports", "grants"] {
        let url = sqs.get_queue_url().queue_name(format!("fh-{}--{queue}", world.tenant())).send().await?;
        let set = sqs.set_queue_attributes().set_queue_url(url.queue_url);
        set.attributes(QueueAttributeName::VisibilityTimeout, VISIBILITY_SECS).send().await?;
    }
    Ok(())
}

/// Returns the round that the queue of a component shows.
async fn shown(target: &Target<'_>, component: &str) -> anyhow::Result<u64> {
    let sqs = aws_sdk_sqs::Client::new(&target.world.administrator(&target.install.account)?);
    let url = sqs.get_queue_url().queue_name(format!("{INSTALL}-{component}")).send().await?;
    let name = QueueAttributeName::DelaySeconds;
    let attributes =
        sqs.get_queue_attributes().set_queue_url(url.queue_url).attribute_names(name.clone()).send().await?;
    let delay = attributes.attributes.as_ref().and_then(|all| all.get(&name)).context("the queue has no delay")?;
    Ok(delay.parse()?)
}

impl Verdict {
    const fn is_right(&self) -> bool {
        self.failed.is_none() && !(self.lost || self.doubled || self.stale)
    }

    fn complaint(&self) -> String {
        let words = [(self.lost, "lost"), (self.doubled, "doubled"), (self.stale, "stale")];
        let words: Vec<_> = words.into_iter().filter(|(is, _)| *is).map(|(_, word)| word).collect();
        match (&self.failed, words.is_empty()) {
            (None, true) => String::new(),
            (failed, _) => format!("; {} {}", words.join(", "), failed.as_deref().unwrap_or_default()),
        }
    }
}

fn report(arguments: &Arguments, verdicts: &[Verdict]) {
    let attempted = verdicts.len();
    let figure = |name: &str, wrong: usize, value: usize| {
        let passed = attempted - wrong;
        println!(
            "{}",
            json!({"name": name, "value": value, "attempted": attempted, "passed": passed, "seed": arguments.seed})
        );
    };
    let count = |is: fn(&Verdict) -> bool| verdicts.iter().filter(|verdict| is(verdict)).count();
    let wrong = count(|verdict| !verdict.is_right());
    figure("deploys.faulty", wrong, attempted);
    for (name, wrong) in [
        ("deploys.lost", count(|v| v.lost)),
        ("deploys.doubled", count(|v| v.doubled)),
        ("deploys.stale", count(|v| v.stale)),
    ] {
        figure(name, wrong, wrong);
    }
}

/// Starts the ledger: it takes lines `<round> <effect>` and answers each.
async fn listen() -> anyhow::Result<(Ledger, u16)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let ledger = Ledger::default();
    let shared = ledger.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let ledger = shared.clone();
            tokio::spawn(async move { write_down(stream, &ledger).await.unwrap_or(()) });
        }
    });
    Ok((ledger, port))
}

async fn write_down(stream: TcpStream, ledger: &Ledger) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    while stream.read_line(&mut line).await? > 0 {
        if let Some((round, effect)) = line.trim().split_once(' ') {
            let mut ledger = ledger.lock().unwrap_or_else(PoisonError::into_inner);
            ledger.entry(round.parse().unwrap_or(0)).or_default().push(effect.to_owned());
        }
        stream.write_all(b"taken\n").await?;
        line.clear();
    }
    Ok(())
}
