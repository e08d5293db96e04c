//! The build runner is registered once, and again under another enrolment key.

use freehold_app::install::enrol_build_runner::build_install;
use freehold_app::table;
use freehold_domain::install::Serves;
use freehold_protocol::api::EnrolBuildRunnerRequest;

use crate::support::World;
use crate::support::runner::Runner;

fn key(world: &World, name: &str) -> EnrolBuildRunnerRequest {
    EnrolBuildRunnerRequest { enrolment_key: Runner::enrolment(&world.tenant, name) }
}

#[tokio::test]
async fn the_same_key_again_changes_nothing_and_another_key_replaces_it() {
    let world = World::new();
    let (first, other) = (key(&world, "build"), key(&world, "other"));
    world.enrol_build_runner().enrol(&first).await.unwrap();
    let rows = world.memory.rows();

    world.enrol_build_runner().enrol(&first).await.unwrap();
    assert_eq!(world.memory.rows(), rows);
    world.enrol_build_runner().enrol(&other).await.unwrap();

    let install = table::install(&*world.memory, &build_install().unwrap()).await.unwrap().value;
    assert_eq!((install.serves, install.enrolment_key), (Serves::Builds, other.enrolment_key));
    assert_eq!(install.orders_queue_url, Some(world.enrol_build_runner().build_queue_url));
}
