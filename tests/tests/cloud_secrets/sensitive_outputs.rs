//! Sensitive outputs across two accounts: those of the sandbox and of a component arrive in another component and in an
//! action, and nothing that the vendor has shows one.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use freehold_tests::harness::{Install, World, app};
use serde_json::{Value, json};

use super::{NEEDS_OF_MODULES, Processes, leaks, what_the_vendor_has};

/// What every canary of this test begins with.
const MARK: &str = "cAn4oT/";
/// The vendor has this text, so the canary is put together when it is applied.
const SANDBOX: &str = r#"
variable "zone" { type = string }
output "token" {
  value     = join("", ["cAn4", "oT/", "token-", sha256(var.zone)])
  sensitive = true
}
"#;
const DATABASE: &str = r#"
variable "round" { type = string }
output "login" {
  value     = { user = "admin", password = join("", ["cAn4", "oT/", "login-", sha256(var.round)]) }
  sensitive = true
}
output "port" { value = 5432 }
"#;
/// The plan prints the values, and the output shows one.
const SITE: &str = r#"
variable "password" { type = string }
variable "token" { type = string }
resource "terraform_data" "site" { input = "${var.password} and ${var.token}" }
output "summary" { value = "site with ${var.password}" }
"#;
/// What the log has of that plan.
const PLANNED: &str = "[redacted] and [redacted]";
const ACTION: &str = r#"name = "say"
timeout = "2m"

[[triggers]]
type = "manual"

[[steps]]
name = "say"
inline_contents = """
#!/bin/sh
set -eu
echo 'password {{ .nuon.components.database.outputs.login.password }} of {{ .nuon.components.db.outputs.login.user }}'
printf '%s' '{{ .nuon.sandbox.outputs.token }}' | base64 -w 0
echo
printf '%s' '{{ .nuon.components.database.outputs.login.password }}' | sha256sum
"""
"#;

#[tokio::test(flavor = "multi_thread")]
async fn sensitive_outputs_arrive_in_other_parts_and_stay_in_the_account() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_sensitive_outputs", NEEDS_OF_MODULES).await? else { return Ok(()) };
    let directory = an_app(world.directory())?;
    let _builder = world.build_runner().await?;
    world.sync_and_build(&directory, "small").await?;
    let install = world.install("globex", "small").await?;
    let mut runner = world.runner(&install).await?;
    let processes = Processes::watch(&[]);

    let provisioned = world.provisioned(&install).await?;
    runner.kill().await?;
    runner.start_again()?;
    let run = says(&world).await?;

    assert_eq!(provisioned["state"], "succeeded", "{provisioned}");
    let first = site_state(&world, &install).await?;
    assert!(first.contains(&format!("{MARK}login-")) && first.contains(&format!("{MARK}token-")), "{first}");
    let (line, digest) = ("password [redacted] of [redacted]", sha256(&canary_in(&first, "login-")?));
    let log = log_of(&world, &run, |log| log.contains(line) && log.contains(&digest)).await?;
    assert!(log.contains(line), "{log}");
    assert!(log.contains(&digest), "the action had another value: {log}");
    let kept = locked(&world, &install).await?;
    assert_eq!(kept.len(), 2, "{kept:?}");
    a_changed_value_is_used(&world, &install, &directory).await?;
    nothing_is_kept_after_the_teardown(&world, &install).await?;
    let seen = processes.end("freehold");
    let held = what_the_vendor_has(&world).await?;
    assert!(held.len() > 10_000 && held.contains("site with [redacted]"), "another place was searched");
    let logs = logs_of(&world, &provisioned).await?;
    assert!(logs.contains(PLANNED), "{logs}");
    let texts = [&held, &log, &logs, &provisioned.to_string(), &run.to_string(), &seen];
    assert_eq!(texts.map(|text| leaks(MARK, text)), [0; 6]);
    Ok(())
}

/// Runs the action, and once more when the last receive of the killed runner took its order: then it ends `interrupted`.
async fn says(world: &World) -> anyhow::Result<Value> {
    let run = ["action", "run", "globex", "say"];
    match world.vendor(&run).await {
        Err(error) if error.to_string().contains("\"interrupted\"") => world.vendor(&run).await,
        run => run,
    }
}

