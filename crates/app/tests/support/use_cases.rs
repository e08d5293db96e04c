//! The use cases of the simulated control plane, with its doubles as their ports.

use freehold_app::app_config::sync_app::SyncApp;
use freehold_app::app_config::upload_source::UploadSource;
use freehold_app::artifact::grant_artifact::GrantArtifact;
use freehold_app::artifact::list_artifacts::ListArtifacts;
use freehold_app::drift::acknowledge_drift::AcknowledgeDrift;
use freehold_app::drift::detect_drift::DetectDrift;
use freehold_app::drift::ignore_drift::IgnoreDrift;
use freehold_app::health::check_health::CheckHealth;
use freehold_app::health::report_check::ReportCheck;
use freehold_app::install::create_install::CreateInstall;
use freehold_app::install::enrol_build_runner::EnrolBuildRunner;
use freehold_app::install::register_install::RegisterInstall;
use freehold_app::install::set_approvals::SetApprovals;
use freehold_app::install::set_labels::SetLabels;
use freehold_app::install::set_licence::SetLicence;
use freehold_app::install::set_release::SetRelease;
use freehold_app::install::turn_queues::TurnQueues;
use freehold_app::install::upgrade_runner::UpgradeRunner;
use freehold_app::notification::notifier::Notifier;
use freehold_app::ports::{Expect, Store as _};
use freehold_app::read::ShowTenant;
use freehold_app::release::move_channel::MoveChannel;
use freehold_app::sweep::handle_due_tasks::HandleDueTasks;
use freehold_app::sweep::{Sweep, Swept};
use freehold_app::table::{Contact, Stored, WriterId, contact_key, load, put, sweep_soon_writes};
use freehold_app::workflow::accept_report::AcceptReport;
use freehold_app::workflow::approval::approve_job::ApproveJob;
use freehold_app::workflow::approval::reject_job::RejectJob;
use freehold_app::workflow::build_components::BuildComponents;
use freehold_app::workflow::cancel_job::CancelJob;
use freehold_app::workflow::cancel_workflow::CancelWorkflow;
use freehold_app::workflow::continuation::resume_workflow::ResumeWorkflow;
use freehold_app::workflow::continuation::retry_job::RetryJob;
use freehold_app::workflow::continuation::skip_node::SkipNode;
use freehold_app::workflow::deploy_components::DeployComponents;
use freehold_app::workflow::dispatch_job::DispatchJob;
use freehold_app::workflow::finish_workflow::FinishWorkflow;
use freehold_app::workflow::plan_workflow::PlanWorkflow;
use freehold_app::workflow::roll_back::RollBackDeploy;
use freehold_app::workflow::run_action::RunAction;
use freehold_app::workflow::teardown_install::TeardownInstall;
use freehold_domain::install::connection;

use freehold_app::AppError;
use freehold_protocol::WorkflowId;
use freehold_protocol::api::DetectDriftRequest;

use super::doubles::queue_url;
use super::{World, asked_with, client, globex};

impl World {
    pub(crate) fn upgrade_runner(&self) -> UpgradeRunner {
        let memory = &self.memory;
        UpgradeRunner { store: memory.clone(), machines: memory.clone(), clock: memory.clone() }
    }

    /// Asks for a drift check of `globex`.
    pub(crate) async fn detect_drift(&self, request: &DetectDriftRequest, cause: &str) -> Result<WorkflowId, AppError> {
        let memory = &self.memory;
        let (store, machines, clock) = (memory.clone(), memory.clone(), memory.clone());
        let detect = DetectDrift { store, versions: self.versions(), machines, clock };
        client(async || detect.detect(&globex(), request, asked_with(cause)).await).await
    }

    pub(crate) fn check_health(&self) -> CheckHealth {
        let memory = &self.memory;
        let (store, machines, clock) = (memory.clone(), memory.clone(), memory.clone());
        CheckHealth { store, versions: self.versions(), machines, clock }
    }

    pub(crate) fn report_check(&self) -> ReportCheck {
        ReportCheck { store: self.memory.clone(), versions: self.versions(), clock: self.memory.clone() }
    }

    pub(crate) fn acknowledge_drift(&self) -> AcknowledgeDrift {
        AcknowledgeDrift { store: self.memory.clone(), clock: self.memory.clone() }
    }

