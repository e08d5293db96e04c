//! The OpenAPI 3.1 document, generated from the table of routes, the types of the API, and `examples.json`.
//!
//! An example has the name of its request, of its answer, or of its error. An answer that differs from others of its
//! type has an example with the name of its operation.

use std::collections::BTreeSet;

use freehold_app::idempotency::PERFORMING_SECS;
use freehold_protocol::api::{
    AcceptInvitationRequest, AccessView, AcknowledgeDriftRequest, AddSubscriptionRequest, AddWebhookRequest, AppView,
    ApproveJobRequest, ArtifactsView, BuildComponentsRequest, BuildStarted, BuildView, CallWebhookRequest, CallerView,
    CancelJobRequest, CancelWorkflowRequest, ChannelView, CheckHealthRequest, CheckView, ContractView,
    CreateInstallRequest, CreateReleaseRequest, DeployComponentsRequest, DetectDriftRequest, ErrorBody, ErrorKind,
    ForgetInstallRequest, ForgetStarted, HistoryEntry, IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_SHAPE, IgnoreDriftRequest,
    InputsSchema, InstallCreated, InstallDeleted, InstallDrift, InstallInputs, InstallRunbooks, InstallStack,
    InstallToggles, InstallView, InviteMemberRequest, JobView, LineagePage, LogPage, MemberInvited, MemberRemoved,
    MemberView, MoveChannelRequest, Page, PoliciesView, ReasonRequest, RejectJobRequest, ReleaseView,
    RemoveSubscriptionRequest, ReportCheckRequest, ResumeWorkflowRequest, RetryJobRequest, Revoked, RunActionRequest,
    RunRunbookRequest, RunView, SetApprovalsRequest, SetInputsRequest, SetLabelsRequest, SetLicenceRequest,
    SetMemberRequest, SetPoliciesRequest, SetReleaseRequest, SetTogglesRequest, SkipNodeRequest, SourceUpload,
    SubscriptionView, SubscriptionsView, SyncAppRequest, TeardownInstallRequest, TenantView, TestAccessRequest,
    TestSent, TestSubscriptionsRequest, UpgradeRunnerRequest, UploadSourceRequest, VersionDocument, VersionView,
    WebhookCalled, WebhookView, WebhooksView, WorkflowStarted, WorkflowView,
};
use freehold_protocol::contract::Terms;
use freehold_protocol::limits::{KEPT_ANSWER_SECS, MAX_KEPT_REQUEST_BYTES};
use freehold_protocol::webhook;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::routes::{Operation, ROUTES, Route};
use super::{openapi_description, placeholders};

type Examples = Map<String, Value>;

/// Returns the OpenAPI document.
pub fn document() -> Value {
    let (examples, mut generator) = (examples(), generator());
    let error = schema::<ErrorBody>(&mut generator).schema;
    let mut paths: Map<String, Value> = Map::new();
    for route in ROUTES {
        let operation = operation(&route, &examples, &mut generator);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        if let Some(path) = path.as_object_mut() {
            path.insert(route.method.to_lowercase(), operation);
        }
    }
    let mut document = json!({
        "openapi": "3.1.0",
        "info": openapi_description::info(),
        "servers": openapi_description::servers(),
        "security": openapi_description::security(),
        "paths": paths,
        "components": {
            "headers": { REQUEST_ID: request_id() },
            "schemas": generator.take_definitions(true),
            "responses": shared_responses(&error, &examples),
            "securitySchemes": openapi_description::security_schemes(),
        },
    });
    document.sort_all_objects();
    document
}

