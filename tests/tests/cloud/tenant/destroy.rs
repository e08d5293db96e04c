//! `freehold tenant destroy` leaves nothing behind.

use freehold_tests::harness::{Capability, Needs, World, app};

const NEEDS: Needs = Needs { cloud: &[Capability::HttpApi, Capability::EmptyAccounts], programs: &[] };

#[tokio::test(flavor = "multi_thread")]
async fn a_destroyed_tenant_leaves_nothing_tagged_behind() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_destroy", NEEDS).await? else { return Ok(()) };
    world.vendor(&["app", "sync", &app::small(world.directory())?.display().to_string()]).await?;
    // A typo in the account: the install is deleted before anything ran, and its name and its queue serve another account.
    let file = |name: &str| world.directory().join(name).display().to_string();
    let create =
        ["install", "create", "globex", "--app", "small", "--account", "999999999999", "--region", "eu-west-1"];
    world.vendor(&create).await?;
    world.run(&["install", "stack", "globex", "-o", &file("mistyped.yaml")]).await?.ended_with(0)?;
    world.vendor(&["install", "delete", "globex"]).await?;
    world.install("globex", "small").await?;
    let _ = world.build_runner().await?;
    assert!(
        tagged(&world).await?.iter().any(|arn| arn.contains("fh-acme--globex.fifo")),
        "the orders queue is not tagged"
    );

    let refused = world.run(&["tenant", "destroy", "--confirm", "globex", "--installs", "1"]).await?.ended_with(2)?;
    let unasked = world.run(&["tenant", "destroy", "--installs", "1"]).await?.ended_with(2)?;
    let uncounted = world.run(&["tenant", "destroy", "--confirm", "acme"]).await?.ended_with(4)?;
    let before = tagged(&world).await?;
    world.vendor(&["tenant", "destroy", "--confirm", "acme", "--installs", "1"]).await?;

    assert!(uncounted.contains("still has 1 install: `globex`"), "{uncounted}");
    assert!(refused.contains("nothing was deleted"), "{refused}");
    assert!(unasked.contains("pass `--confirm acme`"), "{unasked}");
    assert!(before.len() > 20, "only {before:?} was tagged");
    assert_eq!(left_over(&world).await?, Vec::<String>::new());
    let again = world.run(&["tenant", "destroy", "--confirm", "acme"]).await?.ended_with(0)?;
    assert!(again.contains("nothing to delete"), "{again}");
    Ok(())
}

async fn tagged(world: &World) -> anyhow::Result<Vec<String>> {
    use aws_sdk_resourcegroupstagging::types::TagFilter;
    let client = aws_sdk_resourcegroupstagging::Client::new(&world.administrator(world.tenant_account())?);
    let filter = TagFilter::builder().key("freehold:tenant").values(world.tenant()).build();
    let mut pages = client.get_resources().tag_filters(filter).into_paginator().items().send();
    let mut found = Vec::new();
    while let Some(resource) = pages.next().await {
        found.extend(resource?.resource_arn().map(str::to_owned));
    }
    Ok(found)
}

/// Returns what is tagged, and what has the tenant's name where the tag search does not look. A KMS key stays for the
/// seven days that KMS waits.
async fn left_over(world: &World) -> anyhow::Result<Vec<String>> {
    let account = world.administrator(world.tenant_account())?;
    let mut found: Vec<String> = tagged(world).await?.into_iter().filter(|arn| !arn.contains(":kms:")).collect();
    let iam = aws_sdk_iam::Client::new(&account);
    let roles = iam.list_roles().send().await?;
    found.extend(roles.roles().iter().map(|role| role.role_name().to_owned()).filter(|name| name.starts_with("fh-")));
    let queues = aws_sdk_sqs::Client::new(&account).list_queues().queue_name_prefix("fh-").send().await?;
    found.extend(queues.queue_urls().iter().cloned());
    let buckets = aws_sdk_s3::Client::new(&account).list_buckets().send().await?;
    found.extend(buckets.buckets().iter().filter_map(|bucket| bucket.name()).map(str::to_owned));
    let machines = aws_sdk_sfn::Client::new(&account).list_state_machines().send().await?;
    found.extend(machines.state_machines().iter().map(|machine| machine.name().to_owned()));
    let tables = aws_sdk_dynamodb::Client::new(&account).list_tables().send().await?;
    found.extend(tables.table_names().iter().cloned());
    let repositories = aws_sdk_ecr::Client::new(&account).describe_repositories().send().await?;
    found.extend(repositories.repositories().iter().filter_map(|one| one.repository_name()).map(str::to_owned));
    Ok(found)
}
