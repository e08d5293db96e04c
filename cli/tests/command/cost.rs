//! `freehold cost` and `freehold customer cost` against a server that answers as Cost Explorer does: the shapes are
//! those of AWS's model of the API (`GetCostAndUsage`, `ListCostAllocationTags`, protocol AWS JSON 1.1).

use std::process::Output;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::{freehold, loopback, tenant_api, text};

const CALLER: &str = "<GetCallerIdentityResponse><GetCallerIdentityResult>\
                      <Arn>arn:aws:sts::222222222222:assumed-role/billing/me</Arn><Account>222222222222</Account>\
                      </GetCallerIdentityResult></GetCallerIdentityResponse>";
const KEY: &str = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
/// 2025-10-10, and the last day of the month before.
const OCTOBER: u64 = 1_760_054_400_000;
const SEPTEMBER: u64 = 1_759_190_400_000;
const DAYS: [&str; 4] = ["--since", "2025-10-01", "--until", "2025-10-31"];

/// The requests that Cost Explorer got.
type Requests = Arc<Mutex<Vec<Value>>>;

/// Starts a server for AWS and for the tenant's API, on which Cost Explorer answers with `explorer`.
fn serve(mut explorer: impl FnMut(&Value) -> (u16, Value) + Send + 'static) -> (String, Requests) {
    let requests = Requests::default();
    let kept = requests.clone();
    let address = loopback::listen(move |_, path, body| {
        if body.starts_with('{') {
            let request: Value = serde_json::from_str(body).unwrap();
            kept.lock().unwrap().push(request.clone());
            let (status, answer) = explorer(&request);
            return (status, answer.to_string());
        }
        match body.split('&').next().unwrap_or_default() {
            "Action=GetCallerIdentity" => (200, CALLER.to_owned()),
            "Action=DescribeStacks" => (200, stack()),
            "Action=ListStackResources" => (200, resources()),
            _ => api(path).map_or_else(|| tenant_api::absent(path), |found| (200, found.to_string())),
        }
    });
    (address, requests)
}

fn stack() -> String {
    let parameter = |key, value| {
        format!("<member><ParameterKey>{key}</ParameterKey><ParameterValue>{value}</ParameterValue></member>")
    };
    let parameters = [parameter("InstanceType", "t4g.small"), parameter("EnableRunner", "true")].concat();
    format!(
        "<DescribeStacksResponse><DescribeStacksResult><Stacks><member><StackName>fh-acme--globex</StackName>\
         <CreationTime>2025-09-01T00:00:00Z</CreationTime><StackStatus>CREATE_COMPLETE</StackStatus>\
         <Parameters>{parameters}</Parameters></member></Stacks></DescribeStacksResult></DescribeStacksResponse>"
    )
}

fn resources() -> String {
    let member = |kind: &str, name: &str, status: &str| {
        format!(
            "<member><LogicalResourceId>{name}</LogicalResourceId><ResourceType>{kind}</ResourceType>\
             <ResourceStatus>{status}</ResourceStatus>\
             <LastUpdatedTimestamp>2025-09-01T00:00:00Z</LastUpdatedTimestamp></member>"
        )
    };
    let members = [
        member("AWS::KMS::Key", "Key", "CREATE_COMPLETE"),
        member("AWS::CloudWatch::Alarm", "Alarm", "UPDATE_COMPLETE"),
        member("AWS::AutoScaling::AutoScalingGroup", "Group", "CREATE_COMPLETE"),
        member("AWS::SecretsManager::Secret", "Old", "DELETE_COMPLETE"),
    ];
    format!(
        "<ListStackResourcesResponse><ListStackResourcesResult><StackResourceSummaries>{}</StackResourceSummaries>\
         </ListStackResourcesResult></ListStackResourcesResponse>",
        members.concat()
    )
}