/// Returns a line for each body without an example, for each example that does not fit its body, and for each example
/// that does not belong to a body.
pub fn wrong_examples() -> Vec<String> {
    let (examples, mut generator) = (examples(), generator());
    let errors = ErrorKind::ALL.map(|kind| (describe(kind).0.to_owned(), schema::<ErrorBody>(&mut generator)));
    let mut bodies = Vec::from(errors);
    for route in ROUTES {
        let (request, answer) = schemas(route.operation, &mut generator);
        bodies.extend(request.map(|body| (body.name().to_owned(), body)));
        bodies.push((answer_name(&route, &answer, &examples), answer));
    }
    let names = bodies.iter().map(|(name, _)| name.as_str());
    let names: BTreeSet<&str> = names.chain(GATEWAY.map(|(_, name)| name)).collect();
    let unused = examples.keys().filter(|name| !names.contains(name.as_str()));
    let unused = unused.map(|name| format!("`{name}` does not belong to a body"));
    let wrong = bodies.iter().filter_map(|(name, body)| {
        let Some(example) = examples.get(name) else { return Some(format!("`{name}` has no example")) };
        match (body.rewrite)(example) {
            Ok(written) if has(&written, example) => None,
            Ok(written) => Some(format!("`{name}` is written as {written}")),
            Err(error) => Some(format!("`{name}`: {error}")),
        }
    });
    unused.chain(wrong).collect()
}

/// Returns whether `written` has everything that `example` has. Fields with defaults may be left out of an example.
fn has(written: &Value, example: &Value) -> bool {
    match (written, example) {
        (Value::Object(written), Value::Object(example)) => {
            example.iter().all(|(name, value)| written.get(name).is_some_and(|written| has(written, value)))
        }
        (Value::Array(written), Value::Array(example)) => {
            written.len() == example.len() && written.iter().zip(example).all(|(written, value)| has(written, value))
        }
        (written, example) => written == example,
    }
}

fn generator() -> SchemaGenerator {
    let mut settings = SchemaSettings::draft2020_12()
        .with_transform(RecursiveTransform(with_width))
        .with_transform(RecursiveTransform(with_repeats));
    settings.definitions_path = "/components/schemas".into();
    settings.into_generator()
}

fn examples() -> Examples {
    serde_json::from_str(include_str!("examples.json")).unwrap_or_default()
}

/// Returns the name of the example of an answer.
fn answer_name(route: &Route, answer: &Body, examples: &Examples) -> String {
    let operation = format!("{:?}", route.operation);
    if examples.contains_key(&operation) { operation } else { answer.name().to_owned() }
}

fn operation(route: &Route, examples: &Examples, generator: &mut SchemaGenerator) -> Value {
    let (request, answer) = schemas(route.operation, generator);
    let parameters = parameters(route, generator);
    let example = examples.get(&answer_name(route, &answer, examples));
    let mut operation = json!({
        "operationId": format!("{:?}", route.operation),
        "summary": route.summary,
        "tags": [route.path.split('/').nth(2)],
        "parameters": parameters,
        "responses": responses(&answer.schema, example, request.is_some()),
    });
    let content = request.map(|request| content(&request.schema, examples.get(request.name())));
    let body = content.map(|content| ("requestBody", json!({ "required": true, "content": content })));
    let security = match route.operation {
        open if open.is_open() => Some(("security", openapi_description::security_of_calls())),
        Operation::AcceptInvitation => Some(("security", openapi_description::security_of_people())),
        _ => None,
    };
    if let Some(operation) = operation.as_object_mut() {
        operation.extend(body.into_iter().chain(security).map(|(name, value)| (name.to_owned(), value)));
    }
    operation
}

fn parameters(route: &Route, generator: &mut SchemaGenerator) -> Vec<Value> {
    let mut parameters: Vec<Value> = route
        .path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
        .map(|name| {
            let schema = placeholders::schema(name, generator);
            let description = placeholders::description(name);
            json!({ "name": name, "in": "path", "required": true, "description": description, "schema": schema })
        })
        .collect();
    if route.operation.is_open() {
        parameters.extend(signature_parameters());
    } else if route.method == "POST" {
        parameters.push(json!({
            "name": IDEMPOTENCY_KEY, "in": "header", "required": true,
            "description": key_description(),
            "schema": IDEMPOTENCY_KEY_SHAPE.schema(),
        }));
    } else if let Some(list) = route.operation.list() {
        parameters.push(json!({
            "name": "after", "in": "query", "required": false,
            "description": "The `next` or `cursor` of the previous page; empty for the first page.",
            "schema": { "type": "string", "pattern": format!("^({})?$", list.pattern()) },
        }));
    }
    if route.operation.is_by_install() {
        parameters.push(json!({
            "name": "install", "in": "query", "required": false,
            "description": "Limits the response to this install.",
            "schema": placeholders::schema("install", generator),
        }));
    }
    parameters
}

