//! Runs of runbooks in the simulated control plane.

use freehold_app::AppError;
use freehold_app::runbook::advance_run::AdvanceRun;
use freehold_app::runbook::cancel_run::CancelRun;
use freehold_app::runbook::resume_run::ResumeRun;
use freehold_app::runbook::run_runbook::RunRunbook;
use freehold_app::table;
use freehold_domain::runbook::Run;
use freehold_protocol::RunId;
use freehold_protocol::api::{DeployComponentsRequest, ReasonRequest, RunRunbookRequest};
use freehold_protocol::app_version::AppVersion;

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
        ResumeRun { advance: self.advance_run() }.resume(run, &because, asked_with("resume")).await
    }

    pub(crate) async fn cancel_run(&self, run: &RunId) -> Result<Run, AppError> {
        CancelRun { advance: self.advance_run() }.cancel(run, member()).await
    }

    /// Returns the state of a run, and those of its steps.
    pub(crate) async fn run_states(&self, run: &RunId) -> Vec<&'static str> {
        let run = table::run(&*self.memory, run).await.unwrap().value;
        [run.state.as_str()].into_iter().chain(run.steps.iter().map(|step| step.state.as_str())).collect()
    }
}