/// Returns what the tenant's API answers. The workflows of `globex` have two pages.
fn api(path: &str) -> Option<Value> {
    let install = |name: &str| {
        json!({
            "install": name, "app": "web-shop", "account": "222222222222", "region": "eu-west-1", "state": "ready",
        })
    };
    let workflow = |number: u32, at: u64, jobs: u32| {
        json!({
            "workflow": format!("wf_{number:020}"), "install": "globex", "kind": "deploy-components",
            "state": "succeeded", "created_at": at, "jobs": jobs,
        })
    };
    Some(match path {
        "/v1/tenant" => json!({
            "tenant": "acme", "account": "111111111111", "region": "eu-west-1",
            "reports_queue_url": "https://q", "tenant_key": KEY,
        }),
        "/v1/apps/web-shop" => json!({
            "app": "web-shop", "latest": format!("sha256:{}", "0".repeat(64)), "number": 1, "updated_at": 0,
        }),
        "/v1/installs" => json!({ "items": [install("globex"), install("initech")] }),
        "/v1/installs/globex/workflows" => json!({ "items": [workflow(3, OCTOBER, 7)], "next": "two" }),
        // A page after the first workflow of an earlier month is not read: the server has none.
        "/v1/installs/globex/workflows?after=two" => {
            json!({ "items": [workflow(2, OCTOBER, 4), workflow(1, SEPTEMBER, 9)], "next": "three" })
        }
        "/v1/installs/initech/workflows" => json!({ "items": [workflow(4, OCTOBER, 12)] }),
        _ => return None,
    })
}

/// Returns a page of `GetCostAndUsage`.
fn page(groups: &[(&[&str], &str, &str)], next: Option<&str>) -> Value {
    let group = |(keys, amount, unit): &(&[&str], &str, &str)| json!({ "Keys": keys, "Metrics": { "UnblendedCost": { "Amount": amount, "Unit": unit } } });
    let groups: Vec<Value> = groups.iter().map(group).collect();
    let month = json!({ "Start": "2025-10-01", "End": "2025-11-01" });
    let mut page = json!({
        "GroupDefinitions": [], "DimensionValueAttributes": [],
        "ResultsByTime": [{ "TimePeriod": month, "Total": {}, "Groups": groups, "Estimated": false }],
    });
    if let Some(next) = next {
        page["NextPageToken"] = json!(next);
    }
    page
}

