//! Who may do what: each group against each operation of the API, callers that another authorizer has authenticated, and
//! what a member may not see.

#![cfg(test)]

mod cedar;
mod decisions;
mod idor;
mod mutants;
mod notes;
#[path = "../../../crates/access/tests/suite/rules.rs"]
mod rules;
mod tenant;
mod world;

use freehold_app::access::actions;
use freehold_app::testing::Memory;
use freehold_functions::api::routes::{Operation, ROUTES, Route};
use serde_json::{Value, json};

use tenant::{GLOBEX, Ids, Sender, Tenant, UMBRELLA, iam, person, pipeline};

/// The operations that each member may ask for, whatever the groups are.
const OF_ALL: [Operation; 3] = [Operation::ShowCaller, Operation::ListApps, Operation::ListInstalls];
/// The operations about which no policy decides.
const UNDECIDED: [Operation; 2] = [Operation::CallWebhook, Operation::AcceptInvitation];
/// What data scientists may see, and what developers may do to apps.
const RESULTS: [&str; 6] = ["show_install", "show_history", "list_workflows", "show_workflow", "show_job", "list_logs"];
const BUILDS: [&str; 4] = ["upload_source", "sync_app", "build_components", "create_release"];

fn routes() -> impl Iterator<Item = Route> {
    ROUTES.into_iter().filter(|route| !UNDECIDED.contains(&route.operation))
}

/// Returns the class of an operation, and what it is about.
fn class(operation: Operation) -> (&'static str, &'static str) {
    let name = operation.action();
    let action = actions().iter().find(|action| action.name == name);
    action.map_or(("read", "tenant"), |action| (action.class.as_str(), action.about.as_str()))
}

/// Returns whether a member of the group may do the operation, as the guide says; the customer's install is `umbrella`.
fn is_permitted(group: &str, operation: Operation, ids: Ids) -> bool {
    let (class, about) = class(operation);
    let name = operation.action();
    let is_staging = ids.install == UMBRELLA.install;
    if OF_ALL.contains(&operation) {
        return true;
    }
    match group {
        "owner" => true,
        "operator" => ["read", "operate", "approve"].contains(&class),
        "developer" => {
            let is_work = ["operate", "change", "approve"].contains(&class);
            class == "read" || BUILDS.contains(&name.as_str()) || (about == "install" && is_staging && is_work)
        }
        "data_scientist" => RESULTS.contains(&name.as_str()),
        "auditor" => class == "read",
        "customer" => class == "read" && about == "install" && is_staging,
        other => panic!("{other}"),
    }
}

/// Returns a body with which the API finds out what a request is about.
fn body(operation: Operation, ids: Ids) -> Value {
    if operation != Operation::CreateInstall {
        return json!({});
    }
    let labels = if ids.install == UMBRELLA.install { json!({ "environment": "staging" }) } else { json!({}) };
    json!({ "install": format!("{}-2", ids.install), "app": ids.app, "account": "222222222222", "region": "eu-west-1",
        "labels": labels })
}

async fn ask(tenant: &Tenant, sender: &Sender, route: &Route, ids: Ids) -> (i64, Value) {
    tenant.send(sender, route.method, &ids.path(route.path), &body(route.operation, ids)).await
}

/// Sends each operation as a member of the group, about both installs.
async fn check_group(group: &str) {
    let tenant = Tenant::new().await;
    let limits = if group == "customer" { json!({ "installs": [UMBRELLA.install] }) } else { json!({}) };
    let sender = tenant.join("ana", &[group], &limits).await;
    let before = Memory::default();
    before.restore(&tenant.memory);
    for (route, ids) in routes().flat_map(|route| [(route, GLOBEX), (route, UMBRELLA)]) {
        tenant.memory.restore(&before);

        let (status, answer) = ask(&tenant, &sender, &route, ids).await;

        let is_permitted = is_permitted(group, route.operation, ids);
        // What somebody may not see is answered as what does not exist.
        let is_hidden = status == 404 && !is_permitted && ["customer", "data_scientist"].contains(&group);
        let is_forbidden = status == 403 && answer["error"]["kind"] == "forbidden";
        let case = format!("{group}: {} of {}: {status} {answer}", route.operation.action(), ids.install);
        assert_eq!(is_forbidden || is_hidden, !is_permitted, "{case}");
    }
}

