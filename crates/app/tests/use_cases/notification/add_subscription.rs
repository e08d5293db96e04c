//! Adding a subscription: once, with a choice that exists, and with a word on whether it is confirmed.

use freehold_app::Kind;
use freehold_app::notification::add_subscription::{AddSubscription, MAX_SUBSCRIPTIONS};
use freehold_app::notification::list_subscriptions::list_subscriptions;
use freehold_app::ports::Subscription;
use freehold_protocol::api::AddSubscriptionRequest;
use freehold_protocol::notification::{NotificationFilter, NotificationKind};

use crate::support::{World, globex};

pub(super) const QUEUE: &str = "arn:aws:sqs:eu-west-1:111111111111:told";
pub(super) const MAIL: &str = "ops@example.com";

pub(super) fn add(world: &World) -> AddSubscription {
    AddSubscription { store: world.memory.clone(), subscriptions: world.memory.clone() }
}

pub(super) fn request(endpoint: &str, filter: NotificationFilter) -> AddSubscriptionRequest {
    AddSubscriptionRequest { endpoint: endpoint.parse().unwrap(), filter }
}

pub(super) fn of_install() -> NotificationFilter {
    let only = [NotificationKind::ApprovalAsked].into();
    NotificationFilter { install: Some(globex()), only, ..NotificationFilter::default() }
}

#[tokio::test]
async fn a_subscription_is_added_once_and_says_whether_it_is_confirmed() {
    let world = World::with_install().await;

    let queue = add(&world).add(&request(QUEUE, of_install())).await.unwrap();
    let again = add(&world).add(&request(QUEUE, of_install())).await.unwrap();
    let mail = add(&world).add(&request(MAIL, NotificationFilter::default())).await.unwrap();

    assert_eq!((queue.pending, queue.filter.as_ref()), (false, Some(&of_install())));
    assert_eq!(again, queue);
    assert!(mail.pending);
    let all = list_subscriptions(&*world.memory).await.unwrap().subscriptions;
    let fields: Vec<_> = all.iter().map(|one| (one.endpoint.as_str(), one.protocol.as_str(), one.pending)).collect();
    assert_eq!(fields, [(QUEUE, "sqs", false), (MAIL, "email", true)]);
}

#[tokio::test]
async fn another_choice_of_a_subscriber_and_a_subscription_too_many_are_refused() {
    let world = World::with_install().await;
    add(&world).add(&request(QUEUE, of_install())).await.unwrap();

    let other = add(&world).add(&request(QUEUE, NotificationFilter::default())).await.unwrap_err();
    let one = world.memory.subscriptions.lock().unwrap()[0].clone();
    let many = (0..MAX_SUBSCRIPTIONS).map(|at| Subscription { endpoint: format!("a{at}@example.com"), ..one.clone() });
    world.memory.subscriptions.lock().unwrap().extend(many);
    let full = add(&world).add(&request(MAIL, of_install())).await.unwrap_err();

    assert_eq!((other.kind, full.kind), (Kind::Conflict, Kind::Conflict));
    assert_eq!(
        other.message,
        format!(
            "`{QUEUE}` is subscribed with another choice; remove it first with `freehold subscription remove {QUEUE}`"
        )
    );
    assert!(full.message.starts_with("the tenant has 101 subscriptions, and may have at most 100"), "{}", full.message);
}

#[tokio::test]
async fn an_app_or_an_install_that_does_not_exist_is_named() {
    let world = World::with_install().await;
    let filter = |app: Option<&str>, install: Option<&str>| NotificationFilter {
        app: app.map(|app| app.parse().unwrap()),
        install: install.map(|install| install.parse().unwrap()),
        ..NotificationFilter::default()
    };

    let app = add(&world).add(&request(MAIL, filter(Some("none"), None))).await.unwrap_err();
    let install = add(&world).add(&request(MAIL, filter(None, Some("none")))).await.unwrap_err();

    assert_eq!((app.kind, install.kind), (Kind::NotFound, Kind::NotFound));
    assert!(world.memory.subscriptions.lock().unwrap().is_empty());
}
