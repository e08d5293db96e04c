//! A simulated control plane with its runners: memory for AWS, an interpreter for Step Functions, and queues that
//! redeliver.

pub(crate) mod access;
pub(crate) mod app;
pub(crate) mod channels;
pub(crate) mod doubles;
pub(crate) mod events;
pub(crate) mod grants;
pub(crate) mod histories;
pub(crate) mod interleaving;
mod runbooks;
pub(crate) mod runner;
pub(crate) mod state;
mod use_cases;
pub(crate) mod values;
pub(crate) mod walk;
pub(crate) mod webhooks;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock, Mutex};

use freehold_app::AppError;
use freehold_app::app_version::versions::Versions;
use freehold_app::artifact::revoke_artifact::RevokeArtifact;
use freehold_app::artifact::show_lineage::ShowLineage;
use freehold_app::install::delete_install::DeleteInstall;
use freehold_app::install::disable_install::DisableInstall;
use freehold_app::install::enable_install::EnableInstall;
use freehold_app::install::forget_install::ForgetInstall;
use freehold_app::install::remove_forgotten::RemoveForgotten;
use freehold_app::install::set_toggles::SetToggles;
use freehold_app::new_workflow::Asked;
use freehold_app::ports::Clock;
use freehold_app::release::create_release::CreateRelease;
use freehold_app::stack::render_stack::RenderStack;
use freehold_app::table;
use freehold_app::testing::Memory;
use freehold_app::workflow::put_back_messages::PutBackMessages;
use freehold_domain::workflow::RunTrigger;
use freehold_domain::{Job, Workflow};
use freehold_protocol::api::{
    BuildComponentsRequest, BuildStarted, CreateInstallRequest, DeployComponentsRequest, InstallToggles,
    RunActionRequest, SetTogglesRequest, TeardownInstallRequest, UpgradeRunnerRequest,
};
use freehold_protocol::app_version::AppVersion;
use freehold_protocol::order::AskedBy;
use freehold_protocol::report::Outcome;
use freehold_protocol::{InstallId, JobId, TenantName, Timestamp, WorkflowId};
use serde_json::{Value, json};

use doubles::{Keys, MemoryLetters, MemoryQueues, MemoryRegistry, queue_url};
use runner::{Behaviour, Runner};
use walk::{Machine, Mail, Rng};

/// How often a client asks again after a transient error.
const CLIENT_TRIES: u32 = 6;

/// The time until a job of the test's app is lost although its runner is there, in seconds.
pub(crate) const LOST_SECS: u64 = 3600 + 600 + 3 * 3600;

/// Everything.
pub(crate) struct World {
    pub(crate) memory: Arc<Memory>,
    pub(crate) tenant: TenantName,
    pub(crate) keys: Arc<Keys>,
    pub(crate) registry: Arc<MemoryRegistry>,
    pub(crate) queues: Arc<MemoryQueues>,
    /// The dead letters of the functions' queues, and of the orders queues.
    pub(crate) letters: [Arc<MemoryLetters>; 2],
    pub(crate) runners: BTreeMap<String, Runner>,
    pub(crate) machines: BTreeMap<WorkflowId, Machine>,
    pub(crate) mail: VecDeque<(Mail, u32)>,
    /// Messages that were given up, with the last error.
    pub(crate) dead: Vec<(Mail, AppError)>,
    /// Delivers in any order and up to three times, when set.
    pub(crate) chaos: Option<Rng>,
    /// Whether the message that is being worked on would be given up next.
    pub(crate) last_delivery: Arc<AtomicBool>,
    /// Whether the function that finishes workflows dies before it rolls one back.
    pub(crate) loses_roll_backs: bool,
}