#[tokio::test]
async fn an_owner_may_do_what_the_guide_says() {
    check_group("owner").await;
}

#[tokio::test]
async fn an_operator_may_do_what_the_guide_says() {
    check_group("operator").await;
}

#[tokio::test]
async fn a_developer_may_do_what_the_guide_says() {
    check_group("developer").await;
}

#[tokio::test]
async fn a_data_scientist_may_do_what_the_guide_says() {
    check_group("data_scientist").await;
}

#[tokio::test]
async fn an_auditor_may_do_what_the_guide_says() {
    check_group("auditor").await;
}

#[tokio::test]
async fn a_customer_may_do_what_the_guide_says() {
    check_group("customer").await;
}

#[tokio::test]
async fn a_member_with_limits_reaches_nothing_else_by_its_id() {
    for (group, limits) in
        [("customer", json!({ "installs": [UMBRELLA.install] })), ("developer", json!({ "apps": [UMBRELLA.app] }))]
    {
        let tenant = Tenant::new().await;
        let sender = tenant.join("eve", &[group], &limits).await;
        let before = Memory::default();
        before.restore(&tenant.memory);
        for route in routes().filter(|route| !OF_ALL.contains(&route.operation)) {
            tenant.memory.restore(&before);

            let (status, answer) = ask(&tenant, &sender, &route, GLOBEX).await;

            let expected = if class(route.operation).1 == "tenant" { 403 } else { 404 };
            assert_eq!(status, expected, "{group}: {:?}: {answer}", route.operation);
        }
    }
}

#[tokio::test]
async fn a_member_tests_only_the_own_access_and_with_what_the_member_may_see() {
    let tenant = Tenant::new().await;
    let dan = tenant.join("dan", &["developer"], &json!({ "apps": [UMBRELLA.app] })).await;
    let test = |who: &str, install: &str| json!({ "who": who, "action": "deploy_components", "install": install });

    let ask = async |request: Value| tenant.send(&dan, "POST", "/v1/access/test", &request).await;
    let (own, decision) = ask(test("person:dan", UMBRELLA.install)).await;
    let (other, _) = ask(test("person:ana", UMBRELLA.install)).await;
    let (by_name, _) = ask(json!({ "member": "dan", "action": "show_tenant" })).await;
    let (hidden, hides) = ask(test("person:dan", GLOBEX.install)).await;
    let (missing, misses) = ask(test("person:dan", "nobody")).await;
    let (stranger, _) =
        tenant.send(&person("eve"), "POST", "/v1/access/test", &test("person:eve", UMBRELLA.install)).await;

    assert_eq!((own, &decision["is_allowed"]), (200, &json!(true)), "{decision}");
    assert_eq!((other, by_name, hidden, missing, stranger), (403, 403, 404, 404, 403));
    let text = |answer: &Value, id: &str| answer["error"]["message"].as_str().unwrap().replace(id, "ID");
    assert_eq!(text(&hides, GLOBEX.install), text(&misses, "nobody"));
}

