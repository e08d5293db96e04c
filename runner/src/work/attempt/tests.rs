//! Whole attempts against a queue in memory that leases as SQS does, with the real journal, spool and audit trail.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

use async_trait::async_trait;
use aws_config::{BehaviorVersion, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use ed25519_dalek::SigningKey;
use freehold_protocol::audit::AuditRecord;
use freehold_protocol::grant::{ArtifactGrant, GrantAnswer};
use freehold_protocol::order::{Cancel, Order, Redelivery, RemovePart};
use freehold_protocol::report::{Fence, Report, ReportBody};
use freehold_protocol::{Digest, Envelope, GrantId, Timestamp};
use tokio::time::Instant;

use super::*;
use crate::config::{Config, Role};
use crate::identity::mode::Roles;
use crate::identity::runner_key::Identity;
use crate::identity::standing::Standing;
use crate::identity::trusts::{AppRole, AppRoles};
use crate::operate::drain::Drain;
use crate::record::audit::Audit;
use crate::record::log_store::LogStore;
use crate::testing::{AccountDouble, config, job_id, order, root, sealed};
use crate::wire::clock::ServerClock;
use crate::wire::grants::PendingGrants;
use crate::wire::inbox::{Delivery, Inbox, InboxError, Outbox, Sent};
use crate::wire::report::Reporter;
use crate::wire::spool::{self, Spool};
use crate::wire::verify::Trust;
use crate::work::admission::Admission;
use crate::work::agent::Execute;
use crate::work::in_flight::InFlight;
use crate::work::job::StopReason;
use crate::work::journal::Journal;
use crate::work::poll;

/// A queue in memory.
#[derive(Debug, Default)]
struct Queue {
    messages: Mutex<BTreeMap<u32, Queued>>,
    next: AtomicU32,
    added: tokio::sync::Notify,
    /// While set, renewals fail.
    deaf: std::sync::atomic::AtomicBool,
    /// While set, the runner may not use it.
    closed: std::sync::atomic::AtomicBool,
}

#[derive(Debug)]
struct Queued {
    body: String,
    receive: u32,
    hidden_until: Option<Instant>,
}

impl Queue {
    fn send(&self, body: String) {
        let at = self.next.fetch_add(1, Ordering::Relaxed);
        self.messages.lock().unwrap().insert(at, Queued { body, receive: 0, hidden_until: None });
        self.added.notify_one();
    }

    fn take(&self) -> Vec<Delivery> {
        let now = Instant::now();
        let mut messages = self.messages.lock().unwrap();
        let visible = messages.iter_mut().filter(|(_, m)| m.hidden_until.is_none_or(|until| until <= now));
        visible
            .map(|(at, message)| {
                message.receive += 1;
                message.hidden_until = Some(now + Duration::from_secs(limits::LEASE_SECS));
                Delivery {
                    body: message.body.clone(),
                    handle: format!("{at}#{}", message.receive),
                    receive: message.receive,
                    sent_at: Timestamp::from_millis(2_000_000),
                    leased_at: now,
                }
            })
            .collect()
    }

    fn with<T>(&self, handle: &str, act: impl FnOnce(&mut BTreeMap<u32, Queued>, u32) -> T) -> Result<T, InboxError> {
        let (at, receive) = handle.split_once('#').unwrap();
        let at = at.parse().unwrap();
        let mut messages = self.messages.lock().unwrap();
        let ours = messages.get(&at).is_some_and(|m| {
            m.receive.to_string() == receive && m.hidden_until.is_some_and(|until| until > Instant::now())
        });
        if ours { Ok(act(&mut messages, at)) } else { Err(InboxError::Gone("lease is over".into())) }
    }

    fn is_empty(&self) -> bool {
        self.messages.lock().unwrap().is_empty()
    }

    fn refused(&self) -> Result<(), InboxError> {
        let closed = self.closed.load(Ordering::Relaxed);
        if closed { Err(InboxError::Denied("not for you (AccessDenied)".into())) } else { Ok(()) }
    }
}

#[async_trait]
impl Inbox for Queue {
    async fn receive(&self, wait_secs: u64) -> Result<Vec<Delivery>, InboxError> {
        let until = Instant::now() + Duration::from_secs(wait_secs);
        loop {
            self.refused()?;
            let taken = self.take();
            if !taken.is_empty() || Instant::now() >= until {
                return Ok(taken);
            }
            let step = (Instant::now() + Duration::from_secs(1)).min(until);
            let _ = tokio::time::timeout_at(step, self.added.notified()).await;
        }
    }

    async fn lease(&self, handle: &str, secs: u64) -> Result<(), InboxError> {
        self.refused()?;
        if self.deaf.load(Ordering::Relaxed) {
            return Err(InboxError::Transient("no answer".into()));
        }
        self.with(handle, |messages, at| {
            if let Some(message) = messages.get_mut(&at) {
                message.hidden_until = Some(Instant::now() + Duration::from_secs(secs));
            }
        })
    }

    async fn delete(&self, handle: &str) -> Result<(), InboxError> {
        self.refused()?;
        self.with(handle, |messages, at| drop(messages.remove(&at)))
    }
}

/// The reports queue.
#[derive(Debug, Default)]
struct Taken {
    bodies: Mutex<Vec<String>>,
    /// While set, it takes nothing.
    deaf: std::sync::atomic::AtomicBool,
}

#[async_trait]
impl Outbox for Taken {
    async fn send(&self, bodies: &[String]) -> Result<Vec<Sent>, InboxError> {
        if self.deaf.load(Ordering::Relaxed) {
            return Err(InboxError::Transient("no answer".into()));
        }
        self.bodies.lock().unwrap().extend_from_slice(bodies);
        Ok(vec![Sent::Taken; bodies.len()])
    }
}

/// What the job does.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Play {
    Succeed,
    /// Runs until it is asked to stop.
    Wait,
    /// Asks for an artifact.
    Ask,
    Panic,
    /// Fails at its first call.
    Fail,
}

