//! Roles across two accounts: a runner configured by its stack alone, modes that the customer switches off and on, the
//! actions that such a switch starts, the kill switch, and break-glass, which expires by itself.

use anyhow::{Context as _, bail};
use aws_sdk_sqs::error::ProvideErrorMetadata as _;
use aws_sdk_sqs::primitives::{DateTime, DateTimeFormat};
use freehold_tests::harness::wait::{SOON, until};
use freehold_tests::harness::{Capability, Install, Needs, World, app, clients};
use serde_json::{Value, json};

const NEEDS: Needs = Needs { cloud: &[Capability::HttpApi, Capability::IamEnforced], programs: &["bwrap"] };

/// For how long break-glass is open, in seconds: the second number is for slow machines, and less than [`SOON`].
const WHILES: [i64; 2] = [45, 150];
const BREAK_GLASS: &str = r#"[[role]]
name = "{{ .nuon.install.id }}-break-glass"
description = "Looks at everything when something is on fire"

[[role.policies]]
managed_policy_name = "ReadOnlyAccess"
"#;

/// Says under which role it runs, when it is asked to.
fn action(name: &str, more: &str) -> String {
    format!(
        r#"name = "{name}"
timeout = "1m"
{more}

[[triggers]]
type = "manual"

[[steps]]
name = "say"
inline_contents = """
#!/bin/sh
echo done
"""
"#
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_customer_switches_modes_and_opens_break_glass_for_a_while() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_roles", NEEDS).await? else { return Ok(()) };
    let directory = app::small(world.directory())?;
    app::write(&directory, "break_glass.toml", BREAK_GLASS)?;
    let look = action("look", "other_roles = [\"{{ .nuon.install.id }}-break-glass\"]");
    app::write(&directory, "actions/look.toml", &look)?;
    app::write(
        &directory,
        "actions/repair.toml",
        &action("repair", "break_glass_role = \"{{.nuon.install.id}}-break-glass\""),
    )?;
    world.vendor(&["app", "sync", &directory.display().to_string()]).await?;
    let install = world.install("globex", "small").await?;
    let runner = world.runner_of_stack(&install).await?;
    let provisioned = world.provisioned(&install).await?;
    assert_eq!(provisioned["state"], "succeeded", "{provisioned}\n{}", runner.log());

    let closed = run(&world, &["repair"]).await?;
    let elsewhere = run(&world, &["look", "--role", "break-glass"]).await?;
    let open = run(&world, &["look"]).await?;
    world.change_stack(&install, &["EnableMaintenance=false"]).await?;
    let off = run(&world, &["look"]).await?;
    world.change_stack(&install, &["EnableMaintenance=true"]).await?;
    let on = run(&world, &["look"]).await?;

    assert_eq!((state_of(&closed), state_of(&elsewhere), state_of(&open)), ("blocked", "blocked", "succeeded"));
    assert_eq!((state_of(&off), state_of(&on)), ("blocked", "succeeded"));
    assert_eq!((closed["mode"].as_str(), closed["role"].as_str()), (Some("break_glass"), Some("break-glass")));
    for (job, reason) in [
        (&closed, "set parameter `EnableBreakGlass` of the install stack to `true`, and `BreakGlassUntil`"),
        (&off, "set parameter `EnableMaintenance` of the install stack to `true`"),
    ] {
        assert!(job["reason"].as_str().unwrap_or_default().contains(reason), "{job}");
    }

    let end = repaired_while_open(&world, &install).await?;
    until("break-glass is over", SOON, async || Ok((now()? > end).then_some(()))).await?;
    assert_eq!(state_of(&run(&world, &["repair"]).await?), "blocked");
    Ok(())
}

/// Opens break-glass for a while in which an action runs under it; returns the end of this while, in seconds. Where the
/// machine is so slow that the while ends first, a longer one is tried.
async fn repaired_while_open(world: &World, install: &Install) -> anyhow::Result<i64> {
    for secs in WHILES {
        let end = now()? + secs;
        let until_then = DateTime::from_secs(end).fmt(DateTimeFormat::DateTime)?;
        world.change_stack(install, &["EnableBreakGlass=true", &format!("BreakGlassUntil={until_then}")]).await?;
        let glass = run(world, &["repair"]).await?;
        if now()? <= end || state_of(&glass) == "succeeded" {
            assert_eq!(state_of(&glass), "succeeded", "{glass}");
            return Ok(end);
        }
    }
    bail!("break-glass was over before the action began, although it was open for {WHILES:?} s")
}

/// Says which role the customer has switched.
const RECORD: &str = r#"name = "record"
timeout = "1m"

[[triggers]]
type = "role-enabled"

[[triggers]]
type = "role-disabled"

[[steps]]
name = "say"
command = "echo $TRIGGER_TYPE: $ROLE_NAME is $CHANGE_TYPE"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_the_customer_switches_starts_the_actions_of_this_event_once() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_roles.events", NEEDS).await? else { return Ok(()) };
    let directory = app::small(world.directory())?;
    app::write(&directory, "actions/record.toml", RECORD)?;
    world.vendor(&["app", "sync", &directory.display().to_string()]).await?;
    let install = world.install("globex", "small").await?;
    let mut runner = world.runner_of_stack(&install).await?;
    world.provisioned(&install).await?;

    let mut logs = Vec::new();
    for (value, event) in [("true", "role-enabled"), ("false", "role-disabled")] {
        world.change_stack(&install, &[&format!("EnableDeprovision={value}")]).await?;
        // The runner looks at its stack every ten minutes, and when it starts.
        runner.kill().await?;
        runner.start_again()?;
        logs.push(log_of_event(&world, event).await?);
    }

    assert!(logs[0].contains("role-enabled: fh-acme--globex--deprovision is enabled"), "{}", logs[0]);
    assert!(logs[1].contains("role-disabled: fh-acme--globex--deprovision is disabled"), "{}", logs[1]);
    let all = world.vendor(&["workflow", "list", "globex"]).await?;
    let runs = all.as_array().into_iter().flatten().filter(|view| view["action"] == "record");
    assert_eq!(runs.count(), 2, "{all}");
    Ok(())
}