    pub(crate) fn ignore_drift(&self) -> IgnoreDrift {
        IgnoreDrift { store: self.memory.clone(), clock: self.memory.clone() }
    }

    pub(crate) fn resume_workflow(&self) -> ResumeWorkflow {
        ResumeWorkflow { versions: self.versions(), machines: self.memory.clone(), clock: self.memory.clone() }
    }

    pub(crate) fn retry_job(&self) -> RetryJob {
        RetryJob { versions: self.versions(), machines: self.memory.clone(), clock: self.memory.clone() }
    }

    pub(crate) fn skip_node(&self) -> SkipNode {
        SkipNode { versions: self.versions(), machines: self.memory.clone(), clock: self.memory.clone() }
    }

    pub(crate) fn upload_source(&self) -> UploadSource {
        UploadSource { versions: self.versions() }
    }

    pub(crate) fn sync_app(&self) -> SyncApp {
        let memory = &self.memory;
        SyncApp { versions: self.versions(), clock: memory.clone() }
    }

    pub(crate) fn build_components(&self) -> BuildComponents {
        let memory = &self.memory;
        BuildComponents {
            store: memory.clone(),
            versions: self.versions(),
            machines: memory.clone(),
            has_build_machine: false,
            clock: memory.clone(),
        }
    }

    pub(crate) fn enrol_build_runner(&self) -> EnrolBuildRunner {
        EnrolBuildRunner {
            account: "111111111111".parse().unwrap(),
            region: "eu-west-1".into(),
            build_queue_url: queue_url("build"),
            store: self.memory.clone(),
            clock: self.memory.clone(),
        }
    }

    pub(crate) fn create_install(&self) -> CreateInstall {
        let memory = &self.memory;
        CreateInstall {
            store: memory.clone(),
            versions: self.versions(),
            machines: memory.clone(),
            clock: memory.clone(),
        }
    }

    pub(crate) fn deploy_components(&self) -> DeployComponents {
        let memory = &self.memory;
        DeployComponents {
            store: memory.clone(),
            versions: self.versions(),
            machines: memory.clone(),
            clock: memory.clone(),
        }
    }

    pub(crate) fn teardown_install(&self) -> TeardownInstall {
        let memory = &self.memory;
        TeardownInstall {
            store: memory.clone(),
            versions: self.versions(),
            machines: memory.clone(),
            clock: memory.clone(),
        }
    }

    pub(crate) fn run_action(&self) -> RunAction {
        let memory = &self.memory;
        RunAction { store: memory.clone(), versions: self.versions(), machines: memory.clone(), clock: memory.clone() }
    }

    pub(crate) fn register_install(&self) -> RegisterInstall {
        RegisterInstall { store: self.memory.clone(), queues: self.queues.clone() }
    }

    pub(crate) fn plan_workflow(&self) -> PlanWorkflow {
        let memory = &self.memory;
        PlanWorkflow { store: memory.clone(), versions: self.versions(), outbox: memory.clone(), clock: memory.clone() }
    }

    pub(crate) fn finish_workflow(&self) -> FinishWorkflow {
        let memory = &self.memory;
        FinishWorkflow { store: memory.clone(), outbox: memory.clone(), clock: memory.clone() }
    }

    pub(crate) fn roll_back_deploy(&self) -> RollBackDeploy {
        RollBackDeploy { versions: self.versions(), machines: self.memory.clone(), clock: self.memory.clone() }
    }

    pub(crate) fn cancel_workflow(&self) -> CancelWorkflow {
        CancelWorkflow { store: self.memory.clone(), clock: self.memory.clone() }
    }

    pub(crate) fn cancel_job(&self) -> CancelJob {
        CancelJob { store: self.memory.clone(), clock: self.memory.clone() }
    }

    pub(crate) fn approve_job(&self) -> ApproveJob {
        ApproveJob { store: self.memory.clone(), clock: self.memory.clone() }
    }

    pub(crate) fn reject_job(&self) -> RejectJob {
        RejectJob { store: self.memory.clone(), clock: self.memory.clone() }
    }

    pub(crate) fn set_approvals(&self) -> SetApprovals {
        SetApprovals { store: self.memory.clone() }
    }

    pub(crate) fn set_labels(&self) -> SetLabels {
        SetLabels { store: self.memory.clone() }
    }

