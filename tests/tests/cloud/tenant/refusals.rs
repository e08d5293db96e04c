//! Bad input: each is refused with its own message and exit code, and leaves nothing behind.

use anyhow::Context as _;
use aws_credential_types::Credentials;
use freehold_protocol::api::IDEMPOTENCY_KEY;
use freehold_tests::harness::wait::{SOON, until};
use freehold_tests::harness::web::{send, send_signed};
use freehold_tests::harness::{Capability, Needs, World, app};
use serde_json::json;

const NEEDS: Needs = Needs { cloud: &[Capability::HttpApi, Capability::EmptyAccounts], programs: &[] };

/// Names and values.
type Headers<'a> = &'a [(&'a str, &'a str)];
/// In a file, an old text and the one in its place.
type Edit<'a> = (&'a str, &'a str, &'a str);

#[tokio::test(flavor = "multi_thread")]
async fn the_command_and_the_api_refuse_what_is_wrong() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_refusals", NEEDS).await? else { return Ok(()) };
    world.vendor(&["app", "sync", &app::small(world.directory())?.display().to_string()]).await?;
    let demo = app::demo(world.directory(), &[1000])?;
    world.vendor(&["app", "sync", &demo.display().to_string()]).await?;

    unknown_things_are_named(&world).await?;
    wrong_installs_are_refused(&world).await?;
    the_api_refuses_broken_requests(&world).await?;
    a_key_is_for_one_body_and_its_answer_is_repeated(&world).await?;
    broken_app_configs_name_file_and_line(&world).await?;
    what_is_not_built_is_not_deployed(&world).await
}

async fn unknown_things_are_named(world: &World) -> anyhow::Result<()> {
    let cases: [(&[&str], i32, &str); 7] = [
        (&["app", "show", "nothing"], 3, "app `nothing` does not exist; sync it with `freehold app sync DIR`"),
        (&["build", "nothing"], 3, "app `nothing` does not exist; sync it with `freehold app sync DIR`"),
        (&["install", "show", "nobody"], 3, "install `nobody` does not exist; `freehold install list` shows all"),
        (&["deploy", "nobody"], 3, "install `nobody` does not exist"),
        (&["workflow", "show", "wf_00000000000000000000"], 3, "workflow `wf_00000000000000000000` does not exist"),
        (&["job", "show", "job_00000000000000000000"], 3, "job `job_00000000000000000000` does not exist"),
        (&["job", "show", "job_7"], 2, "is not a job id"),
    ];
    for (words, code, message) in cases {
        let output = world.run(words).await?.ended_with(code)?;
        assert!(output.contains(message), "{words:?}: {output}");
    }
    Ok(())
}

async fn wrong_installs_are_refused(world: &World) -> anyhow::Result<()> {
    let create = |name: &'static str, app: &'static str, account: &'static str| {
        ["install", "create", name, "--app", app, "--account", account, "--region", "eu-west-1"]
    };
    let first = create("globex-prod", "small", "222222222222");
    world.vendor(&first).await?;
    let before = until("the install has its queue", SOON, || async {
        let list = world.vendor(&["install", "list"]).await?;
        Ok((!list[0]["orders_queue_url"].is_null()).then_some(list))
    })
    .await?;

    let cases: [(&[&str], i32, &str); 8] = [
        (&create("initech", "nothing", "222222222222"), 3, "app `nothing` does not exist"),
        (&create("initech", "small", "22222222222"), 2, "is not an AWS account id"),
        (&create("initech", "small", "22222222222a"), 2, "is not an AWS account id"),
        (&create("Initech", "small", "222222222222"), 2, "is not an install name"),
        (&create("globex-prod", "small", "333333333333"), 4, "install `globex-prod` exists already"),
        (&create("globex-prod", "demo", "222222222222"), 4, "install `globex-prod` exists already"),
        (&create("globex", "small", "222222222222"), 4, "`globex-prod`"),
        (&create("globex-prod-2", "small", "222222222222"), 4, "`globex-prod`"),
    ];
    for (words, code, message) in cases {
        let output = world.run(words).await?.ended_with(code)?;
        assert!(output.contains(message), "{words:?}: {output}");
    }
    let region = [&create("initech", "small", "222222222222")[..7], &["--region", "mars"]].concat();
    let output = world.run(&region).await?.ended_with(2)?;
    assert!(output.contains("`mars` is not an AWS region"), "{output}");
    let input = [&create("initech", "demo", "222222222222")[..], &["--input", "greting=hi"]].concat();
    let output = world.run(&input).await?.ended_with(2)?;
    assert!(output.contains("greting") && output.contains("greeting"), "{output}");
    let no_runner = world.run(&["deploy", "globex-prod"]).await?.ended_with(4)?;
    assert!(no_runner.contains("`globex-prod`"), "{no_runner}");

    assert_eq!(world.vendor(&["install", "list"]).await?, before, "a refusal left something behind");
    assert!(world.rows("install#initech", "state").await?.is_empty());
    assert!(world.rows("install#globex", "state").await?.is_empty());
    Ok(())
}