impl World {
    pub(crate) fn new() -> Self {
        let memory = Arc::new(Memory::default());
        let tenant: TenantName = "acme".parse().unwrap();
        Self {
            keys: Arc::new(Keys::new(Arc::clone(&memory), tenant.clone())),
            registry: Arc::new(MemoryRegistry { memory: Arc::clone(&memory), manifests: Mutex::default() }),
            letters: [(); 2].map(|()| Arc::new(MemoryLetters::new(Arc::clone(&memory)))),
            queues: Arc::new(MemoryQueues {
                memory: Arc::clone(&memory),
                created: Mutex::default(),
                reporters: Mutex::default(),
                closed: Mutex::default(),
                meanwhile: Mutex::default(),
            }),
            memory,
            tenant,
            runners: BTreeMap::new(),
            machines: BTreeMap::new(),
            mail: VecDeque::new(),
            dead: Vec::new(),
            chaos: None,
            last_delivery: Arc::default(),
            loses_roll_backs: false,
        }
    }

    /// Returns a world of its own in the same state, for trying one thing from many angles.
    pub(crate) fn copy(&self) -> Self {
        let mut copy = Self::new();
        copy.memory.restore(&self.memory);
        copy.registry.manifests.lock().unwrap().clone_from(&self.registry.manifests.lock().unwrap());
        copy.queues.created.lock().unwrap().clone_from(&self.queues.created.lock().unwrap());
        copy.queues.reporters.lock().unwrap().clone_from(&self.queues.reporters.lock().unwrap());
        for (copied, letters) in copy.letters.iter().zip(&self.letters) {
            copied.messages.lock().unwrap().clone_from(&letters.messages.lock().unwrap());
        }
        copy.runners = self.runners.clone();
        copy.machines = self.machines.clone();
        copy.mail = self.mail.clone();
        copy
    }

    /// Returns a world whose app is synced and built.
    pub(crate) async fn with_app() -> Self {
        let mut world = Self::new();
        world.sync(&app::document()).await;
        world.enrol().await;
        world.hello("build");
        world.settle().await;
        world.build("build-1").await;
        world.settle().await;
        world
    }

    /// Returns a world with `globex` provisioned.
    pub(crate) async fn with_install() -> Self {
        let mut world = Self::with_app().await;
        world.create().await;
        world.run().await;
        world.hello("globex");
        world.settle().await;
        world
    }

    /// Returns a world in which `globex` deploys `storage` with this behaviour of its runner.
    pub(crate) async fn deploying(behaviour: Behaviour) -> (Self, WorkflowId) {
        let mut world = Self::with_install().await;
        world.runner("globex").behaviours.insert("storage".into(), behaviour);
        let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
        world.run().await;
        (world, workflow)
    }

    /// Returns a world in which the job of `storage` was lost, and the next attempt of its runner would succeed.
    pub(crate) async fn with_lost_job() -> (Self, WorkflowId, JobId) {
        let (mut world, workflow) = Self::deploying(Behaviour::Hangs).await;
        let job = world.workflow(&workflow).await.active_jobs().next().unwrap().clone();
        assert_eq!(world.sweep_with_runner_there(LOST_SECS).await.lost, 1);
        world.run().await;
        world.runner("globex").behaviours.clear();
        world.runner("globex").attempts.clear();
        world.runner("globex").started.clear();
        (world, workflow, job)
    }

    /// Returns a world with `globex` provisioned, and [`app::with_health`] synced and built.
    pub(crate) async fn with_health(gate: bool) -> Self {
        let mut world = Self::with_install().await;
        world.sync(&app::with_health(gate)).await;
        world.build("build-2").await;
        world.settle().await;
        world.runner("globex").started.clear();
        world
    }

    /// Lets the runner of `globex` find with `job` that a component is healthy. The queue delivers its report twice.
    pub(crate) async fn find_healthy(&mut self, job: &JobId) {
        let outputs = [("health".to_owned(), json!({ "state": "healthy" }))].into();
        let healthy = Outcome::Succeeded { outputs, sensitive: Default::default(), artifact: None };
        let now = self.now();
        for end in self.runner("globex").finish(job, healthy, now) {
            self.post(Mail::Report(end.clone(), now));
            self.post(Mail::Report(end, now));
        }
        self.run().await;
    }

