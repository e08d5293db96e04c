//! The HTTP API: parses a request, performs its operation and writes the response. The use cases are in the crate
//! `app`.

mod caller;
mod idempotency;
#[cfg(feature = "openapi")]
pub mod openapi;
#[cfg(feature = "openapi")]
mod openapi_description;
pub mod operations;
mod placeholders;
mod router;
pub mod routes;

use std::sync::Arc;

use aws_lambda_events::encodings::Body;
use aws_lambda_events::event::apigw::{
    ApiGatewayV2httpRequest, ApiGatewayV2httpRequestContext, ApiGatewayV2httpResponse,
};
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
use freehold_app::ports::{Clock, Store, Subscriptions};
use freehold_app::read::ShowTenant;
use freehold_app::release::create_release::CreateRelease;
use freehold_app::release::move_channel::MoveChannel;
use freehold_app::runbook::advance_run::AdvanceRun;
use freehold_app::runbook::cancel_run::CancelRun;
use freehold_app::runbook::resume_run::ResumeRun;
use freehold_app::runbook::run_runbook::RunRunbook;
use freehold_app::stack::render_stack::RenderStack;
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
use freehold_app::{AppError, Kind};
use freehold_protocol::api::{ErrorBody, ErrorDetail, IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_SHAPE};
use freehold_protocol::limits::{MAX_REQUEST_BYTES, MAX_VERSION_REQUEST_BYTES};
use freehold_protocol::webhook::CallHeaders;
use freehold_protocol::{InstallId, TenantName, webhook};
use http::{HeaderMap, HeaderValue};
use lambda_runtime::Error;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::log_failure;
use crate::settings::{Settings, runner_program, variable};
use router::Routes;
use routes::Operation;

/// The API of one tenant.
pub struct Api {
    tenant: TenantName,
    routes: Routes,
    store: Arc<dyn Store>,
    versions: Versions,
    clock: Arc<dyn Clock>,
    requests: IdempotentRequests,
    show_tenant: ShowTenant,
    upload_source: UploadSource,
    sync_app: SyncApp,
    enrol_build_runner: EnrolBuildRunner,
    build_components: BuildComponents,
    create_install: CreateInstall,
    set_approvals: SetApprovals,
    set_inputs: SetInputs,
    set_labels: SetLabels,
    set_licence: SetLicence,
    set_toggles: SetToggles,
    deploy_components: DeployComponents,
    run_action: RunAction,
    run_runbook: RunRunbook,
    resume_run: ResumeRun,
    cancel_run: CancelRun,
    teardown_install: TeardownInstall,
    upgrade_runner: UpgradeRunner,
    detect_drift: DetectDrift,
    acknowledge_drift: AcknowledgeDrift,
    ignore_drift: IgnoreDrift,
    check_health: CheckHealth,
    report_check: ReportCheck,
    render_stack: RenderStack,
    cancel_workflow: CancelWorkflow,
    cancel_job: CancelJob,
    resume_workflow: ResumeWorkflow,
    retry_job: RetryJob,
    skip_node: SkipNode,
    approve_job: ApproveJob,
    reject_job: RejectJob,
    show_lineage: ShowLineage,
    create_release: CreateRelease,
    move_channel: MoveChannel,
    set_release: SetRelease,
    delete_install: DeleteInstall,
    forget_install: ForgetInstall,
    disable_install: DisableInstall,
    enable_install: EnableInstall,
    revoke_artifact: RevokeArtifact,
    list_artifacts: ListArtifacts,
    prune_artifacts: UnusedArtifacts,
    subscriptions: Arc<dyn Subscriptions>,
    add_subscription: AddSubscription,
    remove_subscription: RemoveSubscription,
    test_subscriptions: TestSubscriptions,
    add_webhook: AddWebhook,
    remove_webhook: RemoveWebhook,
    call_webhook: CallWebhook,
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Api({})", self.tenant)
    }
}

/// One parsed request.
#[derive(Debug, Default)]
pub struct Call {
    /// The values of the route's placeholders.
    pub path: Vec<(String, String)>,
    /// The cursor after which a page of a list begins; `None` for the first page.
    pub after: Option<String>,
    /// The only install that the response is about; `None` for all installs.
    pub only_install: Option<InstallId>,
    pub body: String,
    /// The idempotency key of the request; empty for a GET request, and for a call of a webhook, which has an id.
    /// Before the request is performed, it is replaced by the cause from which the ids of what it starts are derived.
    pub cause: String,
    /// The ARN of the caller as the API's authorizer wrote it; `None` when no IAM authorizer has authenticated the request.
    pub caller: Option<String>,
    /// The headers by which a call of a webhook is signed, in the order of their names in `freehold_protocol::webhook`.
    pub webhook: [Option<String>; 3],
}

