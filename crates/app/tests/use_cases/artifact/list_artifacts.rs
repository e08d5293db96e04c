//! Listing the artifacts of an app, with what keeps each of them.

use crate::support::World;

#[tokio::test]
async fn each_artifact_is_listed_with_what_keeps_it() {
    let world = World::with_install().await;

    let list = world.list_artifacts().list(&"demo".parse().unwrap()).await.unwrap();

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

    let error = world.list_artifacts().list(&"other".parse().unwrap()).await.unwrap_err();

    assert_eq!(error.message, "app `other` does not exist; sync it with `freehold app sync DIR`");
}
