//! A runner of one process with its queues: the job that it runs behaves as the test says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use aws_config::{BehaviorVersion, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use ed25519_dalek::SigningKey;
use freehold_protocol::approval::{PlanSummary, ProposedPlan, Side};
use freehold_protocol::grant::GrantAnswer;
use freehold_protocol::order::{AskedBy, Cancel, Order, Redelivery};
use freehold_protocol::report::{AttemptEvent, Outcome, Report, ReportBody};
use freehold_protocol::{Digest, Envelope, Timestamp};

use super::queues::{Queue, Taken};
use crate::config::Role;
use crate::identity::denial::Standing;
use crate::identity::mode::Roles;
use crate::identity::trusts::{AppRole, AppRoles};
use crate::job::{Execute, Job, StopReason};
use crate::keys::enrolment_marker::Enrolled;
use crate::keys::renewal;
use crate::process::clock::ServerClock;
use crate::process::drain::Drain;
use crate::record::audit::memory::{Memory, author};
use crate::record::audit::{Audit, Author};
use crate::record::log_store::LogStore;
use crate::record::unstarted_notes::Unstarted;
use crate::testing::{AccountDouble, config, job_id, order, root, sealed};
use crate::wire::grants::PendingGrants;
use crate::wire::report::Reporter;
use crate::wire::spool::{self, Spool};
use crate::wire::verify::Trust;
use crate::work::admission::Admission;
use crate::work::agent::Agent;
use crate::work::in_flight::InFlight;
use crate::work::journal::Journal;
use crate::work::poll;
use crate::work::standby::Membership;
use crate::work::supervise;

/// What the job does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Play {
    Succeed,
    /// Runs until it is asked to stop.
    Wait,
    /// Runs for a minute and succeeds, whatever it is asked.
    Minute,
    /// Runs until it is asked to stop, and succeeds with a sensitive output.
    Keep,
    /// Asks for an artifact.
    Ask,
    Panic,
    /// Fails at its first call.
    Fail,
    /// Ends with a plan that waits for its approval.
    Plan,
}

#[derive(Debug)]
pub(super) struct Stage {
    pub(super) play: Mutex<Play>,
    pub(super) begun: AtomicU32,
    pub(super) stopped: Mutex<Vec<StopReason>>,
}

#[async_trait]
impl Execute for Stage {
    async fn execute(&self, job: &Job) -> Outcome {
        self.begun.fetch_add(1, Ordering::Relaxed);
        assert!(job.workspace.is_dir());
        job.log.line("working");
        let play = *self.play.lock().unwrap();
        match play {
            Play::Succeed => {
                Outcome::Succeeded { outputs: BTreeMap::new(), sensitive: Default::default(), artifact: None }
            }
            Play::Wait => {
                let reason = job.stop.stopped().await;
                self.stopped.lock().unwrap().push(reason);
                Outcome::Failed { reason: "asked to stop".into(), partial: true }
            }
            Play::Minute => {
                tokio::time::sleep(Duration::from_secs(60)).await;
                Outcome::Succeeded { outputs: BTreeMap::new(), sensitive: Default::default(), artifact: None }
            }
            Play::Keep => {
                job.stop.stopped().await;
                let sensitive = [("token".to_owned(), Digest::of(b"token"))].into();
                Outcome::Succeeded { outputs: BTreeMap::new(), sensitive, artifact: None }
            }
            Play::Ask => match job.grants.request(job, &Digest::of(b"artifact"), Vec::new(), 0).await {
                Ok(GrantAnswer::Granted { .. }) => {
                    Outcome::Succeeded { outputs: BTreeMap::new(), sensitive: Default::default(), artifact: None }
                }
                other => Outcome::Failed { reason: format!("{other:?}"), partial: false },
            },
            Play::Plan => {
                let plan = ProposedPlan {
                    plan: Digest::of(b"plan"),
                    until: Timestamp::from_millis(u64::MAX),
                    asks: [Side::Vendor].into(),
                    summary: PlanSummary::default(),
                    policies: Digest::of(b"policies"),
                    instead: None,
                };
                Outcome::NeedsApproval { plan: Box::new(plan) }
            }
            Play::Panic => panic!("on purpose"),
            Play::Fail => Outcome::Failed { reason: "not for you (AccessDenied)".into(), partial: false },
        }
    }
}

/// The roles of an app; without any, they cannot be listed.
#[derive(Debug)]
pub(super) struct AppRolesDouble(pub(super) Mutex<Option<Vec<AppRole>>>);

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

    /// The account has one cluster, whose issuer ends in `OWN`.
    async fn foreign(
        &self,
        _: SharedCredentialsProvider,
        issuers: BTreeSet<String>,
    ) -> Result<BTreeSet<String>, String> {
        Ok(issuers.into_iter().filter(|issuer| !issuer.ends_with("/OWN")).collect())
    }
}

