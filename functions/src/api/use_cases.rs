//! The use cases of the API with their ports.

use std::sync::Arc;

use freehold_app::access::accept_invitation::AcceptInvitation;
use freehold_app::access::invite_member::InviteMember;
use freehold_app::access::remove_member::RemoveMember;
use freehold_app::access::set_member::SetMember;
use freehold_app::access::set_policies::SetPolicies;
use freehold_app::access::test_access::TestAccess;
use freehold_app::access::{Authorize, ParsedPolicies};
use freehold_app::app_config::sync_app::SyncApp;
use freehold_app::app_config::upload_source::UploadSource;
use freehold_app::app_version::versions::Versions;
use freehold_app::artifact::list_artifacts::ListArtifacts;
use freehold_app::artifact::prune_artifacts::UnusedArtifacts;
use freehold_app::artifact::revoke_artifact::RevokeArtifact;
use freehold_app::artifact::show_lineage::ShowLineage;
use freehold_app::drift::acknowledge_drift::AcknowledgeDrift;
use freehold_app::drift::detect_drift::DetectDrift;
use freehold_app::drift::ignore_drift::IgnoreDrift;
use freehold_app::health::check_health::CheckHealth;
use freehold_app::health::report_check::ReportCheck;
use freehold_app::idempotency::IdempotentRequests;
use freehold_app::install::create_install::CreateInstall;
use freehold_app::install::delete_install::DeleteInstall;
use freehold_app::install::disable_install::DisableInstall;
use freehold_app::install::enable_install::EnableInstall;
use freehold_app::install::enrol_build_runner::EnrolBuildRunner;
use freehold_app::install::forget_install::ForgetInstall;
use freehold_app::install::set_approvals::SetApprovals;
use freehold_app::install::set_inputs::SetInputs;
use freehold_app::install::set_labels::SetLabels;
use freehold_app::install::set_licence::SetLicence;
use freehold_app::install::set_release::SetRelease;
use freehold_app::install::set_toggles::SetToggles;
use freehold_app::install::upgrade_runner::UpgradeRunner;
use freehold_app::notification::add_subscription::AddSubscription;
use freehold_app::notification::remove_subscription::RemoveSubscription;
use freehold_app::notification::test_subscriptions::TestSubscriptions;
use freehold_app::ports::{Clock, Machines, NotificationTopic, RootKey, Store, Subscriptions};
use freehold_app::read::ShowTenant;
use freehold_app::release::create_release::CreateRelease;
use freehold_app::release::move_channel::MoveChannel;
use freehold_app::runbook::advance_run::AdvanceRun;
use freehold_app::runbook::cancel_run::CancelRun;
use freehold_app::runbook::resume_run::ResumeRun;
use freehold_app::runbook::run_runbook::RunRunbook;
use freehold_app::stack::render_stack::{RenderStack, RunnerProgram};
use freehold_app::webhook::add_webhook::AddWebhook;
use freehold_app::webhook::call_webhook::CallWebhook;
use freehold_app::webhook::remove_webhook::RemoveWebhook;
use freehold_app::workflow::approval::approve_job::ApproveJob;
use freehold_app::workflow::approval::reject_job::RejectJob;
use freehold_app::workflow::build_components::BuildComponents;
use freehold_app::workflow::cancel_job::CancelJob;
use freehold_app::workflow::cancel_workflow::CancelWorkflow;
use freehold_app::workflow::continuation::resume_workflow::ResumeWorkflow;
use freehold_app::workflow::continuation::retry_job::RetryJob;
use freehold_app::workflow::continuation::skip_node::SkipNode;
use freehold_app::workflow::deploy_components::DeployComponents;
use freehold_app::workflow::run_action::RunAction;
use freehold_app::workflow::teardown_install::TeardownInstall;
use freehold_protocol::{AccountId, TenantName};
use lambda_runtime::Error;

use super::entrance::Issuers;
use super::router::Routes;
use crate::settings::{Settings, runner_program, variable};

