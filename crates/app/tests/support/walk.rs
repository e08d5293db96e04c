//! Advances time: runs the state machines by their definitions, and delivers messages as SQS does.

use std::sync::atomic::Ordering;

use freehold_app::AppError;
use freehold_app::messages::{DispatchMessage, GrantMessage};
use freehold_app::workflow::accept_report::Arrival;
use freehold_app::workflow::plan_workflow::Next;
use freehold_domain::workflow::WorkflowKind;
use freehold_protocol::{Timestamp, WorkflowId};

use super::World;

/// How often Step Functions tries a state again.
const RETRIES: u32 = 6;
/// How often a queue delivers before it gives a message up.
const RECEIVES: u32 = 5;
/// How often `settle` sweeps.
const SWEEPS: u32 = 8;

/// A message of one of the tenant's queues.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Mail {
    Dispatch(DispatchMessage),
    Grant(GrantMessage),
    /// A report, and when the queue took it.
    Report(String, Timestamp),
    /// A report that `sweep` puts back as it is delivered, and when the queue took its first copy.
    PutBack(String, Timestamp),
}

/// Pseudo-random numbers: a test's seed decides everything.
#[derive(Debug, Clone)]
pub(crate) struct Rng(fastrand::Rng);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0.usize(..end)
    }
}

/// The state in which an execution is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum At {
    Register,
    /// With the token of the try that waits, if one does.
    AwaitRunner(Option<String>),
    Plan,
    Run(Option<String>),
    Finish,
    FinishFailed(String),
    Ended(&'static str),
    /// `finish-workflow` itself failed.
    Unfinished,
}

/// One execution.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    pub(crate) at: At,
    /// How often the workflow had been continued when the execution started.
    attempt: u32,
    tries: u32,
    tokens: u32,
}

impl Machine {
    fn new(kind: WorkflowKind, attempt: u32) -> Self {
        let at = match kind {
            WorkflowKind::ProvisionInstall => At::Register,
            WorkflowKind::DeployComponents
            | WorkflowKind::BuildComponents
            | WorkflowKind::RunAction
            | WorkflowKind::UpgradeRunner
            | WorkflowKind::DetectDrift
            | WorkflowKind::CheckHealth
            | WorkflowKind::TeardownInstall => At::Plan,
        };
        Self { at, attempt, tries: 0, tokens: 0 }
    }

    fn go(&mut self, at: At) {
        self.at = at;
        self.tries = 0;
    }

    /// A state failed: again, or on to the catch.
    fn failed(&mut self, error: &AppError) {
        self.tries += 1;
        if error.is_transient() && self.tries <= RETRIES {
            match &mut self.at {
                At::AwaitRunner(token) | At::Run(token) => *token = None,
                At::Register | At::Plan | At::Finish | At::FinishFailed(_) | At::Ended(_) | At::Unfinished => {}
            }
            return;
        }
        let next =
            if matches!(self.at, At::FinishFailed(_)) { At::Unfinished } else { At::FinishFailed(error.to_string()) };
        self.go(next);
    }
}

impl World {
    /// Puts a message into its queue, with chaos up to three times.
    pub(crate) fn post(&mut self, mail: Mail) {
        let copies = self.chaos.as_mut().map_or(1, |rng| 1 + rng.below(3));
        for _ in 0..copies {
            self.mail.push_back((mail.clone(), 0));
        }
    }

    /// Lets everything happen that happens by itself, without time passing.
    pub(crate) async fn run(&mut self) {
        loop {
            let walked = self.walk().await;
            self.collect();
            let delivered = self.deliver().await;
            if !walked && !delivered && self.mail.is_empty() {
                return;
            }
        }
    }

    /// Lets everything happen, with a sweep a minute while workflows are open.
    pub(crate) async fn settle(&mut self) {
        self.run().await;
        for _ in 0..SWEEPS {
            if self.open().is_empty() {
                return;
            }
            self.memory.advance_secs(60);
            // A sweep that fails is made up for by the next one.
            let _ = self.sweeper().sweep().await;
            self.run().await;
        }
    }

    /// Ends a waiting state as its time limit does.
    pub(crate) async fn time_out(&mut self, id: &WorkflowId) {
        self.machines.get_mut(id).unwrap().go(At::FinishFailed("States.Timeout".into()));
        self.run().await;
    }

    /// Gathers what was sent, and lets runners answer.
    pub(crate) fn collect(&mut self) {
        for message in self.memory.take_dispatched() {
            self.post(Mail::Dispatch(message));
        }
        let grants = std::mem::take(&mut *self.memory.grants.lock().unwrap());
        for message in grants {
            self.post(Mail::Grant(message));
        }
        let orders = self.memory.orders.lock().unwrap().clone();
        let (root, now) = (self.keys.public(), self.now());
        let mut reports = Vec::new();
        for runner in self.runners.values_mut() {
            reports.extend(runner.take(&orders, &root, &self.registry, now));
        }
        for report in reports {
            self.post(Mail::Report(report, now));
        }
    }

