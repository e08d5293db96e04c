//! The table of routes, with one entry per operation. The OpenAPI document is generated from the same table.

use freehold_app::read::List;

/// An operation of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    ShowTenant,
    EnrolBuildRunner,
    ListApps,
    ShowApp,
    UploadSource,
    SyncApp,
    ListVersions,
    ShowVersion,
    ShowInputsSchema,
    ShowContract,
    ShowTerms,
    BuildComponents,
    ListBuilds,
    CreateInstall,
    ListInstalls,
    ShowInstall,
    ShowInputs,
    SetInputs,
    ShowToggles,
    SetToggles,
    SetApprovals,
    SetLabels,
    SetLicence,
    SetRelease,
    RenderStack,
    RenderStackOfVersion,
    DeployComponents,
    RunAction,
    ListRunbooks,
    RunRunbook,
    ListRuns,
    ShowRun,
    ResumeRun,
    CancelRun,
    TeardownInstall,
    UpgradeRunner,
    ListDrift,
    DetectDrift,
    AcknowledgeDrift,
    IgnoreDrift,
    CheckHealth,
    ReportCheck,
    ShowHistory,
    ListWorkflows,
    ShowWorkflow,
    CancelWorkflow,
    ResumeWorkflow,
    SkipNode,
    ShowJob,
    CancelJob,
    RetryJob,
    ApproveJob,
    RejectJob,
    ListLogs,
    ShowLineage,
    RevokeArtifact,
    CreateRelease,
    ListReleases,
    ShowRelease,
    MoveChannel,
    ListChannels,
    DeleteInstall,
    ForgetInstall,
    DisableInstall,
    EnableInstall,
    ListArtifacts,
    PruneArtifacts,
    AddSubscription,
    ListSubscriptions,
    RemoveSubscription,
    TestSubscriptions,
    AddWebhook,
    ListWebhooks,
    RemoveWebhook,
    CallWebhook,
    ShowCaller,
    ListMembers,
    InviteMember,
    SetMember,
    RemoveMember,
    AcceptInvitation,
    ShowPolicies,
    SetPolicies,
    TestAccess,
}

impl Operation {
    /// Returns the list of which the operation returns one page, or `None` when it returns no page of a list.
    pub const fn list(self) -> Option<List> {
        match self {
            Self::ListApps => Some(List::Apps),
            Self::ListVersions => Some(List::Versions),
            Self::ListBuilds | Self::ListArtifacts => Some(List::Builds),
            Self::ListReleases => Some(List::Releases),
            Self::ListInstalls => Some(List::Installs),
            Self::ShowInstall => Some(List::Components),
            Self::ListWorkflows | Self::ShowHistory => Some(List::Workflows),
            Self::ListRuns => Some(List::Runs),
            Self::ListLogs => Some(List::Logs),
            Self::ShowLineage => Some(List::Uses),
            Self::ListMembers => Some(List::Members),
            Self::ShowTenant
            | Self::EnrolBuildRunner
            | Self::ShowApp
            | Self::UploadSource
            | Self::SyncApp
            | Self::ShowVersion
            | Self::ShowInputsSchema
            | Self::ShowContract
            | Self::ShowTerms
            | Self::BuildComponents
            | Self::CreateInstall
            | Self::ShowInputs
            | Self::SetInputs
            | Self::ShowToggles
            | Self::SetToggles
            | Self::SetApprovals
            | Self::SetLabels
            | Self::SetLicence
            | Self::SetRelease
            | Self::RenderStack
            | Self::RenderStackOfVersion
            | Self::DeployComponents
            | Self::RunAction
            | Self::ListRunbooks
            | Self::RunRunbook
            | Self::ShowRun
            | Self::ResumeRun
            | Self::CancelRun
            | Self::TeardownInstall
            | Self::UpgradeRunner
            | Self::ListDrift
            | Self::DetectDrift
            | Self::AcknowledgeDrift
            | Self::IgnoreDrift
            | Self::CheckHealth
            | Self::ReportCheck
            | Self::ShowWorkflow
            | Self::CancelWorkflow
            | Self::ResumeWorkflow
            | Self::SkipNode
            | Self::ShowJob
            | Self::CancelJob
            | Self::RetryJob
            | Self::ApproveJob
            | Self::RejectJob
            | Self::RevokeArtifact
            | Self::CreateRelease
            | Self::ShowRelease
            | Self::MoveChannel
            | Self::ListChannels
            | Self::DeleteInstall
            | Self::ForgetInstall
            | Self::DisableInstall
            | Self::EnableInstall
            | Self::PruneArtifacts
            | Self::AddSubscription
            | Self::ListSubscriptions
            | Self::RemoveSubscription
            | Self::TestSubscriptions
            | Self::AddWebhook
            | Self::ListWebhooks
            | Self::RemoveWebhook
            | Self::CallWebhook
            | Self::ShowCaller
            | Self::InviteMember
            | Self::SetMember
            | Self::RemoveMember
            | Self::AcceptInvitation
            | Self::ShowPolicies
            | Self::SetPolicies
            | Self::TestAccess => None,
        }
    }