#[derive(Debug)]
struct Stage {
    play: Mutex<Play>,
    begun: AtomicU32,
    stopped: Mutex<Vec<StopReason>>,
}

#[async_trait]
impl Execute for Stage {
    async fn execute(&self, job: &Job) -> Outcome {
        self.begun.fetch_add(1, Ordering::Relaxed);
        assert!(job.workspace.is_dir());
        job.log.line("working");
        let play = *self.play.lock().unwrap();
        match play {
            Play::Succeed => Outcome::Succeeded { outputs: BTreeMap::new(), artifact: None },
            Play::Wait => {
                let reason = job.stop.stopped().await;
                self.stopped.lock().unwrap().push(reason);
                Outcome::Failed { reason: "asked to stop".into(), partial: true }
            }
            Play::Ask => match job.grants.request(job, &Digest::of(b"artifact"), Vec::new(), 0).await {
                Ok(GrantAnswer::Granted { .. }) => Outcome::Succeeded { outputs: BTreeMap::new(), artifact: None },
                other => Outcome::Failed { reason: format!("{other:?}"), partial: false },
            },
            Play::Panic => panic!("on purpose"),
            Play::Fail => Outcome::Failed { reason: "not for you (AccessDenied)".into(), partial: false },
        }
    }
}

/// The roles of an app; without any, they cannot be listed.
#[derive(Debug)]
struct AppRolesDouble(Mutex<Option<Vec<AppRole>>>);

impl Default for AppRolesDouble {
    fn default() -> Self {
        Self(Mutex::new(Some(Vec::new())))
    }
}

#[async_trait]
impl AppRoles for AppRolesDouble {
    async fn list(&self, _: SharedCredentialsProvider) -> Result<Vec<AppRole>, String> {
        self.0.lock().unwrap().clone().ok_or_else(|| "throttled".to_owned())
    }
}

/// A runner and its queue.
struct World {
    queue: Arc<Queue>,
    stage: Arc<Stage>,
    agent: Arc<Agent>,
    spool: Arc<Spool>,
    taken: Arc<Taken>,
    account: Arc<AccountDouble>,
    roles: Arc<AppRolesDouble>,
    state: tempfile::TempDir,
}

impl World {
    fn new(play: Play) -> Self {
        let queue = Arc::new(Queue::default());
        let stage = Stage { play: Mutex::new(play), begun: AtomicU32::new(0), stopped: Mutex::default() };
        Self::over(queue, Arc::new(stage), Arc::default(), tempfile::tempdir().unwrap())
    }

