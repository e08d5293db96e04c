//! A runner without queues for `tests/escapes`: does one action for each line of standard input, beside a neighbour that
//! stays, and prints how it ended as a JSON line.

use std::collections::BTreeMap;
use std::io::BufRead as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;

use anyhow::Context as _;
use async_trait::async_trait;
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use clap::Parser;
use ed25519_dalek::SigningKey;
use freehold_protocol::approval::ApproveChanges;
use freehold_protocol::audit::AuditEvent;
use freehold_protocol::contract::{FORMAT, OrderTerms, PackedTerms, Terms};
use freehold_protocol::envelope::PublicKey;
use freehold_protocol::grant::GrantAnswer;
use freehold_protocol::order::{Artifact, Order};
use freehold_protocol::policy::PolicyResult;
use freehold_protocol::provenance::BuildFacts;
use freehold_protocol::report::Fence;
use freehold_protocol::succession::Roots;
use freehold_protocol::{Digest, Timestamp};
use freehold_runner::config::{Config, Role};
use freehold_runner::job::{
    Change, Connections, GrantError, Grants, HandOver, Job, Plans, PolicyRecorder, Recorder, Refusal, Stop, StopReason,
    Used,
};
use freehold_runner::keys::runner_key::Identity;
use freehold_runner::kinds::execute;
use freehold_runner::record::log::JobLog;
use freehold_runner::sandbox;
use freehold_runner::secrets::sensitive_outputs::SensitiveOutputs;
use serde_json::json;
use tokio::sync::watch;

/// Runs probes as steps of actions, by the same code as a runner's orders.
#[derive(Debug, Parser)]
struct Arguments {
    /// The runner's state directory.
    #[arg(long)]
    state: PathBuf,
    /// What separates the jobs from the machine, as in the runner's config.
    #[arg(long)]
    sandbox: String,
    /// The folder that every workspace gets a copy of.
    #[arg(long)]
    probes: PathBuf,
}

fn main() -> anyhow::Result<ExitCode> {
    if let Some(code) = sandbox::init::run_if_asked() {
        return Ok(code);
    }
    let arguments = Arguments::parse();
    // A box ends with the thread that made it.
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(serve(arguments))?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(arguments: Arguments) -> anyhow::Result<()> {
    let config = Arc::new(config(&arguments)?);
    // The runner's own key, which no job may read.
    Identity::load_or_make(&config.state_dir)?;
    let (neighbour, stop_neighbour) = job(&arguments, &config, "neighbour", "neighbour.py")?;
    println!("{}", json!({ "neighbour": neighbour.workspace }));
    let beside = tokio::spawn(async move { execute(&neighbour).await });
    let (lines_in, mut lines) = tokio::sync::mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if lines_in.blocking_send(line).is_err() {
                return;
            }
        }
    });
    let mut done: Option<PathBuf> = None;
    while let Some(name) = lines.recv().await {
        if let Some(workspace) = done.take() {
            // One that cannot be removed is an answer, which has been seen by now.
            let _ = std::fs::remove_dir_all(workspace);
        }
        let (job, _stop) = job(&arguments, &config, &name, &format!("main.py {name}"))?;
        let outcome = execute(&job).await;
        let log = text(&job.log);
        println!("{}", json!({ "outcome": outcome, "workspace": job.workspace, "log": log }));
        done = Some(job.workspace);
    }
    stop_neighbour.send(Some(StopReason::Cancelled))?;
    beside.await?;
    Ok(())
}

/// Returns a job whose only step runs a Python program of the probes in a workspace of its own. The last word of its command
/// line is that workspace's path outside, by which its process is found.
fn job(
    arguments: &Arguments,
    config: &Arc<Config>,
    name: &str,
    program: &str,
) -> anyhow::Result<(Job, watch::Sender<Option<StopReason>>)> {
    let workspace = arguments.state.join("work").join(name);
    std::fs::create_dir_all(&workspace)?;
    copy(&arguments.probes, &workspace)?;
    let (stop, signal) = Stop::channel();
    let job = Job {
        order: Arc::new(order(&format!("exec python3 -S -B probes/{program} {}", workspace.display()))?),
        fence: Fence { dispatch: 1, receive: 1 },
        workspace,
        log: JobLog::default(),
        stop: signal,
        roots: Roots::given(config.tenant.clone(), config.tenant_key.clone(), None),
        config: Arc::clone(config),
        credentials: SharedCredentialsProvider::new(Credentials::new("AKIANEIGHBOUR", "secret", None, None, "test")),
        grants: Arc::new(NoGrants),
        first_box: Default::default(),
        image: Default::default(),
        connections: Arc::new(NoGrants),
        iam: Arc::new(NoGrants),
        policies: Arc::new(NoGrants),
        plans: Arc::new(NoGrants),
        sensitive_outputs: SensitiveOutputs::new(&aws_config::SdkConfig::builder().build(), None),
        hand_over: Arc::new(NoGrants),
    };
    Ok((job, stop))
}

