//! Syncing: one version for one document, and no graph with a cycle or an unknown dependency.

use freehold_app::Kind;
use freehold_app::read;
use freehold_domain::runbook::MAX_RUN_BYTES;
use freehold_protocol::app_version::{Component, Trigger};
use freehold_protocol::limits::{MAX_APP_VERSION_BYTES, MAX_LABELS_BYTES, MAX_POST_DEPLOY_RUNBOOKS};

use crate::support::{World, app};

#[tokio::test]
async fn the_same_document_is_the_same_version_and_the_last_synced_is_the_latest() {
    let world = World::new();
    let (one, two) = (app::document(), app::with_source("storage", "example/storage:2"));
    let put = async |document| world.sync_app().sync(&one.app, document).await.unwrap();

    let numbers = [put(&one).await.number, put(&two).await.number, put(&two).await.number, put(&one).await.number];

    assert_eq!(numbers, [1, 2, 2, 1]);
    let latest = world.versions().load(&one.app, None).await.unwrap();
    assert_eq!((latest.number, &*latest.document), (1, &one));
}

#[tokio::test]
async fn versions_are_listed_newest_first_whatever_their_digests_are() {
    let world = World::new();
    for tag in 0..60 {
        world.sync(&app::with_source("storage", &format!("example/storage:{tag}"))).await;
    }
    world.sync(&app::with_source("storage", "example/storage:0")).await;
    let app = app::document().app;

    let first = read::list_versions(&*world.memory, &app, None).await.unwrap();
    let second = read::list_versions(&*world.memory, &app, first.next.as_deref()).await.unwrap();

    let numbers: Vec<u64> = first.items.iter().chain(&second.items).map(|view| view.number).collect();
    assert_eq!(numbers, (1..=60).rev().collect::<Vec<u64>>());
    assert_eq!(second.next, None);
}

#[tokio::test]
async fn a_document_that_cannot_be_deployed_is_refused_by_name() {
    let world = World::new();
    let good = app::document();
    let mut cycle = good.clone();
    cycle.components[2].dependencies.insert("info".parse().unwrap());
    let mut missing = good.clone();
    missing.components[0].dependencies.insert("network".parse().unwrap());
    let mut twice = good.clone();
    twice.components.push(good.components[1].clone());
    let mut newer = good.clone();
    newer.format = 2;
    let mut large = good.clone();
    large.description = "x".repeat(MAX_APP_VERSION_BYTES);
    let mut quoted = good.clone();
    quoted.description = "\"".repeat(MAX_APP_VERSION_BYTES / 3);
    let mut never = good.clone();
    never.actions[0].triggers = [Trigger::Cron { schedule: "every noon".to_owned() }].into();
    let mut busy = good.clone();
    busy.components[0].settings.drift_schedule = "*/5 * * * *".to_owned();
    let mut labelled = good.clone();
    labelled.default_labels = [("team".to_owned(), "x".repeat(MAX_LABELS_BYTES))].into();
    let unknown = app::with_post_deploy_runbooks(&["verifi"]);
    let mut asking = app::with_post_deploy_runbooks(&["verify", "fix"]);
    asking.runbooks[0].inputs[0].default.clear();
    asking.runbooks[0].inputs[0].required = true;
    let mut idle = app::with_post_deploy_runbooks(&["fix"]);
    idle.runbooks[0].steps.clear();
    let twice_after = app::with_post_deploy_runbooks(&["verify", "fix", "verify"]);
    let many_after = app::with_post_deploy_runbooks(&["verify"; MAX_POST_DEPLOY_RUNBOOKS + 1]);
    let mut large_run = app::with_post_deploy_runbooks(&["verify"]);
    large_run.runbooks[1].steps[0].name = "x".repeat(MAX_RUN_BYTES);
    let cases = [
        (large_run, "runbook `verify` makes a run of 139"),
        (twice_after, "`post_deploy_runbooks` names runbook `verify` twice; remove one of the two"),
        (many_after, "`post_deploy_runbooks` names 21 runbooks, more than the maximum of 20; join some of them"),
        (unknown, "`post_deploy_runbooks`: the app has no runbook `verifi`"),
        (
            asking,
            "`post_deploy_runbooks`: runbook `fix` requires input `ticket`, and nobody gives inputs to a run after",
        ),
        (idle, "runbook `fix` has no steps"),
        (labelled, "`default_labels`: the labels have 4100 bytes in all, more than the 4096 that an install stores"),
        (busy, "`drift_schedule` `*/5 * * * *` is due more than once an hour; write one minute of the hour"),
        (never, "cron schedule `every noon`: "),
        (cycle, "depends on itself through other components"),
        (missing, "component `info` depends on `network`, which does not exist"),
        (twice, "two components are called `settings`"),
        (newer, "document has format 2, expected 1; use the `freehold` command of the tenant's release"),
        (large, "bytes of config, more than the maximum of 4194304"),
        (quoted, "bytes of config when each quote and backslash counts twice"),
    ];

    for (document, words) in cases {
        let error = world.sync_app().sync(&document.app, &document).await.unwrap_err();

        assert_eq!(error.kind, Kind::Invalid);
        assert!(error.message.contains(words), "{error}");
    }
    let other = world.sync_app().sync(&"other".parse().unwrap(), &good).await.unwrap_err();
    assert_eq!(other.message, "document is for app `demo`, not for app `other`");
    assert!(world.memory.rows().is_empty() && world.memory.versions.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_long_chain_of_components_is_checked_link_by_link() {
    const LENGTH: usize = 5_000;
    let world = World::new();
    let mut document = app::document();
    let template = document.components[1].clone();
    let named = |at: usize| format!("c-{at:05}").parse().unwrap();
    document.components = (0..LENGTH)
        .map(|at| Component {
            name: named(at),
            // Against the order of the names, which would be an easy one.
            dependencies: (at + 1 < LENGTH).then(|| named(at + 1)).into_iter().collect(),
            ..template.clone()
        })
        .collect();
    let began = std::time::Instant::now();

    world.sync_app().sync(&document.app, &document).await.unwrap();
    document.components[LENGTH - 1].dependencies.insert(named(0));
    let error = world.sync_app().sync(&document.app, &document).await.unwrap_err();

    assert_eq!(error.message, "component `c-00000` depends on itself through other components");
    // Milliseconds by count; minutes where every pair is looked at.
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
}
