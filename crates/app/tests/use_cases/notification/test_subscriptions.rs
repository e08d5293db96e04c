//! Sending a test to subscribers.

use freehold_app::notification::test_subscriptions::TestSubscriptions;
use freehold_protocol::api::TestSubscriptionsRequest;
use freehold_protocol::notification::NotificationKind;

use crate::support::{World, app, globex};

fn test(world: &World) -> TestSubscriptions {
    TestSubscriptions { store: world.memory.clone(), topic: world.memory.clone(), clock: world.memory.clone() }
}

#[tokio::test]
async fn a_test_is_about_the_install_and_its_app_with_the_id_of_its_cause() {
    let world = World::with_install().await;
    let request = TestSubscriptionsRequest { install: Some(globex()), ..TestSubscriptionsRequest::default() };

    let first = test(&world).test(&request, "key-1").await.unwrap();
    let again = test(&world).test(&request, "key-1").await.unwrap();
    let other = test(&world).test(&TestSubscriptionsRequest::default(), "key-2").await.unwrap();

    assert_eq!(first, again);
    assert_ne!(first, other);
    let sent = world.memory.notifications.lock().unwrap().clone();
    assert_eq!((sent[0].kind, &sent[0].id), (NotificationKind::Test, &first.id));
    assert_eq!((sent[0].install.as_ref(), sent[0].app.as_ref()), (Some(&globex()), Some(&app::document().app)));
    assert_eq!((sent[2].install.as_ref(), sent[2].app.as_ref()), (None, None));
}