    /// Returns a world with `globex` provisioned, and [`app::with_checks`] synced and built.
    pub(crate) async fn with_checks(gate: bool) -> Self {
        let mut world = Self::with_install().await;
        world.sync(&app::with_checks(gate)).await;
        world.build("build-2").await;
        world.settle().await;
        world.runner("globex").started.clear();
        world
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.memory.now()
    }

    /// Returns the versions as a cold function has them: each use case keeps its own.
    pub(crate) fn versions(&self) -> Versions {
        Versions::new(self.memory.clone(), self.memory.clone())
    }

    /// Returns a world in which `globex` has [`app::with_schedule`], at the start of a minute that is due.
    pub(crate) async fn with_schedule() -> Self {
        let mut world = Self::with_install().await;
        world.sync(&app::with_schedule()).await;
        world.deploy(&DeployComponentsRequest { all: true, ..Default::default() }, "deploy-1").await.unwrap();
        world.settle().await;
        world.handle_due_tasks().handle().await.unwrap();
        let secs = world.now().as_secs();
        world.memory.advance_secs(300 - secs % 300);
        world
    }

    /// Returns a world in which `globex` has [`app::with_retries`], and the job of `storage` fails before this dispatch.
    pub(crate) async fn with_retries(retries: u32, succeeds_at: u32) -> Self {
        let mut world = Self::with_install().await;
        world.sync(&app::with_retries(retries)).await;
        world.deploy(&DeployComponentsRequest::default(), "deploy-0").await.unwrap();
        world.settle().await;
        world.runner("globex").started.clear();
        world.runner("globex").behaviours.insert("storage".into(), Behaviour::FailsBefore(succeeds_at));
        world
    }

    pub(crate) fn create_release(&self) -> CreateRelease {
        CreateRelease { store: self.memory.clone(), versions: self.versions(), clock: self.memory.clone() }
    }

    pub(crate) fn delete_install(&self) -> DeleteInstall {
        let (store, clock) = (self.memory.clone(), self.memory.clone());
        DeleteInstall { store, clock, tenant: self.tenant.clone() }
    }

    pub(crate) fn forget_install(&self) -> ForgetInstall {
        let (store, clock) = (self.memory.clone(), self.memory.clone());
        ForgetInstall { store, clock, tenant: self.tenant.clone() }
    }

    pub(crate) fn remove_forgotten(&self) -> RemoveForgotten {
        let memory = &self.memory;
        let [letters, orders_letters] = self.letters.clone();
        let (store, clock) = (memory.clone(), memory.clone());
        RemoveForgotten {
            store: memory.clone(),
            queues: self.queues.clone(),
            callbacks: memory.clone(),
            letters: PutBackMessages { store, letters, orders_letters, clock },
            clock: memory.clone(),
        }
    }

    /// Sweeps every minute until no install is being forgotten.
    pub(crate) async fn forgotten(&mut self) {
        for _ in 0..8 {
            // A call that fails is made up for by the next one.
            let _ = self.sweeper().sweep().await;
            let _ = self.remove_forgotten().remove().await;
            self.run().await;
            self.memory.advance_secs(60);
        }
    }

    pub(crate) fn disable_install(&self) -> DisableInstall {
        DisableInstall { store: self.memory.clone() }
    }

    pub(crate) fn enable_install(&self) -> EnableInstall {
        EnableInstall { store: self.memory.clone() }
    }

    pub(crate) fn revoke_artifact(&self) -> RevokeArtifact {
        RevokeArtifact { store: self.memory.clone() }
    }

    pub(crate) fn show_lineage(&self) -> ShowLineage {
        ShowLineage { tenant: self.tenant.clone(), store: self.memory.clone(), root: self.keys.clone() }
    }