    /// Returns whether the operation accepts requests without an IAM principal, and itself verifies a signature.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::CallWebhook)
    }

    /// Returns whether the query parameter `install` limits the response to one install.
    pub const fn is_by_install(self) -> bool {
        matches!(self, Self::ShowLineage)
    }
}

/// One route: the method and path of an operation, and its summary in the OpenAPI document.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    pub operation: Operation,
    pub method: &'static str,
    pub path: &'static str,
    pub summary: &'static str,
}

const fn route(operation: Operation, method: &'static str, path: &'static str, summary: &'static str) -> Route {
    Route { operation, method, path, summary }
}

/// All routes.
pub const ROUTES: [Route; 84] = [
    route(Operation::ShowTenant, "GET", "/v1/tenant", "The tenant, its reports queue and its root key"),
    route(Operation::EnrolBuildRunner, "POST", "/v1/build-runner", "Registers the tenant's build runner"),
    route(Operation::ListApps, "GET", "/v1/apps", "Apps and their latest versions"),
    route(Operation::ShowApp, "GET", "/v1/apps/{app}", "An app and its latest version"),
    route(
        Operation::UploadSource,
        "POST",
        "/v1/apps/{app}/sources",
        "Returns a URL for the upload of a packed source directory",
    ),
    route(Operation::SyncApp, "POST", "/v1/apps/{app}/versions", "Syncs an app version"),
    route(Operation::ListVersions, "GET", "/v1/apps/{app}/versions", "Versions of an app, newest first"),
    route(Operation::ShowVersion, "GET", "/v1/apps/{app}/versions/{version}", "A version with its document"),
    route(
        Operation::ShowInputsSchema,
        "GET",
        "/v1/apps/{app}/versions/{version}/inputs-schema",
        "The JSON Schema of a version's inputs",
    ),
    route(
        Operation::ShowContract,
        "GET",
        "/v1/apps/{app}/versions/{version}/contract",
        "The contract of a version: what it may do in a customer's account, with the tenant's signature",
    ),
    route(Operation::ShowTerms, "GET", "/v1/apps/{app}/terms/{terms}", "Terms that a customer agreed to, by digest"),
    route(Operation::BuildComponents, "POST", "/v1/apps/{app}/builds", "Builds components that have no artifact"),
    route(Operation::ListBuilds, "GET", "/v1/apps/{app}/builds", "Builds of an app"),
    route(Operation::CreateInstall, "POST", "/v1/installs", "Creates an install and starts its provisioning"),
    route(Operation::ListInstalls, "GET", "/v1/installs", "Installs"),
    route(Operation::ShowInstall, "GET", "/v1/installs/{install}", "An install and its deployed components"),
    route(Operation::ShowInputs, "GET", "/v1/installs/{install}/inputs", "The inputs of an install"),
    route(Operation::SetInputs, "POST", "/v1/installs/{install}/inputs", "Changes the vendor's inputs of an install"),
    route(
        Operation::ShowToggles,
        "GET",
        "/v1/installs/{install}/toggles",
        "The toggleable components of an install, and which of them it leaves out",
    ),
    route(
        Operation::SetToggles,
        "POST",
        "/v1/installs/{install}/toggles",
        "Switches components of an install on or off",
    ),
    route(
        Operation::SetApprovals,
        "POST",
        "/v1/installs/{install}/approvals",
        "Sets whether plans of an install wait until somebody at the vendor approves them",
    ),
    route(Operation::SetLabels, "POST", "/v1/installs/{install}/labels", "Sets and removes labels of an install"),
    route(
        Operation::SetLicence,
        "POST",
        "/v1/installs/{install}/licence",
        "Sets or withdraws the licence of an install",
    ),
    route(
        Operation::SetRelease,
        "POST",
        "/v1/installs/{install}/release",
        "Pins an install to a release, or lets it follow a channel or the latest version",
    ),
    route(Operation::RenderStack, "GET", "/v1/installs/{install}/stack", "The CloudFormation template to launch"),
    route(
        Operation::RenderStackOfVersion,
        "GET",
        "/v1/installs/{install}/stacks/{version}",
        "The CloudFormation template for another version of the app",
    ),
    route(
        Operation::DeployComponents,
        "POST",
        "/v1/installs/{install}/deploys",
        "Deploys changed components and those that depend on them",
    ),
    route(Operation::RunAction, "POST", "/v1/installs/{install}/actions/{action}/runs", "Runs an action"),
    route(
        Operation::ListRunbooks,
        "GET",
        "/v1/installs/{install}/runbooks",
        "The runbooks that can be run in an install, with their inputs and steps",
    ),
    route(Operation::RunRunbook, "POST", "/v1/installs/{install}/runbooks/{runbook}/runs", "Runs a runbook"),
    route(Operation::ListRuns, "GET", "/v1/installs/{install}/runs", "Runs of runbooks, newest first, without steps"),
    route(Operation::ShowRun, "GET", "/v1/runs/{run}", "A run of a runbook and its steps"),
    route(
        Operation::ResumeRun,
        "POST",
        "/v1/runs/{run}/resume",
        "Resumes a run: repeats the step that failed or was cancelled, then runs the remaining steps",
    ),
    route(
        Operation::CancelRun,
        "POST",
        "/v1/runs/{run}/cancel",
        "Cancels a run: its running step, and the steps after it",
    ),
    route(
        Operation::TeardownInstall,
        "POST",
        "/v1/installs/{install}/teardown",
        "Removes what is deployed: all of it, a component with its dependents, or the sandbox",
    ),
    route(
        Operation::UpgradeRunner,
        "POST",
        "/v1/installs/{install}/upgrade",
        "Replaces the program of the install's runner by one of a signed release",
    ),
    route(
        Operation::ListDrift,
        "GET",
        "/v1/installs/{install}/drift",
        "The drift that checks found, and the rules that ignore some of it",
    ),
    route(
        Operation::DetectDrift,
        "POST",
        "/v1/installs/{install}/drift",
        "Checks deployed parts for drift, and changes nothing",
    ),
    route(
        Operation::AcknowledgeDrift,
        "POST",
        "/v1/installs/{install}/drift/acknowledge",
        "States that a difference is known and stays",
    ),
    route(
        Operation::IgnoreDrift,
        "POST",
        "/v1/installs/{install}/drift/ignore",
        "Adds, replaces or removes a rule that ignores drift",
    ),
    route(
        Operation::CheckHealth,
        "POST",
        "/v1/installs/{install}/health",
        "Checks whether deployed components are healthy, and changes nothing",
    ),
    route(
        Operation::ReportCheck,
        "POST",
        "/v1/installs/{install}/components/{component}/checks/{check}",
        "Reports the result of a required check of a component",
    ),
    route(Operation::ShowHistory, "GET", "/v1/installs/{install}/history", "Events of an install, newest first"),
    route(Operation::ListWorkflows, "GET", "/v1/installs/{install}/workflows", "Workflows, newest first"),
    route(Operation::ShowWorkflow, "GET", "/v1/workflows/{workflow}", "A workflow and its nodes"),
    route(Operation::CancelWorkflow, "POST", "/v1/workflows/{workflow}/cancel", "Cancels a workflow"),
    route(
        Operation::ResumeWorkflow,
        "POST",
        "/v1/workflows/{workflow}/resume",
        "Resumes a workflow that has ended: runs what failed and what was not reached",
    ),
    route(
        Operation::SkipNode,
        "POST",
        "/v1/workflows/{workflow}/skip",
        "Lets a workflow that has ended continue without one of its failed nodes",
    ),
    route(Operation::ShowJob, "GET", "/v1/jobs/{job}", "A job and its history"),
    route(Operation::CancelJob, "POST", "/v1/jobs/{job}/cancel", "Cancels a job"),
    route(
        Operation::RetryJob,
        "POST",
        "/v1/jobs/{job}/retry",
        "Retries a failed job of a workflow that has ended, and runs what was not reached because of it",
    ),
    route(Operation::ApproveJob, "POST", "/v1/jobs/{job}/approve", "Approves the plan for which a job waits"),
    route(
        Operation::RejectJob,
        "POST",
        "/v1/jobs/{job}/reject",
        "Rejects the plan for which a job waits, and ends the job",
    ),
    route(Operation::ListLogs, "GET", "/v1/jobs/{job}/logs", "A job's log"),
    route(
        Operation::ShowLineage,
        "GET",
        "/v1/artifacts/{artifact}/lineage",
        "Which builds made an artifact, and which installs use it",
    ),
    route(Operation::RevokeArtifact, "POST", "/v1/artifacts/{artifact}/revoke", "Revokes an artifact"),
    route(Operation::CreateRelease, "POST", "/v1/apps/{app}/releases", "Creates a release of an app"),
    route(Operation::ListReleases, "GET", "/v1/apps/{app}/releases", "Releases of an app"),
    route(Operation::ShowRelease, "GET", "/v1/apps/{app}/releases/{release}", "A release and its artifacts"),
    route(
        Operation::MoveChannel,
        "POST",
        "/v1/apps/{app}/channels/{channel}",
        "Moves a channel to a release, and deploys the installs that follow it",
    ),
    route(Operation::ListChannels, "GET", "/v1/apps/{app}/channels", "Channels of an app"),
    route(
        Operation::DeleteInstall,
        "POST",
        "/v1/installs/{install}/delete",
        "Deletes an install in which nothing ever ran",
    ),
    route(
        Operation::ForgetInstall,
        "POST",
        "/v1/installs/{install}/forget",
        "Removes everything that the tenant stores about an install in which nothing is deployed any more",
    ),
    route(Operation::DisableInstall, "POST", "/v1/installs/{install}/disable", "Disables an install"),
    route(Operation::EnableInstall, "POST", "/v1/installs/{install}/enable", "Enables a disabled install again"),
    route(
        Operation::ListArtifacts,
        "GET",
        "/v1/apps/{app}/artifacts",
        "Artifacts of an app, and the reasons why they are kept",
    ),
    route(Operation::PruneArtifacts, "POST", "/v1/apps/{app}/artifacts/prune", "Marks unused artifacts for removal"),
    route(Operation::AddSubscription, "POST", "/v1/subscriptions", "Adds a subscription to notifications"),
    route(Operation::ListSubscriptions, "GET", "/v1/subscriptions", "Subscriptions to notifications"),
    route(Operation::RemoveSubscription, "POST", "/v1/subscriptions/remove", "Removes a subscription"),
    route(Operation::TestSubscriptions, "POST", "/v1/subscriptions/test", "Sends a test notification"),
    route(Operation::AddWebhook, "POST", "/v1/webhooks", "Adds a webhook"),
    route(Operation::ListWebhooks, "GET", "/v1/webhooks", "Webhooks"),
    route(Operation::RemoveWebhook, "POST", "/v1/webhooks/{webhook}/remove", "Removes a webhook"),
    route(
        Operation::CallWebhook,
        "POST",
        "/v1/webhooks/{webhook}/calls",
        "Receives a call of a webhook, signed by its key instead of by an IAM principal",
    ),
    route(
        Operation::ShowCaller,
        "GET",
        "/v1/caller",
        "Who the caller is to the tenant, and what the caller may do in it",
    ),
    route(Operation::ListMembers, "GET", "/v1/members", "Members of the tenant, and who is invited"),
    route(Operation::InviteMember, "POST", "/v1/members", "Invites a member"),
    route(Operation::SetMember, "POST", "/v1/members/{member}", "Replaces the groups, apps and installs of a member"),
    route(Operation::RemoveMember, "POST", "/v1/members/{member}/remove", "Removes a member or an invitation"),
    route(Operation::AcceptInvitation, "POST", "/v1/invitations/accept", "Accepts an invitation by its code"),
    route(Operation::ShowPolicies, "GET", "/v1/access/policies", "The policies that decide who may do what"),
    route(Operation::SetPolicies, "POST", "/v1/access/policies", "Replaces the policies"),
    route(
        Operation::TestAccess,
        "POST",
        "/v1/access/test",
        "Asks whether the policies permit an action, and performs nothing",
    ),
];