fn key_description() -> String {
    format!(
        "A value of your choice for this one request. For {} hours, the same request with the same value gets the \
         first answer, and a request to this path with another body or from another caller is refused with status 409. \
         Sessions of one role are one caller. While the first request is being performed, and for up to \
         {PERFORMING_SECS} seconds after it was interrupted, the same request gets status 503, and the error has \
         `soon`. A request without a kept answer is performed again: it was interrupted, its answer has more than \
         about {} KiB, or it is `UploadSource`, `PruneArtifacts`, `InviteMember` or `AcceptInvitation`. Sealed values count without their ciphertexts. A \
         request with other ciphertexts is performed again and stores them, but a workflow or a run that it has \
         started keeps those of the first request.",
        KEPT_ANSWER_SECS / 3600,
        MAX_KEPT_REQUEST_BYTES / 1024
    )
}

/// Returns the headers of a call of a webhook.
fn signature_parameters() -> [Value; 3] {
    [
        (webhook::ID, webhook::ID_PATTERN, "The id of the event. The same call with the same id starts nothing again."),
        (
            webhook::TIMESTAMP,
            webhook::TIMESTAMP_PATTERN,
            "The time of the call, in seconds since 1970-01-01T00:00:00Z.",
        ),
        (
            webhook::SIGNATURE,
            webhook::SIGNATURE_PATTERN,
            "`v1a,` and an Ed25519 signature over `ID.TIME.BODY`, base64.",
        ),
    ]
    .map(|(name, pattern, description)| {
        let schema = json!({ "type": "string", "pattern": pattern });
        json!({ "name": name, "in": "header", "required": true, "description": description, "schema": schema })
    })
}

/// Returns the responses of an operation by status: the response to success, and the errors that all operations share.
/// Only a request with a body can be too large.
fn responses(answer: &Value, example: Option<&Value>, has_body: bool) -> Value {
    let mut responses = Map::new();
    responses.insert("200".into(), response("Done", answer, example));
    let errors = ErrorKind::ALL.map(|kind| (kind.status(), describe(kind).0)).into_iter().chain(GATEWAY);
    for (status, name) in errors.filter(|(status, _)| has_body || *status != TOO_LARGE) {
        responses.insert(status.to_string(), json!({ "$ref": format!("#/components/responses/{name}") }));
    }
    Value::Object(responses)
}

/// The status of a response to a request that is too large for API Gateway.
const TOO_LARGE: u16 = 413;
/// The statuses of responses that API Gateway sends itself, without calling the function.
const GATEWAY: [(u16, &str); 2] = [(TOO_LARGE, "TooLarge"), (429, "TooManyRequests")];
/// The header with the id that API Gateway gives to a request.
const REQUEST_ID: &str = "apigw-requestid";

fn request_id() -> Value {
    let description = "The id that API Gateway gave to the request, for questions to whoever runs the tenant.";
    json!({ "description": description, "schema": { "type": "string" } })
}

/// Returns the responses that every operation shares, by name.
fn shared_responses(error: &Value, examples: &Examples) -> Value {
    let gateway = json!({
        "type": "object", "required": ["message"], "properties": { "message": { "type": "string" } },
    });
    let mut shared = Map::new();
    for kind in ErrorKind::ALL {
        let (name, description) = describe(kind);
        // API Gateway sends these statuses too, with a body of its own: when it refuses a signature or a token, and
        // when the function fails or does not respond.
        let schema = match kind {
            ErrorKind::Unauthorized | ErrorKind::Forbidden | ErrorKind::Internal | ErrorKind::Transient => {
                json!({ "anyOf": [error, gateway] })
            }
            ErrorKind::Invalid | ErrorKind::NotFound | ErrorKind::Conflict => error.clone(),
        };
        shared.insert(name.into(), response(description, &schema, examples.get(name)));
    }
    let descriptions = [
        "The body has more than the 10 MB that API Gateway takes; a body that is too large for the operation gets 400",
        "Too many requests; try again later",
    ];
    for ((_, name), description) in GATEWAY.into_iter().zip(descriptions) {
        shared.insert(name.into(), response(description, &gateway, examples.get(name)));
    }
    Value::Object(shared)
}