/// Waits until the action that an event of roles starts has run, and returns its log. The schedule calls the sweep each
/// minute; here it is called at once.
async fn log_of_event(world: &World, event: &str) -> anyhow::Result<String> {
    let workflow = until("the action has run", SOON, async || {
        clients::invoke(&world.administrator(world.tenant_account())?, world.tenant(), "sweep").await?;
        let newest = world.newest_workflow("globex").await?;
        Ok((newest["trigger"] == event && !newest["ended_at"].is_null()).then_some(newest))
    })
    .await?;
    let job = workflow["nodes"][0]["job"].as_str().with_context(|| format!("no job: {workflow}"))?;
    world.log(job, |log| log.contains(event)).await
}

/// May do everything, within a boundary of the app's own.
const BOUNDED: &str = r#"type = "maintenance"
name = "{{ .nuon.install.id }}-maintenance"
description = "does what its boundary allows"
permissions_boundary = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sqs:*", "Resource": "*"}]}'

[[policies]]
managed_policy_name = "AdministratorAccess"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_role_may_do_what_its_boundary_allows_and_what_every_job_needs() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_roles.boundary", NEEDS).await? else { return Ok(()) };
    let directory = app::small(world.directory())?;
    app::write(&directory, "permissions/maintenance.toml", BOUNDED)?;
    app::write(&directory, "actions/look.toml", &action("look", ""))?;
    world.vendor(&["app", "sync", &directory.display().to_string()]).await?;
    let install = world.install("globex", "small").await?;
    let _runner = world.runner_of_stack(&install).await?;
    world.provisioned(&install).await?;
    let runner = world.acting_as(world.role(&install.account, "fh-acme--globex--runner").await?)?;
    let role = format!("arn:aws:iam::{}:role/fh-acme--globex--maintenance", install.account);
    let role = world.acting_as(clients::assume(&runner, &role).await?)?;
    let (sqs, tables, s3) = (
        aws_sdk_sqs::Client::new(&role),
        aws_sdk_dynamodb::Client::new(&role),
        aws_sdk_s3::Client::from_conf(aws_sdk_s3::config::Builder::from(&role).force_path_style(true).build()),
    );
    let own = format!("fh-acme--globex--{}", install.account);
    let write = async |key: &str| s3.put_object().bucket(&own).key(key).send().await;

    sqs.list_queues().send().await.context("the boundary allows it")?;
    let denied = tables.list_tables().send().await.map_err(|error| error.code().map(str::to_owned));
    let state = write("terraform/maintenance/state").await;
    let buckets = s3.list_buckets().send().await.map_err(|error| error.code().map(str::to_owned));
    let job = run(&world, &["look"]).await?;

    assert!(
        matches!(&denied, Err(Some(code)) if code.starts_with("Authorization") || code.starts_with("AccessDenied")),
        "{denied:?}"
    );
    state.context("every job writes its state")?;
    assert_eq!(buckets.err().flatten().as_deref(), Some("AccessDenied"));
    assert_eq!(state_of(&job), "succeeded", "{job}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kill_switch_holds_orders_and_takes_sessions_until_it_is_on_again() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_roles.switch", NEEDS).await? else { return Ok(()) };
    let directory = app::small(world.directory())?;
    app::write(&directory, "actions/look.toml", &action("look", ""))?;
    world.vendor(&["app", "sync", &directory.display().to_string()]).await?;
    let install = world.install("globex", "small").await?;
    let mut runner = world.runner_of_stack(&install).await?;
    world.provisioned(&install).await?;
    let session = world.acting_as(world.role(&install.account, "fh-acme--globex--runner").await?)?;
    let mode = format!("arn:aws:iam::{}:role/fh-acme--globex--maintenance", install.account);
    clients::assume(&session, &mode).await.context("the session is good for nothing before the switch")?;

    world.change_stack(&install, &["EnableRunner=false"]).await?;
    let off = "`EnableRunner` of install stack `freehold-acme--globex` is `false`";
    runner.logs(off, SOON).await?;
    let order = ["action", "run", "globex", "look"];
    let (asked, held) = tokio::join!(world.run(&order), async {
        let held = held(&world).await;
        let refused = clients::assume(&session, &mode).await.is_err();
        let paused = connection(&world).await;
        world.change_stack(&install, &["EnableRunner=true"]).await?;
        Ok::<_, anyhow::Error>((held?, refused, paused?))
    });

    let ((job, refused, paused), asked) = (held?, asked?);
    assert_eq!(paused["state"], "paused", "{paused}");
    assert!(paused["reason"].as_str().is_some_and(|why| why.contains(off)), "{paused}");
    until("the runner says that it is back", SOON, async || {
        Ok((connection(&world).await?["state"] == "connected").then_some(()))
    })
    .await?;
    assert!(matches!(state_of(&job), "queued" | "waiting_for_runner"), "{job}");
    assert!(refused, "a session that was taken before still assumes a mode");
    assert!(asked.error.contains("waiting for the runner of `globex` for "), "{}", asked.error);
    assert_eq!(asked.code, 0, "{}\n{}", asked.error, runner.log());
    let audit = the_audit(&world, &install).await?;
    assert_eq!(audit["verified"], true);
    let sts = aws_sdk_sts::Client::new(&world.administrator(world.tenant_account())?);
    let vendor = sts.get_caller_identity().send().await?.arn().context("a caller without an ARN")?.to_owned();
    let asked_by = json!({ "by": "caller", "arn": vendor });
    assert_eq!(world.newest_workflow("globex").await?["asked_by"], asked_by);
    let askers: Vec<&Value> = audit["askers"].as_array().into_iter().flatten().map(|one| &one["asked_by"]).collect();
    assert_eq!(askers, [&asked_by]);
    Ok(())
}