    pub(crate) fn render_stack(&self) -> RenderStack {
        RenderStack {
            tenant: self.tenant.clone(),
            account: "111111111111".parse().unwrap(),
            region: "eu-west-1".into(),
            reports_queue_url: "https://sqs.eu-west-1.amazonaws.com/111111111111/fh-acme--reports".into(),
            runner: None,
            store: self.memory.clone(),
            versions: self.versions(),
            root: self.keys.clone(),
        }
    }

    pub(crate) async fn sync(&self, document: &AppVersion) {
        self.try_sync(document).await.unwrap();
    }

    pub(crate) async fn try_sync(&self, document: &AppVersion) -> Result<(), AppError> {
        client(async || self.sync_app().sync(&document.app, document).await.map(drop)).await
    }

    pub(crate) async fn enrol(&mut self) {
        client(async || self.enrol_build_runner().enrol().await).await.unwrap();
        let mut runner = Runner::new(&self.tenant, "build", queue_url("build"), 10);
        runner.slots = 4;
        self.runners.entry("build".into()).or_insert(runner);
    }

    pub(crate) async fn build(&self, cause: &str) -> BuildStarted {
        let app = "demo".parse().unwrap();
        client(async || {
            self.build_components().start(&app, &BuildComponentsRequest::default(), asked_with(cause)).await
        })
        .await
        .unwrap()
    }

    /// Returns the request that creates `name`.
    pub(crate) fn creation(&self, name: &str) -> CreateInstallRequest {
        CreateInstallRequest {
            install: name.parse().unwrap(),
            app: "demo".parse().unwrap(),
            account: "222222222222".parse().unwrap(),
            region: "eu-west-1".into(),
            unknown_region: false,
            inputs: [("greeting".to_owned(), json!("hi"))].into(),
            toggles: BTreeMap::new(),
            approval_option: Default::default(),
            release: Default::default(),
            labels: BTreeMap::new(),
        }
    }

    /// Creates `globex`.
    pub(crate) async fn create(&mut self) -> WorkflowId {
        let request = self.creation("globex");
        let (_, workflow) = client(async || self.create_install().create(&request, member()).await).await.unwrap();
        let runner = Runner::new(&self.tenant, "globex", queue_url("globex"), 20);
        self.runners.entry("globex".into()).or_insert(runner);
        workflow
    }

    pub(crate) async fn deploy(&self, request: &DeployComponentsRequest, cause: &str) -> Result<WorkflowId, AppError> {
        let install = globex();
        client(async || self.deploy_components().deploy(&install, request, asked_with(cause)).await).await
    }

    pub(crate) fn set_toggles(&self) -> SetToggles {
        SetToggles { store: self.memory.clone(), versions: self.versions(), clock: self.memory.clone() }
    }

    /// Switches components of `globex` on or off.
    pub(crate) async fn switch(&self, toggles: &[(&str, bool)]) -> Result<InstallToggles, AppError> {
        let toggles = toggles.iter().map(|(name, on)| (name.parse().unwrap(), Some(*on))).collect();
        let (install, request) = (globex(), SetTogglesRequest { toggles });
        client(async || self.set_toggles().set(&install, &request).await).await
    }

    /// Returns a world in which `globex` has all components of [`app::with_toggles`].
    pub(crate) async fn with_toggles() -> Self {
        let mut world = Self::with_install().await;
        world.sync(&app::with_toggles(true)).await;
        // Nothing changes; the contract of the version is signed.
        world.deploy(&DeployComponentsRequest::default(), "deploy-0").await.unwrap();
        world.settle().await;
        world.runner("globex").started.clear();
        world
    }

    pub(crate) async fn teardown(&self, request: &TeardownInstallRequest, cause: &str) -> Result<WorkflowId, AppError> {
        let install = globex();
        client(async || self.teardown_install().teardown(&install, request, asked_with(cause)).await).await
    }