    async fn deliver(&mut self) -> bool {
        let at = match &mut self.chaos {
            Some(rng) if !self.mail.is_empty() => rng.below(self.mail.len()),
            _ => 0,
        };
        let Some((mail, receives)) = self.mail.remove(at) else { return false };
        self.last_delivery.store(receives + 1 >= RECEIVES, Ordering::Relaxed);
        let result = match &mail {
            Mail::Dispatch(message) => match self.dispatch_job().perform(message).await {
                Ok(true) => {
                    self.dispatch_job().wake_builder().await;
                    Ok(())
                }
                handled => handled.map(|_| ()),
            },
            Mail::Grant(message) => self.grant_artifact().answer(message).await,
            Mail::Report(body, sent_at) => self.accept_report().accept(body, *sent_at).await.map(|_| ()),
            Mail::PutBack(body, sent_at) => {
                let arrival = Arrival { taken_at: self.now(), ..Arrival::from(*sent_at) };
                self.accept_report().accept(body, arrival).await.map(|_| ())
            }
        };
        self.last_delivery.store(false, Ordering::Relaxed);
        match result {
            Ok(()) => {}
            Err(error) if receives + 1 >= RECEIVES => self.dead.push((mail, error)),
            Err(_) => self.mail.push_back((mail, receives + 1)),
        }
        true
    }

    /// Takes every execution as far as it goes; true when one moved.
    pub(crate) async fn walk(&mut self) -> bool {
        let started = self.memory.started.lock().unwrap().clone();
        for (kind, id) in started {
            self.machines.entry(id).or_insert_with(|| Machine::new(kind, 0));
        }
        let continued = self.memory.continued.lock().unwrap().clone();
        for ((id, attempt), kind) in continued {
            if self.machines[&id].attempt < attempt {
                self.machines.insert(id, Machine::new(kind, attempt));
            }
        }
        let ids: Vec<_> = self.machines.keys().cloned().collect();
        let mut moved = false;
        for id in ids {
            while self.step(&id).await {
                moved = true;
            }
        }
        moved
    }

    async fn step(&mut self, id: &WorkflowId) -> bool {
        let mut machine = self.machines[id].clone();
        match machine.at.clone() {
            At::Register => match self.register_install().register(id).await {
                Ok(()) => machine.go(At::AwaitRunner(None)),
                Err(error) => machine.failed(&error),
            },
            At::AwaitRunner(Some(token)) => {
                if !self.is_resumed(&token) {
                    return false;
                }
                machine.go(At::Plan);
            }
            At::Run(Some(token)) => {
                if !self.is_resumed(&token) {
                    return false;
                }
                machine.go(At::Finish);
            }
            At::AwaitRunner(None) => {
                let token = machine.token(id);
                machine.at = At::AwaitRunner(Some(token.clone()));
                if let Err(error) = self.plan_workflow().await_runner(id, token).await {
                    machine.failed(&error);
                }
            }
            At::Plan => match self.plan_workflow().plan(id, machine.attempt).await {
                Ok(Next::Run) => machine.go(At::Run(None)),
                Ok(Next::Finish) => machine.go(At::Finish),
                Err(error) => machine.failed(&error),
            },
            At::Run(None) => {
                let token = machine.token(id);
                machine.at = At::Run(Some(token.clone()));
                if let Err(error) = self.plan_workflow().run(id, machine.attempt, token).await {
                    machine.failed(&error);
                }
            }
            At::Finish => self.finish(id, &mut machine, None).await,
            At::FinishFailed(error) => self.finish(id, &mut machine, Some(&error)).await,
            At::Ended(_) | At::Unfinished => return false,
        }
        self.machines.insert(id.clone(), machine);
        true
    }

    /// Finishes a workflow as the function does, which advances the run whose step the workflow was, and rolls back.
    async fn finish(&self, id: &WorkflowId, machine: &mut Machine, error: Option<&str>) {
        match self.finish_workflow().finish(id, machine.attempt, error).await {
            Ok(finished) => {
                if let Some(run) = &finished.run {
                    // A failure is left to the next sweep.
                    let _ = self.advance_run().advance(run).await;
                }
                if finished.rolls_back && !self.loses_roll_backs {
                    let _ = self.roll_back_deploy().roll_back(id).await;
                }
                machine.go(At::Ended(finished.state));
            }
            Err(error) => machine.failed(&error),
        }
    }

    fn is_resumed(&self, token: &str) -> bool {
        self.memory.resumed.lock().unwrap().iter().any(|(resumed, _)| resumed == token)
    }
}

impl Machine {
    fn token(&mut self, id: &WorkflowId) -> String {
        self.tokens += 1;
        format!("{id}/{}/{}", self.attempt, self.tokens)
    }
}
