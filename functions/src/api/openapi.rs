//! The OpenAPI 3.1 document, made from the table of routes and the API types.

use freehold_protocol::api::{
    AppView, ArtifactsView, BuildComponentsRequest, BuildStarted, BuildView, ContractView, CreateInstallRequest,
    CreateReleaseRequest, DeployComponentsRequest, EnrolBuildRunnerRequest, ErrorBody, IDEMPOTENCY_KEY, InputsSchema,
    InstallCreated, InstallDeleted, InstallInputs, InstallStack, InstallView, JobView, LineagePage, LogPage, Page,
    ReasonRequest, ReleaseView, Revoked, RunActionRequest, SetInputsRequest, SourceUpload, SyncAppRequest, TenantView,
    UploadSourceRequest, VersionDocument, VersionView, WorkflowStarted, WorkflowView,
};
use freehold_protocol::contract::Terms;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::routes::{Operation, ROUTES, Route};

/// Returns the document.
pub fn document() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    let mut generator = settings.into_generator();
    let error = schema::<ErrorBody>(&mut generator);
    let mut paths: Map<String, Value> = Map::new();
    for route in ROUTES {
        let operation = operation(&route, &mut generator, &error);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        if let Some(path) = path.as_object_mut() {
            path.insert(route.method.to_lowercase(), operation);
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Freehold tenant API",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Requests are signed with AWS Signature Version 4 (service `execute-api`).",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "paths": paths,
        "components": { "schemas": generator.take_definitions(true) },
    })
}

fn operation(route: &Route, generator: &mut SchemaGenerator, error: &Value) -> Value {
    let (request, answer) = schemas(route.operation, generator);
    let mut parameters: Vec<Value> = route
        .path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
        .collect();
    if route.method == "POST" {
        parameters.push(json!({
            "name": IDEMPOTENCY_KEY, "in": "header", "required": true,
            "description": "One value for one intent; a request that repeats it gets the same answer.",
            "schema": { "type": "string", "minLength": 1, "maxLength": 128 },
        }));
    } else if is_list(route.operation) {
        parameters.push(json!({
            "name": "after", "in": "query", "required": false,
            "description": "The `next` or `cursor` of the previous page.", "schema": { "type": "string" },
        }));
    }
    let mut operation = json!({
        "operationId": format!("{:?}", route.operation),
        "summary": route.summary,
        "parameters": parameters,
        "responses": {
            "200": { "description": "Done", "content": { "application/json": { "schema": answer } } },
            "default": {
                "description": "400 invalid, 404 not found, 409 conflict, 500 internal, 503 transient",
                "content": { "application/json": { "schema": error } },
            },
        },
    });
    if let (Some(request), Some(operation)) = (request, operation.as_object_mut()) {
        let content = json!({ "application/json": { "schema": request } });
        operation.insert("requestBody".into(), json!({ "required": true, "content": content }));
    }
    operation
}

const fn is_list(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::ListApps
            | Operation::ListVersions
            | Operation::ListBuilds
            | Operation::ListInstalls
            | Operation::ListWorkflows
            | Operation::ListLogs
            | Operation::ShowLineage
            | Operation::ListReleases
    )
}

fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}

fn schemas(operation: Operation, generator: &mut SchemaGenerator) -> (Option<Value>, Value) {
    let g = generator;
    match operation {
        Operation::ShowTenant => (None, schema::<TenantView>(g)),
        Operation::EnrolBuildRunner => (Some(schema::<EnrolBuildRunnerRequest>(g)), schema::<TenantView>(g)),
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
        Operation::RenderStack | Operation::RenderStackOfVersion => (None, schema::<InstallStack>(g)),
        Operation::DeployComponents => (Some(schema::<DeployComponentsRequest>(g)), schema::<WorkflowStarted>(g)),
        Operation::RunAction => (Some(schema::<RunActionRequest>(g)), schema::<WorkflowStarted>(g)),
        Operation::ListWorkflows => (None, schema::<Page<WorkflowView>>(g)),
        Operation::ShowWorkflow => (None, schema::<WorkflowView>(g)),
        Operation::CancelWorkflow => (None, schema::<WorkflowView>(g)),
        Operation::ShowJob => (None, schema::<JobView>(g)),
        Operation::CancelJob => (None, schema::<JobView>(g)),
        Operation::ListLogs => (None, schema::<LogPage>(g)),
        Operation::ShowLineage => (None, schema::<LineagePage>(g)),
        Operation::RevokeArtifact => (Some(schema::<ReasonRequest>(g)), schema::<Revoked>(g)),
        Operation::CreateRelease => (Some(schema::<CreateReleaseRequest>(g)), schema::<ReleaseView>(g)),
        Operation::ListReleases => (None, schema::<Page<ReleaseView>>(g)),
        Operation::ShowRelease => (None, schema::<ReleaseView>(g)),
        Operation::DeleteInstall => (None, schema::<InstallDeleted>(g)),
        Operation::DisableInstall => (Some(schema::<ReasonRequest>(g)), schema::<InstallView>(g)),
        Operation::EnableInstall => (None, schema::<InstallView>(g)),
        Operation::ListArtifacts | Operation::PruneArtifacts => (None, schema::<ArtifactsView>(g)),
    }
}
