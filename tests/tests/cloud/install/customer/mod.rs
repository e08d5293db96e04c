//! `freehold customer` with the customer's own credentials against a real install: the answers from the bucket, what
//! happened outside the log, and a stop that is looked up.

mod audit_lock;

use anyhow::{Context as _, ensure};
use freehold_tests::harness::clients;
use freehold_tests::harness::wait::{SOON, until};
use freehold_tests::harness::{Capability, Install, Needs, World, app};
use serde_json::{Value, json};

const NEEDS: Needs = Needs { cloud: &[Capability::HttpApi, Capability::IamEnforced], programs: &["bwrap"] };

/// Runs `freehold customer` as the customer of an install; returns the exit code and the answer.
async fn ask(world: &World, install: &Install, words: &[&str]) -> anyhow::Result<(i32, Value)> {
    let all = [&["customer"], words, &["--tenant", world.tenant(), "--json"]].concat();
    let done = world.command(&install.account, &all).await?;
    for code in [0, 1] {
        if let Ok(output) = done.ended_with(code) {
            let answer = output
                .find('{')
                .and_then(|begin| serde_json::Deserializer::from_str(&output[begin..]).into_iter().next());
            return Ok((code, answer.context("no answer")??));
        }
    }
    anyhow::bail!("`customer {}`: {}", words.join(" "), done.ended_with(0).unwrap_err())
}

/// Asks a question until its answer has what the runner did: the runner stores the last records after the report of a job's
/// end. Each answer must be proven, also those to which a record is still to come.
async fn proven(world: &World, install: &Install, words: &[&str], has_all: HasAll) -> anyhow::Result<Value> {
    let look = || async {
        let (code, answer) = ask(world, install, words).await?;
        ensure!(code == 0 && is_proven(&answer), "{words:?}: {code}, {answer}");
        Ok(Some(answer).filter(has_all))
    };
    until(&format!("{words:?} has everything"), SOON, look).await
}

fn is_proven(answer: &Value) -> bool {
    answer["proven"] == true || answer["verified"] == true
}

/// Undoes parts of a stop beside the stack, as an accomplice of the vendor in the customer's account could, and asserts that
/// each part is reported although the parameters of the stack say that everything is off.
async fn undo_the_stop(world: &World, install: &Install) -> anyhow::Result<()> {
    let iam = aws_sdk_iam::Client::new(&world.administrator(&install.account)?);
    let vendor = format!("arn:aws:iam::{}:root", world.tenant_account());
    let trust = json!({ "Version": "2012-10-17", "Statement": [
        { "Effect": "Allow", "Principal": { "AWS": vendor }, "Action": "sts:AssumeRole" },
    ] });
    let (role, other) = ("fh-acme--globex--provision", "fh-acme--globex--maintenance");
    let limits = format!("arn:aws:iam::{}:policy/fh-acme--globex--limits", install.account);

    // The next update of the stack writes the trust policy anew.
    let changed = iam.update_assume_role_policy().role_name(other).policy_document(trust.to_string());
    changed.send().await.context("the trust")?;
    iam.detach_role_policy().role_name(role).policy_arn(&limits).send().await.context("the limits")?;
    let (code, answer) = ask(world, install, &["stopped", "globex"]).await?;
    iam.attach_role_policy().role_name(role).policy_arn(&limits).send().await.context("the limits again")?;

    let all = answer["looked_up"].as_array().cloned().unwrap_or_default();
    let open: Vec<&str> =
        all.iter().filter(|look| look["stopped"] == false).filter_map(|look| look["what"].as_str()).collect();
    let trusted = "another principal than the runner: assume the role of Maintenance";
    assert!(code == 1 && answer["stopped"] == false, "{answer}");
    assert!(open.contains(&trusted) && open.contains(&"live sessions of Provision") && open.len() == 2, "{answer}");
    assert!(answer.to_string().contains(&format!("the role trusts {vendor}")), "{answer}");
    Ok(())
}

/// Whether an answer has everything that it has in the end.
type HasAll = fn(&Value) -> bool;