/// The API of one tenant.
pub struct Api {
    pub(super) tenant: TenantName,
    pub(super) routes: Routes,
    pub(super) store: Arc<dyn Store>,
    pub(super) versions: Versions,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) requests: IdempotentRequests,
    pub(super) show_tenant: ShowTenant,
    pub(super) upload_source: UploadSource,
    pub(super) sync_app: SyncApp,
    pub(super) enrol_build_runner: EnrolBuildRunner,
    pub(super) build_components: BuildComponents,
    pub(super) create_install: CreateInstall,
    pub(super) set_approvals: SetApprovals,
    pub(super) set_inputs: SetInputs,
    pub(super) set_labels: SetLabels,
    pub(super) set_licence: SetLicence,
    pub(super) set_toggles: SetToggles,
    pub(super) deploy_components: DeployComponents,
    pub(super) run_action: RunAction,
    pub(super) run_runbook: RunRunbook,
    pub(super) resume_run: ResumeRun,
    pub(super) cancel_run: CancelRun,
    pub(super) teardown_install: TeardownInstall,
    pub(super) upgrade_runner: UpgradeRunner,
    pub(super) detect_drift: DetectDrift,
    pub(super) acknowledge_drift: AcknowledgeDrift,
    pub(super) ignore_drift: IgnoreDrift,
    pub(super) check_health: CheckHealth,
    pub(super) report_check: ReportCheck,
    pub(super) render_stack: RenderStack,
    pub(super) cancel_workflow: CancelWorkflow,
    pub(super) cancel_job: CancelJob,
    pub(super) resume_workflow: ResumeWorkflow,
    pub(super) retry_job: RetryJob,
    pub(super) skip_node: SkipNode,
    pub(super) approve_job: ApproveJob,
    pub(super) reject_job: RejectJob,
    pub(super) show_lineage: ShowLineage,
    pub(super) create_release: CreateRelease,
    pub(super) move_channel: MoveChannel,
    pub(super) set_release: SetRelease,
    pub(super) delete_install: DeleteInstall,
    pub(super) forget_install: ForgetInstall,
    pub(super) disable_install: DisableInstall,
    pub(super) enable_install: EnableInstall,
    pub(super) revoke_artifact: RevokeArtifact,
    pub(super) list_artifacts: ListArtifacts,
    pub(super) prune_artifacts: UnusedArtifacts,
    pub(super) subscriptions: Arc<dyn Subscriptions>,
    pub(super) add_subscription: AddSubscription,
    pub(super) remove_subscription: RemoveSubscription,
    pub(super) test_subscriptions: TestSubscriptions,
    pub(super) add_webhook: AddWebhook,
    pub(super) remove_webhook: RemoveWebhook,
    pub(super) call_webhook: CallWebhook,
    pub(super) issuers: Issuers,
    pub(super) authorize: Authorize,
    pub(super) invite_member: InviteMember,
    pub(super) accept_invitation: AcceptInvitation,
    pub(super) set_member: SetMember,
    pub(super) remove_member: RemoveMember,
    pub(super) set_policies: SetPolicies,
    pub(super) test_access: TestAccess,
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Api({})", self.tenant)
    }
}

/// The ports of the API, and the settings of the tenant.
pub struct Ports {
    pub tenant: TenantName,
    /// The tenant's own account.
    pub account: AccountId,
    pub region: String,
    pub store: Arc<dyn Store>,
    pub versions: Versions,
    pub clock: Arc<dyn Clock>,
    pub machines: Arc<dyn Machines>,
    pub root: Arc<dyn RootKey>,
    pub subscriptions: Arc<dyn Subscriptions>,
    pub topic: Arc<dyn NotificationTopic>,
    pub reports_queue_url: String,
    pub build_queue_url: String,
    /// Whether the tenant stack starts a machine when there is something to build.
    pub has_build_machine: bool,
    /// Whether the API accepts calls of webhooks.
    pub takes_webhooks: bool,
    pub runner: Option<RunnerProgram>,
    pub issuers: Issuers,
}

impl Ports {
    /// Returns the adapters that the settings describe.
    ///
    /// # Errors
    /// When a setting is missing in the environment or is invalid.
    pub fn of(settings: &Settings) -> Result<Self, Error> {
        let store = settings.store()?;
        // Both are empty in a stack without the issuer.
        let [people, pipelines] =
            ["FREEHOLD_PEOPLE_ISSUER", "FREEHOLD_PIPELINE_ISSUER"].map(|name| variable(name).unwrap_or_default());
        Ok(Self {
            tenant: settings.tenant.clone(),
            account: settings.account()?,
            region: variable("AWS_REGION")?,
            versions: settings.versions(&store)?,
            store,
            clock: settings.clock(),
            machines: settings.machines()?,
            root: settings.signer(&[])?,
            subscriptions: settings.subscriptions()?,
            topic: settings.topic()?,
            reports_queue_url: variable("FREEHOLD_REPORTS_QUEUE_URL")?,
            build_queue_url: variable("FREEHOLD_BUILD_QUEUE_URL")?,
            has_build_machine: settings.build_machine().is_some(),
            takes_webhooks: variable("FREEHOLD_WEBHOOKS").is_ok_and(|set| set == "on"),
            runner: runner_program(),
            issuers: Issuers { people, pipelines },
        })
    }
}