fn an_app(parent: &Path) -> anyhow::Result<PathBuf> {
    let directory = app::small(parent)?;
    let role =
        "type = \"deprovision\"\nname = \"{{ .nuon.install.id }}-deprovision\"\ndescription = \"does nothing\"\n";
    app::write(&directory, "permissions/deprovision.toml", role)?;
    let module = |source: &str| format!("terraform_version = \"1.11.3\"\nsource = \"{source}\"\n[vars]\n");
    app::write(&directory, "sandbox.toml", &format!("{}zone = \"a\"\n", module("./sandbox")))?;
    app::write(&directory, "sandbox/main.tf", SANDBOX)?;
    let component = |name: &str| format!("name = \"{name}\"\ntype = \"terraform_module\"\n");
    let database = format!("{}var_name = \"db\"\n{}round = \"one\"\n", component("database"), module("../database"));
    app::write(&directory, "components/database.toml", &database)?;
    app::write(&directory, "database/main.tf", DATABASE)?;
    let reads = "password = \"{{ .nuon.components.database.outputs.login.password }}\"\n\
                 token = \"{{ .nuon.install.sandbox.outputs.token }}\"\n";
    app::write(&directory, "components/site.toml", &format!("{}{}{reads}", component("site"), module("../site")))?;
    app::write(&directory, "site/main.tf", SITE)?;
    app::write(&directory, "actions/say.toml", ACTION)?;
    Ok(directory)
}

async fn a_changed_value_is_used(world: &World, install: &Install, directory: &Path) -> anyhow::Result<()> {
    let before = canary_in(&site_state(world, install).await?, "login-")?;
    app::edit(directory, "components/database.toml", "round = \"one\"", "round = \"two\"")?;
    world.sync_and_build(directory, "small").await?;

    let changed = world.vendor(&["deploy", "globex"]).await?;
    let nothing = world.vendor(&["deploy", "globex"]).await?;

    assert_eq!(names(&changed), ["database", "site"], "{changed}");
    assert_eq!(nothing["nodes"], json!([]), "{nothing}");
    assert_ne!(canary_in(&site_state(world, install).await?, "login-")?, before);
    assert_eq!(leaks(MARK, &changed.to_string()), 0);
    Ok(())
}

async fn nothing_is_kept_after_the_teardown(world: &World, install: &Install) -> anyhow::Result<()> {
    world.change_stack(install, &["EnableDeprovision=true"]).await?;
    let removed = world.vendor(&["teardown", "globex", "--confirm", "globex"]).await?;

    assert_eq!(removed["state"], "succeeded", "{removed}");
    assert_eq!(locked(world, install).await?, Vec::<String>::new());
    Ok(())
}

fn bucket_of(install: &Install) -> String {
    format!("fh-acme--globex--{}", install.account)
}

/// Returns the names of the objects with sensitive outputs.
async fn locked(world: &World, install: &Install) -> anyhow::Result<Vec<String>> {
    let s3 = aws_sdk_s3::Client::new(&world.administrator(&install.account)?);
    let objects = s3.list_objects_v2().bucket(bucket_of(install)).prefix("locked/").send().await?;
    Ok(objects.contents().iter().filter_map(|object| object.key().map(str::to_owned)).collect())
}

async fn site_state(world: &World, install: &Install) -> anyhow::Result<String> {
    let s3 = aws_sdk_s3::Client::new(&world.administrator(&install.account)?);
    let state = s3.get_object().bucket(bucket_of(install)).key("terraform/site.tfstate").send().await?;
    Ok(String::from_utf8(state.body.collect().await?.to_vec())?)
}

/// Returns the first canary in `text` of the kind `kind`.
fn canary_in(text: &str, kind: &str) -> anyhow::Result<String> {
    let mark = format!("{MARK}{kind}");
    let from = text.find(&mark).with_context(|| format!("no `{kind}` in {text}"))?;
    let rest = text.get(from + mark.len()..).unwrap_or_default();
    let digits: String = rest.chars().take_while(char::is_ascii_hexdigit).collect();
    Ok(format!("{mark}{digits}"))
}

fn sha256(text: &str) -> String {
    freehold_protocol::Digest::of(text.as_bytes()).hex().to_owned()
}

async fn log_of(world: &World, workflow: &Value, is_whole: impl Fn(&str) -> bool) -> anyhow::Result<String> {
    let job = workflow["nodes"][0]["job"].as_str().with_context(|| format!("no job: {workflow}"))?;
    world.log(job, is_whole).await
}

/// Returns the logs of all jobs of a workflow.
async fn logs_of(world: &World, workflow: &Value) -> anyhow::Result<String> {
    let mut all = String::new();
    for node in workflow["nodes"].as_array().into_iter().flatten() {
        if let Some(job) = node["job"].as_str() {
            let is_whole = |log: &str| node["name"] != "site" || log.contains(PLANNED);
            all.push_str(&world.log(job, is_whole).await?);
        }
    }
    Ok(all)
}

fn names(workflow: &Value) -> Vec<&str> {
    let nodes = workflow["nodes"].as_array().map(Vec::as_slice).unwrap_or_default();
    nodes.iter().filter_map(|node| node["name"].as_str()).collect()
}