fn response(description: &str, schema: &Value, example: Option<&Value>) -> Value {
    let headers = json!({ REQUEST_ID: { "$ref": format!("#/components/headers/{REQUEST_ID}") } });
    json!({ "description": description, "headers": headers, "content": content(schema, example) })
}

fn content(schema: &Value, example: Option<&Value>) -> Value {
    let mut content = json!({ "schema": schema });
    if let (Some(example), Some(content)) = (example, content.as_object_mut()) {
        content.insert("example".into(), example.clone());
    }
    json!({ "application/json": content })
}

/// Returns the name of a kind of error, and its meaning after the word of the field `kind`.
const fn describe(kind: ErrorKind) -> (&'static str, &'static str) {
    match kind {
        ErrorKind::Invalid => ("Invalid", "`invalid`: the request is not valid; sending it again does not help"),
        ErrorKind::Unauthorized => {
            ("Unauthorized", "`unauthorized`: no signature or token that the tenant knows proves who the caller is")
        }
        ErrorKind::Forbidden => (
            "Forbidden",
            "`forbidden`: the policies do not permit this to the caller, or the caller is not a member; without a \
             field `kind`, the signature is missing or wrong, or its principal may not `execute-api:Invoke`",
        ),
        ErrorKind::NotFound => ("NotFound", "`not_found`: a resource that the request names does not exist"),
        ErrorKind::Conflict => (
            "Conflict",
            "`conflict`: the current state does not allow the request, or its idempotency key was used for another \
             request or by another caller",
        ),
        ErrorKind::Transient => {
            ("Transient", "`transient`: the same request may succeed later; try again, with the same idempotency key")
        }
        ErrorKind::Internal => ("Internal", "`internal`: a defect of Freehold"),
    }
}

/// Adds the maximum to the schema of an unsigned number. Clients that do not know the format need it.
fn with_width(schema: &mut Schema) {
    let most = match schema.get("format").and_then(Value::as_str) {
        Some("uint32") => u64::from(u32::MAX),
        Some("uint64") => u64::MAX,
        _ => return,
    };
    if schema.get("maximum").is_none() {
        schema.insert("maximum".into(), most.into());
    }
}

/// Removes the rule that the elements of a set differ: the API reads a list with a repeated element as the same set.
fn with_repeats(schema: &mut Schema) {
    schema.remove("uniqueItems");
}

/// The type of a body.
struct Body {
    schema: Value,
    /// Reads a value of the type, and writes it again.
    rewrite: fn(&Value) -> serde_json::Result<Value>,
}

impl Body {
    /// Returns the name of the type; empty for a list that is not a type of its own.
    fn name(&self) -> &str {
        let reference = self.schema.get("$ref").and_then(Value::as_str).unwrap_or_default();
        reference.rsplit('/').next().unwrap_or_default()
    }
}

fn rewrite<T: Serialize + DeserializeOwned>(value: &Value) -> serde_json::Result<Value> {
    serde_json::to_value(serde_json::from_value::<T>(value.clone())?)
}

fn schema<T: JsonSchema + Serialize + DeserializeOwned>(generator: &mut SchemaGenerator) -> Body {
    Body { schema: generator.subschema_for::<T>().to_value(), rewrite: rewrite::<T> }
}