/// Returns the connection of the install as the tenant's API shows it.
async fn connection(world: &World) -> anyhow::Result<Value> {
    Ok(world.vendor(&["install", "show", "globex"]).await?["connection"].clone())
}

/// Waits until an order has been queued for so long that the vendor was told; returns the job.
async fn held(world: &World) -> anyhow::Result<Value> {
    until("an order waits for 15 s", SOON, async || {
        let workflow = world.newest_workflow("globex").await?;
        let Some(id) = workflow["nodes"][0]["job"].as_str().filter(|_| workflow["kind"] == "run-action") else {
            return Ok(None);
        };
        let job = world.vendor(&["job", "show", id]).await?;
        let created = job["created_at"].as_i64().context("a job without its time")? / 1000;
        Ok((now()? - created > 15).then_some(job))
    })
    .await
}

/// Copies the audit records of the customer's bucket; returns the answer of `freehold customer audit verify`.
async fn the_audit(world: &World, install: &Install) -> anyhow::Result<Value> {
    let s3 = aws_sdk_s3::Client::new(&world.administrator(&install.account)?);
    let bucket = format!("fh-acme--globex--{}", install.account);
    let objects = s3.list_objects_v2().bucket(&bucket).prefix("audit/").send().await?;
    for key in objects.contents().iter().filter_map(|object| object.key()) {
        let object = s3.get_object().bucket(&bucket).key(key).send().await?;
        let file = world.directory().join(key);
        std::fs::create_dir_all(file.parent().context("a key without a folder")?)?;
        std::fs::write(file, object.body.collect().await?.into_bytes())?;
    }
    let verify = ["customer", "audit", "verify", "--copy", "audit", "--json"];
    world.command(&install.account, &verify).await?.json()
}

/// Runs an action; returns its job.
async fn run(world: &World, arguments: &[&str]) -> anyhow::Result<Value> {
    let run = [&["action", "run", "globex"], arguments].concat();
    // It ends with 1 when the action does not succeed.
    let _ = world.run(&run).await?;
    let workflow = world.newest_workflow("globex").await?;
    let id = workflow["nodes"][0]["job"].as_str().with_context(|| format!("no job: {workflow}"))?;
    world.vendor(&["job", "show", id]).await
}

fn state_of(job: &Value) -> &str {
    job["state"].as_str().unwrap_or_default()
}

/// Returns the seconds since 1970.
fn now() -> anyhow::Result<i64> {
    Ok(i64::try_from(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs())?)
}
