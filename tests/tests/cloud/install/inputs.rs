//! Inputs across two accounts: a customer's answers in the install stack reach the app's jobs, and a sensitive answer
//! never leaves the customer's account.

use anyhow::Context as _;
use freehold_tests::harness::{Capability, Needs, World, app};

const NEEDS: Needs = Needs { cloud: &[Capability::HttpApi, Capability::IamEnforced], programs: &["bwrap"] };

const SECRET: &str = "correct-horse-battery";

const INPUTS: &str = "\
[[group]]
name = \"app\"
display_name = \"The app\"
description = \"All of it\"

[[input]]
name = \"zone\"
type = \"number\"
display_name = \"Zone\"
description = \"Where it runs\"
group = \"app\"
required = true
user_configurable = true

[[input]]
name = \"api_token\"
display_name = \"Token\"
description = \"Opens the customer's own service\"
group = \"app\"
required = true
sensitive = true
user_configurable = true

[[input]]
name = \"otp_seed\"
display_name = \"Seed\"
description = \"May be left open\"
group = \"app\"
sensitive = true
user_configurable = true

[[input]]
name = \"greeting\"
display_name = \"Greeting\"
description = \"Said first\"
group = \"app\"
default = \"hello\"
";

const ACTION: &str = r#"name = "say"
timeout = "1m"

[[triggers]]
type = "manual"

[[steps]]
name = "say"
inline_contents = """
#!/bin/sh
token='{{ .nuon.inputs.inputs.api_token }}'
echo "{{ .nuon.inputs.inputs.greeting }} from zone {{ .nuon.inputs.inputs.zone }}, token $token"
echo '{"zone": {{ .nuon.install.inputs.zone }}, "token_length": '${#token}', "token": "'$token'", "seed": "{{ .nuon.inputs.inputs.otp_seed }}"}' > "$FREEHOLD_OUTPUTS"
"""
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_customers_answers_reach_the_apps_jobs_and_a_sensitive_one_no_further() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_inputs", NEEDS).await? else { return Ok(()) };
    let directory = app::small(world.directory())?;
    app::write(&directory, "inputs.toml", INPUTS)?;
    app::write(&directory, "actions/say.toml", ACTION)?;
    world.vendor(&["app", "sync", &directory.display().to_string()]).await?;
    let token = format!("InputApiToken={SECRET}");
    let install = world.install_answering("globex", "small", &["InputZone=3", &token]).await?;
    let _runner = world.runner(&install).await?;
    let provisioned = world.provisioned(&install).await?;
    assert_eq!(provisioned["state"], "succeeded", "{provisioned}");

    let first = job_and_log(&world).await?;
    let changed = world.vendor(&["install", "inputs", "globex", "--input", "greeting=good morning"]).await?;
    let second = job_and_log(&world).await?;

    assert!(first.1.contains("hello from zone 3, token [redacted]"), "{}", first.1);
    assert!(second.1.contains("good morning from zone 3, token [redacted]"), "{}", second.1);
    let outputs = &second.0["outputs"];
    assert_eq!((&outputs["zone"], &outputs["seed"]), (&3.into(), &"".into()), "{outputs}");
    assert_eq!(
        (&outputs["token_length"], &outputs["token"]),
        (&SECRET.len().into(), &"[redacted]".into()),
        "{outputs}"
    );
    let values: Vec<_> = changed["inputs"].as_array().context("no inputs")?.iter().map(|one| &one["value"]).collect();
    assert_eq!(serde_json::to_string(&values)?, r#"[null,"good morning",null,3]"#, "{changed}");
    the_vendor_may_not_answer_for_the_customer(&world).await?;
    the_secret_is_nowhere_in_the_tenant(&world).await
}

/// Runs the action; returns its job and its log.
async fn job_and_log(world: &World) -> anyhow::Result<(serde_json::Value, String)> {
    let run = world.vendor(&["action", "run", "globex", "say"]).await?;
    let id = run["nodes"][0]["job"].as_str().with_context(|| format!("no job: {run}"))?;
    let job = world.vendor(&["job", "show", id]).await?;
    Ok((job, world.log(id, |log| log.contains(", token [redacted]")).await?))
}

async fn the_vendor_may_not_answer_for_the_customer(world: &World) -> anyhow::Result<()> {
    let output = world.run(&["install", "inputs", "globex", "--input", "zone=4", "--input", "greting=x"]).await?;
    let output = output.ended_with(2)?;

    assert!(output.contains("input `zone` is answered by the customer, with parameter `InputZone`"), "{output}");
    assert!(output.contains("did you mean `greeting`?"), "{output}");
    Ok(())
}

async fn the_secret_is_nowhere_in_the_tenant(world: &World) -> anyhow::Result<()> {
    let table = aws_sdk_dynamodb::Client::new(&world.administrator(world.tenant_account())?);
    let rows = table.scan().table_name(format!("fh-{}", world.tenant())).send().await.context("the table")?;
    assert!(rows.items().len() > 10);
    for row in rows.items() {
        assert!(!format!("{row:?}").contains(SECRET), "{row:?}");
    }
    Ok(())
}