impl Call {
    /// Returns the headers by which a call of a webhook is signed.
    ///
    /// # Errors
    /// Unauthorized, with the header that is missing or has another form.
    pub fn webhook_headers(&self) -> Result<CallHeaders, AppError> {
        let [id, timestamp, signature] = self.webhook.each_ref().map(Option::as_deref);
        CallHeaders::parse(id, timestamp, signature)
            .map_err(|error| AppError::new(Kind::Unauthorized, error.to_string()))
    }

    /// Returns the body as `T`.
    ///
    /// # Errors
    /// Invalid, with the position of the mistake in the body.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, AppError> {
        // The parser also reads the values of an array as the fields of an object, in their order.
        if self.body.trim_start().starts_with('[') {
            return Err(AppError::invalid(
                "request body is an array, and this route needs an object; see docs/openapi.json",
            ));
        }
        serde_json::from_str(&self.body)
            .map_err(|e| AppError::invalid(format!("request body does not fit this route: {e}; see docs/openapi.json")))
    }
}

/// Returns the ARN of the request's caller as the authorizer wrote it. Requests that no IAM authorizer has authenticated
/// have none.
fn caller_of(context: &ApiGatewayV2httpRequestContext) -> Option<String> {
    context.authorizer.as_ref()?.iam.as_ref()?.user_arn.clone()
}

impl Api {
    /// Returns the API with the adapters that the settings describe.
    ///
    /// # Errors
    /// When a setting is missing in the environment or is invalid.
    pub fn new(settings: &Settings) -> Result<Self, Error> {
        let (store, clock, machines) = (settings.store()?, settings.clock(), settings.machines()?);
        let (account, region) = (settings.account()?, variable("AWS_REGION")?);
        let reports_queue_url = variable("FREEHOLD_REPORTS_QUEUE_URL")?;
        let (root, versions) = (settings.signer(&[])?, settings.versions(&store)?);
        let subscriptions: Arc<dyn Subscriptions> = settings.subscriptions()?;
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
        let takes_webhooks = variable("FREEHOLD_WEBHOOKS").is_ok_and(|set| set == "on");
        let move_channel = MoveChannel { store: Arc::clone(&store), clock: Arc::clone(&clock) };
        Ok(Self {
            tenant: settings.tenant.clone(),
            routes: Routes::new()?,
            clock: Arc::clone(&clock),
            requests: IdempotentRequests { store: Arc::clone(&store), clock: Arc::clone(&clock) },
            upload_source: UploadSource { versions: versions.clone() },
            sync_app: SyncApp { versions: versions.clone(), clock: Arc::clone(&clock) },
            enrol_build_runner: EnrolBuildRunner {
                account: account.clone(),
                region: region.clone(),
                build_queue_url: variable("FREEHOLD_BUILD_QUEUE_URL")?,
                store: Arc::clone(&store),
                clock: Arc::clone(&clock),
            },
            build_components: BuildComponents {
                store: Arc::clone(&store),
                versions: versions.clone(),
                machines: machines.clone(),
                has_build_machine: settings.build_machine().is_some(),
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
                tenant: settings.tenant.clone(),
                account: account.clone(),
                region: region.clone(),
                reports_queue_url: reports_queue_url.clone(),
                runner: runner_program(),
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
                tenant: settings.tenant.clone(),
            },
            delete_install: DeleteInstall {
                store: Arc::clone(&store),
                clock: Arc::clone(&clock),
                tenant: settings.tenant.clone(),
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
            test_subscriptions: TestSubscriptions {
                store: Arc::clone(&store),
                topic: settings.topic()?,
                clock: Arc::clone(&clock),
            },
            subscriptions,
            cancel_workflow: CancelWorkflow { store: Arc::clone(&store), clock: Arc::clone(&clock) },
            approve_job: ApproveJob { store: Arc::clone(&store), clock: Arc::clone(&clock) },
            reject_job: RejectJob { store: Arc::clone(&store), clock: Arc::clone(&clock) },
            cancel_job: CancelJob { store: Arc::clone(&store), clock },
            show_lineage: ShowLineage {
                tenant: settings.tenant.clone(),
                store: Arc::clone(&store),
                root: root.clone(),
            },
            show_tenant: ShowTenant { tenant: settings.tenant.clone(), account, region, reports_queue_url, root },
            store,
            versions,
        })
    }

    /// Returns the response to one request. The body of every error response is an [`ErrorBody`].
    pub async fn answer(&self, request: ApiGatewayV2httpRequest) -> ApiGatewayV2httpResponse {
        match self.perform(request).await {
            Ok(body) => response(200, body),
            Err(error) => {
                log_failure("request refused", &error);
                let detail = ErrorDetail { kind: error.kind, message: error.message, soon: error.soon };
                response(error.kind.status(), serde_json::to_string(&ErrorBody { error: detail }).unwrap_or_default())
            }
        }
    }

    async fn perform(&self, request: ApiGatewayV2httpRequest) -> Result<String, AppError> {
        let method = request.request_context.http.method.as_str().to_owned();
        let path = request.raw_path.clone().unwrap_or_default();
        let (operation, parameters) = self.routes.find(&method, &path)?;
        let after = match operation.list() {
            Some(list) => list.place(request.query_string_parameters.first("after"))?.map(str::to_owned),
            None => None,
        };
        let only_install = match request.query_string_parameters.first("install") {
            Some(install) if operation.is_by_install() => {
                Some(install.parse().map_err(|e| AppError::invalid(format!("query parameter `install`: {e}")))?)
            }
            Some(_) | None => None,
        };
        let caller = caller_of(&request.request_context);
        operation.check_caller(caller.as_deref())?;
        let id = request.request_context.request_id.clone().unwrap_or_default();
        let call = Call {
            path: parameters,
            after,
            only_install,
            cause: if operation.is_open() { String::new() } else { idempotency_key(&method, &request.headers)? },
            caller,
            webhook: [webhook::ID, webhook::TIMESTAMP, webhook::SIGNATURE].map(|name| header(&request.headers, name)),
            body: body_of(request, longest_body(operation))?,
        };
        call.check_placeholders()?;
        self.perform_once(operation, call, (&path, &id)).await
    }
}

/// Returns `answer` as JSON.
fn to_json<T: Serialize>(answer: &T) -> Result<String, AppError> {
    Ok(serde_json::to_string(answer)?)
}

/// Returns the maximum size of a request's body, in bytes.
const fn longest_body(operation: Operation) -> usize {
    if matches!(operation, Operation::SyncApp) {
        MAX_VERSION_REQUEST_BYTES
    } else if matches!(operation, Operation::CallWebhook) {
        webhook::MAX_BODY_BYTES
    } else {
        MAX_REQUEST_BYTES
    }
}

/// Returns the only value of a header; `None` when it is missing, repeated or not text.
fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    let mut values = headers.get_all(name).iter();
    let only = values.next().filter(|_| values.next().is_none());
    only.and_then(|value| value.to_str().ok()).map(str::to_owned)
}