fn run(address: &str, args: &[&str]) -> Output {
    let place = tempfile::tempdir().unwrap();
    let mut command = freehold(place.path(), args);
    command.envs([
        ("FREEHOLD_API", address),
        ("FREEHOLD_TENANT", "acme"),
        ("AWS_ENDPOINT_URL", address),
        ("AWS_REGION", "eu-west-1"),
        ("AWS_ACCESS_KEY_ID", "AKID"),
        ("AWS_SECRET_ACCESS_KEY", "local"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ]);
    command.output().unwrap()
}

fn customer(address: &str, more: &[&str]) -> Output {
    run(address, &[&["customer", "cost", "globex", "--json"], &DAYS[..], more].concat())
}

/// Returns the JSON that a command printed, which succeeded.
fn answer(done: &Output) -> Value {
    assert!(done.status.success(), "{done:?}");
    serde_json::from_slice(&done.stdout).unwrap()
}

/// Returns the exit code of a command that failed, and its error.
fn error(done: &Output) -> (i32, String) {
    let last = text(&done.stderr).lines().last().unwrap_or_default().to_owned();
    let error: Value = serde_json::from_str(&last).unwrap_or_else(|wrong| panic!("{wrong}: {done:?}"));
    let part = |name: &str| error["error"][name].as_str().unwrap_or_default().to_owned();
    (done.status.code().unwrap(), format!("{}; {}", part("message"), part("way_out")))
}

/// Returns the error of the customer's command when Cost Explorer refuses, and the number of its requests.
fn refused(status: u16, code: &str, message: &str) -> (i32, String, usize) {
    let body = json!({ "__type": code, "Message": message });
    let (address, requests) = serve(move |_| (status, body.clone()));
    let (code, error) = error(&customer(&address, &[]));
    let count = requests.lock().unwrap().len();
    (code, error, count)
}

#[test]
fn all_pages_of_a_bill_are_added_up_exactly_and_each_request_is_counted() {
    let (address, requests) = serve(|request| match request["NextPageToken"].as_str() {
        None => (
            200,
            page(
                &[(&["freehold:component$web"], "0.1", "USD"), (&["freehold:component$"], "3.1E-7", "USD")],
                Some("2"),
            ),
        ),
        Some("2") => (200, page(&[(&["freehold:component$web"], "0.2", "USD")], Some("3"))),
        Some(_) => (200, page(&[(&["freehold:component$a$b"], "1", "EUR")], None)),
    });

    let bill = answer(&customer(&address, &[]));

    let component =
        |name: &str| bill["billed"].as_array().unwrap().iter().find(|one| one["component"] == name).cloned().unwrap();
    assert_eq!(component("web")["billed"], json!({ "USD": "0.3" }));
    assert_eq!(component("a$b")["billed"], json!({ "EUR": "1" }));
    assert_eq!((&component("web")["since"], &component("web")["until"]), (&json!("2025-10-01"), &json!("2025-10-31")));
    assert_eq!(bill["total"], json!({ "EUR": "1", "USD": "0.30000031" }));
    assert_eq!((&bill["requests"], &bill["is_final"]), (&json!(3), &json!(true)));
    let requests = requests.lock().unwrap();
    assert_eq!(requests.len(), 3);
    assert_eq!(requests[0]["TimePeriod"], json!({ "Start": "2025-10-01", "End": "2025-11-01" }));
    assert_eq!((&requests[0]["Granularity"], &requests[0]["Metrics"]), (&json!("MONTHLY"), &json!(["UnblendedCost"])));
    assert_eq!(requests[0]["GroupBy"], json!([{ "Type": "TAG", "Key": "freehold:component" }]));
    let tag = |key: &str, value: &str| json!({ "Tags": { "Key": key, "Values": [value] } });
    assert_eq!(
        requests[0]["Filter"],
        json!({ "And": [tag("freehold:tenant", "acme"), tag("freehold:install", "globex")] })
    );
}

#[test]
fn a_page_that_comes_again_ends_the_command() {
    let (address, requests) = serve(|_| (200, page(&[(&["freehold:component$web"], "1", "USD")], Some("2"))));

    let (code, error) = error(&customer(&address, &["--daily"]));

    assert_eq!((code, requests.lock().unwrap().len()), (1, 2), "{error}");
    assert!(error.starts_with("Cost Explorer returned the same page twice"), "{error}");
    assert_eq!(requests.lock().unwrap()[0]["Granularity"], "DAILY");
}

#[test]
fn an_empty_bill_names_the_tags_that_are_not_activated_and_the_command_that_activates_them() {
    let tag = |key: &str, status: &str| json!({ "TagKey": key, "Type": "UserDefined", "Status": status });
    let with = |tags: Vec<Value>| {
        let (address, requests) = serve(move |request| match request.get("TagKeys") {
            None => (200, page(&[], None)),
            Some(_) => (200, json!({ "CostAllocationTags": tags })),
        });
        let (code, error) = error(&customer(&address, &[]));
        assert_eq!((code, requests.lock().unwrap().len()), (4, 2), "{error}");
        assert!(error.contains("AWS bills 0.02 US dollars for 2 requests for this answer"), "{error}");
        assert!(error.contains("`--forecast`"), "{error}");
        error
    };

    let inactive = with(vec![
        tag("freehold:tenant", "Active"),
        tag("freehold:install", "Inactive"),
        tag("freehold:component", "Inactive"),
    ]);
    assert!(inactive.contains("`freehold:install`, `freehold:component` are not activated"), "{inactive}");
    let command = "`aws ce update-cost-allocation-tags-status --cost-allocation-tags-status \
                   TagKey=freehold:install,Status=Active TagKey=freehold:component,Status=Active`";
    assert!(inactive.contains(command) && inactive.contains("--backfill-from 2025-10-01T00:00:00Z"), "{inactive}");
    let unseen = with(vec![tag("freehold:tenant", "Active"), tag("freehold:install", "Active")]);
    assert!(unseen.contains("AWS does not know the tag `freehold:component` yet"), "{unseen}");
    let active = with(["tenant", "install", "component"].map(|key| tag(&format!("freehold:{key}"), "Active")).into());
    assert!(active.contains("although these tags are activated") && active.contains("within 24 hours"), "{active}");
}

#[test]
fn an_account_of_an_organization_is_sent_to_the_management_account() {
    let refusal = "Failed to list Cost Allocation Tags: Linked account doesn't have access to cost allocation tags.";
    let (address, _) = serve(move |request| match request.get("TagKeys") {
        None => (200, page(&[], None)),
        Some(_) => (400, json!({ "__type": "AccessDeniedException", "Message": refusal })),
    });

    let (code, error) = error(&customer(&address, &[]));

    assert_eq!(code, 4, "{error}");
    assert!(error.contains(refusal) && error.contains("only the management account has the answer"), "{error}");
}

#[test]
fn a_refusal_says_what_is_missing_and_is_not_repeated() {
    let denied =
        "User: arn:aws:sts::222222222222:assumed-role/billing/me is not authorized to perform: ce:GetCostAndUsage";
    for (code, message, exit, says) in [
        ("AccessDeniedException", denied, 6, "allow `ce:GetCostAndUsage`"),
        (
            "AccessDeniedException",
            "User not enabled for cost explorer access",
            4,
            "Cost Explorer is not enabled for this account",
        ),
        ("DataUnavailableException", "The requested data is unavailable.", 4, "try again 24 hours after"),
        ("LimitExceededException", "Rate exceeded", 5, "try again in a minute"),
        ("ThrottlingException", "Rate exceeded", 5, "cannot ask Cost Explorer what was billed"),
        ("ValidationException", "Start date is too old", 2, "Start date is too old"),
    ] {
        let (found, error, requests) = refused(400, code, message);

        assert_eq!((found, requests), (exit, 1), "{code}: {error}");
        assert!(error.contains(says) && error.contains(message), "{code}: {error}");
    }
}

#[test]
fn a_vendors_bill_is_split_by_the_work_of_the_days() {
    let (address, requests) = serve(|_| {
        (
            200,
            page(
                &[
                    (&["freehold:install$globex", "Amazon Simple Queue Service"], "0.07", "USD"),
                    (&["freehold:install$", "AWS Key Management Service"], "2.4", "USD"),
                ],
                None,
            ),
        )
    });

    let bill = answer(&run(&address, &[&["cost", "--json", "--app", "web-shop"], &DAYS[..]].concat()));

    let [globex, initech] = bill["installs"].as_array().unwrap().as_slice() else { panic!("{bill}") };
    assert_eq!((&globex["workflows"], &globex["jobs"]), (&json!(2), &json!(11)), "{bill}");
    assert_eq!((&globex["billed"], &globex["estimated_share"]), (&json!({ "USD": "0.07" }), &json!({ "USD": "1.2" })));
    assert_eq!((&initech["billed"], &initech["estimated_share"]), (&json!({}), &json!({ "USD": "1.2" })));
    assert_eq!(bill["apps"][0]["estimated_share"], json!({ "USD": "2.4" }));
    let requests = requests.lock().unwrap();
    assert_eq!(requests[0]["Filter"], json!({ "Tags": { "Key": "freehold:tenant", "Values": ["acme"] } }));
    let by = json!([{ "Type": "TAG", "Key": "freehold:install" }, { "Type": "DIMENSION", "Key": "SERVICE" }]);
    assert_eq!((requests.len(), &requests[0]["GroupBy"]), (1, &by));
}

#[test]
fn a_forecast_asks_for_no_bill() {
    let (address, requests) = serve(|_| (500, json!({})));

    let vendors = answer(&run(&address, &[&["cost", "--forecast", "--json"], &DAYS[..]].concat()));
    let customers = run(&address, &["customer", "cost", "globex", "--forecast"]);

    assert_eq!(vendors["parts"][0], json!({ "what": "key of KMS", "count": 1, "low_usd": "1", "high_usd": "1" }));
    assert_eq!(vendors["installs"][0]["jobs"], 11);
    let shown = text(&customers.stdout);
    assert!(customers.status.success(), "{customers:?}");
    assert!(shown.contains("machine t4g.small of the runner") && !shown.contains("secret"), "{shown}");
    assert!(
        shown.contains("nothing of it was billed") && shown.contains("left out: the resources of the app"),
        "{shown}"
    );
    assert!(requests.lock().unwrap().is_empty());
}

#[test]
fn a_mistake_is_found_before_a_request_that_costs_money() {
    let (address, requests) = serve(|_| (200, page(&[], None)));

    for (args, exit) in [
        (&["cost", "--json", "--app", "wiki"][..], 3),
        (&["cost", "--json", "--since", "2025-10-02", "--until", "2025-10-01"], 2),
        (&["cost", "--json", "--until", "9999-12-31"], 2),
        (&["customer", "cost", "globex", "--json", "--since", "soon"], 2),
        (&["customer", "cost", "globex", "--json", "--forecast", "--daily"], 2),
    ] {
        let (code, error) = error(&run(&address, args));
        assert_eq!(code, exit, "{args:?}: {error}");
    }

    assert!(requests.lock().unwrap().is_empty());
}
