//! The real runner on a fast queue, with orders signed as the control plane signs them.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use ed25519_dalek::SigningKey;
use freehold_protocol::envelope::{Delegate, Delegated, PublicKey};
use freehold_protocol::grant::{ArtifactGrant, GrantAnswer};
use freehold_protocol::order::{Artifact, Mode, Order, Work};
use freehold_protocol::provenance::{BuildFacts, ExternalParameters, InternalParameters, Statement};
use freehold_protocol::report::{AttemptEvent, AttemptReport, Report, ReportBody};
use freehold_protocol::{Digest, Envelope, GrantId, JobId, Timestamp, WorkflowId};
use tokio::process::{Child, Command};
use tokio::time::Instant;

use crate::bench::process::activity;
use crate::fast_sqs::FastSqs;

const TENANT: &str = "acme";
const ORDERS: &str = "orders.fifo";
const REPORTS: &str = "reports";
/// The longest that one report may be waited for.
const LIMIT: Duration = Duration::from_secs(120);
/// For how long a runner has nothing to do before it counts as idle: longer than it waits before it makes the next box.
const QUIET: Duration = Duration::from_millis(60);
/// The root key of the tenant that exists for measurements only.
const ROOT: [u8; 32] = [7; 32];
const DELEGATE: [u8; 32] = [8; 32];

/// A running runner and its queues; it is killed when it is dropped.
#[derive(Debug)]
pub struct Measured {
    pub sqs: FastSqs,
    child: Child,
    install: &'static str,
    serial: u64,
    /// What the last order asked for.
    work: Option<Work>,
    _state: tempfile::TempDir,
}