    pub(crate) async fn action(&self, action: &str, cause: &str) -> Result<WorkflowId, AppError> {
        let (install, action) = (globex(), action.parse().unwrap());
        let run = client(async || {
            self.run_action()
                .run(&install, &action, &RunActionRequest::default(), (RunTrigger::Request, asked_with(cause)))
                .await
        });
        run.await.map(|started| started.workflow)
    }

    /// Asks for an upgrade of the runner of `globex`.
    pub(crate) async fn upgrade(&self, request: &UpgradeRunnerRequest, cause: &str) -> Result<WorkflowId, AppError> {
        let install = globex();
        client(async || self.upgrade_runner().upgrade_runner(&install, request, asked_with(cause)).await).await
    }

    /// The runner of `install` announces itself.
    pub(crate) fn hello(&mut self, install: &str) {
        let hello = self.runners[install].hello(self.now());
        let now = self.now();
        self.post(Mail::Report(hello, now));
    }

    pub(crate) fn runner(&mut self, install: &str) -> &mut Runner {
        self.runners.get_mut(install).unwrap()
    }

    /// Empties the orders queues, so that what comes next stands alone.
    pub(crate) fn forget_orders(&mut self) {
        self.memory.orders.lock().unwrap().clear();
        self.runners.values_mut().for_each(|runner| runner.seen = 0);
    }

    /// Returns the id of the workflow that provisions the install.
    pub(crate) async fn provisioning(&self, install: &str) -> WorkflowId {
        table::install(&*self.memory, &install.parse().unwrap()).await.unwrap().value.provisioning()
    }

    pub(crate) async fn workflow(&self, id: &WorkflowId) -> Workflow {
        table::workflow(&*self.memory, id).await.unwrap().value
    }

    pub(crate) async fn job(&self, id: &JobId) -> Job {
        table::job(&*self.memory, id).await.unwrap().value
    }

    /// Returns the name and state of each node of a workflow.
    pub(crate) async fn node_states(&self, id: &WorkflowId) -> Vec<String> {
        let workflow = self.workflow(id).await;
        workflow.nodes.iter().map(|node| format!("{} {}", node.name, node.state.as_str())).collect()
    }
}

/// Returns the member of the vendor who asks for everything.
pub(crate) fn member() -> &'static AskedBy {
    static MEMBER: LazyLock<AskedBy> = LazyLock::new(|| caller("ana"));
    &MEMBER
}

/// Returns the session `name` of the vendor's role as a caller of the API.
pub(crate) fn caller(name: &str) -> AskedBy {
    AskedBy::Caller { arn: format!("arn:aws:sts::111111111111:assumed-role/deployer/{name}").parse().unwrap() }
}

/// Returns the member's request with this idempotency key.
pub(crate) fn asked_with(cause: &str) -> Asked<'_> {
    Asked { by: member(), cause, step: None }
}

pub(crate) fn globex() -> InstallId {
    "globex".parse().unwrap()
}

/// Returns what a runner does whose check finds that the tags of these resources differ.
pub(crate) fn drifts(addresses: &[&str]) -> Behaviour {
    let resource = |address: &&str| json!({ "address": address, "change": "update", "attributes": ["tags.Owner"] });
    let found = json!({ "resources": addresses.iter().map(resource).collect::<Vec<_>>() });
    let outputs = [("drift".to_owned(), found)].into();
    Behaviour::Ends(Outcome::Succeeded { outputs, sensitive: BTreeMap::new(), artifact: None })
}

/// Returns a deploy with one changed input.
pub(crate) fn with_input(name: &str, value: impl Into<Value>) -> DeployComponentsRequest {
    DeployComponentsRequest { inputs: [(name.to_owned(), value.into())].into(), ..DeployComponentsRequest::default() }
}

/// Asks as a client does: again after a transient error.
pub(crate) async fn client<T>(mut ask: impl AsyncFnMut() -> Result<T, AppError>) -> Result<T, AppError> {
    for _ in 1..CLIENT_TRIES {
        match ask().await {
            Err(error) if error.is_transient() => {}
            answer => return answer,
        }
    }
    ask().await
}