/// A runner and its queue.
pub(super) struct World {
    pub(super) queue: Arc<Queue>,
    pub(super) stage: Arc<Stage>,
    pub(super) agent: Arc<Agent>,
    pub(super) spool: Arc<Spool>,
    pub(super) taken: Arc<Taken>,
    pub(super) account: Arc<AccountDouble>,
    pub(super) roles: Arc<AppRolesDouble>,
    pub(super) key: freehold_protocol::envelope::PublicKey,
    pub(super) state: tempfile::TempDir,
}

impl World {
    pub(super) fn new(play: Play) -> Self {
        Self::unannounced(play).announced()
    }

    /// A machine whose key is new.
    pub(super) fn unannounced(play: Play) -> Self {
        let queue = Arc::new(Queue::default());
        let stage = Stage { play: Mutex::new(play), begun: AtomicU32::new(0), stopped: Mutex::default() };
        Self::over(queue, Arc::new(stage), Arc::default(), tempfile::tempdir().unwrap())
    }

    /// The same machine after its process was killed, and with its key announced.
    pub(super) fn restarted(self) -> Self {
        self.killed().announced()
    }

    /// The same machine after its process was killed.
    pub(super) fn killed(self) -> Self {
        Self::over(self.queue, self.stage, self.taken, self.state)
    }

    /// Another machine of the install, with an empty disk.
    pub(super) fn beside(&self) -> Self {
        let state = tempfile::tempdir().unwrap();
        std::fs::write(state.path().join("runner.key"), [4; 32]).unwrap();
        Self::over(self.queue.clone(), self.stage.clone(), self.taken.clone(), state).announced()
    }

    /// Another machine of the install, with a copy of this machine's disk.
    pub(super) fn copied(&self) -> Self {
        let state = tempfile::tempdir().unwrap();
        for name in ["runner.key", "journal.jsonl", "audit.spool"] {
            std::fs::copy(self.state.path().join(name), state.path().join(name)).unwrap();
        }
        Self::over(self.queue.clone(), self.stage.clone(), self.taken.clone(), state).announced()
    }

    /// The same machine as a member of a group; nothing else may use its agent yet.
    pub(super) fn in_group(mut self, membership: Membership) -> Self {
        Arc::get_mut(&mut self.agent).expect("the agent is not shared yet").membership = Some(membership);
        self
    }

    /// The same machine with its audit records in `bucket`; nothing else may use its agent yet.
    pub(super) fn with_bucket(mut self, bucket: &Arc<Memory>) -> Self {
        let seed = std::fs::read(self.state.path().join("runner.key")).unwrap()[0];
        let audit = Audit::open(self.state.path(), author(seed), Some(bucket.clone())).unwrap();
        Arc::get_mut(&mut self.agent).expect("the agent is not shared yet").audit = Arc::new(audit);
        self
    }

    fn announced(self) -> Self {
        self.agent.enrolled.set();
        self
    }

