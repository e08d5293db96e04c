//! Deploys again and again on several local clouds side by side while functions, runner, registries, bucket, table and network
//! fail together, counts lost, doubled and stale effects, and prints figures as JSON lines.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Parser;
use fastrand::Rng;
use freehold_tests::faults::{Begun, Cell, POLL, states};
use serde_json::json;

/// Runs whole deploys through real programs while calls fail and processes are killed, and counts effects lost, doubled and
/// stale.
#[derive(Debug, Clone, Parser)]
struct Arguments {
    /// How many deploys.
    #[arg(long, default_value_t = 500)]
    deploys: u32,
    /// How many local clouds work side by side.
    #[arg(long, default_value_t = 6)]
    cells: u32,
    /// The seed of all faults.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Faults between the functions and the cloud; see `fault-proxy --help`.
    #[arg(long, default_value = "* 0.1 any stubborn;* 0.004 kill-before;* 0.004 kill-after")]
    faults: String,
    /// Faults between the runner and the cloud, its registries included.
    #[arg(long, default_value = "* 0.05 any;* 0.004 kill-before;* 0.004 kill-after")]
    runner_faults: String,
    /// In how many percent of the deploys one side is cut off for longer than a lease.
    #[arg(long, default_value_t = 10)]
    outages: u32,
    /// Keep the directories with all logs.
    #[arg(long)]
    keep: bool,
}

/// The result of one deploy.
#[derive(Debug, Default, Clone)]
struct Verdict {
    /// What is wrong with its end.
    wrong: Option<String>,
    /// It ended without success, so the next deploy had to do its work.
    repeated: bool,
    /// An effect is reported and missing.
    lost: bool,
    /// The action wrote more than once.
    doubled: bool,
    /// The action wrote in an attempt other than the accepted one.
    stale: bool,
}

/// What cuts one side off.
#[derive(Debug, Clone, Copy)]
enum Outage {
    Runner,
    Functions,
}

/// Longer than a lease, and than any number of retries of one call.
const OUTAGE: Duration = Duration::from_secs(35);
const LOOK: Duration = Duration::from_millis(200);
/// The longest that one deploy may take: a function's message that failed comes back after a pause that doubles.
const LIMIT: Duration = Duration::from_secs(900);

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let (next, verdicts) = (Arc::new(AtomicU32::new(0)), Arc::new(Mutex::new(Vec::new())));
    let cells: Vec<_> = (0..arguments.cells)
        .map(|number| tokio::spawn(deploy_all(arguments.clone(), number, next.clone(), verdicts.clone())))
        .collect();
    for cell in cells {
        cell.await.context("a cell ended")??;
    }
    let verdicts = verdicts.lock().unwrap_or_else(PoisonError::into_inner).clone();
    report(&arguments, &verdicts);
    Ok(ExitCode::from(u8::from(!verdicts.iter().all(Verdict::is_right))))
}

/// Deploys on one cloud until all deploys were made.
async fn deploy_all(
    arguments: Arguments,
    number: u32,
    next: Arc<AtomicU32>,
    verdicts: Arc<Mutex<Vec<Verdict>>>,
) -> anyhow::Result<()> {
    let seed = arguments.seed.wrapping_mul(1000) + u64::from(number);
    let mut cell = Cell::start(seed).await?;
    let mut restarts = 0;
    if arguments.keep {
        eprintln!("logs: {}", cell.world.keep().display());
    }
    loop {
        let round = next.fetch_add(1, Ordering::Relaxed);
        if round >= arguments.deploys {
            return Ok(());
        }
        cell.renew().await?;
        let started = Instant::now();
        let verdict = deploy(&mut cell, &arguments, round, &mut restarts).await;
        let took = started.elapsed().as_secs_f64();
        let outcome = if verdict.is_right() { "right" } else { "WRONG" };
        let hits = cell.hits();
        eprintln!("deploy {round}: {outcome} in {took:.1} s, {hits} faults{}", verdict.complaint());
        let right = verdict.is_right();
        verdicts.lock().unwrap_or_else(PoisonError::into_inner).push(verdict);
        if !right && cell.recover().await.is_err() {
            eprintln!("logs of a cloud that is left: {}", cell.world.keep().display());
            cell = Cell::start(seed).await?;
        }
    }
}

async fn deploy(cell: &mut Cell, arguments: &Arguments, round: u32, restarts: &mut u32) -> Verdict {
    cell.next_try();
    match deploy_once(cell, arguments, round, restarts).await {
        Ok(verdict) => verdict,
        Err(error) => Verdict { wrong: Some(format!("{error:#}")), ..Verdict::default() },
    }
}

