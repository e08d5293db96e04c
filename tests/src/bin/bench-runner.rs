//! Measures the real runner on a fast queue: how soon a job starts, what memory it takes, what idling costs, what copying
//! an image costs.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::{Parser, Subcommand};
use freehold_protocol::order::{ActionStep, BuildArtifact, Package, RunAction, Source, Work};
use freehold_protocol::report::{AttemptEvent, Outcome};
use freehold_protocol::{AppName, BuildId, Digest};
use freehold_tests::bench::process::{memory_mib, tree_memory_mib, whole_cpu_ms};
use freehold_tests::bench::runner::Measured;
use freehold_tests::bench::{quantile, row, skipped};

/// Measures a runner; prints JSON lines.
#[derive(Debug, Parser)]
struct Arguments {
    /// The runner.
    #[arg(long)]
    runner: PathBuf,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// From sending an order to the start of the job's process, the journal included: what the job's shell says, less what
    /// the shell takes by itself.
    Latency {
        #[arg(long, default_value_t = 200)]
        jobs: u32,
        /// `bubblewrap` or `none`.
        #[arg(long, default_value = "bubblewrap")]
        sandbox: String,
    },
    /// Memory of a running job: its box, its shell, and what the runner keeps for it.
    Memory,
    /// Requests, memory and CPU time of a runner without work.
    Idle {
        /// For how long; less than the minute after which the runner repeats its hello.
        #[arg(long, default_value_t = 50)]
        secs: u64,
    },
    /// Copies one image to a registry.
    Copy {
        /// `127.0.0.1:5000/app:tag`.
        #[arg(long)]
        image: String,
        /// `http://127.0.0.1:5001`.
        #[arg(long)]
        target: String,
        /// The name of the rows.
        #[arg(long)]
        name: String,
    },
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    match &arguments.what {
        What::Latency { jobs, sandbox } => latency(&arguments.runner, *jobs, sandbox).await,
        What::Memory => memory(&arguments.runner).await,
        What::Idle { secs } => idle(&arguments.runner, *secs).await,
        What::Copy { image, target, name } => copy(&arguments.runner, image, target, name).await,
    }
}

async fn latency(program: &std::path::Path, jobs: u32, sandbox: &str) -> anyhow::Result<()> {
    let mut runner = Measured::start(program, sandbox, None).await?;
    let idle = starts(&mut runner, jobs, true).await?;
    let busy = starts(&mut runner, jobs, false).await?;
    // The shell speaks some milliseconds after its process was started.
    let shell = shell_start().await?;
    row("latency.shell", shell, "ms");
    for (name, started) in [("", idle), (".stream", busy)] {
        row(&format!("latency.{sandbox}{name}.p50"), quantile(&started, 0.5) - shell, "ms");
        row(&format!("latency.{sandbox}{name}.p99"), quantile(&started, 0.99) - shell, "ms");
    }
    Ok(())
}

/// Returns how long each of `jobs` took to start, in milliseconds: each sent to an idle runner, or as soon as the one before
/// it has ended.
async fn starts(runner: &mut Measured, jobs: u32, idle: bool) -> anyhow::Result<Vec<f64>> {
    let mut started = Vec::new();
    for round in 0..jobs + 10 {
        let work = action("echo started=$EPOCHREALTIME")?;
        if idle {
            runner.settled().await?;
        }
        let sent = micros();
        let job = runner.order("action:bench", work)?;
        let events = runner.ended(&job).await?;
        runner.idle().await?;
        // The first ones find cold caches.
        if round >= 10 {
            let at = started_at(&events).with_context(|| format!("no start in {events:?}"))?;
            started.push((at - sent) / 1000.0);
        }
    }
    Ok(started)
}

/// Returns an action of one step.
fn action(command: &str) -> anyhow::Result<Work> {
    let step = ActionStep {
        name: "start".to_owned(),
        command: command.to_owned(),
        inline_contents: String::new(),
        env_vars: Default::default(),
    };
    Ok(Work::Action(RunAction {
        action: "bench".parse()?,
        steps: vec![step],
        directories: Vec::new(),
        env_vars: Default::default(),
        idempotent: false,
        cluster: None,
        image: String::new(),
    }))
}

