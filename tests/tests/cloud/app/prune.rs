//! Pruning on a cloud: the real function, under its own role, removes unused artifacts and nothing else.

use std::collections::BTreeSet;

use anyhow::{Context as _, ensure};
use freehold_app::ports::{Committed, Expect, Key, Store as _, Write};
use freehold_aws::store::DynamoStore;
use freehold_domain::prune_artifacts::{WAIT_SECS, YOUNG_SECS};
use freehold_tests::harness::{Capability, Needs, World, app};
use serde_json::Value;

const NEEDS: Needs = Needs {
    cloud: &[Capability::HttpApi, Capability::Registry, Capability::IamEnforced, Capability::AnyAccount],
    programs: &[],
};

/// Runs `prune-artifacts` now; its schedule does that once a day.
async fn prune(world: &World) -> anyhow::Result<()> {
    let lambda = aws_sdk_lambda::Client::new(&world.administrator(world.tenant_account())?);
    let answer = lambda.invoke().function_name(format!("fh-{}--prune-artifacts", world.tenant())).send().await?;
    let output = answer.payload().map(|payload| String::from_utf8_lossy(payload.as_ref()).into_owned());
    ensure!(answer.function_error().is_none(), "{output:?}");
    Ok(())
}

/// Puts the times of every build of `demo` back.
async fn age(world: &World, secs: u64) -> anyhow::Result<()> {
    let table = format!("fh-{}", world.tenant());
    let store = DynamoStore::new(&world.administrator(world.tenant_account())?, table);
    for row in store.query("app#demo", "build#", None, 100).await? {
        let mut body: Value = serde_json::from_str(&row.body)?;
        for pointer in ["/state/built_at", "/unused_since"] {
            if let Some(time) = body.pointer_mut(pointer) {
                *time = (time.as_u64().context("a time")? - secs * 1000).into();
            }
        }
        let key = Key { pk: row.key.pk, sk: row.key.sk };
        let write = Write::Put { key, body: body.to_string(), expect: Expect::Rev(row.rev), expires: None };
        ensure!(store.commit(vec![write]).await? == Committed::Done, "the build is being changed");
    }
    Ok(())
}

async fn held(world: &World) -> anyhow::Result<BTreeSet<String>> {
    let ecr = aws_sdk_ecr::Client::new(&world.administrator(world.tenant_account())?);
    let images = ecr.list_images().repository_name(format!("fh-{}", world.tenant())).send().await?;
    Ok(images.image_ids().iter().filter_map(|image| image.image_digest().map(str::to_owned)).collect())
}

/// The artifacts of `storage` in a state.
async fn storages(world: &World, state: &str) -> anyhow::Result<Vec<String>> {
    let all = world.vendor(&["artifact", "prune", "--dry-run", "--app", "demo"]).await?;
    let all = all[0]["artifacts"].as_array().context("artifacts")?;
    let found = all.iter().filter(|one| one["component"] == "storage" && one["state"] == state);
    Ok(found.filter_map(|one| one["artifact"].as_str().map(str::to_owned)).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_uses_is_removed_after_a_day_and_built_again_when_it_is_needed() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_registry", NEEDS).await? else { return Ok(()) };
    let directory = app::demo(world.directory(), &[1000])?;
    let _builder = world.build_runner().await?;
    world.sync_and_build(&directory, "demo").await?;
    let first = storages(&world, "kept").await?;
    app::edit(&directory, "templates/storage.yaml", "\nResources:", "\n# changed\nResources:")?;
    world.sync_and_build(&directory, "demo").await?;
    age(&world, YOUNG_SECS).await?;
    let before = held(&world).await?;

    prune(&world).await?;
    let (unused, marked) = (storages(&world, "unused").await?, held(&world).await?);
    age(&world, WAIT_SECS).await?;
    prune(&world).await?;
    let (removed, after) = (storages(&world, "removed").await?, held(&world).await?);
    app::edit(&directory, "templates/storage.yaml", "\n# changed\nResources:", "\nResources:")?;
    world.sync_and_build(&directory, "demo").await?;
    let again = held(&world).await?;

    assert_eq!((&unused, &removed, first.len()), (&first, &first, 1));
    assert_eq!(marked, before);
    let gone: Vec<&String> = before.difference(&after).collect();
    assert!(gone.contains(&&first[0]) && after.is_subset(&before), "{gone:?}");
    assert_eq!(gone.len(), 2, "the artifact and its statement: {gone:?}");
    assert!(again.contains(&first[0]), "{again:?}");
    assert_eq!(storages(&world, "removed").await?, Vec::<String>::new());
    Ok(())
}
