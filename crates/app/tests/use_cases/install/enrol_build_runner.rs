//! The build runner is registered once, and again when its queue has changed.

use freehold_app::install::enrol_build_runner::EnrolBuildRunner;
use freehold_app::table;
use freehold_domain::install::Serves;

use crate::support::World;

#[tokio::test]
async fn the_same_again_changes_nothing_and_another_queue_replaces_the_first() {
    let world = World::new();
    world.enrol_build_runner().enrol().await.unwrap();
    let rows = world.memory.rows();

    world.enrol_build_runner().enrol().await.unwrap();
    assert_eq!(world.memory.rows(), rows);
    let other = EnrolBuildRunner { build_queue_url: "https://other".into(), ..world.enrol_build_runner() };
    other.enrol().await.unwrap();

    let install = table::install(&*world.memory, &table::reserved_install().unwrap()).await.unwrap().value;
    assert_eq!((install.serves, install.account), (Serves::Builds, other.account));
    assert_eq!(install.orders_queue_url, Some(other.build_queue_url));
}
