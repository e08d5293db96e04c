//! Mistakes that AWS or the tenant notices, against a stand-in that answers as they do.

use freehold_app::AppError;
use freehold_domain::absence::Absence;
use freehold_domain::contract::ConsentError;
use freehold_domain::inputs::{InputProblem, InputsError};
use freehold_domain::install::InstallError;
use freehold_domain::plan::PlanError;
use freehold_domain::region::check_region;
use freehold_domain::suggestion::Known;
use freehold_domain::workflow::ContinuationError;
use freehold_protocol::app_version::Input;
use serde_json::json;

use super::{Cloud, Mistake};
use crate::support::tenant_api;

/// An answer: the status and the body.
type Answer = (u16, String);

const fn noticed(what: &'static str, args: &'static [&'static str], code: i32, cloud: Cloud) -> Mistake {
    Mistake { what, environment: &[], args, code, cloud }
}

const DEPLOY: &[&str] = &["tenant", "deploy", "--name", "acme", "--functions", "functions", "--architecture", "arm64"];

/// The arguments that create the install `$name` of the app `$app` in `$account`.
macro_rules! create {
    ($name:literal, $app:literal, $account:literal) => {
        ["install", "create", $name, "--app", $app, "--account", $account, "--region", "eu-west-1"]
    };
}

pub(super) const MISTAKES: [Mistake; 40] = [
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
    noticed(
        "launch in another region",
        &["install", "launch", "globex", "--template", "globex.yaml", "--aws-region", "us-east-1"],
        2,
        Cloud::Aws(with_rights),
    ),
    noticed(
        "launch without the value of a parameter",
        &["install", "launch", "initrode", "--template", "initrode.yaml"],
        2,
        Cloud::Aws(without_installs),
    ),
    noticed(
        "launch with a value that the template does not allow",
        &["install", "launch", "globex", "--template", "globex.yaml", "--parameter", "EnableProvision=yes"],
        2,
        Cloud::Aws(refusing_values),
    ),
    noticed(
        "launch where a role and a policy of the customer's have names of the install",
        &["install", "launch", "globex", "--template", "globex.yaml"],
        4,
        Cloud::Aws(with_names_of_the_install),
    ),
    noticed(
        "launch of a template that is too large for a request, without a bucket",
        &["install", "launch", "initech", "--template", "large.yaml", "--unverified"],
        6,
        Cloud::Aws(without_buckets),
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
        "a second config of a build runner",
        &["tenant", "build-runner", "--name", "acme"],
        4,
        Cloud::Both(with_stack),
    ),
    noticed(
        "a region that does not exist",
        &["install", "create", "initech", "--app", "web", "--account", "222222222222", "--region", "eu-wst-1"],
        2,
        Cloud::Tenant(tenant),
    ),
    noticed("an install of an app with a typo", &create!("initech", "wbe", "222222222222"), 3, Cloud::Tenant(tenant)),
    noticed(
        "an install without a required input",
        &create!("initech", "web", "222222222222"),
        2,
        Cloud::Tenant(tenant),
    ),
    noticed(
        "an install whose name another account has",
        &create!("globex", "web", "333333333333"),
        4,
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
    noticed("typo in the name of an input", &["deploy", "globex", "--input", "dayz=3"], 2, Cloud::Tenant(tenant)),
    noticed("an input of another type", &["deploy", "globex", "--input", "days=many"], 2, Cloud::Tenant(tenant)),
    noticed("a version that does not exist", &["deploy", "globex", "--version", "9"], 3, Cloud::Tenant(tenant)),
    noticed("a release that does not exist", &["deploy", "globex", "--release", "2026.13"], 3, Cloud::Tenant(tenant)),
    noticed("typo in the name of an action", &["action", "run", "globex", "whoamy"], 3, Cloud::Tenant(tenant)),
    noticed("cancel of what has ended", &["workflow", "cancel", "wf_00000000000000000001"], 4, Cloud::Tenant(tenant)),
    noticed(
        "a resume after another deploy",
        &["workflow", "resume", "wf_00000000000000000001"],
        4,
        Cloud::Tenant(tenant),
    ),
    noticed(
        "a skip of what others need",
        &["workflow", "skip", "wf_00000000000000000001", "queue", "--reason", "later"],
        4,
        Cloud::Tenant(tenant),
    ),
    noticed(
        "removal of a tenant that has installs",
        &["tenant", "destroy", "--name", "acme", "--confirm", "acme"],
        4,
        Cloud::Aws(with_installs),
    ),
    noticed(
        "removal of a tenant in a script",
        &["tenant", "destroy", "--name", "acme"],
        2,
        Cloud::Aws(without_installs),
    ),
    noticed(
        "removal of a tenant with another name",
        &["tenant", "destroy", "--name", "acme", "--confirm", "acmee"],
        2,
        Cloud::Aws(without_installs),
    ),
    noticed(
        "removal of a tenant while Lambda updates the mapping of a queue",
        &["tenant", "destroy", "--name", "acme", "--confirm", "acme"],
        4,
        Cloud::Aws(with_mappings_in_use),
    ),
    noticed(
        "something that the policies do not permit",
        &["install", "disable", "globex", "--reason", "later"],
        6,
        Cloud::Tenant(tenant),
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

/// Answers as an account with a second reports queue of the tenant, of which Lambda deletes one mapping and updates another.
fn with_mappings_in_use(method: &str, path: &str, body: &str) -> Answer {
    let mappings = "/2015-03-31/event-source-mappings";
    let found = if body.contains("QueueNamePrefix") {
        json!({ "QueueUrls": ["http://localhost:4566/222222222222/fh-acme--reports--2"] })
    } else if body.contains("AttributeNames") {
        json!({ "Attributes": { "QueueArn": "arn:aws:sqs:eu-west-1:222222222222:fh-acme--reports--2" } })
    } else if body.contains("QueueUrl") {
        json!({ "Tags": { "freehold:tenant": "acme" } })
    } else if method == "DELETE" && path.starts_with(mappings) {
        let message = "Cannot delete the event source mapping because it is in use";
        return (400, json!({ "__type": "ResourceInUseException", "Message": message }).to_string());
    } else if path.starts_with(mappings) {
        let mapping = |id: &str, state: &str| json!({ "UUID": id, "State": state });
        let deleted = mapping("00000000-0000-4000-8000-000000000001", "Deleting");
        let updated = mapping("00000000-0000-4000-8000-000000000002", "Updating");
        json!({ "EventSourceMappings": [deleted, updated] })
    } else {
        return without_tenant(method, path, body);
    };
    (200, found.to_string())
}

/// Answers as an account in which everything is allowed and no tenant has an install.
fn without_installs(method: &str, path: &str, body: &str) -> Answer {
    if body.contains("QueueNamePrefix") { (200, "{}".to_owned()) } else { without_tenant(method, path, body) }
}

/// Answers as CloudFormation does about a parameter with `AllowedValues`.
fn refusing_values(method: &str, path: &str, body: &str) -> Answer {
    match action(body) {
        "CreateStack" | "CreateChangeSet" => {
            refusal(400, "ValidationError", "Parameter 'EnableProvision' must be one of AllowedValues")
        }
        _ => without_installs(method, path, body),
    }
}

/// Answers as an account with a role whose name begins as those of the install `globex` of `acme`, and with a policy
/// below its path.
fn with_names_of_the_install(method: &str, path: &str, body: &str) -> Answer {
    let name = "acme--globex--deployer";
    let role = format!(
        "<Path>/</Path><RoleName>{name}</RoleName><RoleId>AROAEXAMPLE</RoleId><Arn>arn:aws:iam::222222222222:role/{name}</Arn>\
         <CreateDate>2026-01-01T00:00:00Z</CreateDate>"
    );
    let path_of_app = "/freehold/acme--globex/";
    let policy = format!(
        "<Path>{path_of_app}</Path><PolicyName>deploy</PolicyName>\
         <Arn>arn:aws:iam::222222222222:policy{path_of_app}deploy</Arn>"
    );
    match action(body) {
        "ListRoles" => listed("ListRoles", &format!("<Roles><member>{role}</member></Roles>")),
        "GetRole" => listed("GetRole", &format!("<Role>{role}</Role>")),
        "ListPolicies" => listed("ListPolicies", &format!("<Policies><member>{policy}</member></Policies>")),
        "ListPolicyTags" => listed("ListPolicyTags", "<Tags></Tags>"),
        _ => without_installs(method, path, body),
    }
}

/// Answers as an account in which nobody may create a bucket.
fn without_buckets(method: &str, path: &str, body: &str) -> Answer {
    match method {
        "PUT" => (403, "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>".to_owned()),
        _ => without_installs(method, path, body),
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
        name @ ("ListRoles" | "ListPolicies") => listed(name, ""),
        _ if method == "HEAD" => (404, String::new()),
        _ => refusal(400, "RepositoryNotFoundException", "There is no such repository"),
    }
}

/// Returns the action of a request in the query protocol; an empty text for any other request.
fn action(body: &str) -> &str {
    body.strip_prefix("Action=").and_then(|rest| rest.split('&').next()).unwrap_or_default()
}

/// Answers a call of IAM with this content and no further page.
fn listed(name: &str, content: &str) -> Answer {
    let result = format!("<{name}Result>{content}<IsTruncated>false</IsTruncated></{name}Result>");
    (200, format!("<{name}Response>{result}</{name}Response>"))
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

/// Answers as the account of a tenant, with its stack, and as its API.
fn with_stack(method: &str, path: &str, body: &str) -> Answer {
    match action(body) {
        "DescribeStacks" => {
            let output = |(key, value): (&str, &str)| {
                format!("<member><OutputKey>{key}</OutputKey><OutputValue>{value}</OutputValue></member>")
            };
            let outputs: String = [
                ("BuildQueueUrl", "http://localhost:4566/111111111111/fh-acme--build.fifo"),
                ("RepositoryName", "fh-acme"),
                ("DeployBucket", "fh-acme--111111111111--eu-west-1"),
                ("BuildRoleArn", "arn:aws:iam::111111111111:role/fh-acme--build-runner"),
            ]
            .map(output)
            .concat();
            let stack = format!(
                "<StackName>freehold-acme</StackName><StackStatus>CREATE_COMPLETE</StackStatus>\
                 <CreationTime>2026-01-01T00:00:00Z</CreationTime><Outputs>{outputs}</Outputs>"
            );
            let result =
                format!("<DescribeStacksResult><Stacks><member>{stack}</member></Stacks></DescribeStacksResult>");
            (200, format!("<DescribeStacksResponse>{result}</DescribeStacksResponse>"))
        }
        "GetCallerIdentity" => caller("111111111111"),
        _ => tenant(method, path, body),
    }
}

/// Answers as a tenant with one app, one install and one deploy, which failed.
pub(super) fn tenant(method: &str, path: &str, body: &str) -> Answer {
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
        "/v1/installs/globex" => {
            json!({ "install": "globex", "account": "222222222222", "region": "eu-west-1", "state": "ready", "app": "web" })
        }
        "/v1/installs/globex/inputs" => json!({ "install": "globex", "app": "web", "version": digest, "inputs": [] }),
        "/v1/apps/web/versions" => json!({
            "items": [{ "app": "web", "version": digest, "number": 1, "created_at": 1000, "components": 1 }],
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
                "reason": "2 of 20 checks fail; `permissions`: role `fh-acme--globex--provision` may not `sqs:CreateQueue`",
            }],
        }),
        _ => return absent(path),
    };
    (200, found.to_string())
}

/// Returns the refusal of a request that changes something. The kinds and the texts are those of the functions.
fn refused(method: &str, path: &str, body: &str) -> Option<Answer> {
    let error: AppError = match (method, path) {
        ("POST", "/v1/installs") if body.contains("wbe") => Absence::App("wbe".parse().unwrap()).into(),
        ("POST", "/v1/installs") if body.contains("globex") => {
            let (serves, region) = ("app `web`".to_owned(), "eu-west-1".to_owned());
            let account = "222222222222".parse().unwrap();
            InstallError::Exists { install: "globex".parse().unwrap(), serves, account, region }.into()
        }
        ("POST", "/v1/installs") if !body.contains("eu-wst-1") => {
            InputsError(vec![InputProblem::Missing("domain".into())]).into()
        }
        ("POST", "/v1/installs") => AppError::invalid(check_region("eu-wst-1", false).unwrap_err().to_string()),
        ("POST", "/v1/apps/web/builds") => Absence::BuildRunner.into(),
        ("POST", "/v1/installs/globex/deploys") if body.contains("qeue") => {
            let known = Known::instead_of("qeue", ["queue"]);
            PlanError::UnknownComponent { app: "web".into(), component: "qeue".parse().unwrap(), known }.into()
        }
        ("POST", "/v1/installs/globex/deploys") if body.contains("dayz") => {
            let known = Known::instead_of("dayz", ["days"]);
            InputsError(vec![InputProblem::Unknown { app: "web".into(), input: "dayz".into(), known }]).into()
        }
        ("POST", "/v1/installs/globex/deploys") if body.contains("days") => {
            let days: Input = serde_json::from_value(json!({ "name": "days", "type": "number" })).unwrap();
            InputsError(vec![InputProblem::Wrong(days.accept(&json!("many")).unwrap_err())]).into()
        }
        ("POST", "/v1/installs/globex/deploys") if body.contains("2026.13") => {
            Absence::Release { app: "web".parse().unwrap(), release: "2026.13".parse().unwrap() }.into()
        }
        ("POST", "/v1/installs/globex/actions/whoamy/runs") => {
            let place = "version 5 of app `web`, the version of install `globex`".to_owned();
            let way_out = "did you mean `whoami`?".to_owned();
            Absence::Action { action: "whoamy".parse().unwrap(), place, way_out }.into()
        }
        ("POST", "/v1/workflows/wf_00000000000000000001/resume") => {
            let workflow = "wf_00000000000000000001".parse().unwrap();
            InstallError::Later { install: "globex".parse().unwrap(), workflow }.into()
        }
        ("POST", "/v1/workflows/wf_00000000000000000001/skip") => {
            let why = "`queue` was never deployed in this install, so it has no outputs for `web` to read".to_owned();
            let workflow = "wf_00000000000000000001".parse().unwrap();
            ContinuationError::NotSkippable { workflow, node: "queue".into(), why }.into()
        }
        ("POST", "/v1/installs/globex/disable") => AppError::forbidden(
            "`ana@example.com` may not disable install `globex` (environment `production`): this needs the permission \
             `disable_install`, which the groups `operator` and `owner` have; ask somebody who may change members: \
             ben@example.com",
        ),
        ("POST", "/v1/installs/globex/deploys") if body.contains("2026.12") => beyond_the_consent().into(),
        ("POST", "/v1/installs/globex/deploys") => {
            PlanError::NotBuilt { component: "queue".parse().unwrap(), app: "web".into() }.into()
        }
        _ => return None,
    };
    Some(tenant_api::refusal(error))
}

fn beyond_the_consent() -> ConsentError {
    let accepted = format!("sha256:{}", "0".repeat(64)).parse().unwrap();
    let more = "role `provision` allows sqs:PurgeQueue on *".to_owned();
    ConsentError::Wider { install: "globex".parse().unwrap(), accepted, more }
}

fn absent(path: &str) -> Answer {
    let mut parts = path.split('/').skip(2);
    let (kind, name) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let absence = match kind {
        "installs" => Absence::Install(name.parse().unwrap()),
        "apps" => Absence::App(name.parse().unwrap()),
        _ => panic!("the tenant of this test has no answer for `{path}`"),
    };
    tenant_api::refusal(absence.into())
}
