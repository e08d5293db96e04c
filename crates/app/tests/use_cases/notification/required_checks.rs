//! Notifications about required checks: when a gate waits for them, and when a component recovers because they passed.

use freehold_protocol::api::CheckResult::{Failed, Passed};
use freehold_protocol::notification::{Notification, NotificationKind};

use crate::health::report_check::{pass, report, waiting};
use crate::support::{World, with_input};

/// Lets a minute pass, and returns the notifications of this kind that the tasks of the time sent.
async fn sent(world: &mut World, kind: NotificationKind) -> Vec<Notification> {
    world.memory.advance_secs(60);
    world.handle_due_tasks().handle().await.unwrap();
    let sent = std::mem::take(&mut *world.memory.notifications.lock().unwrap());
    sent.into_iter().filter(|one| one.kind == kind).collect()
}

/// Returns the subjects of the notifications about changed health.
async fn health_changes(world: &mut World) -> Vec<String> {
    sent(world, NotificationKind::HealthChanged).await.into_iter().map(|one| one.subject).collect()
}

#[tokio::test]
async fn a_check_that_failed_after_another_deploy_is_told_as_after_the_first_one() {
    let (mut world, _, _) = waiting().await;
    for check in ["ci", "load"] {
        report(&world, check, Passed).await;
    }
    pass(&mut world, 10).await;
    world.settle().await;
    let healthy = health_changes(&mut world).await;

    world.deploy(&with_input("days", 9), "deploy-2").await.unwrap();
    world.run().await;
    report(&world, "ci", Failed).await;
    pass(&mut world, 10).await;
    world.settle().await;

    assert!(healthy.is_empty(), "{healthy:?}");
    assert_eq!(health_changes(&mut world).await, ["Freehold: globex: storage is unhealthy"]);
}
