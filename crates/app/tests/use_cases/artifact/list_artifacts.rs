//! Listing the artifacts of an app, with what keeps each of them.

use freehold_app::ports::{Expect, Store as _};
use freehold_app::table::{app_pk, load_all, put};
use freehold_domain::build::Build;
use freehold_protocol::{AppName, BuildId, Digest};

use crate::support::World;

#[tokio::test]
async fn each_artifact_is_listed_with_what_keeps_it() {
    let world = World::with_install().await;

    let list = world.list_artifacts().list(&"demo".parse().unwrap(), None).await.unwrap();

    let kept_by = |name: &str| {
        let found = list.artifacts.iter().find(|one| one.component.as_str() == name).unwrap();
        (found.state.as_str(), found.kept_by.join("; "), found.next.as_str())
    };
    let why = "install `globex` runs the artifact; install `globex` is at a version that contains the artifact; newest \
               version; built in the last 30 days";
    for name in ["info", "settings", "storage"] {
        assert_eq!(kept_by(name), ("kept", why.to_owned(), ""), "{name}");
    }
    assert_eq!(list.artifacts.len(), 3);
}

#[tokio::test]
async fn an_app_that_is_not_there_is_named() {
    let world = World::with_app().await;

    let error = world.list_artifacts().list(&"other".parse().unwrap(), None).await.unwrap_err();

    assert_eq!(error.message, "app `other` does not exist; sync it with `freehold app sync DIR`");
}

#[tokio::test]
async fn artifacts_beyond_the_first_page_are_on_the_next_one() {
    let world = World::with_app().await;
    let demo: AppName = "demo".parse().unwrap();
    let known: Vec<Build> = load_all(&*world.memory, &app_pk(&demo), "build#").await.unwrap();
    for at in 0..600 {
        let id = BuildId::derive(&demo, &Digest::of(at.to_string().as_bytes()), &known[0].component);
        let _ =
            world.memory.commit(vec![put(&Build { id, ..known[0].clone() }, Expect::Absent).unwrap()]).await.unwrap();
    }

    let first = world.list_artifacts().list(&demo, None).await.unwrap();
    let rest = world.list_artifacts().list(&demo, first.next.as_deref()).await.unwrap();

    assert_eq!((first.artifacts.len(), rest.artifacts.len()), (500, 103));
    assert!(first.next.is_some() && rest.next.is_none());
    assert!(first.artifacts.iter().all(|one| one.build < rest.artifacts[0].build));
}