/// Deploys while everything fails; what ended without success is done by a deploy without faults.
async fn deploy_once(
    cell: &mut Cell,
    arguments: &Arguments,
    round: u32,
    restarts: &mut u32,
) -> anyhow::Result<Verdict> {
    let mut rng = Rng::with_seed(arguments.seed ^ u64::from(round) << 20);
    let outage = (rng.u32(0..100) < arguments.outages)
        .then(|| (Duration::from_millis(rng.u64(0..4000)), rng.choice([Outage::Runner, Outage::Functions])));
    fail(cell, arguments)?;
    let killed = *restarts;
    let begun = cell.deploy().await?;
    let ended = supervised(cell, arguments, &begun, outage, restarts).await;
    cell.calm();
    ended?;
    let workflow = cell.ended(&begun).await?;
    let mut verdict = Verdict { repeated: workflow.state.as_str() != "succeeded", ..Verdict::default() };
    verdict.take(cell.everything_once(&begun, &workflow).await);
    if verdict.repeated {
        eprintln!("deploy {round} ended {}: {:?}", workflow.state.as_str(), states(&workflow));
        if *restarts > killed {
            // The poll of the killed runner would take an order, and what must not run twice would be interrupted.
            tokio::time::sleep(POLL).await;
        }
        let next = cell.deploy().await?;
        verdict.take(cell.succeeds(&next).await);
        // Nothing of the deploy that failed may come late.
        verdict.take(cell.everything_once(&begun.followed_by(&next), &workflow).await);
    }
    Ok(verdict)
}

fn fail(cell: &Cell, arguments: &Arguments) -> anyhow::Result<()> {
    cell.on_functions(&arguments.faults)?;
    cell.on_runner(&arguments.runner_faults)
}

/// Waits for the end of a deploy, starts a runner that died again, and cuts one side off for a while.
async fn supervised(
    cell: &mut Cell,
    arguments: &Arguments,
    begun: &Begun,
    mut outage: Option<(Duration, Option<Outage>)>,
    restarts: &mut u32,
) -> anyhow::Result<()> {
    let (began, mut over) = (Instant::now(), None);
    while !cell.workflow(&begun.workflow).await?.state.is_terminal() {
        anyhow::ensure!(
            began.elapsed() < LIMIT,
            "it does not end: {:?}",
            states(&cell.workflow(&begun.workflow).await?)
        );
        if !cell.runner.is_alive()? {
            *restarts += 1;
            cell.runner.start_again()?;
        }
        if let Some((_, which)) = outage.take_if(|(at, _)| began.elapsed() >= *at) {
            match which {
                Some(Outage::Functions) => cell.on_functions("* 1 error")?,
                Some(Outage::Runner) | None => cell.on_runner("* 1 black-hole:60")?,
            }
            over = Some(Instant::now() + OUTAGE);
        }
        if over.take_if(|over| Instant::now() >= *over).is_some() {
            fail(cell, arguments)?;
        }
        tokio::time::sleep(LOOK).await;
    }
    if !cell.runner.is_alive()? {
        *restarts += 1;
        cell.runner.start_again()?;
    }
    Ok(())
}

impl Verdict {
    const fn is_right(&self) -> bool {
        self.wrong.is_none() && !(self.lost || self.doubled || self.stale)
    }

    /// Adds what a check found.
    fn take(&mut self, checked: anyhow::Result<()>) {
        let Err(error) = checked else { return };
        let message = format!("{error:#}");
        self.lost |= message.starts_with("lost: ");
        self.doubled |= message.starts_with("doubled: ");
        self.stale |= message.starts_with("stale: ");
        self.wrong = Some(message);
    }

    fn complaint(&self) -> String {
        let repeated = if self.repeated { ", done by the next deploy" } else { "" };
        let wrong = self.wrong.as_ref().map(|wrong| format!("; {wrong}")).unwrap_or_default();
        format!("{repeated}{wrong}")
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
    figure("deploys.faulty", count(|verdict| !verdict.is_right()), attempted);
    for (name, wrong) in [
        ("deploys.lost", count(|verdict| verdict.lost)),
        ("deploys.doubled", count(|verdict| verdict.doubled)),
        ("deploys.stale", count(|verdict| verdict.stale)),
    ] {
        figure(name, wrong, wrong);
    }
    let repeated = count(|verdict| verdict.repeated);
    figure("deploys.repeated", 0, repeated);
}
