//! Jobs as the agent would make them, with a log, a stop signal and grants of the test's own.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use ed25519_dalek::SigningKey;
use freehold_protocol::approval::ApproveChanges;
use freehold_protocol::audit::AuditEvent;
use freehold_protocol::grant::GrantAnswer;
use freehold_protocol::order::{Artifact, BuildArtifact, Mode, Order, Redelivery, Work};
use freehold_protocol::policy::PolicyResult;
use freehold_protocol::provenance::{BuildFacts, ExternalParameters, InternalParameters, Statement};
use freehold_protocol::report::{Fence, Outcome};
use freehold_protocol::succession::Roots;
use freehold_protocol::{Digest, Envelope, Timestamp};
use freehold_runner::config::{Config, Role, SandboxKind};
use freehold_runner::job::{
    Change, Connections, GrantError, Grants, HandOver, Job, Plans, PolicyRecorder, Recorder, Refusal, Stop, StopReason,
    Used,
};
use freehold_runner::record::log::JobLog;
use freehold_runner::secrets::sensitive_outputs::SensitiveOutputs;
use rustix::fs::{CWD, FileType, mknodat};
use rustix::process::{Pid, Resource, Signal, getrlimit, kill_process};
use serde_json::{Value, json};
use tokio::sync::watch;

/// The customer's account.
pub(crate) const ACCOUNT: &str = "222222222222";
pub(crate) const REPOSITORY: &str = "fh-acme/globex-prod";
pub(crate) const BUCKET: &str = "fh-acme--globex-prod--222222222222";

/// A job and what a test needs around it.
pub(crate) struct Bench {
    pub(crate) job: Job,
    pub(crate) stop: watch::Sender<Option<StopReason>>,
    pub(crate) directory: tempfile::TempDir,
}

/// Refuses: for jobs that need no grant. Attests what a build pushed.
#[derive(Debug)]
pub(crate) struct NoGrants;

#[async_trait]
impl Grants for NoGrants {
    async fn request(&self, _: &Job, artifact: &Digest, _: Vec<Digest>, _: u32) -> Result<GrantAnswer, GrantError> {
        Err(GrantError::Unsent { artifact: artifact.clone(), reason: "this test expects no request".into() })
    }

    async fn attest(&self, job: &Job, artifact: &Artifact, facts: BuildFacts) -> Result<GrantAnswer, GrantError> {
        let Work::Build(work) = &job.order.work else { panic!("only a build asks for a statement") };
        Ok(GrantAnswer::Attested { statement: statement(&root(), work, artifact, facts) })
    }
}

/// Keeps what a job asked of IAM, as `action resource`.
#[derive(Debug, Default)]
pub(crate) struct IamRecords(Mutex<Vec<String>>);

impl IamRecords {
    /// Returns what was recorded until now.
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

#[async_trait]
impl Recorder for IamRecords {
    async fn record(&self, change: Change) -> Result<(), String> {
        self.0.lock().unwrap().push(format!("{} {}", change.action, change.resource));
        Ok(())
    }

    async fn record_used(&self, used: BTreeMap<String, Used>) -> Result<(), String> {
        self.0.lock().unwrap().extend(used.keys().map(|action| format!("used {action}")));
        Ok(())
    }
}

/// The tenant's root key.
pub(crate) fn root() -> SigningKey {
    SigningKey::from_bytes(&[1; 32])
}

/// Signs as the control plane does.
pub(crate) fn statement(key: &SigningKey, work: &BuildArtifact, artifact: &Artifact, facts: BuildFacts) -> Envelope {
    let external = ExternalParameters {
        app: "demo".parse().unwrap(),
        component: work.component.clone(),
        package: work.package,
        source: work.source.clone(),
    };
    let internal = InternalParameters {
        tenant: "acme".parse().unwrap(),
        build: work.build.clone(),
        job: "job_00000000000000000001".parse().unwrap(),
        source_digest: Digest::of(b"source"),
    };
    Envelope::seal(&Statement::new(&artifact.digest, external, internal, facts), &[key]).unwrap()
}

/// Returns the program of the package: the runner or the builder.
fn program() -> &'static str {
    let program = option_env!("CARGO_BIN_EXE_freehold-runner").or(option_env!("CARGO_BIN_EXE_freehold-builder"));
    program.expect("a program of the package")
}

/// Starts the program of the package and compares its limits of core dumps, soft and hard, with what they must be.
pub(crate) fn check_core_limit() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("config.toml");
    mknodat(CWD, &config, FileType::Fifo, 0o600.into(), 0).unwrap();
    let mut command = Command::new(program());
    let mut started = command.arg("doctor").arg("--config").arg(&config).stderr(Stdio::null()).spawn().unwrap();

    // Opens when the program opens its config, and the program waits there until this end is closed.
    let end = std::fs::OpenOptions::new().write(true).open(&config).unwrap();
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", started.id())).unwrap();
    drop(end);
    started.wait().unwrap();

    let core = getrlimit(Resource::Core).maximum.map_or(1, |hard| hard.min(1)).to_string();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max core file size")).unwrap();
    assert_eq!(line.split_whitespace().take(2).collect::<Vec<_>>(), [&core, &core]);
}