    /// The same machine after its process was killed.
    fn restarted(self) -> Self {
        Self::over(self.queue, self.stage, self.taken, self.state)
    }

    fn over(queue: Arc<Queue>, stage: Arc<Stage>, taken: Arc<Taken>, state: tempfile::TempDir) -> Self {
        let path = state.path();
        // The build role works under the runner's own credentials: no STS is needed here.
        let config = Arc::new(config(path.to_str().unwrap(), Role::Build));
        let own = SharedCredentialsProvider::new(Credentials::for_tests());
        let sdk = SdkConfig::builder().behavior_version(BehaviorVersion::latest()).credentials_provider(own).build();
        let identity = Arc::new(Identity::from_key(SigningKey::from_bytes(&[3; 32])));
        let tenant: freehold_protocol::TenantName = "acme".parse().unwrap();
        let install: freehold_protocol::InstallId = "globex-prod".parse().unwrap();
        let spool = Arc::new(Spool::open(path).unwrap());
        let account = Arc::new(AccountDouble::with("EnableRunner", "true"));
        let roles = Arc::new(AppRolesDouble::default());
        let standing = Standing::new(&crate::testing::config(path.to_str().unwrap(), Role::Install), account.clone());
        let agent = Agent {
            trust: Trust {
                role: Role::Install,
                tenant: tenant.clone(),
                install: install.clone(),
                tenant_key: root().verifying_key().into(),
            },
            clock: Arc::new(ServerClock::default()),
            inbox: queue.clone(),
            reporter: Arc::new(Reporter::new(identity.clone(), tenant.clone(), install.clone(), spool.clone())),
            journal: Mutex::new(Journal::open(path).unwrap()),
            audit: Audit::open(path, identity, tenant, install).unwrap(),
            roles: Roles::new(config.clone(), &sdk, standing.clone()),
            standing,
            sensitive_inputs: crate::identity::sensitive_inputs::SensitiveInputs::new(
                &sdk,
                config.tenant.clone(),
                config.install.clone(),
            ),
            app_secrets: crate::identity::app_secrets::AppSecrets::new(
                &sdk,
                config.tenant.clone(),
                config.install.clone(),
            ),
            app_roles: Some(roles.clone()),
            grants: Arc::new(PendingGrants::default()),
            in_flight: InFlight::default(),
            admission: Admission::new(2),
            drain: Drain::default(),
            kinds: stage.clone(),
            logs: LogStore::open(path.join("logs"), None).unwrap(),
            boxes: crate::sandbox::WarmBoxes::new(config.clone()),
            fatal: OnceLock::new(),
            config,
        };
        Self { queue, stage, agent: Arc::new(agent), spool, taken, account, roles, state }
    }