/// The questions whose answers rest on the log or on the template, each with what its answer has in the end.
const QUESTIONS: [(&str, HasAll); 7] = [
    ("permissions", |_| true),
    ("asked", |_| true),
    ("approvals", |_| true),
    ("ran", |answer| {
        answer["answer"].as_array().is_some_and(|all| all.iter().any(|run| run["steps"][0]["name"] == "say"))
    }),
    ("origin", |_| true),
    ("sent", |answer| answer["answer"].as_array().is_some_and(|reports| reports.len() > 4)),
    ("outside", |answer| answer["answer"]["explained"].as_u64() > Some(0)),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_customer_gets_every_answer_and_stops_the_vendor_without_the_vendor() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_customer", NEEDS).await? else { return Ok(()) };
    let directory = app::small(world.directory())?;
    world.ship(&directory).await?;
    let install = world.install("globex", "small").await?;
    let mut runner = world.runner(&install).await?;
    world.provisioned(&install).await?;
    for _ in 0..2 {
        world.vendor(&["action", "run", "globex", "say"]).await?;
    }

    for (question, has_all) in QUESTIONS {
        proven(&world, &install, &[question, "globex"], has_all).await?;
    }
    until("an order brings a receipt", SOON, || async {
        world.vendor(&["action", "run", "globex", "say"]).await?;
        // The runner stores its last records while the bucket is read.
        let verified = proven(&world, &install, &["audit", "verify", "globex"], |_| true).await?;
        Ok((verified["confirmed"].as_u64() > Some(0)).then_some(()))
    })
    .await?;
    let (running, looked_up) = ask(&world, &install, &["stopped", "globex"]).await?;
    let (there, _) = ask(&world, &install, &["gone", "globex"]).await?;

    assert_eq!((running, there), (1, 1), "{looked_up}");

    // Somebody who has the runner's role takes a mode without an order.
    let stolen = world.acting_as(world.role(&install.account, "fh-acme--globex--runner").await?)?;
    let mode = format!("arn:aws:iam::{}:role/fh-acme--globex--maintenance", install.account);
    let session = world.acting_as(clients::assume(&stolen, &mode).await?)?;
    let _ = aws_sdk_sqs::Client::new(&session).list_queues().send().await;
    let (outside, report) = ask(&world, &install, &["outside", "globex"]).await?;
    assert!(outside == 1 && report["doubts"].to_string().contains("names the session `test`"), "{report}");

    // With the name of a job that has just run, the number of its sessions shows it.
    world.vendor(&["action", "run", "globex", "say"]).await?;
    let workflow = world.newest_workflow("globex").await?;
    let job = workflow["nodes"][0]["job"].as_str().with_context(|| format!("no job: {workflow}"))?;
    clients::assume_as(&stolen, &mode, job).await?;
    let expected = format!("this is session 2 of job `{job}` under role `fh-acme--globex--maintenance`");
    until("the second session of the job is listed", SOON, || async {
        let (_, report) = ask(&world, &install, &["outside", "globex"]).await?;
        Ok(report["doubts"].to_string().contains(&expected).then_some(()))
    })
    .await?;

    let (paused, pause) = ask(&world, &install, &["pause", "globex"]).await?;
    let (stopped, all_off) = ask(&world, &install, &["stopped", "globex"]).await?;
    assert_eq!((paused, &pause["changed"]), (0, &Value::Bool(true)), "{pause}");
    assert_eq!((stopped, &all_off["stopped"]), (0, &Value::Bool(true)), "{all_off}");
    undo_the_stop(&world, &install).await?;

    // Nothing in the stack changes by it now, and CloudFormation would forget it.
    let early = ["customer", "close", "globex", "maintenance", "--tenant", world.tenant()];
    let refused = world.command(&install.account, &early).await?.ended_with(4)?;
    assert!(refused.contains("run `freehold customer resume`, then this command again"), "{refused}");
    let (on, resume) = ask(&world, &install, &["resume", "globex"]).await?;
    let (closed, close) = ask(&world, &install, &["close", "globex", "maintenance"]).await?;
    assert_eq!((on, closed), (0, 0), "{resume} {close}");
    let (resumed, some_off) = ask(&world, &install, &["stopped", "globex"]).await?;
    let off = |what: &str| {
        let all = some_off["looked_up"].as_array().cloned().unwrap_or_default();
        all.iter().find(|look| look["what"] == what).is_some_and(|look| look["stopped"] == true)
    };
    assert!(resumed == 1 && off("live sessions of Maintenance") && !off("live sessions of Provision"), "{some_off}");
    let (revoked, _) = ask(&world, &install, &["revoke-sessions", "globex"]).await?;
    assert_eq!(revoked, 0);
    runner.kill().await?;
    Ok(())
}
