//! The operations of the API. Each operation parses the ids and the body, calls its use case and returns a view.

use freehold_app::AppError;
use freehold_app::access::{list_members, show_caller, show_policies};
use freehold_app::app_version::show_inputs::{show_inputs, show_inputs_schema};
use freehold_app::app_version::show_toggles::show_toggles;
use freehold_app::app_version::show_version::show_version;
use freehold_app::contract::terms::{show_contract, show_terms};
use freehold_app::notification::list_subscriptions::list_subscriptions;
use freehold_app::webhook::list_webhooks::list_webhooks;
use freehold_app::{read, table};
use freehold_domain::install::Install;
use freehold_domain::workflow::RunTrigger;
use freehold_protocol::api::{
    AcceptInvitationRequest, AcknowledgeDriftRequest, AddSubscriptionRequest, AddWebhookRequest, ApproveJobRequest,
    BuildComponentsRequest, CancelJobRequest, CancelWorkflowRequest, CheckHealthRequest, CreateInstallRequest,
    CreateReleaseRequest, DeployComponentsRequest, DetectDriftRequest, ForgetInstallRequest, IgnoreDriftRequest,
    InstallCreated, InviteMemberRequest, MoveChannelRequest, ReasonRequest, RejectJobRequest,
    RemoveSubscriptionRequest, ReportCheckRequest, ResumeWorkflowRequest, RetryJobRequest, RunActionRequest,
    RunRunbookRequest, SetApprovalsRequest, SetInputsRequest, SetLabelsRequest, SetLicenceRequest, SetMemberRequest,
    SetPoliciesRequest, SetReleaseRequest, SetTogglesRequest, SkipNodeRequest, SyncAppRequest, TeardownInstallRequest,
    TestAccessRequest, TestSubscriptionsRequest, UpgradeRunnerRequest, UploadSourceRequest, WorkflowStarted,
};
use freehold_protocol::digest::hex;
use freehold_protocol::{AppName, Digest, InstallId, JobId, WorkflowId};

use super::routes::Operation;
use super::{Api, Call, to_json};

