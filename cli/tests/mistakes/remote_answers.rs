//! Mistakes that AWS or the tenant notices, against a stand-in that answers as they do.

use freehold_domain::absence::Absence;
use freehold_domain::contract::ConsentError;
use freehold_domain::plan::PlanError;
use freehold_domain::region::check_region;
use serde_json::json;

use super::{Cloud, Mistake};

/// An answer: the status and the body.
type Answer = (u16, String);

const fn noticed(what: &'static str, args: &'static [&'static str], code: i32, cloud: Cloud) -> Mistake {
    Mistake { what, environment: &[], args, code, cloud }
}

const DEPLOY: &[&str] = &["tenant", "deploy", "--name", "acme", "--functions", "functions", "--architecture", "arm64"];

pub(crate) const MISTAKES: [Mistake; 20] = [
    noticed("wrong account or region", &["install", "list", "--tenant", "acme"], 3, Cloud::Aws(without_tenant)),
    noticed("typo in the name of a tenant", &["app", "list", "--tenant", "acmee"], 3, Cloud::Aws(without_tenant)),
    noticed(
        "status of a tenant that does not exist",
        &["tenant", "status", "--name", "acmee"],
        3,
        Cloud::Aws(without_tenant),
    ),
    noticed(
        "a build runner before the tenant",
        &["tenant", "build-runner", "--name", "acme"],
        3,
        Cloud::Aws(without_tenant),
    ),
    noticed(
        "credentials that AWS does not know",
        &["tenant", "status", "--name", "acme"],
        6,
        Cloud::Aws(unknown_credentials),
    ),
    noticed("a role that may not read stacks", &["install", "list", "--tenant", "acme"], 6, Cloud::Aws(no_stacks)),
    noticed("a role that may not use the bucket", DEPLOY, 6, Cloud::Aws(foreign_bucket)),
    noticed("a role that may not set up the bucket", DEPLOY, 6, Cloud::Aws(bucket_to_look_at)),
    noticed(
        "launch in another account",
        &["install", "launch", "globex", "--template", "globex.yaml"],
        2,
        Cloud::Aws(other_account),
    ),
    noticed("typo in the name of an install", &["install", "show", "globx"], 3, Cloud::Tenant(tenant)),
    noticed("typo in the name of an app", &["app", "versions", "wbe"], 3, Cloud::Tenant(tenant)),
    noticed(
        "a file that exists",
        &["install", "stack", "globex", "--output", "full/mine.txt"],
        4,
        Cloud::Tenant(tenant),
    ),
    noticed(
        "a region that does not exist",
        &["install", "create", "initech", "--app", "web", "--account", "222222222222", "--region", "eu-wst-1"],
        2,
        Cloud::Tenant(tenant),
    ),
    noticed("a build without a build runner", &["build", "web"], 4, Cloud::Tenant(tenant)),
    noticed("deploy before the build", &["deploy", "globex"], 4, Cloud::Tenant(tenant)),
    noticed(
        "deploy before the customer's consent",
        &["deploy", "globex", "--release", "2026.12"],
        4,
        Cloud::Tenant(tenant),
    ),
    noticed("typo in the name of a component", &["deploy", "globex", "--component", "qeue"], 3, Cloud::Tenant(tenant)),
    noticed("cancel of what has ended", &["workflow", "cancel", "wf_00000000000000000001"], 4, Cloud::Tenant(tenant)),
    noticed(
        "removal of a tenant that has installs",
        &["tenant", "destroy", "--name", "acme", "--confirm", "acme"],
        4,
        Cloud::Aws(with_installs),
    ),
    noticed("a deploy that fails", &["workflow", "watch", "wf_00000000000000000001"], 1, Cloud::Tenant(tenant)),
];

/// Answers as an account without the stack of any tenant.
fn without_tenant(method: &str, path: &str, body: &str) -> Answer {
    match action(body) {
        "DescribeStacks" => {
            let stack = body.split("StackName=").nth(1).and_then(|rest| rest.split('&').next()).unwrap_or_default();
            refusal(400, "ValidationError", &format!("Stack with id {stack} does not exist"))
        }
        _ => with_rights(method, path, body),
    }
}

/// Answers as an account with the queue of an install, and without the tenant's stack.
fn with_installs(method: &str, path: &str, body: &str) -> Answer {
    if body.contains("QueueNamePrefix") {
        (200, json!({ "QueueUrls": ["http://localhost:4566/222222222222/fh-acme--globex.fifo"] }).to_string())
    } else if body.contains("QueueUrl") {
        (200, json!({ "Tags": { "freehold:tenant": "acme" } }).to_string())
    } else {
        without_tenant(method, path, body)
    }
}

fn unknown_credentials(_: &str, _: &str, _: &str) -> Answer {
    refusal(403, "InvalidClientTokenId", "The security token included in the request is invalid.")
}

fn no_stacks(method: &str, path: &str, body: &str) -> Answer {
    match action(body) {
        "DescribeStacks" => refusal(
            403,
            "AccessDenied",
            "User: arn:aws:sts::222222222222:assumed-role/ci/me is not authorized to perform: \
             cloudformation:DescribeStacks on resource: \
             arn:aws:cloudformation:eu-west-1:222222222222:stack/freehold-acme/*",
        ),
        _ => with_rights(method, path, body),
    }
}

/// Answers `HEAD` as S3 does: with a status alone.
fn foreign_bucket(method: &str, path: &str, body: &str) -> Answer {
    if method == "HEAD" { (403, String::new()) } else { with_rights(method, path, body) }
}

fn bucket_to_look_at(method: &str, path: &str, body: &str) -> Answer {
    match method {
        "HEAD" => (200, String::new()),
        "PUT" => (403, "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>".to_owned()),
        _ => with_rights(method, path, body),
    }
}

fn other_account(_: &str, _: &str, _: &str) -> Answer {
    caller("333333333333")
}

/// Answers as an account in which everything is allowed and nothing exists.
fn with_rights(method: &str, _: &str, body: &str) -> Answer {
    match action(body) {
        "GetCallerIdentity" => caller("222222222222"),
        _ if method == "HEAD" => (404, String::new()),
        _ => refusal(400, "RepositoryNotFoundException", "There is no such repository"),
    }
}

/// Returns the action of a request in the query protocol; an empty text for any other request.
fn action(body: &str) -> &str {
    body.strip_prefix("Action=").and_then(|rest| rest.split('&').next()).unwrap_or_default()
}

fn caller(account: &str) -> Answer {
    let identity = format!("<Arn>arn:aws:sts::{account}:assumed-role/ci/me</Arn><Account>{account}</Account>");
    let result = format!("<GetCallerIdentityResult>{identity}</GetCallerIdentityResult>");
    (200, format!("<GetCallerIdentityResponse>{result}</GetCallerIdentityResponse>"))
}

fn refusal(status: u16, code: &str, message: &str) -> Answer {
    let error = format!("<Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error>");
    (status, format!("<ErrorResponse>{error}</ErrorResponse>"))
}

/// Answers as a tenant with one app, one install and one deploy, which failed.
fn tenant(method: &str, path: &str, body: &str) -> Answer {
    if let Some(refusal) = refused(method, path, body) {
        return refusal;
    }
    let digest = format!("sha256:{}", "0".repeat(64));
    let install = json!({ "install": "globex", "account": "222222222222", "region": "eu-west-1", "state": "ready" });
    let found = match path {
        "/v1/installs" => json!({ "items": [install] }),
        "/v1/apps" => json!({ "items": [{ "app": "web", "latest": digest, "number": 1, "updated_at": 1000 }] }),
        "/v1/installs/globex/stack" => json!({
            "install": "globex", "version": digest, "stack_name": "freehold-acme--globex", "template": "Resources: {}\n",
            "digest": "sha256:49cbd1e9008e8b67dec76613bb4d6468c822c99701820526928d43b382f35fba",
        }),
        "/v1/tenant" => json!({
            "tenant": "acme", "account": "111111111111", "region": "eu-west-1", "reports_queue_url": "",
            "tenant_key": "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
        }),
        "/v1/workflows/wf_00000000000000000001" | "/v1/workflows/wf_00000000000000000001/cancel" => json!({
            "workflow": "wf_00000000000000000001", "install": "globex", "kind": "deploy-components", "state": "failed",
            "created_at": 1000, "ended_at": 13000,
            "nodes": [{
                "name": "preflight:install", "state": "failed", "job": "job_00000000000000000001",
                "reason": "2 of 20 checks fail; `permissions`: role `globex-provision` may not `sqs:CreateQueue`",
            }],
        }),
        _ => return absent(path),
    };
    (200, found.to_string())
}

/// Returns the refusal of a request that changes something. The texts are those of the functions.
fn refused(method: &str, path: &str, body: &str) -> Option<Answer> {
    let (status, kind, message) = match (method, path) {
        ("POST", "/v1/installs") => (400, "invalid", check_region("eu-wst-1", false).unwrap_err().to_string()),
        ("POST", "/v1/apps/web/builds") => (409, "conflict", Absence::BuildRunner.to_string()),
        ("POST", "/v1/installs/globex/deploys") if body.contains("qeue") => {
            let nearest = Some("queue".to_owned());
            let error = PlanError::UnknownComponent { app: "web".into(), component: "qeue".parse().unwrap(), nearest };
            (404, "not_found", error.to_string())
        }
        ("POST", "/v1/installs/globex/deploys") if body.contains("2026.12") => (409, "conflict", beyond_the_consent()),
        ("POST", "/v1/installs/globex/deploys") => {
            let error = PlanError::NotBuilt { component: "queue".parse().unwrap(), app: "web".into() };
            (409, "conflict", error.to_string())
        }
        _ => return None,
    };
    Some((status, json!({ "error": { "kind": kind, "message": message } }).to_string()))
}

fn beyond_the_consent() -> String {
    let accepted = format!("sha256:{}", "0".repeat(64)).parse().unwrap();
    let more = "role `provision` allows sqs:PurgeQueue on *".to_owned();
    ConsentError::Wider { install: "globex".parse().unwrap(), accepted, more }.to_string()
}

fn absent(path: &str) -> Answer {
    let mut parts = path.split('/').skip(2);
    let (kind, name) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let absence = match kind {
        "installs" => Absence::Install(name.parse().unwrap()),
        "apps" => Absence::App(name.parse().unwrap()),
        _ => panic!("the tenant of this test has no answer for `{path}`"),
    };
    (404, json!({ "error": { "kind": "not_found", "message": absence.to_string() } }).to_string())
}
