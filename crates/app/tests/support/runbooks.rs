//! Runs of runbooks in the simulated control plane.

use std::sync::Arc;

use freehold_app::new_workflow::Asked;
use freehold_app::runbook::advance_run::AdvanceRun;
use freehold_app::runbook::cancel_run::CancelRun;
use freehold_app::runbook::resume_run::ResumeRun;
use freehold_app::runbook::run_runbook::RunRunbook;
use freehold_app::table;
use freehold_app::{AppError, read};
use freehold_domain::runbook::Run;
use freehold_protocol::RunId;
use freehold_protocol::api::{DeployComponentsRequest, ReasonRequest, RunRunbookRequest};
use freehold_protocol::app_version::AppVersion;
use freehold_protocol::report::Outcome;
use futures_util::future::BoxFuture;

use super::interleaving::Interleaved;
use super::runner::subject;
use super::walk::Mail;
use super::{World, asked_with, client, globex, member};

impl World {
    /// Returns a world in which `globex` has all of `document`.
    pub(crate) async fn with_runbook(document: &AppVersion) -> Self {
        let mut world = Self::with_install().await;
        world.sync(document).await;
        world.deploy(&DeployComponentsRequest { all: true, ..Default::default() }, "deploy-1").await.unwrap();
        world.settle().await;
        world.runner("globex").started.clear();
        world
    }

    pub(crate) fn advance_run(&self) -> AdvanceRun {
        let memory = &self.memory;
        AdvanceRun::new(memory.clone(), self.versions(), memory.clone(), memory.clone())
    }

    pub(crate) async fn run_runbook(&self, runbook: &str, cause: &str) -> Result<Run, AppError> {
        self.run_runbook_with(runbook, &RunRunbookRequest::default(), cause).await
    }

    pub(crate) async fn run_runbook_with(
        &self,
        runbook: &str,
        request: &RunRunbookRequest,
        cause: &str,
    ) -> Result<Run, AppError> {
        let (install, runbook) = (globex(), runbook.parse().unwrap());
        let run = RunRunbook { advance: self.advance_run() };
        client(async || run.run(&install, &runbook, request, asked_with(cause)).await).await
    }

    pub(crate) async fn resume_run(&self, run: &RunId) -> Result<Run, AppError> {
        let because = ReasonRequest { reason: "fixed by hand".to_owned() };
        let before = table::run(&*self.memory, run).await.unwrap().value.resumed.len();
        self.resume_run_as(run, &because, asked_with(&format!("resume {before}"))).await
    }

    pub(crate) async fn resume_run_as(
        &self,
        run: &RunId,
        because: &ReasonRequest,
        asked: Asked<'_>,
    ) -> Result<Run, AppError> {
        ResumeRun { advance: self.advance_run() }.resume(run, because, asked).await
    }

    pub(crate) async fn cancel_run(&self, run: &RunId) -> Result<Run, AppError> {
        CancelRun { advance: self.advance_run() }.cancel(run, member()).await
    }

    /// Returns the use case that advances runs, in a table in which `act` happens before the call with the number `at`.
    pub(crate) fn advance_run_while<F>(
        &self,
        at: usize,
        act: impl Fn(AdvanceRun) -> F + Send + Sync + 'static,
    ) -> AdvanceRun
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (memory, plain) = (self.memory.clone(), self.advance_run());
        let act = Box::new(move || -> BoxFuture<'static, ()> { Box::pin(act(plain.clone())) });
        let store = Arc::new(Interleaved::new(memory.clone(), at, act));
        AdvanceRun::new(store, self.versions(), memory.clone(), memory)
    }

    /// Checks that the steps of a run name each workflow that was started for it, by their latest tries.
    pub(crate) async fn check_named(&self, run: &RunId) {
        let workflows = read::list_workflows(&*self.memory, &globex(), None).await.unwrap();
        let view = read::show_run(&*self.memory, run).await.unwrap();
        for workflow in workflows.items.iter().filter(|workflow| workflow.run.as_ref() == Some(run)) {
            let is_named = view.steps.iter().any(|step| step.workflow.as_ref() == Some(&workflow.workflow));
            assert!(is_named, "{workflow:?} {view:?}");
        }
    }

    /// The hanging job of `node` succeeds.
    pub(crate) async fn end_hanging(&mut self, node: &str) {
        let job = self.runners["globex"].attempts.iter().find(|(_, attempt)| subject(&attempt.order.work) == node);
        let job = job.map(|(job, _)| job.clone()).unwrap();
        let outcome = Outcome::Succeeded { outputs: Default::default(), sensitive: Default::default(), artifact: None };
        let now = self.now();
        for report in self.runner("globex").finish(&job, outcome, now) {
            self.post(Mail::Report(report, now));
        }
        self.settle().await;
    }

    /// Returns the state of a run, and those of its steps.
    pub(crate) async fn run_states(&self, run: &RunId) -> Vec<&'static str> {
        let run = table::run(&*self.memory, run).await.unwrap().value;
        [run.state.as_str()].into_iter().chain(run.steps.iter().map(|step| step.state.as_str())).collect()
    }
}
