//! Removing a subscription.

use freehold_app::Kind;
use freehold_app::notification::remove_subscription::RemoveSubscription;
use freehold_protocol::api::RemoveSubscriptionRequest;

use super::add_subscription::{MAIL, QUEUE, add, of_install, request};
use crate::support::World;

fn remove(world: &World) -> RemoveSubscription {
    RemoveSubscription { subscriptions: world.memory.clone() }
}

fn removal(endpoint: &str) -> RemoveSubscriptionRequest {
    RemoveSubscriptionRequest { endpoint: endpoint.parse().unwrap() }
}

#[tokio::test]
async fn a_confirmed_subscription_is_removed_and_what_happens_to_another_is_said() {
    let world = World::with_install().await;
    add(&world).add(&request(QUEUE, of_install())).await.unwrap();
    add(&world).add(&request(MAIL, of_install())).await.unwrap();

    let left = remove(&world).remove(&removal(QUEUE)).await.unwrap().subscriptions;
    let again = remove(&world).remove(&removal(QUEUE)).await.unwrap().subscriptions;
    let pending = remove(&world).remove(&removal(MAIL)).await.unwrap_err();

    assert_eq!(left.iter().map(|one| one.endpoint.as_str()).collect::<Vec<_>>(), [MAIL]);
    assert_eq!(again, left);
    assert_eq!(pending.kind, Kind::Conflict);
    assert!(pending.message.ends_with("SNS forgets it after two days"), "{}", pending.message);
}