async fn the_api_refuses_broken_requests(world: &World) -> anyhow::Result<()> {
    let api = world.api_url().await?;
    let vendor = administrator(world).await?;
    let (installs, deploys) = (format!("{api}/v1/installs"), format!("{api}/v1/installs/globex-prod/deploys"));
    let body = json!({"install": "umbrella", "app": "small", "account": "222222222222", "region": "eu-west-1"});
    let body = body.to_string();
    let wrong_account = body.replace("222222222222", "2222");
    let key: &[(&str, &str)] = &[(IDEMPOTENCY_KEY, "one")];
    let long = "k".repeat(129);
    let long: &[(&str, &str)] = &[(IDEMPOTENCY_KEY, &long)];
    let oversized = format!("{{\"inputs\": {{\"x\": \"{}\"}}}}", "x".repeat((1 << 20) + 1));

    let unsigned = send("POST", &installs, key, body.as_bytes()).await?;
    assert_eq!(unsigned.status, 403, "an anonymous request: {}", unsigned.body);
    let cases: [(&str, &str, Headers<'_>, &str, u16, &str); 8] = [
        ("POST", &installs, &[], &body, 400, "every POST needs the header `idempotency-key`"),
        ("POST", &installs, long, &body, 400, "every POST needs the header `idempotency-key`"),
        ("POST", &installs, key, "{", 400, "request body does not fit this route"),
        ("POST", &installs, key, "{\"install\": 7}", 400, "request body does not fit this route"),
        ("POST", &installs, key, &wrong_account, 400, "is not an AWS account id"),
        ("POST", &deploys, key, &oversized, 400, "more than the maximum of 1048576"),
        ("DELETE", &installs, &[], "", 404, "there is no route `DELETE /v1/installs`"),
        ("GET", &format!("{api}/v2/installs"), &[], "", 404, "there is no route `GET /v2/installs`"),
    ];
    for (method, url, headers, body, status, message) in cases {
        let answer = send_signed(&vendor, method, url, headers, body.as_bytes()).await?;
        assert_eq!(answer.status, status, "{method} {url} {headers:?}: {}", answer.body);
        let (_, output) = answer.error()?;
        assert!(output.contains(message), "{method} {url}: {output}");
    }
    assert!(world.rows("install#umbrella", "state").await?.is_empty());
    Ok(())
}

async fn a_key_is_for_one_body_and_its_answer_is_repeated(world: &World) -> anyhow::Result<()> {
    let (api, vendor) = (world.api_url().await?, administrator(world).await?);
    let url = format!("{api}/v1/installs/globex-prod/labels");
    let set = async |key: &str, team: Option<&str>| {
        let body = json!({ "labels": { "team": team } }).to_string();
        send_signed(&vendor, "POST", &url, &[(IDEMPOTENCY_KEY, key)], body.as_bytes()).await
    };

    let first = set("blue", Some("blue")).await?;
    let other = set("blue", Some("red")).await?;
    let removed = set("none", None).await?;
    let again = set("blue", Some("blue")).await?;

    assert_eq!((first.status, removed.status), (200, 200), "{} {}", first.body, removed.body);
    assert_eq!((other.status, other.error()?.0.as_str()), (409, "conflict"), "{}", other.body);
    assert_eq!((again.status, again.body), (200, first.body));
    let shown = world.vendor(&["install", "show", "globex-prod"]).await?;
    assert!(shown["labels"].get("team").is_none(), "the repeated request was performed again: {shown}");
    Ok(())
}

async fn administrator(world: &World) -> anyhow::Result<Credentials> {
    use aws_credential_types::provider::ProvideCredentials as _;
    let config = world.administrator(world.tenant_account())?;
    Ok(config.credentials_provider().context("no credentials")?.provide_credentials().await?)
}

async fn broken_app_configs_name_file_and_line(world: &World) -> anyhow::Result<()> {
    let install = "{{ .nuon.install.id }}";
    let unknown = "{{ .nuon.components.nowhere.outputs.x }}";
    let cycle = "{{ index .nuon.components \\\"store-info\\\" \\\"outputs\\\" \\\"summary\\\" }}";
    let web = "{{ .nuon.components.web.outputs.digest }}";
    let back = "{{ .nuon.components.settings.outputs.message }}";
    let settings = "components/settings.toml";
    let cases: [(&[Edit<'_>], &str, &str); 4] = [
        (&[(settings, "\"settings\"", "\"settings")], "not TOML", "settings.toml:4:"),
        (&[(settings, install, "{{ .nuon.install.id")], "template", "settings.toml:11:"),
        (&[(settings, install, unknown)], "`nowhere`", "settings.toml:11:"),
        (
            &[(settings, install, cycle), ("components/store-info.toml", web, back)],
            "component `settings` depends on itself via `store-info`",
            "settings.toml:11:",
        ),
    ];
    let before = world.vendor(&["app", "versions", "demo"]).await?;
    for (number, (edits, message, place)) in cases.into_iter().enumerate() {
        let directory = app::demo(&world.directory().join(format!("broken-{number}")), &[1000])?;
        for (file, old, new) in edits {
            app::edit(&directory, file, old, new)?;
        }
        let directory = directory.display().to_string();

        let checked = world.run(&["app", "check", &directory]).await?.ended_with(2)?;
        let synced = world.run(&["app", "sync", &directory]).await?.ended_with(2)?;

        for output in [checked, synced] {
            assert!(output.contains(message) && output.contains(place), "`{message}` at {place}: {output}");
        }
    }
    assert_eq!(world.vendor(&["app", "versions", "demo"]).await?, before, "a broken config made a version");
    Ok(())
}

async fn what_is_not_built_is_not_deployed(world: &World) -> anyhow::Result<()> {
    let missing = format!("sha256:{}", "0".repeat(64));
    let install = world.install("hooli", "demo").await?;
    let _runner = world.runner(&install).await?;
    let workflow = install.created["workflow"].as_str().context("no workflow")?;

    let provisioned = world.run(&["workflow", "watch", workflow]).await?.ended_with(1)?;
    let unknown = world.run(&["deploy", "hooli", "--version", &missing]).await?.ended_with(3)?;
    let deployed = world.run(&["deploy", "hooli"]).await?.ended_with(4)?;

    for output in [provisioned, deployed] {
        assert!(output.contains("has no artifact") && output.contains("`freehold build demo`"), "{output}");
    }
    assert!(unknown.contains(&format!("app `demo` has no version `{missing}`; sync it first")), "{unknown}");
    let view = world.vendor(&["install", "show", "hooli"]).await?;
    assert_eq!((&view["components"], &view["live"]), (&json!([]), &json!(null)), "{view}");
    Ok(())
}