/// Keeps what policies said.
#[derive(Debug, Default)]
struct PolicyRecords(Mutex<Vec<PolicyResult>>);

#[async_trait]
impl PolicyRecorder for PolicyRecords {
    async fn record(&self, results: Vec<PolicyResult>) -> Result<(), String> {
        *self.0.lock().unwrap() = results;
        Ok(())
    }

    fn results(&self) -> Vec<PolicyResult> {
        self.0.lock().unwrap().clone()
    }
}

/// Keeps plans in memory, as the customer's bucket does.
#[derive(Debug, Default)]
pub(crate) struct KeptPlans {
    /// The value of the stack's parameter `ApproveChanges`.
    pub(crate) asks: Mutex<Option<String>>,
    pub(crate) objects: Mutex<BTreeMap<String, Vec<u8>>>,
    pub(crate) events: Mutex<Vec<AuditEvent>>,
}

#[async_trait]
impl Plans for KeptPlans {
    async fn customer_asks(&self, _: &Order) -> Result<ApproveChanges, String> {
        Ok(ApproveChanges::of(self.asks.lock().unwrap().as_deref()))
    }

    async fn get(&self, object: &str) -> Result<Option<Vec<u8>>, String> {
        Ok(self.objects.lock().unwrap().get(object).cloned())
    }

    async fn put(&self, object: &str, bytes: Vec<u8>) -> Result<(), String> {
        self.objects.lock().unwrap().insert(object.to_owned(), bytes);
        Ok(())
    }

    async fn record(&self, event: AuditEvent) -> Result<(), String> {
        self.events.lock().unwrap().push(event);
        Ok(())
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_millis(2_000_000)
    }
}

#[async_trait]
impl HandOver for NoGrants {
    fn begin(&self) {}

    async fn announced(&self) {}
}

impl Connections for NoGrants {
    fn refused(&self, _: &Refusal) {}
}

fn roots(config: &Config) -> Roots {
    Roots::given(config.tenant.clone(), config.tenant_key.clone(), None)
}

impl Bench {
    pub(crate) fn new(work: Work) -> Self {
        // The program under test is the first process of a box, as it is in the field; this one is a test.
        freehold_runner::sandbox::use_init(program());
        let directory = tempfile::tempdir().unwrap();
        let workspace = directory.path().join("workspace");
        std::fs::create_dir(&workspace).unwrap();
        let (stop, signal) = Stop::channel();
        let job = Job {
            order: Arc::new(order(work)),
            fence: Fence { dispatch: 1, receive: 1 },
            workspace,
            log: JobLog::default(),
            stop: signal,
            roots: roots(&config(directory.path())),
            config: Arc::new(config(directory.path())),
            credentials: SharedCredentialsProvider::new(Credentials::new(ACCOUNT, "secret", None, None, "test")),
            grants: Arc::new(NoGrants),
            first_box: Default::default(),
            image: Default::default(),
            connections: Arc::new(NoGrants),
            iam: Arc::new(IamRecords::default()),
            policies: Arc::new(PolicyRecords::default()),
            plans: Arc::new(KeptPlans::default()),
            sensitive_outputs: SensitiveOutputs::new(&aws_types::SdkConfig::builder().build(), None),
            hand_over: Arc::new(NoGrants),
        };
        Self { job, stop, directory }
    }

    pub(crate) fn plain(mut self) -> Self {
        self.change_config(|config| config.sandbox = SandboxKind::None);
        self
    }

    pub(crate) fn change_config(&mut self, change: impl FnOnce(&mut Config)) {
        let mut config = (*self.job.config).clone();
        change(&mut config);
        self.job.roots = roots(&config);
        self.job.config = Arc::new(config);
    }

    pub(crate) fn change_order(&mut self, change: impl FnOnce(&mut Order)) {
        let mut order = (*self.job.order).clone();
        change(&mut order);
        self.job.order = Arc::new(order);
    }

    /// The next attempt at the same job: a fresh workspace and a higher fence.
    pub(crate) fn next_attempt(&mut self) {
        self.job.fence.receive += 1;
        self.job.workspace = self.directory.path().join(format!("workspace-{}", self.job.fence.receive));
        std::fs::create_dir(&self.job.workspace).unwrap();
        let (stop, signal) = Stop::channel();
        (self.stop, self.job.stop) = (stop, signal);
        self.job.log = JobLog::default();
    }

    pub(crate) fn log(&self) -> String {
        self.job.log.close();
        let mut text = String::new();
        while self.job.log.has_pending() {
            text.push_str(&self.job.log.take_chunk());
        }
        text
    }
}