fn schemas(operation: Operation, generator: &mut SchemaGenerator) -> (Option<Body>, Body) {
    let g = generator;
    match operation {
        Operation::ShowTenant => (None, schema::<TenantView>(g)),
        Operation::EnrolBuildRunner => (None, schema::<TenantView>(g)),
        Operation::ListApps => (None, schema::<Page<AppView>>(g)),
        Operation::ShowApp => (None, schema::<AppView>(g)),
        Operation::UploadSource => (Some(schema::<UploadSourceRequest>(g)), schema::<SourceUpload>(g)),
        Operation::SyncApp => (Some(schema::<SyncAppRequest>(g)), schema::<VersionView>(g)),
        Operation::ListVersions => (None, schema::<Page<VersionView>>(g)),
        Operation::ShowVersion => (None, schema::<VersionDocument>(g)),
        Operation::ShowInputsSchema => (None, schema::<InputsSchema>(g)),
        Operation::ShowContract => (None, schema::<ContractView>(g)),
        Operation::ShowTerms => (None, schema::<Terms>(g)),
        Operation::BuildComponents => (Some(schema::<BuildComponentsRequest>(g)), schema::<BuildStarted>(g)),
        Operation::ListBuilds => (None, schema::<Page<BuildView>>(g)),
        Operation::CreateInstall => (Some(schema::<CreateInstallRequest>(g)), schema::<InstallCreated>(g)),
        Operation::ListInstalls => (None, schema::<Page<InstallView>>(g)),
        Operation::ShowInstall => (None, schema::<InstallView>(g)),
        Operation::ShowInputs => (None, schema::<InstallInputs>(g)),
        Operation::SetInputs => (Some(schema::<SetInputsRequest>(g)), schema::<InstallInputs>(g)),
        Operation::ShowToggles => (None, schema::<InstallToggles>(g)),
        Operation::SetToggles => (Some(schema::<SetTogglesRequest>(g)), schema::<InstallToggles>(g)),
        Operation::SetRelease => (Some(schema::<SetReleaseRequest>(g)), schema::<InstallView>(g)),
        Operation::SetLabels => (Some(schema::<SetLabelsRequest>(g)), schema::<InstallView>(g)),
        Operation::SetLicence => (Some(schema::<SetLicenceRequest>(g)), schema::<InstallView>(g)),
        Operation::SetApprovals => (Some(schema::<SetApprovalsRequest>(g)), schema::<InstallView>(g)),
        Operation::RenderStack | Operation::RenderStackOfVersion => (None, schema::<InstallStack>(g)),
        Operation::DeployComponents => (Some(schema::<DeployComponentsRequest>(g)), schema::<WorkflowStarted>(g)),
        Operation::RunAction => (Some(schema::<RunActionRequest>(g)), schema::<WorkflowStarted>(g)),
        Operation::ListRunbooks => (None, schema::<InstallRunbooks>(g)),
        Operation::RunRunbook => (Some(schema::<RunRunbookRequest>(g)), schema::<RunView>(g)),
        Operation::ListRuns => (None, schema::<Page<RunView>>(g)),
        Operation::ShowRun | Operation::CancelRun => (None, schema::<RunView>(g)),
        Operation::ResumeRun => (Some(schema::<ReasonRequest>(g)), schema::<RunView>(g)),
        Operation::UpgradeRunner => (Some(schema::<UpgradeRunnerRequest>(g)), schema::<WorkflowStarted>(g)),
        Operation::ListDrift => (None, schema::<InstallDrift>(g)),
        Operation::DetectDrift => (Some(schema::<DetectDriftRequest>(g)), schema::<WorkflowStarted>(g)),
        Operation::AcknowledgeDrift => (Some(schema::<AcknowledgeDriftRequest>(g)), schema::<InstallDrift>(g)),
        Operation::IgnoreDrift => (Some(schema::<IgnoreDriftRequest>(g)), schema::<InstallDrift>(g)),
        Operation::CheckHealth => (Some(schema::<CheckHealthRequest>(g)), schema::<WorkflowStarted>(g)),
        Operation::ReportCheck => (Some(schema::<ReportCheckRequest>(g)), schema::<CheckView>(g)),
        Operation::ShowHistory => (None, schema::<Page<HistoryEntry>>(g)),
        Operation::TeardownInstall => (Some(schema::<TeardownInstallRequest>(g)), schema::<WorkflowStarted>(g)),
        Operation::ListWorkflows => (None, schema::<Page<WorkflowView>>(g)),
        Operation::ShowWorkflow => (None, schema::<WorkflowView>(g)),
        Operation::CancelWorkflow => (Some(schema::<CancelWorkflowRequest>(g)), schema::<WorkflowView>(g)),
        Operation::ResumeWorkflow => (Some(schema::<ResumeWorkflowRequest>(g)), schema::<WorkflowView>(g)),
        Operation::SkipNode => (Some(schema::<SkipNodeRequest>(g)), schema::<WorkflowView>(g)),
        Operation::RetryJob => (Some(schema::<RetryJobRequest>(g)), schema::<WorkflowView>(g)),
        Operation::ShowJob => (None, schema::<JobView>(g)),
        Operation::CancelJob => (Some(schema::<CancelJobRequest>(g)), schema::<JobView>(g)),
        Operation::ApproveJob => (Some(schema::<ApproveJobRequest>(g)), schema::<JobView>(g)),
        Operation::RejectJob => (Some(schema::<RejectJobRequest>(g)), schema::<JobView>(g)),
        Operation::ListLogs => (None, schema::<LogPage>(g)),
        Operation::ShowLineage => (None, schema::<LineagePage>(g)),
        Operation::RevokeArtifact => (Some(schema::<ReasonRequest>(g)), schema::<Revoked>(g)),
        Operation::CreateRelease => (Some(schema::<CreateReleaseRequest>(g)), schema::<ReleaseView>(g)),
        Operation::ListReleases => (None, schema::<Page<ReleaseView>>(g)),
        Operation::ShowRelease => (None, schema::<ReleaseView>(g)),
        Operation::MoveChannel => (Some(schema::<MoveChannelRequest>(g)), schema::<ChannelView>(g)),
        Operation::ListChannels => (None, schema::<Vec<ChannelView>>(g)),
        Operation::DeleteInstall => (None, schema::<InstallDeleted>(g)),
        Operation::ForgetInstall => (Some(schema::<ForgetInstallRequest>(g)), schema::<ForgetStarted>(g)),
        Operation::DisableInstall => (Some(schema::<ReasonRequest>(g)), schema::<InstallView>(g)),
        Operation::EnableInstall => (None, schema::<InstallView>(g)),
        Operation::ListArtifacts | Operation::PruneArtifacts => (None, schema::<ArtifactsView>(g)),
        Operation::AddSubscription => (Some(schema::<AddSubscriptionRequest>(g)), schema::<SubscriptionView>(g)),
        Operation::ListSubscriptions => (None, schema::<SubscriptionsView>(g)),
        Operation::RemoveSubscription => (Some(schema::<RemoveSubscriptionRequest>(g)), schema::<SubscriptionsView>(g)),
        Operation::AddWebhook => (Some(schema::<AddWebhookRequest>(g)), schema::<WebhookView>(g)),
        Operation::ListWebhooks | Operation::RemoveWebhook => (None, schema::<WebhooksView>(g)),
        Operation::CallWebhook => (Some(schema::<CallWebhookRequest>(g)), schema::<WebhookCalled>(g)),
        Operation::TestSubscriptions => (Some(schema::<TestSubscriptionsRequest>(g)), schema::<TestSent>(g)),
        Operation::ShowCaller => (None, schema::<CallerView>(g)),
        Operation::ListMembers => (None, schema::<Page<MemberView>>(g)),
        Operation::InviteMember => (Some(schema::<InviteMemberRequest>(g)), schema::<MemberInvited>(g)),
        Operation::SetMember => (Some(schema::<SetMemberRequest>(g)), schema::<MemberView>(g)),
        Operation::RemoveMember => (None, schema::<MemberRemoved>(g)),
        Operation::AcceptInvitation => (Some(schema::<AcceptInvitationRequest>(g)), schema::<CallerView>(g)),
        Operation::ShowPolicies => (None, schema::<PoliciesView>(g)),
        Operation::SetPolicies => (Some(schema::<SetPoliciesRequest>(g)), schema::<PoliciesView>(g)),
        Operation::TestAccess => (Some(schema::<TestAccessRequest>(g)), schema::<AccessView>(g)),
    }
}
