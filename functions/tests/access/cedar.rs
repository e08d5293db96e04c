//! Cedar's own answer to a request: its entities are written as JSON here, and not by the code of the product.

use cedar_policy::{Authorizer, Context, Entities, EntityUid, PolicySet, Request, Schema};
use freehold_access::{Principal, Resource, Who};
use serde_json::{Value, json};

const SCHEMA: &str = include_str!("../../../crates/access/src/access.cedarschema");

/// Policies as Cedar reads them.
pub(crate) struct Cedar {
    schema: Schema,
    policies: PolicySet,
}

fn entity(kind: &str, id: &str) -> Value {
    json!({ "type": format!("Freehold::{kind}"), "id": id })
}

fn uid(of: &Value) -> EntityUid {
    EntityUid::from_json(of.clone()).unwrap()
}

fn principal_of(principal: &Principal) -> (Value, Value) {
    let (kind, attribute, id) = match &principal.who {
        Who::Iam { arn } => ("Iam", "arn", arn),
        Who::Person { subject } => ("Person", "subject", subject),
        Who::Pipeline { subject } => ("Pipeline", "subject", subject),
    };
    let apps: Vec<Value> = principal.apps.iter().map(|app| entity("App", app.as_str())).collect();
    let installs: Vec<Value> = principal.installs.iter().map(|install| entity("Install", install.as_str())).collect();
    let groups: Vec<Value> = principal.groups.iter().map(|group| entity("Group", group.as_str())).collect();
    let attributes = json!({ "name": principal.name, attribute: id, "apps": apps, "installs": installs });
    let own = entity(kind, id);
    (own.clone(), json!({ "uid": own, "attrs": attributes, "parents": groups }))
}

/// Returns the resource, and all entities that it is in.
fn resource_of(resource: &Resource) -> (Value, Vec<Value>) {
    let tenant = entity("Tenant", "acme");
    let of_tenant = json!({ "uid": tenant, "attrs": {}, "parents": [] });
    let of_app = |app: &Value| json!({ "uid": app, "attrs": {}, "parents": [tenant] });
    match resource {
        Resource::Tenant => (tenant.clone(), vec![of_tenant]),
        Resource::App { app } => {
            let app = entity("App", app.as_str());
            (app.clone(), vec![of_app(&app), of_tenant])
        }
        Resource::Install { install, app, environment } => {
            let (own, app) = (entity("Install", install.as_str()), entity("App", app.as_str()));
            let attributes = json!({ "environment": environment });
            let of_install = json!({ "uid": own, "attrs": attributes, "parents": [app, tenant] });
            (own, vec![of_install, of_app(&app), of_tenant])
        }
    }
}

impl Cedar {
    pub(crate) fn new(text: &str) -> Self {
        Self { schema: SCHEMA.parse().unwrap(), policies: text.parse().unwrap() }
    }

    /// Returns whether Cedar permits the request, and the names of the policies that decide, sorted.
    pub(crate) fn decide(&self, principal: &Principal, action: &str, resource: &Resource) -> (bool, Vec<String>) {
        let (principal, of_principal) = principal_of(principal);
        let (resource, mut entities) = resource_of(resource);
        entities.push(of_principal);
        let action_uid = uid(&entity("Action", action));
        // The routes of the tests name what runs `action` and `runbook`.
        let context = match action {
            "run_action" => json!({ "action": "action" }),
            "run_runbook" => json!({ "runbook": "runbook" }),
            _ => json!({}),
        };
        let context = Context::from_json_value(context, Some((&self.schema, &action_uid))).unwrap();
        let entities = Entities::from_json_value(Value::Array(entities), Some(&self.schema)).unwrap();
        let request = Request::new(uid(&principal), action_uid, uid(&resource), context, Some(&self.schema)).unwrap();

        let response = Authorizer::new().is_authorized(&request, &self.policies, &entities);

        let names = response.diagnostics().reason().map(|id| self.policies.annotation(id, "id").unwrap().to_owned());
        let mut names: Vec<String> = names.collect();
        names.sort();
        (response.decision() == cedar_policy::Decision::Allow, names)
    }
}
