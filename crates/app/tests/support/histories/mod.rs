//! Drawn histories of an install with roll backs, and what runs in the install before and after each of them.

mod drawn_app;

use std::collections::{BTreeMap, BTreeSet};

use freehold_app::AppError;
use freehold_app::table;
use freehold_domain::plan::Deployed;
use freehold_protocol::api::{DeployComponentsRequest, SetTogglesRequest};
use freehold_protocol::order::{Order, Work};
use freehold_protocol::report::{Block, Outcome};
use freehold_protocol::{ComponentName, Digest, Envelope, Payload as _, WorkflowId};
use serde_json::{Value, json};

use self::drawn_app::{DrawnApp, INPUTS};
use super::runner::{Behaviour, rendered, subject};
use super::walk::Rng;
use super::{World, globex};

/// How a roll back came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    /// The apply of a component failed in a verified deploy.
    Apply,
    /// The removal of a component failed in a verified deploy.
    Removal,
    /// A gate closed in a verified deploy.
    Gate,
    /// A person went back after a deploy that failed.
    HandAfterFailure,
    /// A person went back after a deploy that succeeded.
    Hand,
}

/// One roll back of a history.
#[derive(Debug, Clone)]
pub(crate) struct RolledBack {
    pub(crate) cause: Cause,
    /// Why what runs after it is not what ran before; empty when it is the same.
    pub(crate) differences: Vec<String>,
}

/// The most steps of a history.
const STEPS: u32 = 40;

/// What runs in the install.
#[derive(Debug, Clone, PartialEq)]
struct Runs {
    version: Option<Digest>,
    inputs: BTreeMap<String, Value>,
    toggles: BTreeMap<ComponentName, bool>,
    /// The artifact and the fingerprint of each part, as the table has them, and whether a job of the part failed since.
    parts: BTreeMap<ComponentName, (Digest, Digest, bool)>,
    /// The work that the runner did last for each part, with the digest of its artifact and the values of its templates. Work
    /// that failed counts as done, unless the runner said that it changed nothing.
    done: BTreeMap<ComponentName, Value>,
}

impl Runs {
    /// Returns what runs without the parts that only a later version has. A roll back lets those run.
    fn without(mut self, only_later: &BTreeSet<ComponentName>) -> Self {
        self.parts.retain(|name, _| !only_later.contains(name));
        self.done.retain(|name, _| !only_later.contains(name));
        self
    }

    fn names(&self) -> BTreeSet<ComponentName> {
        self.parts.keys().chain(self.done.keys()).cloned().collect()
    }

    /// Returns what of `after` is not as it is here.
    fn differences(&self, after: &Self) -> Vec<String> {
        let mut all = Vec::new();
        let mut differ = |what: String, before: Value, after: Value| {
            if before != after {
                all.push(format!("{what}: {before} before, {after} after"));
            }
        };
        differ("version".to_owned(), json!(self.version), json!(after.version));
        differ("inputs".to_owned(), json!(self.inputs), json!(after.inputs));
        differ("toggles".to_owned(), json!(self.toggles), json!(after.toggles));
        for name in self.names().union(&after.names()) {
            differ(format!("row of `{name}`"), json!(self.parts.get(name)), json!(after.parts.get(name)));
            differ(format!("work of `{name}`"), json!(self.done.get(name)), json!(after.done.get(name)));
        }
        all
    }
}

/// Lets an install live until it was rolled back `wanted` times. The seed draws its app, the versions, values and toggles of
/// its deploys, what fails in them, and in which order and how often messages are delivered.
///
/// # Errors
/// The first error of a request that no drawn change explains, or that a history does not reach its roll backs.
pub(crate) async fn history(seed: u64, wanted: usize) -> Result<Vec<RolledBack>, String> {
    let mut life = Life::begin(seed).await;
    let mut all = Vec::new();
    for _ in 0..STEPS {
        if all.len() == wanted {
            return Ok(all);
        }
        let next = life.step().await.map_err(|error| format!("step {}: {error}", life.steps))?;
        all.extend(next);
    }
    Err(format!("there were {} roll backs in {STEPS} steps", all.len()))
}

struct Life {
    world: World,
    app: DrawnApp,
    rng: Rng,
    steps: u32,
    /// The work that fails and changes nothing, by its workflow and its subject.
    untouched: BTreeSet<(WorkflowId, String)>,
}

