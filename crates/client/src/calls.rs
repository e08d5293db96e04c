//! The calls of all operations as values, and the methods of [`Client`] that send them. Both, and the table of
//! [`routes`], are made of one list.

use std::any::type_name;

use freehold_protocol::api::{
    AcceptInvitationRequest, AccessView, AcknowledgeDriftRequest, AddSubscriptionRequest, AddWebhookRequest, AppView,
    ApproveJobRequest, ArtifactsView, BuildComponentsRequest, BuildStarted, BuildView, CallerView, CancelJobRequest,
    CancelWorkflowRequest, ChannelView, CheckHealthRequest, CheckView, ContractView, CreateInstallRequest,
    CreateReleaseRequest, DeployComponentsRequest, DetectDriftRequest, ForgetInstallRequest, ForgetStarted,
    HistoryEntry, IgnoreDriftRequest, InputsSchema, InstallCreated, InstallDeleted, InstallDrift, InstallInputs,
    InstallRunbooks, InstallStack, InstallToggles, InstallView, InviteMemberRequest, JobView, LineagePage, LogPage,
    MemberInvited, MemberRemoved, MemberView, MoveChannelRequest, Page, PoliciesView, ReasonRequest, RejectJobRequest,
    ReleaseView, RemoveSubscriptionRequest, ReportCheckRequest, ResumeWorkflowRequest, RetryJobRequest, Revoked,
    RunActionRequest, RunRunbookRequest, RunView, SetApprovalsRequest, SetInputsRequest, SetLabelsRequest,
    SetLicenceRequest, SetMemberRequest, SetPoliciesRequest, SetReleaseRequest, SetTogglesRequest, SkipNodeRequest,
    SourceUpload, SubscriptionView, SubscriptionsView, SyncAppRequest, TeardownInstallRequest, TenantView,
    TestAccessRequest, TestSent, TestSubscriptionsRequest, UpgradeRunnerRequest, UploadSourceRequest, VersionDocument,
    VersionView, WebhookView, WebhooksView, WorkflowStarted, WorkflowView,
};
use freehold_protocol::contract::Terms;
use freehold_protocol::{
    ActionName, AppName, ChannelName, CheckName, ComponentName, Digest, InstallId, JobId, MemberName, ReleaseName,
    RunId, RunbookName, WebhookName, WorkflowId,
};

use crate::call::{Call, Route};
use crate::client::Client;
use crate::error::Error;
use crate::webhook;

macro_rules! type_of {
    () => {
        None
    };
    ($type:ty) => {
        Some(type_name::<$type>)
    };
}