    pub(super) fn over(queue: Arc<Queue>, stage: Arc<Stage>, taken: Arc<Taken>, state: tempfile::TempDir) -> Self {
        let path = state.path();
        // The build role works under the runner's own credentials: no STS is needed here.
        let config = Arc::new(config(path.to_str().unwrap(), Role::Build));
        let own = SharedCredentialsProvider::new(Credentials::for_tests());
        let sdk = SdkConfig::builder().behavior_version(BehaviorVersion::latest()).credentials_provider(own).build();
        let key_file = path.join("runner.key");
        if !key_file.exists() {
            std::fs::write(&key_file, [3; 32]).unwrap();
        }
        let now = Timestamp::from_millis(2_000_000);
        let identity = Arc::new(renewal::identity(path, &"globex-prod".parse().unwrap(), now).unwrap());
        let key = identity.public_key();
        let tenant: freehold_protocol::TenantName = "acme".parse().unwrap();
        let install: freehold_protocol::InstallId = "globex-prod".parse().unwrap();
        let spool = Arc::new(Spool::open(path).unwrap());
        let account = Arc::new(AccountDouble::with("EnableRunner", "true"));
        let roles = Arc::new(AppRolesDouble::default());
        let standing = Standing::new(&crate::testing::config(path.to_str().unwrap(), Role::Install), account.clone());
        let trust = Trust {
            role: Role::Install,
            tenant: tenant.clone(),
            install: install.clone(),
            roots: crate::keys::known_roots::KnownRoots::given(freehold_protocol::succession::Roots::given(
                tenant.clone(),
                root().verifying_key().into(),
                None,
            )),
        };
        let agent = Agent {
            licence: crate::identity::licence::NewestLicence::open(&config, trust.clone()),
            trust,
            clock: Arc::new(ServerClock::default()),
            enrolled: Enrolled::open(path, identity.id().clone()),
            inbox: queue.clone(),
            reporter: Arc::new(Reporter::new(identity.clone(), tenant.clone(), install.clone(), spool.clone())),
            journal: Mutex::new(Journal::open(path).unwrap()),
            audit: Arc::new(
                Audit::open(path, Author { identity, tenant, install, host: "i-1".to_owned() }, None).unwrap(),
            ),
            roles: Roles::new(config.clone(), &sdk, standing.clone()),
            standing,
            sensitive_inputs: crate::secrets::sensitive_inputs::SensitiveInputs::new(
                &sdk,
                config.tenant.clone(),
                config.install.clone(),
                freehold_sealing::OpeningKey::from_bytes(&[7; 32]),
            ),
            app_secrets: crate::secrets::app_secrets::AppSecrets::new(
                &sdk,
                config.tenant.clone(),
                config.install.clone(),
            ),
            sensitive_outputs: crate::secrets::sensitive_outputs::SensitiveOutputs::new(&sdk, None),
            plans: crate::approvals::plan_store::PlanStore::new(&sdk, None),
            app_roles: Some(roles.clone()),
            grants: Arc::new(PendingGrants::default()),
            in_flight: InFlight::default(),
            admission: Admission::new(2),
            drain: Drain::default(),
            kinds: stage.clone(),
            logs: LogStore::open(path.join("logs"), None).unwrap(),
            unstarted: Unstarted::over(queue.clone()),
            boxes: crate::sandbox::WarmBoxes::new(config.clone()),
            membership: None,
            unneeded: Default::default(),
            revoked: Default::default(),
            handing_over: Default::default(),
            fatal: OnceLock::new(),
            replaced_by: OnceLock::new(),
            presence: Default::default(),
            changes: Default::default(),
            config,
        };
        Self { queue, stage, agent: Arc::new(agent), spool, taken, account, roles, key, state }
    }

    /// Polls until `done`, or an hour of the clock has passed.
    pub(super) async fn until(&self, what: &str, done: impl Fn(&Self) -> bool) {
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

    pub(super) async fn until_deleted(&self) {
        self.until("the deletion of every message", |world| world.queue.is_empty()).await;
    }

    /// Pulls the kill switch, or puts it back.
    pub(super) fn switch(&self, on: bool) {
        self.account.set("EnableRunner", if on { "true" } else { "false" });
        self.queue.closed.store(!on, Ordering::Relaxed);
    }

    pub(super) fn begun(&self) -> u32 {
        self.stage.begun.load(Ordering::Relaxed)
    }

    pub(super) fn reports(&self) -> Vec<ReportBody> {
        self.signed_reports().into_iter().map(|report| report.body).collect()
    }

    /// Returns all reports, each signed by the key of this process or by the first key of the machine.
    pub(super) fn signed_reports(&self) -> Vec<Report> {
        let keys = [SigningKey::from_bytes(&[3; 32]).verifying_key().into(), self.key.clone()];
        let mut files: Vec<_> =
            std::fs::read_dir(self.state.path().join("spool")).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let waiting = files.iter().map(|path| std::fs::read_to_string(path).unwrap());
        let taken = self.taken.bodies.lock().unwrap().clone();
        let open = |text: String| {
            let envelope = Envelope::parse(text.as_bytes()).unwrap();
            let runner = envelope.peek::<Report>().unwrap().runner;
            let key = keys.iter().find(|key| key.key_id() == runner).expect("a report of an unknown key");
            envelope.open::<Report>(key).unwrap()
        };
        taken.into_iter().chain(waiting).map(open).collect()
    }

    /// What was reported, in few words.
    pub(super) fn sent(&self) -> Vec<String> {
        let word = |body: ReportBody| match body {
            ReportBody::Hello(_) => "hello".to_owned(),
            ReportBody::Heartbeat => "heartbeat".to_owned(),
            ReportBody::Away(away) => format!("away {:?}", away.reason),
            ReportBody::Refused(refusal) => {
                let what = if refusal.given_back { "given back" } else { "refused" };
                format!("{what} {}", refusal.reason.as_str())
            }
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

pub(super) fn action() -> Order {
    Order { redelivery: Redelivery::Interrupted, ..order(1, 7) }
}

pub(super) fn cancel(receive: Option<u32>) -> String {
    sealed(&Cancel {
        tenant: "acme".parse().unwrap(),
        install: "globex-prod".parse().unwrap(),
        job: job_id(1),
        dispatch: 1,
        receive,
        runner: None,
        asked_by: Some(AskedBy::Sweep),
        asker: None,
        asked_why: Some("the wrong week".into()),
        issued_at: Timestamp::from_millis(2_000_000),
        not_after: Timestamp::from_millis(5_000_000),
    })
}