impl Api {
    /// Returns the API with these ports.
    ///
    /// # Errors
    /// When two routes conflict.
    pub fn new(ports: Ports) -> Result<Self, Error> {
        let Ports { tenant, account, region, store, versions, clock, machines, root, subscriptions, topic, .. } = ports;
        let Ports { reports_queue_url, build_queue_url, has_build_machine, takes_webhooks, runner, issuers, .. } =
            ports;
        let policies = ParsedPolicies::default();
        let advance = AdvanceRun::new(Arc::clone(&store), versions.clone(), machines.clone(), Arc::clone(&clock));
        let deploy_components = DeployComponents {
            store: Arc::clone(&store),
            versions: versions.clone(),
            machines: machines.clone(),
            clock: Arc::clone(&clock),
        };
        let run_action = RunAction {
            store: Arc::clone(&store),
            versions: versions.clone(),
            machines: machines.clone(),
            clock: Arc::clone(&clock),
        };
        let run_runbook = RunRunbook { advance: advance.clone() };
        let move_channel = MoveChannel { store: Arc::clone(&store), clock: Arc::clone(&clock) };
        Ok(Self {
            tenant: tenant.clone(),
            routes: Routes::new()?,
            requests: IdempotentRequests { store: Arc::clone(&store), clock: Arc::clone(&clock) },
            upload_source: UploadSource { versions: versions.clone() },
            sync_app: SyncApp { versions: versions.clone(), clock: Arc::clone(&clock) },
            enrol_build_runner: EnrolBuildRunner {
                account: account.clone(),
                region: region.clone(),
                build_queue_url,
                store: Arc::clone(&store),
                clock: Arc::clone(&clock),
            },
            build_components: BuildComponents {
                store: Arc::clone(&store),
                versions: versions.clone(),
                machines: machines.clone(),
                has_build_machine,
                clock: Arc::clone(&clock),
            },
            create_install: CreateInstall {
                store: Arc::clone(&store),
                versions: versions.clone(),
                machines: machines.clone(),
                clock: Arc::clone(&clock),
            },
            set_approvals: SetApprovals { store: Arc::clone(&store) },
            set_labels: SetLabels { store: Arc::clone(&store) },
            set_licence: SetLicence { store: Arc::clone(&store), clock: Arc::clone(&clock) },
            set_inputs: SetInputs { store: Arc::clone(&store), versions: versions.clone(), clock: Arc::clone(&clock) },
            set_toggles: SetToggles {
                store: Arc::clone(&store),
                versions: versions.clone(),
                clock: Arc::clone(&clock),
            },
            deploy_components: deploy_components.clone(),
            upgrade_runner: UpgradeRunner {
                store: Arc::clone(&store),
                machines: machines.clone(),
                clock: Arc::clone(&clock),
            },
            detect_drift: DetectDrift {
                store: Arc::clone(&store),
                versions: versions.clone(),
                machines: machines.clone(),
                clock: Arc::clone(&clock),
            },
            check_health: CheckHealth {
                store: Arc::clone(&store),
                versions: versions.clone(),
                machines: machines.clone(),
                clock: Arc::clone(&clock),
            },
            report_check: ReportCheck {
                store: Arc::clone(&store),
                versions: versions.clone(),
                clock: Arc::clone(&clock),
            },
            acknowledge_drift: AcknowledgeDrift { store: Arc::clone(&store), clock: Arc::clone(&clock) },
            ignore_drift: IgnoreDrift { store: Arc::clone(&store), clock: Arc::clone(&clock) },
            teardown_install: TeardownInstall {
                store: Arc::clone(&store),
                versions: versions.clone(),
                machines: machines.clone(),
                clock: Arc::clone(&clock),
            },
            run_action: run_action.clone(),
            run_runbook: run_runbook.clone(),
            resume_run: ResumeRun { advance: advance.clone() },
            cancel_run: CancelRun { advance },
            resume_workflow: ResumeWorkflow {
                versions: versions.clone(),
                machines: machines.clone(),
                clock: Arc::clone(&clock),
            },
            retry_job: RetryJob { versions: versions.clone(), machines: machines.clone(), clock: Arc::clone(&clock) },
            skip_node: SkipNode { versions: versions.clone(), machines, clock: Arc::clone(&clock) },
            render_stack: RenderStack {
                tenant: tenant.clone(),
                account: account.clone(),
                region: region.clone(),
                reports_queue_url: reports_queue_url.clone(),
                runner,
                store: Arc::clone(&store),
                versions: versions.clone(),
                root: root.clone(),
            },
            create_release: CreateRelease {
                store: Arc::clone(&store),
                versions: versions.clone(),
                clock: Arc::clone(&clock),
            },
            move_channel: move_channel.clone(),
            add_webhook: AddWebhook { store: Arc::clone(&store), clock: Arc::clone(&clock), are_on: takes_webhooks },
            remove_webhook: RemoveWebhook { store: Arc::clone(&store) },
            call_webhook: CallWebhook {
                store: Arc::clone(&store),
                clock: Arc::clone(&clock),
                deploy_components,
                run_action,
                run_runbook,
                move_channel,
                are_on: takes_webhooks,
            },
            set_release: SetRelease { store: Arc::clone(&store), clock: Arc::clone(&clock) },
            forget_install: ForgetInstall {
                store: Arc::clone(&store),
                clock: Arc::clone(&clock),
                tenant: tenant.clone(),
            },
            delete_install: DeleteInstall {
                store: Arc::clone(&store),
                clock: Arc::clone(&clock),
                tenant: tenant.clone(),
            },
            disable_install: DisableInstall { store: Arc::clone(&store) },
            enable_install: EnableInstall { store: Arc::clone(&store) },
            revoke_artifact: RevokeArtifact { store: Arc::clone(&store) },
            list_artifacts: ListArtifacts { versions: versions.clone(), clock: Arc::clone(&clock) },
            prune_artifacts: UnusedArtifacts {
                store: Arc::clone(&store),
                versions: versions.clone(),
                clock: Arc::clone(&clock),
            },
            add_subscription: AddSubscription { store: Arc::clone(&store), subscriptions: Arc::clone(&subscriptions) },
            remove_subscription: RemoveSubscription { subscriptions: Arc::clone(&subscriptions) },
            test_subscriptions: TestSubscriptions { store: Arc::clone(&store), topic, clock: Arc::clone(&clock) },
            subscriptions,
            cancel_workflow: CancelWorkflow { store: Arc::clone(&store), clock: Arc::clone(&clock) },
            approve_job: ApproveJob { store: Arc::clone(&store), clock: Arc::clone(&clock) },
            reject_job: RejectJob { store: Arc::clone(&store), clock: Arc::clone(&clock) },
            cancel_job: CancelJob { store: Arc::clone(&store), clock: Arc::clone(&clock) },
            show_lineage: ShowLineage { tenant: tenant.clone(), store: Arc::clone(&store), root: root.clone() },
            show_tenant: ShowTenant { tenant: tenant.clone(), account, region, reports_queue_url, root },
            authorize: Authorize { tenant, store: Arc::clone(&store), policies: policies.clone() },
            invite_member: InviteMember {
                store: Arc::clone(&store),
                clock: Arc::clone(&clock),
                policies: policies.clone(),
            },
            accept_invitation: AcceptInvitation {
                store: Arc::clone(&store),
                clock: Arc::clone(&clock),
                policies: policies.clone(),
            },
            set_member: SetMember { store: Arc::clone(&store), clock: Arc::clone(&clock), policies: policies.clone() },
            remove_member: RemoveMember {
                store: Arc::clone(&store),
                clock: Arc::clone(&clock),
                policies: policies.clone(),
            },
            set_policies: SetPolicies { store: Arc::clone(&store), clock: Arc::clone(&clock) },
            test_access: TestAccess { store: Arc::clone(&store), policies },
            issuers,
            clock,
            store,
            versions,
        })
    }
}