fn body_of(request: ApiGatewayV2httpRequest, most: usize) -> Result<String, AppError> {
    let body = request.body.unwrap_or_default();
    if body.len() > most {
        return Err(AppError::invalid(format!(
            "request body has {} bytes, more than the maximum of {most}; send less",
            body.len()
        )));
    }
    if !request.is_base64_encoded {
        return Ok(body);
    }
    let bytes = freehold_protocol::envelope::decode_base64(&body)
        .map_err(|_| AppError::invalid("request body is marked as base64 but is not base64"))?;
    String::from_utf8(bytes).map_err(|_| AppError::invalid("request body is not UTF-8 text"))
}

fn idempotency_key(method: &str, headers: &HeaderMap) -> Result<String, AppError> {
    if method != "POST" {
        return Ok(String::new());
    }
    let key = headers.get(IDEMPOTENCY_KEY).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if IDEMPOTENCY_KEY_SHAPE.accepts(key) {
        return Ok(key.to_owned());
    }
    Err(AppError::invalid(format!(
        "every POST needs the header `{IDEMPOTENCY_KEY}` with 1 to 128 visible ASCII characters; send the same value \
         again only to repeat the same request"
    )))
}

fn response(status: u16, body: String) -> ApiGatewayV2httpResponse {
    let mut response = ApiGatewayV2httpResponse::default();
    response.status_code = i64::from(status);
    response.headers.insert("content-type", HeaderValue::from_static("application/json"));
    response.body = Some(Body::Text(body));
    response
}

#[cfg(test)]
mod tests {
    use freehold_protocol::api::TestSubscriptionsRequest;

    use super::Call;

    #[test]
    fn an_array_is_not_read_as_an_object() {
        let read = |body: &str| Call { body: body.to_owned(), ..Call::default() }.json::<TestSubscriptionsRequest>();

        assert!(read("{}").is_ok());
        assert!(read(" [null, null]").unwrap_err().to_string().contains("request body is an array"));
    }
}