fn copy(folder: &Path, into: &Path) -> anyhow::Result<()> {
    let status = Command::new("cp").arg("-r").arg(folder).arg(into.join("probes")).status()?;
    anyhow::ensure!(status.success(), "could not copy `{}`", folder.display());
    Ok(())
}

fn order(command: &str) -> anyhow::Result<Order> {
    let step = json!({ "name": "probe", "command": command, "inline_contents": "", "env_vars": {} });
    let order = json!({
        "tenant": "acme", "install": "globex-prod", "workflow": "wf_00000000000000000001",
        "job": "job_00000000000000000001", "dispatch": 1, "group": "action:probe", "serial": 1, "issued_at": 0,
        "not_after": 9_000_000_000_000_u64, "timeout_secs": 600, "mode": "maintenance", "redelivery": "interrupted",
        "work": { "kind": "action", "action": "probe", "steps": [step], "env_vars": {}, "idempotent": false },
        "context": {}, "terms": terms()?,
    });
    serde_json::from_value(order).context("the order of a probe")
}

/// The terms of a contract that names these hosts.
fn terms() -> anyhow::Result<OrderTerms> {
    let hosts = [
        "allowed.example.com",
        "pair.example.com:8443",
        "rebinding.example.com",
        "rebinding-pair.example.com:8443",
        "loopback.example.com",
        "iam.amazonaws.com",
        "iam.amazonaws.com:8443",
        "vpce-1.iam.us-east-1.vpce.amazonaws.com",
    ];
    let terms = json!({ "format": FORMAT, "app": "demo", "roles": [], "hosts": hosts, "actions": [] });
    let terms: Terms = serde_json::from_value(terms)?;
    let bytes = serde_json::to_vec(&terms)?;
    Ok(OrderTerms { digest: Digest::of(&bytes), change: None, document: Some(PackedTerms::of(&bytes)?) })
}

fn config(arguments: &Arguments) -> anyhow::Result<Config> {
    let key: String = PublicKey::from(SigningKey::from_bytes(&[1; 32]).verifying_key()).into();
    let text = format!(
        r#"
        tenant = "acme"
        install = "globex-prod"
        region = "eu-west-1"
        orders_queue_url = "http://127.0.0.1:1/orders"
        reports_queue_url = "http://127.0.0.1:1/reports"
        tenant_key = "{key}"
        state_dir = "{}"
        repository = "fh-globex-prod"
        bucket = "fh-globex-prod"
        sandbox = "{}"

        # Smaller than what `limits.py` asks for.
        [limits]
        memory_mib = 512
        processes = 256
        disk_mib = 128
        files = 20_000
        "#,
        arguments.state.display(),
        arguments.sandbox,
    );
    Ok(Config::parse(&text, "runner.toml", Role::Install)?)
}

fn text(log: &JobLog) -> String {
    log.close();
    let mut text = String::new();
    while log.has_pending() {
        text.push_str(&log.take_chunk());
    }
    text
}

#[async_trait]
impl HandOver for NoGrants {
    fn begin(&self) {}

    async fn announced(&self) {}
}

impl Connections for NoGrants {
    fn refused(&self, _: &Refusal) {}
}

#[async_trait]
impl Recorder for NoGrants {
    async fn record(&self, _: Change) -> Result<(), String> {
        Err("a probe changes nothing in IAM".to_owned())
    }

    async fn record_used(&self, _: BTreeMap<String, Used>) -> Result<(), String> {
        Ok(())
    }
}

#[async_trait]
impl PolicyRecorder for NoGrants {
    async fn record(&self, _: Vec<PolicyResult>) -> Result<(), String> {
        Err("a probe has no plan".to_owned())
    }

    fn results(&self) -> Vec<PolicyResult> {
        Vec::new()
    }
}

#[async_trait]
impl Plans for NoGrants {
    async fn customer_asks(&self, _: &Order) -> Result<ApproveChanges, String> {
        Ok(ApproveChanges::None)
    }

    async fn get(&self, _: &str) -> Result<Option<Vec<u8>>, String> {
        Err("a probe has no plan".to_owned())
    }

    async fn put(&self, _: &str, _: Vec<u8>) -> Result<(), String> {
        Err("a probe has no plan".to_owned())
    }

    async fn record(&self, _: AuditEvent) -> Result<(), String> {
        Err("a probe has no plan".to_owned())
    }

    fn now(&self) -> Timestamp {
        Timestamp::default()
    }
}

/// Refuses: a probe needs no artifact.
#[derive(Debug)]
struct NoGrants;

#[async_trait]
impl Grants for NoGrants {
    async fn request(&self, _: &Job, artifact: &Digest, _: Vec<Digest>, _: u32) -> Result<GrantAnswer, GrantError> {
        Err(GrantError::Unsent { artifact: artifact.clone(), reason: "a probe has no artifact".into() })
    }

    async fn attest(&self, _: &Job, artifact: &Artifact, _: BuildFacts) -> Result<GrantAnswer, GrantError> {
        Err(GrantError::Unsent { artifact: artifact.digest.clone(), reason: "a probe builds nothing".into() })
    }
}
