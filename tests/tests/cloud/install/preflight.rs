//! Roles of a customer lack a permission: the preflight fails before anything is created, names the permission and the
//! remedy, and passes once the customer has applied it.

use anyhow::Context as _;
use freehold_tests::harness::{Capability, Install, Needs, World, app};
use serde_json::{Value, json};

const NEEDS: Needs = Needs {
    cloud: &[Capability::HttpApi, Capability::Registry, Capability::IamEnforced],
    programs: &["terraform|tofu", "bwrap"],
};

const MODES: [&str; 2] = ["fh-acme--globex--provision", "fh-acme--globex--maintenance"];
/// The name of the policy that the customer added.
const CLOSED: &str = "closed";

#[tokio::test(flavor = "multi_thread")]
async fn what_a_role_lacks_stops_a_provisioning_before_anything_is_made() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_preflight", NEEDS).await? else { return Ok(()) };
    let directory = app::demo(world.directory(), &[1000])?;
    let own = "\"Resource\": \"arn:aws:sqs:*:*:{{ .nuon.install.id }}-*\"\n    }";
    // The local cloud does not know whose policies are to be simulated; on AWS the role's own ARN would do.
    let simulates = "{\"Effect\": \"Allow\", \"Action\": \"iam:SimulatePrincipalPolicy\", \"Resource\": \"*\"}";
    app::edit(&directory, "permissions/storage.json", own, &format!("{own}, {simulates}"))?;
    world.ship(&directory).await?;
    let install = world.install("globex", "demo").await?;
    close(&world, &install).await?;
    let _runner = world.runner(&install).await?;
    let provisioning = install.created["workflow"].as_str().context("no workflow")?;

    let stopped = world.run(&["workflow", "watch", provisioning]).await?.ended_with(1)?;
    let again = world.run(&["deploy", "globex"]).await?.ended_with(1)?;
    let ended = world.vendor(&["workflow", "show", provisioning]).await?;

    assert!(again.contains("`s3:ListBucket`") && again.contains("role `fh-acme--globex--maintenance`"), "{again}");
    assert!(stopped.contains("`preflight:install` failed: "), "{stopped}");
    assert!(
        stopped.contains("`state bucket`: AccessDenied") && stopped.contains("; see `freehold job logs job_"),
        "{stopped}"
    );
    the_reason_names_permission_and_fix(ended["reason"].as_str().context("no reason")?);
    nothing_was_made(&world, &install, &ended).await?;
    open(&world, &install).await?;
    let deployed = world.vendor(&["deploy", "globex"]).await?;
    assert_eq!(deployed["state"], "succeeded", "{deployed}");
    assert_eq!(deployed["nodes"][0]["name"], "preflight:install", "{deployed}");
    what_was_found_can_be_read(&world, &deployed).await?;
    let changed = world.vendor(&["deploy", "globex", "--input", "greeting=good morning"]).await?;
    assert!(!changed.to_string().contains("preflight:install"), "only a first deploy begins with one: {changed}");
    Ok(())
}

/// Takes from both modes what Terraform's state needs, in a policy of the customer's own.
async fn close(world: &World, install: &Install) -> anyhow::Result<()> {
    let iam = aws_sdk_iam::Client::new(&world.administrator(&install.account)?);
    let actions = ["s3:ListBucket", "s3:PutObject"];
    let document = json!({ "Version": "2012-10-17", "Statement": [
        { "Effect": "Deny", "Action": actions, "Resource": "*" },
    ] });
    for role in MODES {
        let put = iam.put_role_policy().role_name(role).policy_name(CLOSED).policy_document(document.to_string());
        put.send().await.context("the customer's own policy")?;
    }
    Ok(())
}

async fn open(world: &World, install: &Install) -> anyhow::Result<()> {
    let iam = aws_sdk_iam::Client::new(&world.administrator(&install.account)?);
    for role in MODES {
        iam.delete_role_policy()
            .role_name(role)
            .policy_name(CLOSED)
            .send()
            .await
            .context("the customer's own policy")?;
    }
    Ok(())
}

fn the_reason_names_permission_and_fix(reason: &str) {
    let parts = [
        "`preflight:install` failed: ",
        "`state bucket`: AccessDenied",
        "is not authorized to perform: s3:ListBucket",
        "fix: allow `s3:ListBucket` on `fh-acme--globex--",
        "with the prefix `terraform/*` for role `fh-acme--globex--provision`",
        // What is only decided by a simulation: nobody writes to try.
        "`permissions`: role `fh-acme--globex--provision` may not do these actions, which jobs always need: \
         `s3:PutObject` on ",
    ];
    for part in parts {
        assert!(reason.contains(part), "`{part}`: {reason}");
    }
}

async fn nothing_was_made(world: &World, install: &Install, workflow: &Value) -> anyhow::Result<()> {
    let nodes = workflow["nodes"].as_array().context("no nodes")?;
    let words: Vec<_> = nodes.iter().filter_map(|node| node["state"].as_str()).collect();
    assert_eq!(words[0], "failed", "{workflow}");
    assert!(words.len() > 4 && words[1..].iter().all(|word| *word == "skipped"), "{workflow}");
    let customer = world.administrator(&install.account)?;
    let bucket = format!("globex-demo-{}", install.account);
    assert!(aws_sdk_s3::Client::new(&customer).head_bucket().bucket(bucket).send().await.is_err());
    let stacks = aws_sdk_cloudformation::Client::new(&customer).describe_stacks().send().await?;
    let names: Vec<_> = stacks.stacks().iter().filter_map(|stack| stack.stack_name()).collect();
    assert!(!names.contains(&"acme--globex--storage"), "{names:?}");
    let state = format!("fh-acme--globex--{}", install.account);
    let objects =
        aws_sdk_s3::Client::new(&customer).list_objects_v2().bucket(state).prefix("terraform/").send().await?;
    assert!(objects.contents().is_empty(), "{objects:?}");
    let view = world.vendor(&["install", "show", "globex"]).await?;
    assert_eq!((&view["components"], &view["live"]), (&json!([]), &json!(null)), "{view}");
    Ok(())
}

async fn what_was_found_can_be_read(world: &World, deployed: &Value) -> anyhow::Result<()> {
    let id = deployed["nodes"][0]["job"].as_str().context("no job")?;
    let job = world.vendor(&["job", "show", id]).await?;
    let findings = job["outputs"]["findings"].as_array().with_context(|| format!("no findings: {job}"))?;
    let state = |check: &str| -> Vec<&str> {
        findings.iter().filter(|one| one["check"] == check).filter_map(|one| one["state"].as_str()).collect()
    };
    for check in
        ["region", "install registry", "state bucket", "stack acme--globex--storage", "terraform", "sandbox", "disk"]
    {
        assert!(state(check).iter().all(|state| *state != "fail") && !state(check).is_empty(), "{check}: {job}");
    }
    assert!(state("permissions").contains(&"pass"), "{job}");
    let output = world.run(&["job", "show", id]).await?.ended_with(0)?;
    assert!(output.contains("CHECK") && output.contains("state bucket"), "{output}");
    let line = "pass  state bucket: ";
    let log = world.log(id, |log| log.contains(line)).await?;
    assert!(log.contains(line), "{log}");
    Ok(())
}