/// Measures two jobs that wait at the same time, against the same runner without a job.
async fn memory(program: &std::path::Path) -> anyhow::Result<()> {
    let mut runner = Measured::start(program, "bubblewrap", None).await?;
    runner.settled().await?;
    let without = tree_memory_mib(runner.pid());
    let first = runner.order("action:first", action("exec sleep 600")?)?;
    let second = runner.order("action:second", action("exec sleep 600")?)?;
    runner.running(&[first, second]).await?;
    let more = tree_memory_mib(runner.pid()) - without;
    if more.is_nan() {
        skipped("job.memory", "the kernel does not tell the memory of a process that has another user");
    } else {
        row("job.memory", more / 2.0, "MiB");
    }
    Ok(())
}

/// Returns the time that the shell itself takes, from before its process starts to its first output.
async fn shell_start() -> anyhow::Result<f64> {
    let mut took = Vec::new();
    for _ in 0..50 {
        let before = micros();
        let output = tokio::process::Command::new("bash").args(["-c", "echo $EPOCHREALTIME"]).output().await?;
        took.push((String::from_utf8_lossy(&output.stdout).trim().parse::<f64>()? * 1e6 - before) / 1000.0);
    }
    Ok(quantile(&took, 0.5))
}

/// Returns what the job's shell said of its start, in microseconds since the epoch.
fn started_at(events: &[AttemptEvent]) -> Option<f64> {
    let logs = events.iter().map(|event| match event {
        AttemptEvent::Progress { log } | AttemptEvent::Finished { log, .. } => log.as_str(),
        AttemptEvent::Started | AttemptEvent::GrantRequest { .. } | AttemptEvent::AttestRequest { .. } => "",
    });
    let text: String = logs.collect();
    let (_, rest) = text.split_once("started=")?;
    rest.split_whitespace().next()?.parse::<f64>().ok().map(|secs| secs * 1e6)
}

fn micros() -> f64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1e6
}

#[expect(clippy::cast_precision_loss, reason = "small counts")]
async fn idle(program: &std::path::Path, secs: u64) -> anyhow::Result<()> {
    let runner = Measured::start(program, "none", None).await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    runner.sqs.take_requests();
    let before = whole_cpu_ms(runner.pid());
    tokio::time::sleep(Duration::from_secs(secs)).await;
    let requests = runner.sqs.take_requests();
    let per = |span: f64| span / secs as f64;
    row("idle.requests", requests.values().sum::<u64>() as f64 * per(20.0), "per 20 s");
    row("idle.cpu", (whole_cpu_ms(runner.pid()) - before) * per(60.0), "ms a minute");
    row("idle.memory", memory_mib(runner.pid(), "VmRSS"), "MiB");
    // A table write needs a report.
    row(
        "idle.reports",
        requests.iter().filter(|(name, _)| name.starts_with("Send")).map(|(_, n)| n).sum::<u64>() as f64,
        "",
    );
    Ok(())
}

async fn copy(program: &std::path::Path, image: &str, target: &str, name: &str) -> anyhow::Result<()> {
    let mut runner = Measured::start(program, "none", Some(target)).await?;
    let app: AppName = "bench".parse()?;
    let component = "web".parse()?;
    let work = Work::Build(BuildArtifact {
        build: BuildId::derive(&app, &Digest::of(image.as_bytes()), &component),
        component,
        package: Package::Image,
        recipe: None,
        source: Source::Image { reference: image.to_owned() },
        repository: "app".to_owned(),
    });
    let before = whole_cpu_ms(runner.pid());
    let started = Instant::now();
    let job = runner.order("component:web", work)?;
    let events = runner.ended(&job).await?;
    let wall = started.elapsed().as_secs_f64();
    if !matches!(events.last(), Some(AttemptEvent::Finished { outcome: Outcome::Succeeded { .. }, .. })) {
        bail!("the copy failed: {:?}", events.last());
    }
    row(&format!("{name}.wall"), wall, "s");
    row(&format!("{name}.cpu"), (whole_cpu_ms(runner.pid()) - before) / 1000.0, "s");
    row(&format!("{name}.memory"), memory_mib(runner.pid(), "VmHWM"), "MiB");
    Ok(())
}
