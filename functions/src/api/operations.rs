//! The operations of the API. Each operation parses the ids and the body, calls its use case and returns a view.

use freehold_app::AppError;
use freehold_app::app_version::create_release;
use freehold_app::app_version::show_inputs;
use freehold_app::app_version::show_toggles;
use freehold_app::app_version::show_version;
use freehold_app::contract::terms;
use freehold_app::read::{self, List};
use freehold_app::table::{self, AppRecord, ReleaseRecord, app_pk};
use freehold_app::workflow::build_components;
use freehold_domain::build::Build;
use freehold_domain::workflow::RunTrigger;
use freehold_protocol::api::{
    BuildComponentsRequest, CreateInstallRequest, CreateReleaseRequest, DeployComponentsRequest,
    EnrolBuildRunnerRequest, ForgetInstallRequest, InstallCreated, Page, ReasonRequest, RunActionRequest,
    SetInputsRequest, SetTogglesRequest, SyncAppRequest, TeardownInstallRequest, TenantView, UploadSourceRequest,
    WorkflowStarted,
};
use freehold_protocol::{AppName, Digest, InstallId, WorkflowId};

use super::routes::Operation;
use super::{Api, Call, to_json};

impl Api {
    /// Performs `operation` and returns its result as JSON.
    ///
    /// # Errors
    /// The errors of the use case.
    pub async fn operate(&self, operation: Operation, call: &Call) -> Result<String, AppError> {
        let store = &*self.store;
        match operation {
            Operation::ShowTenant => self.show_tenant().await,
            Operation::EnrolBuildRunner => {
                self.enrol_build_runner.enrol(&call.json::<EnrolBuildRunnerRequest>()?).await?;
                self.show_tenant().await
            }
            Operation::ListApps => {
                let page: Page<AppRecord> = read::page(store, "apps", List::Apps, call.after.as_deref()).await?;
                to_json(&map(page, read::app::app_view))
            }
            Operation::ShowApp => to_json(&read::app::app_view(table::app(store, &call.app()?).await?.value)),
            Operation::UploadSource => to_json(&self.upload_source.upload(&call.json::<UploadSourceRequest>()?).await?),
            Operation::SyncApp => {
                let request: SyncAppRequest = call.json()?;
                to_json(&self.sync.sync(&call.app()?, &request.document).await?)
            }
            Operation::ListVersions => to_json(&read::app::versions(store, &call.app()?, call.after.as_deref()).await?),
            Operation::ShowVersion => {
                let (app, version): (AppName, Digest) = (call.app()?, call.version()?);
                to_json(&show_version::show(&self.versions, &app, &version).await?)
            }
            Operation::ShowInputsSchema => {
                let (app, version): (AppName, Digest) = (call.app()?, call.version()?);
                to_json(&show_inputs::schema(&self.versions, &app, &version).await?)
            }
            Operation::ShowContract => {
                let (app, version): (AppName, Digest) = (call.app()?, call.version()?);
                to_json(&terms::show(&self.versions, &app, &version).await?)
            }
            Operation::ShowTerms => to_json(&terms::terms(store, &call.app()?, &call.terms()?).await?),
            Operation::BuildComponents => {
                let request: BuildComponentsRequest = call.json()?;
                to_json(&self.builds.start(&call.app()?, &request, &call.cause).await?)
            }
            Operation::ListBuilds => {
                let pk = app_pk(&call.app()?);
                let page: Page<Build> = read::page(store, &pk, List::Builds, call.after.as_deref()).await?;
                to_json(&map(page, |build| build_components::view(&build)))
            }
            Operation::CreateInstall => {
                let (install, workflow) = self.installs.create(&call.json::<CreateInstallRequest>()?).await?;
                let install = read::install::show(&self.versions, &install.id).await?;
                to_json(&InstallCreated { install, workflow })
            }
            Operation::ListInstalls => to_json(&read::install::list(store, call.after.as_deref()).await?),
            Operation::ShowInstall => to_json(&read::install::show(&self.versions, &call.install()?).await?),
            Operation::ShowInputs => {
                let install = table::install(store, &call.install()?).await?.value;
                to_json(&show_inputs::show(&self.versions, &install).await?)
            }
            Operation::SetInputs => {
                to_json(&self.inputs.set(&call.install()?, &call.json::<SetInputsRequest>()?).await?)
            }
            Operation::ShowToggles => {
                let install = table::install(store, &call.install()?).await?.value;
                to_json(&show_toggles::show(&self.versions, &install).await?)
            }
            Operation::SetToggles => {
                to_json(&self.toggles.set(&call.install()?, &call.json::<SetTogglesRequest>()?).await?)
            }
            Operation::RenderStack => to_json(&self.stacks.render(&call.install()?, None).await?),
            Operation::RenderStackOfVersion => {
                let (install, version): (InstallId, Digest) = (call.install()?, call.version()?);
                to_json(&self.stacks.render(&install, Some(&version)).await?)
            }
            Operation::DeployComponents => {
                let request: DeployComponentsRequest = call.json()?;
                let workflow = self.deploys.deploy(&call.install()?, &request, &call.cause).await?;
                to_json(&WorkflowStarted { workflow, version: None, number: None })
            }
            Operation::RunAction => {
                let (install, request): (InstallId, RunActionRequest) = (call.install()?, call.json()?);
                to_json(
                    &self.actions.run(&install, &call.action()?, &request, (RunTrigger::Request, &call.cause)).await?,
                )
            }
            Operation::TeardownInstall => {
                let (install, request): (InstallId, TeardownInstallRequest) = (call.install()?, call.json()?);
                let workflow = self.teardowns.teardown(&install, &request, &call.cause).await?;
                to_json(&WorkflowStarted { workflow, version: None, number: None })
            }
            Operation::ListWorkflows => {
                let install: InstallId = call.install()?;
                to_json(&read::workflow::list(store, &install, call.after.as_deref()).await?)
            }
            Operation::ShowWorkflow => {
                let workflow: WorkflowId = call.workflow()?;
                to_json(&read::workflow::view(&table::workflow(store, &workflow).await?.value))
            }
            Operation::CancelWorkflow => {
                to_json(&read::workflow::view(&self.cancel_workflow.cancel(&call.workflow()?).await?))
            }
            Operation::ShowJob => to_json(&read::job::show(store, &call.job()?).await?),
            Operation::CancelJob => to_json(&read::job::view(self.cancel_job.cancel(&call.job()?).await?)),
            Operation::ShowLineage => to_json(&self.lineage.show(&call.artifact()?, call.after.as_deref()).await?),
            Operation::RevokeArtifact => {
                to_json(&self.revoke_artifact.revoke(&call.artifact()?, &call.json::<ReasonRequest>()?).await?)
            }
            Operation::CreateRelease => {
                to_json(&self.releases.create(&call.app()?, &call.json::<CreateReleaseRequest>()?).await?)
            }
            Operation::ListReleases => {
                let pk = app_pk(&call.app()?);
                let page: Page<ReleaseRecord> = read::page(store, &pk, List::Releases, call.after.as_deref()).await?;
                to_json(&map(page, create_release::view))
            }
            Operation::ShowRelease => {
                let release = table::release(store, &call.app()?, &call.release()?).await?;
                to_json(&create_release::view(release))
            }
            Operation::DeleteInstall => to_json(&self.delete_install.delete(&call.install()?).await?),
            Operation::ForgetInstall => {
                let (install, request): (InstallId, ForgetInstallRequest) = (call.install()?, call.json()?);
                to_json(&self.forget_install.forget(&install, &request).await?)
            }
            Operation::DisableInstall => {
                let install: InstallId = call.install()?;
                self.disable_install.disable(&install, &call.json::<ReasonRequest>()?).await?;
                to_json(&read::install::show(&self.versions, &install).await?)
            }
            Operation::EnableInstall => {
                let install: InstallId = call.install()?;
                self.enable_install.enable(&install).await?;
                to_json(&read::install::show(&self.versions, &install).await?)
            }
            Operation::ListArtifacts => to_json(&self.unused.show(&call.app()?).await?),
            Operation::PruneArtifacts => to_json(&self.unused.mark(&call.app()?).await?),
            Operation::ListLogs => to_json(&read::job::logs(store, &call.job()?, call.after.as_deref()).await?),
        }
    }

    async fn show_tenant(&self) -> Result<String, AppError> {
        to_json(&TenantView {
            tenant: self.tenant.clone(),
            account: self.account.clone(),
            region: self.region.clone(),
            reports_queue_url: self.reports_queue_url.clone(),
            tenant_key: self.root.public_key().await?,
        })
    }
}

fn map<T, U>(page: Page<T>, view: impl Fn(T) -> U) -> Page<U> {
    Page { items: page.items.into_iter().map(view).collect(), next: page.next }
}