impl Life {
    async fn begin(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let app = DrawnApp::draw(&mut rng);
        let mut world = World::new();
        world.sync(&app.document()).await;
        world.enrol().await;
        world.hello("build");
        world.settle().await;
        world.build("build-0").await;
        world.settle().await;
        world.chaos = Some(Rng::new(seed));
        world.create().await;
        world.runner("globex").outputs_follow_work = true;
        world.run().await;
        world.hello("globex");
        world.settle().await;
        Self { world, app, rng, steps: 0, untouched: BTreeSet::new() }
    }

    /// Deploys a drawn change. Returns the roll back, if one followed.
    async fn step(&mut self) -> Result<Option<RolledBack>, AppError> {
        self.steps += 1;
        let before = self.runs().await;
        self.next_version().await;
        let toggles = self.app.draw_toggles(&mut self.rng);
        self.switch(toggles).await?;
        let verified = self.rng.below(3) > 0;
        let request = DeployComponentsRequest {
            verified,
            all: self.rng.below(5) == 0,
            inputs: self.draw_inputs(),
            ..DeployComponentsRequest::default()
        };
        let id = self.world.deploy(&request, &format!("deploy-{}", self.steps)).await?;
        let cause = self.draw_failure(&id);
        self.world.loses_roll_backs = self.rng.below(4) == 0;
        self.settle().await;
        let deploy = self.world.workflow(&id).await;
        assert!(deploy.state.is_terminal(), "deploy `{id}` is `{}`", deploy.state.as_str());
        let has_failed = deploy.state.as_str() == "failed";
        let has_changed = self.has_changed(&before, &deploy.id);
        let cause = match (verified, has_failed) {
            (true, true) => {
                self.follow_failure().await;
                cause
            }
            // A person goes back at once, or the history continues from what runs now.
            (false, false) if self.rng.below(2) == 0 => Cause::Hand,
            (false, true) => Cause::HandAfterFailure,
            (_, false) => return Ok(None),
        };
        let by = match verified {
            true => deploy.roll_back_id(),
            false => self.go_back(&before).await?,
        };
        let others = self.only_later(&before).await?;
        let mut differences = before.without(&others).differences(&self.runs().await.without(&others));
        if has_changed {
            differences.extend(self.unsuccessful(&by).await?);
        }
        // Where nothing ran otherwise in between, there was nothing to bring back.
        Ok((has_changed || !differences.is_empty()).then_some(RolledBack { cause, differences }))
    }

    /// Returns how the roll back ended, if not with success.
    async fn unsuccessful(&self, roll_back: &WorkflowId) -> Result<Option<String>, AppError> {
        let found = table::find_workflow(&*self.world.memory, roll_back).await?;
        let state = found.map_or("absent", |found| found.value.state.as_str());
        Ok((state != "succeeded").then(|| format!("roll back `{roll_back}` is {state}")))
    }

    /// Returns what runs now.
    async fn runs(&self) -> Runs {
        let install = table::install(&*self.world.memory, &globex()).await.unwrap().value;
        let parts = table::parts(&*self.world.memory, &globex()).await.unwrap();
        let part = |one: Deployed| (one.artifact, one.fingerprint, one.partial || one.attempted);
        Runs {
            version: install.version().cloned(),
            inputs: install.inputs,
            toggles: install.toggles,
            parts: parts.into_iter().map(|(name, one)| (name, part(one))).collect(),
            done: self.done(),
        }
    }

    /// Returns the last work for each part that stands, by the orders that the runner was sent.
    fn done(&self) -> BTreeMap<ComponentName, Value> {
        let mut done = BTreeMap::new();
        for order in self.orders().into_iter().filter(|order| !self.is_untouched(order)) {
            let Some(component) = order.work.component().cloned() else { continue };
            match &order.work {
                Work::Remove(_) => drop(done.remove(&component)),
                Work::Health(_) | Work::DetectDrift(_) => {}
                _ => drop(done.insert(component, work_of(&order))),
            }
        }
        done
    }

    fn is_untouched(&self, order: &Order) -> bool {
        self.untouched.contains(&(order.workflow.clone(), subject(&order.work)))
    }

    /// Returns the orders that the runner of the install was sent.
    fn orders(&self) -> Vec<Order> {
        let sent = self.world.memory.orders.lock().unwrap().clone();
        let envelopes = sent.iter().map(|(_, _, _, body)| Envelope::parse(body.as_bytes()).unwrap());
        let orders = envelopes.filter(|one| one.payload_type == Order::TYPE).map(|one| one.peek::<Order>().unwrap());
        orders.filter(|order| order.install == globex()).collect()
    }

    /// Returns the parts that a later version has and the version that ran `before` has not.
    async fn only_later(&self, before: &Runs) -> Result<BTreeSet<ComponentName>, AppError> {
        let version = self.world.versions().load(&"demo".parse().unwrap(), before.version.as_ref()).await?;
        Ok(self.app.names().into_iter().filter(|name| version.document.part(name).is_none()).collect())
    }