impl Measured {
    /// Starts `program`: an install runner, or a build runner that pushes to the registry at `target`.
    ///
    /// # Errors
    /// When it cannot be started, or does not announce itself.
    pub async fn start(program: &Path, sandbox: &str, target: Option<&str>) -> anyhow::Result<Self> {
        let sqs = FastSqs::start("127.0.0.1:0").await?;
        answer_aws(&sqs, target);
        let state = tempfile::Builder::new().prefix("freehold-bench-").tempdir()?;
        let install = if target.is_some() { "build" } else { "globex" };
        let config = state.path().join("runner.toml");
        let key = String::from(PublicKey::from(SigningKey::from_bytes(&ROOT).verifying_key()));
        let text = format!(
            "tenant = \"{TENANT}\"\ninstall = \"{install}\"\nregion = \"eu-west-1\"\norders_queue_url = \"{}\"\n\
             reports_queue_url = \"{}\"\ntenant_key = \"{key}\"\nstate_dir = \"{}\"\n\
             repository = \"app\"\nsandbox = \"{sandbox}\"\n{}\n[modes]\nmaintenance = \"arn:aws:iam::222222222222:role/m\"\n",
            sqs.queue_url(ORDERS),
            sqs.queue_url(REPORTS),
            state.path().join("state").display(),
            if target.is_some() { "bucket = \"none\"" } else { "" },
        );
        std::fs::write(&config, text)?;
        let log = std::fs::File::create(state.path().join("log"))?;
        let mut command = Command::new(program);
        command.args(["run", "--config"]).arg(&config).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("AWS_ENDPOINT_URL", sqs.url());
        // A row measures a job without a box.
        command.env("FREEHOLD_JOBS_AS_ROOT", "1");
        command
            .env("AWS_ACCESS_KEY_ID", "222222222222")
            .env("AWS_SECRET_ACCESS_KEY", "local")
            .env("AWS_SESSION_TOKEN", "local")
            .env("AWS_REGION", "eu-west-1");
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).kill_on_drop(true);
        let child = command.spawn().with_context(|| format!("starting `{}`", program.display()))?;
        let measured = Self { sqs, child, install, serial: 0, work: None, _state: state };
        match measured.report().await?.body {
            ReportBody::Hello(_) => Ok(measured),
            other => bail!("the runner began with {other:?}"),
        }
    }

    /// Returns its process id.
    pub fn pid(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }

    /// Sends an order for `work`; returns the job.
    ///
    /// # Errors
    /// When it cannot be signed.
    pub fn order(&mut self, group: &str, work: Work) -> anyhow::Result<JobId> {
        self.serial += 1;
        let now = now();
        let workflow = WorkflowId::derive(self.install, &self.serial.to_string());
        let job = JobId::derive(&workflow, group);
        let order = Order {
            tenant: TENANT.parse()?,
            install: self.install.parse()?,
            workflow,
            job: job.clone(),
            dispatch: 1,
            group: group.parse()?,
            serial: self.serial,
            issued_at: now,
            start_by: None,
            not_after: now.plus_secs(3600),
            timeout_secs: 600,
            mode: Mode::Maintenance,
            role: None,
            asked_by: None,
            asker: None,
            asked_why: None,
            now: false,
            runner: None,
            redelivery: work.redelivery(),
            work,
            context: serde_json::json!({"nuon": {}}),
            skip_noops: false,
            sensitive_inputs: Vec::new(),
            sealed_inputs: std::collections::BTreeMap::new(),
            secrets: Vec::new(),
            kept_outputs: Vec::new(),
            tool_image: None,
            terms: None,
            receipt: None,
            policies: Vec::new(),
            approval: None,
            approved: None,
            must_understand: Default::default(),
        };
        self.sqs.send(ORDERS, &signed(&order)?, Some(group), Some(&format!("{job}.1")));
        self.work = Some(order.work);
        Ok(job)
    }

    /// Waits until `job` has ended; returns all that was reported of it.
    ///
    /// # Errors
    /// When no report comes.
    pub async fn ended(&self, job: &JobId) -> anyhow::Result<Vec<AttemptEvent>> {
        let mut events = Vec::new();
        while !matches!(events.last(), Some(AttemptEvent::Finished { .. })) {
            match self.report().await?.body {
                ReportBody::Attempt(attempt) if attempt.job == *job => {
                    if let AttemptEvent::AttestRequest { grant, artifact, facts } = &attempt.event {
                        self.attest(&attempt, grant, artifact, facts.clone())?;
                    }
                    events.push(attempt.event);
                }
                ReportBody::Refused(refusal) => bail!("the order was refused: {}", refusal.detail),
                ReportBody::Attempt(_) | ReportBody::Hello(_) | ReportBody::Heartbeat | ReportBody::Away(_) => {}
            }
        }
        Ok(events)
    }

    /// Answers a build as `grant-artifact` does.
    fn attest(
        &self,
        attempt: &AttemptReport,
        grant: &GrantId,
        artifact: &Artifact,
        facts: BuildFacts,
    ) -> anyhow::Result<()> {
        let Some(Work::Build(work)) = &self.work else { bail!("only a build asks for a statement") };
        let external = ExternalParameters {
            app: "bench".parse()?,
            component: work.component.clone(),
            package: work.package,
            source: work.source.clone(),
        };
        let internal = InternalParameters {
            tenant: TENANT.parse()?,
            build: work.build.clone(),
            job: attempt.job.clone(),
            source_digest: Digest::of(b"source"),
        };
        let statement = Statement::new(&artifact.digest, external, internal, facts);
        let statement = Envelope::seal(&statement, &[&SigningKey::from_bytes(&ROOT)])?;
        let answer = ArtifactGrant {
            tenant: TENANT.parse()?,
            install: self.install.parse()?,
            grant: grant.clone(),
            job: attempt.job.clone(),
            fence: attempt.fence,
            artifact: artifact.digest.clone(),
            issued_at: now(),
            not_after: now().plus_secs(600),
            answer: GrantAnswer::Attested { statement },
        };
        self.sqs.send(ORDERS, &signed(&answer)?, Some("grants"), Some(grant.as_str()));
        Ok(())
    }

    /// Waits until no order is left and the runner, with its processes, does nothing: it has made the boxes that wait.
    ///
    /// # Errors
    /// When that takes too long.
    pub async fn settled(&self) -> anyhow::Result<()> {
        self.idle().await?;
        self.quiet().await
    }

    /// Waits until each of `jobs` has started, and the runner with its processes does nothing more.
    ///
    /// # Errors
    /// When one of them ends, or that takes too long.
    pub async fn running(&self, jobs: &[JobId]) -> anyhow::Result<()> {
        let mut waiting = jobs.len();
        while waiting > 0 {
            match self.report().await?.body {
                ReportBody::Attempt(AttemptReport { job, event: AttemptEvent::Started, .. }) if jobs.contains(&job) => {
                    waiting -= 1;
                }
                ReportBody::Attempt(AttemptReport { event: AttemptEvent::Finished { outcome, .. }, .. }) => {
                    bail!("a job ended: {outcome:?}")
                }
                ReportBody::Refused(refusal) => bail!("the order was refused: {}", refusal.detail),
                ReportBody::Attempt(_) | ReportBody::Hello(_) | ReportBody::Heartbeat | ReportBody::Away(_) => {}
            }
        }
        self.quiet().await
    }

    /// Waits until the runner, with its processes, does nothing.
    async fn quiet(&self) -> anyhow::Result<()> {
        let deadline = Instant::now() + LIMIT;
        let (mut last, mut since) = (activity(self.pid()), Instant::now());
        while since.elapsed() < QUIET {
            if Instant::now() > deadline {
                bail!("the runner is never idle");
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
            let now = activity(self.pid());
            if now != last {
                (last, since) = (now, Instant::now());
            }
        }
        Ok(())
    }

    /// Waits until no order is left in the queue.
    ///
    /// # Errors
    /// When that takes too long.
    pub async fn idle(&self) -> anyhow::Result<()> {
        let deadline = Instant::now() + LIMIT;
        while !self.sqs.is_empty(ORDERS) {
            if Instant::now() > deadline {
                bail!("orders are left in the queue");
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Ok(())
    }

    async fn report(&self) -> anyhow::Result<Report> {
        let body = self.sqs.take(REPORTS, Instant::now() + LIMIT).await.context("no report came")?;
        Ok(Envelope::parse(body.as_bytes())?.peek()?)
    }
}

/// Signs as the control plane's functions do: with a delegate key that the root key certified.
fn signed<T: Delegated>(message: &T) -> anyhow::Result<String> {
    let delegate = SigningKey::from_bytes(&DELEGATE);
    let certificate = Delegate {
        tenant: TENANT.parse()?,
        public_key: delegate.verifying_key().into(),
        not_before: Timestamp::from_millis(0),
        not_after: now().plus_secs(7200),
        send_until: None,
        uses: [T::USE].into(),
    };
    let certificate = Envelope::seal(&certificate, &[&SigningKey::from_bytes(&ROOT)])?;
    Ok(Envelope::seal_delegated(message, &delegate, &certificate)?.to_json()?)
}

/// Returns the time of this machine.
pub fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

fn answer_aws(sqs: &FastSqs, registry: Option<&str>) {
    let role = "<AssumeRoleResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><AssumeRoleResult><Credentials>\
        <AccessKeyId>ASIAMEASURED</AccessKeyId><SecretAccessKey>none</SecretAccessKey><SessionToken>none</SessionToken>\
        <Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>";
    sqs.answer_also("AssumeRole", "text/xml", role);
    // The install stack says when changes may start: at any time, because it has no parameter.
    let stack = format!(
        "<DescribeStacksResponse xmlns=\"http://cloudformation.amazonaws.com/doc/2010-05-15/\"><DescribeStacksResult><Stacks>\
         <member><StackName>freehold-{TENANT}--globex</StackName><StackId>arn:aws:cloudformation:eu-west-1:222222222222:stack/\
         freehold-{TENANT}--globex/1</StackId><StackStatus>CREATE_COMPLETE</StackStatus>\
         <CreationTime>2026-01-01T00:00:00Z</CreationTime></member></Stacks></DescribeStacksResult></DescribeStacksResponse>"
    );
    sqs.answer_also("DescribeStacks", "text/xml", &stack);
    if let Some(address) = registry {
        // `AWS:none`, as base64.
        let login = serde_json::json!({"authorizationData": [{"authorizationToken": "QVdTOm5vbmU=", "proxyEndpoint": address}]});
        sqs.answer_also("GetAuthorizationToken", "application/x-amz-json-1.1", &login.to_string());
    }
}