macro_rules! calls {
    ($(
        $(#[$doc:meta])*
        $operation:ident: $method:ident $path:literal
            $name:ident($($parameter:ident: $type:ty),*) $(sends $request:ty)? => $answer:ty;
    )*) => {
        const ROUTES: &[Route] = &[$(
            Route {
                operation: stringify!($operation),
                method: stringify!($method),
                path: $path,
                parameters: &[$(stringify!($parameter)),*],
                request: type_of!($($request)?),
                answer: type_name::<$answer>,
            },
        )*];

        $(
            $(#[$doc])*
            pub fn $name($($parameter: &$type,)* $(request: &$request)?) -> Call<$answer> {
                Call::new(stringify!($method), $path, &[$($parameter.to_string()),*])
                    $(.with_body::<$request>(request))?
            }
        )*

        impl Client {$(
            $(#[$doc])*
            ///
            /// # Errors
            /// Those of [`Client::send`].
            pub async fn $name(
                &self,
                $($parameter: &$type,)*
                $(request: &$request)?
            ) -> Result<$answer, Error> {
                self.send(&$name($($parameter,)* $(request as &$request)?)).await
            }
        )*}
    };
}

/// Returns the table of all operations.
pub fn routes() -> impl Iterator<Item = Route> {
    ROUTES.iter().copied().chain([webhook::ROUTE])
}

calls! {
    /// The tenant, its reports queue and its root key.
    ShowTenant: GET "/v1/tenant" show_tenant() => TenantView;
    /// Registers the tenant's build runner.
    EnrolBuildRunner: POST "/v1/build-runner" enrol_build_runner() => TenantView;
    /// Apps and their latest versions.
    ListApps: GET "/v1/apps" list_apps() => Page<AppView>;
    /// An app and its latest version.
    ShowApp: GET "/v1/apps/{app}" show_app(app: AppName) => AppView;
    /// Returns a URL for the upload of a packed source directory.
    UploadSource: POST "/v1/apps/{app}/sources" upload_source(app: AppName) sends UploadSourceRequest => SourceUpload;
    /// Syncs an app version.
    SyncApp: POST "/v1/apps/{app}/versions" sync_app(app: AppName) sends SyncAppRequest => VersionView;
    /// Versions of an app, newest first.
    ListVersions: GET "/v1/apps/{app}/versions" list_versions(app: AppName) => Page<VersionView>;
    /// A version with its document.
    ShowVersion: GET "/v1/apps/{app}/versions/{version}" show_version(app: AppName, version: Digest)
        => VersionDocument;
    /// The JSON Schema of a version's inputs.
    ShowInputsSchema: GET "/v1/apps/{app}/versions/{version}/inputs-schema"
        show_inputs_schema(app: AppName, version: Digest)
        => InputsSchema;
    /// The contract of a version: what it may do in a customer's account, with the tenant's signature.
    ShowContract: GET "/v1/apps/{app}/versions/{version}/contract" show_contract(app: AppName, version: Digest)
        => ContractView;
    /// Terms that a customer agreed to, by digest.
    ShowTerms: GET "/v1/apps/{app}/terms/{terms}" show_terms(app: AppName, terms: Digest) => Terms;
    /// Builds components that have no artifact.
    BuildComponents: POST "/v1/apps/{app}/builds" build_components(app: AppName)
        sends BuildComponentsRequest => BuildStarted;
    /// Builds of an app.
    ListBuilds: GET "/v1/apps/{app}/builds" list_builds(app: AppName) => Page<BuildView>;
    /// Creates an install and starts its provisioning.
    CreateInstall: POST "/v1/installs" create_install() sends CreateInstallRequest => InstallCreated;
    /// Installs.
    ListInstalls: GET "/v1/installs" list_installs() => Page<InstallView>;
    /// An install and its deployed components.
    ShowInstall: GET "/v1/installs/{install}" show_install(install: InstallId) => InstallView;
    /// The inputs of an install.
    ShowInputs: GET "/v1/installs/{install}/inputs" show_inputs(install: InstallId) => InstallInputs;
    /// Changes the vendor's inputs of an install.
    SetInputs: POST "/v1/installs/{install}/inputs" set_inputs(install: InstallId)
        sends SetInputsRequest => InstallInputs;
    /// The toggleable components of an install, and which of them it leaves out.
    ShowToggles: GET "/v1/installs/{install}/toggles" show_toggles(install: InstallId) => InstallToggles;
    /// Switches components of an install on or off.
    SetToggles: POST "/v1/installs/{install}/toggles" set_toggles(install: InstallId)
        sends SetTogglesRequest => InstallToggles;
    /// Sets whether plans of an install wait until somebody at the vendor approves them.
    SetApprovals: POST "/v1/installs/{install}/approvals" set_approvals(install: InstallId)
        sends SetApprovalsRequest => InstallView;
    /// Sets and removes labels of an install.
    SetLabels: POST "/v1/installs/{install}/labels" set_labels(install: InstallId)
        sends SetLabelsRequest => InstallView;
    /// Sets or withdraws the licence of an install.
    SetLicence: POST "/v1/installs/{install}/licence" set_licence(install: InstallId)
        sends SetLicenceRequest => InstallView;
    /// Pins an install to a release, or lets it follow a channel or the latest version.
    SetRelease: POST "/v1/installs/{install}/release" set_release(install: InstallId)
        sends SetReleaseRequest => InstallView;
    /// The CloudFormation template to launch.
    RenderStack: GET "/v1/installs/{install}/stack" render_stack(install: InstallId) => InstallStack;
    /// The CloudFormation template for another version of the app.
    RenderStackOfVersion: GET "/v1/installs/{install}/stacks/{version}"
        render_stack_of_version(install: InstallId, version: Digest)
        => InstallStack;
    /// Deploys changed components and those that depend on them.
    DeployComponents: POST "/v1/installs/{install}/deploys" deploy_components(install: InstallId)
        sends DeployComponentsRequest => WorkflowStarted;
    /// Runs an action.
    RunAction: POST "/v1/installs/{install}/actions/{action}/runs" run_action(install: InstallId, action: ActionName)
        sends RunActionRequest => WorkflowStarted;
    /// The runbooks that can be run in an install, with their inputs and steps.
    ListRunbooks: GET "/v1/installs/{install}/runbooks" list_runbooks(install: InstallId) => InstallRunbooks;
    /// Runs a runbook.
    RunRunbook: POST "/v1/installs/{install}/runbooks/{runbook}/runs"
        run_runbook(install: InstallId, runbook: RunbookName)
        sends RunRunbookRequest => RunView;
    /// Runs of runbooks, newest first, without steps.
    ListRuns: GET "/v1/installs/{install}/runs" list_runs(install: InstallId) => Page<RunView>;
    /// A run of a runbook and its steps.
    ShowRun: GET "/v1/runs/{run}" show_run(run: RunId) => RunView;
    /// Resumes a run: repeats the step that failed or was cancelled, then runs the remaining steps.
    ResumeRun: POST "/v1/runs/{run}/resume" resume_run(run: RunId) sends ReasonRequest => RunView;
    /// Cancels a run: its running step, and the steps after it.
    CancelRun: POST "/v1/runs/{run}/cancel" cancel_run(run: RunId) => RunView;
    /// Removes what is deployed: all of it, a component with its dependents, or the sandbox.
    TeardownInstall: POST "/v1/installs/{install}/teardown" teardown_install(install: InstallId)
        sends TeardownInstallRequest => WorkflowStarted;
    /// Replaces the program of the install's runner by one of a signed release.
    UpgradeRunner: POST "/v1/installs/{install}/upgrade" upgrade_runner(install: InstallId)
        sends UpgradeRunnerRequest => WorkflowStarted;
    /// The drift that checks found, and the rules that ignore some of it.
    ListDrift: GET "/v1/installs/{install}/drift" list_drift(install: InstallId) => InstallDrift;
    /// Checks deployed parts for drift, and changes nothing.
    DetectDrift: POST "/v1/installs/{install}/drift" detect_drift(install: InstallId)
        sends DetectDriftRequest => WorkflowStarted;
    /// States that a difference is known and stays.
    AcknowledgeDrift: POST "/v1/installs/{install}/drift/acknowledge" acknowledge_drift(install: InstallId)
        sends AcknowledgeDriftRequest => InstallDrift;
    /// Adds, replaces or removes a rule that ignores drift.
    IgnoreDrift: POST "/v1/installs/{install}/drift/ignore" ignore_drift(install: InstallId)
        sends IgnoreDriftRequest => InstallDrift;
    /// Checks whether deployed components are healthy, and changes nothing.
    CheckHealth: POST "/v1/installs/{install}/health" check_health(install: InstallId)
        sends CheckHealthRequest => WorkflowStarted;
    /// Reports the result of a required check of a component.
    ReportCheck: POST "/v1/installs/{install}/components/{component}/checks/{check}"
        report_check(install: InstallId, component: ComponentName, check: CheckName)
        sends ReportCheckRequest => CheckView;
    /// Events of an install, newest first.
    ShowHistory: GET "/v1/installs/{install}/history" show_history(install: InstallId) => Page<HistoryEntry>;
    /// Workflows, newest first.
    ListWorkflows: GET "/v1/installs/{install}/workflows" list_workflows(install: InstallId) => Page<WorkflowView>;
    /// A workflow and its nodes.
    ShowWorkflow: GET "/v1/workflows/{workflow}" show_workflow(workflow: WorkflowId) => WorkflowView;
    /// Cancels a workflow.
    CancelWorkflow: POST "/v1/workflows/{workflow}/cancel" cancel_workflow(workflow: WorkflowId)
        sends CancelWorkflowRequest => WorkflowView;
    /// Resumes a workflow that has ended: runs what failed and what was not reached.
    ResumeWorkflow: POST "/v1/workflows/{workflow}/resume" resume_workflow(workflow: WorkflowId)
        sends ResumeWorkflowRequest => WorkflowView;
    /// Lets a workflow that has ended continue without one of its failed nodes.
    SkipNode: POST "/v1/workflows/{workflow}/skip" skip_node(workflow: WorkflowId)
        sends SkipNodeRequest => WorkflowView;
    /// A job and its history.
    ShowJob: GET "/v1/jobs/{job}" show_job(job: JobId) => JobView;
    /// Cancels a job.
    CancelJob: POST "/v1/jobs/{job}/cancel" cancel_job(job: JobId) sends CancelJobRequest => JobView;
    /// Retries a failed job of a workflow that has ended, and runs what was not reached because of it.
    RetryJob: POST "/v1/jobs/{job}/retry" retry_job(job: JobId) sends RetryJobRequest => WorkflowView;
    /// Approves the plan for which a job waits.
    ApproveJob: POST "/v1/jobs/{job}/approve" approve_job(job: JobId) sends ApproveJobRequest => JobView;
    /// Rejects the plan for which a job waits, and ends the job.
    RejectJob: POST "/v1/jobs/{job}/reject" reject_job(job: JobId) sends RejectJobRequest => JobView;
    /// A job's log.
    ListLogs: GET "/v1/jobs/{job}/logs" list_logs(job: JobId) => LogPage;
    /// Which builds made an artifact, and which installs use it.
    ShowLineage: GET "/v1/artifacts/{artifact}/lineage" show_lineage(artifact: Digest) => LineagePage;
    /// Revokes an artifact.
    RevokeArtifact: POST "/v1/artifacts/{artifact}/revoke" revoke_artifact(artifact: Digest)
        sends ReasonRequest => Revoked;
    /// Creates a release of an app.
    CreateRelease: POST "/v1/apps/{app}/releases" create_release(app: AppName)
        sends CreateReleaseRequest => ReleaseView;
    /// Releases of an app.
    ListReleases: GET "/v1/apps/{app}/releases" list_releases(app: AppName) => Page<ReleaseView>;
    /// A release and its artifacts.
    ShowRelease: GET "/v1/apps/{app}/releases/{release}" show_release(app: AppName, release: ReleaseName)
        => ReleaseView;
    /// Moves a channel to a release, and deploys the installs that follow it.
    MoveChannel: POST "/v1/apps/{app}/channels/{channel}" move_channel(app: AppName, channel: ChannelName)
        sends MoveChannelRequest => ChannelView;
    /// Channels of an app.
    ListChannels: GET "/v1/apps/{app}/channels" list_channels(app: AppName) => Vec<ChannelView>;
    /// Deletes an install in which nothing ever ran.
    DeleteInstall: POST "/v1/installs/{install}/delete" delete_install(install: InstallId) => InstallDeleted;
    /// Removes everything that the tenant stores about an install in which nothing is deployed any more.
    ForgetInstall: POST "/v1/installs/{install}/forget" forget_install(install: InstallId)
        sends ForgetInstallRequest => ForgetStarted;
    /// Disables an install.
    DisableInstall: POST "/v1/installs/{install}/disable" disable_install(install: InstallId)
        sends ReasonRequest => InstallView;
    /// Enables a disabled install again.
    EnableInstall: POST "/v1/installs/{install}/enable" enable_install(install: InstallId) => InstallView;
    /// Artifacts of an app, and the reasons why they are kept.
    ListArtifacts: GET "/v1/apps/{app}/artifacts" list_artifacts(app: AppName) => ArtifactsView;
    /// Marks unused artifacts for removal.
    PruneArtifacts: POST "/v1/apps/{app}/artifacts/prune" prune_artifacts(app: AppName) => ArtifactsView;
    /// Adds a subscription to notifications.
    AddSubscription: POST "/v1/subscriptions" add_subscription() sends AddSubscriptionRequest => SubscriptionView;
    /// Subscriptions to notifications.
    ListSubscriptions: GET "/v1/subscriptions" list_subscriptions() => SubscriptionsView;
    /// Removes a subscription.
    RemoveSubscription: POST "/v1/subscriptions/remove" remove_subscription()
        sends RemoveSubscriptionRequest => SubscriptionsView;
    /// Sends a test notification.
    TestSubscriptions: POST "/v1/subscriptions/test" test_subscriptions() sends TestSubscriptionsRequest => TestSent;
    /// Adds a webhook.
    AddWebhook: POST "/v1/webhooks" add_webhook() sends AddWebhookRequest => WebhookView;
    /// Webhooks.
    ListWebhooks: GET "/v1/webhooks" list_webhooks() => WebhooksView;
    /// Removes a webhook.
    RemoveWebhook: POST "/v1/webhooks/{webhook}/remove" remove_webhook(webhook: WebhookName) => WebhooksView;
    /// Who the caller is to the tenant, and what the caller may do in it.
    ShowCaller: GET "/v1/caller" show_caller() => CallerView;
    /// Members of the tenant, and who is invited.
    ListMembers: GET "/v1/members" list_members() => Page<MemberView>;
    /// Invites a member.
    InviteMember: POST "/v1/members" invite_member() sends InviteMemberRequest => MemberInvited;
    /// Replaces the groups, apps and installs of a member.
    SetMember: POST "/v1/members/{member}" set_member(member: MemberName) sends SetMemberRequest => MemberView;
    /// Removes a member or an invitation.
    RemoveMember: POST "/v1/members/{member}/remove" remove_member(member: MemberName) => MemberRemoved;
    /// Accepts an invitation by its code.
    AcceptInvitation: POST "/v1/invitations/accept" accept_invitation() sends AcceptInvitationRequest => CallerView;
    /// The policies that decide who may do what.
    ShowPolicies: GET "/v1/access/policies" show_policies() => PoliciesView;
    /// Replaces the policies.
    SetPolicies: POST "/v1/access/policies" set_policies() sends SetPoliciesRequest => PoliciesView;
    /// Asks whether the policies permit an action, and performs nothing.
    TestAccess: POST "/v1/access/test" test_access() sends TestAccessRequest => AccessView;
}
