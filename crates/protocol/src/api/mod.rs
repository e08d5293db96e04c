//! The `/v1` API: the requests of the command and the responses of the `api` function. Bodies are JSON. Times are
//! milliseconds since the epoch. Every POST request has the header `idempotency-key`.

mod access;
mod approvals;
mod apps;
mod artifacts;
mod builds;
mod channels;
mod continuation;
mod contracts;
mod drift;
mod errors;
mod health;
mod history;
mod inputs;
mod installs;
mod runbooks;
mod subscriptions;
mod toggles;
mod upgrade_runner;
mod webhooks;
mod workflows;

use serde::{Deserialize, Serialize};

use crate::envelope::PublicKey;
use crate::{AccountId, Shape, TenantName};

pub use access::{
    AcceptInvitationRequest, AccessView, CallerView, INVITATION_CODE, InviteMemberRequest, MemberInvited,
    MemberRemoved, MemberView, PoliciesView, SetMemberRequest, SetPoliciesRequest, TestAccessRequest,
};
pub use approvals::{ApprovalOption, ApproveJobRequest, PlanView, RejectJobRequest, SetApprovalsRequest};
pub use apps::{
    AppView, ResolvedSource, SourceUpload, SyncAppRequest, UploadSourceRequest, VersionDocument, VersionView,
};
pub use artifacts::{
    ArtifactView, ArtifactsView, CreateReleaseRequest, LineagePage, REASON, ReasonRequest, ReleaseView, Revoked,
};
pub use builds::{BuildComponentsRequest, BuildStarted, BuildView};
pub use channels::{ChannelView, Follows, MoveChannelRequest, SetReleaseRequest};
pub use continuation::{
    CancelJobRequest, CancelWorkflowRequest, ContinuationView, ResumeWorkflowRequest, RetryJobRequest, SkipNodeRequest,
    describe_act,
};
pub use contracts::ContractView;
pub use drift::{
    AcknowledgeDriftRequest, AcknowledgedView, DetectDriftRequest, DriftRuleView, DriftView, DriftedView,
    IgnoreDriftRequest, InstallDrift, PartDrift,
};
pub use errors::{ErrorBody, ErrorDetail, ErrorKind};
pub use health::{CHECK_URL, CheckHealthRequest, CheckResult, CheckView, ReportCheckRequest};
pub use history::HistoryEntry;
pub use inputs::{AnsweredBy, InputView, InputsSchema, InstallInputs, SetInputsRequest};
pub use installs::{
    ChangesView, ConnectionView, CreateInstallRequest, DeployedView, ForgetInstallRequest, ForgetStarted, HealthView,
    InstallCreated, InstallDeleted, InstallHealthView, InstallStack, InstallView, LeftoversView, LicenceView,
    PartialView, RolesView, RunnerView, SetLabelsRequest, SetLicenceRequest, SkippedView, WaitingPlan,
};
pub use runbooks::{InstallRunbooks, ResumedView, RunRunbookRequest, RunStepView, RunView, RunbookView};
pub use subscriptions::{
    AddSubscriptionRequest, RemoveSubscriptionRequest, SubscriptionView, SubscriptionsView, TestSent,
    TestSubscriptionsRequest,
};
pub use toggles::{InstallToggles, SetTogglesRequest, ToggleView, ToggledBy};
pub use upgrade_runner::UpgradeRunnerRequest;
pub use webhooks::{AddWebhookRequest, CallWebhookRequest, WebhookCalled, WebhookTask, WebhookView, WebhooksView};
pub use workflows::{
    DeployComponentsRequest, HistoryView, JobView, LogChunk, LogPage, NodeView, RolledBackView, RunActionRequest,
    TeardownInstallRequest, WorkflowStarted, WorkflowView,
};

/// The header that makes a POST request idempotent. Its value has 1 to 128 visible ASCII characters, and a client sends
/// the same value when it repeats the request. The repeated request gets the answer of the first one if it was kept, and
/// is performed again otherwise.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// The form of the value of the header [`IDEMPOTENCY_KEY`].
pub const IDEMPOTENCY_KEY_SHAPE: Shape = Shape::Visible { max: 128 };

/// `GET /v1/tenant`: the facts about the tenant that a runner or the command needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TenantView {
    pub tenant: TenantName,
    pub account: AccountId,
    pub region: String,
    pub reports_queue_url: String,
    /// The public half of the tenant's root key. Runners verify all orders with it.
    pub tenant_key: PublicKey,
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "PageOf{T}"))]
pub struct Page<T> {
    pub items: Vec<T>,
    /// The value of the parameter `after` for the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}
