//! The end of an install's life: what is deployed is removed, and then nothing of the install is left in the tenant.

use std::collections::BTreeSet;
use std::time::Duration;

use aws_sdk_sqs::types::QueueAttributeName;
use freehold_tests::harness::wait::{SOON, until};
use freehold_tests::harness::{Capability, Needs, World, app, clients};

const NEEDS: Needs =
    Needs { cloud: &[Capability::HttpApi, Capability::Registry, Capability::IamEnforced], programs: &["bwrap"] };
/// Rows stay for 90 seconds after `sweep` has closed the install.
const FORGOTTEN: Duration = Duration::from_secs(360);
/// So long nothing changes any more.
const STILL: Duration = Duration::from_secs(5);

/// Everything that the tenant has: the keys of rows, queues, the policy of the reports queue, objects and log groups.
#[derive(Debug, PartialEq)]
struct Tenant {
    rows: BTreeSet<(String, String)>,
    queues: BTreeSet<String>,
    reporters: Option<String>,
    objects: BTreeSet<String>,
    log_groups: BTreeSet<String>,
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_forgotten_install_is_left_in_the_tenant() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_forget", NEEDS).await? else { return Ok(()) };
    let directory = app::small(world.directory())?;
    let mut builder = world.build_runner().await?;
    world.sync_and_build(&directory, "small").await?;
    // The build needs nothing of its runner, whose hello may come later.
    until("the build runner is known", SOON, || async {
        Ok(rows(&world).await?.contains(&("install#build".to_owned(), "contact".to_owned())).then_some(()))
    })
    .await?;
    builder.kill().await?;
    // Its last reports may be handled later.
    let before = until("nothing changes any more", SOON, || async {
        let first = everything(&world).await?;
        tokio::time::sleep(STILL).await;
        Ok(Some(everything(&world).await?).filter(|second| *second == first))
    })
    .await?;

    let install = world.install("globex", "small").await?;
    let mut runner = world.runner(&install).await?;
    world.provisioned(&install).await?;
    world.vendor(&["action", "run", "globex", "say"]).await?;
    let lived = everything(&world).await?;
    let heard = world.run(&["install", "forget", "globex", "--confirm", "globex"]).await?.ended_with(4)?;
    let unasked = world.run(&["install", "forget", "globex", "--customer-gone"]).await?.ended_with(2)?;
    runner.kill().await?;
    let forget = ["install", "forget", "globex", "--customer-gone", "--confirm", "globex", "--no-wait"];
    world.vendor(&forget).await?;
    let again = world.vendor(&forget).await?;
    until("the install is forgotten", FORGOTTEN, || async {
        // The schedule runs it every minute.
        clients::invoke(&world.administrator(world.tenant_account())?, world.tenant(), "sweep").await?;
        let output = world.run(&["install", "show", "globex"]).await?;
        Ok(output.ended_with(3).is_ok().then_some(()))
    })
    .await?;

    assert!(heard.contains("its runner reported"), "{heard}");
    assert!(unasked.contains("pass `--confirm globex`"), "{unasked}");
    assert_eq!(again["install"], "globex", "{again}");
    assert!(lived.rows.len() > before.rows.len() + 10, "{lived:?}");
    let mut after = everything(&world).await?;
    // `sweep` may have removed the row of a workflow of the vendor's own that was due.
    let due = before.rows.iter().filter(|(pk, _)| pk == "next-sweep").cloned();
    after.rows.extend(due);
    assert_eq!(after, before);
    Ok(())
}

async fn everything(world: &World) -> anyhow::Result<Tenant> {
    let account = world.administrator(world.tenant_account())?;
    let sqs = aws_sdk_sqs::Client::new(&account);
    let queues: BTreeSet<String> = sqs.list_queues().send().await?.queue_urls().iter().cloned().collect();
    let reports = format!("fh-{}--reports", world.tenant());
    let mut reporters = None;
    if let Some(url) = queues.iter().find(|url| url.ends_with(&reports)) {
        let asked = sqs.get_queue_attributes().queue_url(url).attribute_names(QueueAttributeName::Policy);
        let policy = asked.send().await?.attributes().and_then(|all| all.get(&QueueAttributeName::Policy)).cloned();
        reporters = policy.filter(|policy| !policy.is_empty());
    }
    let s3 = aws_sdk_s3::Client::new(&account);
    let mut objects = BTreeSet::new();
    for bucket in s3.list_buckets().send().await?.buckets().iter().filter_map(|bucket| bucket.name()) {
        let page = s3.list_objects_v2().bucket(bucket).send().await?;
        objects.extend(page.contents().iter().filter_map(|object| Some(format!("{bucket}/{}", object.key()?))));
    }
    let logs = aws_sdk_cloudwatchlogs::Client::new(&account);
    let groups = logs.describe_log_groups().send().await?;
    let log_groups = groups.log_groups().iter().filter_map(|group| group.log_group_name().map(str::to_owned)).collect();
    Ok(Tenant { rows: rows(world).await?, queues, reporters, objects, log_groups })
}

/// Returns the keys of all rows that belong to installs, and of all rows that name one. Texts that orders of an app have
/// in common, the number of installs that are gone, and the reports queues name none.
async fn rows(world: &World) -> anyhow::Result<BTreeSet<(String, String)>> {
    let table = aws_sdk_dynamodb::Client::new(&world.administrator(world.tenant_account())?);
    let mut pages = table.scan().table_name(format!("fh-{}", world.tenant())).into_paginator().items().send();
    let mut found = BTreeSet::new();
    while let Some(row) = pages.next().await {
        let row = row?;
        let text = |name: &str| row.get(name).and_then(|value| value.as_s().ok()).cloned().unwrap_or_default();
        let (pk, sk, body) = (text("pk"), text("sk"), text("body"));
        let of_app = ["app#", "apps", "artifact#", "text#", "gone", "reports"].iter().any(|kind| pk.starts_with(kind));
        if !of_app || format!("{sk} {body}").contains("globex") {
            found.insert((pk, sk));
        }
    }
    Ok(found)
}
