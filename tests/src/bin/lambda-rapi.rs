//! The Lambda Runtime API on loopback: starts a function's program as Lambda does and measures what an invoke costs.
//! A cold start lasts from the start of the process to its first answer. A busy machine changes wall time, not CPU time.

#![expect(clippy::indexing_slicing, reason = "not shipped; a panic ends the run, as it should")]

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Parser;
use freehold_tests::bench::process::{cpu_ms, memory_mib};
use freehold_tests::bench::{median, row};
use freehold_tests::http::{Message, Wire};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::sync::{mpsc, oneshot};

/// Measures a function's program; the environment is passed on. Prints JSON lines.
#[derive(Debug, Parser)]
struct Arguments {
    /// The name of the rows.
    #[arg(long)]
    name: String,
    /// Starts of the process; one more warms the page cache and is not counted.
    #[arg(long, default_value_t = 10)]
    trials: u32,
    /// Invokes of each process after the first.
    #[arg(long, default_value_t = 50)]
    warm: u32,
    /// The event, JSON.
    #[arg(long)]
    event: PathBuf,
    /// Text that a right answer contains.
    #[arg(long, default_value = "200")]
    expect: String,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true)]
    command: Vec<String>,
}

/// The cost of one process, in milliseconds and MiB.
#[derive(Debug, Default, Clone, Copy)]
struct Cost {
    cold_wall: f64,
    cold_cpu: f64,
    warm_cpu: f64,
    memory: f64,
}

type Asked = (Message, oneshot::Sender<Vec<u8>>);

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let event = std::fs::read_to_string(&arguments.event)?;
    let mut costs = Vec::new();
    for trial in 0..=arguments.trials {
        let cost = trial_of(&arguments, &event).await?;
        if trial > 0 {
            costs.push(cost);
        }
    }
    let each = |of: fn(&Cost) -> f64| median(&costs.iter().map(of).collect::<Vec<_>>());
    let name = &arguments.name;
    row(&format!("{name}.cold_wall"), each(|cost| cost.cold_wall), "ms");
    row(&format!("{name}.cold_cpu"), each(|cost| cost.cold_cpu), "ms");
    row(&format!("{name}.warm_cpu"), each(|cost| cost.warm_cpu), "ms");
    row(&format!("{name}.memory"), each(|cost| cost.memory), "MiB");
    Ok(())
}

async fn trial_of(arguments: &Arguments, event: &str) -> anyhow::Result<Cost> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    let (sender, mut asked) = mpsc::channel::<Asked>(8);
    let serving = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(Wire::new(stream), sender.clone()));
        }
    });
    let started = Instant::now();
    let mut command = Command::new(&arguments.command[0]);
    command
        .args(&arguments.command[1..])
        .env("AWS_LAMBDA_RUNTIME_API", &address)
        .env("AWS_LAMBDA_FUNCTION_NAME", "bench");
    command
        .env("AWS_LAMBDA_FUNCTION_VERSION", "1")
        .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128")
        .env("_HANDLER", "bootstrap");
    command.env("AWS_LAMBDA_LOG_GROUP_NAME", "bench").env("AWS_LAMBDA_LOG_STREAM_NAME", "bench");
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true).spawn()?;
    let pid = child.id().context("the program has ended")?;
    let mut cost = Cost::default();
    let (mut handed, mut answered) = (0, 0);
    while answered <= arguments.warm {
        let next =
            tokio::time::timeout(Duration::from_secs(30), asked.recv()).await.context("the program says nothing")?;
        let (request, answer) = next.context("the server has ended")?;
        let path = request.start[1].as_str();
        if path.ends_with("/next") {
            handed += 1;
            let _ = answer.send(invocation(handed, event));
        } else if path.ends_with("/response") {
            let body = String::from_utf8_lossy(&request.body);
            if !body.contains(&arguments.expect) {
                bail!("`{}` answered {body}", arguments.name);
            }
            if answered == 0 {
                cost.cold_wall = started.elapsed().as_secs_f64() * 1e3;
                cost.cold_cpu = cpu_ms(pid);
            }
            answered += 1;
            let _ = answer.send(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n".to_vec());
        } else {
            bail!("`{}` said {path}: {}", arguments.name, String::from_utf8_lossy(&request.body));
        }
    }
    cost.warm_cpu = (cpu_ms(pid) - cost.cold_cpu) / f64::from(arguments.warm);
    cost.memory = memory_mib(pid, "VmRSS");
    child.kill().await?;
    serving.abort();
    Ok(cost)
}

async fn serve(mut client: Wire, asked: mpsc::Sender<Asked>) {
    while let Ok(Some(request)) = client.request().await {
        let (sender, answer) = oneshot::channel();
        if asked.send((request, sender)).await.is_err() {
            return;
        }
        let Ok(answer) = answer.await else { return };
        if client.write(&answer).await.is_err() {
            return;
        }
    }
}

fn invocation(number: u32, event: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nlambda-runtime-aws-request-id: \
         00000000-0000-4000-8000-{number:012}\r\nlambda-runtime-deadline-ms: 4102444800000\r\n\
         lambda-runtime-invoked-function-arn: arn:aws:lambda:eu-west-1:111111111111:function:bench\r\n\
         lambda-runtime-trace-id: Root=1-00000000-000000000000000000000000\r\ncontent-length: {}\r\n\r\n{event}",
        event.len()
    )
    .into_bytes()
}