    async fn settle(&mut self) {
        self.world.settle().await;
    }

    /// Returns whether the deploy let anything run otherwise than `before`.
    fn has_changed(&self, before: &Runs, deploy: &WorkflowId) -> bool {
        let orders = self.orders();
        let mut done = orders.iter().filter(|order| order.workflow == *deploy && !self.is_untouched(order));
        done.any(|order| match (order.work.component(), &order.work) {
            (None, _) | (_, Work::Health(_)) => false,
            (Some(component), _) => before.done.get(component) != Some(&work_of(order)),
        })
    }

    /// Syncs and builds a changed app, except where the next deploy has the version that runs.
    async fn next_version(&mut self) {
        if self.rng.below(4) == 0 {
            return;
        }
        self.app.change(&mut self.rng);
        self.world.sync(&self.app.document()).await;
        self.world.build(&format!("build-{}", self.steps)).await;
        self.settle().await;
    }

    async fn switch(&self, toggles: BTreeMap<ComponentName, Option<bool>>) -> Result<(), AppError> {
        let request = SetTogglesRequest { toggles };
        super::client(async || self.world.set_toggles().set(&globex(), &request).await).await.map(drop)
    }

    fn draw_inputs(&mut self) -> BTreeMap<String, Value> {
        let mut inputs = BTreeMap::new();
        for name in INPUTS {
            match self.rng.below(6) {
                0 | 1 => drop(inputs.insert(name.to_owned(), json!(format!("{name}-{}", self.rng.below(1000))))),
                // Back to the default.
                2 => drop(inputs.insert(name.to_owned(), Value::Null)),
                _ => {}
            }
        }
        inputs
    }

    /// Lets one of the deploy's jobs end without success, if the deploy has such a job.
    fn draw_failure(&mut self, deploy: &WorkflowId) -> Cause {
        let (all, toggleable) = (Vec::from_iter(self.app.names()), Vec::from_iter(self.app.toggleable()));
        let name = &all[self.rng.below(all.len())];
        let (reason, partial) = ("drawn".to_owned(), self.rng.below(2) == 0);
        let failed = Outcome::Failed { reason: reason.clone(), partial };
        let (cause, subject, outcome) = match self.rng.below(6) {
            0 | 1 if !toggleable.is_empty() => {
                let name = &toggleable[self.rng.below(toggleable.len())];
                (Cause::Removal, format!("remove:{name}"), failed)
            }
            2 | 3 => (Cause::Gate, format!("health:{name}"), Outcome::Blocked { block: Block::Unhealthy, reason }),
            _ => (Cause::Apply, name.to_string(), failed),
        };
        if !partial && cause != Cause::Gate {
            self.untouched.insert((deploy.clone(), subject.clone()));
        }
        let runner = self.world.runner("globex");
        runner.behaviours.clear();
        runner.behaviours.insert(subject, Behaviour::EndsIn(deploy.clone(), outcome));
        cause
    }

    /// Lets a sweep make up for the call that begins the roll back, if that call was lost.
    async fn follow_failure(&mut self) {
        if std::mem::take(&mut self.world.loses_roll_backs) {
            self.world.handle_due_tasks().handle().await.unwrap();
            self.settle().await;
        }
    }

    /// Deploys the version and the values of `before`, as a person who types them does. Returns the deploy.
    async fn go_back(&mut self, before: &Runs) -> Result<WorkflowId, AppError> {
        let now = self.runs().await;
        let mut toggles: BTreeMap<_, _> = now.toggles.keys().map(|name| (name.clone(), None)).collect();
        toggles.extend(before.toggles.iter().map(|(name, on)| (name.clone(), Some(*on))));
        self.switch(toggles).await?;
        let mut inputs: BTreeMap<_, _> = now.inputs.keys().map(|name| (name.clone(), Value::Null)).collect();
        inputs.extend(before.inputs.clone());
        let request =
            DeployComponentsRequest { version: before.version.clone(), inputs, ..DeployComponentsRequest::default() };
        let id = self.world.deploy(&request, &format!("back-{}", self.steps)).await?;
        self.settle().await;
        Ok(id)
    }
}

/// Returns the work of an order as it changes the install: with the values of its templates, and the digest of its artifact.
/// Two builds of one artifact have two statements.
fn work_of(order: &Order) -> Value {
    let mut work = rendered(order);
    if let Some(artifact) = order.work.artifact() {
        work["artifact"] = json!(artifact.digest);
    }
    work
}
