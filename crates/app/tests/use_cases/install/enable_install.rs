//! Enabling an install that is not disabled changes nothing.

use crate::support::{World, globex};

#[tokio::test]
async fn enabling_an_enabled_install_changes_nothing() {
    let world = World::with_install().await;
    let rows = world.memory.rows();

    world.enable_install().enable(&globex()).await.unwrap();

    assert_eq!(world.memory.rows(), rows);
}