    /// Polls until `done`, or an hour of the clock has passed.
    async fn until(&self, what: &str, done: impl Fn(&Self) -> bool) {
        let poll = poll::run(self.agent.clone(), Default::default());
        let watch = async {
            while !done(self) {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let beat = Default::default();
        tokio::select! {
            () = poll => panic!("the poll loop ended"),
            () = spool::sender::run(&self.spool, self.taken.as_ref(), &beat) => panic!("the sender ended"),
            done = tokio::time::timeout(Duration::from_secs(3_600), watch) => {
                assert!(done.is_ok(), "{what} did not happen; reports: {:?}", self.sent());
            }
        }
    }

    async fn until_deleted(&self) {
        self.until("the deletion of every message", |world| world.queue.is_empty()).await;
    }

    /// Pulls the kill switch, or puts it back.
    fn switch(&self, on: bool) {
        self.account.set("EnableRunner", if on { "true" } else { "false" });
        self.queue.closed.store(!on, Ordering::Relaxed);
    }

    fn begun(&self) -> u32 {
        self.stage.begun.load(Ordering::Relaxed)
    }

    fn reports(&self) -> Vec<ReportBody> {
        let key = SigningKey::from_bytes(&[3; 32]).verifying_key().into();
        let mut files: Vec<_> =
            std::fs::read_dir(self.state.path().join("spool")).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let waiting = files.iter().map(|path| std::fs::read_to_string(path).unwrap());
        let taken = self.taken.bodies.lock().unwrap().clone();
        let open = |text: String| Envelope::parse(text.as_bytes()).unwrap().open::<Report>(&key).unwrap();
        taken.into_iter().chain(waiting).map(|text| open(text).body).collect()
    }

    /// What was reported, in few words.
    fn sent(&self) -> Vec<String> {
        let word = |body: ReportBody| match body {
            ReportBody::Hello(_) => "hello".to_owned(),
            ReportBody::Heartbeat => "heartbeat".to_owned(),
            ReportBody::Refused(refusal) => format!("refused {}", refusal.reason.as_str()),
            ReportBody::Attempt(report) => match report.event {
                AttemptEvent::Started => format!("{} started", report.fence),
                AttemptEvent::Progress { .. } => "progress".to_owned(),
                AttemptEvent::GrantRequest { .. } => "grant request".to_owned(),
                AttemptEvent::AttestRequest { .. } => "attest request".to_owned(),
                AttemptEvent::Finished { outcome, .. } => {
                    format!("{} {}", report.fence, supervise::outcome_name(&outcome))
                }
            },
        };
        self.reports().into_iter().map(word).filter(|word| word != "progress").collect()
    }
}

fn action() -> Order {
    Order { redelivery: Redelivery::Interrupted, ..order(1, 7) }
}

fn cancel(receive: Option<u32>) -> String {
    sealed(&Cancel {
        tenant: "acme".parse().unwrap(),
        install: "globex-prod".parse().unwrap(),
        job: job_id(1),
        dispatch: 1,
        receive,
        runner: None,
        issued_at: Timestamp::from_millis(2_000_000),
        not_after: Timestamp::from_millis(5_000_000),
    })
}

#[tokio::test(start_paused = true)]
async fn an_order_is_kept_until_the_queue_has_the_end_of_its_job() {
    let world = World::new(Play::Succeed);
    world.taken.deaf.store(true, Ordering::Relaxed);
    world.queue.send(sealed(&order(1, 7)));

    world.until("the end of the job", |world| world.sent().contains(&"1.1 succeeded".to_owned())).await;
    let kept = !world.queue.is_empty();
    world.taken.deaf.store(false, Ordering::Relaxed);
    world.until_deleted().await;

    assert!(kept, "a machine lost now would have taken the outcome along");
    assert_eq!((world.begun(), world.spool.len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn an_order_is_done_reported_and_deleted() {
    let world = World::new(Play::Succeed);
    world.queue.send(sealed(&order(1, 7)));

    world.until_deleted().await;

    assert_eq!(world.sent(), ["1.1 started", "1.1 succeeded"]);
    assert_eq!(std::fs::read_dir(world.state.path().join("work")).unwrap().count(), 0);
    let last = world.reports().pop();
    assert!(matches!(last, Some(ReportBody::Attempt(report)) if report.seq == 2
        && matches!(&report.event, AttemptEvent::Finished { log, .. } if log == "working\n")));
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_message_was_not_deleted_is_reported_again_and_not_done_again() {
    let world = World::new(Play::Succeed);
    world.queue.send(sealed(&action()));
    world.until_deleted().await;

    let world = world.restarted();
    world.queue.send(sealed(&action()));
    world.until_deleted().await;

    assert_eq!(world.begun(), 1);
    assert_eq!(world.sent().last().unwrap(), "1.1 succeeded");
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_cannot_renew_stops_its_job_before_the_lease_ends_and_says_nothing() {
    let world = World::new(Play::Wait);
    world.queue.send(sealed(&order(1, 7)));
    world.until("the start", |world| world.begun() == 1).await;
    let started = Instant::now();

    world.queue.deaf.store(true, Ordering::Relaxed);
    world.until("the stop", |world| !world.stage.stopped.lock().unwrap().is_empty()).await;

    assert!(started.elapsed() < Duration::from_secs(limits::LEASE_SECS));
    assert_eq!(*world.stage.stopped.lock().unwrap(), [StopReason::LeaseLost]);
    assert_eq!(world.sent(), ["1.1 started"]);
    assert!(!world.queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_is_switched_off_stops_its_job_and_goes_on_with_the_order_when_it_is_on_again() {
    let world = World::new(Play::Wait);
    world.queue.send(sealed(&order(1, 7)));
    world.until("the start", |world| world.begun() == 1).await;

    world.switch(false);
    world.queue.send(sealed(&order(2, 8)));
    world.until("the stop", |world| !world.stage.stopped.lock().unwrap().is_empty()).await;
    let day = Instant::now() + Duration::from_secs(50 * 60);
    world.until("most of an hour", |_| Instant::now() > day).await;
    let (begun, waiting) = (world.begun(), world.queue.messages.lock().unwrap().len());
    *world.stage.play.lock().unwrap() = Play::Succeed;
    world.switch(true);
    world.until_deleted().await;

    assert_eq!(*world.stage.stopped.lock().unwrap(), [StopReason::SwitchedOff]);
    assert_eq!((begun, waiting, world.agent.fatal.get()), (1, 2, None));
    let said = world.sent();
    assert_eq!(said[..1], ["1.1 started"]);
    assert!(said.contains(&"1.2 succeeded".to_owned()) && said.contains(&"1.1 succeeded".to_owned()), "{said:?}");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_fails_because_the_runner_is_off_has_not_failed() {
    let world = World::new(Play::Fail);
    world.account.set("EnableRunner", "false");
    world.queue.send(sealed(&order(1, 7)));
    world.until("the start", |world| world.begun() == 1).await;

    world.account.set("EnableRunner", "true");
    *world.stage.play.lock().unwrap() = Play::Succeed;
    world.until_deleted().await;

    assert_eq!(world.sent(), ["1.1 started", "1.2 started", "1.2 succeeded"]);
}

#[tokio::test(start_paused = true)]
async fn an_action_that_the_kill_switch_ends_is_reported_as_interrupted_and_not_done_again() {
    let world = World::new(Play::Wait);
    world.queue.send(sealed(&action()));
    world.until("the start", |world| world.begun() == 1).await;

    world.switch(false);
    world.until("the end", |world| world.sent().len() == 2).await;
    world.switch(true);
    world.until_deleted().await;

    assert_eq!(world.begun(), 1);
    assert_eq!(world.sent()[..2], ["1.1 started", "1.1 interrupted"]);
}

#[tokio::test(start_paused = true)]
async fn after_a_lost_lease_a_restartable_job_resumes_with_the_higher_fence() {
    let world = World::new(Play::Wait);
    world.queue.send(sealed(&order(1, 7)));
    world.until("the start", |world| world.begun() == 1).await;
    world.queue.deaf.store(true, Ordering::Relaxed);
    world.until("the stop", |world| !world.stage.stopped.lock().unwrap().is_empty()).await;

    world.queue.deaf.store(false, Ordering::Relaxed);
    *world.stage.play.lock().unwrap() = Play::Succeed;
    world.until_deleted().await;

    assert_eq!(world.sent(), ["1.1 started", "1.2 started", "1.2 succeeded"]);
}

#[tokio::test(start_paused = true)]
async fn an_action_whose_runner_was_killed_ends_interrupted_and_is_not_started_again() {
    let world = World::new(Play::Wait);
    world.queue.send(sealed(&action()));
    world.until("the start", |world| world.begun() == 1).await;
    world.agent.in_flight.stop_all(StopReason::LeaseLost);
    world.until("the stop", |world| !world.stage.stopped.lock().unwrap().is_empty()).await;

    let world = world.restarted();
    world.until_deleted().await;

    assert_eq!(world.begun(), 1);
    assert_eq!(world.sent(), ["1.1 started", "1.2 interrupted"]);
}

#[tokio::test(start_paused = true)]
async fn a_running_job_is_cancelled_at_once() {
    let world = World::new(Play::Wait);
    world.queue.send(sealed(&order(1, 7)));
    world.until("the start", |world| world.begun() == 1).await;

    world.queue.send(cancel(None));
    world.until_deleted().await;

    assert_eq!(world.sent(), ["1.1 started", "1.1 cancelled"]);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_comes_first_keeps_the_order_from_starting_even_after_a_restart() {
    let world = World::new(Play::Succeed);
    world.queue.send(cancel(None));
    world.until_deleted().await;

    let world = world.restarted();
    world.queue.send(sealed(&order(1, 7)));
    world.until_deleted().await;

    assert_eq!(world.begun(), 0);
    assert_eq!(world.sent(), ["refused cancelled"]);
}

#[tokio::test(start_paused = true)]
async fn forged_expired_and_replayed_orders_are_refused_reported_and_deleted() {
    let world = World::new(Play::Succeed);
    world.queue.send(sealed(&order(2, 8)));
    world.until_deleted().await;
    let expired = Order { not_after: Timestamp::from_millis(1_999_999), ..order(3, 9) };

    for body in ["nonsense".to_owned(), sealed(&expired), sealed(&order(1, 7))] {
        world.queue.send(body);
        world.until_deleted().await;
    }

    assert_eq!(world.begun(), 1);
    assert_eq!(world.sent()[2..], ["refused malformed", "refused expired", "refused replayed"]);
}

#[tokio::test(start_paused = true)]
async fn orders_of_one_group_run_one_after_the_other() {
    let world = World::new(Play::Wait);
    world.queue.send(sealed(&order(1, 7)));
    world.queue.send(sealed(&order(2, 8)));
    world.until("the start", |world| world.begun() == 1).await;
    let begun = Instant::now();
    world.until("a minute", |_| begun.elapsed() > Duration::from_secs(60)).await;
    assert_eq!(world.begun(), 1);

    *world.stage.play.lock().unwrap() = Play::Succeed;
    world.agent.in_flight.cancel(&job_id(1), 1, None);
    world.until_deleted().await;

    assert_eq!(world.sent(), ["1.1 started", "1.1 cancelled", "1.1 started", "1.1 succeeded"]);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_takes_too_long_is_stopped_as_failed() {
    let world = World::new(Play::Wait);
    world.queue.send(sealed(&order(1, 7)));
    let started = Instant::now();

    world.until_deleted().await;

    assert!(started.elapsed() >= Duration::from_secs(600) && started.elapsed() < Duration::from_secs(605));
    assert_eq!(world.sent(), ["1.1 started", "1.1 failed (partial)"]);
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_job_ends_that_job_only() {
    let world = World::new(Play::Panic);
    world.queue.send(sealed(&order(1, 7)));

    world.until_deleted().await;

    assert_eq!(world.sent(), ["1.1 started", "1.1 failed (partial)"]);
}

#[tokio::test(start_paused = true)]
async fn an_artifact_is_asked_for_and_the_answer_reaches_the_job() {
    let world = World::new(Play::Ask);
    world.queue.send(sealed(&order(1, 7)));
    world.until("the request", |world| world.sent().len() == 2).await;
    let (artifact, fence) = (Digest::of(b"artifact"), Fence { dispatch: 1, receive: 1 });
    let grant = ArtifactGrant {
        tenant: "acme".parse().unwrap(),
        install: "globex-prod".parse().unwrap(),
        grant: GrantId::derive(&job_id(1), 1, 1, &artifact),
        job: job_id(1),
        fence,
        artifact,
        issued_at: Timestamp::from_millis(2_000_000),
        not_after: Timestamp::from_millis(3_000_000),
        answer: GrantAnswer::Granted { manifests: Vec::new(), blobs: Vec::new() },
    };

    world.queue.send(sealed(&grant));
    world.until_deleted().await;

    assert_eq!(world.sent(), ["1.1 started", "grant request", "1.1 succeeded"]);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_the_customer_has_not_agreed_to_ends_blocked_and_is_written_down() {
    let mut world = World::new(Play::Succeed);
    let agent = Arc::get_mut(&mut world.agent).unwrap();
    let consent = Some(Digest::of(b"agreed to"));
    // Credentials are not asked for before: this runner has a role for no mode.
    agent.config = Arc::new(Config { accepted_contract: consent, ..config("/state", Role::Install) });
    world.queue.send(sealed(&order(1, 7)));

    world.until_deleted().await;

    assert_eq!((world.begun(), world.sent()), (0, vec!["1.1 blocked".to_owned()]));
    let Some(ReportBody::Attempt(report)) = world.reports().pop() else { panic!("no report") };
    let AttemptEvent::Finished { outcome: Outcome::Blocked { block, reason }, .. } = report.event else {
        panic!("{report:?}")
    };
    assert_eq!(block, freehold_protocol::report::Block::ContractNotAccepted);
    assert!(reason.contains("does not say which contract"), "{reason}");
    let audit = std::fs::read_to_string(world.state.path().join("audit.jsonl")).unwrap();
    assert_eq!(audit.lines().count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_runner_going_down_leaves_what_waits_to_the_next_one() {
    let world = World::new(Play::Succeed);
    world.agent.drain.advance(Phase::Draining);
    world.queue.send(sealed(&order(1, 7)));
    for delivery in world.queue.take() {
        poll::take(&world.agent, delivery);
    }

    tokio::time::sleep(Duration::from_secs(60)).await;
    world.agent.in_flight.stop_all(StopReason::Draining);
    world.agent.in_flight.emptied().await;

    assert_eq!(world.begun(), 0);
    assert_eq!(world.queue.take().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_job_without_output_shows_every_minute_that_it_is_at_work() {
    let world = World::new(Play::Wait);
    world.queue.send(sealed(&order(1, 7)));

    world.until_deleted().await;

    let progress = |body: &ReportBody| matches!(body, ReportBody::Attempt(report) if matches!(report.event, AttemptEvent::Progress { .. }));
    let count = world.reports().iter().filter(|body| progress(body)).count();
    assert!((9..=12).contains(&count), "{count}");
}

#[tokio::test(start_paused = true)]
async fn a_job_after_which_a_role_trusts_a_stranger_has_failed_and_is_written_down() {
    let world = World::new(Play::Succeed);
    let trust = r#"{"Statement":{"Effect":"Allow","Principal":{"AWS":"111111111111"},"Action":"sts:AssumeRole"}}"#;
    let arn = "arn:aws:iam::222222222222:role/freehold/acme--globex-prod/api".to_owned();
    *world.roles.0.lock().unwrap() = Some(vec![AppRole { arn: arn.clone(), trust: trust.to_owned() }]);
    world.queue.send(sealed(&order(1, 7)));

    world.until_deleted().await;

    assert_eq!(world.sent(), ["1.1 started", "1.1 failed (partial)"]);
    let Some(ReportBody::Attempt(last)) = world.reports().pop() else { panic!() };
    let AttemptEvent::Finished { outcome: Outcome::Failed { reason, .. }, log } = last.event else { panic!() };
    assert!(reason.contains(&format!("role `{arn}` trusts `111111111111`")) && reason.contains("is done"), "{reason}");
    assert!(log.contains(&arn), "{log}");
    let audit = std::fs::read_to_string(world.state.path().join("audit.jsonl")).unwrap();
    let records = audit.lines().map(|line| Envelope::parse(line.as_bytes()).unwrap().peek::<AuditRecord>().unwrap());
    assert!(records.into_iter().any(|record| matches!(record.event,
        AuditEvent::Strangers { roles, .. } if roles[&arn] == ["111111111111"])));
}

#[tokio::test(start_paused = true)]
async fn a_removal_is_looked_after_as_the_work_that_it_undoes() {
    let world = World::new(Play::Succeed);
    let trust = r#"{"Statement":{"Effect":"Allow","Principal":"*","Action":"sts:AssumeRole"}}"#;
    let arn = "arn:aws:iam::222222222222:role/freehold/acme--globex-prod/left".to_owned();
    *world.roles.0.lock().unwrap() = Some(vec![AppRole { arn, trust: trust.to_owned() }]);
    let mut removal = order(1, 7);
    removal.work = Work::Remove(RemovePart { what: Box::new(removal.work), destroy_data: false });
    world.queue.send(sealed(&removal));

    world.until_deleted().await;

    assert_eq!(world.sent(), ["1.1 started", "1.1 failed (partial)"]);
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_roles_cannot_be_listed_has_not_succeeded() {
    let world = World::new(Play::Succeed);
    *world.roles.0.lock().unwrap() = None;
    world.queue.send(sealed(&order(1, 7)));

    world.until_deleted().await;

    assert_eq!(world.sent(), ["1.1 started", "1.1 failed (partial)"]);
}