#[tokio::test]
async fn an_id_that_is_hidden_and_one_that_does_not_exist_have_the_same_answer() {
    let tenant = Tenant::new().await;
    let eve = tenant.join("eve", &["customer"], &json!({ "installs": [UMBRELLA.install] })).await;
    for (hidden, missing) in [
        ("/v1/installs/globex", "/v1/installs/nobody"),
        ("/v1/jobs/job_00000000000000000001", "/v1/jobs/job_000000000000000000ff"),
        ("/v1/workflows/wf_00000000000000000001", "/v1/workflows/wf_000000000000000000ff"),
        ("/v1/runs/run_00000000000000000001", "/v1/runs/run_000000000000000000ff"),
        ("/v1/apps/demo", "/v1/apps/none"),
    ] {
        let text = |answer: (i64, Value), path: &str| {
            let id = path.rsplit('/').next().unwrap();
            (answer.0, answer.1["error"]["message"].as_str().unwrap().replace(id, "ID"))
        };

        let one = text(tenant.send(&eve, "GET", hidden, &Value::Null).await, hidden);
        let other = text(tenant.send(&eve, "GET", missing, &Value::Null).await, missing);

        assert_eq!(one, other);
        assert_eq!(one.0, 404, "{hidden}");
    }
}

#[tokio::test]
async fn lists_have_the_items_that_the_member_may_see_and_no_token_names_another() {
    let tenant = Tenant::new().await;
    let customer = tenant.join("eve", &["customer"], &json!({ "installs": [UMBRELLA.install] })).await;
    let limited = tenant.join("dan", &["developer"], &json!({ "apps": [UMBRELLA.app] })).await;
    let names = |answer: &Value, field: &str| -> Vec<String> {
        answer["items"].as_array().unwrap().iter().map(|item| item[field].as_str().unwrap().to_owned()).collect()
    };

    for (sender, apps, installs) in [
        (&customer, Vec::new(), vec!["umbrella"]),
        (&limited, vec!["shop"], vec!["umbrella"]),
        (&iam(), vec!["demo", "shop"], vec!["globex", "umbrella"]),
    ] {
        let (status, listed) = tenant.send(sender, "GET", "/v1/apps", &Value::Null).await;
        assert_eq!((status, names(&listed, "app")), (200, apps.into_iter().map(str::to_owned).collect()), "{listed}");
        let (status, listed) = tenant.send(sender, "GET", "/v1/installs", &Value::Null).await;
        assert_eq!((status, names(&listed, "install")), (200, installs.into_iter().map(str::to_owned).collect()));
        assert!(listed["next"].is_null(), "{listed}");
    }
}