    pub(crate) fn set_licence(&self) -> SetLicence {
        SetLicence { store: self.memory.clone(), clock: self.memory.clone() }
    }

    pub(crate) fn set_release(&self) -> SetRelease {
        SetRelease { store: self.memory.clone(), clock: self.memory.clone() }
    }

    pub(crate) fn move_channel(&self) -> MoveChannel {
        MoveChannel { store: self.memory.clone(), clock: self.memory.clone() }
    }

    pub(crate) fn accept_report(&self) -> AcceptReport {
        let memory = &self.memory;
        AcceptReport {
            tenant: self.tenant.clone(),
            store: memory.clone(),
            outbox: memory.clone(),
            callbacks: memory.clone(),
            callers: memory.clone(),
            clock: memory.clone(),
            writer: WriterId::of(1),
        }
    }

    pub(crate) fn dispatch_job(&self) -> DispatchJob {
        let memory = &self.memory;
        DispatchJob {
            tenant: self.tenant.clone(),
            repository: "fh-acme".into(),
            store: memory.clone(),
            versions: self.versions(),
            orders: memory.clone(),
            signer: self.keys.of_function(&DispatchJob::SIGNS),
            build_machine: Some(memory.clone()),
            clock: memory.clone(),
            writer: WriterId::of(1),
        }
    }

    pub(crate) fn grant_artifact(&self) -> GrantArtifact {
        let memory = &self.memory;
        GrantArtifact {
            tenant: self.tenant.clone(),
            store: memory.clone(),
            registry: self.registry.clone(),
            objects: memory.clone(),
            orders: memory.clone(),
            signer: self.keys.of_function(&GrantArtifact::SIGNS),
            clock: memory.clone(),
        }
    }

    pub(crate) fn list_artifacts(&self) -> ListArtifacts {
        ListArtifacts { versions: self.versions(), clock: self.memory.clone() }
    }

    pub(crate) fn show_tenant(&self) -> ShowTenant {
        ShowTenant {
            tenant: self.tenant.clone(),
            account: "111111111111".parse().unwrap(),
            region: "eu-west-1".into(),
            reports_queue_url: queue_url("reports"),
            root: self.keys.clone(),
        }
    }

    pub(crate) fn sweeper(&self) -> Sweep {
        let memory = &self.memory;
        Sweep {
            store: memory.clone(),
            outbox: memory.clone(),
            callbacks: memory.clone(),
            machines: memory.clone(),
            build_machine: Some(memory.clone()),
            notifier: self.notifier(),
            clock: memory.clone(),
        }
    }

    pub(crate) fn notifier(&self) -> Notifier {
        Notifier { store: self.memory.clone(), topic: self.memory.clone() }
    }

    /// Lets the orders of the test's app expire, and sweeps. The runner is there all the time, so what it did not report is
    /// lost.
    pub(crate) async fn sweep_with_runner_there(&self, secs: u64) -> Swept {
        self.memory.advance_secs(secs);
        let key = contact_key(&"globex".parse().unwrap());
        let Stored { value, rev } = load::<Contact>(&*self.memory, &key).await.unwrap().unwrap();
        let there = Contact { contact: connection::Contact { at: self.now(), ..value.contact }, ..value };
        let _ = self.memory.commit(vec![put(&there, Expect::Rev(rev)).unwrap()]).await.unwrap();
        // Looks at waiting workflows are a quarter of an hour apart, which the tests of expiry do not want to wait for.
        for workflow in self.open() {
            let workflow = workflow.parse().unwrap();
            let soon = sweep_soon_writes(&*self.memory, &workflow, "test", self.now()).await.unwrap();
            let _ = self.memory.commit(soon).await.unwrap();
        }
        self.sweeper().sweep().await.unwrap()
    }

    pub(crate) fn turn_queues(&self) -> TurnQueues {
        TurnQueues { store: self.memory.clone(), queues: self.queues.clone() }
    }

    pub(crate) fn handle_due_tasks(&self) -> HandleDueTasks {
        let memory = &self.memory;
        HandleDueTasks {
            store: memory.clone(),
            versions: self.versions(),
            machines: memory.clone(),
            notifier: self.notifier(),
            clock: memory.clone(),
        }
    }
}