impl Api {
    /// Performs `operation` and returns its result as JSON.
    ///
    /// # Errors
    /// The errors of the use case.
    pub async fn operate(&self, operation: Operation, call: &Call) -> Result<String, AppError> {
        let (store, after, now) = (&*self.store, call.after.as_deref(), self.clock.now());
        match operation {
            Operation::ShowTenant => to_json(&self.show_tenant.show_tenant().await?),
            Operation::EnrolBuildRunner => {
                self.enrol_build_runner.enrol().await?;
                to_json(&self.show_tenant.show_tenant().await.map_err(AppError::after_change)?)
            }
            Operation::ListApps => {
                let is_shown = |app: &AppName| call.access.as_ref().is_some_and(|access| access.may_show_app(app));
                to_json(&read::list_apps(store, after, &is_shown).await?)
            }
            Operation::ShowApp => to_json(&read::show_app(store, &call.app()?).await?),
            Operation::UploadSource => to_json(&self.upload_source.upload(&call.json::<UploadSourceRequest>()?).await?),
            Operation::SyncApp => {
                let request: SyncAppRequest = call.json()?;
                to_json(&self.sync_app.sync(&call.app()?, &request.document).await?)
            }
            Operation::ListVersions => to_json(&read::list_versions(store, &call.app()?, after).await?),
            Operation::ShowVersion => {
                let (app, version): (AppName, Digest) = (call.app()?, call.version()?);
                to_json(&show_version(&self.versions, &app, &version).await?)
            }
            Operation::ShowInputsSchema => {
                let (app, version): (AppName, Digest) = (call.app()?, call.version()?);
                to_json(&show_inputs_schema(&self.versions, &app, &version).await?)
            }
            Operation::ShowContract => {
                let (app, version): (AppName, Digest) = (call.app()?, call.version()?);
                to_json(&show_contract(&self.versions, &app, &version).await?)
            }
            Operation::ShowTerms => to_json(&show_terms(store, &call.app()?, &call.terms()?).await?),
            Operation::BuildComponents => {
                let request: BuildComponentsRequest = call.json()?;
                let by = call.asked_by()?;
                to_json(&self.build_components.start(&call.app()?, &request, call.asked(&by)).await?)
            }
            Operation::ListBuilds => to_json(&read::list_builds(store, &call.app()?, after).await?),
            Operation::CreateInstall => {
                let request: CreateInstallRequest = call.json()?;
                let (install, workflow) = self.create_install.create(&request, &call.asked_by()?).await?;
                let install =
                    read::show_install(&self.versions, &install.id, now).await.map_err(AppError::after_change)?;
                to_json(&InstallCreated { install, workflow })
            }
            Operation::ListInstalls => {
                let is_shown =
                    |install: &Install| call.access.as_ref().is_some_and(|access| access.may_show_install(install));
                to_json(&read::list_installs(store, after, now, &is_shown).await?)
            }
            Operation::ShowInstall => {
                let install: InstallId = call.install()?;
                to_json(&match after {
                    None => read::show_install(&self.versions, &install, now).await?,
                    Some(_) => read::show_install_after(&self.versions, &install, after, now).await?,
                })
            }
            Operation::ShowInputs => {
                let install = table::install(store, &call.install()?).await?.value;
                to_json(&show_inputs(&self.versions, &install).await?)
            }
            Operation::SetInputs => {
                to_json(&self.set_inputs.set(&call.install()?, &call.json::<SetInputsRequest>()?).await?)
            }
            Operation::ShowToggles => {
                let install = table::install(store, &call.install()?).await?.value;
                to_json(&show_toggles(&self.versions, &install).await?)
            }
            Operation::SetToggles => {
                to_json(&self.set_toggles.set(&call.install()?, &call.json::<SetTogglesRequest>()?).await?)
            }
            Operation::SetApprovals => {
                let install: InstallId = call.install()?;
                self.set_approvals.set(&install, &call.json::<SetApprovalsRequest>()?).await?;
                to_json(&read::show_install(&self.versions, &install, now).await.map_err(AppError::after_change)?)
            }
            Operation::SetLabels => {
                let (install, by): (InstallId, _) = (call.install()?, call.asked_by()?);
                self.set_labels.set(&install, &call.json::<SetLabelsRequest>()?, &by).await?;
                to_json(&read::show_install(&self.versions, &install, now).await.map_err(AppError::after_change)?)
            }
            Operation::SetLicence => {
                let (install, by): (InstallId, _) = (call.install()?, call.asked_by()?);
                self.set_licence.set(&install, &call.json::<SetLicenceRequest>()?, &by).await?;
                to_json(&read::show_install(&self.versions, &install, now).await.map_err(AppError::after_change)?)
            }
            Operation::SetRelease => {
                let (install, by): (InstallId, _) = (call.install()?, call.asked_by()?);
                self.set_release.set(&install, &call.json::<SetReleaseRequest>()?, &by).await?;
                to_json(&read::show_install(&self.versions, &install, now).await.map_err(AppError::after_change)?)
            }
            Operation::RenderStack => to_json(&self.render_stack.render_stack(&call.install()?).await?),
            Operation::RenderStackOfVersion => {
                let (install, version): (InstallId, Digest) = (call.install()?, call.version()?);
                to_json(&self.render_stack.render_stack_of_version(&install, &version).await?)
            }
            Operation::DeployComponents => {
                let request: DeployComponentsRequest = call.json()?;
                let by = call.asked_by()?;
                let workflow = self.deploy_components.deploy(&call.install()?, &request, call.asked(&by)).await?;
                to_json(&WorkflowStarted { workflow, version: None, number: None })
            }
            Operation::RunAction => {
                let (install, request): (InstallId, RunActionRequest) = (call.install()?, call.json()?);
                let (action, by) = (call.action()?, call.asked_by()?);
                let asked = (RunTrigger::Request, call.asked(&by));
                to_json(&self.run_action.run(&install, &action, &request, asked).await?)
            }
            Operation::ListRunbooks => {
                let install = table::install(store, &call.install()?).await?.value;
                to_json(&read::list_runbooks(&self.versions, &install).await?)
            }
            Operation::RunRunbook => {
                let (install, request): (InstallId, RunRunbookRequest) = (call.install()?, call.json()?);
                let (runbook, by) = (call.runbook()?, call.asked_by()?);
                let run = self.run_runbook.run(&install, &runbook, &request, call.asked(&by)).await?;
                to_json(&read::run_view(&run))
            }
            Operation::ListRuns => to_json(&read::list_runs(store, &call.install()?, after).await?),
            Operation::ShowRun => to_json(&read::show_run(store, &call.run()?).await?),
            Operation::ResumeRun => {
                let (request, by): (ReasonRequest, _) = (call.json()?, call.asked_by()?);
                to_json(&read::run_view(&self.resume_run.resume(&call.run()?, &request, call.asked(&by)).await?))
            }
            Operation::CancelRun => {
                to_json(&read::run_view(&self.cancel_run.cancel(&call.run()?, &call.asked_by()?).await?))
            }
            Operation::TeardownInstall => {
                let (install, request): (InstallId, TeardownInstallRequest) = (call.install()?, call.json()?);
                let by = call.asked_by()?;
                let workflow = self.teardown_install.teardown(&install, &request, call.asked(&by)).await?;
                to_json(&WorkflowStarted { workflow, version: None, number: None })
            }
            Operation::UpgradeRunner => {
                let (install, request): (InstallId, UpgradeRunnerRequest) = (call.install()?, call.json()?);
                let by = call.asked_by()?;
                let workflow = self.upgrade_runner.upgrade_runner(&install, &request, call.asked(&by)).await?;
                to_json(&WorkflowStarted { workflow, version: None, number: None })
            }
            Operation::ListDrift => to_json(&read::list_drift(store, &call.install()?).await?),
            Operation::DetectDrift => {
                let (install, request): (InstallId, DetectDriftRequest) = (call.install()?, call.json()?);
                let by = call.asked_by()?;
                let workflow = self.detect_drift.detect(&install, &request, call.asked(&by)).await?;
                to_json(&WorkflowStarted { workflow, version: None, number: None })
            }
            Operation::AcknowledgeDrift => {
                let (install, request): (InstallId, AcknowledgeDriftRequest) = (call.install()?, call.json()?);
                self.acknowledge_drift.acknowledge(&install, &request, &call.asked_by()?).await?;
                to_json(&read::list_drift(store, &install).await.map_err(AppError::after_change)?)
            }
            Operation::IgnoreDrift => {
                let (install, request): (InstallId, IgnoreDriftRequest) = (call.install()?, call.json()?);
                self.ignore_drift.ignore(&install, &request, &call.asked_by()?).await?;
                to_json(&read::list_drift(store, &install).await.map_err(AppError::after_change)?)
            }
            Operation::CheckHealth => {
                let (install, request): (InstallId, CheckHealthRequest) = (call.install()?, call.json()?);
                let by = call.asked_by()?;
                let workflow = self.check_health.check(&install, &request, call.asked(&by)).await?;
                to_json(&WorkflowStarted { workflow, version: None, number: None })
            }
            Operation::ReportCheck => {
                let (install, component, check) = (call.install()?, call.component()?, call.check()?);
                let (request, by): (ReportCheckRequest, _) = (call.json()?, call.asked_by()?);
                to_json(&self.report_check.report(&install, (&component, &check), &request, &by).await?)
            }
            Operation::ShowHistory => to_json(&read::show_history(store, &call.install()?, after, now).await?),
            Operation::ListWorkflows => to_json(&read::list_workflows(store, &call.install()?, after).await?),
            Operation::ShowWorkflow => to_json(&read::show_workflow(store, &call.workflow()?, now).await?),
            Operation::CancelWorkflow => {
                let (id, request): (WorkflowId, CancelWorkflowRequest) = (call.workflow()?, call.json()?);
                self.cancel_workflow.cancel(&id, &request, &call.asked_by()?).await?;
                to_json(&read::show_workflow(store, &id, now).await.map_err(AppError::after_change)?)
            }
            Operation::ResumeWorkflow => {
                let (request, by): (ResumeWorkflowRequest, _) = (call.json()?, call.asked_by()?);
                let resumed = self.resume_workflow.resume(&call.workflow()?, &request, call.asked(&by)).await?;
                to_json(&read::workflow_view(&resumed))
            }
            Operation::SkipNode => {
                let (request, by): (SkipNodeRequest, _) = (call.json()?, call.asked_by()?);
                let skipped = self.skip_node.skip(&call.workflow()?, &request, call.asked(&by)).await?;
                to_json(&read::workflow_view(&skipped))
            }
            Operation::RetryJob => {
                let (request, by): (RetryJobRequest, _) = (call.json()?, call.asked_by()?);
                let retried = self.retry_job.retry(&call.job()?, &request, call.asked(&by)).await?;
                to_json(&read::workflow_view(&retried))
            }
            Operation::ShowJob => to_json(&read::show_job(store, &call.job()?, now).await?),
            Operation::CancelJob => {
                let (request, by): (CancelJobRequest, _) = (call.json()?, call.asked_by()?);
                to_json(&read::job_view(self.cancel_job.cancel(&call.job()?, &request, &by).await?, now))
            }
            Operation::ApproveJob => {
                let (job, request): (JobId, ApproveJobRequest) = (call.job()?, call.json()?);
                to_json(&read::job_view(self.approve_job.approve(&job, &request, &call.asked_by()?).await?, now))
            }
            Operation::RejectJob => {
                let (job, request): (JobId, RejectJobRequest) = (call.job()?, call.json()?);
                to_json(&read::job_view(self.reject_job.reject(&job, &request, &call.asked_by()?).await?, now))
            }
            Operation::ShowLineage => {
                to_json(&self.show_lineage.show(&call.artifact()?, call.only_install.as_ref(), after).await?)
            }
            Operation::RevokeArtifact => {
                to_json(&self.revoke_artifact.revoke(&call.artifact()?, &call.json::<ReasonRequest>()?).await?)
            }
            Operation::CreateRelease => {
                to_json(&self.create_release.create(&call.app()?, &call.json::<CreateReleaseRequest>()?).await?)
            }
            Operation::ListReleases => to_json(&read::list_releases(store, &call.app()?, after).await?),
            Operation::MoveChannel => {
                let (request, by): (MoveChannelRequest, _) = (call.json()?, call.asked_by()?);
                to_json(&self.move_channel.move_channel(&call.app()?, &call.channel()?, &request, &by).await?)
            }
            Operation::ListChannels => to_json(&read::list_channels(store, &call.app()?).await?),
            Operation::ShowRelease => to_json(&read::show_release(store, &call.app()?, &call.release()?).await?),
            Operation::DeleteInstall => {
                to_json(&self.delete_install.delete(&call.install()?, &call.asked_by()?).await?)
            }
            Operation::ForgetInstall => {
                let (install, request): (InstallId, ForgetInstallRequest) = (call.install()?, call.json()?);
                to_json(&self.forget_install.forget(&install, &request).await?)
            }
            Operation::DisableInstall => {
                let install: InstallId = call.install()?;
                self.disable_install.disable(&install, &call.json::<ReasonRequest>()?).await?;
                to_json(&read::show_install(&self.versions, &install, now).await.map_err(AppError::after_change)?)
            }
            Operation::EnableInstall => {
                let install: InstallId = call.install()?;
                self.enable_install.enable(&install).await?;
                to_json(&read::show_install(&self.versions, &install, now).await.map_err(AppError::after_change)?)
            }
            Operation::ListArtifacts => to_json(&self.list_artifacts.list(&call.app()?, after).await?),
            Operation::PruneArtifacts => to_json(&self.prune_artifacts.mark(&call.app()?).await?),
            Operation::AddSubscription => {
                to_json(&self.add_subscription.add(&call.json::<AddSubscriptionRequest>()?).await?)
            }
            Operation::ListSubscriptions => to_json(&list_subscriptions(&*self.subscriptions).await?),
            Operation::RemoveSubscription => {
                to_json(&self.remove_subscription.remove(&call.json::<RemoveSubscriptionRequest>()?).await?)
            }
            Operation::TestSubscriptions => {
                to_json(&self.test_subscriptions.test(&call.json::<TestSubscriptionsRequest>()?, &call.cause).await?)
            }
            Operation::AddWebhook => {
                to_json(&self.add_webhook.add(&call.json::<AddWebhookRequest>()?, &call.asked_by()?).await?)
            }
            Operation::ListWebhooks => to_json(&list_webhooks(store).await?),
            Operation::RemoveWebhook => to_json(&self.remove_webhook.remove(&call.webhook()?).await?),
            Operation::CallWebhook => {
                to_json(&self.call_webhook.call(&call.webhook()?, &call.webhook_headers()?, &call.body).await?)
            }
            Operation::ShowCaller => to_json(&show_caller(call.permitted()?).await),
            Operation::ListMembers => to_json(&list_members(store, after).await?),
            Operation::InviteMember => {
                let (request, by): (InviteMemberRequest, _) = (call.json()?, call.asked_by()?);
                let (groups, apps) = (request.groups.clone(), request.apps.clone());
                let given = SetMemberRequest { groups, apps, installs: request.installs.clone() };
                call.permitted()?.check_gives(&request.member, &given)?;
                to_json(&self.invite_member.invite(&request, new_code()?, &by).await?)
            }
            Operation::AcceptInvitation => {
                to_json(&self.accept_invitation.accept(&call.json::<AcceptInvitationRequest>()?, &call.who()?).await?)
            }
            Operation::SetMember => {
                let (request, by): (SetMemberRequest, _) = (call.json()?, call.asked_by()?);
                let member = call.member()?;
                call.permitted()?.check_gives(&member, &request)?;
                to_json(&self.set_member.set(&member, &request, &by).await?)
            }
            Operation::RemoveMember => to_json(&self.remove_member.remove(&call.member()?, &call.asked_by()?).await?),
            Operation::ShowPolicies => to_json(&show_policies(store).await?),
            Operation::SetPolicies => {
                to_json(&self.set_policies.set(&call.json::<SetPoliciesRequest>()?, &call.asked_by()?).await?)
            }
            Operation::TestAccess => {
                to_json(&self.test_access.test_for(call.permitted()?, &call.json::<TestAccessRequest>()?).await?)
            }
            Operation::ListLogs => to_json(&read::list_logs(store, &call.job()?, after).await?),
        }
    }
}

/// Draws the code of an invitation.
fn new_code() -> Result<String, AppError> {
    let mut random = [0; 32];
    getrandom::fill(&mut random)
        .map_err(|error| AppError::internal(format!("no random code can be drawn: {error}")))?;
    Ok(hex(&random))
}