fn order(work: Work) -> Order {
    Order {
        tenant: "acme".parse().unwrap(),
        install: "globex-prod".parse().unwrap(),
        workflow: "wf_00000000000000000001".parse().unwrap(),
        job: "job_00000000000000000001".parse().unwrap(),
        dispatch: 1,
        group: "test".parse().unwrap(),
        serial: 1,
        issued_at: Timestamp::from_millis(0),
        start_by: None,
        not_after: Timestamp::from_millis(u64::MAX),
        timeout_secs: 600,
        mode: Mode::Provision,
        role: None,
        asked_by: None,
        asker: None,
        asked_why: None,
        now: false,
        runner: None,
        redelivery: Redelivery::Resume,
        work,
        context: json!({ "nuon": {
            "install": { "id": "globex-prod" },
            "install_stack": { "outputs": { "prefix": "acme--globex-prod--" } },
        } }),
        skip_noops: false,
        sensitive_inputs: Vec::new(),
        sealed_inputs: BTreeMap::new(),
        secrets: Vec::new(),
        kept_outputs: Vec::new(),
        tool_image: None,
        terms: None,
        receipt: None,
        policies: Vec::new(),
        approval: None,
        approved: None,
        must_understand: Default::default(),
    }
}

fn config(directory: &Path) -> Config {
    Config {
        role: Role::Install,
        tenant: "acme".parse().unwrap(),
        install: "globex-prod".parse().unwrap(),
        region: "eu-west-1".into(),
        orders_queue_url: "http://127.0.0.1:1/orders".into(),
        reports_queue_url: "http://127.0.0.1:1/reports".into(),
        tenant_key: root().verifying_key().into(),
        release_key: None,
        state_dir: directory.join("state"),
        slots: 4,
        repository: REPOSITORY.into(),
        bucket: Some(BUCKET.into()),
        modes: Default::default(),
        boundary: None,
        roles: Default::default(),
        inputs: Default::default(),
        outputs: Default::default(),
        app_secrets: Vec::new(),
        accepted_contract: None,
        stack: "freehold-acme--globex-prod".into(),
        terraform: None,
        provider_mirror: None,
        tenant_second_key: None,
        sandbox: SandboxKind::Bubblewrap,
        cluster_images: Default::default(),
        audit_lock: None,
        policies: Default::default(),
        inside_hosts: Vec::new(),
        scaling_group: None,
        programs: Default::default(),
        limits: Default::default(),
        drain_secs: 600,
    }
}

pub(crate) fn outputs(outcome: Outcome) -> Value {
    match outcome {
        Outcome::Succeeded { outputs, .. } => json!(outputs),
        other => panic!("{other:?}"),
    }
}

/// Returns the keyed digests of the sensitive outputs.
pub(crate) fn sensitive(outcome: &Outcome) -> &BTreeMap<String, Digest> {
    match outcome {
        Outcome::Succeeded { sensitive, .. } => sensitive,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn reason(outcome: Outcome) -> (String, bool) {
    match outcome {
        Outcome::Failed { reason, partial } => (reason, partial),
        other => panic!("{other:?}"),
    }
}

/// Waits for a condition.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(120);
    while !holds() {
        assert!(tokio::time::Instant::now() < deadline, "{what}: not within 120 s");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Returns the processes whose command line contains `mark`, as numbers of this machine.
pub(crate) fn processes(mark: &str) -> Vec<u32> {
    let ids = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    ids.filter(|id: &u32| {
        let own = *id == std::process::id();
        let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let state = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        !own && !state.contains(") Z ") && String::from_utf8_lossy(&line).contains(mark)
    })
    .collect()
}

/// Returns the processes that the process `ancestor` started, directly or through others.
pub(crate) fn descendants(ancestor: u32) -> Vec<u32> {
    let parent = |id: u32| -> Option<u32> {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The name of a program may contain spaces and brackets; the state and the parent follow the last bracket.
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    let parents: Vec<(u32, u32)> = processes("").into_iter().filter_map(|id| Some((id, parent(id)?))).collect();
    let mut found = vec![ancestor];
    let mut at = 0;
    while let Some(of) = found.get(at).copied() {
        found.extend(parents.iter().filter(|(_, parent)| *parent == of).map(|(id, _)| *id));
        at += 1;
    }
    found.split_off(1)
}

/// Returns the processes that this test started and whose command line contains `mark`.
pub(crate) fn own_processes(mark: &str) -> Vec<u32> {
    let marked = processes(mark);
    descendants(std::process::id()).into_iter().filter(|id| marked.contains(id)).collect()
}

/// Kills the processes that this test started and whose command line contains `mark`.
pub(crate) fn kill_own(mark: &str) {
    for id in own_processes(mark) {
        let id = Pid::from_raw(i32::try_from(id).unwrap()).unwrap();
        kill_process(id, Signal::KILL).unwrap();
    }
}