#[tokio::test]
async fn the_pipeline_of_a_stranger_lists_nothing_and_learns_no_name_of_a_member() {
    let tenant = Tenant::new().await;
    tenant.join("ben@example.com", &["owner"], &json!({})).await;
    let stranger = pipeline("repo:evil/shop:ref:refs/heads/main");

    for path in ["/v1/apps", "/v1/installs", "/v1/members", "/v1/tenant"] {
        let (status, answer) = tenant.send(&stranger, "GET", path, &Value::Null).await;

        assert_eq!(status, 403, "{path}: {answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.ends_with("members: an owner of the tenant") && !message.contains("ben"), "{message}");
    }
}

#[tokio::test]
async fn a_caller_that_another_authorizer_has_authenticated_is_refused() {
    let tenant = Tenant::new().await;
    let ana = tenant.join("ana", &["owner"], &json!({})).await;
    let claims = |name: &str, value: Value| {
        let mut sender = person("ana");
        sender.authorizer["jwt"]["claims"][name] = value;
        sender
    };
    let both = json!({ "iam": iam().authorizer["iam"], "jwt": ana.authorizer["jwt"] });
    for sender in [
        Sender { prefix: "/people", ..iam() },
        Sender { prefix: "/pipelines", ..iam() },
        Sender { prefix: "", ..ana.clone() },
        Sender { prefix: "/pipelines", ..ana.clone() },
        Sender { prefix: "/people", ..pipeline("ana") },
        Sender { prefix: "/people", authorizer: both.clone() },
        Sender { prefix: "", authorizer: both },
        Sender { prefix: "/people", authorizer: Value::Null },
        Sender { prefix: "", authorizer: Value::Null },
        claims("iss", json!("https://evil.example")),
        claims("sub", json!("ana\n")),
        claims("sub", json!("")),
        claims("token_use", json!("id")),
    ] {
        for route in routes() {
            let (status, answer) = ask(&tenant, &sender, &route, GLOBEX).await;

            assert_eq!((status, &answer["error"]["kind"]), (401, &json!("unauthorized")), "{sender:?} {answer}");
        }
    }
    assert_eq!(tenant.send(&ana, "GET", "/v1/members", &Value::Null).await.0, 200);
}

#[tokio::test]
async fn a_pipeline_is_not_a_person_with_the_same_subject() {
    let tenant = Tenant::new().await;
    tenant.join("ana", &["owner"], &json!({})).await;

    let (status, _) = tenant.send(&pipeline("ana"), "GET", "/v1/members", &Value::Null).await;

    assert_eq!(status, 403);
    let text = "@id(\"iam\") permit (principal is Freehold::Iam, action, resource);\n\
                @id(\"main\") permit (principal is Freehold::Pipeline, action, resource is Freehold::Install) when {\n  \
                principal.subject like \"repo:acme/shop:ref:refs/heads/*\" && resource.environment != \"production\" };";
    let (status, answer) = tenant.send(&iam(), "POST", "/v1/access/policies", &json!({ "policies": text })).await;
    assert_eq!(status, 200, "{answer}");
    let main = pipeline("repo:acme/shop:ref:refs/heads/main");
    let runs = |install: &str| format!("/v1/installs/{install}/runs");
    assert_eq!(tenant.send(&main, "GET", &runs("umbrella"), &Value::Null).await.0, 200);
    for (sender, install) in [(&main, "globex"), (&pipeline("repo:evil/shop:ref:refs/heads/main"), "umbrella")] {
        assert_eq!(tenant.send(sender, "GET", &runs(install), &Value::Null).await.0, 404, "{sender:?}");
    }
}

#[tokio::test]
async fn whoever_may_change_members_and_not_the_policies_gives_nobody_more_than_they_have() {
    let tenant = Tenant::new().await;
    let lead = tenant.join("ana", &["lead"], &json!({})).await;
    tenant.join("ben", &["auditor"], &json!({})).await;
    let text = "@id(\"iam\") permit (principal is Freehold::Iam, action, resource);\n\
                @id(\"owners\") permit (principal in Freehold::Group::\"owner\", action, resource);\n\
                @id(\"leads\") permit (principal in Freehold::Group::\"lead\", action in\n  \
                [Freehold::Action::\"invite_member\", Freehold::Action::\"set_member\"], resource);";
    let (status, answer) = tenant.send(&iam(), "POST", "/v1/access/policies", &json!({ "policies": text })).await;
    assert_eq!(status, 200, "{answer}");
    let rows = tenant.memory.rows();
    let owner = json!({ "groups": ["owner"] });
    let invite = |name: &str, groups: &[&str]| json!({ "member": name, "groups": groups });

    for (path, body) in [
        ("/v1/members", invite("eve", &["owner"])),
        ("/v1/members", invite("eve", &["lead", "owner"])),
        ("/v1/members/ana", owner.clone()),
        ("/v1/members/ben", owner.clone()),
    ] {
        let (status, answer) = tenant.send(&lead, "POST", path, &body).await;

        assert_eq!((status, &answer["error"]["kind"]), (403, &json!("forbidden")), "{path} {body}: {answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("may not give"), "{answer}");
    }
    assert_eq!(tenant.memory.rows(), rows);
    assert_eq!(tenant.send(&lead, "POST", "/v1/members", &invite("eve", &["lead", "customer"])).await.0, 200);
    assert_eq!(tenant.send(&iam(), "POST", "/v1/members/ben", &owner).await.0, 200);
}

#[tokio::test]
async fn the_answer_of_an_earlier_try_is_not_for_somebody_who_may_not_ask_any_more() {
    let tenant = Tenant::new().await;
    let ana = tenant.join("ana", &["owner"], &json!({})).await;
    let ben = tenant.join("ben", &["owner"], &json!({})).await;
    tenant.join("cleo", &["auditor"], &json!({})).await;
    let (place, change) = (("POST", "/v1/members/cleo"), json!({ "groups": ["operator"] }));
    let (status, first) = tenant.send_with(&ana, place, &change, "same-key").await;
    assert_eq!((status, &first["groups"]), (200, &json!(["operator"])));

    let again = tenant.send_with(&ana, place, &change, "same-key").await;
    let other = tenant.send_with(&ben, place, &change, "same-key").await;
    let demotion = json!({ "groups": ["auditor"] });
    assert_eq!(tenant.send(&iam(), "POST", "/v1/members/ana", &demotion).await.0, 200);
    let late = tenant.send_with(&ana, place, &change, "same-key").await;

    assert_eq!(again, (200, first));
    assert_eq!((other.0, &other.1["error"]["kind"]), (409, &json!("conflict")));
    assert_eq!((late.0, &late.1["error"]["kind"]), (403, &json!("forbidden")));
}

#[tokio::test]
async fn somebody_who_has_only_signed_in_may_see_who_they_are_and_leaves_no_row() {
    let tenant = Tenant::new().await;
    let rows = tenant.memory.rows();
    let eve = person("eve");

    for route in routes().filter(|route| route.operation != Operation::ShowCaller) {
        let (status, answer) = ask(&tenant, &eve, &route, GLOBEX).await;

        assert_eq!(status, 403, "{:?}: {answer}", route.operation);
        assert!(answer["error"]["message"].as_str().unwrap().contains("not a member of tenant `acme`"), "{answer}");
    }
    let (_, caller) = tenant.send(&eve, "GET", "/v1/caller", &Value::Null).await;
    let code = json!({ "code": "0".repeat(64) });
    let (accepted, _) = tenant.send(&eve, "POST", "/v1/invitations/accept", &code).await;
    assert_eq!((&caller["who"], &caller["is_member"], accepted), (&json!("person:eve"), &json!(false), 404));
    assert_eq!(tenant.memory.rows(), rows);
}

#[tokio::test]
async fn the_code_of_an_invitation_is_in_no_row_and_a_repeated_invitation_has_another() {
    let tenant = Tenant::new().await;
    let request = json!({ "member": "ana", "groups": ["owner"] });

    let (_, first) = tenant.send_with(&iam(), ("POST", "/v1/members"), &request, "invite").await;
    let (_, again) = tenant.send_with(&iam(), ("POST", "/v1/members"), &request, "invite").await;

    let [one, other] = [&first, &again].map(|invited| invited["code"].as_str().unwrap().to_owned());
    assert!(one != other && one.len() == 64);
    let rows = tenant.memory.rows();
    assert!(rows.iter().all(|row| !row.body.contains(&one) && !row.body.contains(&other)));
    let accept = |code: &str| json!({ "code": code });
    assert_eq!(tenant.send(&person("ana"), "POST", "/v1/invitations/accept", &accept(&one)).await.0, 404);
    assert_eq!(tenant.send(&person("ana"), "POST", "/v1/invitations/accept", &accept(&other)).await.0, 200);
}

#[tokio::test]
async fn a_webhook_is_called_at_its_own_path_alone() {
    let tenant = Tenant::new().await;
    let ana = tenant.join("ana", &["owner"], &json!({})).await;
    let nobody = Sender { prefix: "", authorizer: Value::Null };

    let (status, plain) = tenant.send(&nobody, "POST", "/v1/webhooks/ci/calls", &json!({})).await;
    let (with_token, _) = tenant.send(&ana, "POST", "/v1/webhooks/ci/calls", &json!({})).await;

    assert_eq!((status, with_token), (401, 401));
    assert!(plain["error"]["message"].as_str().unwrap().contains("webhook"), "{plain}");
}
