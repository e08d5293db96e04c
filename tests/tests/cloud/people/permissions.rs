//! Three people with the groups of a new tenant: a developer who only reads production and works in staging, an
//! administrator, and a data scientist.

use freehold_tests::harness::web::Answer;
use freehold_tests::harness::{World, app};
use serde_json::{Value, json};

use super::NEEDS;
use super::person::{Person, Place};

/// A request, and whether it is permitted: the path, and the body of a POST.
type Case = (&'static str, Option<Value>, bool);

#[tokio::test(flavor = "multi_thread")]
async fn a_developer_an_administrator_and_a_data_scientist_may_do_what_their_groups_permit() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_people_permissions", NEEDS).await? else { return Ok(()) };
    two_installs(&world).await?;
    let place = Place::of(&world).await?;
    let developer = member(&world, &place, "dev@example.com", "developer").await?;
    let administrator = member(&world, &place, "admin@example.com", "owner").await?;
    let scientist = member(&world, &place, "data@example.com", "data_scientist").await?;

    for (who, person, cases) in [
        ("developer", &developer, cases_of_the_developer()),
        ("administrator", &administrator, cases_of_the_administrator()),
        ("data scientist", &scientist, cases_of_the_scientist()),
    ] {
        for (path, body, is_permitted) in cases {
            let answer = ask(person, path, body.as_ref()).await?;
            assert_eq!(is_permitted_by(&answer), is_permitted, "{who} {path}: {} {}", answer.status, answer.body);
        }
    }

    let denied = developer.post("/v1/installs/globex/deploys", &json!({})).await?;
    let (kind, message) = denied.error()?;
    assert_eq!((denied.status, kind.as_str()), (403, "forbidden"));
    for part in ["dev@example.com", "deploy_components", "globex", "operator", "admin@example.com"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    let mine = world.vendor(&["install", "show", "initech"]).await?;
    assert_eq!(mine["labels"]["team"], "shop", "what the developer set: {mine}");
    let production = world.vendor(&["install", "show", "globex"]).await?;
    assert_eq!(production["labels"]["team"], "admin", "what the administrator set: {production}");
    Ok(())
}

fn cases_of_the_developer() -> Vec<Case> {
    vec![
        ("/v1/installs/globex", None, true),
        ("/v1/installs/globex/inputs", None, true),
        ("/v1/installs/globex/history", None, true),
        ("/v1/installs/globex/deploys", Some(json!({})), false),
        ("/v1/installs/globex/actions/say/runs", Some(json!({})), false),
        ("/v1/installs/globex/labels", Some(json!({ "labels": { "environment": "staging" } })), false),
        ("/v1/installs/initech", None, true),
        ("/v1/installs/initech/deploys", Some(json!({})), true),
        ("/v1/installs/initech/actions/say/runs", Some(json!({})), true),
        ("/v1/installs/initech/labels", Some(json!({ "labels": { "team": "shop" } })), true),
        ("/v1/members", None, true),
        ("/v1/members", Some(json!({ "member": "eve@example.com", "groups": ["owner"] })), false),
        ("/v1/members/dev@example.com", Some(json!({ "groups": ["owner"] })), false),
        ("/v1/access/policies", Some(json!({ "policies": "" })), false),
    ]
}

fn cases_of_the_administrator() -> Vec<Case> {
    vec![
        ("/v1/installs/globex", None, true),
        ("/v1/installs/globex/deploys", Some(json!({})), true),
        ("/v1/installs/globex/labels", Some(json!({ "labels": { "team": "admin" } })), true),
        ("/v1/members", None, true),
        ("/v1/members", Some(json!({ "member": "fay@example.com", "groups": ["auditor"] })), true),
        ("/v1/access/policies", None, true),
    ]
}

fn cases_of_the_scientist() -> Vec<Case> {
    vec![
        ("/v1/installs/globex", None, true),
        ("/v1/installs/globex/history", None, true),
        ("/v1/installs/globex/inputs", None, false),
        ("/v1/installs/globex/actions/report-usage/runs", Some(json!({})), true),
        ("/v1/installs/globex/actions/say/runs", Some(json!({})), false),
        ("/v1/installs/globex/deploys", Some(json!({})), false),
        ("/v1/installs/initech/deploys", Some(json!({})), false),
        ("/v1/members", None, false),
        ("/v1/members", Some(json!({ "member": "eve@example.com", "groups": ["owner"] })), false),
    ]
}

async fn ask(person: &Person, path: &str, body: Option<&Value>) -> anyhow::Result<Answer> {
    match body {
        Some(body) => person.post(path, body).await,
        None => person.get(path).await,
    }
}

/// Returns whether the policies let a request pass. The installs have no runner, so a deploy that is permitted may be a
/// conflict.
fn is_permitted_by(answer: &Answer) -> bool {
    assert!(matches!(answer.status, 200 | 403 | 409), "{} {}", answer.status, answer.body);
    answer.status != 403
}

/// Makes `globex`, which is in production because it has no label, and `initech` in staging.
async fn two_installs(world: &World) -> anyhow::Result<()> {
    let small = app::small(world.directory())?;
    let report = "name = \"report-usage\"\ntimeout = \"1m\"\n\n[[triggers]]\ntype = \"manual\"\n\n\
                  [[steps]]\nname = \"report\"\ncommand = \"echo usage\"\n";
    app::write(&small, "actions/report-usage.toml", report)?;
    world.vendor(&["app", "sync", &small.display().to_string()]).await?;
    for name in ["globex", "initech"] {
        let account = world.new_customer()?;
        let create = ["install", "create", name, "--app", "small", "--account", &account, "--region", "eu-west-1"];
        world.vendor(&create).await?;
    }
    world.vendor(&["install", "labels", "initech", "--label", "environment=staging"]).await?;
    Ok(())
}

/// Returns a person who has an account, was invited by the owner, who is an IAM principal, and accepted.
async fn member(world: &World, place: &Place, email: &str, group: &str) -> anyhow::Result<Person> {
    let invited = world.vendor(&["member", "invite", email, "--group", group]).await?;
    let person = place.sign_up(email).await?;
    let accepted = person.accept(&invited).await?;
    assert_eq!(accepted.status, 200, "{email}: {}", accepted.body);
    Ok(person)
}
